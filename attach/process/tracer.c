/* SPDX-License-Identifier: MIT */
/*
 * Threads of ours that trace: see tracer.h.
 */
#define _GNU_SOURCE
#include "attach/process/tracer.h"
#include "attach/process/clock.h"
#include "attach/process/own_thread.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A debugger of ours can keep a thread that has ended. */
#define END_MS 500

struct tracer {
	int (*work)(void *data);
	void *data;
	int result;
	pid_t tid;
};

static _Thread_local bool is_tracer;

static void *run(void *data)
{
	struct tracer *tracer = data;

	is_tracer = true;
	tracer->tid = gettid();
	tracer->result = tracer->work(tracer->data);
	return NULL;
}

int gt_tracer_run(int (*work)(void *data), void *data)
{
	struct tracer tracer = { .work = work, .data = data };
	pthread_t thread;
	uint64_t start;

	if (is_tracer)
		return work(data);
	if (gt_own_thread_start(&thread, run, &tracer) != 0)
		return work(data);
	pthread_join(thread, NULL);
	/* It is joined before the kernel lets go of what it traces, and its number is free behind
	 * that. */
	start = gt_monotonic_ms();
	while (syscall(SYS_tgkill, getpid(), tracer.tid, 0) == 0 &&
	       gt_monotonic_ms() - start < END_MS)
		sched_yield();
	return tracer.result;
}
