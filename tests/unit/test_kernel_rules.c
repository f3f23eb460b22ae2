/* SPDX-License-Identifier: MIT */
/* Filters, triggers and histograms of a kernel's static events. On port/fake, read back through the viewer. */
#define _GNU_SOURCE
#include "tests/unit/fake_shop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include "core/record/arch.h"
#include "port/fake/fake.h"

static void a_filter_leaves_events_out(void **state)
{
	(void)state;
	begin_selling();
	assert_string_equal(get("events/shop/sold/filter"), "none\n");
	assert_int_equal(put("events/shop/sold/filter", "pieces > 3 && what ~ \"b*\""), 0);
	assert_string_equal(get("events/shop/sold/filter"), "pieces > 3 && what ~ \"b*\"\n");
	sell(3, "bread");
	sell(4, "bread");
	sell(5, "salt");
	assert_string_equal(get("set_event"), "shop:sold\n");
	assert_int_equal(records(), 1);
	assert_true(is_in("trace", ": sold: pieces=4 what=\"bread\"\n"));
	assert_int_equal(put("events/shop/sold/filter", "0"), 0);
	sell(1, "salt");
	assert_int_equal(records(), 2);
}

static void a_filter_asks_which_thread_it_is(void **state)
{
	(void)state;
	begin_selling();
	assert_int_equal(put("events/shop/filter", "common_pid == 8 && COMM == \"t8\" && CPU == 0"),
			 0);
	sell(1, "x");
	gt_fake_switch(gt_fake_stack(8), 1);
	sell(2, "x");
	gt_fake_switch(gt_fake_stack(9), 1);
	sell(3, "x");
	assert_int_equal(records(), 1);
	assert_true(is_in("trace", "pieces=2"));
}

static void a_filter_that_is_refused_says_where(void **state)
{
	(void)state;
	begin_selling();
	assert_int_equal(put("events/shop/sold/filter", "price > 3"), GT_EINVAL);
	assert_string_equal(get("events/shop/sold/filter"),
			    "price > 3\n      ^\nparse_error: Field not found\n\n");
	assert_true(is_in("error_log", "event filter parse error: error: Field not found"));
	sell(1, "x");
	assert_int_equal(records(), 1);
}

static void triggers_switch_tracing_as_often_as_they_say(void **state)
{
	(void)state;
	begin_selling();
	assert_int_equal(put("events/shop/sold/trigger", "traceoff:1 if pieces == 4"), 0);
	assert_int_equal(put("events/door/locked/trigger", "traceon"), 0);
	assert_string_equal(get("events/shop/sold/trigger"), "traceoff:count=1 if pieces == 4\n");
	assert_string_equal(get("events/shop/sold/enable"), "1*\n");
	assert_string_equal(get("events/door/locked/enable"), "0*\n");
	for (int n = 3; n < 6; n++)
		sell(n, "x");
	assert_string_equal(get("tracing_on"), "0\n");
	lock_door(0, 0); /* is not recorded, but acts */
	assert_string_equal(get("tracing_on"), "1\n");
	for (int n = 3; n < 6; n++)
		sell(n, "x");
	assert_string_equal(get("events/shop/sold/trigger"), "traceoff:count=0 if pieces == 4\n");
	assert_int_equal(records(), 5);
	assert_false(is_in("trace", "locked"));
	assert_int_equal(put("events/shop/sold/trigger", "!traceoff"), 0);
	assert_int_equal(put("events/door/locked/trigger", "!traceon"), 0);
	assert_string_equal(get("events/door/locked/enable"), "0\n");
	assert_string_equal(get("events/door/locked/trigger"),
			    "# Available triggers:\n# traceon traceoff snapshot stacktrace "
			    "enable_event disable_event enable_hist disable_hist hist\n");
	lock_door(0, 0);
	assert_int_equal(records(), 5);
}

static void a_trigger_enables_another_event(void **state)
{
	(void)state;
	begin_selling();
	assert_int_equal(put("events/shop/sold/trigger", "enable_event:shop:opened if pieces > 1"),
			 0);
	assert_int_equal(put("events/door/locked/trigger", "disable_event:shop:opened:1"), 0);
	assert_int_equal(put("events/door/locked/trigger", "enable_event:shop:nothing"), GT_EINVAL);
	open_door();
	sell(1, "x");
	open_door();
	assert_string_equal(get("events/shop/opened/enable"), "0*\n");
	sell(2, "x");
	assert_string_equal(get("events/shop/opened/enable"), "1*\n");
	open_door();
	lock_door(0, 0);
	open_door();
	assert_int_equal(records(), 3);
}

