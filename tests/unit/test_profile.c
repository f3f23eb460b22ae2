/* SPDX-License-Identifier: MIT */
/*
 * The function profiler's engine, in this process: functions that count their own calls are
 * patched, and the tables are compared with the counts, call by call. Each test runs in a child of
 * its own, since an engine lives as long as its process.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include "core/record/layout.h"
#include "tests/unit/engine.h"
#include "tests/unit/engine_child.h"

static const struct engine_options profile_options = {
	.sub_buffers = 64,
	.sub_buffer_bytes = 4096,
	.tracer = GRAFTRACE_TRACER_NOP,
	.mode = GRAFTRACE_MODE_RING,
	.profile = 1,
};

/* One instruction: a signal handler's own count cannot be lost. */
static void count(volatile uint64_t *counter)
{
	__asm__ volatile("lock incq %0" : "+m"(*counter));
}

static volatile uint64_t *counts; /* a … e, shared with children */
static volatile unsigned noise;
static uint32_t number_a, number_b, number_c;

TRACED static int c(int n)
{
	count(&counts[2]);
	BARRIER();
	return n + 1;
}

TRACED static int b(int n)
{
	count(&counts[1]);
	int r = c(n) + 1;
	BARRIER();
	return r;
}

TRACED static int a(int n)
{
	count(&counts[0]);
	int r = b(n) + c(n);
	BARRIER();
	return r;
}

static void start(const struct engine_options *options)
{
	counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	engine_start(options);
	number_a = engine_patch((void *)a, ENGINE_ORDINARY);
	number_b = engine_patch((void *)b, ENGINE_ORDINARY);
	number_c = engine_patch((void *)c, ENGINE_ORDINARY);
}

static uint64_t sum_of(const uint64_t buckets[GRAFTRACE_PROFILE_BUCKETS])
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < GRAFTRACE_PROFILE_BUCKETS; i++)
		sum += buckets[i];
	return sum;
}

static void histogram(uint32_t number, uint64_t buckets[GRAFTRACE_PROFILE_BUCKETS])
{
	memset(buckets, 0, GRAFTRACE_PROFILE_BUCKETS * sizeof(*buckets));
	engine_histogram(number, buckets);
}

/* All calls have ended: each of them is in a bucket. */
static void check_hits(void)
{
	const uint32_t numbers[] = { number_a, number_b, number_c };

	for (uint32_t i = 0; i < 3; i++) {
		uint64_t buckets[GRAFTRACE_PROFILE_BUCKETS];

		histogram(numbers[i], buckets);
		CHECK_EQUAL(engine_profile(numbers[i]).hits, counts[i]);
		CHECK_EQUAL(sum_of(buckets), counts[i]);
	}
}

static void calls_body(void)
{
	start(&profile_options);
	for (int i = 0; i < 100000; i++)
		noise += (unsigned)a(i);
	check_hits();
	struct graftrace_profile_entry of_a = engine_profile(number_a);
	struct graftrace_profile_entry of_b = engine_profile(number_b);
	struct graftrace_profile_entry of_c = engine_profile(number_c);
	/* what is spent in callees, and nothing else, lies between a time and its own part */
	CHECK_EQUAL(of_c.self_ticks, of_c.ticks);
	CHECK_EQUAL(of_a.self_ticks + of_b.self_ticks + of_c.self_ticks, of_a.ticks);
	CHECK(of_b.ticks > of_b.self_ticks);
	CHECK(of_b.self_ticks > 0);
	/* and the ring is empty */
	struct engine_word *words;
	CHECK_EQUAL(engine_words(&words), 0);
}

TEST_IN_CHILD(hits_are_exact_and_times_add_up, calls_body)

/* ---- times: against the program's own clock ---- */

TRACED static void spin(uint64_t ticks)
{
	uint64_t end = __builtin_ia32_rdtsc() + ticks;
	while (__builtin_ia32_rdtsc() < end)
		;
}

TRACED static void spins_twice(uint64_t ticks)
{
	uint64_t end = __builtin_ia32_rdtsc() + ticks;
	while (__builtin_ia32_rdtsc() < end)
		;
	spin(3 * ticks);
	BARRIER();
}

