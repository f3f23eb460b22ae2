/* SPDX-License-Identifier: MIT */
/* System calls' events: which field has what an argument leads to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/trace/event.h"

static const struct gt_event_format format = {
	.field_count = 8,
	.system = "syscalls",
	.name = "sys_enter_example",
	.fields = { { "__syscall_nr", "int", 4, .is_signed = true },
		    { "name", "const char *", 8, .is_signed = false },
		    { "buf", "void *", 8, .is_signed = false },
		    { "b", "int", 4, .is_signed = true },
		    { "__buf_val_val", "u8", 1, .count = 4 },
		    { "__name_val", "const char *", 8, .is_string = true },
		    { "__buf_val", "u8", 1, .count = 16 },
		    { "__b_values", "u8", 1, .count = 16 } },
};

static void what_is_behind_an_argument_has_its_whole_name(void **state)
{
	(void)state;
	assert_int_equal(gt_event_field_behind(&format, "name"), 5);
	assert_int_equal(gt_event_field_behind(&format, "buf"), 6);
	assert_int_equal(gt_event_field_behind(&format, "buf_val"), 4);
	assert_int_equal(gt_event_field_behind(&format, "b"), 0);
	assert_int_equal(gt_event_field_behind(&format, "na"), 0);
	assert_int_equal(gt_event_field_behind(&format, "names"), 0);
	assert_int_equal(gt_event_field_behind(&format, ""), 0);
}

static void no_field_behind_the_last_is_read(void **state)
{
	struct gt_event_format hostile = format;

	(void)state;
	hostile.field_count = 5;
	assert_int_equal(gt_event_field_behind(&hostile, "name"), 0);
	hostile.field_count = UINT32_MAX;
	for (uint32_t i = 8; i < GRAFTRACE_PROBE_FIELDS; i++)
		hostile.fields[i].name = "more";
	assert_int_equal(gt_event_field_behind(&hostile, "other"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_behind_an_argument_has_its_whole_name),
		cmocka_unit_test(no_field_behind_the_last_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
