/* SPDX-License-Identifier: MIT */
/*
 * The changes of one process's code that are ready to be made: all was planned, compared, and what
 * they lead to (stubs, moved code, the journal) stands already. Making them is short, so the
 * process is stopped for little more than the writing.
 *
 * Order, so that a host that is killed in the middle leaves a program that runs: threads leave the
 * bytes first, for code that does the same; patches elsewhere before the jump of their function
 * when it is switched on, after it when off. No patch lies on two pages (plan_private.h), and one
 * page is written at once.
 */
#ifndef GT_ATTACH_EDITS_H
#define GT_ATTACH_EDITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "attach/plan/plan.h"

struct gt_process;

/* One place. A function's jump (`main`) is followed by its patches elsewhere. */
struct gt_edit {
	uint64_t address;
	uint8_t *state; /* becomes new_state when it is made, … */
	uint8_t new_state;
	uint8_t foreign_state; /* … or this, if other bytes are there than were expected */
	bool main;
	bool on;
	bool refused;
	uint8_t extras;	  /* edits behind this one that belong to it */
	uint8_t bytes;	  /* of value */
	uint8_t compared; /* of expected */
	uint8_t value[8];
	uint8_t expected[GT_PLAN_ORIGINAL_MAX];
};

/* A function whose bytes are being replaced: threads inside are moved out. */
struct gt_displaced {
	uint64_t start;
	uint64_t target; /* of offset 0 */
	uint8_t covered;
	bool to_body; /* any offset goes to target itself */
	int16_t offset[GT_PLAN_ORIGINAL_MAX + 1];
};

struct gt_edits {
	struct gt_edit *list;
	size_t count;
	size_t room;
	struct gt_displaced *displaced;
	size_t displaced_count;
	size_t displaced_room;
};

/* The new edit, zeroed, valid until the next call; NULL: no memory. */
struct gt_edit *gt_edits_add(struct gt_edits *edits);
struct gt_displaced *gt_edits_displace(struct gt_edits *edits);
void gt_edits_clear(struct gt_edits *edits);
void gt_edits_fini(struct gt_edits *edits);

/* Drops what lies in [start, end): its edits are refused, and no thread is moved out of there. Call it before
 * gt_edits_sort_displaced(). */
void gt_edits_drop(struct gt_edits *edits, uint64_t start, uint64_t end);

/* Sorts edits->displaced by address. Call it before threads are moved. */
void gt_edits_sort_displaced(struct gt_edits *edits);
/* The entry whose bytes hold `address` (not at their first byte), NULL = none. */
const struct gt_displaced *gt_edits_displaced(const struct gt_edits *edits, uint64_t address);
/* Where a thread that stands at `address` within it goes on. 0: nowhere. */
uint64_t gt_edits_new_place(const struct gt_displaced *displaced, uint64_t address);

/* Compares and writes. Functions whose bytes are not the expected ones are left out. GT_EIO,
 * GT_EGONE, GT_ENOMEM. */
int gt_edits_apply(struct gt_edits *edits, const struct gt_process *process);

#endif
