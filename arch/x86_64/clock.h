/* SPDX-License-Identifier: MIT */
/*
 * Reading the clock, for assembly: the time stamp counter in edx:eax; every other register is
 * kept. Where a kernel's CPUs have clocks that are apart, what the CPU's has to be moved by is
 * added (hot_apart.S). A build with -Dbench_constant_clock=true has a clock that stands still
 * instead: what a traced call costs then is all that else hides behind the reads
 * (bench/constant_clock.py).
 */
#ifndef GT_ARCH_X86_64_CLOCK_H
#define GT_ARCH_X86_64_CLOCK_H

#include "core/record/layout.h"

/* clang-format off */
	.macro READ_CLOCK
#ifdef GT_BENCH_CONSTANT_CLOCK
	mov $0x40000000, %eax
	mov $0, %edx
#else
	rdtsc
#ifdef GT_CLOCKS_APART
	add %gs:GT_KERNEL_CLOCK_ADD, %eax
	adc %gs:GT_KERNEL_CLOCK_ADD + 4, %edx
#endif
#endif
	.endm
/* clang-format on */

#endif
