/* SPDX-License-Identifier: MIT */
/*
 * Threads of ours that trace: see tracer.h.
 */
#include "attach/tracer.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct tracer {
	int (*work)(void *data);
	void *data;
	int result;
};

static _Thread_local bool is_tracer;

static void *run(void *data)
{
	struct tracer *tracer = data;

	is_tracer = true;
	tracer->result = tracer->work(tracer->data);
	return NULL;
}

int gt_tracer_run(int (*work)(void *data), void *data)
{
	struct tracer tracer = { .work = work, .data = data };
	pthread_t thread;

	if (is_tracer || pthread_create(&thread, NULL, run, &tracer) != 0)
		return work(data);
	pthread_join(thread, NULL);
	return tracer.result;
}
