/* SPDX-License-Identifier: MIT */
/*
 * A fork behind each instruction of the recording path: the trap flag stops there, the handler
 * makes a child by the system call alone, and the child returns to the middle of the path with a
 * block that fork has wiped. It must go on as its parent does, and be recorded from its next call on.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include "tests/unit/engine.h"
#include "tests/unit/engine_child.h"

#define TRAP_FLAG 0x100

void set_trap(void);
void clear_trap(void);
__asm__(".text\n"
	"set_trap: pushf; orl $0x100, (%rsp); popf; ret\n"
	"clear_trap: pushf; andl $~0x100, (%rsp); popf; ret\n");

static volatile unsigned steps, target;
static volatile bool is_child, left;
static volatile int child_status;
static volatile uint64_t calls;

TRACED static int leaf(int n)
{
	calls++;
	BARRIER();
	return n + 1;
}

TRACED static int single(int n)
{
	calls++;
	BARRIER();
	return n + 2;
}

/* Its return is one of a call that began in an earlier sub-buffer. */
TRACED static int long_one(int n)
{
	bool stepped = target != 0;
	clear_trap();
	for (int i = 0; i < 300; i++)
		n += leaf(i) - i - 1;
	if (stepped && !is_child && child_status == -1)
		set_trap();
	BARRIER();
	return n + 2;
}

int jumps(int n);
__asm__(".text\n"
	".type jumps, @function\n"
	"jumps: nop; nop; nop; nop; nop\n"
	"	add $1, %edi\n"
	"	jmp jumped_to\n"
	".type jumped_to, @function\n"
	"jumped_to: nop; nop; nop; nop; nop\n"
	"	lea 1(%rdi), %eax\n"
	"	ret\n");
int jumped_to(int n);

static void stop_stepping(ucontext_t *context)
{
	context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void on_trap(int signal, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	uint64_t distance = (uint64_t)context->uc_mcontext.gregs[REG_RIP] - (uint64_t)on_trap;
	(void)signal, (void)info;
	/* In the slow half, which masks SIGTRAP: the clock's high half has changed, say. */
	if (distance + (1ull << 31) > 1ull << 32) {
		left = true;
		stop_stepping(context);
		return;
	}
	if (++steps != target)
		return;
	stop_stepping(context);
	pid_t pid = (pid_t)syscall(SYS_fork);
	if (pid == 0) {
		is_child = true;
		return;
	}
	int status = -1;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = 1;
	child_status = status;
}

static void patch_all(enum graftrace_tracer tracer, uint64_t threshold, bool profile)
{
	start_overwriting(tracer, threshold, profile);
	engine_patch((void *)leaf, ENGINE_ORDINARY);
	engine_patch((void *)single, ENGINE_ORDINARY);
	engine_patch((void *)long_one, ENGINE_ORDINARY);
	engine_patch((void *)jumps, ENGINE_ORDINARY);
	engine_patch((void *)jumped_to, ENGINE_ORDINARY);
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	sigaction(SIGTRAP, &action, NULL);
}

/* What is stepped through takes `least` instructions at least. */
static void fork_everywhere(int (*work)(int), unsigned least)
{
	unsigned tries = 0;
	for (unsigned at = 1;; at++) {
		target = 0;
		CHECK_EQUAL(work(at), at + 2); /* the next one takes the straight line */
		steps = 0;
		left = false;
		child_status = -1;
		target = at;
		set_trap();
		unsigned result = (unsigned)work((int)at);
		clear_trap();
		if (is_child) {
			target = 0;
			CHECK_EQUAL(result, at + 2);
			for (unsigned i = 0; i < 3; i++)
				CHECK_EQUAL(work((int)i), i + 2);
			_exit(0);
		}
		CHECK_EQUAL(result, at + 2);
		if (child_status == -1 && left) {
			CHECK(++tries < 200);
			at--;
			continue;
		}
		if (child_status == -1)
			break;
		CHECK_EQUAL(child_status, 0);
	}
	CHECK(steps > least);
}

static void graph_body(void)
{
	patch_all(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0, false);
	fork_everywhere(single, 60);
}

static void tail_body(void)
{
	patch_all(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0, false);
	fork_everywhere(jumps, 110);
}

static void long_body(void)
{
	patch_all(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0, false);
	fork_everywhere(long_one, 80);
}

static void threshold_body(void)
{
	patch_all(GRAFTRACE_TRACER_FUNCTION_GRAPH, 1ull << 50, false);
	fork_everywhere(single, 50);
}

static void function_body(void)
{
	patch_all(GRAFTRACE_TRACER_FUNCTION, 0, false);
	fork_everywhere(single, 30);
}

static void profile_body(void)
{
	patch_all(GRAFTRACE_TRACER_NOP, 0, true);
	fork_everywhere(single, 75);
}

static void profile_graph_body(void)
{
	patch_all(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0, true);
	fork_everywhere(single, 90);
}

TEST_IN_CHILD(a_child_goes_on_in_function_graph, graph_body)
TEST_IN_CHILD(a_child_goes_on_in_a_tail_call, tail_body)
TEST_IN_CHILD(a_child_goes_on_in_the_return_of_an_old_call, long_body)
TEST_IN_CHILD(a_child_goes_on_with_a_threshold, threshold_body)
TEST_IN_CHILD(a_child_goes_on_in_the_function_tracer, function_body)
TEST_IN_CHILD(a_child_goes_on_in_the_profiler, profile_body)
TEST_IN_CHILD(a_child_goes_on_in_the_profiler_beside_function_graph, profile_graph_body)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_goes_on_in_function_graph),
		cmocka_unit_test(a_child_goes_on_in_a_tail_call),
		cmocka_unit_test(a_child_goes_on_in_the_return_of_an_old_call),
		cmocka_unit_test(a_child_goes_on_with_a_threshold),
		cmocka_unit_test(a_child_goes_on_in_the_function_tracer),
		cmocka_unit_test(a_child_goes_on_in_the_profiler),
		cmocka_unit_test(a_child_goes_on_in_the_profiler_beside_function_graph),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
