/* SPDX-License-Identifier: MIT */
/* Filters of events: what is made of an expression, and what passes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/trace/event_filter.h"
#include "core/trace/rule_pool.h"

#define WORDS 8192

static const struct gt_event_format format = {
	.number = 7,
	.field_count = 5,
	.system = "shop",
	.name = "sold",
	.fields = { { "count", "int", 4, .is_signed = true },
		    { "what", "const char *", 8, .is_string = true },
		    { "small", "unsigned char", 1, .is_signed = false },
		    { "price", "double", 8, .is_float = true },
		    { "big", "u64", 8, .is_signed = false } },
};

static uint64_t memory[WORDS];
static struct graftrace_filter *const filter = (struct graftrace_filter *)memory;
static struct gt_event_filter_error error;
/* count, what (behind the fields, 7 bytes), small, price, big, the text. */
static uint64_t values[] = { (uint64_t)-3, 40 | 7ull << 16, 200, 0, UINT64_MAX, 0 };
static struct graftrace_filter_event event = {
	values, 6, .thread = 42, .cpu = 1, .comm = "shopper",
};

static int64_t make(const char *text)
{
	memset(memory, 0xa5, sizeof(memory));
	return gt_event_filter_make(&format, text, strlen(text), filter, sizeof(memory), &error);
}

static int passes(const char *text)
{
	const int64_t bytes = make(text);
	const int only_said =
		(int)gt_event_filter_make(&format, text, strlen(text), NULL, 0, &error);

	assert_true(bytes > 0);
	assert_true(only_said >= 0);
	return graftrace_filter_passes(filter, (uint64_t)bytes, &event);
}

static int prepare(void **state)
{
	(void)state;
	memcpy(&values[5], "apples", 7);
	return 0;
}

static void numbers_have_the_sign_and_the_size_of_their_field(void **state)
{
	(void)state;
	assert_true(passes("count == -3"));
	assert_true(passes("count < 0 && count >= -3 && count <= -3"));
	assert_false(passes("count > 0"));
	assert_true(passes("big > 0x7fffffffffffffff"));
	assert_true(passes("big == 18446744073709551615"));
	assert_true(passes("small == 0310")); /* octal */
	assert_true(passes("small == 456"));  /* 200 + 256 */
	assert_true(passes("small & 8"));
	assert_false(passes("small & 7"));
	assert_true(passes("count != 3"));
}

static void strings_are_compared_whole_or_by_globs(void **state)
{
	(void)state;
	assert_true(passes("what == \"apples\""));
	assert_true(passes("what == 'apples'"));
	assert_false(passes("what == \"apple\""));
	assert_true(passes("what != \"apple\""));
	assert_true(passes("what ~ \"app*\""));
	assert_true(passes("what ~ \"*l?s\""));
	assert_true(passes("what ~ \"*p[a-l]*\""));
	assert_false(passes("what ~ \"*p[!a-l]es\""));
	assert_true(passes("what ~ \"!b*\""));
	assert_false(passes("what ~ \"!a*\""));
	assert_false(passes("what ~ \"app\""));
}

static void the_thread_the_cpu_and_the_name_are_known_without_a_field(void **state)
{
	(void)state;
	assert_true(passes("common_pid == 42 && CPU == 1 && cpu < 2"));
	assert_true(passes("COMM == \"shopper\" && comm ~ \"shop*\""));
	assert_false(passes("COMM == \"shoppers\""));
	assert_true(passes("common_type == 1007 && common_flags == 0"));
}

static void a_field_that_could_not_be_read_is_unequal_to_all(void **state)
{
	(void)state;
	event.faults = 3;
	assert_false(passes("count == -3"));
	assert_false(passes("count < 0 || count > 0 || count == 0"));
	assert_true(passes("count != -3"));
	assert_false(passes("what ~ \"*\""));
	assert_true(passes("what != \"apples\""));
	event.faults = 0;
}

