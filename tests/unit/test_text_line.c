/* SPDX-License-Identifier: MIT */
/*
 * One line of function_graph text: every layout that is understood, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "read/text_line.h"

/* Copies the text to memory of just its size, so that a sanitizer sees each byte read too far. */
static struct gt_text_line parse(const char *text)
{
	static char *copy;
	size_t len = strlen(text);
	struct gt_text_line line;

	free(copy);
	copy = malloc(len + (len == 0));
	memcpy(copy, text, len);
	gt_text_line_parse(copy, len, &line);
	return line;
}

static void expect_name(const struct gt_text_line *line, const char *name)
{
	assert_non_null(line->name);
	assert_int_equal(line->name_len, strlen(name));
	assert_memory_equal(line->name, name, line->name_len);
}

static void expect_leaf(const char *text, int32_t cpu, int64_t pid, uint64_t ns, const char *name)
{
	struct gt_text_line line = parse(text);

	assert_int_equal(line.kind, GT_TEXT_LEAF);
	assert_int_equal(line.cpu, cpu);
	assert_int_equal(line.pid, pid);
	assert_int_equal(line.duration_ns, ns);
	expect_name(&line, name);
}

static void the_plain_layout_is_read(void **state)
{
	struct gt_text_line line = parse(" 0)               |  mcache_alloc() {");

	(void)state;
	assert_int_equal(line.kind, GT_TEXT_ENTRY);
	assert_int_equal(line.cpu, 0);
	assert_int_equal(line.pid, -1);
	assert_int_equal(line.indent, 2);
	expect_name(&line, "mcache_alloc");

	expect_leaf(" 0)   0.071 us    |    runtime_memcpy();", 0, -1, 71, "runtime_memcpy");
	line = parse(" 0)   0.071 us    |    runtime_memcpy();");
	assert_int_equal(line.indent, 4);

	line = parse(" 0) ! 208.173 us  |  }  ");
	assert_int_equal(line.kind, GT_TEXT_EXIT);
	assert_int_equal(line.duration_ns, 208173);
	assert_null(line.name);
}

static void collapsed_blanks_are_read_and_tell_no_depth(void **state)
{
	struct gt_text_line line = parse("0) | mcache_alloc() {");

	(void)state;
	assert_int_equal(line.kind, GT_TEXT_ENTRY);
	assert_int_equal(line.indent, -1);
	expect_leaf("0) ! 207.666 us | runtime_memcpy();", 0, -1, 207666, "runtime_memcpy");
	line = parse("0) ! 208.173 us | }");
	assert_int_equal(line.kind, GT_TEXT_EXIT);
	assert_int_equal(line.indent, -1);
}

static void every_mark_is_read(void **state)
{
	(void)state;
	expect_leaf(" 3) + 14.582 us   |      f();", 3, -1, 14582, "f");
	expect_leaf(" 3) ! 105.309 us  |      f();", 3, -1, 105309, "f");
	expect_leaf(" 3) # 1513.203 us |      f();", 3, -1, 1513203, "f");
	expect_leaf(" 3) * 20588.75 us |      f();", 3, -1, 20588750, "f");
	expect_leaf(" 3) @ 293131.7 us |      f();", 3, -1, 293131700, "f");
	expect_leaf(" 3) $ 1200887 us  |      f();", 3, -1, 1200887000, "f");
	expect_leaf(" 0) @ 2343574. us |  f();", 0, -1, 2343574000, "f"); /* Nanos */
}

static void a_fraction_of_more_than_three_digits_is_rounded(void **state)
{
	(void)state;
	expect_leaf(" 0)   0.07149 us    |  f();", 0, -1, 71, "f");
	expect_leaf(" 0)   0.0715 us    |  f();", 0, -1, 72, "f");
}

static void cpus_may_have_any_number(void **state)
{
	(void)state;
	expect_leaf(" 12)   0.071 us    |  f();", 12, -1, 71, "f");
	expect_leaf("127)   0.071 us    |  f();", 127, -1, 71, "f");
	expect_leaf(" 65535)   0.071 us    |  f();", 65535, -1, 71, "f");
	assert_int_equal(parse(" 65536)   0.071 us    |  f();").kind, GT_TEXT_OTHER);
	assert_int_equal(parse(" 99999999999999999999)   0.071 us    |  f();").kind, GT_TEXT_OTHER);
}

