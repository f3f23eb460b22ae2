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
	for (; error == 0 && made < 2000; made += error == 0) {
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
		TEST(a_kernel_without_the_memory_has_no_rules),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
