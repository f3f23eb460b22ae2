/* SPDX-License-Identifier: MIT */
/*
 * Reading the clock, for assembly: the time stamp counter in edx:eax; every other register and the
 * flags are kept. A build with -Dbench_constant_clock=true has a clock that stands still instead:
 * what a traced call costs then is all that else hides behind the reads (bench/constant_clock.py).
 */
#ifndef GT_ARCH_X86_64_CLOCK_H
#define GT_ARCH_X86_64_CLOCK_H

/* clang-format off */
	.macro READ_CLOCK
#ifdef GT_BENCH_CONSTANT_CLOCK
	mov $0x40000000, %eax
	mov $0, %edx
#else
	rdtsc
#endif
	.endm
/* clang-format on */

#endif