static void every_choice_of_columns_is_read(void **state)
{
	struct gt_text_line line;

	(void)state;
	/* funcgraph-proc */
	expect_leaf(" 0)    sh-86      |   0.791 us    |        mntget();", 0, 86, 791, "mntget");
	expect_leaf(" 0)   <idle>-0    |   0.791 us    |  f();", 0, 0, 791, "f");
	expect_leaf(" 1)  kworker-31   | ! 100.791 us  |  f();", 1, 31, 100791, "f");
	/* funcgraph-abstime, with and without the task */
	expect_leaf("    7.898729 |   0)   0.641 us    |  f();", 0, -1, 641, "f");
	expect_leaf(" 1207.898729 |  11)    sh-86      |   0.641 us    |  f();", 11, 86, 641, "f");
	/* latency-format: flags; irqsoff and the like: the relative time first */
	expect_leaf(" 0)    sh-37   |  d.h1. |   0.541 us    |  f();", 0, 37, 541, "f");
	expect_leaf(" 0)  d..1 |   0.541 us    |  f();", 0, -1, 541, "f");
	expect_leaf("      182 us |   0)    sh-37   |  d....  |   0.541 us    |  f();", 0, 37, 541,
		    "f");
	/* no CPU */
	expect_leaf("   0.541 us    |  f();", -1, -1, 541, "f");
	expect_leaf(" # 1541.123 us |  f();", -1, -1, 1541123, "f");
	expect_leaf("   sh-37       |   0.541 us    |  f();", -1, 37, 541, "f");
	line = parse("               |  f() {");
	assert_int_equal(line.kind, GT_TEXT_ENTRY);
	assert_int_equal(line.cpu, -1);
	line = parse("    7.898729 |   0)               |      vfs_open() {");
	assert_int_equal(line.kind, GT_TEXT_ENTRY);
	assert_int_equal(line.indent, 6);
	/* no overhead mark, no duration */
	expect_leaf(" 0) 105.309 us  |  f();", 0, -1, 105309, "f");
	assert_int_equal(parse(" 0) vfs_open() {").kind, GT_TEXT_UNTIMED);
	assert_int_equal(parse(" 0)     mntget();").kind, GT_TEXT_UNTIMED);
	assert_int_equal(parse(" 0)   }").kind, GT_TEXT_UNTIMED);
	assert_int_equal(parse(" 0)    sh-86      |    mntget();").kind, GT_TEXT_UNTIMED);
}

static void the_name_behind_a_brace_is_read(void **state)
{
	struct gt_text_line line = parse(" 0) * 20588.75 us |              } /* do_dentry_open */");

	(void)state;
	assert_int_equal(line.kind, GT_TEXT_EXIT);
	assert_int_equal(line.indent, 14);
	expect_name(&line, "do_dentry_open");
	line = parse(" 0)   1.5 us |  } /* vfs_open = 0x0 */");
	assert_int_equal(line.kind, GT_TEXT_EXIT);
	assert_true(gt_text_tail_names(line.name, line.name_len, "vfs_open", 8));
	assert_false(gt_text_tail_names(line.name, line.name_len, "vfs_op", 6));
	assert_false(gt_text_tail_names("vfs", 3, "vfs_open", 8));
}

static void names_of_cplusplus_and_modules_are_kept_whole(void **state)
{
	struct gt_text_line line = parse(" 0)               |  ns::F::operator()() {");

	(void)state;
	expect_name(&line, "ns::F::operator()");
	expect_leaf(" 0)   0.071 us    |    a::operator|<int, char>();", 0, -1, 71,
		    "a::operator|<int, char>");
	expect_leaf(" 0)   0.071 us    |    ath_rx_tasklet [ath9k]();", 0, -1, 71,
		    "ath_rx_tasklet [ath9k]");
	expect_leaf(" 0)   0.071 us    |    f(int, char (*)())();", 0, -1, 71,
		    "f(int, char (*)())");
	/* Linux 6.14's arguments and return values are not the name. */
	expect_leaf(" 0)   0.071 us    |    vfs_open(path=0xff, f=(null)); /* = 0x0 */", 0, -1, 71,
		    "vfs_open");
	line = parse(" 0)               |  vfs_open(path=0xff) { /* <-path_openat */");
	assert_int_equal(line.kind, GT_TEXT_ENTRY);
	expect_name(&line, "vfs_open");
}

