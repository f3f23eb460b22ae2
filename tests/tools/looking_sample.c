/* SPDX-License-Identifier: MIT */
/*
 * Makes a recording of a program that never ran, and says what is true of it, for the tests of the
 * commands that look at recordings:
 *
 *	looking_sample FILE SEED THREADS CALLS_PER_THREAD [LOST_SWITCHES]
 *
 * Threads call random functions, recurse, leave calls by longjmp, run coroutines, and end in the
 * middle of calls. The truth is counted while calls are made up, apart from any reader; it goes to
 * stdout as JSON: for each function its calls, those that did not return, the sums of times (ns).
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/writer.h"

#define FUNCTIONS 40
#define DEPTH	  60
#define WORDS	  500
#define CONTEXTS  3
#define START	  1000000000ull

struct call {
	uint32_t function;
	uint64_t start;
	uint64_t children;
	bool in_this; /* entered in this sub-buffer, since the context was switched in */
};

struct context {
	struct call calls[DEPTH];
	uint32_t depth;
};

struct thread {
	struct context contexts[CONTEXTS];
	uint32_t running;
	uint64_t clock;
	uint64_t sequence;
	uint32_t used;
	struct {
		struct graftrace_sub_buffer header;
		uint64_t words[WORDS];
	} sub_buffer;
};

static struct {
	uint64_t calls, not_returned, total, self, minimum, maximum;
} truth[FUNCTIONS + 1];

static uint64_t random_state;
static const struct gt_sink *sink;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((random_state >> 33) % below);
}

static void open_sub_buffer(struct thread *thread, uint32_t index)
{
	struct graftrace_sub_buffer *header = &thread->sub_buffer.header;
	struct context *context = &thread->contexts[thread->running];
	memset(&thread->sub_buffer, 0, sizeof(thread->sub_buffer));
	thread->used = 0;
	header->magic = GRAFTRACE_SUB_BUFFER_MAGIC;
	header->bytes = sizeof(thread->sub_buffer);
	header->stream = index;
	header->generation = index + 1;
	header->pid = 500;
	header->tid = 500 + index;
	header->cpu = index % 3;
	header->context = thread->running;
	header->sequence = thread->sequence++;
	header->clock = thread->clock;
	header->depth = context->depth;
	header->tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	uint32_t first =
		context->depth > GRAFTRACE_OPEN_CALLS ? context->depth - GRAFTRACE_OPEN_CALLS : 0;
	for (uint32_t depth = first; depth < context->depth; depth++)
		header->open[header->open_calls++] =
			(struct graftrace_open_call){ .clock = context->calls[depth].start,
						      .function = context->calls[depth].function,
						      .depth = depth };
	for (uint32_t c = 0; c < CONTEXTS; c++)
		for (uint32_t depth = 0; depth < DEPTH; depth++)
			thread->contexts[c].calls[depth].in_this = false;
}

static void close_sub_buffer(struct thread *thread)
{
	thread->sub_buffer.header.used = thread->used;
	if (thread->used)
		sink->sub_buffer(sink->data, &thread->sub_buffer.header, thread->used);
}

static void word(struct thread *thread, uint64_t value)
{
	thread->sub_buffer.words[thread->used++] = value;
}

static void pass_time(struct thread *thread)
{
	uint64_t before = thread->clock;
	thread->clock += 1 + draw(draw(100) ? 3000 : 2000000000);
	if (before >> 32 != thread->clock >> 32)
		word(thread, graftrace_special_word(GRAFTRACE_SPECIAL_CLOCK,
						    (uint32_t)(thread->clock >> 32)));
}

static bool is_open(const struct context *context, uint32_t depth, uint32_t function)
{
	while (depth-- > 0)
		if (context->calls[depth].function == function)
			return true;
	return false;
}

static void enter(struct thread *thread)
{
	struct context *context = &thread->contexts[thread->running];
	uint32_t function = 1 + draw(FUNCTIONS);
	pass_time(thread);
	context->calls[context->depth++] =
		(struct call){ .function = function, .start = thread->clock, .in_this = true };
	word(thread, graftrace_word(function, 0, (uint32_t)thread->clock));
	truth[function].calls++;
	truth[function].not_returned++;
}

static void leave(struct thread *thread)
{
	struct context *context = &thread->contexts[thread->running];
	pass_time(thread);
	const struct call *call = &context->calls[--context->depth];
	uint64_t return_word = graftrace_word(call->function, 1, (uint32_t)thread->clock);
	if (call->in_this) {
		word(thread, return_word);
	} else {
		word(thread, graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
						    GRAFTRACE_EVENT_LONG_RETURN << 16 | 3));
		word(thread, return_word);
		word(thread, call->start);
		word(thread, context->depth);
	}
	uint64_t duration = thread->clock - call->start;
	truth[call->function].not_returned--;
	truth[call->function].self += duration - call->children;
	if (!is_open(context, context->depth, call->function))
		truth[call->function].total += duration;
	if (duration > truth[call->function].maximum)
		truth[call->function].maximum = duration;
	if (!truth[call->function].minimum || duration < truth[call->function].minimum)
		truth[call->function].minimum = duration;
	if (context->depth)
		context->calls[context->depth - 1].children += duration;
}

