/* SPDX-License-Identifier: MIT */
/*
 * The patch plan: for each function of an object whether and how it can be traced, decided from the
 * object's bytes alone, and the bytes that have to be written, for any addresses.
 *
 * How a function is taken (numbers: patch_address etc. are the object's addresses, add the bias):
 *	1. write gt_plan_move() (only if entry.moved_bytes_max > 0) somewhere within 2 GB
 *	2. make the stub; its body is entry.body + bias, or the moved code's address if entry.body is 0
 *	3. write the 5 bytes of gt_plan_jump() at entry.patch_address (for a GT_PLAN_SHORT one: its
 *	   extra patches first, then 2 bytes; for a GT_PLAN_BREAKPOINT one: tell the agent first, then
 *	   1 byte)
 *	4. write the extra patches (gt_plan_extra_bytes()), if there are any
 * Extra patches may stand in the middle of other functions.
 * To undo: write entry.original (patch_bytes of it) and each extra's original back. Before each
 * write compare with what must be there. A thread whose instruction pointer lies at patch_address +
 * o with 0 < o < covered_bytes is moved to moved code + map.offset[o] (GT_PLAN_MOVED, _PADDING,
 * _SHORT), or to the body (_NOPS, _FENTRY). And back the same way. At o == 0 it may stay.
 */
#ifndef GT_ATTACH_PLAN_H
#define GT_ATTACH_PLAN_H

#include "attach/object/object.h"
#include "attach/plan/reasons.h"

enum gt_plan_way {
	GT_PLAN_NONE = 0,   /* cannot be traced: entry.reason says why */
	GT_PLAN_NOPS = 1,   /* the compiler left 5 bytes of nops */
	GT_PLAN_FENTRY = 2, /* the compiler's call of __fentry__ is replaced */
	GT_PLAN_MOVED = 3,  /* its first instructions are moved out of line */
	GT_PLAN_PADDING =
		4, /* the same for one shorter than 5 bytes: the padding behind it is used too */
	GT_PLAN_SHORT = 5, /* a 2-byte jump to 5 bytes of padding nearby, which hold the jump */
	GT_PLAN_BREAKPOINT =
		6, /* int3: the agent's handler leads to the stub (gt_plan_allow_breakpoints()) */
};

/* What the compiler did to the function for tracers. */
enum gt_plan_prepared {
	GT_PREPARED_NONE = 0,
	GT_PREPARED_PATCHABLE = 1, /* -fpatchable-function-entry, -mnop-mcount */
	GT_PREPARED_FENTRY = 2,	   /* -pg -mfentry */
	GT_PREPARED_MCOUNT = 3,	   /* -pg: a call of mcount behind the prologue */
	GT_PREPARED_CYG = 4,	   /* -finstrument-functions */
};

#define GT_PLAN_ORIGINAL_MAX 24	 /* 4 bytes and the longest instruction, rounded up */
#define GT_PLAN_MOVED_MAX    255 /* moved code of one function, at most */
#define GT_PLAN_BLOCKS_MAX   2	 /* pieces of other functions that one function may borrow */

struct gt_plan_entry {
	uint32_t function;	 /* index in the object */
	uint8_t way;		 /* enum gt_plan_way */
	uint8_t prepared;	 /* enum gt_plan_prepared */
	uint8_t reason;		 /* enum gt_plan_reason: why not at all, or why entry-only */
	bool entry_only;	 /* may be traced, but only its entries: reason says why */
	uint8_t patch_bytes;	 /* bytes that are written at patch_address: 5, 2 (GT_PLAN_SHORT) or
				  * 1 (GT_PLAN_BREAKPOINT) */
	uint8_t covered_bytes;	 /* whole instructions (and padding) that the patch stands on, from
				  * patch_address: <= GT_PLAN_ORIGINAL_MAX; original[] has them all */
	uint8_t moved_bytes_max; /* room for gt_plan_move(), 0: nothing is moved */
	uint8_t extra_count; /* further patches: gt_plan_extra(plan, entry, 0 … extra_count - 1) */
	uint8_t neutral; /* offset + 1 of a call among the moved instructions that is left out, 0:
			    none */
	uint8_t syscall; /* offset + 1 of a system call among them that stubs stand around
			    (gt_plan_syscalls()), 0: none */
	uint32_t extra_first;
	uint64_t address;	/* the function's */
	uint64_t patch_address; /* behind endbr64, where there is one */
	uint64_t body; /* where the function goes on (GT_PLAN_NOPS, _FENTRY), 0: the moved code */
	uint8_t original[GT_PLAN_ORIGINAL_MAX];
};

