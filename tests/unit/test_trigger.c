/* SPDX-License-Identifier: MIT */
/*
 * Triggers in this process's own engine: what they do, when, and how often; in the thread that
 * calls and for all others. Each test runs in a child of its own, since an engine lives as long as
 * its process.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include "tests/unit/engine.h"
#include "tests/unit/engine_child.h"

/* Ticks; no call below takes as long by itself. */
#define LONG  (1ull << 40)
#define SHORT 1ull

static volatile unsigned noise;

TRACED static unsigned inner(unsigned n)
{
	noise += n;
	return noise;
}

TRACED static unsigned watched(unsigned n)
{
	unsigned result = inner(n) + 1;
	__asm__ volatile("" ::: "memory");
	return result;
}

TRACED static unsigned outer(unsigned n)
{
	unsigned result = watched(n) + 1;
	__asm__ volatile("" ::: "memory");
	return result;
}

static uint32_t inner_number, watched_number, outer_number;

static void start(enum graftrace_tracer tracer)
{
	const struct engine_options options = {
		.sub_buffers = 256,
		.sub_buffer_bytes = 32768,
		.tracer = tracer,
		.mode = GRAFTRACE_MODE_RING,
	};
	engine_start(&options);
	engine_arena()->host_alive = 1;
	inner_number = engine_patch((void *)inner, ENGINE_ORDINARY);
	watched_number = engine_patch((void *)watched, ENGINE_TRIGGER);
	outer_number = engine_patch((void *)outer, ENGINE_ORDINARY);
}

static uint64_t entries(uint32_t function)
{
	uint64_t in, out;
	engine_count(function, &in, &out);
	return in;
}

static uint64_t returns(uint32_t function)
{
	uint64_t in, out;
	engine_count(function, &in, &out);
	return out;
}

static void traceoff_body(void)
{
	start(GRAFTRACE_TRACER_FUNCTION_GRAPH);
	struct graftrace_trigger *off =
		engine_trigger(watched_number, GRAFTRACE_TRIGGER_TRACEOFF, 0, 0, 2);
	for (unsigned i = 0; i < 4; i++) {
		outer(i);
		engine_set_on(true);
	}
	/* The call that switches off is there; what it calls is not, twice. */
	CHECK_EQUAL(entries(watched_number), 4);
	CHECK_EQUAL(entries(inner_number), 2);
	CHECK_EQUAL(returns(watched_number), 2);
	CHECK_EQUAL(*engine_hits(off), 2 + 2);
	struct graftrace_letter mail;
	CHECK_EQUAL(engine_mail(&mail), 2);
	CHECK_EQUAL(mail.kind, GRAFTRACE_MAIL_TRIGGER);
	CHECK_EQUAL(mail.argument[0], (uint64_t)GRAFTRACE_TRIGGER_TRACEOFF << 32 | watched_number);
}

TEST_IN_CHILD(traceoff_stops_recording_before_the_next_call, traceoff_body)

static void traceon_body(void)
{
	start(GRAFTRACE_TRACER_FUNCTION_GRAPH);
	struct graftrace_trigger *on =
		engine_trigger(watched_number, GRAFTRACE_TRIGGER_TRACEON, 0, 0, 1);
	engine_set_on(false);
	inner(1);
	outer(1);
	CHECK_EQUAL(entries(outer_number), 0);
	CHECK_EQUAL(entries(watched_number), 1);
	CHECK_EQUAL(entries(inner_number), 1);
	CHECK_EQUAL(returns(watched_number), 1);
	/* it is on already: no hit is used up; off again: none is left */
	outer(1);
	CHECK_EQUAL(*engine_hits(on), 1);
	engine_set_on(false);
	outer(1);
	CHECK_EQUAL(entries(watched_number), 2);
	CHECK_EQUAL(engine_arena()->tracing_on, 0);
}

TEST_IN_CHILD(traceon_starts_recording_with_the_call_itself, traceon_body)

static pthread_barrier_t barrier;

static void *other_thread(void *data)
{
	(void)data;
	inner(0);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	inner(0);
	return NULL;
}

