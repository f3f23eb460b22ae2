/* SPDX-License-Identifier: MIT */
/*
 * V8 finds its frames by the return addresses on its stack, and asks a function of the program's,
 * if one is set, where the real one lies (v8::V8::SetReturnAddressLocationResolver). While its
 * object is traced that function is the agent's.
 */
#ifndef GT_ATTACH_RESOLVER_H
#define GT_ATTACH_RESOLVER_H

#include "attach/process/threads.h"
#include "attach/agent/tracee.h"

/* Sets it; call before the object's first function is patched. Sets object->entry_only if the program has one of its own
 * or it cannot be set: then no return of the object may be taken. GT_EIO, GT_EGONE. */
int gt_resolver_set(struct gt_tracee *tracee, struct gt_tracee_object *object);

/* While detaching, with the world stopped: whether a thread is about to call the agent's function, or seems to be within
 * a walk that holds a place in the mirror. */
bool gt_resolver_in_use(const struct gt_process *process,
			const struct graftrace_agent_image *header, uint64_t image,
			const struct graftrace_agent_state *state,
			const struct gt_stopped_threads *threads);
/* Removes it; no thread may be in it. GT_EIO, GT_EGONE. */
int gt_resolver_reset(const struct gt_process *process, const struct graftrace_agent_image *header,
		      uint64_t image, const struct graftrace_agent_state *state);

#endif
