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

/* Sets it, before the object's first function is patched; object->entry_only: it cannot be (there
 * is another), so its returns must not be touched. GT_EIO, GT_EGONE. */
int gt_resolver_set(struct gt_tracee *tracee, struct gt_tracee_object *object);

/* Detaching, the world stopped. Whether a thread is about to call the agent's, or seems to be in
 * the middle of a walk that was told of a place in the mirror. */
bool gt_resolver_in_use(const struct gt_process *process,
			const struct graftrace_agent_image *header, uint64_t image,
			const struct graftrace_agent_state *state,
			const struct gt_stopped_threads *threads);
/* Takes it out, when nobody is in it. */
int gt_resolver_reset(const struct gt_process *process, const struct graftrace_agent_image *header,
		      uint64_t image, const struct graftrace_agent_state *state);

#endif
