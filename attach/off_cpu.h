/* SPDX-License-Identifier: MIT */
/*
 * When threads were off the CPU: the kernel's records of context switches (perf_event_open(2),
 * PERF_RECORD_SWITCH), kept for each thread as a list of times. For sleep-time = 0. It begins when
 * it is asked for, and needs what `perf record` of the same processes needs.
 *
 * A lock of its own: any thread may ask.
 */
#ifndef GT_ATTACH_OFF_CPU_H
#define GT_ATTACH_OFF_CPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <graftrace/error.h>

#define GT_OFF_CPU_MOST 65536 /* times that are kept of a thread: the newest */

struct gt_off_cpu_ring;
struct gt_off_cpu_thread;

struct gt_off_cpu {
	pthread_mutex_t lock;
	bool on;
	struct gt_off_cpu_ring *rings; /* one a CPU */
	uint32_t ring_count;
	int *fds;
	uint32_t fd_count, fd_room;
	struct gt_off_cpu_thread **threads; /* a hash table by number */
	uint64_t lost;			    /* records that the kernel dropped */
	uint64_t collected_ns;		    /* until then all is taken in */
};

void gt_off_cpu_init(struct gt_off_cpu *off);
void gt_off_cpu_fini(struct gt_off_cpu *off);

/* Watches these processes, all their threads, and whatever they start from now on. GT_EPERM,
 * GT_ENOTSUP: with the reason, and what would help. Watching twice is once. */
int gt_off_cpu_start(struct gt_off_cpu *off, const pid_t *pids, uint32_t count,
		     struct gt_message *message);

/* Takes in what the kernel has written. Cheap where there is nothing. */
void gt_off_cpu_collect(struct gt_off_cpu *off);

/* How long the thread was off the CPU between two times of CLOCK_MONOTONIC, as far as it is known.
 */
uint64_t gt_off_cpu_ns(struct gt_off_cpu *off, uint32_t tid, uint64_t from_ns, uint64_t to_ns);

#endif
