/* SPDX-License-Identifier: MIT */
/*
 * The patching of one object in one process: the tool of those who know what is to be patched (patch.c:
 * functions, patch_hooks.c, probes.c, syscalls.c). Under the session's lock, as all of a tracee.
 *
 * Errors, but where it says more: GT_ENOMEM; those of gt_process_write(); and those of
 * gt_patcher_may_go_on().
 */
#ifndef GT_ATTACH_PATCHER_H
#define GT_ATTACH_PATCHER_H

#include "attach/agent/editor.h"
#include "attach/agent/tracee.h"

struct gt_patcher {
	struct gt_tracee *tracee;
	struct gt_tracee_object *object;
	struct gt_region *region;
	bool running;	       /* threads may be in what is patched: they are led out of it */
	bool jumps;	       /* some stand elsewhere than at functions' starts */
	struct gt_editor code; /* only looked at */
	struct gt_editor stubs;
	struct gt_editor moved;
	struct gt_editor places;
	struct gt_editor journal;
};

/* One jump with its patches elsewhere, as edits. main: index + 1 of its journal entry; extras: of
 * those, see gt_patcher_reserve(). */
struct gt_change {
	const struct gt_plan_entry *entry;
	uint64_t stub;
	uint64_t moved;
	uint32_t main;
	uint32_t *extras;
	bool on;
	uint8_t *state;
	uint8_t new_state;
	uint8_t foreign_state;
	uint8_t before[GT_PLAN_ORIGINAL_MAX]; /* what must be there at the jump's place … */
	uint8_t before_bytes;
	uint8_t after[8]; /* … and what shall be */
};

/* Begins the patching of one object; gt_patcher_finish() frees it. NULL: no memory, with the message. */
struct gt_patcher *gt_patcher_start(struct gt_tracee *tracee, struct gt_tracee_object *object,
				    bool running, struct gt_message *message);
/* Writes stubs, moved code and journal, if `error` is 0, and frees the patcher. The edits are left for gt_edits_apply().
 * Returns `error`, or the error of writing, with the message. */
int gt_patcher_finish(struct gt_patcher *patcher, int error, struct gt_message *message);

/* Whether the process has these bytes at `address`. */
bool gt_patcher_finds(struct gt_patcher *patcher, uint64_t address, const uint8_t *expected,
		      size_t size);
/* The same for all patches elsewhere that belong to the entry. */
bool gt_patcher_finds_extras(struct gt_patcher *patcher, const struct gt_plan_entry *entry);
/* Writes what unwinders find for the 16 bytes at `moved`: which instruction each of them stands for, base + at[i]. */
int gt_patcher_put_places(struct gt_patcher *patcher, uint64_t moved, uint64_t base,
			  const uint8_t at[GRAFTRACE_PLACES_BYTES]);
/* Makes the entry's moved code, at *at (0: takes room for it), and fills in *map with where each instruction went.
 * GT_ENOSPC, GT_ENOTSUP. */
int gt_patcher_move(struct gt_patcher *patcher, const struct gt_plan_entry *entry, uint64_t *at,
		    struct gt_plan_map *map);
/* Notes that threads in the replaced instructions are moved: to the same instruction of the moved code (map), or to
 * `body` (map NULL). No effect if the process does not run. */
int gt_patcher_displace(struct gt_patcher *patcher, const struct gt_plan_entry *entry,
			uint64_t body, const struct gt_plan_map *map);
/* Takes `count` further entries of the journal. *first: the index of the first one + 1; if it is not 0 already, nothing
 * is done. GT_ENOSPC. */
int gt_patcher_reserve(struct gt_patcher *patcher, uint32_t *first, uint32_t count);
/* Notes the change in the journal, and adds all of its edits or none. jump: the bytes that the journal
 * says are there while it is on. */
int gt_patcher_change(struct gt_patcher *patcher, struct gt_change *change, const uint8_t *jump);
/* Whether the error concerns one place only, so that the next one can be patched. */
bool gt_patcher_may_go_on(int error);

#endif
