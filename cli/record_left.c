/* SPDX-License-Identifier: MIT */
/*
 * Records that a killed graftrace has left in the memory of the processes that it recorded. They
 * belong to its recording, which has the names of their functions. That recording is identified by
 * its path, which is stored in that memory, and by the base of its clock, which is known only to
 * those who can read it. (The process can write that memory. So it can have its own records added
 * to its own recording, and to no other file.)
 */
#define _GNU_SOURCE
#include "cli/record_left.h"
#include "core/trace/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/session/leftover.h"
#include "cli/command.h"
#include "read/writer.h"

#define NAME	     "record"
#define WORDS_A_PART 8192 /* the most of a sub-buffer at once */

/* A writer in the file: the sequence number that comes next. */
struct known {
	uint32_t generation;
	uint64_t next;
};

struct taking {
	const struct gt_sink *file;
	struct known *known; /* by generation */
	size_t count;
	struct known last; /* of the newest sub-buffer */
	uint64_t missing;  /* parts that are neither in the file nor in the memory */
	uint32_t writers;  /* with parts in one of them */
};

static int by_generation(const void *left, const void *right)
{
	const struct known *a = left, *b = right;

	return a->generation < b->generation ? -1 : a->generation > b->generation;
}

static const struct known *find(const struct taking *taking, uint32_t generation)
{
	const struct known key = { generation, 0 };

	return taking->count == 0
		       ? NULL
		       : bsearch(&key, taking->known, taking->count, sizeof(key), by_generation);
}

static int on_writer(void *data, const struct gt_writer *writer)
{
	struct taking *taking = data;

	/* called at the writer's end, and mostly once before */
	if (writer->end != 0 && find(taking, writer->generation) == NULL)
		taking->writers++;
	return taking->file->writer(taking->file->data, writer);
}

static int on_sub_buffer(void *data, const struct graftrace_sub_buffer *sub_buffer, uint32_t words)
{
	struct taking *taking = data;
	const struct known *known;

	if (taking->last.generation != sub_buffer->generation) {
		known = find(taking, sub_buffer->generation);
		taking->last = known != NULL ? *known : (struct known){ sub_buffer->generation, 0 };
	}
	if (sub_buffer->sequence < taking->last.next) /* the file has it */
		return 0;
	taking->missing += sub_buffer->sequence - taking->last.next;
	taking->last.next = sub_buffer->sequence + 1;
	return taking->file->sub_buffer(taking->file->data, sub_buffer, words);
}

/* Reads how far the file has each writer. Returns false without memory. */
static bool read_known(struct taking *taking, struct gt_recording *recording)
{
	struct gt_target *target = gt_recording_target(recording);
	uint32_t count = target->ring->writer_count(target);
	struct gt_writer writer;

	taking->known = calloc(count + 1u, sizeof(*taking->known));
	if (taking->known == NULL)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (target->ring->writer(target, i, &writer) == 0)
			taking->known[taking->count++] =
				(struct known){ writer.generation, writer.next };
	taking->writers = (uint32_t)taking->count;
	qsort(taking->known, taking->count, sizeof(*taking->known), by_generation);
	return true;
}

/* Opens the recording, if the memory belongs to it and it was not ended. */
static struct gt_recording *open_recording(const struct gt_leftover *leftover)
{
	const char *path = gt_leftover_recording(leftover);
	struct gt_recording *recording;
	const struct gt_clock *clock;
	struct gt_message message;

	if (path[0] != '/' || gt_recording_open(path, &recording, &message) != 0)
		return NULL;
	clock = &gt_recording_target(recording)->clock;
	if (!gt_recording_info(recording)->ended && clock->tsc_base == gt_leftover_tsc(leftover) &&
	    clock->ns_base == gt_leftover_ns(leftover))
		return recording;
	gt_recording_close(recording);
	return NULL;
}

