/* SPDX-License-Identifier: MIT */
/* Lines of dynamic_events: what is made of them, and what is said of those that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/trace/probe.h"

static struct gt_probe_definition probe;
static struct gt_probe_error error;

static int parse(const char *text)
{
	return gt_probe_parse(text, strlen(text), GT_PROBES_PROGRAM, &probe, &error);
}

static void a_line_is_printed_as_linux_shows_it(void **state)
{
	char line[256];

	(void)state;
	assert_int_equal(parse("p:my/zfree  /bin/zsh:0x46420 %ip a=+0(-8(%sp)):string"), 0);
	gt_probe_print(&probe, "/bin/zsh", probe.offset, line, sizeof(line));
	assert_string_equal(line,
			    "p:my/zfree /bin/zsh:0x0000000000046420 arg1=%ip a=+0(-8(%sp)):string");
	assert_int_equal(parse("r /bin/my_sh-1.2:4096(0x20)%return"), 0);
	gt_probe_print(&probe, "/bin/my_sh-1.2", probe.offset, line, sizeof(line));
	assert_string_equal(line, "r:uprobes/r_my_0x1000 /bin/my_sh-1.2:0x0000000000001000(0x20)");
}

static void dereferences_are_kept_from_the_inside(void **state)
{
	const struct graftrace_probe_argument *fetch = &probe.arguments[0].fetch;

	(void)state;
	assert_int_equal(parse("p /x:1 v=+1(-2(+u3(%di))):s16"), 0);
	assert_int_equal(fetch->place, GRAFTRACE_PLACE_REGISTER);
	assert_int_equal(fetch->base, 7);
	assert_int_equal(fetch->bytes, 2);
	assert_true(fetch->is_signed);
	assert_int_equal(fetch->step_count, 3);
	assert_int_equal(probe.steps[0], 3);
	assert_int_equal(probe.steps[1], -2);
	assert_int_equal(probe.steps[2], 1);
}

static void types_say_what_is_taken(void **state)
{
	static const struct {
		const char *text;
		uint8_t take, bytes, show, count, bits, first;
	} cases[] = {
		{ "%ax", GRAFTRACE_TAKE_NUMBER, 8, GT_SHOW_HEX, 0, 0, 0 },
		{ "%ax:u8", GRAFTRACE_TAKE_NUMBER, 1, GT_SHOW_DECIMAL, 0, 0, 0 },
		{ "%ax:x16", GRAFTRACE_TAKE_NUMBER, 2, GT_SHOW_HEX, 0, 0, 0 },
		{ "%ax:char", GRAFTRACE_TAKE_NUMBER, 1, GT_SHOW_CHAR, 0, 0, 0 },
		{ "%ax:b3@5/32", GRAFTRACE_TAKE_NUMBER, 4, GT_SHOW_DECIMAL, 0, 3, 5 },
		{ "+0(%ax):u32[5]", GRAFTRACE_TAKE_ARRAY, 4, GT_SHOW_DECIMAL, 5, 0, 0 },
		{ "+0(%ax):string", GRAFTRACE_TAKE_STRING, 8, GT_SHOW_AS_TYPE, 0, 0, 0 },
		{ "+0(%ax):ustring[2]", GRAFTRACE_TAKE_STRINGS, 8, GT_SHOW_AS_TYPE, 2, 0, 0 },
		{ "$comm", GRAFTRACE_TAKE_STRING, 8, GT_SHOW_AS_TYPE, 0, 0, 0 },
		{ "\\-9:s32", GRAFTRACE_TAKE_NUMBER, 4, GT_SHOW_DECIMAL, 0, 0, 0 },
		{ "\\\"a b\"", GRAFTRACE_TAKE_STRING, 8, GT_SHOW_AS_TYPE, 0, 0, 0 },
		{ "@0x1000", GRAFTRACE_TAKE_NUMBER, 8, GT_SHOW_HEX, 0, 0, 0 },
		{ "@+16:string", GRAFTRACE_TAKE_STRING, 8, GT_SHOW_AS_TYPE, 0, 0, 0 },
	};
	char line[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct gt_probe_argument *argument = &probe.arguments[0];

		snprintf(line, sizeof(line), "p /x:1 %s", cases[i].text);
		assert_int_equal(parse(line), 0);
		assert_int_equal(argument->fetch.take, cases[i].take);
		assert_int_equal(argument->fetch.bytes, cases[i].bytes);
		assert_int_equal(argument->show, cases[i].show);
		assert_int_equal(argument->fetch.count, cases[i].count);
		assert_int_equal(argument->fetch.bit_count, cases[i].bits);
		assert_int_equal(argument->fetch.bit_first, cases[i].first);
	}
}

static void errors_are_linux_own_and_stand_under_their_place(void **state)
{
	static const struct {
		const char *line; /* the caret is under the '^' in it, which is taken out */
		const char *text;
	} cases[] = {
		{ "p:^1a/b /x:1", "Group name must follow the same rules as C identifiers" },
		{ "p:^/b /x:1", "Group name is not specified" },
		{ "p:a/^b-c /x:1", "Event name must follow the same rules as C identifiers" },
		{ "p^8 /x:1", "Maxactive is only for function exit" },
		{ "p /x:^1z", "Invalid uprobe offset" },
		{ "p /x:1^%retur", "Invalid probed address suffix" },
		{ "p /x:1(2^", "Reference counter brace is not closed" },
		{ "p /x:1(2)^3", "Reference counter has wrong suffix" },
		{ "p /x:1(^z)", "Invalid reference counter offset" },
		{ "p /x:1 ^%nosuch", "Invalid register name" },
		{ "p /x:1 ^$retval", "$retval is not available on probe" },
		{ "p /x:1 ^$nosuch", "Invalid $-variable specified" },
		{ "p /x:1 ^$stackz", "Invalid $-variable specified" },
		{ "p /x:1 ^$stack9999", "Invalid stack number" },
		{ "p /x:1 ^$argz", "Invalid $-variable specified" },
		{ "p /x:1 ^$arg0", "Invalid argument number" },
		{ "p /x:1 a=^", "No argument expression" },
		{ "p /x:1 ^=%ax", "Argument name is not specified" },
		{ "p /x:1 ^a-b=%ax", "Argument name must follow the same rules as C identifiers" },
		{ "p /x:1 a=%ax ^a=%bx", "This argument name is already used" },
		{ "p /x:1 ^+8", "Dereference needs a brace" },
		{ "p /x:1 ^+z(%ax)", "Invalid dereference offset" },
		{ "p /x:1 +8(%ax^", "Dereference brace is not closed" },
		{ "p /x:1 +8(^$comm)", "$comm can not be dereferenced" },
		{ "p /x:1 ^nosuch", "Invalid fetch argument" },
		{ "p /x:1 \\^z", "Invalid immediate value" },
		{ "p /x:1 ^@sym", "Symbol is not available with uprobe" },
		{ "p /x:1 %ax:^u9", "Unknown type is specified" },
		{ "p /x:1 %ax:^b9@0/8", "Invalid bitfield" },
		{ "p /x:1 %ax:^b9@0", "Unknown type is specified" },
		{ "p /x:1 %ax:^string", "String accepts only memory argument" },
		{ "p /x:1 +0(%ax):u8[^0]", "Invalid array size" },
		{ "p /x:1 +0(%ax):u8[^65]", "Array number is too big" },
		{ "p /x:1 +0(%ax):u8[1^", "Array is not closed" },
		{ "p /x:1 +0(%ax):u8[1]^x", "Array has wrong suffix" },
		{ "p /x:1 %ax:^u8[2]", "String accepts only memory argument" },
		{ "p /x:1 ^+0(%ax):u64[64]", "Array number is too big" },
	};
	char line[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *caret = strchr(cases[i].line, '^');

		snprintf(line, sizeof(line), "%.*s%s", (int)(caret - cases[i].line), cases[i].line,
			 caret + 1);
		if (parse(line) != GT_EINVAL)
			fail_msg("%s is taken", line);
		if (strcmp(error.text, cases[i].text) != 0 ||
		    error.at != (size_t)(caret - cases[i].line))
			fail_msg("%s: '%s' at %zu", cases[i].line, error.text, error.at);
	}
}

