/* SPDX-License-Identifier: MIT */
/*
 * See recorded_stats.h. A record is counted for its CPU, a thread's lost records for its last CPU.
 */
#include "serve/recorded_stats.h"

#include "core/trace/merge.h"
#include "core/trace/message.h"
#include "port/host/memory.h"

#define CPUS (GT_FILTER_CPU_WORDS * 64)

void gt_recorded_stats_init(struct gt_recorded_stats *stats)
{
	*stats = (struct gt_recorded_stats){ .known = false };
	pthread_mutex_init(&stats->lock, NULL);
}

void gt_recorded_stats_fini(struct gt_recorded_stats *stats)
{
	pthread_mutex_destroy(&stats->lock);
}

static bool is_counted(const struct gt_record *record)
{
	return record->kind == GT_RECORD_ENTRY || record->kind == GT_RECORD_RETURN ||
	       record->kind == GT_RECORD_ENTRY_ONLY || record->kind == GT_RECORD_FUNCTION ||
	       record->kind == GT_RECORD_MARKER || record->kind == GT_RECORD_STACK ||
	       record->kind == GT_RECORD_EVENT;
}

static void add_record(struct gt_recorded_count *count, uint64_t clock)
{
	count->records++;
	if (count->oldest == 0 || clock < count->oldest)
		count->oldest = clock;
	if (clock > count->newest)
		count->newest = clock;
}

static void add_losses(struct gt_recorded_count *count, const struct gt_writer *writer)
{
	count->overrun += writer->lost[GRAFTRACE_LOST_OVERRUN];
	count->dropped += writer->lost[GRAFTRACE_LOST_FULL];
}

/* tid: only that thread; 0: all. cpus: an array of CPUS counts, or NULL. */
static int count(struct gt_target *target, uint32_t tid, struct gt_recorded_count *all,
		 struct gt_recorded_count *cpus)
{
	struct gt_filter filter = { .tid = tid };
	uint32_t writers = target->ring->writer_count(target);
	struct gt_source *source;
	struct gt_merge merge;
	int error = gt_merge_init(&merge, target, &gt_host_memory, GT_MERGE_SNAPSHOT, &filter);

	if (error != 0)
		return error;
	while (gt_merge_next(&merge, &source) > 0) {
		uint32_t cpu = source->record.cpu < CPUS ? source->record.cpu : 0;

		if (!is_counted(&source->record))
			continue;
		add_record(all, source->record.clock);
		if (cpus != NULL)
			add_record(&cpus[cpu], source->record.clock);
	}
	for (uint32_t i = 0; i < writers; i++) {
		struct gt_writer writer;

		if (target->ring->writer(target, i, &writer) != 0 ||
		    (tid != 0 && writer.tid != tid))
			continue;
		add_losses(all, &writer);
		/* its last record is still in the ring */
		source = i < merge.source_count ? merge.sources[i] : NULL;
		if (cpus != NULL && source != NULL)
			add_losses(&cpus[source->record.cpu < CPUS ? source->record.cpu : 0],
				   &writer);
	}
	gt_merge_fini(&merge);
	return 0;
}

int gt_recorded_stats_get(struct gt_recorded_stats *stats, struct gt_target *target,
			  const struct gt_control_scope *scope, struct gt_control_stats *out,
			  struct gt_message *message)
{
	struct gt_recorded_count found = { 0 };
	int error = 0;

	if (scope->kind == GT_SCOPE_THREAD) {
		error = count(target, scope->number, &found, NULL);
	} else {
		pthread_mutex_lock(&stats->lock);
		if (!stats->known)
			error = count(target, 0, &stats->all, stats->cpus);
		stats->known = error == 0;
		found = scope->kind == GT_SCOPE_ALL ? stats->all
			: scope->number < CPUS	    ? stats->cpus[scope->number]
						    : found;
		pthread_mutex_unlock(&stats->lock);
	}
	if (error != 0)
		return gt_fail(message, error, "no memory to count the recording's records");
	*out = (struct gt_control_stats){
		.entries = found.records,
		.overrun = found.overrun,
		.dropped = found.dropped,
		.bytes = found.records * 8,
		.oldest_ns = found.oldest != 0 ? gt_clock_ns(&target->clock, found.oldest) : 0,
		.now_ns = found.newest != 0 ? gt_clock_ns(&target->clock, found.newest) : 0,
	};
	return 0;
}