/* Reports what the killed graftrace had taken out of the memory and not written. */
static void tell_missing(const struct taking *taking, uint32_t writers, const char *path,
			 struct gt_file_writer *writer)
{
	char option[256], parts[128] = "", threads[64] = "";
	uint32_t ended = writers > taking->writers ? writers - taking->writers : 0;

	if (taking->missing == 0 && ended == 0)
		return;
	if (taking->missing != 0)
		snprintf(parts, sizeof(parts),
			 "%" PRIu64 " part%s of the buffer with %" PRIu64 " calls at most",
			 taking->missing, taking->missing == 1 ? "" : "s",
			 taking->missing * WORDS_A_PART);
	if (ended != 0)
		snprintf(threads, sizeof(threads), "%" PRIu32 " thread%s that had ended", ended,
			 ended == 1 ? "" : "s");
	snprintf(option, sizeof(option),
		 "damaged=graftrace was killed: what it had read in its last second is missing: "
		 "%s%s%s",
		 parts, parts[0] != 0 && threads[0] != 0 ? ", and " : "", threads);
	gt_file_writer_option(writer, option);
	gt_complain(NAME, "'%s': %s", path, option + sizeof("damaged=") - 1);
}

static void tell(pid_t pid, const char *path, uint64_t calls)
{
	fprintf(stderr,
		"graftrace: %" PRIu64
		" call%s that a graftrace which was killed had left in process "
		"%d %s now in '%s'\n",
		calls, calls == 1 ? "" : "s", (int)pid, calls == 1 ? "is" : "are", path);
}

static void take(pid_t pid, struct gt_leftover *leftover, struct gt_recording *recording)
{
	const struct gt_recording_info *info = gt_recording_info(recording);
	struct taking taking = { .count = 0 };
	const struct gt_sink sink = { .data = &taking,
				      .writer = on_writer,
				      .sub_buffer = on_sub_buffer };
	struct gt_file_writer_options file = { .size = sizeof(file),
					       .path = gt_leftover_recording(leftover),
					       .compress = true,
					       .append_at = info->whole_bytes,
					       .append_number = info->blocks };
	struct gt_file_writer *writer = NULL;
	struct gt_message message = { "no memory" };
	uint64_t calls;
	bool done = false;

	if (read_known(&taking, recording) &&
	    gt_file_writer_create(&file, &writer, &message) == 0) {
		taking.file = gt_file_writer_sink(writer);
		done = gt_leftover_give(leftover, &sink, &calls, &message) == 0;
		if (done) {
			tell(pid, file.path, calls);
			tell_missing(&taking, gt_leftover_writers(leftover), file.path, writer);
		}
		if (gt_file_writer_flush(writer) != 0) {
			gt_message_set(&message, "%s", gt_file_writer_error(writer));
			done = false;
		}
	}
	if (!done)
		gt_complain(NAME,
			    "what a graftrace that was killed had left in process %d is lost: %s",
			    (int)pid, message.text);
	gt_file_writer_destroy(writer);
	free(taking.known);
}

void gt_record_take_left(const pid_t *pids, size_t count)
{
	struct gt_leftover *leftover;
	struct gt_message message;

	for (size_t i = 0; i < count; i++) {
		struct gt_recording *recording;

		/* if it cannot be read, attaching reports why */
		if (gt_leftover_read(pids[i], &leftover, &message) != 0 || leftover == NULL)
			continue;
		recording = open_recording(leftover);
		if (recording != NULL)
			take(pids[i], leftover, recording);
		else
			gt_complain(NAME,
				    "a graftrace that was killed has left records in process %d: "
				    "they are lost, "
				    "for its recording%s%s%s is not there any more",
				    (int)pids[i], gt_leftover_recording(leftover)[0] ? " '" : "",
				    gt_leftover_recording(leftover),
				    gt_leftover_recording(leftover)[0] ? "'" : "");
		gt_recording_close(recording);
		gt_leftover_free(leftover);
	}
}
