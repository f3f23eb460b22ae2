/* SPDX-License-Identifier: MIT */
/*
 * When threads were off the CPU: the kernel's records of context switches (perf_event_open(2),
 * PERF_RECORD_SWITCH), as a table of switches on the time stamp counter's time line. It needs what
 * `perf record` of the same processes needs. The traced threads do nothing for it; the kernel
 * writes 32 bytes at each of their switches.
 *
 * The kernel's stamps are of CLOCK_MONOTONIC_RAW, which runs as the counter does: they are put
 * between two moments at which both were read, at most half a second apart where something is
 * collected often, to about 50 ns.
 *
 * A lock of its own, for all of the structure between init and fini: any thread may ask.
 */
#ifndef GT_ATTACH_OFF_CPU_H
#define GT_ATTACH_OFF_CPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <graftrace/error.h>
#include "attach/process/clock.h"
#include "core/trace/switches.h"

#define GT_OFF_CPU_MOST \
	1048576 /* switches that are kept while it runs, of all and of each thread: when so many \
		 * are there, the older half goes */

#define GT_OFF_CPU_FORKS 4096 /* threads of which it is kept who started them: as above */

struct gt_off_cpu_ring;
struct gt_off_cpu_batch;

/* A thread or process that another one has started. */
struct gt_off_cpu_fork {
	uint64_t clock; /* tsc */
	uint32_t tid, creator;
};

struct gt_off_cpu_watch {
	pthread_mutex_t lock;
	bool on;
	bool watched;		       /* it is, or was */
	struct gt_off_cpu_ring *rings; /* one a CPU */
	uint32_t ring_count;
	uint32_t ring_pages; /* of each, without its first one */
	int *fds;
	uint32_t fd_count, fd_room;
	struct gt_switches switches;
	struct gt_off_cpu_batch *batch; /* read, and not old enough to be in order */
	/* Of CLOCK_MONOTONIC_RAW; the stamps are put between `from` and now. */
	struct gt_instant from, last;
	uint64_t collected;	       /* tsc: until then all is taken in */
	struct gt_off_cpu_fork *forks; /* in the order in which they were read */
	uint32_t fork_count;
};

void gt_off_cpu_init(struct gt_off_cpu_watch *off);
void gt_off_cpu_fini(struct gt_off_cpu_watch *off);

/* Watches these processes, all their threads, and whatever they start from now on; those that have ended are
 * passed over. Calling it again adds processes. Raises our own RLIMIT_NOFILE to what is allowed: each thread and
 * CPU takes a descriptor. GT_EPERM, GT_ENOTSUP, GT_ENOMEM, GT_EIO (also: none of the first ones lives), with the
 * reason and what would help: what was watched before stays so, and some of the new ones may be, too. */
int gt_off_cpu_start(struct gt_off_cpu_watch *off, const pid_t *pids, uint32_t count,
		     struct gt_message *message);

bool gt_off_cpu_is_on(struct gt_off_cpu_watch *off);

/* Takes in what the kernel has written; cheap where there is nothing. In the first millisecond after the start
 * nothing can be. end: up to this moment, rather than to a little before it; waits for that millisecond's end. */
void gt_off_cpu_collect(struct gt_off_cpu_watch *off, bool end);

/* Takes in the rest and watches no more. What is known stays; when it is started again, times off the CPU from
 * before are forgotten, and switches stay to be read. */
void gt_off_cpu_stop(struct gt_off_cpu_watch *off);

/* Call before the first question for times off the CPU: makes them of the switches that are kept, and of all later ones
 * (gt_switches.in_order_only). */
void gt_off_cpu_find_times(struct gt_off_cpu_watch *off);

/* As the target's operations; what is asked for is collected first. find: GT_ENOTSUP if nothing was
 * ever watched. */
int gt_off_cpu_find(struct gt_off_cpu_watch *off, uint32_t tid, uint64_t after,
		    struct gt_off_cpu *time);
uint32_t gt_off_cpu_read(struct gt_off_cpu_watch *off, uint64_t *cursor, struct gt_switch *out,
			 uint32_t room);

/* Who has started that thread, the latest of that number, and when, as far as it was seen; collects first if it
 * must. GT_ENOENT. */
int gt_off_cpu_creator(struct gt_off_cpu_watch *off, uint32_t tid, struct gt_off_cpu_fork *fork);

/* Gives the switches from number *cursor on to a sink: what was collected, no more. From 0 on the sink is told
 * even if there are none; a sink that is NULL or takes no switches, and nothing that was ever watched: 0. Called
 * without the lock: one thread for a cursor. The sink's error: the cursor is behind what it did not take. */
int gt_off_cpu_give(struct gt_off_cpu_watch *off, const struct gt_sink *sink, uint64_t *cursor);

/* Tells that all switches up to number `given` are in the file (gt_switches_forget). */
void gt_off_cpu_forget(struct gt_off_cpu_watch *off, uint64_t given);

#endif
