/* SPDX-License-Identifier: MIT */
/*
 * What the parts of detaching share: detach.c (rounds, code), detach_jumps.c (islands), detach_slots.c (return slots),
 * detach_unwinders.c and detach_exceptions.c (exceptions under way), detach_inside.c (who is inside), detach_places.c
 * (where moved code belongs), detach_out.c (unmapping). All of it while the world is stopped.
 */
#ifndef GT_ATTACH_DETACH_PRIVATE_H
#define GT_ATTACH_DETACH_PRIVATE_H

#include <graftrace/agent.h>
#include <graftrace/arena.h>
#include "attach/agent/detach.h"
#include "attach/agent/suspended.h"
#include "attach/process/threads.h"

#define GT_DETACH_PAGE	    4096ull
#define GT_DETACH_GRANULE   (1ull << GRAFTRACE_GRANULE_SHIFT)
#define GT_DETACH_MIRROR    (1ull << GRAFTRACE_MIRROR_BIT) /* of a granule */
#define GT_DETACH_HIGHEST   (1ull << 47)
#define GT_DETACH_ARENA	    "/memfd:graftrace (deleted)"
#define GT_DETACH_UNWINDERS (GRAFTRACE_AGENT_UNWINDERS + 8)
/* So much of a stack is looked at, from the red zone on (compilers use 128 bytes). */
#define GT_DETACH_RED_ZONE    128u
#define GT_DETACH_STACK_WORDS ((65536u + GT_DETACH_RED_ZONE) / 8)
/* An address of ours this near to a return address into an unwinder is in its frames. */
#define GT_DETACH_NEAR_WORDS 256u
/* The general registers of user_regs_struct, which it begins with: r15 … rdi. */
#define GT_DETACH_GENERAL 15
/* Hooks by which unwinders find the stubs' unwind data, in one process. */
#define GT_DETACH_LOOKUPS 32

/* A thread, as the rounds have seen it since the code got its bytes back. */
struct gt_seen_thread {
	pid_t tid;
	bool left;	  /* stood outside our code once: it never takes a return slot again */
	bool clean;	  /* … and then held no address of ours: it never gets one again */
	bool interrupted; /* in an unwinder, by a signal whose handler runs (this round) */
	bool past_walks;  /* stood outside since no call is led to the hook of walks any more */
	bool new;	  /* not asked for its time yet */
	uint64_t ticks;	  /* CPU time (clock ticks) when it was first seen to hold one */
};

struct gt_addresses {
	uint64_t *at;
	size_t count;
	size_t room;
};

/* At the end; GT_ENOMEM. */
int gt_addresses_add(struct gt_addresses *list, uint64_t address);
void gt_addresses_sort(struct gt_addresses *list);
/* Whether the address is in a sorted list. */
bool gt_addresses_have(const struct gt_addresses *list, uint64_t address);

struct gt_detach {
	struct gt_process *process;
	struct gt_tracee *tracee; /* NULL: not known to this host */
	uint64_t image;
	struct graftrace_agent_image header;
	struct graftrace_agent_state state;
	/* The functions' stubs of each region. */
	struct {
		uint64_t start;
		uint64_t bytes;
	} stubs[GRAFTRACE_AGENT_REGIONS];
	struct gt_maps maps; /* of this round */
	/* This round's unwinders: those that are linked into the program first. */
	struct {
		uint64_t start;
		uint64_t end;
	} unwinders[GT_DETACH_UNWINDERS];
	uint32_t unwinder_count;
	struct gt_addresses left;	    /* slots that stay in this round, sorted */
	struct gt_addresses restored;	    /* that came back in this round */
	struct graftrace_granule *granules; /* of this round, by address */
	size_t granule_count;
	/* Patches that stay until no unwinder needs them. */
	uint64_t lookups[GT_DETACH_LOOKUPS];
	uint32_t lookup_count;
	bool lookups_gone;
	bool walks_gone; /* the hook by which walks do not tell of our frames, before those */
	bool calls_gone; /* of those the one that calls the program, before the others */
	bool walking;	 /* someone is in that hook, or may be */
	struct gt_seen_thread *threads;
	size_t thread_count;
	size_t thread_room;
	uint32_t rounds;  /* begun */
	uint64_t stop_ns; /* how long the last one's stop was */
	uint32_t walks;	  /* rounds that a walk of V8's was waited for */
	bool quiet;	  /* all threads have left: nobody will take a slot any more */
	bool foreign;	  /* someone else wrote over a patch */
	bool breakpoint;  /* … int3, over its first byte */
	bool elsewhere;	  /* a thread was seen on a stack that is not its own: coroutines */
	bool inside;	  /* someone stands in our code */
	bool outside;	  /* all threads were seen outside of it in the same round */
	bool looked;	  /* … after which `places` were looked for */
	bool clean;	  /* this round's: no thread holds an address of ours, or will */
	bool runs;	  /* the process has run between two rounds */
	/* Where contexts that no thread runs may be saved. */
	struct gt_suspended_places places;
};