/* A patch elsewhere that the function needs. */
enum gt_plan_extra_kind {
	GT_EXTRA_BYTES = 0,  /* fixed bytes: a call of mcount or __cyg_profile_* becomes nops, a
			      * short jump leads to another place */
	GT_EXTRA_BRANCH = 1, /* the last 4 bytes are a branch's displacement: to the moved code */
	GT_EXTRA_JUMP = 2,   /* padding becomes `jmp` to the moved code */
	GT_EXTRA_STUB = 3,   /* padding becomes `jmp` to the stub (GT_PLAN_SHORT) */
	/* Five of ten bytes or more from the middle of a function become `jmp` to the copy of its
	 * instructions behind the moved code; five others become free for another extra patch. A
	 * thread in these bytes has to be moved, as one at the entry: see map.block. */
	GT_EXTRA_BLOCK = 4,
};

struct gt_plan_extra {
	uint64_t address;	/* the object's */
	uint8_t kind;		/* enum gt_plan_extra_kind */
	uint8_t bytes;		/* that are written, <= 8 */
	uint8_t covered;	/* GT_EXTRA_BLOCK: whole instructions in original; 0 otherwise */
	uint8_t target;		/* where in the moved code _BRANCH, _JUMP and _BLOCK lead */
	uint8_t replacement[8]; /* for GT_EXTRA_BYTES, and the unchanging part of the others */
	uint8_t original[GT_PLAN_ORIGINAL_MAX];
};

struct gt_plan;

/* object must outlive the plan. Cheap: code is scanned when the first function needs it. */
int gt_plan_create(struct gt_object *object, struct gt_plan **plan, struct gt_message *message);
void gt_plan_destroy(struct gt_plan *plan);

/* Keeps the plan of a large object on disk, in this directory, or, if it is NULL, in
 * $XDG_CACHE_HOME/graftrace/plans (else below $HOME/.cache). To be called before the first function
 * is planned; hooks may be. Without a directory, or with one that cannot be used, plans are made
 * each time. */
void gt_plan_use_cache(struct gt_plan *plan, const char *directory);
/* That directory's name. GT_ENOENT: neither variable is set. */
int gt_plan_cache_directory(char *path, size_t size);

/* Address of V8's word for its resolver of return addresses (attach/agent/resolver.h): while it
 * leads to the agent the object's functions may be traced as all others; else at their entries
 * only. 0: there is none. */
uint64_t gt_plan_resolver(const struct gt_plan *plan);

/* From now on functions that no jump fits in are planned as GT_PLAN_BREAKPOINT, and gt_hooks_find()
 * knows what the agent must see for that. To be called before anything is planned. */
void gt_plan_allow_breakpoints(struct gt_plan *plan);
bool gt_plan_has_breakpoints(const struct gt_plan *plan);

/* Plans the function `index` of the object. 0 (entry->way may be GT_PLAN_NONE) or an error:
 * GT_ENOMEM, GT_EFORMAT (the object's code cannot be read), GT_EINVAL (no such function). A
 * prepared function costs microseconds; the first unprepared one costs a scan of the object's code
 * (15 ms a megabyte). */
int gt_plan_function(struct gt_plan *plan, uint32_t index, struct gt_plan_entry *entry,
		     struct gt_message *message);

/* Whether the function asks who called it: it uses its return address, or leads to one that does. Reads its
 * code alone, nothing is planned. */
bool gt_plan_asks_caller(struct gt_plan *plan, uint32_t index);
/* Whether the function is the C library's clone(), by the instructions of glibc and musl: for static programs
 * without names. */
bool gt_plan_is_clone(struct gt_plan *plan, uint32_t index);
/* Whether a jump through a pointer, as tail calls are, is among its instructions. */
bool gt_plan_jumps_on(struct gt_plan *plan, uint32_t index);

/* As gt_plan_function() for a few functions that the agent itself wants to see (attach/plan/hooks.h): no rule of
 * what should not be traced holds, and only what could branch into these bytes is looked for, which
 * takes about a millisecond a megabyte of code for all of them together. entries: count of them.
 * gt_plan_function leaves those that can be hooked alone from then on. */
