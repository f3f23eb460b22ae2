/* SPDX-License-Identifier: MIT */
/*
 * Putting the agent into a stopped process: its image, the arena, regions. All by system calls made
 * in the name of one of its threads (struct gt_remote) and by writing its memory; the process's own
 * loader and libraries are not involved, so it works before they have run and without them.
 */
#ifndef GT_ATTACH_INJECT_H
#define GT_ATTACH_INJECT_H

#include <stddef.h>
#include <stdint.h>
#include <graftrace/agent.h>
#include "attach/ring/arena.h"
#include "attach/process/process.h"
#include "attach/agent/region.h"
#include "attach/process/threads.h"

/* Run-time addresses; end 0: none. */
struct gt_unwinder_code {
	uint64_t start;
	uint64_t end;
};

/* The agent in one process. */
struct gt_agent {
	struct graftrace_agent_image header; /* of the image */
	uint64_t image;			     /* its address there */
	uint64_t arena;
	uint32_t region_count;
	uint32_t hook_count;
	uint32_t constant_count;
	bool suspends; /* these two as the state has them */
	uint64_t told; /* address of the struct graftrace_told; 0: none */
	struct gt_unwinder_code unwinders[GRAFTRACE_AGENT_UNWINDERS];
	struct gt_region regions[GRAFTRACE_AGENT_REGIONS];
};

/* The image that is built in. GT_EFORMAT: it is not one that this host knows. */
int gt_agent_header(struct graftrace_agent_image *header, struct gt_message *message);
/* Sets a uint32_t of the agent's state, at that offset in struct graftrace_agent_state, to 1. image: the agent's address in
 * the process. GT_EIO, GT_EGONE. */
int gt_agent_set_flag(const struct gt_process *process, uint64_t image,
		      const struct graftrace_agent_image *header, size_t offset);

/*
 * Maps the image and the arena, fills the agent's state and points the thread's gs_base to its null
 * block (threads to come inherit it). The thread is at its exec stop. GT_ENOMEM: an address space
 * limit (ulimit -v) leaves no room; GT_ENOTSUP: the process cannot be given the arena (the message
 * says why).
 */
int gt_inject_agent(struct gt_remote *remote, const struct gt_arena *arena, uint64_t tsc_per_ms,
		    struct gt_agent *agent, struct gt_message *message);

/* Maps what processes write of another arena, and its answers, over those of the agent's. The only thread stands
 * outside of the agent. GT_ENOTSUP, GT_ENOMEM, GT_EIO, GT_EGONE. */
int gt_inject_other(struct gt_remote *remote, const struct gt_arena *arena,
		    const struct gt_agent *agent, struct gt_message *message);

/* Makes a region within reach of [low, high) and tells the agent.
 * GT_ENOSPC: no gap, or no more regions. */
int gt_inject_region(struct gt_remote *remote, struct gt_agent *agent, uint64_t low, uint64_t high,
		     uint32_t stub_room, uint64_t moved_bytes, uint32_t first_number,
		     struct gt_region **region, struct gt_message *message);

/* Notes in the agent's state that contexts may be suspended (attach/agent/suspended.h). GT_EIO, GT_EGONE. */
int gt_inject_suspends(const struct gt_process *process, struct gt_agent *agent);

/* Notes in the agent's state which code is an unwinder's (graftrace_agent_state.unwinders). GT_EIO, GT_EGONE. */
int gt_inject_unwinders(const struct gt_process *process, struct gt_agent *agent,
			const struct gt_unwinder_code unwinders[GRAFTRACE_AGENT_UNWINDERS]);

/* Tells the agent of read-only memory that stays (graftrace_agent_state.constants). Without room it does
 * not know. */
int gt_inject_constant(const struct gt_process *process, struct gt_agent *agent, uint64_t start,
		       uint64_t end);

/* Adds a hook site: written whole before the count. Returns its index, or GT_ENOSPC. */
int gt_inject_hook(const struct gt_process *process, struct gt_agent *agent,
		   const struct graftrace_hook_site *site);

/* Changes one. */
int gt_inject_set_hook(const struct gt_process *process, const struct gt_agent *agent,
		       uint32_t index, const struct graftrace_hook_site *site);

#endif
