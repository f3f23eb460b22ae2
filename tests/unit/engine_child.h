/* SPDX-License-Identifier: MIT */
/*
 * What tests that run an engine share: functions that can be patched, a child process for each test
 * body (an engine lives as long as its process), and checks that end that child.
 */
#ifndef TESTS_UNIT_ENGINE_CHILD_H
#define TESTS_UNIT_ENGINE_CHILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "tests/unit/engine.h"

#ifdef __clang__ /* makes no clones, and does not know the word */
#define TRACED __attribute__((noinline, patchable_function_entry(5)))
#else
#define TRACED __attribute__((noinline, noclone, patchable_function_entry(5)))
#endif
#define BARRIER() __asm__ volatile("" ::: "memory")

/* Runs a test body in a child; it passes when the child ends with 0. */
static inline void in_child(void (*body)(void))
{
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		alarm(200);
		body();
		fflush(NULL);
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		fail_msg("the child died of signal %d", WTERMSIG(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A test with that name, which runs the body in a child. */
#define TEST_IN_CHILD(name, body)      \
	static void name(void **state) \
	{                              \
		(void)state;           \
		in_child(body);        \
	}

static inline void check(int right, const char *what, uint64_t got, uint64_t wanted)
{
	if (right)
		return;
	fprintf(stderr, "%s: %llu instead of %llu\n", what, (unsigned long long)got,
		(unsigned long long)wanted);
	_exit(1);
}

static inline void check_equal(const char *what, uint64_t got, uint64_t wanted)
{
	check(got == wanted, what, got, wanted);
}

#define CHECK_EQUAL(got, wanted) check_equal(#got, (uint64_t)(got), (uint64_t)(wanted))
#define CHECK(condition)	 check((condition), #condition, 0, 1)

/* With a ring of 2 MiB whose oldest sub-buffers are overwritten: a test may step through any number of
 * calls. threshold: ticks; 0: none. */
static inline void start_overwriting(enum graftrace_tracer tracer, uint64_t threshold, bool profile)
{
	struct engine_options options = {
		.sub_buffers = 512,
		.sub_buffer_bytes = 4096,
		.tracer = tracer,
		.mode = GRAFTRACE_MODE_OVERWRITE,
		.threshold_ticks = threshold,
		.profile = profile,
	};
	engine_start(&options);
}

/* What was recorded, as engine_text() has it. */
static inline void check_trace(const char *wanted)
{
	char text[4096];
	engine_text(text, sizeof(text));
	if (strcmp(text, wanted) != 0) {
		fprintf(stderr, "trace %s instead of %s\n", text, wanted);
		_exit(1);
	}
}

static inline void check_calls(uint32_t function, uint64_t calls)
{
	uint64_t entries, returns;
	engine_count(function, &entries, &returns);
	CHECK_EQUAL(entries, calls);
	CHECK_EQUAL(returns, calls);
}

#endif
