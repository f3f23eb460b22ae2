/* SPDX-License-Identifier: MIT */
/* Lists of words that are shared, and settings that share them. Memory that is left or freed twice
 * is the sanitizer's to find, and the count's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <graftrace/error.h>
#include "core/trace/settings.h"

static size_t taken; /* bytes */
static int allowed;  /* so many more pieces are given; < 0: any number */

static void *resize(void *data, void *memory, size_t old_bytes, size_t new_bytes)
{
	(void)data;
	if (new_bytes > 0 && allowed == 0)
		return NULL;
	allowed -= allowed > 0;
	taken += new_bytes - old_bytes;
	if (new_bytes == 0) {
		free(memory);
		return NULL;
	}
	return realloc(memory, new_bytes);
}

static const struct gt_memory memory = { resize, NULL };

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static struct gt_word_list *list_of(const char *const *words)
{
	struct gt_word_list *list;

	allowed = -1;
	assert_int_equal(gt_word_list_create(&memory, words, &list), GT_OK);
	return list;
}

static void a_list_matches_what_its_words_say(void **state)
{
	char word[] = "ma*";
	const char *const words[] = { word, "work", NULL };
	struct gt_word_list *list = list_of(words);

	(void)state;
	word[0] = 'x'; /* it has copies */
	assert_int_equal(list->count, 2);
	assert_string_equal(gt_word_list_words(list)[0], "ma*");
	assert_null(gt_word_list_words(list)[2]);
	assert_true(gt_word_list_match(list, "main"));
	assert_true(gt_word_list_match(list, "work"));
	assert_false(gt_word_list_match(list, "worker"));
	assert_false(gt_word_list_has_modules(list));
	gt_word_list_release(list);
	assert_int_equal(taken, 0);
}

static void an_empty_list_is_none(void **state)
{
	(void)state;
	assert_null(list_of(NULL));
	assert_null(list_of((const char *const[]){ NULL }));
	assert_null(gt_word_list_words(NULL));
	assert_false(gt_word_list_match(NULL, "main"));
	assert_false(gt_word_list_match_module(NULL, "/bin/prog", "main"));
	assert_null(gt_word_list_hold(NULL));
	gt_word_list_release(NULL);
}

static void a_word_with_an_object_names_functions_of_that_one(void **state)
{
	struct gt_word_list *list = list_of(WORDS("work", "in*:mod:libz.so.1", "a:mod:prog"));

	(void)state;
	assert_true(gt_word_list_has_modules(list));
	assert_true(gt_word_list_match_module(list, "/usr/lib/libz.so.1", "inflate"));
	assert_true(gt_word_list_match_module(list, "libz.so.1", "inflate"));
	assert_false(gt_word_list_match_module(list, "/usr/lib/libz.so.2", "inflate"));
	assert_false(gt_word_list_match_module(list, "/usr/lib/libz.so.1", "deflate"));
	assert_true(gt_word_list_match_module(list, "/bin/prog", "a"));
	assert_false(gt_word_list_match_module(list, "/bin/prog", "work"));
	assert_false(gt_word_list_match(list, "inflate"));
	gt_word_list_release(list);
	assert_int_equal(taken, 0);
}

static void settings_share_their_lists(void **state)
{
	struct gt_word_list *list = list_of(WORDS("main"));
	struct gt_trace_settings one = { .tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
					 .max_depth = 3 };
	struct gt_trace_settings other;

	(void)state;
	gt_trace_settings_set_list(&one, GT_LIST_GRAPH, list);
	gt_word_list_release(list);
	other = gt_trace_settings_copy(&one);
	assert_ptr_equal(other.lists[GT_LIST_GRAPH], list);
	assert_true(gt_trace_settings_has_roots(&other));
	gt_trace_settings_fini(&one);
	assert_int_equal(other.max_depth, 3);
	assert_true(gt_word_list_match(other.lists[GT_LIST_GRAPH], "main"));
	/* the same one again stays */
	gt_trace_settings_set_list(&other, GT_LIST_GRAPH, other.lists[GT_LIST_GRAPH]);
	other.tracer = GRAFTRACE_TRACER_FUNCTION;
	assert_false(gt_trace_settings_has_roots(&other));
	gt_trace_settings_fini(&other);
	assert_int_equal(taken, 0);
}

static void lists_are_the_same_word_by_word(void **state)
{
	struct gt_word_list *a = list_of(WORDS("a", "b")), *b = list_of(WORDS("a", "b")),
			    *c = list_of(WORDS("a", "bc"));

	(void)state;
	assert_true(gt_word_list_is_same(a, b));
	assert_false(gt_word_list_is_same(a, c));
	assert_false(gt_word_list_is_same(a, NULL));
	assert_true(gt_word_list_is_same(NULL, NULL));
	gt_word_list_release(a);
	gt_word_list_release(b);
	gt_word_list_release(c);
	assert_int_equal(taken, 0);
}

