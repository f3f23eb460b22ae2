/* SPDX-License-Identifier: MIT */
/* Histograms of events: their text, counting from several threads and from handlers, and tables that somebody has
 * written over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>

#include "core/record/event.h"
#include "core/record/hist.h"
#include "core/record/port.h"
#include "core/trace/hist.h"
#include "core/trace/hist_text.h"
#include "port/host/memory.h"

static const struct gt_event_format format = {
	.number = 7,
	.field_count = 5,
	.system = "shop",
	.name = "sold",
	.fields = { { "count", "int", 4, .is_signed = true },
		    { "what", "const char *", 8, .is_string = true },
		    { "small", "unsigned char", 1, .is_signed = false },
		    { "price", "double", 8, .is_float = true },
		    { "list", "int", 4, .count = 3 } },
};

static const struct gt_clock clock_ns = {
	.tsc_base = 1000, .ns_base = 5000, .mult = 2, .shift = 1
};

static struct gt_hist hist;
static struct gt_hist_error error;

static struct gt_event made;
static int made_count;

void gt_port_event(const struct gt_event *event)
{
	made = *event;
	made_count++;
}

static int parse(const char *text)
{
	return gt_hist_parse(text, strlen(text), &format, NULL, &hist, &error);
}

/* ---- text ---- */

static void a_text_is_shown_with_all_that_it_left_out(void **state)
{
	static const struct {
		const char *text, *shown;
	} texts[] = {
		{ "keys=count", "keys=count:vals=hitcount:sort=hitcount:size=2048" },
		{ "key=count.hex,what:val=small:size=129",
		  "keys=count.hex,what:vals=hitcount,small:sort=hitcount:size=256" },
		{ "vals=hitcount,small,count:keys=what:sort=small.descending,what",
		  "keys=what:vals=hitcount,small,count:sort=small.descending,what:size=2048" },
		{ "keys=common_pid.execname,cpu,common_timestamp.usecs:clock=mono",
		  "keys=common_pid.execname,common_cpu,common_timestamp.usecs:vals=hitcount:"
		  "sort=hitcount:size=2048:clock=mono" },
		{ "keys=count.buckets=0x10:name=shops",
		  "name=shops:keys=count.buckets=16:vals=hitcount:sort=hitcount:size=2048" },
		{ "keys=count.sym-offset,count-small*2:vals=-(count+1)",
		  "keys=count.sym-offset,count-small*2:vals=hitcount,-(count+1):sort=hitcount:"
		  "size=2048" },
		{ " keys=count:pause ", "keys=count:vals=hitcount:sort=hitcount:size=2048" },
	};
	char shown[2 * GT_HIST_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(parse(texts[i].text), 0);
		gt_hist_put(&hist, shown, sizeof(shown));
		assert_string_equal(shown, texts[i].shown);
	}
	assert_true(hist.is_paused);
}

