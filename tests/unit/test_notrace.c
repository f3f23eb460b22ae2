/* SPDX-License-Identifier: MIT */
/*
 * What the recording path leaves out below a function (set_graph_notrace), and the stack traces of
 * the function tracer. Each test runs an engine in a child of its own.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "tests/unit/engine.h"
#include "tests/unit/engine_child.h"

static const struct engine_options graph_options = {
	.sub_buffers = 256,
	.sub_buffer_bytes = 32768,
	.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
	.mode = GRAFTRACE_MODE_RING,
};

/* a calls b and c, b calls c */

static volatile unsigned noise;

TRACED static int c(int n)
{
	BARRIER();
	return n + 1;
}

TRACED static int b(int n)
{
	int r = c(n) + 1;
	BARRIER();
	return r;
}

TRACED static int a(int n)
{
	int r = b(n) + c(n);
	BARRIER();
	return r;
}

static void start(const struct engine_options *options, enum engine_kind of_a,
		  enum engine_kind of_b, enum engine_kind of_c)
{
	engine_start(options);
	engine_patch((void *)a, of_a);
	engine_patch((void *)b, of_b);
	engine_patch((void *)c, of_c);
}

static void subtree_body(void)
{
	start(&graph_options, ENGINE_ORDINARY, ENGINE_NOTRACE, ENGINE_ORDINARY);
	CHECK_EQUAL(a(1), 1 + 2 + 1 + 1);
	CHECK_EQUAL(b(1), 3);
	CHECK_EQUAL(c(1), 2);
	check_trace("ACcaCc");
}

TEST_IN_CHILD(a_notrace_function_and_all_below_it_are_not_recorded, subtree_body)

static void many_body(void)
{
	struct engine_options options = graph_options;
	options.sub_buffer_bytes = 4096;
	start(&options, ENGINE_ORDINARY, ENGINE_NOTRACE, ENGINE_ORDINARY);
	for (int i = 0; i < 20000; i++)
		noise += (unsigned)a(i);
	check_calls(1, 20000);
	check_calls(2, 0);
	check_calls(3, 20000);
	CHECK_EQUAL(graftrace_arena_streams(engine_arena())[0].lost[GRAFTRACE_LOST_FULL], 0);
}

TEST_IN_CHILD(nothing_else_is_lost_across_sub_buffers, many_body)

static void function_body(void)
{
	struct engine_options options = graph_options;
	options.tracer = GRAFTRACE_TRACER_FUNCTION;
	start(&options, ENGINE_ORDINARY, ENGINE_NOTRACE, ENGINE_ORDINARY);
	noise += (unsigned)a(1);
	check_trace("ABCC");
	engine_set_tracer(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0);
	noise += (unsigned)a(1);
	check_trace("ABCCACca");
}

TEST_IN_CHILD(the_function_tracer_knows_no_notrace, function_body)

static void threshold_body(void)
{
	struct engine_options options = graph_options;
	options.threshold_ticks = 1;
	start(&options, ENGINE_ORDINARY, ENGINE_NOTRACE, ENGINE_ORDINARY);
	noise += (unsigned)a(1);
	check_trace("ca");
}

TEST_IN_CHILD(long_calls_below_notrace_are_not_recorded, threshold_body)

static void roots_body(void)
{
	struct engine_options options = graph_options;
	options.graph_only = 1;
	start(&options, ENGINE_NOTRACE, ENGINE_ROOT, ENGINE_ORDINARY);
	noise += (unsigned)a(1);
	check_trace("");
	noise += (unsigned)b(1);
	check_trace("BCcb");
}

TEST_IN_CHILD(a_graph_function_below_notrace_is_not_recorded, roots_body)

static void off_body(void)
{
	start(&graph_options, ENGINE_ORDINARY, ENGINE_NOTRACE, ENGINE_ORDINARY);
	engine_set_on(false);
	noise += (unsigned)a(1);
	engine_set_on(true);
	noise += (unsigned)a(1);
	engine_set_tracer(GRAFTRACE_TRACER_NOP, 0);
	noise += (unsigned)a(1);
	engine_set_tracer(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0);
	noise += (unsigned)a(1);
	check_trace("ACcaACca");
}

