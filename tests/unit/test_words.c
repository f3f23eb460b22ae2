/* SPDX-License-Identifier: MIT */
/* Words and globs, many at once: each matches as it does alone, and each is noted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/trace/glob.h"
#include "core/trace/words.h"
#include "port/host/memory.h"

static void *resize(void *data, void *memory, size_t old_bytes, size_t new_bytes)
{
	return data != NULL && new_bytes != 0 ? NULL
					      : gt_host_resize(NULL, memory, old_bytes, new_bytes);
}

static const struct gt_memory heap = { resize, NULL };

static void it_matches_what_any_of_its_words_does(void **state)
{
	static const char *const list[] = { "alpha", "be*",   "operator\\*", "a\\[1]",
					    "x[yz]", "alpha", "q\\?",	     NULL };
	static const char *const names[] = { "alpha",	  "alph",     "alphas", "be", "beta",
					     "operator*", "operator", "a[1]",	"xy", "xq",
					     "q?",	  "qq",	      "" };
	struct gt_words words;

	(void)state;
	assert_int_equal(gt_words_init(&words, &heap, list), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		bool any = false;

		for (size_t k = 0; list[k] != NULL; k++)
			any |= gt_glob_match(list[k], names[i]);
		assert_int_equal(gt_words_match(&words, names[i]), any);
	}
	gt_words_fini(&words);
}

static void many_words_are_found(void **state)
{
	enum { COUNT = 5000 };
	static char text[COUNT][16];
	static const char *list[COUNT + 1];
	struct gt_words words;
	char name[16];

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		snprintf(text[i], sizeof(text[i]), "f%d", i * 2);
		list[i] = text[i];
	}
	assert_int_equal(gt_words_init(&words, &heap, list), 0);
	for (int i = 0; i < COUNT * 2; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_int_equal(gt_words_match(&words, name), i % 2 == 0);
	}
	gt_words_fini(&words);
}

static void nothing_matches_without_words_or_memory(void **state)
{
	static const char *const list[] = { "alpha", "*", NULL };
	const struct gt_memory none = { resize, (void *)&heap };
	struct gt_words words;

	(void)state;
	assert_int_equal(gt_words_init(&words, &heap, NULL), 0);
	assert_false(gt_words_match(&words, ""));
	gt_words_fini(&words);
	assert_true(gt_words_init(&words, &none, list) < 0);
	assert_false(gt_words_match(&words, "alpha"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_matches_what_any_of_its_words_does),
		cmocka_unit_test(many_words_are_found),
		cmocka_unit_test(nothing_matches_without_words_or_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