static void task_switches_are_read(void **state)
{
	struct gt_text_line line = parse(" 0)     sh-86      =>    cat-133    ");

	(void)state;
	assert_int_equal(line.kind, GT_TEXT_SWITCH);
	assert_int_equal(line.cpu, 0);
	assert_int_equal(line.pid, 86);
	assert_int_equal(line.next_pid, 133);
	line = parse(" 11) <idle>-0 => kworker-31");
	assert_int_equal(line.kind, GT_TEXT_SWITCH);
	assert_int_equal(line.cpu, 11);
	assert_int_equal(line.pid, 0);
	line = parse(" 0)  a=>b-1 => Web Co-7 ");
	assert_int_equal(line.kind, GT_TEXT_SWITCH);
	assert_int_equal(line.next_pid, 7);
	assert_int_equal(parse(" ------------------------------------------").kind, GT_TEXT_BLANK);
	assert_int_equal(parse(" 0)  sh => cat ").kind, GT_TEXT_OTHER);
}

static void trace_cmd_report_is_read(void **state)
{
	struct gt_text_line line;

	(void)state;
	expect_leaf(
		"             cat-91    [000]     7.360082: funcgraph_entry:      ! 294.834 us |  "
		"mutex_unlock();",
		0, 91, 294834, "mutex_unlock");
	expect_leaf(
		"block_hasher-4102  [012]  2764.516562: funcgraph_entry:        0.052 us   |      "
		"policy_nodemask();",
		12, 4102, 52, "policy_nodemask");
	expect_leaf(
		"Web Content-91    [000] d..1.    7.360082: funcgraph_entry:      0.834 us |  f();",
		0, 91, 834, "f");
	expect_leaf("sh-91    (   91) [003] 7.360082: funcgraph_entry:      0.834 us |  f();", 3,
		    91, 834, "f");
	expect_leaf("  sh-91      2d..1.    7.360082123: funcgraph_entry:      0.834 us |  f();", 2,
		    91, 834, "f");
	line = parse("trace-cmd-90    [000]     7.363361: funcgraph_entry:                   |  "
		     "finish_task_switch.isra.0() {");
	assert_int_equal(line.kind, GT_TEXT_ENTRY);
	expect_name(&line, "finish_task_switch.isra.0");
	line = parse("trace-cmd-90    [000]     7.363369: funcgraph_exit:       + 10.336 us  |  }");
	assert_int_equal(line.kind, GT_TEXT_EXIT);
	assert_int_equal(line.pid, 90);
	assert_int_equal(
		parse("myprog-1234  [000]     1.000002: ev:                   a=42 b=7").kind,
		GT_TEXT_EVENT);
	assert_int_equal(parse("cpus=1").kind, GT_TEXT_HEADER);
	assert_int_equal(parse("CPU 1 is empty").kind, GT_TEXT_HEADER);
	assert_int_equal(parse("a-1 [000] 1.0: funcgraph_exit:  1.5 us |  f();").kind,
			 GT_TEXT_OTHER);
	assert_int_equal(parse("a-1 [000] 1.0: funcgraph_exit:").kind, GT_TEXT_OTHER);
	assert_int_equal(parse("a-1 [000] 1.0: funcgraph_eel: x").kind, GT_TEXT_OTHER);
}

static void losses_and_headers_are_read(void **state)
{
	struct gt_text_line line = parse("CPU:1 [LOST 61190 EVENTS]");

	(void)state;
	assert_int_equal(line.kind, GT_TEXT_LOST);
	assert_int_equal(line.cpu, 1);
	assert_int_equal(line.lost, 61190);
	line = parse("CPU:12 [LOST EVENTS]");
	assert_int_equal(line.kind, GT_TEXT_LOST);
	assert_int_equal(line.lost, 0);
	line = parse("CPU:3 [17 EVENTS DROPPED]");
	assert_int_equal(line.kind, GT_TEXT_LOST);
	assert_int_equal(line.lost, 17);
	line = parse("##### CPU 2 buffer started ####");
	assert_int_equal(line.kind, GT_TEXT_STARTED);
	assert_int_equal(line.cpu, 2);
	line = parse("# tracer: function_graph\r");
	assert_int_equal(line.kind, GT_TEXT_TRACER);
	expect_name(&line, "function_graph");
	assert_int_equal(parse("# CPU  DURATION                  FUNCTION CALLS").kind,
			 GT_TEXT_HEADER);
}