static void a_stack_trace_and_a_snapshot_are_taken_where_the_event_is(void **state)
{
	(void)state;
	gt_fake_trigger = note;
	begin_selling();
	put("current_tracer", "function_graph");
	watched = 0;
	assert_int_equal(put("events/shop/sold/trigger", "stacktrace:1"), 0);
	assert_int_equal(watched, 0);
	assert_int_equal(put("events/shop/sold/trigger", "snapshot if pieces == 2"), 0);
	assert_int_equal(watched, 1);
	gt_fake_call(1);
	gt_fake_call(2);
	sell(1, "x");
	assert_true(is_in("trace", "<stack trace>\n => inner\n => outer\n"));
	gt_arena_control_act(&control);
	assert_true(is_in("snapshot", "Snapshot is freed"));
	sell(2, "x");
	gt_arena_control_act(&control);
	assert_true(is_in("snapshot", "sold: pieces=2"));
	assert_true(gt_arena_control_must_act(&control));
	assert_int_equal(put("events/shop/sold/trigger", "!snapshot"), 0);
	assert_false(gt_arena_control_must_act(&control));
	gt_fake_trigger = NULL;
}

static void a_histogram_counts_what_happens(void **state)
{
	(void)state;
	begin_selling();
	put("set_event", "");
	assert_int_equal(
		put("events/shop/sold/trigger",
		    "hist:keys=what:vals=pieces:sort=pieces.descending:size=128 if pieces > 0"),
		0);
	sell(2, "bread");
	sell(3, "salt");
	sell(4, "bread");
	sell(-1, "bread");
	assert_string_equal(
		get("events/shop/sold/hist"),
		"# event histogram\n#\n# trigger info: hist:keys=what:vals=hitcount,pieces:"
		"sort=pieces.descending:size=128 if pieces > 0 [active]\n#\n\n"
		"{ what: bread                                              } hitcount:"
		"          2  pieces:          6\n"
		"{ what: salt                                               } hitcount:"
		"          1  pieces:          3\n"
		"\nTotals:\n    Hits: 3\n    Entries: 2\n    Dropped: 0\n");
	assert_int_equal(records(), 0);
	struct gt_control_node found = node("events/shop/sold/trigger");
	struct gt_message message;
	static const char pause[] =
		"hist:keys=what:vals=pieces:sort=pieces.descending:size=128:pause "
		"if pieces > 0";
	assert_int_equal(gt_control_put(&found, false, pause, sizeof(pause) - 1, &message), 0);
	sell(9, "salt");
	assert_true(is_in("events/shop/sold/hist", "[paused]"));
	assert_true(is_in("events/shop/sold/hist", "Hits: 3\n"));
	static const char clear[] =
		"hist:keys=what:vals=pieces:sort=pieces.descending:size=128:clear "
		"if pieces > 0";
	assert_int_equal(gt_control_put(&found, false, clear, sizeof(clear) - 1, &message), 0);
	assert_true(is_in("events/shop/sold/hist", "Hits: 0\n"));
	assert_int_equal(put("events/shop/sold/trigger", ""), 0);
	assert_string_equal(get("events/shop/sold/hist"), "");
}

static void a_histogram_counts_by_thread_and_by_function(void **state)
{
	(void)state;
	begin_selling();
	put("current_tracer", "function_graph");
	assert_int_equal(put("events/shop/sold/trigger",
			     "hist:keys=common_pid.execname,stacktrace:size=128"),
			 0);
	gt_fake_call(1);
	sell(1, "x");
	gt_fake_call(2);
	sell(2, "x");
	gt_fake_return();
	gt_fake_return();
	assert_true(is_in("events/shop/sold/hist", "common_pid: t7              [         7]"));
	assert_true(is_in("events/shop/sold/hist", "outer"));
	assert_true(is_in("events/shop/sold/hist", "inner"));
	assert_true(is_in("events/shop/sold/hist", "Entries: 2\n"));
}

static void variables_go_from_one_event_to_another(void **state)
{
	struct gt_context *context;
	(void)state;
	begin_selling();
	context = gt_arch_block()->context;
	/* actions need some of the stack that runs, which under a sanitizer has no variables */
	const uint64_t low = context->low, high = context->high,
		       here = (uint64_t)__builtin_frame_address(0);
	context->low = here - 65536;
	context->high = here + 65536;
	assert_int_equal(put("events/shop/sold/trigger", "hist:keys=common_pid:p0=pieces"), 0);
	assert_int_equal(put("events/door/locked/trigger", "hist:keys=common_pid:sum=$p0+level:"
							   "onmatch(shop.sold).nothing($sum)"),
			 GT_EINVAL);
	assert_int_equal(put("events/door/locked/trigger",
			     "hist:keys=common_pid:sum=$p0+level:onmax($sum).save(flags)"),
			 0);
	sell(5, "x");
	lock_door(1, 2);
	sell(50, "x");
	lock_door(3, 4);
	sell(7, "x");
	lock_door(5, 6);
	context->low = low;
	context->high = high;
	assert_true(is_in("events/door/locked/hist", "max:         54  flags:          3"));
}

/* ---- synthetic events ---- */

static struct gt_context *stack_was;
static uint64_t low_was, high_was;

