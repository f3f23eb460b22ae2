/* SPDX-License-Identifier: MIT */
/*
 * How a kernel's entry begins and ends, for assembly. Changes r11, which is free at an entry
 * (hot_kernel.S, F).
 */
#ifndef GT_ARCH_X86_64_LEAVE_H
#define GT_ARCH_X86_64_LEAVE_H

/* clang-format off */
	/*
	 * A stub calls with the real return address in r10, and with its own in the slot, where the call
	 * has put it. From here on the slot has the real one, and the stub's stands below it.
	 */
	.macro STUB_CALLED
	mov (%rsp), %r11
	mov %r10, (%rsp)
	push %r11
	.endm

	/* In its place: into the body, which returns to its caller. */
	.macro LEAVE_CALLED
	pop %r11
	push %r10
	jmp *(GT_STUB_BODY - GT_STUB_RETURN)(%r11)
	.endm

	/* Both behind STUB_CALLED: into the body, which returns to the stub. */
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