static void threads_body(void)
{
	pthread_t thread;
	start(GRAFTRACE_TRACER_FUNCTION_GRAPH);
	engine_trigger(watched_number, GRAFTRACE_TRIGGER_STOP, 0, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, other_thread, NULL);
	pthread_barrier_wait(&barrier);
	outer(1);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	outer(1);
	CHECK_EQUAL(entries(inner_number), 1);
	CHECK_EQUAL(entries(outer_number), 1);
	struct graftrace_letter mail;
	CHECK_EQUAL(engine_mail(&mail), 1);
}

TEST_IN_CHILD(stopping_stops_every_thread_and_is_told_once, threads_body)

static void late_body(void)
{
	struct graftrace_letter mail;
	start(GRAFTRACE_TRACER_FUNCTION_GRAPH);
	struct graftrace_trigger *stop =
		engine_trigger(watched_number, GRAFTRACE_TRIGGER_STOP, LONG, 0, 0);
	for (unsigned i = 0; i < 100; i++)
		outer(i);
	CHECK_EQUAL(*engine_hits(stop), 0);
	CHECK_EQUAL(engine_mail(&mail), 0);
	stop->longer_than = SHORT;
	outer(1);
	outer(1);
	CHECK_EQUAL(engine_mail(&mail), 1);
	CHECK_EQUAL(mail.argument[3] > SHORT, 1);
	CHECK_EQUAL(mail.argument[2] > mail.argument[3], 1);
	/* the return that was too late is the last record */
	CHECK_EQUAL(entries(watched_number), 101);
	CHECK_EQUAL(returns(watched_number), 101);
	CHECK_EQUAL(returns(outer_number), 100);
}

TEST_IN_CHILD(a_late_return_acts_and_an_early_one_does_not, late_body)

static void nth_body(void)
{
	struct graftrace_letter mail;
	start(GRAFTRACE_TRACER_FUNCTION_GRAPH);
	engine_trigger(watched_number, GRAFTRACE_TRIGGER_STOP, 0, 99, 1);
	for (unsigned i = 0; i < 99; i++)
		outer(i);
	CHECK_EQUAL(engine_mail(&mail), 0);
	outer(1);
	outer(1);
	CHECK_EQUAL(engine_mail(&mail), 1);
	CHECK_EQUAL(entries(watched_number), 100);
}

TEST_IN_CHILD(the_nth_hit_acts, nth_body)

static jmp_buf jump;

/* Entered and left by longjmp, which the engine sees at the next entry above. */
TRACED static void leaves(void)
{
	noise++;
	longjmp(jump, 1);
}

static void unwound_body(void)
{
	struct graftrace_letter mail;
	start(GRAFTRACE_TRACER_FUNCTION_GRAPH);
	uint32_t number = engine_patch((void *)leaves, ENGINE_TRIGGER);
	engine_trigger(number, GRAFTRACE_TRIGGER_DUMP, SHORT, 0, 1);
	engine_arena()->host_alive = 0; /* nobody answers */
	struct graftrace_trigger *dump = graftrace_arena_triggers(engine_arena());
	if (setjmp(jump) == 0)
		leaves();
	outer(1);
	while (dump->function != number)
		dump++;
	CHECK_EQUAL(*engine_hits(dump), 1);
	CHECK_EQUAL(engine_mail(&mail), 0);
}

TEST_IN_CHILD(a_call_that_never_returns_is_late_when_it_is_taken_off, unwound_body)

/* Counts the stack traces in the ring. Of the last one: its calls' numbers, innermost first, and how many. */
static unsigned stack_traces(uint32_t *functions, size_t room, size_t *calls)
{
	struct graftrace_arena *arena = engine_arena();
	unsigned found = 0;
	for (uint32_t i = 0; i < arena->sub_buffer_count; i++) {
		struct graftrace_sub_buffer *sub = graftrace_arena_sub_buffer(arena, i);
		uint64_t *words = graftrace_sub_buffer_words(sub);
		uint32_t count = (arena->sub_buffer_bytes - (uint32_t)sizeof(*sub)) / 8;
		for (uint32_t w = 0; w < count; w++) {
			uint32_t argument = graftrace_word_clock(words[w]);
			if (words[w] != graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, argument) ||
			    argument >> 16 != GRAFTRACE_EVENT_STACK)
				continue;
			found++;
			*calls = (argument & 0xffff) - 1;
			for (size_t c = 0; c < *calls && c < room; c++)
				functions[c] = graftrace_word_function(words[w + 2 + c]);
		}
	}
	return found;
}