/* The stack that runs is the test's own: a fake one's bounds would say that there is no room on it. room: bytes below. */
static void have_room(uint64_t room)
{
	const uint64_t here = (uint64_t)__builtin_frame_address(0);
	stack_was = gt_arch_block()->context;
	low_was = stack_was->low;
	high_was = stack_was->high;
	stack_was->low = here - room;
	stack_was->high = here + 65536;
}

static void have_fake_stack(void)
{
	stack_was->low = low_was;
	stack_was->high = high_was;
}

/* Between what is sold and the door that is locked then, as Linux' documentation makes wake-up latencies. */
static void make_latencies(void)
{
	begin_selling();
	put("set_event", "");
	assert_int_equal(append("synthetic_events", "took u64 lat; int pieces; char what[16]"), 0);
	assert_int_equal(put("events/shop/sold/trigger",
			     "hist:keys=common_pid:ts0=common_timestamp,p=pieces,w=what"),
			 0);
	assert_int_equal(append("events/door/locked/trigger",
				"hist:keys=common_pid:lat=common_timestamp-$ts0:"
				"onmatch(shop.sold).trace(took,$lat,$p,$w)"),
			 0);
}

static void the_time_between_two_events_becomes_an_event(void **state)
{
	(void)state;
	make_latencies();
	assert_string_equal(get("synthetic_events"), "took\tu64 lat; int pieces; char[16] what\n");
	assert_true(is_in("available_events", "synthetic:took\n"));
	assert_int_equal(put("events/synthetic/took/trigger", "hist:keys=pieces:vals=lat"), 0);
	have_room(65536);
	sell(3, "bread");
	lock_door(0, 0);
	assert_int_equal(records(), 0); /* it is counted, not recorded */
	assert_true(
		is_in("events/synthetic/took/hist", "{ pieces:          3 } hitcount:          1"));
	assert_int_equal(append("set_event", "synthetic:took"), 0);
	assert_string_equal(get("set_event"), "synthetic:took\n");
	assert_string_equal(get("events/synthetic/took/enable"), "1*\n");
	assert_string_equal(get("events/synthetic/enable"), "1\n");
	assert_int_equal(put("events/synthetic/took/filter", "pieces != 5"), 0);
	gt_fake_cpu(0)->interrupts_off = true;
	for (int i = 4; i < 7; i++) {
		sell(i, "salt");
		lock_door(0, 0);
	}
	gt_fake_cpu(0)->interrupts_off = false;
	lock_door(0, 0); /* the variable was read */
	have_fake_stack();
	assert_int_equal(records(), 2);
	assert_true(is_in("trace", " d....")); /* as it was where the door was locked */
	assert_true(is_in("trace", ": took: lat="));
	assert_true(is_in("trace", " pieces=4 what=salt\n"));
	assert_true(is_in("trace", " pieces=6 what=salt\n"));
	assert_true(is_in("events/synthetic/took/hist", "Hits: 4\n"));
	assert_true(is_in("events/synthetic/took/format", "name: took\nID: "));
	assert_int_equal(atoi(get("events/synthetic/took/id")),
			 atoi(strstr(get("events/synthetic/took/format"), "ID: ") + 4));
}

/* As on Linux, where a reference is to what there was when it was made. */
static void a_variable_of_the_same_name_that_comes_later_changes_nothing(void **state)
{
	(void)state;
	begin_selling();
	assert_int_equal(put("events/shop/sold/trigger", "hist:keys=common_pid:v=pieces"), 0);
	assert_int_equal(put("events/door/locked/trigger",
			     "hist:keys=common_pid:v=level+$v:onmax($v).save(flags)"),
			 0);
	have_room(65536);
	sell(5, "x");
	lock_door(1, 2);
	have_fake_stack();
	assert_true(is_in("events/door/locked/hist", "max:          7  flags:          1"));
	assert_int_equal(put("events/shop/opened/trigger", "hist:keys=common_pid:v=common_cpu"), 0);
	assert_int_equal(append("events/door/locked/trigger", "hist:keys=common_pid:x=$v"),
			 GT_EINVAL); /* which of them? */
	have_room(65536);
	sell(8, "x");
	open_door();
	lock_door(3, 2);
	have_fake_stack();
	assert_true(is_in("events/door/locked/hist", "max:         10  flags:          3"));
	/* It does not keep itself. */
	assert_int_equal(append("events/shop/sold/trigger", "!hist:keys=common_pid:v=pieces"),
			 GT_EBUSY);
	assert_int_equal(put("events/door/locked/trigger", ""), 0);
	assert_string_equal(get("events/door/locked/hist"), "");
	assert_int_equal(put("events/shop/sold/trigger", ""), 0);
	assert_string_equal(get("events/shop/sold/hist"), "");
}

