/* SPDX-License-Identifier: MIT */
/*
 * Control files of a session's function profiler. Any thread.
 */
#include "serve/live/live_awake.h"
#include "serve/live/live_instance.h"

#include <stdlib.h>

struct table {
	struct gt_profile_row *rows;
	uint32_t count;
	uint64_t starts_ns[GT_DURATIONS];
};

int gt_live_profile_open(struct gt_control_target *target, const struct gt_control_scope *scope,
			 void **opened, struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct table *table = calloc(1, sizeof(*table));
	uint32_t tid = scope->kind == GT_SCOPE_THREAD ? scope->number : 0;
	uint64_t threshold;
	uint32_t kept = 0;
	bool self;
	int error = GT_ENOMEM;

	pthread_mutex_lock(&live->lock);
	self = !(live->shown.options & GT_OPTION_GRAPH_TIME);
	threshold = live->settings.threshold_ns;
	pthread_mutex_unlock(&live->lock);
	gt_live_pull(live);
	if (table != NULL)
		error = gt_session_profile(live->session, tid, self, &table->rows, &table->count);
	if (error != 0) {
		free(table);
		return no_memory(message);
	}
	pthread_mutex_lock(&live->instances.lock);
	gt_awake_take_out(live->instances.awake, tid, self, table->rows, table->count);
	pthread_mutex_unlock(&live->instances.lock);
	/* As on Linux, tracing_thresh leaves functions out whose average time is below it. */
	for (uint32_t i = 0; i < table->count; i++) {
		if (threshold == 0 || table->rows[i].time_ns / table->rows[i].hits >= threshold)
			table->rows[kept++] = table->rows[i];
	}
	table->count = kept;
	gt_session_profile_starts(live->session, table->starts_ns);
	*opened = table;
	return 0;
}

int gt_live_profile_read(struct gt_control_target *target, void *opened, uint64_t index,
			 struct gt_control_profile_row *row)
{
	const struct table *table = opened;

	(void)target;
	if (index >= table->count)
		return GT_ENOENT;
	*row = (struct gt_control_profile_row){
		.name = table->rows[index].named.name,
		.hits = table->rows[index].hits,
		.time_ns = table->rows[index].time_ns,
		.variance = table->rows[index].variance,
		.durations = { table->rows[index].buckets, table->starts_ns },
	};
	return 0;
}

void gt_live_profile_close(struct gt_control_target *target, void *opened)
{
	struct table *table = opened;

	(void)target;
	free(table->rows);
	free(table);
}
