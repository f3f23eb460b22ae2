/* SPDX-License-Identifier: MIT */
/*
 * A recording's context switches: read when the file is opened, into a table that answers for each
 * thread (core/view/switches.h). Their clocks are no more to be trusted than anything else in the
 * file: the table makes of any clocks times that do not run backwards.
 */
#include "read/recording_parts.h"

#include <stdlib.h>
#include <string.h>

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

int gt_recording_off_cpu(struct gt_recording *recording, uint32_t tid, uint64_t after,
			 struct gt_off_cpu *time)
{
	if (!recording->have_switches)
		return GT_ENOTSUP;
	return gt_switches_off_cpu(&recording->switches, tid, after, time);
}

void gt_recording_free_switches(struct gt_recording *recording)
{
	if (recording->have_switches)
		gt_switches_fini(&recording->switches);
}