static void an_event_that_is_used_is_not_removed(void **state)
{
	struct gt_control_node found;
	(void)state;
	make_latencies();
	assert_int_equal(append("synthetic_events", "!took"), GT_EBUSY);
	assert_int_equal(put("synthetic_events", ""), GT_EBUSY);
	assert_int_equal(put("events/door/locked/trigger", ""), 0);
	assert_int_equal(put("events/synthetic/took/enable", "1"), 0);
	assert_int_equal(append("synthetic_events", "!took"), GT_EBUSY);
	assert_int_equal(put("events/synthetic/took/enable", "0"), 0);
	assert_int_equal(append("events/synthetic/took/trigger", "hist:keys=pieces"), 0);
	assert_int_equal(append("synthetic_events", "!took"), GT_EBUSY);
	assert_int_equal(put("events/synthetic/took/trigger", ""), 0);
	assert_int_equal(put("events/synthetic/took/filter", "pieces == 1"), 0);
	assert_int_equal(append("synthetic_events", "!took"), 0);
	assert_int_equal(append("synthetic_events", "!took"), GT_ENOENT);
	assert_string_equal(get("synthetic_events"), "");
	assert_false(is_in("available_events", "took"));
	assert_int_equal(gt_control_find(&control.control, "events/synthetic", 16, &found),
			 GT_ENOENT);
	assert_int_equal(put("set_event", "synthetic:took"), GT_EINVAL);
	/* Another one of its name begins without the filter. */
	assert_int_equal(append("synthetic_events", "took s32 other"), 0);
	assert_string_equal(get("events/synthetic/took/filter"), "none\n");
	assert_int_equal(put("events/synthetic/took/filter", "pieces == 1"), GT_EINVAL);
}

/* A number is never another event's: records of one that was removed are printed as it was. */
static void numbers_of_removed_events_stay_theirs(void **state)
{
	int first;
	(void)state;
	begin_selling();
	put("set_event", "");
	assert_int_equal(put("synthetic_events", "seen int pieces"), 0);
	first = atoi(get("events/synthetic/seen/id"));
	assert_int_equal(
		put("events/shop/sold/trigger", "hist:keys=pieces:onmatch(shop.sold).seen(pieces)"),
		0);
	put("events/synthetic/enable", "1");
	have_room(65536);
	sell(77, "x");
	have_fake_stack();
	put("events/synthetic/enable", "0");
	put("events/shop/sold/trigger", "");
	assert_int_equal(put("synthetic_events", "seen s64 others; u8 more"), 0);
	assert_int_equal(atoi(get("events/synthetic/seen/id")), first + 1);
	assert_true(is_in("trace", ": seen: pieces=77\n"));
	/* … but the same definition gets it back, however often. */
	for (int i = 0; i < 1000; i++)
		assert_int_equal(put("synthetic_events", "seen int pieces"), 0);
	assert_int_equal(atoi(get("events/synthetic/seen/id")), first);
}

static void there_are_so_many_definitions(void **state)
{
	char line[64];
	int error = 0, made = 0;
	(void)state;
	begin_selling();
	for (; error == 0 && made <= GT_ARENA_LATER; made += error == 0) {
		snprintf(line, sizeof(line), "event%d int pieces", made);
		error = append("synthetic_events", line);
	}
	assert_int_equal(error, GT_ENOSPC);
	assert_int_equal(made, GT_ARENA_LATER);
	assert_int_equal(put("events/synthetic/event255/enable", "1"), 0);
	assert_int_equal(put("events/synthetic/enable", "0"), 0);
	assert_int_equal(put("synthetic_events", "event7 int pieces"), 0);
	assert_string_equal(get("synthetic_events"), "event7\tint pieces\n");
	assert_int_equal(put("events/synthetic/enable", "1"), 0);
	assert_string_equal(get("events/synthetic/event7/enable"), "1\n");
}

static void a_bad_definition_says_where(void **state)
{
	(void)state;
	begin_selling();
	assert_int_equal(append("synthetic_events", "took u64 lat; nosuch x"), GT_EINVAL);
	assert_true(is_in("error_log", "synthetic_events: error: Invalid type\n"
				       "  Command: took u64 lat; nosuch x\n"
				       "                         ^\n"));
	assert_int_equal(append("synthetic_events", "took u64 lat"), 0);
	assert_int_equal(append("synthetic_events", "took u64 lat"), GT_EEXIST);
	assert_int_equal(append("dynamic_events", "s:synthetic/also u8 one"), 0);
	assert_string_equal(get("synthetic_events"), "took\tu64 lat\nalso\tu8 one\n");
	assert_string_equal(get("dynamic_events"),
			    "s:synthetic/took\tu64 lat\ns:synthetic/also\tu8 one\n");
	assert_int_equal(append("dynamic_events", "-:took"), 0);
	assert_int_equal(append("dynamic_events", "-:synthetic/also"), 0);
	assert_string_equal(get("synthetic_events"), "");
}