static void comments_and_interrupts_are_events(void **state)
{
	(void)state;
	assert_int_equal(parse(" 0)               |  /* kmem_cache_free: x|y() { */").kind,
			 GT_TEXT_EVENT);
	assert_int_equal(parse(" 0)   ==========> |").kind, GT_TEXT_EVENT);
	assert_int_equal(parse(" 0)   <========== |").kind, GT_TEXT_EVENT);
	assert_int_equal(parse(" (Overruns: 0)").kind, GT_TEXT_EVENT);
	assert_int_equal(
		parse("  sh-86      [000] .....     7.499612: vfs_open <-path_openat").kind,
		GT_TEXT_EVENT);
}

static void what_is_no_trace_is_said_to_be_none(void **state)
{
	static const char *const texts[] = {
		"...",
		"int main(void) { return f(); }",
		"f();",
		"}",
		" 0)",
		" 0) |",
		" 0)   1.5 us",
		" 0)   1.5 us |",
		" 0)   1.5 us |  f()",
		" 0)   1.5 us |  ();",
		" 0)   1.5 us |  f;",
		" 0)   1.5 us |  } f",
		" 0)   1.5 us |  } /**/",
		" 0)   1.5 us |  } /* */",
		" 0)   1.5 ms |  f();",
		" 0)   1. us |  f();",
		" 0)               |  f();",
		" 0)               |  }",
		" 0) 9999999999999999 us |  f();",
		" 0)   1.5 us |  a\tb();",
		" 0)   1.5 us |  a\001b();",
		"CPU:x [LOST 1 EVENTS]",
		"CPU",
		"| | | | | | | | | | | |",
		"1|2|3|4|5|6|7|8|9|10|f();",
		"123",
		"=>",
		"-",
		"/*",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct gt_text_line line = parse(texts[i]);

		if (line.kind != GT_TEXT_OTHER)
			fail_msg("'%s' is taken for kind %d", texts[i], line.kind);
		assert_non_null(line.why);
	}
}

static void nul_bytes_are_no_part_of_a_name(void **state)
{
	static const char text[] = " 0)   1.5 us |  a\0b();";
	struct gt_text_line line;

	(void)state;
	gt_text_line_parse(text, sizeof text - 1, &line);
	assert_int_equal(line.kind, GT_TEXT_OTHER);
	gt_text_line_parse("\0\0\0", 3, &line);
	assert_int_equal(line.kind, GT_TEXT_OTHER);
}

static void every_cut_of_a_line_is_read_within_its_bounds(void **state)
{
	static const char *const texts[] = {
		" 1207.898729 |  11)    sh-86      | d..1. | ! 100.641 us    |  f(int)(); /* = 0x0 "
		"*/",
		"  Web Content-91  (  91) [000] d..1.  7.360082: funcgraph_exit:  + 10.336 us  |  "
		"} /* a */",
		" 11)     sh-86      =>    cat-133    ",
		"##### CPU 2 buffer started ####",
		"CPU:1 [LOST 61190 EVENTS]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		char copy[128];

		for (size_t len = 0; len <= strlen(texts[i]); len++) {
			memcpy(copy, texts[i], len);
			copy[len] = '\0';
			parse(copy);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_plain_layout_is_read),
		cmocka_unit_test(collapsed_blanks_are_read_and_tell_no_depth),
		cmocka_unit_test(every_mark_is_read),
		cmocka_unit_test(a_fraction_of_more_than_three_digits_is_rounded),
		cmocka_unit_test(cpus_may_have_any_number),
		cmocka_unit_test(every_choice_of_columns_is_read),
		cmocka_unit_test(the_name_behind_a_brace_is_read),
		cmocka_unit_test(names_of_cplusplus_and_modules_are_kept_whole),
		cmocka_unit_test(task_switches_are_read),
		cmocka_unit_test(trace_cmd_report_is_read),
		cmocka_unit_test(losses_and_headers_are_read),
		cmocka_unit_test(comments_and_interrupts_are_events),
		cmocka_unit_test(what_is_no_trace_is_said_to_be_none),
		cmocka_unit_test(nul_bytes_are_no_part_of_a_name),
		cmocka_unit_test(every_cut_of_a_line_is_read_within_its_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