static void stack_body(void)
{
	uint32_t functions[8] = { 0 };
	size_t calls = 0;
	start(GRAFTRACE_TRACER_FUNCTION_GRAPH);
	engine_trigger(watched_number, GRAFTRACE_TRIGGER_STACKTRACE, 0, 1, 1);
	for (unsigned i = 0; i < 4; i++)
		outer(i);
	CHECK_EQUAL(stack_traces(functions, 8, &calls), 1);
	CHECK_EQUAL(calls, 2);
	CHECK_EQUAL(functions[0], watched_number);
	CHECK_EQUAL(functions[1], outer_number);
	CHECK_EQUAL(entries(watched_number), 4);
	CHECK_EQUAL(returns(outer_number), 4);
}

TEST_IN_CHILD(a_stack_trace_has_the_open_calls, stack_body)

/* Without a tracer no frames are kept, so there is no call to show. The sub-buffer is still open. */
static void empty_stack_body(void)
{
	uint32_t functions[8] = { 0 };
	size_t calls = 0;
	start(GRAFTRACE_TRACER_FUNCTION_GRAPH);
	struct graftrace_trigger *stack =
		engine_trigger(watched_number, GRAFTRACE_TRIGGER_STACKTRACE, 0, 0, 0);
	outer(1);
	engine_set_tracer(GRAFTRACE_TRACER_NOP, 0);
	for (unsigned i = 0; i < 3; i++)
		outer(i);
	CHECK_EQUAL(*engine_hits(stack), 4);
	CHECK_EQUAL(stack_traces(functions, 8, &calls), 1);
	CHECK_EQUAL(calls, 2);
}

static void without_open_calls_no_stack_trace_is_written(void **state)
{
	(void)state;
	in_child(empty_stack_body);
}

static void silent_body(void)
{
	start(GRAFTRACE_TRACER_FUNCTION_GRAPH);
	struct graftrace_trigger *off =
		engine_trigger(watched_number, GRAFTRACE_TRIGGER_TRACEOFF, 0, 1, 1);
	off->kind = GRAFTRACE_ENTRY_SILENT;
	outer(1);
	CHECK_EQUAL(entries(watched_number), 0);
	CHECK_EQUAL(entries(inner_number), 1);
	outer(1);
	CHECK_EQUAL(entries(inner_number), 1);
	CHECK_EQUAL(engine_arena()->tracing_on, 0);
}

TEST_IN_CHILD(a_function_that_no_filter_names_acts_unrecorded, silent_body)

static void tracers_body(void)
{
	start(GRAFTRACE_TRACER_FUNCTION);
	struct graftrace_trigger *stack =
		engine_trigger(watched_number, GRAFTRACE_TRIGGER_STACKTRACE, 0, 0, 0);
	engine_trigger(watched_number, GRAFTRACE_TRIGGER_STOP, 0, 9, 1);
	for (unsigned i = 0; i < 5; i++)
		outer(i);
	engine_set_tracer(GRAFTRACE_TRACER_NOP, 0);
	for (unsigned i = 0; i < 3; i++)
		outer(i);
	engine_set_tracer(GRAFTRACE_TRACER_FUNCTION_GRAPH, LONG);
	outer(1);
	CHECK_EQUAL(engine_arena()->tracing_on, 1);
	outer(1);
	CHECK_EQUAL(engine_arena()->tracing_on, 0);
	CHECK_EQUAL(*engine_hits(stack), 10);
	CHECK_EQUAL(entries(inner_number), 5);
}

TEST_IN_CHILD(entries_count_whatever_the_tracer, tracers_body)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traceoff_stops_recording_before_the_next_call),
		cmocka_unit_test(traceon_starts_recording_with_the_call_itself),
		cmocka_unit_test(stopping_stops_every_thread_and_is_told_once),
		cmocka_unit_test(a_late_return_acts_and_an_early_one_does_not),
		cmocka_unit_test(the_nth_hit_acts),
		cmocka_unit_test(a_call_that_never_returns_is_late_when_it_is_taken_off),
		cmocka_unit_test(a_stack_trace_has_the_open_calls),
		cmocka_unit_test(without_open_calls_no_stack_trace_is_written),
		cmocka_unit_test(a_function_that_no_filter_names_acts_unrecorded),
		cmocka_unit_test(entries_count_whatever_the_tracer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