static void events_that_make_each_other_come_to_an_end(void **state)
{
	(void)state;
	begin_selling();
	put("set_event", "");
	assert_int_equal(append("synthetic_events", "tick int pieces\ntock int pieces"), 0);
	assert_int_equal(
		put("events/shop/sold/trigger", "hist:keys=what:onmatch(shop.sold).tick(pieces)"),
		0);
	assert_int_equal(put("events/synthetic/tick/trigger",
			     "hist:keys=pieces:onmatch(synthetic.tick).tock(pieces)"),
			 0);
	assert_int_equal(put("events/synthetic/tock/trigger",
			     "hist:keys=pieces:onmatch(synthetic.tock).tick(pieces)"),
			 0);
	have_room(65536);
	for (int i = 0; i < 5; i++)
		sell(i, "x");
	have_fake_stack();
	assert_true(is_in("events/synthetic/tick/hist", "Hits: 10\n"));
	assert_true(is_in("events/synthetic/tock/hist", "Hits: 5\n"));
}

static void a_full_ring_counts_the_events_that_were_made(void **state)
{
	(void)state;
	make_latencies();
	put("events/synthetic/enable", "1");
	have_room(65536);
	for (int i = 0; i < 20000; i++) {
		sell(i, "x");
		lock_door(0, 0);
	}
	have_fake_stack();
	const uint64_t lost = graftrace_arena_streams(gt_fake_arena())[0].lost_events;
	assert_true(lost > 0);
	assert_int_equal(records() + lost, 20000);
	assert_true(is_in("events/door/locked/hist", "Hits: 20000\n"));
	put("tracing_on", "0");
	have_room(65536);
	sell(1, "x");
	lock_door(0, 0);
	have_fake_stack();
	assert_int_equal(records() + lost, 20000);
	assert_true(is_in("events/door/locked/hist", "Hits: 20001\n"));
}

/* A stack of its own, of which the recorder is told that `room` bytes are left. */
#define OWN_STACK_BYTES 65536

/* A sanitizer's code has larger ones. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_FRAMES_OF_ITS_OWN 1
#elif defined(__clang__)
#define HAS_FRAMES_OF_ITS_OWN __has_feature(address_sanitizer)
#else
#define HAS_FRAMES_OF_ITS_OWN 0
#endif

static uint8_t own_stack[OWN_STACK_BYTES] __attribute__((aligned(16)));
static ucontext_t here, there;
static uint64_t room_below;

static void sell_there(void)
{
	have_room(room_below);
	sell(1, "x");
	have_fake_stack();
	swapcontext(&there, &here);
}

/* Returns how many bytes below where it sold were written to. */
static uint64_t sell_with_room(uint64_t room)
{
	uint64_t untouched = 0;
	memset(own_stack, 0x5a, sizeof(own_stack));
	room_below = room;
	getcontext(&there);
	there.uc_stack.ss_sp = own_stack;
	there.uc_stack.ss_size = sizeof(own_stack);
	there.uc_link = NULL;
	makecontext(&there, sell_there, 0);
	swapcontext(&here, &there);
	while (own_stack[untouched] == 0x5a)
		untouched++;
	return sizeof(own_stack) - untouched;
}

static int hits_of(const char *path)
{
	return atoi(strstr(get(path), "Hits: ") + 6);
}

/* The room is asked for at each event of the chain, and what follows it takes no more. */
static void a_chain_ends_where_the_stack_does(void **state)
{
	static const char *const next[] = { "two", "three", "four" };
	static const char *const paths[] = { "events/synthetic/one/hist",
					     "events/synthetic/two/hist",
					     "events/synthetic/three/hist" };
	(void)state;
	begin_selling();
	put("set_event", "");
	assert_int_equal(put("synthetic_events", "one int pieces; char what[8]\n"
						 "two int pieces; char what[8]\n"
						 "three int pieces; char what[8]\n"
						 "four int pieces; char what[8]"),
			 0);
	assert_int_equal(put("events/synthetic/enable", "1"), 0);
	assert_int_equal(put("events/shop/sold/trigger",
			     "hist:keys=what:onmatch(shop.sold).one(pieces,what)"),
			 0);
	for (int i = 0; i < 3; i++) {
		char path[64], hist[128];
		snprintf(path, sizeof(path), "%.*strigger", (int)strlen(paths[i]) - 4, paths[i]);
		snprintf(hist, sizeof(hist),
			 "hist:keys=what:onmatch(synthetic.%.*s).%s(pieces,what)",
			 (int)strlen(paths[i]) - 22, paths[i] + 17, next[i]);
		assert_int_equal(put(path, hist), 0);
	}
	int hits = 0;
	for (uint64_t room = 512; room < 16384; room += 64) {
		const uint64_t used = sell_with_room(room);
		int all = 0;
		for (int i = 0; i < 3; i++)
			all += hits_of(paths[i]);
		assert_true(all - hits <= 3);
		if (!HAS_FRAMES_OF_ITS_OWN)
			assert_true(used <= (room > 1024 ? room : 1024));
		hits = all;
	}
	assert_true(hits_of(paths[2]) > 0 && hits_of(paths[1]) > hits_of(paths[2]));
}