static void what_is_wrong_is_said_with_the_part(void **state)
{
	static const struct {
		const char *text, *wrong, *part;
		int result;
	} texts[] = {
		{ "keys=nosuch", "Couldn't find field", "nosuch", GT_EINVAL },
		{ "keys=price", "Couldn't find field", "price", GT_EINVAL },
		{ "keys=list", "Couldn't find field", "list", GT_EINVAL },
		{ "keys=count.nosuch", "Invalid field modifier", "nosuch", GT_EINVAL },
		{ "keys=count.buckets=0", "Invalid field modifier", "0", GT_EINVAL },
		{ "keys=count.execname", "Invalid field modifier", "execname", GT_EINVAL },
		{ "keys=", "Empty assignment", "keys=", GT_EINVAL },
		{ "keys=count:sort=small", "Sort field must be a key or a val", "small",
		  GT_EINVAL },
		{ "keys=count:sort=count.up", "Invalid sort modifier", "up", GT_EINVAL },
		{ "keys=count+what", "String type can not be an operand in expression", "what",
		  GT_EINVAL },
		{ "keys=count/0", "Division by zero", "0", GT_EDOM },
		{ "keys=count+1+2+3+4", "Too many subexpressions (3 max)", "count", GT_EINVAL },
		{ "keys=1x", "Expecting numeric literal", "1x", GT_EINVAL },
		{ "keys=count:size=64", NULL, "", GT_EINVAL },
		{ "keys=count:size=131073", NULL, "", GT_EINVAL },
		{ "vals=count", NULL, "", GT_EINVAL },
		{ "keys=count,what,small,cpu", NULL, "", GT_EINVAL },
		{ "keys=count:vals=small,small,small,small", NULL, "", GT_EINVAL },
		{ "", NULL, "", GT_EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(parse(texts[i].text), texts[i].result);
		if (texts[i].wrong)
			assert_string_equal(error.text, texts[i].wrong);
		else
			assert_null(error.text);
		assert_string_equal(error.part, texts[i].part);
	}
}

static void a_filter_begins_at_a_word_of_its_own(void **state)
{
	(void)state;
	assert_int_equal(gt_hist_find_filter("keys=if if count", 16), 8);
	assert_int_equal(gt_hist_find_filter("keys=diff", 9), 9);
	assert_int_equal(gt_hist_find_filter("keys=a if", 9), GT_EINVAL);
	assert_int_equal(gt_hist_find_filter("if a", 4), GT_EINVAL);
}

static void histograms_are_the_same_by_their_keys_values_and_order(void **state)
{
	static struct gt_hist other;
	static const char *const texts[] = { "keys=count",
					     "keys=count.hex",
					     "keys=count:vals=small",
					     "keys=count:sort=count",
					     "keys=count:sort=count.descending",
					     "keys=count,small" };
	char again[64];

	(void)state;
	for (size_t a = 0; a < 6; a++)
		for (size_t b = 0; b < 6; b++) {
			assert_int_equal(parse(texts[a]), 0);
			snprintf(again, sizeof(again), "%s:size=256:pause", texts[b]);
			assert_int_equal(
				gt_hist_parse(again, strlen(again), NULL, NULL, &other, &error), 0);
			assert_int_equal(gt_hist_is_same(&hist, &other), a == b);
		}
}

static void a_cpu_has_one_name_however_it_is_written(void **state)
{
	static const char *const texts[] = { "keys=cpu", "keys=CPU", "keys=common_cpu",
					     "keys=cpu:sort=common_cpu" };
	static struct gt_hist again;
	char shown[GT_HIST_SHOWN_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(parse(texts[i]), 0);
		gt_hist_put(&hist, shown, sizeof(shown));
		assert_int_equal(gt_hist_parse(shown, strlen(shown), NULL, NULL, &again, &error),
				 0);
		assert_true(gt_hist_is_same(&hist, &again));
		assert_string_equal(again.fields[0].name, "common_cpu");
	}
}

/* ---- counting ---- */

#define POOL (4u << 20)

static struct graftrace_arena *arena;
static union {
	struct graftrace_hist head;
	uint64_t words[GT_HIST_DESCRIPTION_BYTES / 8];
} description;
static uint32_t description_bytes;
static struct graftrace_hist_shape shape;
static struct graftrace_hist_table *table;

static void prepare_table(const char *text)
{
	assert_int_equal(parse(text), 0);
	free(arena);
	arena = calloc(1, sizeof(*arena) + POOL);
	arena->hists_offset = sizeof(*arena);
	arena->hists_bytes = POOL;
	description_bytes = gt_hist_describe(&hist, &clock_ns, 1, &description.head);
	assert_true(graftrace_hist_shape_of(&description.head, &shape));
	table = (struct graftrace_hist_table *)((char *)arena + arena->hists_offset + 64);
}

/* With what the program would give. */
static void count(int number, const char *what, unsigned small, uint32_t faults)
{
	uint64_t values[5 + 8] = { (uint64_t)(int64_t)number, 0, small };
	const uint64_t bytes = strlen(what) + 1;
	const struct graftrace_filter_event event = { values,	5 + (uint32_t)(bytes + 7) / 8,
						      faults,	.thread = 42,
						      .cpu = 3, .comm = "shopper\0\0\0\0\0\0\0\0" };

	values[1] = 40 | bytes << 16;
	memcpy(&values[5], what, bytes);
	gt_hist_count(arena, &description.head, description_bytes,
		      &(struct gt_hist_event){ &event, NULL, 2000, 0 });
}

static uint64_t *words;
static uint32_t *order;
static struct gt_hist_view view;

static void look(void)
{
	free(words);
	free(order);
	words = calloc(1u << description.head.bits, 8ull * shape.words);
	order = calloc(1u << description.head.bits, sizeof(*order));
	gt_hist_look(&view, &hist, &description.head, table, shape.bytes, words, order);
}

static const char *line(uint32_t index)
{
	static const struct gt_hist_names nobody;
	static char text[GT_HIST_LINE_BYTES];

	assert_true(index < view.count);
	text[gt_hist_put_entry(&view, index, &nobody, text) - 1] = '\0';
	return text;
}

static void hits_and_sums_are_counted_by_key(void **state)
{
	(void)state;
	prepare_table("keys=count:vals=small,count:sort=count");
	for (int i = 0; i < 10; i++)
		count(i % 3 - 1, "apples", 5, 0);
	look();
	assert_int_equal(view.count, 3);
	/* By the sum, which has no sign. */
	assert_string_equal(line(1), "{ count:          1 } hitcount:          3  small:         15"
				     "  count:          3");
	assert_string_equal(line(2), "{ count: 18446744073709551615 } hitcount:          4  "
				     "small:         20  count: 18446744073709551612");
	assert_int_equal(view.hits, 10);
	assert_int_equal(view.drops, 0);
}

static void keys_are_shown_as_their_modifiers_say(void **state)
{
	char expected[512];

	(void)state;
	prepare_table("keys=count.hex,small.log2,count.buckets=8");
	count(-1, "", 9, 0);
	look();
	assert_string_equal(line(0),
			    "{ count: ffffffffffffffff, small: ~ 2^4 , count: ~ "
			    "18446744073709551608-18446744073709551615 } hitcount:          1");
	prepare_table("keys=what,common_pid.execname,common_timestamp");
	count(1, "a\x1b[2J", 0, 0);
	look();
	assert_string_equal(line(0),
			    "{ what: a?[2J                                             , "
			    "common_pid: shopper         [        42], common_timestamp:       "
			    "6000 } hitcount:          1");
	prepare_table("keys=count.sym,small.sym-offset,count.syscall");
	count(1, "", 2, 0);
	look();
	snprintf(expected, sizeof(expected),
		 "{ count: [1] %-45s, small: [2] %-55s, count: %-30s[%3d] } hitcount: %10d", "0x1",
		 "0x2", "unknown_syscall", 1, 1);
	assert_string_equal(line(0), expected);
	prepare_table("keys=small*2-count,common_cpu:vals=common_timestamp.usecs");
	count(7, "", 2, 0);
	look();
	assert_string_equal(line(0),
			    "{ small*2-count: 18446744073709551613, common_cpu:          3 } "
			    "hitcount:          1  common_timestamp:          6");
}

static void what_could_not_be_read_is_0_or_fault(void **state)
{
	(void)state;
	prepare_table("keys=count,what");
	count(7, "apples", 0, 3);
	look();
	assert_string_equal(line(0),
			    "{ count:          0, what: (fault)                                  "
			    "          } hitcount:          1");
}

static void what_has_no_room_is_dropped_and_counted(void **state)
{
	(void)state;
	prepare_table("keys=count:size=128:sort=count.descending");
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 200; i++)
			count(i, "", 0, 0);
	look();
	assert_int_equal(view.count, 128);
	assert_int_equal(view.hits, 3 * 128);
	assert_int_equal(view.drops, 3 * 72);
	assert_string_equal(line(0), "{ count:        127 } hitcount:          3");
	assert_string_equal(line(127), "{ count:          0 } hitcount:          3");
}

