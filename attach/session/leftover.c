/* SPDX-License-Identifier: MIT */
/* The arena of a host that was killed: see leftover.h. */
#define _GNU_SOURCE
#include "attach/session/leftover.h"
#include "attach/agent/detach.h"
#include "attach/process/process.h"
#include "attach/ring/drain.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Passes over the copy, each later than a drain waits for anything. */
#define PASSES	4
#define PASS_NS 1000000000ull

struct gt_leftover {
	struct gt_arena arena;
	char recording[GRAFTRACE_ARENA_PATH];
};

static int copy_range(const struct gt_process *process, uint64_t from, struct gt_arena *arena,
		      uint64_t offset, uint64_t bytes)
{
	return gt_process_read(process, from + offset, (char *)arena->memory + offset, bytes);
}

/* Streams, states, and the sub-buffers that somebody has or had. */
static int copy_rest(const struct gt_process *process, uint64_t from, struct gt_arena *arena)
{
	const uint32_t count = arena->sub_buffer_count + arena->small_count;
	int error = copy_range(process, from, arena, arena->streams_offset,
			       (uint64_t)arena->stream_count * sizeof(struct graftrace_stream));

	if (!error)
		error = copy_range(process, from, arena, arena->states_offset,
				   (uint64_t)count * sizeof(struct graftrace_sub_buffer_entry));
	for (uint32_t i = 0; !error && i < count; i++) {
		struct graftrace_sub_buffer_entry *entry = gt_arena_state(arena, i);
		uint64_t at;

		if (graftrace_word_state(entry->word) == GRAFTRACE_SUB_BUFFER_FREE)
			continue;
		/* The dead host may have been at it: it is looked for in its file, too. */
		if (graftrace_word_state(entry->word) == GRAFTRACE_SUB_BUFFER_READING)
			entry->word =
				graftrace_word_with_state(entry->word, GRAFTRACE_SUB_BUFFER_FULL);
		at = (uint64_t)((char *)gt_arena_sub_buffer(arena, i) - (char *)arena->memory);
		error = copy_range(process, from, arena, at, gt_arena_bytes_of(arena, i));
	}
	return error;
}

static int copy_arena(const struct gt_process *process, uint64_t from, struct gt_arena *arena,
		      struct gt_message *message)
{
	struct graftrace_arena header;
	int error = gt_process_read(process, from, &header, sizeof(header));

	if (error)
		return gt_fail(message, error, "its memory cannot be read");
	error = gt_arena_copy(arena, &header, message);
	if (error)
		return error;
	arena->number = gt_arena_number_of_writer(header.generations + 1);
	error = arena->number < GT_ARENAS ? copy_rest(process, from, arena) : GT_EFORMAT;
	if (error) {
		gt_arena_destroy(arena);
		return gt_fail(message, error, "its memory cannot be read");
	}
	return 0;
}

int gt_leftover_read(pid_t pid, struct gt_leftover **out, struct gt_message *message)
{
	struct gt_leftover *leftover = NULL;
	struct gt_process process;
	uint64_t image, arena = 0;
	struct gt_maps maps;
	int error;

	*out = NULL;
	error = gt_process_open(&process, pid, message);
	if (error)
		return error;
	error = gt_process_maps(pid, &maps, message);
	if (error)
		goto close;
	image = gt_detach_find(&process, &maps);
	gt_maps_free(&maps);
	if (!image || gt_detach_host(&process, image))
		goto close;
	arena = gt_detach_arena(&process, image);
	if (!arena)
		goto close;
	leftover = calloc(1, sizeof(*leftover));
	error = leftover != NULL ? copy_arena(&process, arena, &leftover->arena, message)
				 : gt_fail(message, GT_ENOMEM, "no memory for a copy of it");
	if (error) {
		free(leftover);
		goto close;
	}
	memcpy(leftover->recording, leftover->arena.memory->recording,
	       sizeof(leftover->recording) - 1);
	*out = leftover;
close:
	gt_process_close(&process);
	return error;
}

const char *gt_leftover_recording(const struct gt_leftover *leftover)
{
	return leftover->recording;
}

uint64_t gt_leftover_tsc(const struct gt_leftover *leftover)
{
	return leftover->arena.memory->recording_tsc;
}

uint64_t gt_leftover_ns(const struct gt_leftover *leftover)
{
	return leftover->arena.memory->recording_ns;
}

uint32_t gt_leftover_writers(const struct gt_leftover *leftover)
{
	return leftover->arena.memory->generations - gt_arena_writers_from(&leftover->arena);
}

int gt_leftover_give(struct gt_leftover *leftover, const struct gt_sink *sink, uint64_t *calls,
		     struct gt_message *message)
{
	struct gt_drain drain;
	struct timespec now;
	uint64_t now_ns;
	int result;

	*calls = 0;
	result = gt_drain_init(&drain, &leftover->arena, GRAFTRACE_MODE_DRAIN, sink, message);
	if (result)
		return result;
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	drain.begun_ns = 0; /* its counts have had all the time since the machine started */
	result = gt_drain_scan(&drain);
	/* In the copy nobody writes any more. */
	for (uint32_t i = 0; !result && i < drain.live_count; i++)
		gt_drain_end_writer(&drain, drain.live[i], true);
	for (int pass = 0; result >= 0 && pass < PASSES; pass++)
		result = gt_drain_pass(&drain, now_ns + (uint64_t)pass * PASS_NS);
	*calls = drain.calls;
	gt_drain_fini(&drain);
	return result < 0 ? gt_fail(message, result, "it cannot be written") : 0;
}

void gt_leftover_free(struct gt_leftover *leftover)
{
	if (leftover == NULL)
		return;
	gt_arena_destroy(&leftover->arena);
	free(leftover);
}
