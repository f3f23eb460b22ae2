/* SPDX-License-Identifier: MIT */
/*
 * Coroutines that a signal handler takes turns with, behind each instruction of the recording path: it
 * edits the registers that the kernel puts back, so no hook sees the switch, and none is a call that could
 * be recorded. Handlers do not nest there: what was interrupted goes on after other coroutines' calls, or
 * in front of them. Whatever records say then, each call must return to its caller.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "tests/unit/engine.h"
#include "tests/unit/engine_child.h"

#define TRAP_FLAG   0x100
#define STACK_BYTES (256 * 1024ul)
#define INTERRUPTED 8 /* at the same instruction, to go on one after the other */
#define STACKS	    (64 * 1024ul)
#define BETWEEN	    50 /* more than the instructions of an entry */

void set_trap(void);
void clear_trap(void);
__asm__(".text\n"
	"set_trap: pushf; orl $0x100, (%rsp); popf; ret\n"
	"clear_trap: pushf; andl $~0x100, (%rsp); popf; ret\n");

struct coroutine {
	gregset_t registers;
	volatile unsigned rounds, result;
};

static struct coroutine scheduler, interrupted[INTERRUPTED], other;
static struct coroutine *volatile running = &scheduler;
static struct coroutine *volatile next;
static volatile unsigned steps, target;
static volatile bool left, stopped;
static int (*volatile work)(int);
static uint64_t stacks, stacks_used;

TRACED static int leaf(int n)
{
	BARRIER();
	return n + 1;
}

TRACED static int single(int n)
{
	BARRIER();
	return n + 2;
}

TRACED static int nested(int n)
{
	BARRIER();
	return n == 0 ? leaf(0) : nested(n - 1) + leaf(n) - n;
}

/* Its return is one of a call that began in an earlier sub-buffer. */
TRACED static int long_one(int n)
{
	bool stepped = target != 0;
	clear_trap();
	for (int i = 0; i < 300; i++)
		n += leaf(i) - i - 1;
	if (stepped && !stopped)
		set_trap();
	BARRIER();
	return n + 2;
}

int jumps(int n);
int jumped_to(int n);
__asm__(".text\n"
	".type jumps, @function\n"
	"jumps: nop; nop; nop; nop; nop\n"
	"	add $1, %edi\n"
	"	jmp jumped_to\n"
	".type jumped_to, @function\n"
	"jumped_to: nop; nop; nop; nop; nop\n"
	"	lea 1(%rdi), %eax\n"
	"	ret\n");

static void go_on_in(struct coroutine *to, ucontext_t *context)
{
	memcpy(running->registers, context->uc_mcontext.gregs, sizeof(gregset_t));
	memcpy(context->uc_mcontext.gregs, to->registers, sizeof(gregset_t));
	running = to;
}

static void on_trap(int signal, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	uint64_t distance = (uint64_t)context->uc_mcontext.gregs[REG_RIP] - (uint64_t)on_trap;
	(void)signal, (void)info;
	/* In the slow half, which masks SIGTRAP. */
	bool in_slow_half = distance + (1ull << 31) > 1ull << 32;
	if (!in_slow_half && ++steps != target)
		return;
	context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	left |= in_slow_half;
	if (in_slow_half)
		return;
	stopped = true;
	go_on_in(&scheduler, context);
}

static void on_turn(int signal, siginfo_t *info, void *data)
{
	(void)signal, (void)info;
	go_on_in(next, data);
}

/* No call of it is traced. */
static void turn_to(struct coroutine *to)
{
	next = to;
	raise(SIGUSR1);
}

static void make(struct coroutine *coroutine, void (*body)(void), uint64_t stack)
{
	greg_t *registers = coroutine->registers;

	memcpy(registers, scheduler.registers, sizeof(gregset_t));
	registers[REG_RIP] = (greg_t)body;
	registers[REG_RSP] = (greg_t)(stack + STACK_BYTES - 8);
	registers[REG_EFL] = 0x202;
	coroutine->rounds = 0;
}

/* Whose mirror nobody has opened yet. */
static uint64_t new_stack(void)
{
	CHECK(stacks_used < STACKS);
	return stacks + stacks_used++ * STACK_BYTES;
}

/* An open call: the outermost one of a stack takes the slow half. */
TRACED static void interrupted_body(void)
{
	struct coroutine *const self = running;
	for (;;) {
		bool stepped = target != 0;
		steps = 0;
		if (stepped)
			set_trap();
		self->result = (unsigned)work((int)self->rounds);
		clear_trap();
		turn_to(&scheduler);
		self->rounds++;
	}
}