#define THREADS 4
#define EACH	20000

static void *count_many(void *data)
{
	for (int i = 0; i < EACH; i++)
		count((int)(i * 7919u % 300), "storm", 1, 0);
	return data;
}

static int interrupted;

static void on_alarm(int number)
{
	(void)number;
	for (int i = 0; i < 300; i++)
		count(i, "handler", 1, 0);
	__atomic_fetch_add(&interrupted, 1, __ATOMIC_RELAXED);
}

static void threads_and_handlers_count_in_one_table(void **state)
{
	pthread_t threads[THREADS];
	uint64_t sum = 0;

	(void)state;
	prepare_table("keys=count:vals=small:size=512:sort=count");
	signal(SIGALRM, on_alarm);
	interrupted = 0;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_many, NULL), 0);
	for (int i = 0; i < 100; i++)
		pthread_kill(threads[i % THREADS], SIGALRM);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	look();
	assert_int_equal(view.count, 300);
	for (uint32_t i = 0; i < view.count; i++) {
		const uint64_t *entry = words + (uint64_t)order[i] * shape.words;

		assert_int_equal(entry[0], i);
		assert_int_equal(entry[shape.hits], entry[shape.hits + 1]);
		sum += entry[shape.hits];
	}
	assert_int_equal(sum, THREADS * EACH + 300 * interrupted);
	assert_int_equal(view.hits, sum);
	assert_int_equal(view.drops, 0);
}