static void a_longer_list_shares_the_words_of_the_one_before(void **state)
{
	struct gt_word_list *first = list_of(WORDS("a", "b*:mod:prog")), *second, *third;
	const char *const *words;

	(void)state;
	assert_int_equal(gt_word_list_append(&memory, first, WORDS("c*"), &second), GT_OK);
	assert_int_equal(gt_word_list_append(&memory, second, WORDS("d", "e:mod:prog"), &third),
			 GT_OK);
	words = gt_word_list_words(third);
	assert_int_equal(third->count, 5);
	assert_ptr_equal(words[0], first->words[0]);
	assert_string_equal(words[2], "c*");
	assert_string_equal(words[4], "e:mod:prog");
	assert_null(words[5]);
	gt_word_list_release(first); /* what is shared stays */
	gt_word_list_release(second);
	assert_true(gt_word_list_match(third, "a"));
	assert_true(gt_word_list_match(third, "cat"));
	assert_true(gt_word_list_match(third, "d"));
	assert_false(gt_word_list_match(third, "e"));
	assert_true(gt_word_list_match_module(third, "/bin/prog", "bat"));
	assert_true(gt_word_list_match_module(third, "/bin/prog", "e"));
	/* with nothing added it is the same one */
	assert_int_equal(gt_word_list_append(&memory, third, NULL, &second), GT_OK);
	assert_ptr_equal(second, third);
	gt_word_list_release(second);
	gt_word_list_release(third);
	assert_int_equal(gt_word_list_append(&memory, NULL, WORDS("x"), &first), GT_OK);
	assert_true(gt_word_list_match(first, "x"));
	gt_word_list_release(first);
	assert_int_equal(taken, 0);
}

/* Words that were added one by one are at last copied into a list of its own. */
static void a_list_that_grows_word_by_word_is_as_one_made_at_once(void **state)
{
	static char names[2000][8];
	const char *pointers[2001] = { NULL };
	struct gt_word_list *grown = NULL, *next, *whole;

	(void)state;
	allowed = -1;
	for (int i = 0; i < 2000; i++) {
		names[i][0] = 'f';
		for (int digit = 4, rest = i; digit > 0; digit--, rest /= 10)
			names[i][digit] = (char)('0' + rest % 10);
		pointers[i] = names[i];
		assert_int_equal(gt_word_list_append(&memory, grown, WORDS(names[i]), &next),
				 GT_OK);
		gt_word_list_release(grown);
		grown = next;
	}
	whole = list_of(pointers);
	assert_true(gt_word_list_is_same(grown, whole));
	for (int i = 0; i < 2000; i++)
		assert_true(gt_word_list_match(grown, names[i]));
	assert_false(gt_word_list_match(grown, "f2000"));
	gt_word_list_release(grown);
	gt_word_list_release(whole);
	assert_int_equal(taken, 0);
}

static void a_list_of_the_settings_grows_or_stays(void **state)
{
	struct gt_trace_settings settings = { .tracer = GRAFTRACE_TRACER_NOP };
	struct gt_word_list *before;

	(void)state;
	assert_int_equal(gt_trace_settings_append(&settings, GT_LIST_GRAPH, &memory, WORDS("a")),
			 0);
	assert_int_equal(gt_trace_settings_append(&settings, GT_LIST_GRAPH, &memory, WORDS("b")),
			 0);
	assert_int_equal(gt_trace_settings_append(&settings, GT_LIST_GRAPH, &memory, NULL), 0);
	before = settings.lists[GT_LIST_GRAPH];
	assert_int_equal(before->count, 2);
	assert_string_equal(before->words[1], "b");
	allowed = 0;
	assert_int_equal(gt_trace_settings_append(&settings, GT_LIST_GRAPH, &memory, WORDS("c")),
			 GT_ENOMEM);
	allowed = -1;
	assert_ptr_equal(settings.lists[GT_LIST_GRAPH], before);
	gt_trace_settings_fini(&settings);
	assert_int_equal(taken, 0);
}

static void without_memory_there_is_no_list(void **state)
{
	struct gt_word_list *list;

	(void)state;
	for (int pieces = 0; pieces < 3; pieces++) {
		allowed = pieces;
		assert_int_equal(gt_word_list_create(&memory, WORDS("a", "b*"), &list), GT_ENOMEM);
		assert_null(list);
		assert_int_equal(taken, 0);
	}
	for (int pieces = 0; pieces < 3; pieces++) {
		struct gt_word_list *before = list_of(WORDS("a"));

		allowed = pieces;
		assert_int_equal(gt_word_list_append(&memory, before, WORDS("b", "c*"), &list),
				 GT_ENOMEM);
		assert_null(list);
		gt_word_list_release(before);
		assert_int_equal(taken, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_matches_what_its_words_say),
		cmocka_unit_test(an_empty_list_is_none),
		cmocka_unit_test(a_word_with_an_object_names_functions_of_that_one),
		cmocka_unit_test(settings_share_their_lists),
		cmocka_unit_test(lists_are_the_same_word_by_word),
		cmocka_unit_test(a_longer_list_shares_the_words_of_the_one_before),
		cmocka_unit_test(a_list_that_grows_word_by_word_is_as_one_made_at_once),
		cmocka_unit_test(a_list_of_the_settings_grows_or_stays),
		cmocka_unit_test(without_memory_there_is_no_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
