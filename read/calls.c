/* SPDX-License-Identifier: MIT */
/*
 * Calls of a target, from a merge of its threads. A row is given only if all of it is known; the
 * decoder counts the rest. One thread at a time.
 */
#include "read/calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/merge_fast.h"
#include "port/host/memory.h"
#include "read/levels.h"

/* Identifies a call stack: a program's is a writer's context; a kernel's thread moves between
 * CPUs. */
static uint64_t stack_of(const struct gt_source *source)
{
	return source->named ? source->tid
			     : (uint64_t)(source->index + 1) << 32 | source->decode.context;
}

/* ended: for a call of which only the end was recorded; else NULL. */
static int give_call(struct gt_target *target, const struct gt_source *source, bool no_sleep,
		     struct gt_levels *ended, int (*call)(void *user, const struct gt_call *call),
		     void *user)
{
	const struct gt_record *record = &source->record;
	uint64_t ticks = record->clock - record->start;
	struct gt_function function;
	char number[24];
	struct gt_call row = {
		.tid = source->tid,
		.latency_ns = gt_clock_duration_ns(&target->clock, ticks),
	};

	/* Clocks of nested writers can run back a little: a negative time is 0. */
	if (record->clock < record->start)
		row.latency_ns = ticks = 0;
	if (record->children < ticks)
		row.self_ns = gt_clock_duration_ns(&target->clock, ticks - record->children);
	if (no_sleep) {
		uint64_t off = gt_target_off_cpu(target, source->tid, record->start, record->clock);

		row.latency_ns =
			gt_clock_duration_ns(&target->clock, off < ticks ? ticks - off : 0);
	}
	if (ended != NULL)
		row.self_ns = gt_levels_end(ended, stack_of(source), record->depth, row.latency_ns);
	if (gt_target_function(target, record->function, &function) == 0) {
		row.function = function.name;
	} else {
		snprintf(number, sizeof(number), "function#%" PRIu32, record->function);
		row.function = number;
	}
	return call(user, &row);
}

int gt_calls_read(struct gt_target *target, bool no_sleep,
		  int (*call)(void *user, const struct gt_call *call), void *user,
		  struct gt_calls_report *report)
{
	struct gt_source *source;
	struct gt_merge *merge = malloc(sizeof(*merge));
	struct gt_levels ended = { .count = 0 };
	int result;

	memset(report, 0, sizeof(*report));
	if (merge == NULL)
		return GT_ENOMEM;
	result = gt_merge_init(merge, target, &gt_host_memory, GT_MERGE_SNAPSHOT, NULL);
	if (result < 0)
		goto free_merge;
	merge->tell_open = true;
	merge->no_sleep = no_sleep;
	while ((result = gt_merge_next_fast(merge, &source)) > 0) {
		const struct gt_record *record = &source->record;
		switch (record->kind) {
		case GT_RECORD_RETURN:
			if (record->flags & GT_RECORD_ALONE) {
				report->calls++;
				result = give_call(target, source, no_sleep, &ended, call, user);
				if (result < 0)
					goto fini_merge;
				break;
			}
			/* Its entry came before the first record, or was lost. */
			if (record->flags & GT_RECORD_START_UNKNOWN ||
			    (record->flags & GT_RECORD_CHILDREN_UNKNOWN &&
			     !(record->flags & GT_RECORD_ENTRY_SEEN))) {
				report->open_at_start++;
			} else if (record->flags & GT_RECORD_CHILDREN_UNKNOWN) {
				report->cut_by_loss++;
			} else {
				report->calls++;
				result = give_call(target, source, no_sleep, NULL, call, user);
				if (result < 0)
					goto fini_merge;
			}
			break;
		case GT_RECORD_UNWOUND: {
			uint64_t count = record->function ? 1 : record->value;
			*(record->flags & GT_RECORD_UNSEEN ? &report->unseen
							   : &report->never_returned) += count;
			break;
		}
		case GT_RECORD_OPEN:
			report->open_at_end += record->function ? 1 : record->value;
			break;
		case GT_RECORD_ENTRY_ONLY:
			report->entry_only++;
			break;
		case GT_RECORD_FUNCTION:
			report->without_return++;
			break;
		case GT_RECORD_LOST:
			report->lost += record->value ? record->value : 1;
			break;
		case GT_RECORD_GAP:
			report->gaps++;
			break;
		default:
			break;
		}
	}
	report->unreadable = merge->unreadable;
	report->left_out = merge->out_of_memory;

fini_merge:
	gt_levels_fini(&ended);
	gt_merge_fini(merge);
free_merge:
	free(merge);
	return result < 0 ? result : 0;
}
