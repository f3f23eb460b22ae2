/* SPDX-License-Identifier: MIT */
/* See live_marks.h. */
#define _GNU_SOURCE /* sched_getcpu */
#include "serve/live/live_marks.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/trace/decode.h"
#include "core/trace/word_walk.h"

#define SUB_BUFFERS	 64
#define SUB_BUFFER_BYTES GT_LIVE_MARKS_BYTES
#define WORDS		 ((SUB_BUFFER_BYTES - sizeof(struct graftrace_sub_buffer)) / 8)
#define FIRST_NUMBER	 0xf0000000u /* of the marks' writers, above all threads' numbers */

struct gt_live_marks {
	pthread_mutex_t lock;
	struct gt_control_writer of;
	struct gt_writer writer;
	struct graftrace_sub_buffer *sub_buffers[SUB_BUFFERS]; /* by sequence; NULL: none yet */
	uint32_t used;					       /* words in the newest */
};

static struct graftrace_sub_buffer *at(struct gt_live_marks *marks, uint64_t sequence)
{
	return marks->sub_buffers[sequence % SUB_BUFFERS];
}

struct gt_live_marks *gt_live_marks_create(const struct gt_control_writer *writer, uint32_t number)
{
	struct gt_live_marks *marks = calloc(1, sizeof(*marks));

	if (marks == NULL)
		return NULL;
	pthread_mutex_init(&marks->lock, NULL);
	marks->of = *writer;
	marks->writer.generation = FIRST_NUMBER + number;
	marks->writer.pid = writer->pid != 0 ? writer->pid : (uint32_t)getpid();
	marks->writer.tid = writer->tid != 0 ? writer->tid : marks->writer.pid;
	if (writer->comm[0] != '\0')
		memcpy(marks->writer.comm, writer->comm, sizeof(writer->comm));
	else
		snprintf(marks->writer.comm, sizeof(marks->writer.comm), "graftrace");
	marks->writer.start = __builtin_ia32_rdtsc();
	return marks;
}

void gt_live_marks_destroy(struct gt_live_marks *marks)
{
	for (int i = 0; i < SUB_BUFFERS; i++)
		free(marks->sub_buffers[i]);
	pthread_mutex_destroy(&marks->lock);
	free(marks);
}

bool gt_live_marks_are_of(struct gt_live_marks *marks, const struct gt_control_writer *writer)
{
	return marks->of.tid == writer->tid && marks->of.pid == writer->pid &&
	       memcmp(marks->of.comm, writer->comm, sizeof(writer->comm)) == 0;
}

static void close_newest(struct gt_live_marks *marks)
{
	struct graftrace_sub_buffer *newest;

	if (marks->writer.next == marks->writer.first)
		return;
	newest = at(marks, marks->writer.next - 1);
	newest->used = marks->used;
}

static int open_next(struct gt_live_marks *marks, uint16_t tracer, bool overwrite)
{
	struct graftrace_sub_buffer **place;
	int cpu = sched_getcpu();

	close_newest(marks);
	if (marks->writer.next - marks->writer.first == SUB_BUFFERS) {
		struct graftrace_sub_buffer *oldest = at(marks, marks->writer.first);

		if (!overwrite) {
			marks->writer.lost[GRAFTRACE_LOST_FULL]++;
			return GT_ENOSPC;
		}
		marks->writer.lost[GRAFTRACE_LOST_OVERRUN] +=
			gt_words_records(oldest, 0, oldest->used);
		marks->writer.first++;
	}
	place = &marks->sub_buffers[marks->writer.next % SUB_BUFFERS];
	if (*place == NULL)
		*place = malloc(SUB_BUFFER_BYTES);
	if (*place == NULL)
		return GT_ENOMEM;
	memset(*place, 0, SUB_BUFFER_BYTES);
	(*place)->magic = GRAFTRACE_SUB_BUFFER_MAGIC;
	(*place)->bytes = SUB_BUFFER_BYTES;
	(*place)->generation = marks->writer.generation;
	(*place)->pid = marks->writer.pid;
	(*place)->tid = marks->writer.tid;
	(*place)->cpu = cpu >= 0 ? (uint32_t)cpu : UINT32_MAX;
	(*place)->sequence = marks->writer.next++;
	(*place)->clock = __builtin_ia32_rdtsc();
	(*place)->tracer = tracer;
	memcpy((*place)->lost, marks->writer.lost, sizeof((*place)->lost));
	marks->used = 0;
	return 0;
}

