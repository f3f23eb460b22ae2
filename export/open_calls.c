/* SPDX-License-Identifier: MIT */
/*
 * Open calls: see open_calls.h. Each writer is decoded from a few sub-buffers before its end; the
 * calls that the decoder then has open are the result.
 */
#include "export/open_calls.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/decode_fast.h"
#include "core/trace/message.h"
#include "port/host/memory.h"

#define SUB_BUFFERS 64 /* the most of each writer that are decoded */
#define INDENT_MAX  40

/* Makes room for one more in an array of `size` bytes each. */
static bool grow(void **array, uint32_t count, uint32_t *room, size_t size)
{
	uint32_t wanted = *room != 0 ? *room * 2 : 16;
	void *grown;

	if (count < *room)
		return true;
	grown = realloc(*array, wanted * size);
	if (grown == NULL)
		return false;
	*array = grown;
	*room = wanted;
	return true;
}

static struct gt_open_thread *thread_of(struct gt_open_calls *open, const struct gt_writer *writer,
					const struct gt_record *record, uint64_t last)
{
	struct gt_open_thread *thread;

	if (open->count > 0) {
		thread = &open->threads[open->count - 1];
		if (thread->writer.generation == writer->generation &&
		    thread->context == record->context)
			return thread;
	}
	if (!grow((void **)&open->threads, open->count, &open->room, sizeof(*open->threads)))
		return NULL;
	thread = &open->threads[open->count++];
	*thread = (struct gt_open_thread){ .writer = *writer,
					   .last = last,
					   .context = record->context };
	return thread;
}

/* Takes the open calls of each context, innermost first. */
static int take_open(struct gt_open_calls *open, struct gt_decode *decode,
		     const struct gt_writer *writer)
{
	uint64_t last = decode->clock;
	struct gt_record record;

	gt_decode_end(decode);
	while (gt_decode_next(decode, &record) != GT_RECORD_NONE) {
		struct gt_open_thread *thread;

		if (record.kind != GT_RECORD_OPEN)
			continue;
		thread = thread_of(open, writer, &record, last);
		if (thread == NULL || !grow((void **)&thread->calls, thread->count, &thread->room,
					    sizeof(*thread->calls)))
			return GT_ENOMEM;
		thread->calls[thread->count++] = (struct gt_open_call){
			.function = record.function,
			.depth = record.depth,
			.start = record.start,
		};
	}
	if (last > open->last)
		open->last = last;
	return 0;
}

static int read_writer(struct gt_open_calls *open, struct gt_decode *decode, uint32_t index,
		       const struct gt_writer *writer, void *buffer)
{
	struct gt_target *target = open->target;
	uint64_t sequence = writer->first;
	struct gt_record record;

	if (writer->next - writer->first > SUB_BUFFERS)
		sequence = writer->next - SUB_BUFFERS;
	gt_decode_reset(decode);
	for (; sequence < writer->next; sequence++) {
		const struct graftrace_sub_buffer *sub_buffer;
		int64_t words;

		sequence = gt_target_next_sequence(target, index, sequence);
		if (sequence >= writer->next)
			break;
		words = target->ring->sub_buffer(target, index, sequence, buffer, &sub_buffer);
		if (words < 0 ||
		    gt_decode_feed(decode, sub_buffer, (uint32_t)words, false, NULL) != 0)
			continue;
		while (gt_decode_next(decode, &record) != GT_RECORD_NONE)
			;
	}
	return take_open(open, decode, writer);
}

static int later_first(const void *a, const void *b)
{
	const struct gt_open_thread *x = a;
	const struct gt_open_thread *y = b;

	if (x->last != y->last)
		return x->last < y->last ? 1 : -1;
	if (x->writer.generation != y->writer.generation)
		return x->writer.generation < y->writer.generation ? -1 : 1;
	return (x->context > y->context) - (x->context < y->context);
}

int gt_open_calls_make(struct gt_target *target, uint32_t pid, struct gt_open_calls **out,
		       struct gt_message *message)
{
	struct gt_open_calls *open = calloc(1, sizeof(*open));
	void *buffer = malloc(target->sub_buffer_bytes);
	uint32_t count = target->ring->writer_count(target);
	struct gt_decode decode;
	int error = open != NULL && buffer != NULL ? 0 : GT_ENOMEM;

