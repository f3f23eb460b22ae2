/* SPDX-License-Identifier: MIT */
/*
 * The recording path and its slow half, in this process: functions that count their own calls are
 * patched, and what the engine wrote is compared with the counts. Each test runs in a child of its
 * own, since an engine lives as long as its process. What needs the host's hooks (longjmp into
 * deeper calls, exceptions) is tested end to end.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include "core/record/layout.h"
#include "tests/unit/engine.h"
#include "tests/unit/engine_child.h"

static const struct engine_options graph_options = {
	.sub_buffers = 2048,
	.sub_buffer_bytes = 32768,
	.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
	.mode = GRAFTRACE_MODE_RING,
};

/* ---- functions of the tests: a … f are patched in this order, so they are A … F in texts ---- */

static volatile uint64_t calls_a, calls_b, calls_c;
static volatile unsigned noise;

TRACED static int c(int n)
{
	calls_c++;
	BARRIER();
	return n + 1;
}

TRACED static int b(int n)
{
	calls_b++;
	int r = c(n) + 1;
	BARRIER();
	return r;
}

TRACED static int a(int n)
{
	calls_a++;
	int r = b(n) + c(n);
	BARRIER();
	return r;
}

static uint32_t number_a, number_b, number_c;

static void start(const struct engine_options *options)
{
	engine_start(options);
	number_a = engine_patch((void *)a, ENGINE_ORDINARY);
	number_b = engine_patch((void *)b, ENGINE_ORDINARY);
	number_c = engine_patch((void *)c, ENGINE_ORDINARY);
}

static void nesting_body(void)
{
	start(&graph_options);
	CHECK_EQUAL(a(1), 1 + 2 + 1 + 1);
	check_trace("ABCcbCca");
}

TEST_IN_CHILD(calls_are_recorded_in_their_nesting, nesting_body)

static void many_body(void)
{
	start(&graph_options);
	for (int i = 0; i < 100000; i++)
		noise += (unsigned)a(i);
	check_calls(number_a, calls_a);
	check_calls(number_b, calls_b);
	check_calls(number_c, calls_c);
}

TEST_IN_CHILD(every_call_is_recorded_across_sub_buffers, many_body)

/* ---- a ring that keeps the oldest ---- */

static void full_body(void)
{
	struct engine_options options = graph_options;
	options.sub_buffers = 4;
	options.sub_buffer_bytes = 4096;
	start(&options);
	for (int i = 0; i < 10000; i++)
		noise += (unsigned)a(i);
	uint64_t entries = 0, returns = 0, e, r;
	for (uint32_t n = number_a; n <= number_c; n++) {
		engine_count(n, &e, &r);
		CHECK_EQUAL(e, r);
		entries += e;
		returns += r;
	}
	uint64_t lost = graftrace_arena_streams(engine_arena())[0].lost[GRAFTRACE_LOST_FULL];
	CHECK(entries > 100);
	CHECK_EQUAL(entries, returns);
	CHECK_EQUAL(entries + lost, calls_a + calls_b + calls_c);
}

TEST_IN_CHILD(full_ring_counts_what_it_drops, full_body)

static void overwrite_body(void)
{
	struct engine_options options = graph_options;
	options.sub_buffers = 8;
	options.sub_buffer_bytes = 4096;
	options.mode = GRAFTRACE_MODE_OVERWRITE;
	start(&options);
	for (int i = 0; i < 20000; i++)
		noise += (unsigned)a(i);
	struct engine_word *words;
	size_t count = engine_words(&words);
	CHECK(count > 1500);
	uint64_t lost = graftrace_arena_streams(engine_arena())[0].lost[GRAFTRACE_LOST_OVERRUN];
	uint64_t records = 2 * (calls_a + calls_b + calls_c);
	/* a call that began in an earlier sub-buffer takes four words */
	CHECK(count + lost >= records);
	CHECK_EQUAL(graftrace_arena_streams(engine_arena())[0].lost[GRAFTRACE_LOST_FULL], 0);
	for (size_t i = 1; i < count; i++)
		CHECK(words[i].clock >= words[i - 1].clock);
	free(words);
}

