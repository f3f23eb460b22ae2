/* SPDX-License-Identifier: MIT */
/*
 * The target of a running session (core/trace/target.h), over its arenas. It reads while writers write, and never
 * gives a torn copy. Its operations may be called from any thread without the session's lock: each takes it.
 */
#ifndef GT_ATTACH_LIVE_TARGET_H
#define GT_ATTACH_LIVE_TARGET_H

#include <pthread.h>
#include "attach/agent/catalog.h"
#include "attach/ring/drain.h"
#include "attach/ring/off_cpu.h"

struct gt_live_place {
	uint32_t drain;
	uint32_t writer;
};

struct gt_live_target {
	struct gt_target target;
	pthread_mutex_t *lock;
	/* Of all arenas; `writers` says whose each writer of the target is. */
	struct gt_drain *drains[GT_ARENAS];
	uint32_t drain_count;
	struct gt_live_place *writers;
	uint32_t writer_count;
	uint32_t writer_room;
	uint32_t taken[GT_ARENAS]; /* of each drain's writers, so many stand there */
	uint64_t start_ns;	   /* of the recording, gt_monotonic_ns() */
	struct gt_catalog *catalog;
	/* The process from which pid was forked, 0 = none: its functions are the same. May be NULL.
	 * */
	pid_t (*parent)(void *data, pid_t pid);
	void *parent_data;
	struct gt_off_cpu_watch *off_cpu; /* NULL: switches are not known */
};

/* Cannot fail. lock: the session's, taken by the target's operations. drain: of the first arena. All of them must
 * stay valid until gt_live_target_fini(). */
void gt_live_target_init(struct gt_live_target *live, pthread_mutex_t *lock, struct gt_drain *drain,
			 struct gt_catalog *catalog);
/* Adds the drain of another arena; it must stay valid as well. Call with the lock held; at most GT_ARENAS. */
void gt_live_target_add(struct gt_live_target *live, struct gt_drain *drain);
/* Frees what it has allocated; no other thread may use it any more. */
void gt_live_target_fini(struct gt_live_target *live);

#endif