static void a_table_that_is_written_over_harms_nobody(void **state)
{
	unsigned seed = 1;

	(void)state;
	prepare_table("keys=count,what:vals=small:size=128");
	for (int i = 0; i < 3000; i++) {
		for (int k = 0; k < 40; k++) {
			seed = seed * 1103515245 + 12345;
			((uint32_t *)table)[(seed >> 4) % (shape.bytes / 4)] = seed;
		}
		for (int k = 0; k < 20; k++)
			count(k, "x", 1, 0);
		look();
		assert_true(view.count <= 128);
		for (uint32_t k = 0; k < view.count; k++)
			line(k);
	}
	memset(table, 0xff, shape.bytes);
	count(1, "x", 1, 0);
	look();
	assert_int_equal(view.count, 0);
}

static void a_description_that_is_none_counts_nothing(void **state)
{
	uint64_t *copy;
	unsigned seed = 7;

	(void)state;
	prepare_table("keys=count,what,small+count:vals=small,count");
	copy = malloc(description_bytes);
	for (int i = 0; i < 20000; i++) {
		memcpy(copy, description.words, description_bytes);
		for (int k = 0; k < 3; k++) {
			seed = seed * 1103515245 + 12345;
			((uint8_t *)copy)[(seed >> 8) % description_bytes] ^= (uint8_t)(seed >> 24);
		}
		const struct graftrace_filter_event event = { copy, 1, .comm = "0123456789abcdef" };

		gt_hist_count(arena, (struct graftrace_hist *)copy, description_bytes,
			      &(struct gt_hist_event){ &event, NULL, seed, 0 });
	}
	/* At its end, and with less room than it says. */
	for (uint32_t room = 0; room < description_bytes; room += 8) {
		uint64_t *cut = malloc(room + 1);
		const struct graftrace_filter_event event = { copy, 1, .comm = "0123456789abcdef" };

		memcpy(cut, description.words, room);
		gt_hist_count(arena, (struct graftrace_hist *)cut, room,
			      &(struct gt_hist_event){ &event, NULL, 1, 0 });
		free(cut);
	}
	free(copy);
}

/* ---- variables and actions ---- */

/* Another event's histogram, whose variables the one of prepare_table() may read. */
static struct gt_hist first;
static union {
	struct graftrace_hist head;
	uint64_t words[GT_HIST_DESCRIPTION_BYTES / 8];
} first_description;
static uint32_t first_bytes;
#define FIRST_TABLE (POOL / 2 / 64)

static const struct gt_event_format late = { .number = 9,
					     .field_count = 3,
					     .system = "synthetic",
					     .name = "late",
					     .fields = { { "by", "u64", 8, .is_signed = false },
							 { "small", "u8", 1, .is_signed = false },
							 { "what", "char[16]", 8,
							   .is_string = true } } };