static void operators_bind_as_in_c(void **state)
{
	(void)state;
	assert_true(passes("count == -3 || count == 1 && count == 2"));
	assert_false(passes("(count == -3 || count == 1) && count == 2"));
	assert_true(passes("!(count == 1)&&!count==2"));
	assert_true(passes("!!(count == -3)"));
	assert_true(passes("!(!(count == -3) || small == 1)"));
}

/* An expression, with what it says. Each term is true or false by itself. */
static int grow(char **at, int depth, unsigned *seed)
{
	const unsigned draw = *seed = *seed * 1103515245 + 12345, what = draw >> 16 & 7;
	int left, right;

	if (depth == 0 || what < 2) {
		*at += sprintf(*at, "small%s200", draw >> 20 & 1 ? "==" : " != ");
		return draw >> 20 & 1;
	}
	if (what < 4) {
		*at += sprintf(*at, "!(");
		left = grow(at, depth - 1, seed);
		*at += sprintf(*at, ")");
		return !left;
	}
	*at += sprintf(*at, "(");
	left = grow(at, depth - 1, seed);
	*at += sprintf(*at, what < 6 ? ")&&(" : " ) || ( ");
	right = grow(at, depth - 1, seed);
	*at += sprintf(*at, ")");
	return what < 6 ? left && right : left || right;
}

static void any_expression_says_what_c_would(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char text[GRAFTRACE_FILTER_BYTES * 4], *at = text;
		const int says = grow(&at, 6, &seed);

		if (strlen(text) < GRAFTRACE_FILTER_BYTES && passes(text) != says)
			fail_msg("%s", text);
	}
}

static void brackets_may_be_a_thousand_deep(void **state)
{
	char text[GRAFTRACE_FILTER_BYTES] = "";

	(void)state;
	memset(text, '(', 1000);
	sprintf(text + 1000, "count < 0");
	memset(text + strlen(text), ')', 1000);
	assert_true(passes(text));
	memset(text, 0, sizeof(text));
	for (int i = 0; i < 400; i++)
		strcat(text, "!(");
	strcat(text, "count<0");
	for (int i = 0; i < 400; i++)
		strcat(text, i % 2 ? ")" : "||big<1)");
	assert_int_equal(make(text), make(text));
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
	static const struct {
		const char *text, *error;
		int64_t result;
		uint32_t at;
	} wrong[] = {
		{ "nosuch == 1", "Field not found", GT_EINVAL, 7 },
		{ "count = 1", "Invalid operator", GT_EINVAL, 7 },
		{ "count == ", "Invalid value (did you forget quotes)?", GT_EINVAL, 10 },
		{ "what == apples", "Invalid value (did you forget quotes)?", GT_EINVAL, 9 },
		{ "what == 1", "Expecting string field", GT_EINVAL, 9 },
		{ "count == \"1\"", "Expecting numeric field", GT_EINVAL, 10 },
		{ "what > \"a\"", "Illegal operation for field type", GT_EINVAL, 8 },
		{ "count ~ 1", "Illegal operation for field type", GT_EINVAL, 9 },
		{ "price > 1", "Illegal operation for field type", GT_EINVAL, 9 },
		{ "count == 1x", "Illegal integer value", GT_EINVAL, 10 },
		{ "big == -1", "Illegal integer value", GT_EINVAL, 8 },
		{ "count == 99999999999999999999999999", "Operand too long", GT_EINVAL, 36 },
		{ "count == 1)", "Too few '('", GT_EPERM, 10 },
		{ "(count == 1", "Too many '('", GT_ENOENT, 0 },
		{ "what == \"a", "Missing matching quote", GT_ESRCH, 8 },
		{ "count == 1 small == 2", "Too many terms in predicate expression", GT_EPERM, 11 },
		{ "count == 1 &&", "Meaningless filter expression", GT_EINVAL, 13 },
		{ "", NULL, GT_EINVAL, 0 },
		{ "==", NULL, GT_EPERM, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(make(wrong[i].text), wrong[i].result);
		if (wrong[i].error)
			assert_string_equal(error.text, wrong[i].error);
		else
			assert_null(error.text);
		assert_int_equal(error.at, wrong[i].at);
	}
}

static void whatever_lies_there_is_not_read_behind_its_end(void **state)
{
	int64_t bytes = make("what ~ \"*a*b*\" && COMM == \"x\" || count & 1");
	unsigned seed = 7;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint8_t *copy = malloc((size_t)bytes);

		memcpy(copy, memory, (size_t)bytes);
		for (int k = 0; k < 4; k++) {
			seed = seed * 1103515245 + 12345;
			copy[(seed >> 8) % bytes] ^= (uint8_t)(seed >> 24);
		}
		graftrace_filter_passes((struct graftrace_filter *)copy, (uint64_t)bytes, &event);
		free(copy);
	}
}

