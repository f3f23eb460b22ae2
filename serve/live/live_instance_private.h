/* SPDX-License-Identifier: MIT */
/* What live_instance.c, live_pull.c, live_detour.c and live_ask.c share. */
#ifndef GT_SERVE_LIVE_INSTANCE_PRIVATE_H
#define GT_SERVE_LIVE_INSTANCE_PRIVATE_H

#include "serve/live/live_instance.h"

#define GT_INSTANCE_NAME_BYTES 64

struct gt_live_instance {
	char name[GT_INSTANCE_NAME_BYTES];
	struct gt_store *store;
	uint32_t who; /* its number as one of the session's askers; 0: none */
	atomic_bool removed;
	atomic_uint users; /* open texts and lists */
	uint64_t since;	   /* clock at which its tracing was switched on */
	/* Clock of the last command that switched tracing; under instances.lock. */
	uint64_t switched;
	bool active;	      /* it records something; under instances.lock */
	uint32_t *threads[2]; /* set_ftrace_pid and set_ftrace_notrace_pid; under the live's lock */
	uint32_t thread_count[2];
};

/* live_pull.c */

/* Under instances.lock, which stays held. Copies records to the top and all instances. Returns an
 * instance with a command to be carried out: until that is done it gets no more, and the ring keeps its
 * records. NULL: none. */
struct gt_live *gt_live_pull_locked(struct gt_live *top);
/* Under instances.lock. Starts the copying thread; if it cannot be started, records are copied
 * when something is read. */
void gt_live_start_pump_locked(struct gt_live *top);
/* Gives `own`, the top's own store, the session's lists of threads. They grow while children are followed, so call it
 * before each pull. Under instances.lock. GT_ENOMEM. */
int gt_live_follow_threads(struct gt_live *top, struct gt_store *own);

/* live_detour.c */

/* Under instances.lock. Begins a detour: copies the ring's records into a store of their own (archive), and makes
 * another one for new records (own). GT_ENOMEM: nothing has changed. */
int gt_live_detour_locked(struct gt_live *top);
/* Returns what the store of the top or of an instance has to keep by those settings. The lists are those of
 * `settings`, without references of their own. Takes view->lock for a moment. */
struct gt_route_want gt_live_want_of(struct gt_live *live,
				     const struct gt_trace_settings *settings);

#endif
