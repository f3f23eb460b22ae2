/* SPDX-License-Identifier: MIT */
/* Conditions of --stop-when: what they mean, and where a wrong one goes wrong. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cli/stop_when.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct gt_message message;

static void calls_that_take_too_long(void **state)
{
	static const struct {
		const char *text;
		const char *function;
		uint64_t ns;
	} good[] = {
		{ "f > 10ms", "f", 10000000 },
		{ "  f>1.5us ", "f", 1500 },
		{ "std::vector<int>::push_back(int) > 2s", "std::vector<int>::push_back(int)",
		  2000000000 },
		{ "operator> > 1ns", "operator>", 1 },
		{ "signal > 3ms", "signal", 3000000 },
		{ "hit > 3ms", "hit", 3000000 },
		{ "crash > 3ms", "crash", 3000000 },
		{ "handle_*  >  100ms", "handle_*", 100000000 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		struct gt_stop_condition condition;
		struct gt_trigger trigger;

		assert_int_equal(gt_stop_parse(good[i].text, &condition, &message), 0);
		assert_int_equal(condition.kind, GT_STOP_LATE);
		assert_string_equal(condition.function, good[i].function);
		assert_true(gt_stop_trigger(&condition, &trigger));
		assert_int_equal(trigger.action, GT_TRIGGER_STOP);
		assert_int_equal(trigger.longer_than_ns, good[i].ns);
		gt_stop_condition_fini(&condition);
	}
}

static void the_nth_call(void **state)
{
	static const struct {
		const char *text;
		const char *function;
		uint64_t skip;
	} good[] = {
		{ "f hit 1", "f", 0 },
		{ "f  hit  100 ", "f", 99 },
		{ "signal hit 3", "signal", 2 },
		{ "hit hit 3", "hit", 2 },
		{ "f(int, char) hit 7", "f(int, char)", 6 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		struct gt_stop_condition condition;
		struct gt_trigger trigger;

		assert_int_equal(gt_stop_parse(good[i].text, &condition, &message), 0);
		assert_int_equal(condition.kind, GT_STOP_HIT);
		assert_string_equal(condition.function, good[i].function);
		assert_true(gt_stop_trigger(&condition, &trigger));
		assert_int_equal(trigger.skip, good[i].skip);
		assert_int_equal(trigger.count, 1);
		assert_int_equal(trigger.longer_than_ns, 0);
		gt_stop_condition_fini(&condition);
	}
}

static void signals_and_crashes(void **state)
{
	static const struct {
		const char *text;
		int signal;
	} good[] = { { "signal SIGUSR1", SIGUSR1 },
		     { "signal TERM", SIGTERM },
		     { " signal 12", 12 },
		     { "signal 40", 40 },
		     { "signal SIGSEGV", SIGSEGV } };
	struct gt_stop_condition condition;
	struct gt_trigger trigger;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_int_equal(gt_stop_parse(good[i].text, &condition, &message), 0);
		assert_int_equal(condition.kind, GT_STOP_SIGNAL);
		assert_int_equal(condition.signal, good[i].signal);
		assert_false(gt_stop_trigger(&condition, &trigger));
	}
	assert_int_equal(gt_stop_parse(" crash ", &condition, &message), 0);
	assert_int_equal(condition.kind, GT_STOP_CRASH);
	assert_false(gt_stop_trigger(&condition, &trigger));
}

static void a_caret_stands_where_it_goes_wrong(void **state)
{
	static const struct {
		const char *text;
		int column;
		const char *what;
	} bad[] = {
		{ "", 0, "a condition is wanted" },
		{ "f", 1, "not a condition" },
		{ "f > ", 3, "time is missing" },
		{ "f > 10", 6, "unit is missing" },
		{ "f > 10x", 4, "not a duration" },
		{ "f > 0ms", 4, "every call" },
		{ "> 10ms", 0, "function is missing" },
		{ "f hit", 5, "number is missing" },
		{ "f hit 0", 6, "from 1" },
		{ "hit 3", 0, "function is missing" },
		{ "signal", 6, "signal is missing" },
		{ "signal SIGFOO", 7, "no such signal" },
		{ "signal 65", 7, "no such signal" },
		{ "signal KILL", 7, "no program sees" },
		{ "crashes", 7, "not a condition" },
		{ "f >99999999999999999999999999999999999999999ms", 3, "not a duration" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct gt_stop_condition condition;
		const char *line, *caret;

		assert_int_equal(gt_stop_parse(bad[i].text, &condition, &message), GT_EINVAL);
		assert_null(condition.function);
		assert_non_null(strstr(message.text, bad[i].what));
		line = strchr(message.text, '\n');
		assert_non_null(line);
		caret = strchr(line + 1, '\n');
		assert_non_null(caret);
		assert_int_equal((int)strcspn(caret + 1, "^") - 2, bad[i].column);
	}
}

static void a_text_without_end_is_cut_around_the_place(void **state)
{
	struct gt_stop_condition condition;
	char text[5000];

	(void)state;
	memset(text, 'f', sizeof(text));
	memcpy(text + sizeof(text) - 6, " > 3x", 6);
	assert_int_equal(gt_stop_parse(text, &condition, &message), GT_EINVAL);
	assert_non_null(strstr(message.text, "f > 3x\n"));
	assert_true(strlen(message.text) < sizeof(message.text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_take_too_long),
		cmocka_unit_test(the_nth_call),
		cmocka_unit_test(signals_and_crashes),
		cmocka_unit_test(a_caret_stands_where_it_goes_wrong),
		cmocka_unit_test(a_text_without_end_is_cut_around_the_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