TEST_IN_CHILD(tracing_goes_off_and_on_around_notrace, off_body)

static jmp_buf jump;

TRACED static void leaps(void)
{
	noise += (unsigned)c(1);
	longjmp(jump, 1);
}

TRACED static int catches(void)
{
	if (setjmp(jump) == 0)
		leaps();
	return c(1);
}

static void longjmp_body(void)
{
	start(&graph_options, ENGINE_ORDINARY, ENGINE_ORDINARY, ENGINE_ORDINARY);
	engine_patch((void *)leaps, ENGINE_NOTRACE);
	engine_patch((void *)catches, ENGINE_ORDINARY);
	noise += (unsigned)catches();
	noise += (unsigned)c(1);
	check_trace("ECceCc");
}

TEST_IN_CHILD(a_longjmp_out_of_notrace_ends_it, longjmp_body)

int hops(int n);
int lands(int n);
__asm__(".text\n"
	".globl hops, lands\n"
	".type hops, @function\n"
	"hops: nop; nop; nop; nop; nop\n"
	"	sub $1, %edi\n"
	"	jmp lands\n"
	".type lands, @function\n"
	"lands: nop; nop; nop; nop; nop\n"
	"	lea 10(%edi), %eax\n"
	"	ret\n");

static void tail_body(void)
{
	start(&graph_options, ENGINE_ORDINARY, ENGINE_ORDINARY, ENGINE_ORDINARY);
	engine_patch((void *)hops, ENGINE_NOTRACE);
	engine_patch((void *)lands, ENGINE_ORDINARY);
	CHECK_EQUAL(hops(1), 10);
	CHECK_EQUAL(lands(1), 11);
	check_trace("Ee");
}

static void tail_again_body(void)
{
	start(&graph_options, ENGINE_ORDINARY, ENGINE_ORDINARY, ENGINE_ORDINARY);
	engine_patch((void *)hops, ENGINE_ORDINARY);
	engine_patch((void *)lands, ENGINE_NOTRACE);
	CHECK_EQUAL(hops(1), 10);
	CHECK_EQUAL(c(1), 2);
	check_trace("DdCc");
}

TEST_IN_CHILD(a_tail_call_from_notrace_is_below_it, tail_body)

TEST_IN_CHILD(a_tail_call_to_notrace_ends_the_caller, tail_again_body)

static ucontext_t main_context, coroutine_context;

TRACED static void yields(void)
{
	noise += (unsigned)c(1);
	swapcontext(&coroutine_context, &main_context);
	noise += (unsigned)c(1);
}

static void coroutine_body(void)
{
	for (int i = 0; i < 3; i++)
		yields();
}

TRACED static void resumes(void)
{
	swapcontext(&main_context, &coroutine_context);
	noise += (unsigned)c(1);
}

static void coroutines_body(void)
{
	void *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	start(&graph_options, ENGINE_ORDINARY, ENGINE_ORDINARY, ENGINE_ORDINARY);
	engine_patch((void *)yields, ENGINE_NOTRACE);
	engine_patch((void *)resumes, ENGINE_ORDINARY);
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = stack;
	coroutine_context.uc_stack.ss_size = 65536;
	coroutine_context.uc_link = &main_context;
	makecontext(&coroutine_context, coroutine_body, 0);
	for (int i = 0; i < 3; i++)
		resumes();
	check_trace("E||CceE||||CceE||||Cce");
}

TEST_IN_CHILD(a_coroutine_in_notrace_does_not_silence_others, coroutines_body)

/* ---- stack traces of the function tracer ---- */

static struct engine_options stack_options(void)
{
	struct engine_options options = graph_options;
	options.tracer = GRAFTRACE_TRACER_FUNCTION;
	options.func_stack = 1;
	return options;
}

