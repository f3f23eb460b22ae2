/* SPDX-License-Identifier: MIT */
/* The small printf against the C library's, and the messages made with it. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/trace/message.h"

#define SAME_AS_LIBC(...)                                                   \
	do {                                                                \
		char ours[256], theirs[256];                                \
		size_t length = gt_format(ours, sizeof(ours), __VA_ARGS__); \
		snprintf(theirs, sizeof(theirs), __VA_ARGS__);              \
		assert_string_equal(ours, theirs);                          \
		assert_int_equal(length, strlen(theirs));                   \
	} while (0)

static void formats_as_the_c_library_does(void **state)
{
	(void)state;
	SAME_AS_LIBC("plain 100%%");
	SAME_AS_LIBC("%s|%10s|%-10s|%.3s|%.*s", "abc", "abc", "abc", "abcdef", 2, "xyz");
	SAME_AS_LIBC("%d %d %d %5d|%-5d|%05d", 0, INT_MIN, INT_MAX, -42, -42, -42);
	SAME_AS_LIBC("%u %x %X %08x", UINT_MAX, 0xbeefu, 0xbeefu, 0xbeefu);
	SAME_AS_LIBC("%lu %llu %zu %lx %llx", ULONG_MAX, ULLONG_MAX, SIZE_MAX, ULONG_MAX,
		     1ull << 63);
	SAME_AS_LIBC("%ld %lld", LONG_MIN, LLONG_MAX);
	SAME_AS_LIBC("%c%c%3c|", 'a', 'b', 'c');
	SAME_AS_LIBC("%*d|%-*d|%p", 6, 1, 6, 2, (void *)0x1234);
}

static void a_null_string_is_printed_in_words(void **state)
{
	char text[32];
	const char *volatile none = NULL;
	(void)state;
	gt_format(text, sizeof(text), "<%s>", none);
	assert_string_equal(text, "<(null)>");
}

static void what_does_not_fit_is_cut_off(void **state)
{
	char text[6] = "?????";
	(void)state;
	assert_int_equal(gt_format(text, 5, "%s", "abcdefgh"), 4);
	assert_string_equal(text, "abcd");
	assert_int_equal(text[5], 0);
	assert_int_equal(gt_format(text, 0, "x"), 0);
	assert_string_equal(text, "abcd");
	assert_int_equal(gt_format(text, 1, "x"), 0);
	assert_string_equal(text, "");
}

static void a_text_with_a_precision_needs_no_end(void **state)
{
	char text[8], raw[3] = { 'a', 'b', 'c' };
	(void)state;
	gt_format(text, sizeof(text), "%.*s", 3, raw);
	assert_string_equal(text, "abc");
}

static void a_message_is_one_line_and_says_that_it_was_cut(void **state)
{
	struct gt_message message;
	char big[1000];
	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	gt_message_set(&message, "cannot open '%s'", "a\nb\x1b[31m");
	assert_string_equal(message.text, "cannot open 'a?b?[31m'");
	gt_message_set(&message, "%s", big);
	assert_int_equal(strlen(message.text), sizeof(message.text) - 1);
	assert_string_equal(message.text + sizeof(message.text) - 4, "...");
	gt_message_set(NULL, "nobody listens");
}

static void a_prefix_goes_in_front(void **state)
{
	struct gt_message message;
	(void)state;
	gt_message_set(&message, "byte %u: bad magic", 12u);
	gt_message_prefix(&message, "'%s': ", "x.data");
	assert_string_equal(message.text, "'x.data': byte 12: bad magic");
}

static void a_failure_sets_the_message_and_is_the_error(void **state)
{
	struct gt_message message = { "old" };

	(void)state;
	assert_int_equal(gt_fail(&message, GT_ENOENT, "no '%s'", "a\nb"), GT_ENOENT);
	assert_string_equal(message.text, "no 'a?b'");
	assert_int_equal(gt_fail(NULL, GT_EBUSY, "nobody wants it"), GT_EBUSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats_as_the_c_library_does),
		cmocka_unit_test(a_null_string_is_printed_in_words),
		cmocka_unit_test(what_does_not_fit_is_cut_off),
		cmocka_unit_test(a_text_with_a_precision_needs_no_end),
		cmocka_unit_test(a_message_is_one_line_and_says_that_it_was_cut),
		cmocka_unit_test(a_prefix_goes_in_front),
		cmocka_unit_test(a_failure_sets_the_message_and_is_the_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
