/* SPDX-License-Identifier: MIT */
/* Lines of synthetic events: what is taken, how it is shown, what is wrong and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/trace/synthetic.h"

static struct gt_synthetic made;
static struct gt_probe_error error;

static int parse(const char *text)
{
	return gt_synthetic_parse(text, strlen(text), &made, &error);
}

static void a_line_is_shown_as_linux_shows_it(void **state)
{
	static const struct {
		const char *text, *shown;
	} lines[] = {
		{ "lat u64 dt; int count", "lat\tu64 dt; int count" },
		{ "  a  unsigned int b ;char c[16];; bool d ; ",
		  "a\tunsigned int b; char[16] c; bool d" },
		{ "once u64 a int b", "once\tu64 a; int b" },
		{ "open char what[]; pid_t pid", "open\tchar[] what; pid_t pid" },
	};
	char shown[2 * GT_SYNTHETIC_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(parse(lines[i].text), 0);
		gt_synthetic_put(&made.format, shown, sizeof(shown));
		assert_string_equal(shown, lines[i].shown);
	}
}

static void fields_have_their_types(void **state)
{
	(void)state;
	assert_int_equal(parse("e s8 a; unsigned long b; char c[5]; gfp_t d"), 0);
	assert_string_equal(made.format.system, "synthetic");
	assert_string_equal(made.format.name, "e");
	assert_int_equal(made.format.field_count, 4);
	assert_int_equal(made.format.fields[0].bytes, 1);
	assert_true(made.format.fields[0].is_signed);
	assert_int_equal(made.format.fields[1].bytes, 8);
	assert_false(made.format.fields[1].is_signed);
	assert_true(made.format.fields[2].is_string);
	assert_int_equal(made.format.fields[3].show, GT_SHOW_HEX);
}

static void what_is_wrong_is_said_with_the_place(void **state)
{
	static const char command[] = "Command must be of the form: <name> field[;field] ...";
	static const struct {
		const char *text, *wrong;
		size_t at;
	} lines[] = {
		{ "", command, 0 },
		{ "lat", command, 0 },
		{ "lat u64", command, 0 },
		{ "lat nosuch x", "Invalid type", 4 },
		{ "lat unsigned x", "Incomplete type", 4 },
		{ "lat unsigned u64 x", "Invalid type", 13 },
		{ "lat u64 x; int", "Invalid field", 11 },
		{ "l-t u64 x", "Illegal name", 0 },
		{ "lat u64 x-y", "Illegal name", 8 },
		{ "lat char x[y]", "Invalid array specification", 9 },
		{ "lat char x[4", "Invalid array specification", 9 },
		{ "lat char x[0]", "Invalid array specification", 9 },
		{ "lat int x[4]", "Invalid type", 4 },
		{ "lat u8 a u8 b u8 c u8 d u8 e u8 f u8 g u8 h u8 i u8 j u8 k u8 l u8 m u8 n u8 o "
		  "u8 p u8 q",
		  "Too many fields", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(parse(lines[i].text), GT_EINVAL);
		assert_string_equal(error.text, lines[i].wrong);
		assert_int_equal(error.at, lines[i].at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_shown_as_linux_shows_it),
		cmocka_unit_test(fields_have_their_types),
		cmocka_unit_test(what_is_wrong_is_said_with_the_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
