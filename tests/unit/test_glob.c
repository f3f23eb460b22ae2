/* SPDX-License-Identifier: MIT */
/* Globs with ftrace's meaning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/trace/glob.h"

static void a_word_matches_itself_only(void **state)
{
	(void)state;
	assert_true(gt_glob_match("vfs_read", "vfs_read"));
	assert_false(gt_glob_match("vfs_read", "vfs_readv"));
	assert_false(gt_glob_match("vfs_readv", "vfs_read"));
	assert_false(gt_glob_match("", "x"));
	assert_true(gt_glob_match("", ""));
}

static void a_star_matches_any_text_anywhere(void **state)
{
	(void)state;
	assert_true(gt_glob_match("*", ""));
	assert_true(gt_glob_match("vfs_*", "vfs_"));
	assert_true(gt_glob_match("*read", "vfs_read"));
	assert_true(gt_glob_match("*_re*", "vfs_read"));
	assert_true(gt_glob_match("a*b*c", "aXbbXbcXc"));
	assert_false(gt_glob_match("a*b*c", "aXbbXbX"));
	assert_true(gt_glob_match("**x", "x"));
}

static void a_question_mark_matches_one_character(void **state)
{
	(void)state;
	assert_true(gt_glob_match("l?a_?all", "lua_call"));
	assert_false(gt_glob_match("a?", "a"));
}

static void sets_and_ranges_match_one_of_them(void **state)
{
	(void)state;
	assert_true(gt_glob_match("f[0-9]", "f7"));
	assert_false(gt_glob_match("f[0-9]", "fx"));
	assert_true(gt_glob_match("f[!0-9]", "fx"));
	assert_true(gt_glob_match("f[^0-9]*", "fxy"));
	assert_true(gt_glob_match("[]x]", "]"));
	assert_true(gt_glob_match("[a-]", "-"));
	assert_true(gt_glob_match("*[xy]z", "aayxz"));
}

static void a_set_that_is_not_closed_is_a_bracket(void **state)
{
	(void)state;
	assert_true(gt_glob_match("a[b", "a[b"));
	assert_false(gt_glob_match("a[b", "ab"));
	assert_true(gt_glob_match("operator\\[\\]", "operator[]"));
}

static void many_stars_do_not_take_for_ever(void **state)
{
	char text[20001];
	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	assert_false(gt_glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_matches_itself_only),
		cmocka_unit_test(a_star_matches_any_text_anywhere),
		cmocka_unit_test(a_question_mark_matches_one_character),
		cmocka_unit_test(sets_and_ranges_match_one_of_them),
		cmocka_unit_test(a_set_that_is_not_closed_is_a_bracket),
		cmocka_unit_test(many_stars_do_not_take_for_ever),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