static uint32_t variable(void *data, const char *system, const char *event, const char *name,
			 struct gt_hist_found *found)
{
	(void)data;
	if (system && (strcmp(system, "shop") != 0 || strcmp(event, "made") != 0))
		return 0;
	return gt_hist_find_variable(&first, name, FIRST_TABLE, found);
}

static const struct gt_event_format *event(void *data, const char *system, const char *name)
{
	(void)data;
	if (strcmp(system, "synthetic") == 0)
		return strcmp(name, "late") == 0 ? &late : NULL;
	return strcmp(system, "shop") == 0 && strcmp(name, "made") == 0 ? &format : NULL;
}

static bool is_alike(void *data, const char *system, const char *name, const struct gt_hist *other)
{
	(void)data;
	(void)system;
	(void)name;
	return gt_hist_has_same_keys(&first, other);
}

static const struct gt_hist_world world = { variable, event, is_alike, NULL, true };

static int parse_in_world(const char *text)
{
	return gt_hist_parse(text, strlen(text), &format, &world, &hist, &error);
}

/* Both tables are empty. */
static void prepare_two(const char *other, const char *text)
{
	int failed = gt_hist_parse(other, strlen(other), &format, NULL, &first, &error);

	assert_int_equal(failed, 0);
	free(arena);
	arena = calloc(1, sizeof(*arena) + POOL);
	arena->hists_offset = sizeof(*arena);
	arena->hists_bytes = POOL;
	arena->event_count = 16;
	first_bytes = gt_hist_describe(&first, &clock_ns, FIRST_TABLE, &first_description.head);
	failed = parse_in_world(text);
	if (failed)
		print_message("%s: %s\n", error.text, error.part);
	assert_int_equal(failed, 0);
	description_bytes = gt_hist_describe(&hist, &clock_ns, 1, &description.head);
	assert_true(description_bytes <= sizeof(description));
	assert_true(graftrace_hist_shape_of(&description.head, &shape));
	table = (struct graftrace_hist_table *)((char *)arena + arena->hists_offset + 64);
	made_count = 0;
	memset(&made, 0, sizeof(made));
}

static bool happen(bool in_first, int number, const char *what, unsigned small, uint64_t clock)
{
	uint64_t values[5 + 8] = { (uint64_t)(int64_t)number, 0, small };
	const uint64_t bytes = strlen(what) + 1;
	const struct graftrace_filter_event looked_at = { values, 5 + (uint32_t)(bytes + 7) / 8,
							  0,	  42,
							  3,	  "shopper\0\0\0\0\0\0\0\0" };
	const struct gt_hist_event counted = { &looked_at, NULL, clock, 0 };

	values[1] = 40 | bytes << 16;
	memcpy(&values[5], what, bytes);
	return in_first ? gt_hist_follow(arena, &first_description.head, first_bytes, &counted)
			: gt_hist_follow(arena, &description.head, description_bytes, &counted);
}

static void a_variable_is_read_by_its_key_and_once_in_an_expression(void **state)
{
	(void)state;
	prepare_two(
		"keys=count:ts=common_timestamp,w=what",
		"keys=count:by=common_timestamp-$ts:onmatch(shop.made).trace(late,$by,small,$w)");
	happen(false, 1, "none", 1, 1000);
	assert_int_equal(made_count, 0); /* nobody has set it */
	happen(true, 1, "apples", 1, 2000);
	happen(true, 2, "pears", 1, 2100);
	happen(false, 1, "x", 7, 2500);
	assert_int_equal(made_count, 1);
	assert_int_equal(made.number, 9);
	assert_int_equal(made.depth, 1);
	assert_int_equal(made.values[0], 500);
	assert_int_equal(made.values[1], 7);
	assert_string_equal((char *)made.values + (made.values[2] & 0xffff), "apples");
	happen(false, 1, "x", 7, 2600);
	assert_int_equal(made_count, 1); /* it was read */
	happen(false, 2, "x", 8, 2600);
	assert_int_equal(made_count, 2);
	assert_string_equal((char *)made.values + (made.values[2] & 0xffff), "pears");
	look();
	assert_int_equal(view.hits, 2); /* what has no variable is not counted */
}

