/* SPDX-License-Identifier: MIT */
/*
 * The top's buffer. As long as the top asks for all that is recorded, the ring is its buffer. Once it asks for
 * less (the "detour"), records are copied out of the ring: the top then has a store as instances have, and another
 * one with the records that were in the ring before.
 */
#include "serve/live/live_events.h"
#include "serve/live/live_instance_private.h"

#include <stdlib.h>

/* Triggers are the top's, and so are the events that they enable. */
static bool is_gated(void *data, const char *system, const char *name)
{
	const struct gt_live *top = data;

	return gt_session_event_is_gated(top->session, system, name);
}

static bool is_event_thread(void *data, uint32_t tid)
{
	struct gt_live *live = data;

	return gt_live_events_take_thread(&live->over, tid);
}

struct gt_route_want gt_live_want_of(struct gt_live *live, const struct gt_trace_settings *settings)
{
	const bool is_top = live->top == NULL;

	return (struct gt_route_want){
		.settings = *settings,
		.stacks = is_top,
		.marks = is_top,
		.also = is_top ? is_gated : NULL,
		.also_data = live,
		.of_thread = gt_live_events_have_threads(&live->over) ? is_event_thread : NULL,
		.of_thread_data = live,
		.since = live->instance != NULL ? live->instance->since : 0,
	};
}

bool gt_live_is_detoured(struct gt_live *top)
{
	return __atomic_load_n(&top->instances.own, __ATOMIC_ACQUIRE) != NULL;
}

static bool overwrites(struct gt_live *top)
{
	bool overwrite;

	pthread_mutex_lock(&top->lock);
	overwrite = (top->shown.options & GT_OPTION_OVERWRITE) != 0;
	pthread_mutex_unlock(&top->lock);
	return overwrite;
}

/* Moves all of the ring into a store, which also takes new records until another one replaces
 * it. */
static int copy_ring(struct gt_live *top, struct gt_store **store)
{
	int error = gt_store_create(gt_session_target(top->session), 0, true, store);

	return error != 0 ? error : gt_store_pull(*store);
}

int gt_live_detour_locked(struct gt_live *top)
{
	struct gt_live_instances *instances = &top->instances;
	struct gt_target *session = gt_session_target(top->session);
	struct gt_store *archive = instances->own, *own = NULL;
	struct gt_merge_given *positions = NULL;
	struct gt_trace_settings settings = gt_live_settings(top);
	struct gt_route_want want = gt_live_want_of(top, &settings);
	uint32_t count = 0;
	int error = 0;

	if (archive == NULL)
		error = copy_ring(top, &archive);
	if (error == 0)
		error = gt_store_create_routed(session, top->buffer_bytes, overwrites(top), &own);
	if (error == 0)
		error = gt_store_positions(archive, &positions, &count);
	if (error == 0)
		error = gt_store_begin(own, positions, count);
	if (error == 0) {
		gt_store_want(own, &want);
		error = gt_live_follow_threads(top, own);
	}
	if (error == 0)
		error = gt_live_view_detour(&top->over, gt_store_target(archive),
					    gt_store_target(own));
	free(positions);
	if (error != 0) {
		if (archive != instances->own)
			gt_store_put(archive);
		gt_store_put(own);
		return error;
	}
	gt_session_set_transport(top->session);
	gt_store_consume_source(archive);
	gt_session_has_room(top->session, true);
	gt_store_freeze(archive);
	gt_store_set_older(own, archive);
	instances->archive = archive;
	__atomic_store_n(&instances->own, own, __ATOMIC_RELEASE);
	instances->routed = true;
	return 0;
}

/* The ring keeps the size that the arena was made with; another size is that of a store that the
 * ring is copied to. */
int gt_live_resize(struct gt_live *live, uint64_t bytes)
{
	struct gt_live *top = live->top != NULL ? live->top : live;
	struct gt_live_instances *instances = &top->instances;
	struct gt_store *own = NULL;
	int error = 0;

	pthread_mutex_lock(&instances->lock);
	gt_live_pull_locked(top);
	if (live->instance != NULL) {
		gt_store_set_limit(live->instance->store, bytes);
	} else if (instances->own != NULL) {
		gt_store_set_limit(instances->own, bytes);
	} else {
		error = copy_ring(top, &own);
		if (error == 0)
			error = gt_live_view_detour(&top->over, gt_store_target(own),
						    gt_store_target(own));
		if (error == 0) {
			gt_session_set_transport(top->session);
			gt_store_consume_source(own);
			gt_session_has_room(top->session, true);
			gt_store_set_overwrite(own, overwrites(top));
			gt_store_set_limit(own, bytes);
			__atomic_store_n(&instances->own, own, __ATOMIC_RELEASE);
			gt_live_start_pump_locked(top);
		} else {
			gt_store_put(own);
		}
	}
	pthread_mutex_unlock(&instances->lock);
	return error;
}

void gt_live_set_overwrite(struct gt_live *live, bool overwrite)
{
	struct gt_live *top = live->top != NULL ? live->top : live;

	pthread_mutex_lock(&top->instances.lock);
	if (live->instance != NULL)
		gt_store_set_overwrite(live->instance->store, overwrite);
	else if (gt_live_is_detoured(live))
		gt_store_set_overwrite(live->instances.own, overwrite);
	pthread_mutex_unlock(&top->instances.lock);
}

uint32_t gt_live_rings(struct gt_live *live, struct gt_target *rings[2])
{
	if (!gt_live_is_detoured(live)) {
		rings[0] = gt_session_target(live->session);
		return 1;
	}
	gt_live_pull(live);
	gt_store_freeze(live->instances.own);
	rings[0] = gt_store_target(live->instances.routed ? live->instances.archive
							  : live->instances.own);
	rings[1] = gt_store_target(live->instances.own);
	return live->instances.routed ? 2 : 1;
}