/* longjmp: at once, so that the calls that are left ran until the last record. */
static void unwind(struct thread *thread)
{
	struct context *context = &thread->contexts[thread->running];
	uint32_t count = 1 + draw(context->depth);
	word(thread, graftrace_special_word(GRAFTRACE_SPECIAL_UNWOUND, count));
	while (count--) {
		uint64_t ran = thread->clock - context->calls[--context->depth].start;
		if (context->depth)
			context->calls[context->depth - 1].children += ran;
	}
}

static void switch_context(struct thread *thread)
{
	thread->running = draw(CONTEXTS);
	word(thread, graftrace_special_word(GRAFTRACE_SPECIAL_CONTEXT, thread->running));
	for (uint32_t depth = 0; depth < DEPTH; depth++)
		thread->contexts[thread->running].calls[depth].in_this = false;
}

static void run_thread(uint32_t index, uint32_t calls)
{
	struct thread *thread = calloc(1, sizeof(*thread));
	struct gt_writer writer = { .generation = index + 1, .pid = 500, .tid = 500 + index };
	if (!thread)
		abort();
	snprintf(writer.comm, sizeof(writer.comm), "worker%u", index % 100);
	thread->clock = writer.start = START + index * 1000;
	sink->writer(sink->data, &writer);
	open_sub_buffer(thread, index);
	for (uint32_t made = 0; made < calls;) {
		struct context *context = &thread->contexts[thread->running];
		if (thread->used > WORDS - 8) {
			close_sub_buffer(thread);
			open_sub_buffer(thread, index);
		}
		uint32_t what = draw(200);
		if (what == 0 && context->depth) {
			unwind(thread);
		} else if (what == 1) {
			switch_context(thread);
		} else if (context->depth && (what < 100 || context->depth == DEPTH)) {
			leave(thread);
		} else {
			enter(thread);
			made++;
		}
	}
	close_sub_buffer(thread);
	writer.end = thread->clock;
	writer.next = thread->sequence;
	sink->writer(sink->data, &writer);
	free(thread);
}

int main(int argc, char **argv)
{
	static const char *const arguments[] = { "./prog", NULL };
	struct gt_function functions[FUNCTIONS];
	char names[FUNCTIONS][16];
	struct gt_message message = { "" };
	struct gt_file_writer *file;
	if (argc != 5 && argc != 6)
		return 2;
	const struct gt_file_writer_options options = {
		.size = sizeof(options),
		.path = argv[1],
		.clock = { .mult = 1 },
		.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
		.cpu_count = 3,
		.sub_buffer_bytes = sizeof(((struct thread *)0)->sub_buffer),
		.argv = arguments,
		.program = "/bin/prog",
	};
	random_state = strtoull(argv[2], NULL, 10);
	if (gt_file_writer_create(&options, &file, &message) != 0) {
		fprintf(stderr, "looking_sample: %s\n", message.text);
		return 1;
	}
	sink = gt_file_writer_sink(file);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		snprintf(names[i], sizeof(names[i]), "call_%u", i + 1);
		functions[i] = (struct gt_function){ .name = names[i],
						     .object = "/bin/prog",
						     .address = 0x1000 + i * 16,
						     .size = 16 };
	}
	sink->functions(sink->data, 500, 1, functions, FUNCTIONS);
	if (argc == 6)
		sink->switches(sink->data, 1, strtoull(argv[5], NULL, 10), NULL, 0);
	uint32_t threads = (uint32_t)atoi(argv[3]);
	for (uint32_t i = 0; i < threads; i++)
		run_thread(i, (uint32_t)atoi(argv[4]));
	const struct gt_file_writer_totals totals = { .threads = threads, .processes = 1 };
	if (gt_file_writer_finish(file, &totals, &message) != 0) {
		fprintf(stderr, "looking_sample: %s\n", message.text);
		return 1;
	}
	gt_file_writer_destroy(file);
	printf("{");
	for (uint32_t i = 1; i <= FUNCTIONS; i++)
		printf("%s\"call_%u\": {\"calls\": %llu, \"not_returned\": %llu, \"total\": %llu, "
		       "\"self\": %llu, \"minimum\": %llu, \"maximum\": %llu}",
		       i > 1 ? ", " : "", i, (unsigned long long)truth[i].calls,
		       (unsigned long long)truth[i].not_returned,
		       (unsigned long long)truth[i].total, (unsigned long long)truth[i].self,
		       (unsigned long long)truth[i].minimum, (unsigned long long)truth[i].maximum);
	printf("}\n");
	return 0;
}