static void times_body(void)
{
	start(&profile_options);
	uint32_t number_spin = engine_patch((void *)spin, ENGINE_ORDINARY);
	uint32_t number_twice = engine_patch((void *)spins_twice, ENGINE_ORDINARY);
	uint64_t ticks = 100000;
	for (uint64_t i = 0; i < 20; i++)
		spins_twice(ticks);
	struct graftrace_profile_entry inner = engine_profile(number_spin);
	struct graftrace_profile_entry outer = engine_profile(number_twice);
	CHECK_EQUAL(outer.hits, 20);
	/* at least: a busy machine takes the processor away in any of them */
	CHECK(inner.ticks >= 20 * 3 * ticks);
	CHECK(outer.ticks >= inner.ticks + 20 * ticks);
	CHECK(outer.self_ticks >= 20 * ticks);
	CHECK_EQUAL(outer.ticks - outer.self_ticks, inner.ticks);
	CHECK(inner.squares[0] >= 20 * 9 * ticks * ticks || inner.squares[1] != 0);
	CHECK(outer.self_squares[0] >= 20 * ticks * ticks || outer.self_squares[1] != 0);
}

TEST_IN_CHILD(times_are_the_calls_own, times_body)

static void squares_body(void)
{
	start(&profile_options);
	uint32_t number = engine_patch((void *)spin, ENGINE_ORDINARY);
	spin(10);
	spin(10);
	struct graftrace_profile_entry before = engine_profile(number);
	spin(1000);
	struct graftrace_profile_entry after = engine_profile(number);
	uint64_t took = after.ticks - before.ticks;
	CHECK_EQUAL(after.squares[0] - before.squares[0], took * took);
	CHECK_EQUAL(after.self_squares[0] - before.self_squares[0], took * took);
}

TEST_IN_CHILD(squares_are_those_of_each_call, squares_body)

/* ---- how long the calls took, by powers of two ---- */

/* The call that runs has begun so much earlier. */
static inline __attribute__((always_inline)) void age_frame(uint64_t ticks)
{
	uint64_t top, start;
	uint32_t low, high;

	__asm__ volatile("mov %%gs:%c1, %0" : "=r"(top) : "i"(GT_THREAD_TOP));
	__asm__ volatile("mov %%gs:%c2(%1), %0"
			 : "=r"(low)
			 : "r"(top), "i"(GT_THREAD_SCRAP + GT_FRAME_WORD));
	__asm__ volatile("mov %%gs:%c2(%1), %0"
			 : "=r"(high)
			 : "r"(top), "i"(GT_THREAD_SCRAP + GT_FRAME_HIGH));
	start = ((uint64_t)high << 32 | low) - ticks;
	__asm__ volatile("mov %0, %%gs:%c2(%1)" ::"r"((uint32_t)start), "r"(top),
			 "i"(GT_THREAD_SCRAP + GT_FRAME_WORD)
			 : "memory");
	__asm__ volatile("mov %0, %%gs:%c2(%1)" ::"r"((uint32_t)(start >> 32)), "r"(top),
			 "i"(GT_THREAD_SCRAP + GT_FRAME_HIGH)
			 : "memory");
}

TRACED static void lasts(uint64_t ticks)
{
	count(&counts[3]);
	age_frame(ticks);
}

/* Its return takes the slow half. */
TRACED static void lasts_slowly(uint64_t ticks)
{
	count(&counts[4]);
	age_frame(ticks);
}

/* The first bucket ends at 64 ticks, each other one where it has twice that, the last one nowhere. */
static uint32_t bucket_of(uint64_t ticks)
{
	uint32_t bucket = 0;

	for (uint64_t end = 64; ticks >= end && bucket < 27; end *= 2)
		bucket++;
	return bucket;
}

static void check_calls_of(uint32_t number, void (*function)(uint64_t))
{
	for (uint32_t i = 0; i < 160; i++) {
		/* around each power of two, and what a clock that goes back gives */
		const uint64_t aged =
			i < 148 ? (1ull << i / 4) + i % 4 * 10 - 15 : 0 - (1ull << (i - 110));
		uint64_t before[GRAFTRACE_PROFILE_BUCKETS], after[GRAFTRACE_PROFILE_BUCKETS];
		const uint64_t ticks = engine_profile(number).ticks;

		histogram(number, before);
		function(aged);
		histogram(number, after);
		before[bucket_of(engine_profile(number).ticks - ticks)]++;
		for (uint32_t k = 0; k < GRAFTRACE_PROFILE_BUCKETS; k++)
			CHECK_EQUAL(after[k], before[k]);
		if (i >= 148)
			CHECK_EQUAL(engine_profile(number).ticks, ticks);
	}
	uint64_t all[GRAFTRACE_PROFILE_BUCKETS];
	histogram(number, all);
	CHECK_EQUAL(sum_of(all), engine_profile(number).hits);
	CHECK(all[0] >= 12);
	CHECK(all[27] > 4 * (36 - 32));
}

