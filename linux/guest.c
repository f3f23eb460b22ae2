/* SPDX-License-Identifier: MIT */
/*
 * Copies a kernel's part of a recording: CPU by CPU, each one's sub-buffers in order. Readers put the
 * CPUs' records in order of time, as in the recording itself.
 */
#include "linux/guest.h"

#include <stdlib.h>

#include <graftrace/record.h>

#define CPUS_MAX 4096u /* a file may say anything */

uint32_t gt_linux_guest_generations(struct gt_recording *recording)
{
	struct gt_target *target = gt_recording_target(recording);
	struct gt_writer writer;
	uint32_t end = 1;

	for (uint32_t i = 0; target->ring->writer(target, i, &writer) == 0; i++)
		if (writer.generation < GRAFTRACE_CONTEXT_INTERRUPT && writer.generation >= end)
			end = writer.generation + 1;
	return end;
}

uint32_t gt_linux_guest_cpus(struct gt_recording *recording)
{
	struct gt_target *target = gt_recording_target(recording);
	struct gt_writer writer;
	uint32_t end = target->cpu_count < CPUS_MAX ? target->cpu_count : CPUS_MAX;

	for (uint32_t i = 0; target->ring->writer(target, i, &writer) == 0; i++)
		if (writer.generation < GRAFTRACE_CONTEXT_INTERRUPT && writer.tid >= end &&
		    writer.tid < CPUS_MAX)
			end = writer.tid + 1;
	return end;
}

int gt_linux_copy_events(struct gt_recording *recording, const struct gt_sink *sink)
{
	struct gt_event_format format;
	int error = 0;

	for (uint32_t i = 0; error == 0 && gt_recording_event_at(recording, i, &format) == 0; i++)
		error = sink->event(sink->data, &format);
	return error;
}

static int copy_sub_buffers(struct gt_target *target, uint32_t index, void *buffer,
			    const struct gt_sink *sink)
{
	const struct graftrace_sub_buffer *sub;
	struct gt_writer writer;
	int error = target->ring->writer(target, index, &writer);

	for (uint64_t at = gt_target_next_sequence(target, index, writer.first);
	     error == 0 && at < writer.next; at = gt_target_next_sequence(target, index, at + 1)) {
		int64_t words = target->ring->sub_buffer(target, index, at, buffer, &sub);
		if (words > 0)
			error = sink->sub_buffer(sink->data, sub, (uint32_t)words);
		else if (words == GT_ENOMEM)
			error = GT_ENOMEM;
	}
	return error;
}

int gt_linux_guest_copy(struct gt_recording *recording, const struct gt_sink *sink)
{
	struct gt_target *target = gt_recording_target(recording);
	void *buffer = malloc(target->sub_buffer_bytes);
	struct gt_writer writer;
	int error = buffer != NULL ? gt_linux_copy_events(recording, sink) : GT_ENOMEM;

	for (uint32_t i = 0; error == 0 && target->ring->writer(target, i, &writer) == 0; i++) {
		error = sink->writer(sink->data, &writer);
		if (error == 0)
			error = copy_sub_buffers(target, i, buffer, sink);
	}
	free(buffer);
	return error;
}
