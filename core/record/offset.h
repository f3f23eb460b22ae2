/* SPDX-License-Identifier: MIT */
/*
 * How far the clocks of two CPUs are apart, measured by questions and answers between them at boot.
 * Arithmetic only: the kernel asks and answers (doc/porting.md).
 *
 *	here      a -----------------> b        a, b: this CPU's clock before and after
 *	there          r                        r: the other's, read somewhere between
 *
 * r - (a + b) / 2 is the offset, wrong by at most (b - a) / 2: the shortest round trip knows best.
 */
#ifndef GT_CORE_RECORD_OFFSET_H
#define GT_CORE_RECORD_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

struct gt_offset {
	int64_t ticks;	/* the other CPU's clock less this one's */
	uint64_t error; /* it is wrong by at most this; ~0: nothing was measured */
};

static inline void gt_offset_init(struct gt_offset *offset)
{
	offset->ticks = 0;
	offset->error = ~0ull;
}

/* A round trip. One whose answer came before its question (a clock that stands, a CPU that moved)
 * is none. */
void gt_offset_sample(struct gt_offset *offset, uint64_t before, uint64_t remote, uint64_t after);

/* Whether it is worth applying: more than its own error. Less is noise, and clocks that agree are
 * left as they are. */
bool gt_offset_applies(const struct gt_offset *offset);

/* A clock of the other CPU as this one would have read it; also what is added to that CPU's clock, to make it so. */
uint64_t gt_offset_apply(const struct gt_offset *offset, uint64_t remote);

#endif