static void buckets_body(void)
{
	start(&profile_options);
	check_calls_of(engine_patch((void *)lasts, ENGINE_ORDINARY), lasts);
	check_calls_of(engine_patch((void *)lasts_slowly, ENGINE_ROOT), lasts_slowly);
}

TEST_IN_CHILD(each_call_is_in_the_bucket_of_its_ticks, buckets_body)

static void buckets_beside_body(void)
{
	struct engine_options options = profile_options;
	options.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	options.sub_buffers = 2048;
	start(&options);
	check_calls_of(engine_patch((void *)lasts, ENGINE_ORDINARY), lasts);
	check_calls_of(engine_patch((void *)lasts_slowly, ENGINE_ROOT), lasts_slowly);
}

TEST_IN_CHILD(it_is_the_same_beside_a_tracer, buckets_beside_body)

/* Of buckets 25 and 26 in turns, whatever the machine does meanwhile; and of the last one. */
#define HANDLER_TICKS (3ull << (29 + traps % 2))
#define STEPPED_TICKS (3ull << 32)

static uint32_t traps;

static void on_step(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signal, (void)info;
	lasts(HANDLER_TICKS);
	traps++;
	/* The slow half masks signals, this one too: it is not gone through. */
	static const uint8_t syscall_bytes[] = { 0x0f, 0x05 };
	if (memcmp((const void *)registers[REG_RIP], syscall_bytes, 2) == 0 &&
	    registers[REG_RAX] == SYS_rt_sigprocmask)
		registers[REG_EFL] &= ~0x100;
}

static void steps_with(const struct engine_options *options)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	uint64_t buckets[GRAFTRACE_PROFILE_BUCKETS];

	start(options);
	const uint32_t number = engine_patch((void *)lasts, ENGINE_ORDINARY);
	sigaction(SIGTRAP, &action, NULL);
	lasts(STEPPED_TICKS);
	for (int i = 0; i < 20; i++) {
		__asm__ volatile("pushf; orl $0x100, (%%rsp); popf" ::: "memory", "cc");
		lasts(STEPPED_TICKS);
		__asm__ volatile("pushf; andl $~0x100, (%%rsp); popf" ::: "memory", "cc");
	}
	CHECK(traps > 20 * 80);
	CHECK_EQUAL(engine_profile(number).hits, counts[3]);
	histogram(number, buckets);
	CHECK_EQUAL(buckets[25], (traps + 1) / 2);
	CHECK_EQUAL(buckets[26], traps / 2);
	CHECK_EQUAL(buckets[27], 21);
	CHECK_EQUAL(sum_of(buckets), counts[3]);
}

static void steps_body(void)
{
	steps_with(&profile_options);
}

TEST_IN_CHILD(a_handlers_calls_at_each_instruction_are_in_their_buckets, steps_body)

static void steps_beside_body(void)
{
	struct engine_options options = profile_options;
	options.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	options.sub_buffer_bytes = 65536;
	steps_with(&options);
}

TEST_IN_CHILD(and_beside_a_tracer, steps_beside_body)

/* ---- what leaves the straight line ---- */

static jmp_buf target;

TRACED static int leaps(int n)
{
	count(&counts[3]);
	if (n == 0)
		longjmp(target, 1);
	int r = n < 100 ? leaps(n - 1) : 0;
	BARRIER();
	return r + 1;
}

static void leap_body(void)
{
	start(&profile_options);
	uint32_t number = engine_patch((void *)leaps, ENGINE_ORDINARY);
	for (int i = 0; i < 2000; i++) {
		if (setjmp(target) == 0)
			noise += (unsigned)leaps(i % 7);
		noise += (unsigned)a(i);
	}
	check_hits();
	CHECK_EQUAL(engine_profile(number).hits, counts[3]);
	/* the left calls' time ends where they were found to have ended */
	CHECK(engine_profile(number).ticks > 0);
	uint64_t buckets[GRAFTRACE_PROFILE_BUCKETS];
	histogram(number, buckets);
	CHECK_EQUAL(sum_of(buckets), counts[3]);
}

TEST_IN_CHILD(calls_left_by_longjmp_count, leap_body)