static void events_that_come_during_a_recording_are_in_it(void **state)
{
	static struct gt_control_handle handle;
	static char data[4 << 20];
	struct gt_message message = { 0 };
	size_t before = 0, all;
	int64_t got;
	(void)state;
	begin_selling();
	put("set_event", "");
	struct gt_control_node pipe = node("trace_pipe.data");
	assert_int_equal(gt_control_open(&handle, &pipe, GT_CONTROL_READ, &message), 0);
	while ((got = gt_control_read(&handle, data + before, sizeof(data) - before, &message)) > 0)
		before += (size_t)got;
	assert_int_equal(append("synthetic_events", "arrived int how_many"), 0);
	all = before;
	while ((got = gt_control_read(&handle, data + all, sizeof(data) - all, &message)) > 0)
		all += (size_t)got;
	gt_control_close(&handle, &message);
	assert_null(memmem(data, before, "how_many", 8));
	assert_non_null(memmem(data + before, all - before, "how_many", 8));
}

/* ---- texts that are made to break something ---- */

/* The rules of all events lie in 64 kB: whoever fills them can take them away again, and others do not suffer. */
static void rules_that_have_no_room_leave_those_there_are(void **state)
{
	static char filter[4096];
	char trigger[1024];
	int made = 0, error = 0;
	(void)state;
	begin_selling();
	strcpy(filter, "pieces==1");
	while (strlen(filter) < 450)
		strcat(filter, "||pieces==1");
	for (; error == 0 && made < 100; made += error == 0) {
		snprintf(trigger, sizeof(trigger),
			 "hist:keys=pieces.buckets=%d:p%d=pieces:size=128 if %s", made + 1, made,
			 filter);
		error = append("events/shop/sold/trigger", trigger);
	}
	assert_int_equal(error, GT_ENOSPC);
	assert_true(made > 2);
	while (strlen(filter) < 4000)
		strcat(filter, "||pieces==1");
	error = 0;
	for (int i = 0; error == 0 && i < 20; i++) {
		error = put(i % 2 ? "events/shop/sold/filter" : "events/shop/filter", filter);
	}
	put("events/shop/sold/filter", "0");
	/* What is listed is what is there, and it can be taken away, one after the other. */
	int lines = 0;
	for (const char *at = get("events/shop/sold/trigger"); (at = strchr(at, '\n')) != NULL;
	     at++)
		lines++;
	assert_int_equal(lines, made);
	assert_int_equal(append("events/door/locked/trigger", "traceoff:1"), 0);
	sell(1, "x");
	assert_int_equal(atoi(strstr(get("events/shop/sold/hist"), "Hits: ") + 6), 1);
	while (lines-- > 0) {
		strcpy(trigger, "!");
		strncat(trigger, get("events/shop/sold/trigger"), sizeof(trigger) - 2);
		*strstr(trigger, " [") = 0;
		assert_int_equal(append("events/shop/sold/trigger", trigger), 0);
	}
	assert_string_equal(get("events/shop/sold/hist"), "");
	assert_int_equal(append("events/door/locked/trigger", "!traceoff"), 0);
}

static void a_format_of_long_names_is_whole(void **state)
{
	static char line[512];
	(void)state;
	begin_selling();
	strcpy(line, "long");
	for (int i = 0; i < 16; i++)
		sprintf(line + strlen(line), " u8 a_name_of_the_field_no_%c;", 'a' + i);
	assert_int_equal(append("synthetic_events", line), 0);
	const char *format = get("events/synthetic/long/format");
	assert_non_null(strstr(format, "\tfield:u8 a_name_of_the_field_no_p;\toffset:128;\tsize:1;"
				       "\tsigned:0;\n\nprint fmt: \"a_name_of_the_field_no_a=%"));
	assert_string_equal(format + strlen(format) - 30, "REC->a_name_of_the_field_no_p\n");
}

static void long_and_nested_texts_are_refused(void **state)
{
	static char text[20000];
	static const char *const files[] = { "events/shop/sold/trigger", "events/shop/sold/filter",
					     "synthetic_events", "dynamic_events", "set_event" };
	(void)state;
	begin_selling();
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		static const char *const begins[] = { "hist:keys=",
						      "",
						      "!",
						      "s:",
						      "hist:keys=pieces:a=-(",
						      "hist:keys=pieces:onmatch(",
						      "p:" };
		for (size_t k = 0; k < sizeof(begins) / sizeof(*begins); k++)
			for (size_t c = 0; c < 5; c++) {
				strcpy(text, begins[k]);
				memset(text + strlen(text), "a-(.,"[c], 10000);
				text[strlen(begins[k]) + 10000] = 0;
				assert_true(append(files[i], text) < 0);
			}
	}
	sell(1, "x");
	assert_int_equal(records(), 1);
}