TEST_IN_CHILD(overwriting_keeps_the_newest, overwrite_body)

static void begun_body(void)
{
	const uint64_t head = graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
						     GRAFTRACE_EVENT_ARGUMENTS << 16 | 3);
	struct engine_options options = graph_options;
	options.sub_buffers = 8;
	options.sub_buffer_bytes = 4096;
	options.mode = GRAFTRACE_MODE_OVERWRITE;
	start(&options);
	noise += (unsigned)a(1);
	/* as if a signal had come before the event's data were stored */
	struct graftrace_sub_buffer *sub = graftrace_arena_sub_buffer(
		engine_arena(), graftrace_arena_streams(engine_arena())[0].current - 1);
	uint64_t *words = graftrace_sub_buffer_words(sub);
	words[0] = head;
	words[1] = 0;
	for (int i = 0; i < 20000; i++)
		noise += (unsigned)a(i);
	CHECK_EQUAL(sub->sequence, 0);
	CHECK_EQUAL(words[0], head);
	CHECK_EQUAL(words[1], 0);
	CHECK(graftrace_arena_streams(engine_arena())[0].lost[GRAFTRACE_LOST_OVERRUN] > 0);
}

TEST_IN_CHILD(overwriting_leaves_a_sub_buffer_in_which_an_event_is_begun, begun_body)

/* ---- tracers and settings ---- */

static void function_body(void)
{
	struct engine_options options = graph_options;
	options.tracer = GRAFTRACE_TRACER_FUNCTION;
	start(&options);
	noise += (unsigned)a(1);
	struct engine_word *words;
	size_t count = engine_words(&words);
	CHECK_EQUAL(count, 4);
	CHECK_EQUAL(graftrace_word_function(words[0].word), number_a);
	CHECK_EQUAL(graftrace_word_function(words[1].word), number_b);
	CHECK(words[1].data[0] - (uint64_t)a < 256);
	CHECK(words[2].data[0] - (uint64_t)b < 256);
	CHECK(words[3].data[0] - (uint64_t)a < 256);
	free(words);
}

TEST_IN_CHILD(function_tracer_records_entries_with_their_callers, function_body)

TRACED static int switches(int n)
{
	engine_set_tracer(GRAFTRACE_TRACER_FUNCTION, 0);
	n = b(n);
	engine_set_tracer(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0);
	n = b(n);
	engine_set_tracer(GRAFTRACE_TRACER_NOP, 0);
	n = b(n);
	engine_set_tracer(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0);
	BARRIER();
	return n;
}

static void switch_body(void)
{
	start(&graph_options);
	engine_patch((void *)switches, ENGINE_ORDINARY);
	noise += (unsigned)switches(1);
	noise += (unsigned)c(1);
	check_trace("DBCBCcbdCc");
}

TEST_IN_CHILD(tracers_are_switched_in_the_middle_of_calls, switch_body)

TRACED static int turns_off(int n)
{
	engine_set_on(false);
	n = b(n);
	engine_set_on(true);
	n = c(n);
	BARRIER();
	return n;
}

TRACED static void off_inside(void)
{
	engine_set_on(false);
	BARRIER();
}

static void off_body(void)
{
	start(&graph_options);
	engine_patch((void *)turns_off, ENGINE_ORDINARY);
	engine_patch((void *)off_inside, ENGINE_ORDINARY);
	noise += (unsigned)turns_off(1);
	off_inside();
	noise += (unsigned)a(1);
	engine_set_on(true);
	noise += (unsigned)c(1);
	check_trace("DCcdECc");
}

TEST_IN_CHILD(off_records_nothing_and_loses_no_frame, off_body)

static void depth_body(void)
{
	struct engine_options options = graph_options;
	options.max_depth = 2;
	start(&options);
	noise += (unsigned)a(1);
	check_trace("ABbCca");
}

