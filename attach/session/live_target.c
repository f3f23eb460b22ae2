/* SPDX-License-Identifier: MIT */
/*
 * The live target: see live_target.h.
 */
#include "attach/session/live_target.h"

#include <stdlib.h>
#include <unistd.h>

#include "attach/process/clock.h"

static struct gt_live_target *lock(void *data)
{
	struct gt_live_target *live = data;

	pthread_mutex_lock(live->lock);
	return live;
}

static void unlock(struct gt_live_target *live)
{
	pthread_mutex_unlock(live->lock);
}

static bool has_place(struct gt_live_target *live)
{
	uint32_t room = live->writer_room ? live->writer_room * 2 : 64;
	struct gt_live_place *writers;

	if (live->writer_count < live->writer_room)
		return true;
	writers = realloc(live->writers, room * sizeof(*writers));
	if (writers == NULL)
		return false;
	live->writers = writers;
	live->writer_room = room;
	return true;
}

/* A writer keeps its index: those of one arena follow those of another as they come. */
static uint32_t writer_count(struct gt_target *target)
{
	struct gt_live_target *live = lock(target->data);
	uint32_t count;

	for (uint32_t i = 0; i < live->drain_count; i++) {
		gt_drain_find_writers(live->drains[i]);
		gt_drain_look(live->drains[i]);
		while (live->taken[i] < live->drains[i]->writer_count && has_place(live))
			live->writers[live->writer_count++] =
				(struct gt_live_place){ i, live->taken[i]++ };
	}
	count = live->writer_count;
	unlock(live);
	return count;
}

/* NULL: there is none. *at: its index there. */
static struct gt_drain *drain_of(const struct gt_live_target *live, uint32_t index, uint32_t *at)
{
	if (index >= live->writer_count)
		return NULL;
	*at = live->writers[index].writer;
	return live->drains[live->writers[index].drain];
}

static int writer(struct gt_target *target, uint32_t index, struct gt_writer *out)
{
	struct gt_live_target *live = lock(target->data);
	struct gt_drain *drain = drain_of(live, index, &index);
	int error = drain != NULL ? gt_drain_writer(drain, index, out) : GT_ENOENT;

	unlock(live);
	return error;
}

static int64_t sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence, void *buffer,
			  const struct graftrace_sub_buffer **bytes)
{
	struct gt_live_target *live = lock(target->data);
	struct gt_drain *drain = drain_of(live, index, &index);
	bool active;
	int64_t words =
		drain != NULL ? gt_drain_copy(drain, index, sequence, buffer, &active) : GT_ENOENT;

	unlock(live);
	*bytes = buffer;
	return words;
}

static int consume(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_live_target *live = lock(target->data);
	struct gt_drain *drain = drain_of(live, index, &index);
	int error = drain != NULL ? GT_ENOTSUP : GT_ENOENT;

	/* In a recording run the sub-buffers are the file's. */
	if (drain != NULL && drain->mode != GRAFTRACE_MODE_DRAIN)
		error = gt_drain_consume(drain, index, sequence);
	unlock(live);
	return error;
}

static int hold(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_live_target *live = lock(target->data);
	struct gt_drain *drain = drain_of(live, index, &index);
	int error = drain != NULL ? 0 : GT_ENOENT;

	if (drain != NULL && drain->mode != GRAFTRACE_MODE_DRAIN)
		error = gt_drain_hold(drain, index, sequence);
	unlock(live);
	return error;
}

static uint64_t next_sequence(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_live_target *live = lock(target->data);
	struct gt_drain *drain = drain_of(live, index, &index);
	uint64_t next = drain != NULL ? gt_drain_next(drain, index, sequence) : sequence;

	unlock(live);
	return next;
}

static void lost(struct gt_target *target, uint64_t lost[GRAFTRACE_LOST_CAUSES])
{
	struct gt_live_target *live = lock(target->data);
	const uint64_t ns = gt_monotonic_ns() - live->start_ns;

	for (uint32_t i = 0; i < live->drain_count; i++)
		gt_drain_add_lost(live->drains[i], ns, lost);
	unlock(live);
}

static uint64_t now(struct gt_target *target)
{
	(void)target;
	return gt_clock_counter();
}

static int function(void *data, uint32_t number, struct gt_function *out)
{
	struct gt_live_target *live = lock(data);
	int error = gt_catalog_function(live->catalog, number, out);

	unlock(live);
	return error;
}

static int event(void *data, uint32_t number, struct gt_event_format *format)
{
	struct gt_live_target *live = lock(data);
	int error = gt_catalog_event(live->catalog, number, format);

	unlock(live);
	return error;
}

static int function_at(void *data, uint32_t pid, uint64_t address, struct gt_function *out)
{
	struct gt_live_target *live = lock(data);
	pid_t at = (pid_t)pid;
	int error;

	error = gt_catalog_function_at(live->catalog, at, address, out);
	for (int generations = 0; error && live->parent != NULL && generations < 64;
	     generations++) {
		at = live->parent(live->parent_data, at);
		if (!at)
			break;
		error = gt_catalog_function_at(live->catalog, at, address, out);
	}
	unlock(live);
	return error;
}

static int off_cpu(void *data, uint32_t tid, uint64_t after, struct gt_off_cpu *time)
{
	struct gt_live_target *live = data;

	return live->off_cpu != NULL ? gt_off_cpu_find(live->off_cpu, tid, after, time)
				     : GT_ENOTSUP;
}

static uint32_t read_switches(void *data, uint64_t *cursor, struct gt_switch *out, uint32_t room)
{
	struct gt_live_target *live = data;

	return live->off_cpu != NULL ? gt_off_cpu_read(live->off_cpu, cursor, out, room) : 0;
}

static const struct gt_ring_ops ring = {
	.writer_count = writer_count,
	.writer = writer,
	.sub_buffer = sub_buffer,
	.consume = consume,
	.hold = hold,
	.next_sequence = next_sequence,
	.now = now,
	.lost = lost,
};
static const struct gt_name_ops names = {
	.function = function,
	.function_at = function_at,
	.event = event,
};
static const struct gt_switch_ops switches = { .off_cpu = off_cpu, .read = read_switches };

void gt_live_target_init(struct gt_live_target *live, pthread_mutex_t *mutex,
			 struct gt_drain *drain, struct gt_catalog *catalog)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	*live = (struct gt_live_target){
		.target = {
			.ring = &ring,
			.data = live,
			.names = &names,
			.name_data = live,
			.switches = &switches,
			.switch_data = live,
			.sub_buffer_bytes = drain->arena->sub_buffer_bytes,
			.tracer = GRAFTRACE_TRACER_NOP,
			.cpu_count = cpus > 0 ? (uint32_t)cpus : 1,
		},
		.lock = mutex,
		.catalog = catalog,
	};
	gt_live_target_add(live, drain);
}

void gt_live_target_add(struct gt_live_target *live, struct gt_drain *drain)
{
	live->drains[live->drain_count++] = drain;
}

void gt_live_target_fini(struct gt_live_target *live)
{
	free(live->writers);
	live->writers = NULL;
	live->writer_count = live->writer_room = 0;
}