int gt_plan_hooks(struct gt_plan *plan, const uint64_t *addresses, uint32_t count,
		  struct gt_plan_entry *entries, struct gt_message *message);

/* The same for probes: nops in the middle of functions, at these addresses. What an entry has of a
 * function means nothing. Functions that are planned later leave their bytes alone; those that were
 * planned before keep theirs. entries: count of them. The first call costs a scan of the object's
 * code. GT_ENOMEM, GT_EFORMAT. */
int gt_plan_probes(struct gt_plan *plan, const uint64_t *addresses, uint32_t count,
		   struct gt_plan_entry *entries, struct gt_message *message);

/* The same for one instruction anywhere in a function, whatever it is. GT_REASON_NO_INSTRUCTIONS: none
 * begins there. Other functions than that one's entry may be planned before. */
int gt_plan_place(struct gt_plan *plan, uint64_t address, struct gt_plan_entry *entry,
		  struct gt_message *message);

/*
 * Finds and plans all `syscall` instructions of the object's functions; those that are left alone have a
 * reason. The caller frees *entries. Their moved code is made for a place GRAFTRACE_CALL_BYTES behind the
 * stubs (graftrace/agent.h). As for gt_plan_probes(), functions that are planned later leave their
 * bytes alone. Nothing is scanned where no function has any. GT_ENOMEM, GT_EFORMAT.
 */
int gt_plan_syscalls(struct gt_plan *plan, struct gt_plan_entry **entries, uint32_t *count,
		     struct gt_message *message);

/* Whether the compiler has prepared the object, or part of it, for tracing. */
bool gt_plan_is_prepared(struct gt_plan *plan);
/* False: the compiler has surely not prepared this function. Cheap: nothing is scanned, so whoever
 * wants only prepared functions need not plan the others. */
bool gt_plan_may_be_prepared(struct gt_plan *plan, uint32_t index);

const struct gt_plan_extra *gt_plan_extra(const struct gt_plan *plan,
					  const struct gt_plan_entry *entry, uint32_t index);

/* The bytes for entry.patch_address: entry->patch_bytes of them into out (at least 5).
 * patch_address, stub: run-time addresses. GT_ENOTSUP: too far apart. */
int gt_plan_jump(const struct gt_plan *plan, const struct gt_plan_entry *entry, uint64_t bias,
		 uint64_t stub, uint8_t *out);

/* The bytes of one extra patch, extra->bytes of them into out (at least 8). stub, moved:
 * run-time addresses of the function's stub and moved code. GT_ENOTSUP: too far apart. */
int gt_plan_extra_bytes(const struct gt_plan_extra *extra, uint64_t bias, uint64_t stub,
			uint64_t moved, uint8_t *out);

/* Where the instruction at original offset o (from the first byte of what was moved) stands in the
 * moved code; -1: no instruction starts there. offset[bytes] is the jump back (or the end). */
struct gt_plan_block_map {
	uint64_t address; /* the object's, of the GT_EXTRA_BLOCK */
	uint8_t covered;
	int16_t offset[GT_PLAN_ORIGINAL_MAX + 1];
};

struct gt_plan_map {
	int16_t offset[GT_PLAN_ORIGINAL_MAX + 1]; /* of the entry, from patch_address */
	uint16_t bytes;				  /* of the moved code, blocks too */
	uint8_t block_count;
	struct gt_plan_block_map block[GT_PLAN_BLOCKS_MAX];
};

/*
 * Emits the moved code of an entry: its covered instructions, made right for their new place, then
 * the jump back, then the same for each block that it borrows. bias: what is to be added to the
 * object's addresses; moved: where the result will stand. out: size bytes, moved_bytes_max is
 * enough. map may be NULL. Returns the number of bytes, which is the same for every place;
 * GT_ENOTSUP: something is more than 2 GB away; GT_EINVAL: size too small, or nothing of this entry
 * is moved. A moved call pushes the original return address.
 */
int gt_plan_move(const struct gt_plan *plan, const struct gt_plan_entry *entry, uint64_t bias,
		 uint64_t moved, uint8_t *out, size_t size, struct gt_plan_map *map);

const char *gt_plan_way_name(enum gt_plan_way way);
const char *gt_plan_prepared_name(enum gt_plan_prepared prepared);

#endif
