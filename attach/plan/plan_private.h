/* SPDX-License-Identifier: MIT */
/*
 * What the files of the planner share: the plan as it is kept, the work on one function, and what
 * they call of each other.
 */
#ifndef GT_ATTACH_PLAN_PRIVATE_H
#define GT_ATTACH_PLAN_PRIVATE_H

#include "attach/plan/cancels.h"
#include "attach/plan/plan.h"
#include "attach/plan/rules.h"
#include "attach/plan/scan.h"

/* A patch never lies on two pages: they are written one after the other, and whoever writes can be
 * killed in between. */
#define GT_PLAN_PAGE	 4096u
#define GT_JUMP_BYTES	 5
#define GT_SHORT_BYTES	 2
#define GT_ENDBR64	 "\xf3\x0f\x1e\xfa"
#define GT_ENDBR64_BYTES 4

struct gt_plan {
	struct gt_object *object;
	struct gt_scan *scan;
	uint32_t *planned; /* by function: index in entries, NO_ENTRY: not planned yet */
	struct gt_plan_entry *entries;
	uint32_t entry_count;
	uint32_t entry_room;
	struct gt_plan_extra *extras;
	uint32_t extra_count;
	uint32_t extra_room;
	uint64_t *patchable; /* __patchable_function_entries, sorted */
	uint32_t patchable_count;
	uint32_t patchable_room;
	enum gt_plan_reason object_reason; /* holds for all functions */
	bool object_never;		   /* ... and they are left alone altogether */
	struct gt_plan_entry *hooked;	   /* functions that have a hook at their entry */
	uint32_t hooked_count;
	struct gt_rule_scratch scratch;
	struct gt_cancels cancels;
	int prepared; /* -1: not looked yet */
	char *cache;  /* the directory of plans on disk, NULL: none */
	int cache_fd; /* the same, once it is open; -1 */
	uint64_t cache_key[2];
	bool no_memory;
	bool complete;	     /* all functions are planned */
	bool breakpoints;    /* gt_plan_allow_breakpoints() */
	uint64_t resolver;   /* gt_plan_resolver() */
	bool blocks_signals; /* it is the C library, or has it inside */
};

/* One function while it is planned. */
struct gt_plan_work {
	struct gt_plan *plan;
	const struct gt_object_function *function;
	struct gt_plan_entry *entry;
	uint32_t index;
	bool quick;	 /* for a hook: no marks, `reached` instead */
	bool reached;	 /* something leads into the bytes behind the first */
	bool may_borrow; /* padding nearby, and pieces of other functions */
};

#define GT_PLAN_NO_ENTRY  UINT32_MAX
#define GT_PLAN_NEEDS_ALL 1 /* the code has not been looked through: gt_plan_all() */

static inline bool gt_plan_on_one_page(uint64_t address, uint64_t bytes)
{
	return address / GT_PLAN_PAGE == (address + bytes - 1) / GT_PLAN_PAGE;
}

/* plan.c: plans one function. 0, GT_PLAN_NEEDS_ALL or an error. */
int gt_plan_one(struct gt_plan *plan, uint32_t index, bool may_borrow, struct gt_plan_entry *entry,
		struct gt_message *message);
/* ... and keeps it. GT_ENOMEM. */
int gt_plan_keep(struct gt_plan *plan, const struct gt_plan_entry *entry,
		 struct gt_message *message);

/* plan_all.c: plans every function that is not planned yet. */
int gt_plan_all(struct gt_plan *plan, struct gt_message *message);

/* Adds an extra patch to the function's; false: no more, or no memory (plan->no_memory). */
bool gt_plan_add_extra(struct gt_plan_work *work, const struct gt_plan_extra *extra);

/* plan_moved.c: plans a function that no compiler has prepared at its entry, behind endbr64 where
 * that is possible, else on it. Returns why it cannot be (the entry has no way then), or
 * GT_REASON_NONE. */
enum gt_plan_reason gt_plan_find_moved(struct gt_plan_work *work);

/* plan_island.c: five bytes that a short jump reaches which ends at `from`, as an extra patch of
 * the given kind (GT_EXTRA_STUB, or GT_EXTRA_JUMP to `target` in the moved code): padding, or, if
 * the work may borrow, a piece of a function nearby. One for a GT_EXTRA_JUMP is on the page of the
 * short jump, so that both are written at once; one for a GT_EXTRA_STUB is written before. 0: there
 * are none. */
uint64_t gt_plan_take_island(struct gt_plan_work *work, uint64_t from, enum gt_plan_extra_kind kind,
			     uint8_t target);
/* Bytes of padding behind the function `index`. */
uint64_t gt_plan_padding_behind(struct gt_plan *plan, uint32_t index);
/* Whether the instruction at `address` is one that runs: the code of its function is decoded from
 * the function's start, and something leads to it. */
bool gt_plan_is_code(struct gt_plan *plan, uint64_t address);

/* sequences.c: what the kernel restarts stays where it is, with the signatures of its abort handlers.
 * GT_ENOMEM. */
int gt_plan_keep_sequences(struct gt_plan *plan);
/* Whether the kernel leads there, with a signature before it: nobody calls it. */
bool gt_plan_is_abort_handler(struct gt_plan *plan, uint64_t address);

/* plan_probe.c: the code is scanned, and what is on disk, which was planned without places, is
 * forgotten. */
int gt_plan_prepare_places(struct gt_plan *plan, struct gt_message *message);

/* Room for so many entries and extras more; false: no memory. */
bool gt_plan_reserve(struct gt_plan *plan, uint32_t entries, uint32_t extras);

/* plan_breakpoint.c: makes a plan of an entry that has none, if gt_plan_may_break() of its reason.
 * false: it stays without, and entry->reason may tell more. */
bool gt_plan_breakpoint(struct gt_plan *plan, struct gt_plan_entry *entry);
/* Whether the patch of a function that was planned stands on [address, address + bytes). */
bool gt_plan_is_taken(const struct gt_plan *plan, uint64_t address, uint64_t bytes);
/* Whether code of the object runs with signals blocked that nobody else blocks. */
bool gt_plan_blocks_signals(const struct gt_plan *plan);

/* plan_cache.c: fills the plan with what is on disk. false: nothing that is any good. */
bool gt_plan_cache_load(struct gt_plan *plan);
/* Writes a complete plan. Errors do no harm: it is made again the next time. */
void gt_plan_cache_store(struct gt_plan *plan);

#endif
