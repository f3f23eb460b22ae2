/* SPDX-License-Identifier: MIT */
/*
 * Copying the session's records into the buffers of the instances and the top: a few times a second,
 * and before anything is read, emptied or changed.
 */
#include "serve/live/live_instance_private.h"

#include <time.h>

#include "port/host/own_thread.h"
#include "serve/live/live_awake.h"
#include "serve/live/live_events.h"

#define PUMP_NS	     20000000
#define BUSY_NS	     1000000 /* interval while this much of the ring is in use: */
#define BUSY_PERCENT 5
#define FULL_PERCENT 75

/* Carries out the commands that were hit; nothing is copied meanwhile. */
static void carry_out(struct gt_live *live)
{
	struct gt_live_instance *instance = live->instance;
	uint32_t cpu, due = gt_store_due(instance->store, &cpu);

	for (uint32_t action = 0; action < GT_ACTIONS; action++) {
		if (due & 1u << action)
			gt_live_command_act(live, (enum gt_control_action)action, cpu);
	}
	gt_store_done(instance->store);
}

/* The kernel's switches of threads follow what commands do to tracing_on. */
static void follow_switch(struct gt_live *live)
{
	uint64_t switched;
	bool on = gt_store_is_on(live->instance->store, &switched);

	if (switched == live->instance->switched)
		return;
	live->instance->switched = switched;
	pthread_mutex_lock(&live->lock);
	gt_live_events_switched(live, on, switched);
	pthread_mutex_unlock(&live->lock);
}

int gt_live_follow_threads(struct gt_live *top, struct gt_store *own)
{
	uint32_t tids[GT_SESSION_THREADS], count;
	int error = 0;

	for (int which = GT_SESSION_ONLY; error == 0 && which <= GT_SESSION_NOT; which++) {
		count = gt_session_threads(top->session, (enum gt_session_list)which, tids);
		error = gt_store_set_threads(own, which, tids, count);
	}
	return error;
}

/* Whether some buffer can keep more. Where none can, no thread of the program is to wait for room in the ring: what it
 * records would be left out all the same. */
static bool have_room(const struct gt_live_instances *instances)
{
	bool room = !gt_store_is_full(instances->own);

	for (uint32_t i = 0; !room && i < instances->count; i++) {
		struct gt_live *one = instances->all[i];

		room = !gt_live_is_removed(one) && one->instance->active &&
		       !gt_store_is_full(one->instance->store);
	}
	return room;
}

struct gt_live *gt_live_pull_locked(struct gt_live *top)
{
	struct gt_live_instances *instances = &top->instances;
	struct gt_store *first = instances->own;
	struct gt_live *due = NULL;
	bool full = first != NULL && gt_session_buffer_use(top->session) >= FULL_PERCENT;

	if (instances->routed && gt_session_lists_threads(top->session))
		gt_live_follow_threads(top, instances->own);
	if (instances->routed)
		gt_store_switch(instances->own, gt_session_tracing_on(top->session));
	if (instances->own != NULL)
		gt_store_pull(instances->own);
	for (uint32_t i = 0; i < instances->count; i++) {
		struct gt_live *one = instances->all[i];

		if (gt_live_is_removed(one) || !one->instance->active)
			continue;
		if (gt_store_pull(one->instance->store) == GT_EAGAIN)
			due = one;
		follow_switch(one);
	}
	gt_awake_pull(instances->awake);
	/* All stores have copied what the first one has. */
	if (first != NULL && due == NULL)
		gt_store_consume_source(first);
	if (full && due == NULL)
		gt_session_has_room(top->session, have_room(instances));
	return due;
}

void gt_live_pull(struct gt_live *live)
{
	struct gt_live *top = live->top != NULL ? live->top : live, *due;

	pthread_mutex_lock(&top->instances.turn);
	do {
		pthread_mutex_lock(&top->instances.lock);
		due = gt_live_pull_locked(top);
		pthread_mutex_unlock(&top->instances.lock);
		if (due != NULL)
			carry_out(due);
	} while (due != NULL);
	pthread_mutex_unlock(&top->instances.turn);
}

static void *pump(void *data)
{
	struct gt_live *top = data;
	struct gt_live_instances *instances = &top->instances;
	struct timespec until;
	bool busy;

	pthread_mutex_lock(&instances->lock);
	while (!instances->stop) {
		pthread_mutex_unlock(&instances->lock);
		gt_live_pull(top);
		pthread_mutex_lock(&instances->lock);
		busy = instances->own != NULL &&
		       gt_session_buffer_use(top->session) >= BUSY_PERCENT;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += busy ? BUSY_NS : PUMP_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		if (!instances->stop)
			pthread_cond_timedwait(&instances->wake, &instances->lock, &until);
	}
	pthread_mutex_unlock(&instances->lock);
	return NULL;
}

void gt_live_start_pump_locked(struct gt_live *top)
{
	if (!top->instances.pumping)
		top->instances.pumping = gt_own_thread_start(&top->instances.pump, pump, top) == 0;
}