TEST_IN_CHILD(deeper_calls_than_max_graph_depth_vanish, depth_body)

TRACED static void slow_one(void)
{
	struct timespec pause = { 0, 700000000 };
	nanosleep(&pause, NULL);
	noise += (unsigned)c(1);
}

static void threshold_body(void)
{
	struct engine_options options = graph_options;
	/* some 0.4 s: no other call takes as long, however busy the machine is */
	options.threshold_ticks = 1000000000;
	start(&options);
	engine_patch((void *)slow_one, ENGINE_ORDINARY);
	noise += (unsigned)a(1);
	slow_one();
	noise += (unsigned)a(1);
	check_trace("d");
	struct engine_word *words;
	size_t count = engine_words(&words);
	size_t last = count - 1; /* before it, a CLOCK word where the clock's high half changed */
	CHECK(count == 1 || (count == 2 && graftrace_word_function(words[0].word) ==
						   GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_CLOCK));
	CHECK(words[last].clock - words[last].data[1] > 1000000000);
	free(words);
}

TEST_IN_CHILD(only_calls_over_the_threshold_are_recorded, threshold_body)

static void graph_body(void)
{
	struct engine_options options = graph_options;
	options.graph_only = 1;
	engine_start(&options);
	number_a = engine_patch((void *)a, ENGINE_ORDINARY);
	number_b = engine_patch((void *)b, ENGINE_ROOT);
	number_c = engine_patch((void *)c, ENGINE_ORDINARY);
	noise += (unsigned)c(1);
	noise += (unsigned)a(1);
	noise += (unsigned)a(1);
	check_trace("BCcbBCcb");
}

TEST_IN_CHILD(only_what_lies_below_graph_functions_is_recorded, graph_body)

static void only_body(void)
{
	engine_start(&graph_options);
	number_a = engine_patch((void *)a, ENGINE_ORDINARY);
	number_b = engine_patch((void *)b, ENGINE_ONLY);
	number_c = engine_patch((void *)c, ENGINE_ORDINARY);
	noise += (unsigned)a(1);
	check_trace("ABCcCca");
}

TEST_IN_CHILD(entry_only_functions_leave_their_return_address_alone, only_body)

/* ---- unwinding, tail calls, recursion ---- */

static jmp_buf jump;

TRACED static void leaps(int n)
{
	if (n > 0)
		leaps(n - 1);
	noise += n;
	if (n >= 0)
		longjmp(jump, 1);
}

TRACED static int catches(void)
{
	if (setjmp(jump) == 0)
		leaps(3);
	return c(1);
}

static void longjmp_body(void)
{
	start(&graph_options);
	engine_patch((void *)leaps, ENGINE_ORDINARY);
	engine_patch((void *)catches, ENGINE_ORDINARY);
	noise += (unsigned)catches();
	noise += (unsigned)c(1);
	check_trace("EDDDD^4CceCc");
}

/* A vfork child left from within leaves_open: its frame lies above the next call's, and only a look at
 * its slot says that it is over. */
static void *leave[5];

TRACED static void leaves_open(void)
{
	noise++;
	if (noise > 0)
		__builtin_longjmp(leave, 1);
	BARRIER();
}

/* AddressSanitizer keeps arrays elsewhere. */
#define ON_THE_STACK __attribute__((noinline, no_sanitize_address))

ON_THE_STACK static int calls_deeper(void)
{
	volatile char room[4096];
	room[noise % sizeof room] = 1;
	int r = c(1) + room[noise % sizeof room];
	BARRIER();
	return r;
}

ON_THE_STACK static void writes_over(volatile uint64_t *slots, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		slots[i] = i;
}

ON_THE_STACK static void opens(void)
{
	if (!__builtin_setjmp(leave))
		leaves_open();
	BARRIER();
}

ON_THE_STACK static void overwrites(void)
{
	volatile uint64_t slots[64];
	writes_over(slots, 64);
	noise += (unsigned)calls_deeper();
	BARRIER();
}

