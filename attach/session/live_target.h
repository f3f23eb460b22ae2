/* SPDX-License-Identifier: MIT */
/*
 * The target of a running session (core/trace/target.h), over the arena: reads while writers write,
 * never gives a torn copy. From any thread: a lock that is held for one copy at a time.
 */
#ifndef GT_ATTACH_LIVE_TARGET_H
#define GT_ATTACH_LIVE_TARGET_H

#include <pthread.h>
#include "attach/agent/catalog.h"
#include "attach/ring/drain.h"
#include "attach/ring/off_cpu.h"

struct gt_live_target {
	struct gt_target target;
	pthread_mutex_t *lock;
	struct gt_drain *drain;
	struct gt_catalog *catalog;
	/* The process from which pid was forked, 0 = none: its functions are the same. May be NULL.
	 * */
	pid_t (*parent)(void *data, pid_t pid);
	void *parent_data;
	struct gt_off_cpu_watch *off_cpu; /* NULL: switches are not known */
};

void gt_live_target_init(struct gt_live_target *live, pthread_mutex_t *lock, struct gt_drain *drain,
			 struct gt_catalog *catalog);

#endif
