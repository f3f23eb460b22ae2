/* SPDX-License-Identifier: MIT */
/*
 * A recording's context switches: read when the file is opened, into a table that answers for each
 * thread (core/trace/switches.h). Their clocks are as untrusted as the rest of the file: the table
 * makes times that never run backwards.
 */
#include "read/recording_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/trace/merge.h"
#include "port/host/memory.h"

int gt_recording_add_switches(struct gt_recording *recording, const uint8_t *payload, size_t bytes,
			      const char **why)
{
	struct gt_switches *switches = &recording->switches;
	struct graftrace_file_switches head;
	uint64_t clock = 0, lost;

	if (bytes < sizeof(head)) {
		*why = "it is too short";
		return GT_EFORMAT;
	}
	memcpy(&head, payload, sizeof(head));
	if (head.record_bytes < sizeof(struct graftrace_file_switch) ||
	    (uint64_t)head.count * head.record_bytes > bytes - sizeof(head)) {
		*why = "its records are cut off";
		return GT_EFORMAT;
	}
	if (!recording->have_switches)
		gt_switches_init(switches, &gt_host_memory, head.start, 0);
	if (!recording->have_switches)
		recording->info.switches_start = head.start;
	recording->have_switches = true;
	lost = switches->lost;
	for (uint32_t i = 0; i < head.count; i++) {
		struct graftrace_file_switch record;
		memcpy(&record, payload + sizeof(head) + (size_t)i * head.record_bytes,
		       sizeof(record));
		clock += record.clock;
		struct gt_switch added = { clock, record.tid, record.cpu, record.flags };
		gt_switches_add(switches, &added);
	}
	if (switches->lost != lost)
		return GT_ENOMEM;
	recording->info.has_switches = true;
	recording->info.switches += head.count;
	recording->info.switches_lost = head.lost;
	return 0;
}

static void add_switch(struct gt_switches *switches, const struct gt_record *record)
{
	struct gt_switch out = { record->clock, (uint32_t)record->previous_tid, record->cpu,
				 GT_SWITCH_OUT };
	struct gt_switch in = { record->clock, (uint32_t)record->next_tid, record->cpu, 0 };

	if (record->state == GT_STATE_RUNNING)
		out.flags |= GT_SWITCH_PREEMPTED;
	/* the idle threads of all CPUs have one number */
	if (out.tid)
		gt_switches_add(switches, &out);
	if (in.tid)
		gt_switches_add(switches, &in);
}

/* Computes a thread's times off the CPU from all CPUs' records, in order. Without memory none is
 * known. */
static void collect(struct gt_recording *recording)
{
	struct gt_merge *merge = malloc(sizeof(*merge));
	struct gt_source *source;
	bool started = false;

	if (merge != NULL && gt_merge_init(merge, gt_recording_target(recording), &gt_host_memory,
					   GT_MERGE_SNAPSHOT, NULL) == 0) {
		while (gt_merge_next(merge, &source) > 0) {
			if (!started)
				gt_switches_init(&recording->switches, &gt_host_memory,
						 source->record.clock, 0);
			started = true;
			if (source->record.kind == GT_RECORD_SWITCH)
				add_switch(&recording->switches, &source->record);
		}
		gt_merge_fini(merge);
	}
	free(merge);
	recording->kernel_switches = started;
}

int gt_recording_off_cpu(struct gt_recording *recording, uint32_t tid, uint64_t after,
			 struct gt_off_cpu *time)
{
	if (!recording->have_switches && !recording->looked_for_switches) {
		recording->looked_for_switches = true;
		if (gt_target_is_kernel(gt_recording_target(recording)))
			collect(recording);
	}
	if (!recording->have_switches && !recording->kernel_switches)
		return GT_ENOTSUP;
	return gt_switches_off_cpu(&recording->switches, tid, after, time);
}

void gt_recording_free_switches(struct gt_recording *recording)
{
	if (recording->have_switches || recording->kernel_switches)
		gt_switches_fini(&recording->switches);
}
