/* SPDX-License-Identifier: MIT */
/*
 * The functions of kernel.h as functions: what a kernel calls that includes core/record/arch.h only.
 * The build includes kernel.h before this file, as before each of the recorder's.
 */
#include "core/record/arch.h"

extern inline uint64_t gt_arch_clock(void);
extern inline struct gt_thread *gt_arch_block(void);
extern inline uint64_t gt_arch_interrupts_off(void);
extern inline void gt_arch_interrupts_restore(uint64_t saved);
extern inline bool gt_arch_interrupts_were_on(uint64_t saved);
