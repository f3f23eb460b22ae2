/* SPDX-License-Identifier: MIT */
/*
 * What the parts of detaching share: detach.c (rounds, code), detach_slots.c (return slots),
 * detach_inside.c (who is inside), detach_out.c (unmapping). All of it while the world is stopped.
 */
#ifndef GT_ATTACH_DETACH_PRIVATE_H
#define GT_ATTACH_DETACH_PRIVATE_H

#include <graftrace/agent.h>
#include <graftrace/arena.h>
#include "attach/detach.h"
#include "attach/threads.h"

#define GT_DETACH_PAGE	  4096ull
#define GT_DETACH_GRANULE (1ull << GRAFTRACE_GRANULE_SHIFT)
#define GT_DETACH_MIRROR  (1ull << GRAFTRACE_MIRROR_BIT)
#define GT_DETACH_HIGHEST (1ull << 47)
#define GT_DETACH_ARENA	  "/memfd:graftrace"
/* Hooks by which unwinders find the stubs' unwind data, in one process. */
#define GT_DETACH_LOOKUPS 32

/* A thread, as the rounds have seen it since the code got its bytes back. */
struct gt_seen_thread {
	pid_t tid;
	bool left;	  /* stood outside our code once: it never takes a return slot again */
	bool clean;	  /* … and then held no address of ours: it never gets one again */
	bool interrupted; /* in an unwinder, by a signal whose handler runs (this round) */
	bool new;	  /* not asked for its time yet */
	uint64_t ticks;	  /* CPU time (clock ticks) when it was first seen to hold one */
};

struct gt_detach {
	struct gt_process *process;
	struct gt_tracee *tracee; /* NULL: not known to this host */
	uint64_t image;
	struct graftrace_agent_image header;
	struct graftrace_agent_state state;
	uint64_t call_returns[GRAFTRACE_AGENT_REGIONS];
	struct gt_maps maps;		    /* of this round, while it is looked who is inside */
	struct graftrace_granule *granules; /* of this round, by address */
	size_t granule_count;
	/* Patches that stay until no unwinder needs them. */
	uint64_t lookups[GT_DETACH_LOOKUPS];
	uint32_t lookup_count;
	bool lookups_gone;
	struct gt_seen_thread *threads;
	size_t thread_count;
	size_t thread_room;
	uint32_t walks; /* rounds that a walk of V8's was waited for */
	bool quiet;	/* all threads have left: nobody will take a slot any more */
	bool foreign;	/* someone else wrote over a patch */
	bool inside;	/* someone stands in our code */
};

bool gt_detach_in_region(const struct gt_detach *out, uint64_t address);
bool gt_detach_is_stub_return(const struct gt_detach *out, uint64_t address);

/* detach_slots.c: reads the granules that have a mirror; the stack of one; puts return slots back.
 */
int gt_detach_read_granules(struct gt_detach *out);
uint64_t gt_detach_stack_of(const struct graftrace_granule *granule);
int gt_detach_put_back_slots(struct gt_detach *out);

/* detach_inside.c: moves threads out of moved code, and sets `inside` and `quiet`. *clean: no
 * thread holds an address of ours, or will. */
int gt_detach_look_inside(struct gt_detach *out, const struct gt_stopped_threads *threads,
			  bool *clean);

/* detach_out.c: unmaps everything. */
int gt_detach_unmap(struct gt_detach *out, const struct gt_stopped_threads *threads,
		    struct gt_message *message);

#endif
