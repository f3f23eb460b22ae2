/* SPDX-License-Identifier: MIT */
/*
 * How a kernel's entry ends, for assembly. On the stack: stub + GT_STUB_RETURN, and above it the
 * slot. Changes r11, which is free at an entry (hot_kernel.S, F).
 */
#ifndef GT_ARCH_X86_64_LEAVE_H
#define GT_ARCH_X86_64_LEAVE_H

/* clang-format off */
	/* into the body, which returns to the stub */
	.macro LEAVE_TRACED
	pop %r11
	mov %r11, (%rsp)
	jmp *(GT_STUB_BODY - GT_STUB_RETURN)(%r11)
	.endm

	/* into the body, which returns to its caller */
	.macro LEAVE_UNTRACED
	addq $(GT_STUB_UNTRACED - GT_STUB_RETURN), (%rsp)
	ret
	.endm
/* clang-format on */

#endif