	*out = NULL;
	gt_decode_init(&decode, &gt_host_memory);
	if (open != NULL)
		open->target = target;
	for (uint32_t i = 0; i < count && error == 0; i++) {
		struct gt_writer writer;

		if (target->ring->writer(target, i, &writer) != 0 ||
		    (pid != 0 && writer.pid != pid))
			continue;
		error = read_writer(open, &decode, i, &writer, buffer);
	}
	gt_decode_fini(&decode);
	free(buffer);
	if (error != 0) {
		gt_message_set(message, "no memory for the calls that were open");
		gt_open_calls_destroy(open);
		return error;
	}
	for (uint32_t i = 0; i < open->count; i++) {
		struct gt_open_thread *thread = &open->threads[i];

		for (uint32_t a = 0, b = thread->count - 1; a < b; a++, b--) {
			struct gt_open_call call = thread->calls[a];

			thread->calls[a] = thread->calls[b];
			thread->calls[b] = call;
		}
	}
	if (open->count > 1)
		qsort(open->threads, open->count, sizeof(*open->threads), later_first);
	*out = open;
	return 0;
}

void gt_open_calls_destroy(struct gt_open_calls *open)
{
	if (open == NULL)
		return;
	for (uint32_t i = 0; i < open->count; i++)
		free(open->threads[i].calls);
	free(open->threads);
	free(open);
}

/* Prints "1.234 ms": the resolution is a microsecond. */
static void print_ms(FILE *out, uint64_t ns)
{
	if (ns < 1000)
		fprintf(out, "less than 1 us");
	else
		fprintf(out, "%" PRIu64 ".%03" PRIu64 " ms", ns / 1000000, ns / 1000 % 1000);
}

static void print_call(FILE *out, const struct gt_open_calls *open, const struct gt_open_call *call)
{
	struct gt_function function = { .name = "?", .object = "" };
	int indent = call->depth < INDENT_MAX / 2 ? (int)call->depth * 2 : INDENT_MAX;
	uint64_t ns = 0;

	if (call->function == 0) {
		fprintf(out, "    … calls around these that are not known\n");
		return;
	}
	if (gt_target_function(open->target, call->function, &function) != 0)
		function.name = "?";
	if (open->last > call->start)
		ns = gt_clock_duration_ns(&open->target->clock, open->last - call->start);
	fprintf(out, "    %*s%s  (for ", indent, "", function.name);
	print_ms(out, ns);
	fprintf(out, ")\n");
}

static void print_thread(FILE *out, const struct gt_open_calls *open,
			 const struct gt_open_thread *thread, uint32_t calls)
{
	uint32_t first = calls != 0 && thread->count > calls ? thread->count - calls : 0;
	uint64_t idle = gt_clock_duration_ns(&open->target->clock, open->last - thread->last);

	fprintf(out, "  thread %u of process %u (%.15s), last record ", thread->writer.tid,
		thread->writer.pid, thread->writer.comm);
	if (thread->last == open->last) {
		fprintf(out, "of all:\n");
	} else {
		print_ms(out, idle);
		fprintf(out, " before:\n");
	}
	if (first > 0)
		fprintf(out, "    … %u calls around these\n", first);
	for (uint32_t i = first; i < thread->count; i++)
		print_call(out, open, &thread->calls[i]);
}

int gt_open_calls_format(const struct gt_open_calls *open, uint32_t threads, uint32_t calls,
			 char **text, size_t *bytes)
{
	FILE *out = open_memstream(text, bytes);
	uint32_t shown = threads != 0 && open->count > threads ? threads : open->count;

	if (out == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < shown; i++)
		print_thread(out, open, &open->threads[i], calls);
	if (shown < open->count)
		fprintf(out, "  … %u threads more\n", open->count - shown);
	if (open->count == 0)
		fprintf(out, "  no traced call\n");
	if (fclose(out) != 0) {
		free(*text);
		*text = NULL;
		return GT_ENOMEM;
	}
	return 0;
}
