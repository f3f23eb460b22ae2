/* SPDX-License-Identifier: MIT */
/*
 * The frame engine in the test's own process: maps the agent's image, an arena and one region, and
 * puts stubs before functions of this program that have compiler-made nops at their entries. Tests
 * of the recording path run it without a host side.
 */
#ifndef TESTS_UNIT_ENGINE_H
#define TESTS_UNIT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/agent.h>
#include <graftrace/arena.h>
#include <graftrace/profile.h>

struct engine_options {
	uint32_t sub_buffers;
	uint32_t sub_buffer_bytes;
	enum graftrace_tracer tracer;
	enum graftrace_arena_mode mode;
	uint32_t max_depth;
	uint64_t threshold_ticks;
	uint32_t graph_only;
	uint32_t func_stack;
	uint32_t profile;
	uint32_t profile_pages; /* 0 = enough */
};

/* Once a process. */
void engine_start(const struct engine_options *options);
struct graftrace_arena *engine_arena(void);

enum engine_kind {
	ENGINE_ORDINARY,
	ENGINE_ROOT,
	ENGINE_ONLY,
	ENGINE_TRIGGER,
	ENGINE_NOTRACE,
	ENGINE_SILENT,
};
/* Puts a stub before `function`, of which the first 5 bytes are nops; returns its number. */
uint32_t engine_patch(void *function, enum engine_kind kind);
/* A trigger of a function that was patched as ENGINE_TRIGGER; to be changed as it runs. */
struct graftrace_trigger *engine_trigger(uint32_t function, enum graftrace_trigger_action action,
					 uint64_t longer_than, uint64_t skip, uint64_t count);
/* Letters of triggers since the last call: the last one, and how many. */
/* How often the trigger was hit. */
uint64_t *engine_hits(const struct graftrace_trigger *trigger);
uint32_t engine_mail(struct graftrace_letter *last);
/* Chooses the tracer while the engine runs. */
void engine_set_tracer(enum graftrace_tracer tracer, uint64_t threshold_ticks);
/* The function profiler, while the engine runs; and what all threads have counted. */
void engine_set_profile(bool on);
struct graftrace_profile_entry engine_profile(uint32_t function);
/* Adds how many of its calls took how long. */
void engine_histogram(uint32_t function, uint64_t buckets[GRAFTRACE_PROFILE_BUCKETS]);
/* tracing_on, as the host side sets it. */
void engine_set_on(bool on);

/* Every written word of every writer, in order; special words too. */
struct engine_word {
	uint32_t generation;
	uint32_t tracer;
	uint64_t word;
	uint64_t data[8]; /* of a LONG_RETURN, a STACK; data[0] of ENTRY_ONLY; the parent of a
			   * function entry
			   */
	uint64_t clock;	  /* full */
};
size_t engine_words(struct engine_word **words);

/*
 * The same as text: a letter a function in the order in which they were patched, entries upper
 * case, returns lower case; ^n unwound; | another context; of a stack trace the functions in
 * parentheses, innermost first. Ends where it is full.
 */
void engine_text(char *text, size_t size);

/* Entries and returns of one function number. */
void engine_count(uint32_t function, uint64_t *entries, uint64_t *returns);

#endif