static void the_largest_and_the_last_value_keep_others(void **state)
{
	(void)state;
	prepare_two("keys=count",
		    "keys=count:s=small:onmax($s).save(what,small):onmax($s).snapshot()");
	assert_true(happen(false, 1, "three", 3, 0));
	assert_false(happen(false, 1, "two", 2, 0));
	assert_false(happen(false, 2, "also three", 3, 0));
	assert_true(happen(false, 2, "nine", 9, 0));
	look();
	assert_string_equal(line(0), "{ count:          1 } hitcount:          2\n\tmax:          3"
				     "  what: three                             small:          3");
	assert_string_equal(line(1), "{ count:          2 } hitcount:          2\n\tmax:          9"
				     "  what: nine                              small:          9");
	char text[GT_HIST_LINE_BYTES];

	gt_hist_put_snapshot(&view, &(struct gt_hist_names){ 0 }, text);
	assert_string_equal(text,
			    "\nSnapshot taken (see tracing/snapshot).  Details:\n\ttriggering "
			    "value { onmax($s) }:          9\ttriggered by event with key: { "
			    "count:          2 }\n");
	prepare_two("keys=count", "keys=count:s=small:onchange($s).save(what)");
	happen(false, 1, "a", 3, 0);
	happen(false, 1, "b", 3, 0);
	happen(false, 1, "c", 2, 0);
	look();
	assert_string_equal(line(0),
			    "{ count:          1 } hitcount:          3\n\tchanged:          2"
			    "  what: c                               ");
}

static void a_long_trigger_stands_whole_above_its_histogram(void **state)
{
	static char filter[2 * GT_HIST_LINE_BYTES], wanted[3 * GT_HIST_LINE_BYTES],
		got[4 * GT_HIST_LINE_BYTES];
	struct gt_hist_text text = { .memory = gt_host_memory };
	struct gt_hist_copy copy = { .hist = &hist, .filter = filter, .is_paused = true };
	size_t bytes;

	(void)state;
	assert_int_equal(parse("keys=count"), 0);
	memset(filter, 'x', sizeof(filter) - 1);
	copy.view.hist = &hist;
	assert_int_equal(gt_hist_text_add(&text, &copy, &(struct gt_hist_names){ 0 }), 0);
	bytes = gt_hist_text_read(&text, 0, got, sizeof(got) - 1);
	snprintf(
		wanted, sizeof(wanted),
		"# event histogram\n#\n# trigger info: hist:keys=count:vals=hitcount:sort=hitcount:"
		"size=2048 if %s [paused]\n#\n\n",
		filter);
	assert_true(bytes > strlen(wanted));
	assert_memory_equal(got, wanted, strlen(wanted));
	gt_hist_text_fini(&text);
}