static void stacks_body(void)
{
	struct engine_options options = stack_options();
	start(&options, ENGINE_ORDINARY, ENGINE_ORDINARY, ENGINE_ORDINARY);
	CHECK_EQUAL(a(1), 1 + 2 + 1 + 1);
	CHECK_EQUAL(c(1), 2);
	check_trace("A(A)B(BA)C(CBA)C(CA)C(C)");
}

TEST_IN_CHILD(each_call_has_its_stack, stacks_body)

static void silent_body(void)
{
	struct engine_options options = stack_options();
	start(&options, ENGINE_SILENT, ENGINE_SILENT, ENGINE_ORDINARY);
	noise += (unsigned)a(1);
	check_trace("C(CBA)C(CA)");
	engine_arena()->func_stack = 0;
	engine_set_tracer(GRAFTRACE_TRACER_FUNCTION, 0);
	noise += (unsigned)a(1);
	check_trace("C(CBA)C(CA)CC");
	engine_set_tracer(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0);
	noise += (unsigned)a(1);
	check_trace("C(CBA)C(CA)CCCcCc");
}

TEST_IN_CHILD(functions_that_no_filter_names_are_in_stacks_alone, silent_body)

static void stack_jumps_body(void)
{
	struct engine_options options = stack_options();
	start(&options, ENGINE_ORDINARY, ENGINE_ORDINARY, ENGINE_ORDINARY);
	engine_patch((void *)leaps, ENGINE_ORDINARY);
	engine_patch((void *)catches, ENGINE_ORDINARY);
	engine_patch((void *)hops, ENGINE_ORDINARY);
	engine_patch((void *)lands, ENGINE_ORDINARY);
	noise += (unsigned)catches();
	CHECK_EQUAL(hops(1), 10);
	check_trace("E(E)D(DE)C(CDE)C(CE)F(F)G(G)");
}

TEST_IN_CHILD(stacks_follow_jumps_and_tail_calls, stack_jumps_body)

TRACED static int turns(int n)
{
	engine_arena()->func_stack = 0;
	engine_set_tracer(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0);
	n = c(n);
	engine_arena()->func_stack = 1;
	engine_set_tracer(GRAFTRACE_TRACER_FUNCTION, 0);
	n = c(n);
	BARRIER();
	return n;
}

static void turns_body(void)
{
	struct engine_options options = stack_options();
	start(&options, ENGINE_ORDINARY, ENGINE_ORDINARY, ENGINE_ORDINARY);
	engine_patch((void *)turns, ENGINE_ORDINARY);
	CHECK_EQUAL(turns(1), 3);
	CHECK_EQUAL(c(1), 2);
	check_trace("D(D)CcC(CD)C(C)");
}

TEST_IN_CHILD(tracers_are_switched_below_open_calls, turns_body)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_notrace_function_and_all_below_it_are_not_recorded),
		cmocka_unit_test(nothing_else_is_lost_across_sub_buffers),
		cmocka_unit_test(the_function_tracer_knows_no_notrace),
		cmocka_unit_test(long_calls_below_notrace_are_not_recorded),
		cmocka_unit_test(a_graph_function_below_notrace_is_not_recorded),
		cmocka_unit_test(tracing_goes_off_and_on_around_notrace),
		cmocka_unit_test(a_longjmp_out_of_notrace_ends_it),
		cmocka_unit_test(a_tail_call_from_notrace_is_below_it),
		cmocka_unit_test(a_tail_call_to_notrace_ends_the_caller),
		cmocka_unit_test(a_coroutine_in_notrace_does_not_silence_others),
		cmocka_unit_test(each_call_has_its_stack),
		cmocka_unit_test(functions_that_no_filter_names_are_in_stacks_alone),
		cmocka_unit_test(stacks_follow_jumps_and_tail_calls),
		cmocka_unit_test(tracers_are_switched_below_open_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