/* Whether an address is in a region or the image. */
bool gt_detach_is_ours(const struct gt_detach *out, uint64_t address);
bool gt_detach_in_region(const struct gt_detach *out, uint64_t address);
/* Reads header and state of the agent at out->image, and finds its stubs. GT_EFORMAT: none that can be read. */
int gt_detach_read_agent(struct gt_detach *out, struct gt_message *message);
/* Whether it is where a function returns to in its stub, of those. Else what lies in a region is not told by its number:
 * an unwinder has addresses of unwind data (page 0) on its stack. */
bool gt_detach_is_stub_return(const struct gt_detach *out, uint64_t address);

/* Page 0 of region `index`. False: there is none, or its journal does not lie in it. */
bool gt_detach_region(const struct gt_detach *out, uint32_t index, struct graftrace_region *page);

/* Calls each(data, patch) for the patches [first, end) of a region's journal, until one gives an error, which is returned;
 * GT_ENOMEM, GT_EIO, GT_EGONE. */
int gt_detach_each_patch(const struct gt_detach *out, uint64_t journal, uint32_t first,
			 uint32_t end, int (*each)(void *data, const struct graftrace_patch *patch),
			 void *data);

/* detach_jumps.c: threads leave the jumps in the midst of the program's code, before that gets its bytes
 * back; so do contexts in out->places. Whether there are any (true also in doubt). */
bool gt_detach_has_jumps(const struct gt_detach *out);
int gt_detach_leave_jumps(struct gt_detach *out, const struct gt_stopped_threads *threads);

/* detach_slots.c: reads the granules that have a mirror; the stack of one; puts return slots back.
 */
int gt_detach_read_granules(struct gt_detach *out);
uint64_t gt_detach_stack_of(const struct graftrace_granule *granule);
int gt_detach_put_back_slots(struct gt_detach *out);

/* detach_unwinders.c: which code is an unwinder's (in out->maps), and whether an address is in it.
 */
/* A thread in a system call is in no unwinder, and has only old words on its stack: but for a call
 * of ours (a traced function of the unwinder's is being recorded), and a short one of its own, as a
 * lock's, which is over some rounds later. */
bool gt_detach_only_waits(const struct gt_detach *out, const struct user_regs_struct *registers);
void gt_detach_find_unwinders(struct gt_detach *out);
bool gt_detach_is_unwinder(const struct gt_detach *out, uint64_t address);
/* near[i]: words[i], of a stack from the stack pointer on, stands near a return address into an unwinder; the first
 * ones also if the thread is in one. Whether any does. */
bool gt_detach_mark_near(const struct gt_detach *out, const struct user_regs_struct *registers,
			 const uint64_t *words, size_t count, bool *near);
/* Before the slots: which of them stay for now. Then gt_detach_leaves() says so of each. */
int gt_detach_look_at_unwinders(struct gt_detach *out, const struct gt_stopped_threads *threads);
bool gt_detach_leaves(const struct gt_detach *out, uint64_t slot);

/* detach_exceptions.c: of a slot that came back it is noted; all that did are told to the exceptions that are under
 * way. GT_ENOMEM, GT_EIO, GT_EGONE. */
int gt_detach_note_restored(struct gt_detach *out, uint64_t slot);
int gt_detach_fix_exceptions(struct gt_detach *out, const struct gt_stopped_threads *threads);

/* detach_inside.c: whether a place of a stack has a mirror; a thread's stack from the red zone on:
 * how many words, and *at: where the first stands. */
bool gt_detach_has_mirror(const struct gt_detach *out, uint64_t address);
size_t gt_detach_read_stack(const struct gt_detach *out, const struct user_regs_struct *registers,
			    uint64_t words[GT_DETACH_STACK_WORDS], uint64_t *at);
/* Moves threads out of moved code, and sets `inside`, `quiet` and `clean`. */
int gt_detach_look_inside(struct gt_detach *out, const struct gt_stopped_threads *threads);

/* detach_places.c: where a thread that stands at or behind a `syscall` instruction of moved code goes
 * on, told by the region alone; 0: nowhere, or it stands at another instruction. With out->maps. */
uint64_t gt_detach_place_of_call(const struct gt_detach *out, uint64_t address);

/* detach_out.c: unmaps everything. */
int gt_detach_unmap(struct gt_detach *out, const struct gt_stopped_threads *threads,
		    struct gt_message *message);

#endif
