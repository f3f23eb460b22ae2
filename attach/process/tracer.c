/* SPDX-License-Identifier: MIT */
/*
 * Threads of ours that trace: see tracer.h.
 */
#define _GNU_SOURCE
#include "attach/process/tracer.h"
#include "attach/process/clock.h"
#include "port/host/own_thread.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A debugger of ours can keep a thread that has ended. */
#define END_MS 500

static _Thread_local bool is_tracer;

static void *run(void *data)
{
	struct gt_tracer *tracer = data;

	is_tracer = true;
	tracer->tid = gettid();
	tracer->result = tracer->work(tracer->data);
	__atomic_store_n(&tracer->is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

int gt_tracer_run(int (*work)(void *data), void *data)
{
	struct gt_tracer tracer;

	if (is_tracer || !gt_tracer_start(&tracer, work, data))
		return work(data);
	return gt_tracer_join(&tracer);
}

bool gt_tracer_start(struct gt_tracer *tracer, int (*work)(void *data), void *data)
{
	*tracer = (struct gt_tracer){ .work = work, .data = data };
	return gt_own_thread_start(&tracer->thread, run, tracer) == 0;
}

bool gt_tracer_is_done(const struct gt_tracer *tracer)
{
	return __atomic_load_n(&tracer->is_done, __ATOMIC_ACQUIRE);
}

int gt_tracer_join(struct gt_tracer *tracer)
{
	uint64_t start;

	pthread_join(tracer->thread, NULL);
	/* It is joined before the kernel lets go of what it traces, and its number is free behind
	 * that. */
	start = gt_monotonic_ms();
	while (syscall(SYS_tgkill, getpid(), tracer->tid, 0) == 0 &&
	       gt_monotonic_ms() - start < END_MS)
		sched_yield();
	return tracer->result;
}