/* Each is kept as it was typed, and as the variable that it names. */
static void many_long_parameters_are_taken(void **state)
{
	char text[1024] = "hist:keys=what:onmatch(shop.sold).trace(took";
	(void)state;
	begin_selling();
	assert_int_equal(append("synthetic_events",
				"took u32 a; u32 b; u32 c; u32 d; u32 e; u32 f; u32 g; u32 h; "
				"u32 i; u32 j; u32 k; u32 l; u32 m; u32 n; u32 o; u32 p"),
			 0);
	assert_int_equal(
		append("events/door/locked/trigger",
		       "hist:keys=dev:a_variable_v=flags,b_variable_v=flags,c_variable_v=flags"),
		0);
	for (int i = 0; i < 16; i++)
		sprintf(text + strlen(text), ",door.locked.$%c_variable_v", 'a' + i % 3);
	strcat(text, ")");
	assert_int_equal(append("events/shop/sold/trigger", text), 0);
	assert_true(is_in("events/shop/sold/trigger", text + strlen("hist:keys=what:")));
}

/* ---- … and by chance ---- */

static uint32_t seed;

static uint32_t chance(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static const char *any_of(const char *const *texts, uint32_t count)
{
	return texts[chance(count)];
}

#define ANY_OF(...)                                  \
	any_of((const char *const[]){ __VA_ARGS__ }, \
	       sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static const char *any_event(void)
{
	return ANY_OF("shop.sold", "door.locked", "shop.opened", "synthetic.s0", "synthetic.s1",
		      "synthetic.s2");
}

static const char *any_value(void)
{
	return ANY_OF("pieces", "what", "level", "flags", "common_pid", "common_timestamp",
		      "common_cpu", "stacktrace", "a", "b", "$v0", "$v1", "$v2", "7", "-(pieces)",
		      "pieces+level", "common_timestamp-$v0", "$v1*3", "pieces.log2",
		      "a.buckets=10", "common_pid.execname", "common_timestamp.usecs", "pieces/0",
		      "hitcount", "");
}

static const char *any_action(void)
{
	return ANY_OF("onmatch(shop.sold).s0(pieces,flags)", "onmatch(shop.sold).s1($t0,what)",
		      "onmatch(shop.sold).trace(s2,$t0)", "onmatch(synthetic.s0).s0(a,b)",
		      "onmatch(synthetic.s1).s2(a)", "onmatch(synthetic.s2).s2(common_timestamp)",
		      "onmax($v0).save(pieces,what)", "onmax($v0).save(level)",
		      "onchange($v1).snapshot()", "onmax($v0).trace(s2,common_timestamp)",
		      "onmatch(shop.sold).s0(pieces", "onmax(v0).save()",
		      "onmatch(nothing).s0(a,b)");
}

static void add_hist(char *text)
{
	sprintf(text + strlen(text), "hist:keys=%s", chance(3) ? "common_pid" : any_value());
	if (chance(4) == 0)
		sprintf(text + strlen(text), ",%s", any_value());
	if (chance(3) == 0)
		sprintf(text + strlen(text), ":vals=%s", any_value());
	if (chance(2))
		sprintf(text + strlen(text), ":t0=common_timestamp%s", chance(3) ? "" : "-$t0");
	for (uint32_t i = chance(3); i > 0; i--)
		sprintf(text + strlen(text), ":v%u=%s", chance(2), any_value());
	for (uint32_t i = chance(3); i > 0; i--)
		sprintf(text + strlen(text), ":%s", any_action());
	if (chance(4))
		strcat(text, ":size=128");
	if (chance(6) == 0)
		sprintf(text + strlen(text), ":name=n%u", chance(2));
	if (chance(8) == 0)
		strcat(text, ANY_OF(":pause", ":cont", ":clear", ":sort=pieces.descending", ":"));
}

static const char *any_path(void)
{
	static char path[64];
	const char *event = any_event(), *dot = strchr(event, '.');

	snprintf(path, sizeof(path), "events/%.*s/%s/%s", (int)(dot - event), event, dot + 1,
		 ANY_OF("trigger", "trigger", "trigger", "trigger", "filter", "enable"));
	return chance(5) ? path : ANY_OF("synthetic_events", "dynamic_events", "set_event");
}

/* What is typed, most of which is refused. */
static void type(void)
{
	char text[2048] = "";
	struct gt_control_node found;
	const char *const path = any_path();

	if (chance(6) == 0)
		strcat(text, "!");
	if (strstr(path, "trigger") != NULL && chance(5))
		add_hist(text);
	else if (strstr(path, "trigger") != NULL)
		strcat(text, ANY_OF("traceoff:1", "stacktrace", "enable_event:synthetic:s0",
				    "disable_event:shop:sold:3", "snapshot",
				    "enable_hist:synthetic:s1", "disable_hist:shop:sold"));
	else if (strstr(path, "filter") != NULL)
		strcat(text, ANY_OF("pieces > 1", "a == 3 || b < 2", "what ~ \"x*\"", "0",
				    "((pieces", ""));
	else if (strstr(path, "enable") != NULL)
		strcat(text, ANY_OF("0", "1", "2"));
	else if (strcmp(path, "set_event") == 0)
		strcat(text, ANY_OF("synthetic:*", "s0", "shop:", "*:*", "nothing"));
	else
		sprintf(text + strlen(text), "%ss%u%s", path[0] == 'd' ? "s:" : "", chance(3),
			ANY_OF(" int a; u32 b", " u64 a; char b[]", " u64 a", " int a int b", "",
			       " x y"));
	if (chance(4) == 0 && strstr(path, "trigger") != NULL)
		strcat(text, ANY_OF(" if pieces > 2", " if a != 3", " if level"));
	if (gt_control_find(&control.control, path, strlen(path), &found) == 0)
		(chance(8) ? append : put)(path, text);
}

/* Until nothing changes any more: some are used by others that are taken away later. */
static void take_all_away(void)
{
	static const char *const systems[] = { "shop/sold",    "shop/opened",  "door/locked",
					       "synthetic/s0", "synthetic/s1", "synthetic/s2" };

	put("events/enable", "0");
	for (int round = 0; round < 8; round++)
		for (size_t i = 0; i < sizeof(systems) / sizeof(*systems); i++) {
			struct gt_control_node found;
			char path[64], line[2048];

			snprintf(path, sizeof(path), "events/%s/trigger", systems[i]);
			if (gt_control_find(&control.control, path, strlen(path), &found) != 0)
				continue;
			put(path, "");
			/* each line, of which one may be read by the next one */
			for (const char *at = get(path); *at != 0 && *at != '#';) {
				const size_t bytes = strcspn(at, "\n");

				snprintf(line, sizeof(line), "!%.*s", (int)bytes, at);
				if (strstr(line, " [") != NULL)
					*strstr(line, " [") = 0;
				append(path, line);
				at += bytes + 1;
			}
		}
	assert_int_equal(put("synthetic_events", ""), 0);
}

static void texts_by_chance_break_nothing(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 20; round++) {
		start_shop(NULL);
		seed = round;
		begin_selling();
		for (int i = 0; i < 400; i++) {
			type();
			have_room(i % 3 ? 65536 : 4000);
			sell((int)chance(5), "xyz");
			lock_door(chance(3), (unsigned char)chance(3));
			open_door();
			have_fake_stack();
			put("tracing_on", "1");
		}
		get("trace");
		get("events/shop/sold/hist");
		take_all_away();
		/* All is as at first. */
		assert_string_equal(get("events/shop/sold/hist"), "");
		assert_int_equal(put("set_event", "shop:sold"), 0);
		assert_int_equal(put("events/shop/filter", "0"), 0);
		assert_int_equal(put("trace", ""), 0);
		sell(1, "x");
		assert_true(is_in("trace", "sold: pieces=1"));
	}
}

static void a_kernel_without_the_memory_has_no_rules(void **state)
{
	struct gt_control_node found;
	has_rules = false;
	start_shop(state);
	has_rules = true;
	assert_int_equal(gt_control_find(&control.control, "events/shop/sold/filter", 23, &found),
			 GT_ENOENT);
	begin_selling();
	sell(1, "x");
	assert_int_equal(records(), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start_shop, finish_shop)
	const struct CMUnitTest tests[] = {
		TEST(a_filter_leaves_events_out),
		TEST(a_filter_asks_which_thread_it_is),
		TEST(a_filter_that_is_refused_says_where),
		TEST(triggers_switch_tracing_as_often_as_they_say),
		TEST(a_trigger_enables_another_event),
		TEST(a_stack_trace_and_a_snapshot_are_taken_where_the_event_is),
		TEST(a_histogram_counts_what_happens),
		TEST(a_histogram_counts_by_thread_and_by_function),
		TEST(variables_go_from_one_event_to_another),
		TEST(the_time_between_two_events_becomes_an_event),
		TEST(a_variable_of_the_same_name_that_comes_later_changes_nothing),
		TEST(an_event_that_is_used_is_not_removed),
		TEST(numbers_of_removed_events_stay_theirs),
		TEST(there_are_so_many_definitions),
		TEST(a_bad_definition_says_where),
		TEST(events_that_make_each_other_come_to_an_end),
		TEST(a_full_ring_counts_the_events_that_were_made),
		TEST(a_chain_ends_where_the_stack_does),
		TEST(events_that_come_during_a_recording_are_in_it),
		TEST(rules_that_have_no_room_leave_those_there_are),
		TEST(a_format_of_long_names_is_whole),
		TEST(long_and_nested_texts_are_refused),
		TEST(many_long_parameters_are_taken),
		TEST(texts_by_chance_break_nothing),
		TEST(a_kernel_without_the_memory_has_no_rules),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