static void the_pool_gives_room_back(void **state)
{
	const uint64_t table = 4096, rules = table + 64 * sizeof(uint32_t), bytes = 4096;
	struct graftrace_arena *arena = calloc(1, sizeof(*arena) + rules + bytes);
	struct {
		struct graftrace_event_rules head;
		char text[1000];
	} block = { { sizeof(block), 1 }, "" };
	struct {
		struct graftrace_event_rules head;
		char text[2000];
	} larger = { 0 };
	struct gt_rule_pool pool;

	(void)state;
	arena->event_count = 64;
	arena->event_table_offset = sizeof(*arena) + table - 4096;
	arena->rules_offset = sizeof(*arena) + rules - 4096;
	arena->rules_bytes = bytes;
	gt_rule_pool_init(&pool, arena);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(gt_rule_pool_put(&pool, i, &block.head), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		sprintf(block.text, "%u", i);
		if (i % 7 == 0)
			assert_int_equal(gt_rule_pool_put(&pool, i % 3, NULL), 0);
		assert_int_equal(gt_rule_pool_put(&pool, i % 3, &block.head), 0);
		assert_memory_equal(gt_rule_pool_get(&pool, i % 3), &block, sizeof(block));
	}
	assert_int_equal(gt_rule_pool_put(&pool, 4, &block.head), 0);
	assert_int_equal(gt_rule_pool_put(&pool, 5, &block.head), GT_ENOSPC);
	assert_null(gt_rule_pool_get(&pool, 5));
	/* In a pool that is full each block can be another one, and nothing is lost. */
	for (uint32_t i = 0; i < 1000; i++) {
		const uint32_t event = i % 4 == 3 ? 4 : i % 4;
		sprintf(block.text, "full %u", i);
		assert_int_equal(gt_rule_pool_put(&pool, event, &block.head), 0);
		assert_memory_equal(gt_rule_pool_get(&pool, event), &block, sizeof(block));
	}
	larger.head = (struct graftrace_event_rules){ sizeof(larger), 1 };
	assert_int_equal(gt_rule_pool_put(&pool, 1, &larger.head), GT_ENOSPC);
	assert_string_equal((const char *)(gt_rule_pool_get(&pool, 1) + 1), "full 997");
	block.head.bytes = 512; /* a smaller one */
	assert_int_equal(gt_rule_pool_put(&pool, 1, &block.head), 0);
	assert_memory_equal(gt_rule_pool_get(&pool, 1), &block, 512);
	assert_string_equal((const char *)(gt_rule_pool_get(&pool, 2) + 1), "full 998");
	assert_int_equal(gt_rule_pool_put(&pool, 64, &block.head), GT_ENOSPC);
	free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_the_sign_and_the_size_of_their_field),
		cmocka_unit_test(strings_are_compared_whole_or_by_globs),
		cmocka_unit_test(the_thread_the_cpu_and_the_name_are_known_without_a_field),
		cmocka_unit_test(a_field_that_could_not_be_read_is_unequal_to_all),
		cmocka_unit_test(operators_bind_as_in_c),
		cmocka_unit_test(any_expression_says_what_c_would),
		cmocka_unit_test(brackets_may_be_a_thousand_deep),
		cmocka_unit_test(what_is_wrong_is_said_with_its_place),
		cmocka_unit_test(whatever_lies_there_is_not_read_behind_its_end),
		cmocka_unit_test(the_pool_gives_room_back),
	};

	return cmocka_run_group_tests(tests, prepare, NULL);
}