/* A sub-buffer belongs to one CPU: a mark from another CPU begins a new one. */
static bool fits(struct gt_live_marks *marks, uint16_t tracer, uint32_t words)
{
	const struct graftrace_sub_buffer *newest;
	int cpu = sched_getcpu();

	if (marks->writer.next == marks->writer.first)
		return false;
	newest = at(marks, marks->writer.next - 1);
	return newest->tracer == tracer && newest->used == 0 && marks->used + words <= WORDS &&
	       (cpu < 0 || newest->cpu == (uint32_t)cpu);
}

int gt_live_marks_put(struct gt_live_marks *marks, enum graftrace_tracer current, const char *bytes,
		      size_t count, bool raw, bool overwrite)
{
	uint16_t tracer = current == GRAFTRACE_TRACER_FUNCTION_GRAPH
				  ? GRAFTRACE_TRACER_FUNCTION_GRAPH
				  : GRAFTRACE_TRACER_FUNCTION;
	/* The event's word, the clock, the text and at least one NUL. */
	uint32_t words = 2 + (uint32_t)(count + 8) / 8;
	uint64_t *place;
	int error = 0;

	if (raw)
		words++; /* the word with the text's length */
	words += words & 1;
	pthread_mutex_lock(&marks->lock);
	if (!fits(marks, tracer, words))
		error = open_next(marks, tracer, overwrite);
	if (error == 0) {
		struct graftrace_sub_buffer *newest = at(marks, marks->writer.next - 1);
		uint32_t type = raw ? GRAFTRACE_EVENT_MARKER_RAW : GRAFTRACE_EVENT_MARKER;

		place = (uint64_t *)(newest + 1) + marks->used;
		place[0] =
			graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, type << 16 | (words - 1));
		place[1] = __builtin_ia32_rdtsc();
		if (raw)
			place[2] = count;
		memcpy(place + (raw ? 3 : 2), bytes, count);
		marks->used += words;
	}
	pthread_mutex_unlock(&marks->lock);
	return error;
}

int gt_live_marks_writer(struct gt_live_marks *marks, struct gt_writer *writer)
{
	pthread_mutex_lock(&marks->lock);
	*writer = marks->writer;
	pthread_mutex_unlock(&marks->lock);
	return 0;
}

int64_t gt_live_marks_copy(struct gt_live_marks *marks, uint64_t sequence, void *buffer,
			   const struct graftrace_sub_buffer **bytes)
{
	int64_t words = GT_ENOENT;

	pthread_mutex_lock(&marks->lock);
	if (sequence >= marks->writer.first && sequence < marks->writer.next) {
		struct graftrace_sub_buffer *from = at(marks, sequence);

		memcpy(buffer, from, SUB_BUFFER_BYTES);
		*bytes = buffer;
		words = from->used != 0 ? (int64_t)from->used : (int64_t)WORDS;
	}
	pthread_mutex_unlock(&marks->lock);
	return words;
}

int gt_live_marks_consume(struct gt_live_marks *marks, uint64_t sequence)
{
	int error = GT_ENOENT;

	pthread_mutex_lock(&marks->lock);
	if (sequence >= marks->writer.first && sequence < marks->writer.next &&
	    at(marks, sequence)->used != 0) {
		marks->writer.first = sequence + 1;
		error = 0;
	}
	pthread_mutex_unlock(&marks->lock);
	return error;
}