int tail_first(int n);
int tail_last(int n);
__asm__(".text\n"
	".globl tail_first, tail_last\n"
	".type tail_first, @function\n"
	"tail_first: nop; nop; nop; nop; nop\n"
	"	inc %edi\n"
	"	jmp tail_last\n"
	"	.p2align 4\n"
	".type tail_last, @function\n"
	"tail_last: nop; nop; nop; nop; nop\n"
	"	lea (%rdi,%rdi), %eax\n"
	"	ret\n"
	".zero 16\n");

static void tail_body(void)
{
	start(&profile_options);
	uint32_t number_first = engine_patch((void *)tail_first, ENGINE_ORDINARY);
	uint32_t number_last = engine_patch((void *)tail_last, ENGINE_ORDINARY);
	for (int i = 0; i < 20000; i++)
		CHECK_EQUAL(tail_first(i), 2 * (i + 1));
	CHECK_EQUAL(engine_profile(number_first).hits, 20000);
	CHECK_EQUAL(engine_profile(number_last).hits, 20000);
	CHECK(engine_profile(number_first).ticks > 0);
	CHECK(engine_profile(number_last).ticks > 0);
}

TEST_IN_CHILD(tail_calls_count_on_both_sides, tail_body)

TRACED static int only(int n)
{
	count(&counts[3]);
	BARRIER();
	return n + 1;
}

static void only_body(void)
{
	start(&profile_options);
	uint32_t number = engine_patch((void *)only, ENGINE_ONLY);
	for (int i = 0; i < 1000; i++)
		noise += (unsigned)only(i);
	CHECK_EQUAL(engine_profile(number).hits, counts[3]);
	CHECK_EQUAL(engine_profile(number).ticks, 0);
	uint64_t buckets[GRAFTRACE_PROFILE_BUCKETS];
	histogram(number, buckets);
	CHECK_EQUAL(sum_of(buckets), 0);
}

TEST_IN_CHILD(entry_only_functions_have_hits_and_no_time, only_body)

TRACED static int dives(int n)
{
	count(&counts[3]);
	int r = n > 0 ? dives(n - 1) : 0;
	BARRIER();
	return r + 1;
}

static void deep_body(void)
{
	start(&profile_options);
	uint32_t number = engine_patch((void *)dives, ENGINE_ORDINARY);
	noise += (unsigned)dives(50000);
	noise += (unsigned)dives(20);
	CHECK_EQUAL(engine_profile(number).hits, counts[3]);
}

TEST_IN_CHILD(deep_recursion_counts_each_call, deep_body)

/* ---- signals, threads, forks ---- */

static void on_signal(int signal)
{
	(void)signal;
	noise += (unsigned)a(1);
}