static void nesting_and_numbers_of_arguments_have_an_end(void **state)
{
	char line[4096] = "p /x:1 ";

	(void)state;
	for (int i = 0; i < 20; i++)
		strcat(line, "+0(");
	strcat(line, "%ax");
	for (int i = 0; i < 20; i++)
		strcat(line, ")");
	assert_int_equal(parse(line), GT_EINVAL);
	assert_string_equal(error.text, "Dereference is too much nested");
	strcpy(line, "p /x:1");
	for (int i = 0; i < 15; i++)
		strcat(line, " %ax");
	assert_int_equal(parse(line), GT_EINVAL);
	assert_string_equal(error.text, "Too many arguments are specified");
}

static void a_kernel_has_symbols_and_no_files(void **state)
{
	static const char line[] = "r20:myretprobe do_sys_openat2 $retval";

	(void)state;
	assert_int_equal(gt_probe_parse(line, sizeof(line) - 1, GT_PROBES_KERNEL, &probe, &error),
			 0);
	assert_true(probe.returns && probe.has_max && probe.max_active == 20);
	assert_string_equal(probe.group, "kprobes");
	assert_int_equal(probe.symbol_bytes, strlen("do_sys_openat2"));
	assert_int_equal(
		gt_probe_parse("p vfs_read+0x10 @jiffies+8", 26, GT_PROBES_KERNEL, &probe, &error),
		0);
	assert_string_equal(probe.name, "p_vfs_read_16");
	assert_int_equal(probe.arguments[0].base, GT_PROBE_SYMBOL);
	assert_int_equal(gt_probe_parse("p /x:1", 6, GT_PROBES_KERNEL, &probe, &error), GT_EINVAL);
}

static void a_removal_has_a_name(void **state)
{
	(void)state;
	assert_int_equal(parse("-:a/b"), 0);
	assert_true(probe.removes && strcmp(probe.group, "a") == 0 && strcmp(probe.name, "b") == 0);
	assert_int_equal(parse("-:b"), 0);
	assert_string_equal(probe.group, "");
	assert_int_equal(parse("-"), GT_EINVAL);
	assert_int_equal(parse("x:a/b /x:1"), GT_EINVAL);
	assert_int_equal(parse(""), GT_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_printed_as_linux_shows_it),
		cmocka_unit_test(dereferences_are_kept_from_the_inside),
		cmocka_unit_test(types_say_what_is_taken),
		cmocka_unit_test(errors_are_linux_own_and_stand_under_their_place),
		cmocka_unit_test(nesting_and_numbers_of_arguments_have_an_end),
		cmocka_unit_test(a_kernel_has_symbols_and_no_files),
		cmocka_unit_test(a_removal_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