static void verify_body(void)
{
	const uint32_t one = 1;
	const uint64_t none = 0;
	start(&graph_options);
	engine_patch((void *)leaves_open, ENGINE_ORDINARY);
	noise += (unsigned)c(1); /* the thread has a block */
	opens();
	__asm__ volatile("movl %0, %%gs:%c1" : : "r"(one), "i"(GRAFTRACE_BLOCK_VERIFY) : "memory");
	__asm__ volatile("movq %0, %%gs:%c1" : : "r"(none), "i"(GT_THREAD_LIMIT) : "memory");
	overwrites();
	noise += (unsigned)c(1);
	check_trace("CcD^1CcCc");
}

TEST_IN_CHILD(frames_whose_slots_are_written_over_are_taken_off_where_it_is_asked_for, verify_body)

TEST_IN_CHILD(frames_that_longjmp_skipped_are_taken_off, longjmp_body)

int tail_one(int n);
int tail_two(int n);
__asm__(".text\n"
	".globl tail_one, tail_two\n"
	".type tail_one, @function\n"
	"tail_one: nop; nop; nop; nop; nop\n"
	"	sub $1, %edi\n"
	"	jns tail_two\n"
	"	mov $77, %eax\n"
	"	ret\n"
	".type tail_two, @function\n"
	"tail_two: nop; nop; nop; nop; nop\n"
	"	sub $1, %edi\n"
	"	jns tail_one\n"
	"	mov $78, %eax\n"
	"	ret\n");

static void tail_body(void)
{
	engine_start(&graph_options);
	uint32_t one = engine_patch((void *)tail_one, ENGINE_ORDINARY);
	uint32_t two = engine_patch((void *)tail_two, ENGINE_ORDINARY);
	CHECK_EQUAL(tail_one(3), 78);
	check_trace("AaBbAaBb");
	CHECK_EQUAL(tail_one(20000), 77);
	check_calls(one, 2 + 10001);
	check_calls(two, 2 + 10000);
}

TEST_IN_CHILD(tail_calls_are_a_return_and_an_entry, tail_body)

TRACED static uint64_t sinks(uint64_t n)
{
	BARRIER();
	uint64_t r = n == 0 ? 0 : 1 + sinks(n - 1);
	BARRIER();
	return r;
}

static void deep_body(void)
{
	engine_start(&graph_options);
	uint32_t number = engine_patch((void *)sinks, ENGINE_ORDINARY);
	CHECK_EQUAL(sinks(100000), 100000);
	CHECK_EQUAL(sinks(100000), 100000);
	check_calls(number, 200002);
}

TEST_IN_CHILD(a_hundred_thousand_frames_are_no_limit, deep_body)

/* ---- calls far from each other on one stack, with nothing traced between them ---- */

#define MIB	      (1024 * 1024ul)
#define GRANULE_BYTES (1ul << GRAFTRACE_GRANULE_SHIFT)

ON_THE_STACK static void calls_below(size_t bytes)
{
	volatile char *room = alloca(bytes);
	room[0] = 1;
	noise += (unsigned)(c(1) + room[0]);
	BARRIER();
}

TRACED static void stays_open(void)
{
	calls_below(6 * MIB);
	calls_below(1 * MIB);
	calls_below(40 * MIB);
	calls_below(30 * MIB);
	calls_below(10 * MIB);
	calls_below(1 * MIB);
	BARRIER();
}

static void *calls_far_apart(void *unused)
{
	noise += (unsigned)c(1);
	calls_below(6 * MIB);
	noise += (unsigned)c(1);
	calls_below(1 * MIB);
	check_calls(number_c, 4);
	calls_below(40 * MIB);
	calls_below(10 * MIB);
	noise += (unsigned)c(1);
	calls_below(30 * MIB);
	check_calls(number_c, 8);
	stays_open();
	check_calls(number_c, 14);
	return unused;
}

