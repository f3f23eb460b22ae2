/* SPDX-License-Identifier: MIT */
/*
 * What the recorder of a kernel needs of the processor beside the recording path: the clock,
 * the CPU's block and the interrupt flag (core/record/arch.h). With GT_UNPRIVILEGED (the recorder's
 * own test, in a process) the flag is left alone: there gt_thread.busy alone holds interrupts back.
 * The recorder has these functions inline; kernel_functions.c has them for everybody else.
 */
#ifndef GT_ARCH_X86_64_KERNEL_H
#define GT_ARCH_X86_64_KERNEL_H

#define GT_ARCH_INLINE /* arch.h need not declare them */

#ifndef __ASSEMBLER__ /* builds include this before each of their sources */
#include <stdbool.h>
#include <stdint.h>
#include "core/record/layout.h"

struct gt_thread;

/* Clocks were found to be apart (gt_arch_clocks_apart). */
extern uint8_t gt_arch_is_apart __attribute__((visibility("hidden")));

/* As READ_CLOCK of clock.h. */
inline uint64_t gt_arch_clock(void)
{
#ifdef GT_BENCH_CONSTANT_CLOCK
	uint64_t clock = 0x40000000;
#else
	uint64_t clock = __builtin_ia32_rdtsc();
#endif
	if (gt_arch_is_apart) {
		uint64_t add;
		__asm__ volatile("mov %%gs:%c1, %0" : "=r"(add) : "i"(GT_KERNEL_CLOCK_ADD));
		clock += add;
	}
	return clock;
}

/* The block is at %gs:0 and knows its own address once its CPU has started. */
inline struct gt_thread *gt_arch_block(void)
{
	struct gt_thread *block;
	__asm__ volatile("mov %%gs:%c1, %0" : "=r"(block) : "i"(GT_THREAD_SELF) : "memory");
	return block;
}

inline uint64_t gt_arch_interrupts_off(void)
{
	uint64_t flags = 0;
#ifndef GT_UNPRIVILEGED
	__asm__ volatile("pushf; pop %0; cli" : "=r"(flags)::"memory");
#endif
	return flags;
}

inline bool gt_arch_interrupts_were_on(uint64_t saved)
{
	return saved >> 9 & 1;
}

inline void gt_arch_interrupts_restore(uint64_t saved)
{
	if (gt_arch_interrupts_were_on(saved))
		__asm__ volatile("sti" ::: "memory");
}

#endif

#endif