static void wrong_variables_and_actions_are_said_with_the_part(void **state)
{
	static const struct {
		const char *text, *wrong, *part;
		int result;
	} texts[] = {
		{ "keys=count:a=count,a=small", "Variable already defined", "a", GT_EINVAL },
		{ "keys=count:a=count,b", "Malformed assignment", "b", GT_EINVAL },
		{ "keys=$ts", "Using variable references in keys not supported", "$ts", GT_EINVAL },
		{ "keys=count:a=$no", "Couldn't find variable", "no", GT_EINVAL },
		{ "keys=count:a=shop.sold.$ts", "Couldn't find variable", "ts", GT_EINVAL },
		{ "keys=count:a=common_timestamp.usecs-$ts",
		  "Timestamp units in expression don't match", "", GT_EINVAL },
		{ "keys=count:onmatch(shop.made)", "No action found", "", GT_EINVAL },
		{ "keys=count:onmatch(shop.made", "No closing paren found", "shop.made",
		  GT_EINVAL },
		{ "keys=count:onmatch(shop).trace(late)", "Missing subsystem", "shop", GT_EINVAL },
		{ "keys=count:onmatch(shop.no).trace(late)", "Invalid subsystem or event name",
		  "no", GT_EINVAL },
		{ "keys=count:onmatch(shop.made).save(count)", "Handler doesn't support action",
		  "save", GT_EINVAL },
		{ "keys=count:onmatch(shop.made).trace(no,count)", "Couldn't find synthetic event",
		  "no", GT_EINVAL },
		{ "keys=count:onmatch(shop.made).late($ts,count,what)",
		  "Param type doesn't match synthetic event field type", "count", GT_EINVAL },
		{ "keys=count:onmatch(shop.made).late($ts,small)",
		  "Param count doesn't match synthetic event field count", "late", GT_EINVAL },
		{ "keys=count:onmatch(shop.made).late($no,small,what)",
		  "Couldn't find synthetic variable", "no", GT_EINVAL },
		{ "keys=count:onmax(count).save(what)",
		  "For onmax(x) or onchange(x), x must be a variable", "count", GT_EINVAL },
		{ "keys=count:onmax($ts).save(what)", "Couldn't find onmax or onchange variable",
		  "ts", GT_EINVAL },
		{ "keys=count:a=small:onmax($a).save(no)", "Couldn't create field variable", "no",
		  GT_EINVAL },
		{ "keys=count:a=small:onmax($a).save(what):onchange($a).save(what)",
		  "Can't have more than one save() action per hist", "", GT_EEXIST },
		{ "keys=count:a=small:onever($a).save(what)", NULL, "", GT_EINVAL },
	};

	(void)state;
	prepare_two("keys=count:ts=common_timestamp", "keys=count");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const int result = parse_in_world(texts[i].text);

		if (result != texts[i].result || (error.text && !texts[i].wrong) ||
		    (texts[i].wrong && (!error.text || strcmp(error.text, texts[i].wrong) != 0)))
			print_message("%s: %d %s\n", texts[i].text, result,
				      error.text ? error.text : "nothing");
		assert_int_equal(result, texts[i].result);
		if (texts[i].wrong)
			assert_string_equal(error.text, texts[i].wrong);
		else
			assert_null(error.text);
		assert_string_equal(error.part, texts[i].part);
	}
}

static void actions_are_shown_as_they_were_asked_for(void **state)
{
	static const char text[] = "keys=count:vals=hitcount:by=common_timestamp-$ts:sort=hitcount:"
				   "size=2048:clock=global:onmatch(shop.made).trace(late,$by,small,"
				   "what):onmax($by).save(what):onchange($by).snapshot()";
	static struct gt_hist copy, again;
	char shown[GT_HIST_SHOWN_BYTES];

	(void)state;
	prepare_two("keys=count:ts=common_timestamp", text);
	gt_hist_duplicate(&hist, &copy);
	memset(&hist, 0xa5, sizeof(hist));
	gt_hist_put(&copy, shown, sizeof(shown));
	assert_string_equal(shown, text);
	assert_int_equal(gt_hist_parse(shown, strlen(shown), NULL, NULL, &again, &error), 0);
	assert_true(gt_hist_is_same(&copy, &again));
}

static void tables_of_variables_may_be_written_over(void **state)
{
	unsigned seed = 3;

	(void)state;
	prepare_two("keys=count:ts=common_timestamp,w=what:size=128",
		    "keys=count:by=common_timestamp-$ts:size=128:onmatch(shop.made).trace(late,$by,"
		    "small,$w):onmax($by).save(what):onmax($by).snapshot()");
	for (int i = 0; i < 3000; i++) {
		for (int k = 0; k < 40; k++) {
			const uint64_t base = k % 2 ? 64 : FIRST_TABLE * 64ull;

			seed = seed * 1103515245 + 12345;
			*(uint32_t *)((char *)arena + arena->hists_offset + base +
				      (seed >> 4) % (shape.bytes / 4) * 4) = seed;
		}
		for (int k = 0; k < 20; k++) {
			happen(true, k, "x", 1, seed);
			happen(false, k, "y", 2, seed);
			if (made_count)
				assert_true((made.values[2] & 0xffff) + (made.values[2] >> 16) <=
					    made.count * 8);
		}
		look();
		for (uint32_t k = 0; k < view.count; k++)
			line(k);
	}
}

