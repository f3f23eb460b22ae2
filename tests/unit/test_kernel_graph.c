/* SPDX-License-Identifier: MIT */
/* set_graph_function of a kernel, set and emptied while threads run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/record/kernel.h"
#include "port/fake/fake.h"

enum { OUTER = 1, INNER, LEAF };

static void assert_calls(uint32_t function, bool recorded)
{
	assert_int_equal(gt_fake_call(function), recorded);
	gt_fake_return();
}

static struct gt_fake_stack *here, *there;

/* Two threads, each in a call; the second one runs. */
static void begin(void)
{
	gt_fake_start(1 << 20, 4096);
	here = gt_fake_stack(1);
	there = gt_fake_stack(2);
	gt_fake_cpu_start(0, here);
	assert_true(gt_fake_call(OUTER));
	gt_fake_switch(there, 0);
	assert_true(gt_fake_call(OUTER));
}

static void a_list_holds_for_threads_that_were_there(void **state)
{
	(void)state;
	begin();
	gt_kernel_set_graph_only(true);
	assert_calls(LEAF, false);
	assert_true(gt_fake_call_root(INNER));
	assert_calls(LEAF, true);
	gt_fake_switch(here, 0); /* it did not run then */
	assert_calls(LEAF, false);
	gt_fake_switch(there, 0); /* it went inside, and comes back so */
	assert_calls(LEAF, true);
	gt_fake_return();
	assert_calls(LEAF, false);
	gt_fake_return(); /* what was open before is told to its end */
	assert_calls(LEAF, false);
	gt_kernel_set_graph_only(false);
}

static void without_a_list_all_is_recorded_again(void **state)
{
	(void)state;
	begin();
	gt_kernel_set_graph_only(true);
	assert_calls(LEAF, false);
	gt_kernel_set_graph_only(false);
	assert_calls(LEAF, true);
	gt_fake_switch(here, 0);
	assert_calls(LEAF, true);
}

static void the_same_list_again_changes_nothing(void **state)
{
	(void)state;
	begin();
	gt_kernel_set_graph_only(true);
	assert_true(gt_fake_call_root(INNER));
	gt_kernel_set_graph_only(true);
	assert_calls(LEAF, true);
	gt_fake_return();
	gt_kernel_set_graph_only(false);
}

static void a_paused_thread_stays_paused(void **state)
{
	(void)state;
	begin();
	gt_kernel_pause();
	gt_kernel_set_graph_only(true);
	assert_calls(LEAF, false);
	gt_kernel_set_graph_only(false);
	assert_calls(LEAF, false);
	gt_kernel_resume();
	assert_calls(LEAF, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_holds_for_threads_that_were_there),
		cmocka_unit_test(without_a_list_all_is_recorded_again),
		cmocka_unit_test(the_same_list_again_changes_nothing),
		cmocka_unit_test(a_paused_thread_stays_paused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
