/* SPDX-License-Identifier: MIT */
/*
 * The recording path once more, for a kernel whose CPUs' clocks were found to be apart: each reading
 * adds what its CPU's clock has to be moved by (%gs:GT_KERNEL_CLOCK_ADD). Stubs lead here once
 * gt_arch_clocks_apart was called; until then nobody pays for it.
 */
#define GT_CLOCKS_APART
#define gt_hot_start	     gt_apart_start
#define gt_hot_end	     gt_apart_end
#define gt_hot_entry	     gt_apart_entry
#define gt_hot_entry_root    gt_apart_entry_root
#define gt_hot_entry_only    gt_apart_entry_only
#define gt_hot_entry_notrace gt_apart_entry_notrace
#define gt_hot_entry_trigger gt_apart_entry_trigger
#define gt_hot_entry_silent  gt_apart_entry_silent
#define gt_hot_exit	     gt_apart_exit
#include "arch/x86_64/hot.S"