/* On a stack that is large wherever the test runs. */
static void on_large_stack(void *(*function)(void *))
{
	pthread_attr_t attributes;
	pthread_t thread;
	start(&graph_options);
	engine_patch((void *)stays_open, ENGINE_ORDINARY);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 * MIB);
	CHECK_EQUAL(pthread_create(&thread, &attributes, function, NULL), 0);
	CHECK_EQUAL(pthread_join(thread, NULL), 0);
}

static void far_apart_body(void)
{
	on_large_stack(calls_far_apart);
}

TEST_IN_CHILD(calls_far_apart_on_a_stack_have_mirrors_where_they_are, far_apart_body)

static void *calls_around_a_mapping(void *unused)
{
	/* a sanitizer has variables elsewhere */
	const uint64_t here = (uint64_t)__builtin_frame_address(0);
	uint64_t granule = (here - 2 * MIB) & ~(GRANULE_BYTES - 1);
	void *at = (void *)(granule ^ 1ul << GRAFTRACE_MIRROR_BIT);
	unsigned char *page = mmap(at, GRANULE_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	uint64_t entries, returns;
	CHECK(page == at);
	memset(page, 0x5a, GRANULE_BYTES);
	calls_below(3 * MIB);
	noise += (unsigned)c(1);
	calls_below(1 * MIB);
	calls_below(3 * MIB);
	calls_below(1 * MIB);
	check_calls(number_c, 5);
	/* there it has no mirror, and keeps its return address */
	calls_below(here - granule - GRANULE_BYTES / 2);
	engine_count(number_c, &entries, &returns);
	CHECK_EQUAL(entries, 6);
	CHECK_EQUAL(returns, 5);
	for (size_t i = 0; i < GRANULE_BYTES; i++)
		CHECK_EQUAL(page[i], 0x5a);
	return unused;
}

static void around_a_mapping_body(void)
{
	on_large_stack(calls_around_a_mapping);
}

TEST_IN_CHILD(a_mapping_where_a_mirror_would_be_is_left_out_of_it, around_a_mapping_body)

/* ---- registers ---- */

int registers_survive(void (*function)(void));
TRACED static void leaf(void)
{
	BARRIER();
}

/* Fills every general register but the stack pointer, and the vector registers, calls, compares. */
__asm__(".text\n"
	".globl registers_survive\n"
	"registers_survive:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	push %rdi\n"
	"	mov $0x1111111111111111, %rax\n"
	"	movq %rax, %xmm0\n	movq %rax, %xmm15\n"
	"	mov $0x101, %eax; mov $0x102, %ebx; mov $0x103, %ecx; mov $0x104, %edx\n"
	"	mov $0x105, %esi; mov $0x106, %edi; mov $0x107, %ebp; mov $0x108, %r8d\n"
	"	mov $0x109, %r9d; mov $0x10a, %r10d; mov $0x10b, %r11d; mov $0x10c, %r12d\n"
	"	mov $0x10d, %r13d; mov $0x10e, %r14d; mov $0x10f, %r15d\n"
	"	call *(%rsp)\n"
	"	cmp $0x101, %eax; jne 9f\n	cmp $0x102, %ebx; jne 9f\n"
	"	cmp $0x103, %ecx; jne 9f\n	cmp $0x104, %edx; jne 9f\n"
	"	cmp $0x105, %esi; jne 9f\n	cmp $0x106, %edi; jne 9f\n"
	"	cmp $0x107, %ebp; jne 9f\n	cmp $0x108, %r8d; jne 9f\n"
	"	cmp $0x109, %r9d; jne 9f\n	cmp $0x10a, %r10d; jne 9f\n"
	"	cmp $0x10b, %r11d; jne 9f\n	cmp $0x10c, %r12d; jne 9f\n"
	"	cmp $0x10d, %r13d; jne 9f\n	cmp $0x10e, %r14d; jne 9f\n"
	"	cmp $0x10f, %r15d; jne 9f\n"
	"	mov $0x1111111111111111, %rcx\n"
	"	movq %xmm0, %rax\n	cmp %rcx, %rax\n	jne 9f\n"
	"	movq %xmm15, %rax\n	cmp %rcx, %rax\n	jne 9f\n"
	"	mov $1, %eax\n	jmp 8f\n"
	"9:	xor %eax, %eax\n"
	"8:	pop %rdi\n	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n");

static void registers_body(void)
{
	struct engine_options options = graph_options;
	options.sub_buffer_bytes = 4096; /* many slow paths */
	start(&options);
	uint32_t number = engine_patch((void *)leaf, ENGINE_ORDINARY);
	for (int i = 0; i < 20000; i++)
		CHECK(registers_survive(leaf));
	check_calls(number, 20000);
}

TEST_IN_CHILD(every_register_survives_entry_and_return, registers_body)

/* ---- signals ---- */

static volatile uint64_t handled;

TRACED static void inner_work(void)
{
	calls_c++;
	BARRIER();
}

TRACED static void on_signal(int signal)
{
	handled++;
	inner_work();
	if (signal == SIGALRM && handled % 3 == 0)
		raise(SIGUSR1);
}

static void storm(bool alternate)
{
	engine_start(&graph_options);
	uint32_t handler = engine_patch((void *)on_signal, ENGINE_ORDINARY);
	uint32_t inner = engine_patch((void *)inner_work, ENGINE_ORDINARY);
	uint32_t work = engine_patch((void *)a, ENGINE_ORDINARY);
	uint32_t leaf_number = engine_patch((void *)b, ENGINE_ORDINARY);
	if (alternate) {
		stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
		CHECK(sigaltstack(&stack, NULL) == 0);
	}
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = alternate ? SA_ONSTACK : 0 };
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	struct itimerval timer = { { 0, 50 }, { 0, 50 } };
	setitimer(ITIMER_REAL, &timer, NULL);
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	uint64_t mine = 0;
	do {
		for (int i = 0; i < 1000 && mine < 800000; i++) {
			noise += (unsigned)a(i);
			mine++;
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
		/* however few signals a busy machine lets through, until there were enough */
	} while (handled <= 100 || (now.tv_sec - begin.tv_sec < 1 && mine < 800000));
	memset(&timer, 0, sizeof(timer));
	setitimer(ITIMER_REAL, &timer, NULL);
	CHECK(handled > 100);
	check_calls(work, mine);
	check_calls(leaf_number, mine);
	check_calls(handler, handled);
	check_calls(inner, handled);
}

static void storm_body(void)
{
	storm(false);
}

static void alternate_body(void)
{
	storm(true);
}

TEST_IN_CHILD(signals_lose_and_tear_nothing, storm_body)

TEST_IN_CHILD(signals_on_an_alternate_stack_lose_and_tear_nothing, alternate_body)

/* ---- threads, fork, coroutines ---- */

TRACED static void *thread_body(void *data)
{
	for (int i = 0; i < 20; i++)
		noise += (unsigned)a((int)(intptr_t)data);
	return NULL;
}

static void threads_body(void)
{
	struct engine_options options = graph_options;
	options.sub_buffer_bytes = 4096;
	start(&options);
	uint32_t number = engine_patch((void *)thread_body, ENGINE_ORDINARY);
	for (int round = 0; round < 4; round++) {
		pthread_t threads[250];
		for (int i = 0; i < 250; i++)
			CHECK(pthread_create(&threads[i], NULL, thread_body, NULL) == 0);
		for (int i = 0; i < 250; i++)
			pthread_join(threads[i], NULL);
	}
	check_calls(number, 1000);
	check_calls(number_a, 20000);
	CHECK_EQUAL(engine_arena()->generations, 1000);
}

TEST_IN_CHILD(threads_by_the_hundred_have_streams_of_their_own, threads_body)

TRACED static pid_t forks(void)
{
	pid_t child = fork();
	noise += (unsigned)c(1);
	return child;
}

static void fork_body(void)
{
	start(&graph_options);
	uint32_t number = engine_patch((void *)forks, ENGINE_ORDINARY);
	noise += (unsigned)c(1);
	for (int i = 0; i < 10; i++) {
		pid_t child = forks();
		if (child == 0) {
			noise += (unsigned)a(1);
			_exit(42);
		}
		int status;
		CHECK(waitpid(child, &status, 0) == child);
		CHECK_EQUAL(status, 42 << 8);
	}
	uint64_t entries, returns;
	engine_count(number, &entries, &returns);
	CHECK_EQUAL(entries, 10);
	CHECK_EQUAL(returns, 20);
	check_calls(number_a, 10);
	check_calls(number_c, 1 + 20 + 20);
	CHECK_EQUAL(engine_arena()->generations, 11);
}

TEST_IN_CHILD(both_sides_of_a_fork_are_recorded, fork_body)

static ucontext_t main_context, coroutine_context;

TRACED static void yields(void)
{
	swapcontext(&coroutine_context, &main_context);
}

static void coroutine_body(void)
{
	for (int i = 0; i < 3; i++) {
		noise += (unsigned)c(i);
		yields();
	}
}

TRACED static void resumes(void)
{
	swapcontext(&main_context, &coroutine_context);
}

static void coroutines_body(void)
{
	start(&graph_options);
	engine_patch((void *)yields, ENGINE_ORDINARY);
	engine_patch((void *)resumes, ENGINE_ORDINARY);
	void *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = stack;
	coroutine_context.uc_stack.ss_size = 65536;
	coroutine_context.uc_link = &main_context;
	makecontext(&coroutine_context, coroutine_body, 0);
	for (int i = 0; i < 4; i++)
		resumes();
	/* every return finds its own call, whatever stack it is on; a coroutine whose outermost
	 * call returned is left for what ran before it */
	check_trace("E|Cc||D|eE|d||Cc||D|eE|d||Cc||D|eE|d|e");
}

TEST_IN_CHILD(coroutines_keep_their_own_nesting, coroutines_body)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_recorded_in_their_nesting),
		cmocka_unit_test(every_call_is_recorded_across_sub_buffers),
		cmocka_unit_test(full_ring_counts_what_it_drops),
		cmocka_unit_test(overwriting_keeps_the_newest),
		cmocka_unit_test(overwriting_leaves_a_sub_buffer_in_which_an_event_is_begun),
		cmocka_unit_test(function_tracer_records_entries_with_their_callers),
		cmocka_unit_test(tracers_are_switched_in_the_middle_of_calls),
		cmocka_unit_test(off_records_nothing_and_loses_no_frame),
		cmocka_unit_test(deeper_calls_than_max_graph_depth_vanish),
		cmocka_unit_test(only_calls_over_the_threshold_are_recorded),
		cmocka_unit_test(only_what_lies_below_graph_functions_is_recorded),
		cmocka_unit_test(entry_only_functions_leave_their_return_address_alone),
		cmocka_unit_test(frames_that_longjmp_skipped_are_taken_off),
		cmocka_unit_test(
			frames_whose_slots_are_written_over_are_taken_off_where_it_is_asked_for),
		cmocka_unit_test(tail_calls_are_a_return_and_an_entry),
		cmocka_unit_test(a_hundred_thousand_frames_are_no_limit),
		cmocka_unit_test(calls_far_apart_on_a_stack_have_mirrors_where_they_are),
		cmocka_unit_test(a_mapping_where_a_mirror_would_be_is_left_out_of_it),
		cmocka_unit_test(every_register_survives_entry_and_return),
		cmocka_unit_test(signals_lose_and_tear_nothing),
		cmocka_unit_test(signals_on_an_alternate_stack_lose_and_tear_nothing),
		cmocka_unit_test(threads_by_the_hundred_have_streams_of_their_own),
		cmocka_unit_test(both_sides_of_a_fork_are_recorded),
		cmocka_unit_test(coroutines_keep_their_own_nesting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
