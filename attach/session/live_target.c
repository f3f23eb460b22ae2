/* SPDX-License-Identifier: MIT */
/*
 * The live target: see live_target.h.
 */
#include "attach/session/live_target.h"

#include <unistd.h>

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

static uint32_t writer_count(struct gt_target *target)
{
	struct gt_live_target *live = lock(target->data);
	uint32_t count;

	gt_drain_find_writers(live->drain);
	count = live->drain->writer_count;
	unlock(live);
	return count;
}

static int writer(struct gt_target *target, uint32_t index, struct gt_writer *out)
{
	struct gt_live_target *live = lock(target->data);
	int error = gt_drain_writer(live->drain, index, out);

	unlock(live);
	return error;
}

static int64_t sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence, void *buffer,
			  const struct graftrace_sub_buffer **bytes)
{
	struct gt_live_target *live = lock(target->data);
	bool active;
	int64_t words = gt_drain_copy(live->drain, index, sequence, buffer, &active);

	unlock(live);
	*bytes = buffer;
	return words;
}

static int consume(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_live_target *live = lock(target->data);
	int error = GT_ENOTSUP;

	/* In a recording run the sub-buffers are the file's. */
	if (live->drain->mode != GRAFTRACE_MODE_DRAIN)
		error = gt_drain_consume(live->drain, index, sequence);
	unlock(live);
	return error;
}

static int hold(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_live_target *live = lock(target->data);
	int error = 0;

	if (live->drain->mode != GRAFTRACE_MODE_DRAIN)
		error = gt_drain_hold(live->drain, index, sequence);
	unlock(live);
	return error;
}

static uint64_t next_sequence(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_live_target *live = lock(target->data);
	uint64_t next = gt_drain_next(live->drain, index, sequence);

	unlock(live);
	return next;
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
	int error, generations;

	error = gt_catalog_function_at(live->catalog, at, address, out);
	for (generations = 0; error && live->parent && generations < 64; generations++) {
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

	return live->off_cpu ? gt_off_cpu_find(live->off_cpu, tid, after, time) : GT_ENOTSUP;
}

static uint32_t read_switches(void *data, uint64_t *cursor, struct gt_switch *out, uint32_t room)
{
	struct gt_live_target *live = data;

	return live->off_cpu ? gt_off_cpu_read(live->off_cpu, cursor, out, room) : 0;
}

static const struct gt_ring_ops ring = {
	.writer_count = writer_count,
	.writer = writer,
	.sub_buffer = sub_buffer,
	.consume = consume,
	.hold = hold,
	.next_sequence = next_sequence,
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
		.drain = drain,
		.catalog = catalog,
	};
}