/* Not traced itself: its one call is. */
static void first_body(void)
{
	struct coroutine *const self = running;
	steps = 0;
	set_trap();
	self->result = (unsigned)single(0);
	clear_trap();
	for (;;)
		turn_to(&scheduler);
}

TRACED static int turns(int n)
{
	clear_trap();
	turn_to(&scheduler);
	BARRIER();
	return n + 2;
}

static void other_body(void)
{
	for (;;) {
		other.result = (unsigned)nested(3);
		turn_to(&scheduler);
		other.rounds++;
	}
}

static void run(struct coroutine *coroutine)
{
	turn_to(coroutine);
}

static void prepare(enum graftrace_tracer tracer, uint64_t threshold, bool profile)
{
	start_overwriting(tracer, threshold, profile);
	engine_patch((void *)leaf, ENGINE_ORDINARY);
	engine_patch((void *)single, ENGINE_ORDINARY);
	engine_patch((void *)nested, ENGINE_ORDINARY);
	engine_patch((void *)long_one, ENGINE_ORDINARY);
	engine_patch((void *)jumps, ENGINE_ORDINARY);
	engine_patch((void *)jumped_to, ENGINE_ORDINARY);
	engine_patch((void *)interrupted_body, ENGINE_ORDINARY);
	engine_patch((void *)turns, ENGINE_ORDINARY);
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	sigaction(SIGTRAP, &action, NULL);
	action.sa_sigaction = on_turn;
	sigaction(SIGUSR1, &action, NULL);
	void *got = mmap(NULL, STACKS * STACK_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(got != MAP_FAILED);
	stacks = (uint64_t)got;
	/* the registers of a coroutine that begins are what these were, but for a few */
	next = &scheduler;
	raise(SIGUSR1);
}

/* Lets one be interrupted behind instruction `at` of its next call. False: its call was over before. */
static bool interrupt(struct coroutine *coroutine, unsigned at)
{
	stopped = left = false;
	target = at;
	run(coroutine);
	target = 0;
	return stopped;
}

/*
 * Coroutines that are in their straight lines go on, one after the other, while another one's frames are
 * the running ones: each pushes, or pops, one of those.
 */
static void interrupt_everywhere(unsigned least)
{
	unsigned tries = 0;
	uint64_t own[INTERRUPTED], others = 0;
	for (int i = 0; i < INTERRUPTED; i++) {
		if (i == INTERRUPTED / 2)
			others = new_stack();
		own[i] = new_stack();
	}
	unsigned at;
	for (at = 1;; at++) {
		bool was_left = false;
		bool stays[INTERRUPTED];
		int count = 0;
		make(&other, other_body, others);
		for (int i = 0; i < INTERRUPTED; i++) {
			make(&interrupted[i], interrupted_body, own[i]);
			run(&interrupted[i]); /* the next one takes the straight line */
			CHECK_EQUAL(interrupted[i].result, interrupted[i].rounds + 2);
			stays[i] = interrupt(&interrupted[i], at);
			count += stays[i];
			was_left |= left;
		}
		run(&other);
		CHECK_EQUAL(other.result, 4);
		for (int i = 0; i < INTERRUPTED; i++)
			if (stays[i])
				run(&interrupted[i]);
		for (int i = 0; i < INTERRUPTED; i++)
			CHECK_EQUAL(interrupted[i].result, interrupted[i].rounds + 2);
		for (int round = 0; round < 2; round++) {
			run(&other);
			CHECK_EQUAL(other.result, 4);
			for (int i = 0; i < INTERRUPTED; i++)
				run(&interrupted[i]);
		}
		if (count == INTERRUPTED)
			continue;
		/* what the slow half made of it is told by another try; else they were over */
		if (!was_left)
			break;
		CHECK(++tries < 200);
		at--;
	}
	CHECK(at > least);
}

/* Another coroutine begins above one that is in its straight line, on a stack that has no mirror yet. */
static void begin_above_everywhere(unsigned least)
{
	uint64_t own = new_stack();
	unsigned at, tries = 0;

	for (at = 1;; at++) {
		make(&interrupted[0], interrupted_body, own);
		run(&interrupted[0]);
		if (!interrupt(&interrupted[0], at) && !left)
			break;
		make(&other, other_body, new_stack());
		run(&other);
		CHECK_EQUAL(other.result, 4);
		if (stopped)
			run(&interrupted[0]);
		CHECK_EQUAL(interrupted[0].result, interrupted[0].rounds + 2);
		if (stopped)
			continue;
		CHECK(++tries < 200);
		at--;
	}
	CHECK(at > least);
}

/* The highest of the stacks below, and above those between. */
static uint64_t high_stack(void)
{
	return stacks + 2 * BETWEEN * STACK_BYTES;
}

/* A coroutine's first call begins while calls above it are the running ones, and goes on while those below
 * it are: its stack has no mirror, but both ends of what has one seem to lie around it. */
static void begin_between_everywhere(void)
{
	struct coroutine *const below = &interrupted[0], *const above = &interrupted[1];
	struct coroutine *const first = &interrupted[2];

	make(below, interrupted_body, new_stack());
	make(above, interrupted_body, high_stack());
	run(above);
	for (unsigned at = 1; at < BETWEEN; at++) {
		run(below);
		run(above);
		make(first, first_body, new_stack());
		interrupt(first, at);
		run(below);
		if (stopped)
			run(first);
		CHECK_EQUAL(first->result, 2);
	}
}

/* A call is pushed on those of a stack further down. Another coroutine's first one lies between. */
static void begin_below_a_wrong_push_everywhere(void)
{
	struct coroutine *const below = &interrupted[0], *const above = &interrupted[1];

	make(below, interrupted_body, new_stack());
	run(below);
	run(below);
	for (unsigned at = 1; at < BETWEEN; at++) {
		make(above, interrupted_body, high_stack());
		run(above);
		run(above);
		bool stays = interrupt(above, at);
		run(below);
		run(below);
		if (stays)
			run(above); /* to the body of its call */
		make(&other, other_body, new_stack());
		run(&other);
		CHECK_EQUAL(other.result, 4);
		run(above);
		CHECK_EQUAL(above->result, above->rounds + 2);
	}
}

static void graph_body(void)
{
	prepare(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0, false);
	work = single;
	interrupt_everywhere(60);
}

static void above_body(void)
{
	prepare(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0, false);
	work = single;
	begin_above_everywhere(60);
}

static void between_body(void)
{
	prepare(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0, false);
	work = single;
	begin_between_everywhere();
}

static void wrong_push_body(void)
{
	prepare(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0, false);
	work = turns;
	begin_below_a_wrong_push_everywhere();
}

static void tail_body(void)
{
	prepare(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0, false);
	work = jumps;
	interrupt_everywhere(110);
}

static void long_body(void)
{
	prepare(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0, false);
	work = long_one;
	interrupt_everywhere(80);
}

static void threshold_body(void)
{
	prepare(GRAFTRACE_TRACER_FUNCTION_GRAPH, 1ull << 50, false);
	work = single;
	interrupt_everywhere(50);
}

static void function_body(void)
{
	prepare(GRAFTRACE_TRACER_FUNCTION, 0, false);
	work = single;
	interrupt_everywhere(30);
}

static void profile_body(void)
{
	prepare(GRAFTRACE_TRACER_NOP, 0, true);
	work = single;
	interrupt_everywhere(75);
}

static void profile_graph_body(void)
{
	prepare(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0, true);
	work = single;
	interrupt_everywhere(90);
}

TEST_IN_CHILD(coroutines_go_on_in_function_graph, graph_body)
TEST_IN_CHILD(coroutines_go_on_in_a_tail_call, tail_body)
TEST_IN_CHILD(coroutines_go_on_in_the_return_of_an_old_call, long_body)
TEST_IN_CHILD(coroutines_go_on_with_a_threshold, threshold_body)
TEST_IN_CHILD(coroutines_go_on_in_the_function_tracer, function_body)
TEST_IN_CHILD(coroutines_go_on_in_the_profiler, profile_body)
TEST_IN_CHILD(coroutines_go_on_in_the_profiler_beside_function_graph, profile_graph_body)
TEST_IN_CHILD(one_begins_above_an_interrupted_one, above_body)
TEST_IN_CHILD(one_begins_between_others, between_body)
TEST_IN_CHILD(one_begins_below_a_wrong_push, wrong_push_body)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(coroutines_go_on_in_function_graph),
		cmocka_unit_test(coroutines_go_on_in_a_tail_call),
		cmocka_unit_test(coroutines_go_on_in_the_return_of_an_old_call),
		cmocka_unit_test(coroutines_go_on_with_a_threshold),
		cmocka_unit_test(coroutines_go_on_in_the_function_tracer),
		cmocka_unit_test(coroutines_go_on_in_the_profiler),
		cmocka_unit_test(coroutines_go_on_in_the_profiler_beside_function_graph),
		cmocka_unit_test(one_begins_above_an_interrupted_one),
		cmocka_unit_test(one_begins_between_others),
		cmocka_unit_test(one_begins_below_a_wrong_push),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