static void descriptions_of_variables_may_be_written_over(void **state)
{
	uint64_t *copy;
	unsigned seed = 5;

	(void)state;
	prepare_two("keys=count,what:ts=common_timestamp,w=what",
		    "keys=count,what:by=common_timestamp-$ts:onmatch(shop.made).trace(late,$by,"
		    "small,$w):onmax($by).save(what)");
	copy = malloc(description_bytes);
	for (int i = 0; i < 40000; i++) {
		uint64_t values[5 + 8] = { i % 3, 40 | 8 << 16, 1, 0, 0, 0x6161 };
		const struct graftrace_filter_event looked_at = { values, 6,
								  .comm = "0123456789abcdef" };
		const struct gt_hist_event counted = { &looked_at, NULL, seed, 0 };

		happen(true, i % 3, "aa", 1, seed);
		memcpy(copy, description.words, description_bytes);
		for (int k = 0; k < 3; k++) {
			seed = seed * 1103515245 + 12345;
			((uint8_t *)copy)[(seed >> 8) % description_bytes] ^= (uint8_t)(seed >> 24);
		}
		gt_hist_follow(arena, (struct graftrace_hist *)copy, description_bytes, &counted);
	}
	free(copy);
}

static int finish(void **state)
{
	(void)state;
	free(arena);
	free(words);
	free(order);
	return 0;
}

/* What is kept of a text has a limit: names that are shown would be others beyond it. */
static void a_text_whose_names_have_no_room_is_refused(void **state)
{
	static const struct gt_event_format format = { .system = "shop", .name = "sold" };
	static struct gt_hist hist;
	struct gt_hist_error error;
	char text[GT_HIST_BYTES] = "keys=common_pid:onmatch(";
	char *end;

	(void)state;
	memset(text + strlen(text), 's', 60);
	strcat(text, ".");
	memset(text + strlen(text), 'e', 60);
	strcat(text, ").took($aa");
	for (int i = 1; i < 10; i++)
		strcat(text, ",$aa");
	end = text + strlen(text);
	strcpy(end, ")");
	assert_int_equal(gt_hist_parse(text, strlen(text), &format, NULL, &hist, &error), 0);
	strcpy(end, ",$aa,$aa,$aa,$aa,$aa)");
	assert_int_equal(gt_hist_parse(text, strlen(text), &format, NULL, &hist, &error),
			 GT_EINVAL);
	assert_string_equal(error.text, "A histogram's text is too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_shown_with_all_that_it_left_out),
		cmocka_unit_test(what_is_wrong_is_said_with_the_part),
		cmocka_unit_test(a_filter_begins_at_a_word_of_its_own),
		cmocka_unit_test(histograms_are_the_same_by_their_keys_values_and_order),
		cmocka_unit_test(a_cpu_has_one_name_however_it_is_written),
		cmocka_unit_test(hits_and_sums_are_counted_by_key),
		cmocka_unit_test(keys_are_shown_as_their_modifiers_say),
		cmocka_unit_test(what_could_not_be_read_is_0_or_fault),
		cmocka_unit_test(what_has_no_room_is_dropped_and_counted),
		cmocka_unit_test(threads_and_handlers_count_in_one_table),
		cmocka_unit_test(a_table_that_is_written_over_harms_nobody),
		cmocka_unit_test(a_description_that_is_none_counts_nothing),
		cmocka_unit_test(a_variable_is_read_by_its_key_and_once_in_an_expression),
		cmocka_unit_test(the_largest_and_the_last_value_keep_others),
		cmocka_unit_test(a_long_trigger_stands_whole_above_its_histogram),
		cmocka_unit_test(wrong_variables_and_actions_are_said_with_the_part),
		cmocka_unit_test(actions_are_shown_as_they_were_asked_for),
		cmocka_unit_test(tables_of_variables_may_be_written_over),
		cmocka_unit_test(descriptions_of_variables_may_be_written_over),
		cmocka_unit_test(a_text_whose_names_have_no_room_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, finish);
}
