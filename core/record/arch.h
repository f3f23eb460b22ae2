/* SPDX-License-Identifier: MIT */
/* What the recorder needs of the processor. Bound at link time: arch/<name>/. Any context. */
#ifndef GT_CORE_RECORD_ARCH_H
#define GT_CORE_RECORD_ARCH_H

#include <stdint.h>

/* The time stamp counter: monotonic in a thread, at least 32 bits worth of seconds. x86: rdtsc. */
uint64_t gt_arch_clock(void);

/* Zeroes words, fast. x86: rep stosq. */
void gt_arch_clear_words(uint64_t *words, uint64_t count);

#endif