static uint64_t now_ms(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static void signals_with(const struct engine_options *options)
{
	start(options);
	struct sigaction action = { .sa_handler = on_signal };
	sigaction(SIGALRM, &action, NULL);
	struct itimerval often = { { 0, 37 }, { 0, 37 } };
	setitimer(ITIMER_REAL, &often, NULL);
	uint64_t end = now_ms() + 1500;
	while (now_ms() < end)
		for (int i = 0; i < 1000; i++)
			noise += (unsigned)a(i);
	struct itimerval never = { { 0, 0 }, { 0, 0 } };
	setitimer(ITIMER_REAL, &never, NULL);
	check_hits();
	struct graftrace_profile_entry of_a = engine_profile(number_a);
	CHECK(of_a.ticks >= of_a.self_ticks);
}

static void signal_body(void)
{
	signals_with(&profile_options);
}

TEST_IN_CHILD(signals_lose_no_hit, signal_body)

static void signal_graph_body(void)
{
	struct engine_options options = profile_options;
	options.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	options.mode = GRAFTRACE_MODE_OVERWRITE;
	signals_with(&options);
}

TEST_IN_CHILD(signals_lose_no_hit_beside_a_tracer, signal_graph_body)

static void *work(void *data)
{
	(void)data;
	for (int i = 0; i < 2000; i++)
		noise += (unsigned)a(i);
	return NULL;
}

static void thread_body(void)
{
	start(&profile_options);
	for (int round = 0; round < 8; round++) {
		pthread_t threads[25];
		for (int i = 0; i < 25; i++)
			pthread_create(&threads[i], NULL, work, NULL);
		noise += (unsigned)a(1);
		for (int i = 0; i < 25; i++)
			pthread_join(threads[i], NULL);
	}
	check_hits();
}

TEST_IN_CHILD(threads_by_the_hundred_count_each_for_itself, thread_body)

static void fork_body(void)
{
	start(&profile_options);
	noise += (unsigned)a(1);
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		noise += (unsigned)a(i);
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	check_hits();
}

TEST_IN_CHILD(both_sides_of_a_fork_count, fork_body)

/* ---- on and off, and beside a tracer ---- */

TRACED static int toggles(int n)
{
	engine_set_profile(true);
	n = b(n);
	engine_set_profile(false);
	n = b(n);
	BARRIER();
	return n;
}

static void toggle_body(void)
{
	struct engine_options options = profile_options;
	options.profile = 0;
	options.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	start(&options);
	uint32_t number = engine_patch((void *)toggles, ENGINE_ORDINARY);
	for (int i = 0; i < 10; i++)
		noise += (unsigned)toggles(i);
	CHECK_EQUAL(engine_profile(number).hits, 0); /* it was entered while off */
	CHECK_EQUAL(engine_profile(number_b).hits, 10);
	CHECK_EQUAL(engine_profile(number_c).hits, 10);
	uint64_t entries, returns;
	engine_count(number_b, &entries, &returns);
	CHECK_EQUAL(entries, 20);
	CHECK_EQUAL(returns, 20);
	engine_count(number, &entries, &returns);
	CHECK_EQUAL(entries, 10);
	CHECK_EQUAL(returns, 10);
}

TEST_IN_CHILD(it_is_switched_in_the_middle_of_calls, toggle_body)

static void both_body(void)
{
	struct engine_options options = profile_options;
	options.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	options.sub_buffers = 2048;
	start(&options);
	for (int i = 0; i < 20000; i++)
		noise += (unsigned)a(i);
	check_hits();
	uint64_t entries, returns;
	engine_count(number_b, &entries, &returns);
	CHECK_EQUAL(entries, counts[1]);
	CHECK_EQUAL(returns, counts[1]);
	struct graftrace_profile_entry of_a = engine_profile(number_a);
	CHECK_EQUAL(of_a.self_ticks + engine_profile(number_b).self_ticks +
			    engine_profile(number_c).self_ticks,
		    of_a.ticks);
}

TEST_IN_CHILD(a_tracer_records_the_same_calls, both_body)

static void no_room_body(void)
{
	struct engine_options options = profile_options;
	options.profile_pages = 1;
	start(&options);
	noise += (unsigned)a(1);
	check_hits();
	pthread_t thread;
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	uint64_t lost = 0;
	for (uint32_t i = 0; i < engine_arena()->stream_count; i++)
		lost += graftrace_arena_streams(engine_arena())[i].lost[GRAFTRACE_LOST_PROFILE];
	CHECK_EQUAL(engine_profile(number_a).hits + engine_profile(number_b).hits +
			    engine_profile(number_c).hits + lost,
		    counts[0] + counts[1] + counts[2]);
	CHECK_EQUAL(engine_profile(number_a).hits, 1);
}

TEST_IN_CHILD(what_has_no_room_is_counted_as_lost, no_room_body)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hits_are_exact_and_times_add_up),
		cmocka_unit_test(times_are_the_calls_own),
		cmocka_unit_test(squares_are_those_of_each_call),
		cmocka_unit_test(each_call_is_in_the_bucket_of_its_ticks),
		cmocka_unit_test(it_is_the_same_beside_a_tracer),
		cmocka_unit_test(a_handlers_calls_at_each_instruction_are_in_their_buckets),
		cmocka_unit_test(and_beside_a_tracer),
		cmocka_unit_test(calls_left_by_longjmp_count),
		cmocka_unit_test(tail_calls_count_on_both_sides),
		cmocka_unit_test(entry_only_functions_have_hits_and_no_time),
		cmocka_unit_test(deep_recursion_counts_each_call),
		cmocka_unit_test(signals_lose_no_hit),
		cmocka_unit_test(signals_lose_no_hit_beside_a_tracer),
		cmocka_unit_test(threads_by_the_hundred_count_each_for_itself),
		cmocka_unit_test(both_sides_of_a_fork_count),
		cmocka_unit_test(it_is_switched_in_the_middle_of_calls),
		cmocka_unit_test(a_tracer_records_the_same_calls),
		cmocka_unit_test(what_has_no_room_is_counted_as_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
