/* SPDX-License-Identifier: MIT */
/*
 * No patch lies on two pages: the kernel writes them one after the other, and whoever writes can be
 * killed in between. The program plans itself; its functions begin so many bytes before a page ends
 * as their names say.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "attach/plan/plan_private.h"

/* behind: what stands between the function and the next one. */
#define NEAR_THE_END(name, before_the_end, code, behind)                         \
	extern uint64_t name(uint64_t a);                                        \
	__asm__(".text\n.p2align 12\n.fill 4096 - " before_the_end ", 1, 0x90\n" \
		".type " #name ", @function\n" #name ":\n.cfi_startproc\n" code  \
		"\n.cfi_endproc\n.size " #name ", . - " #name "\n.fill 96, 1, " behind "\n")
#define NOTHING "0xf4" /* hlt: no padding */
#define PADDING "0x90"
#define PUSHES	"push %rbp; mov %rsp, %rbp; lea 3(%rdi), %rax; pop %rbp; ret"

NEAR_THE_END(one_before, "1", PUSHES, PADDING);
NEAR_THE_END(two_before, "2", PUSHES, PADDING);
NEAR_THE_END(three_before, "3", PUSHES, PADDING);
NEAR_THE_END(four_before, "4", PUSHES, PADDING);
NEAR_THE_END(five_before, "5", PUSHES, PADDING);
NEAR_THE_END(marked_before, "7", "endbr64; " PUSHES, PADDING);
NEAR_THE_END(nops_before, "3", "nop; nop; nop; nop; nop; lea 3(%rdi), %rax; ret", PADDING);
NEAR_THE_END(nop_before, "2", "nopl 0(%rax, %rax); lea 3(%rdi), %rax; ret", PADDING);
/* A jump to its own start, whose displacement lies on two pages. */
NEAR_THE_END(loops_over, "12",
	     "lea 1(%rdi), %rdi; cmp $99, %rdi; {disp32} jl loops_over; lea (%rdi), %rax; ret",
	     PADDING);
NEAR_THE_END(loops_before, "16",
	     "lea 1(%rdi), %rdi; cmp $99, %rdi; {disp32} jl loops_before; lea (%rdi), %rax; ret",
	     PADDING);
/* Two bytes long, and what could lend it room lies across the end of a page, or 64 bytes before. */
#define BORROWS(name, before_the_end)                                                           \
	extern uint64_t name(uint64_t a), name##_lender(uint64_t a);                            \
	__asm__(".text\n.p2align 12\n.fill 4096 - " before_the_end ", 1, 0xf4\n"                \
		".type " #name ", @function\n" #name ":\n.cfi_startproc\n jmp " #name "_lender" \
		"\n.cfi_endproc\n.size " #name ", . - " #name "\n.type " #name "_lender, "      \
		"@function\n" #name "_lender:\n.cfi_startproc\n lea 3(%rdi), %rax\n"            \
		"rol $5, %rax\n xor %rdi, %rax\n add $0x12345, %rax\n"                          \
		"imul $0x10001, %rax, %rax\n ret\n.cfi_endproc\n.size " #name                   \
		"_lender, . - " #name "_lender\n.fill 200, 1, 0xf4\n")
BORROWS(borrows_across, "21");
BORROWS(borrows_before, "85");

/* Calls and jumps of a function that returns twice, and one that only takes its address: never run. */
#define TAKES(name, code)                                                                          \
	extern uint64_t name(uint64_t a);                                                          \
	__asm__(".text\n.p2align 4\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n" code \
		"\n.cfi_endproc\n.size " #name ", . - " #name "\n")
TAKES(calls_special, "push %rbp; call *vfork@GOTPCREL(%rip); pop %rbp; ret");
TAKES(jumps_special, "lea 3(%rdi), %rax; jmp *vfork@GOTPCREL(%rip)");
TAKES(names_special, "mov vfork@GOTPCREL(%rip), %rax; cmp vfork@GOTPCREL(%rip), %rdi; ret");

static struct gt_object *object;
static struct gt_plan *plan;
static uint64_t bias;

static int setup(void **state)
{
	struct gt_message message = { "" };
	uint64_t address;

	(void)state;
	if (gt_object_open("/proc/self/exe", &object, &message) ||
	    gt_plan_create(object, &plan, &message) ||
	    gt_object_symbol(object, "five_before", &address))
		return -1;
	bias = (uint64_t)five_before - address;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gt_plan_destroy(plan);
	gt_object_close(object);
	return 0;
}

static struct gt_plan_entry plan_in(struct gt_plan *which, uint64_t (*what)(uint64_t))
{
	struct gt_plan_entry entry;
	uint32_t index;

	assert_int_equal(gt_object_function_at(object, (uint64_t)what - bias, &index), 0);
	assert_int_equal(gt_plan_function(which, index, &entry, NULL), 0);
	assert_int_equal(entry.address + bias, (uint64_t)what);
	return entry;
}

static void what_would_lie_on_two_pages_takes_a_short_jump(void **state)
{
	uint64_t (*const functions[])(uint64_t) = { two_before, three_before, four_before,
						    nops_before, nop_before };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		const struct gt_plan_entry entry = plan_in(plan, functions[i]);

		assert_int_equal(functions[i](7), 10);
		assert_int_equal(entry.way, GT_PLAN_SHORT);
		assert_int_equal(entry.patch_bytes, 2);
	}
	assert_int_equal(plan_in(plan, five_before).way, GT_PLAN_MOVED);
	/* Not behind endbr64, but on it. */
	assert_int_equal(plan_in(plan, marked_before).way, GT_PLAN_MOVED);
	assert_int_equal(plan_in(plan, marked_before).patch_address + bias,
			 (uint64_t)marked_before);
}

static void without_two_bytes_before_the_end_only_a_breakpoint_is_left(void **state)
{
	struct gt_plan_entry entry = plan_in(plan, one_before);
	struct gt_plan *other;

	(void)state;
	assert_int_equal(entry.way, GT_PLAN_NONE);
	assert_int_equal(entry.reason, GT_REASON_TWO_PAGES);
	assert_int_equal(gt_plan_create(object, &other, NULL), 0);
	gt_plan_allow_breakpoints(other);
	entry = plan_in(other, one_before);
	/* A sanitizer's pthread_sigmask makes this program a C library, which blocks signals. */
	assert_int_equal(entry.way,
			 gt_plan_blocks_signals(other) ? GT_PLAN_NONE : GT_PLAN_BREAKPOINT);
	gt_plan_destroy(other);
}

static void a_jump_that_leads_to_the_moved_code_is_on_one_page_too(void **state)
{
	struct gt_plan_entry entry = plan_in(plan, loops_before);

	(void)state;
	assert_int_equal(entry.way, GT_PLAN_MOVED);
	assert_int_equal(entry.extra_count, 1);
	entry = plan_in(plan, loops_over);
	assert_int_equal(entry.way, GT_PLAN_NONE);
	assert_int_equal(entry.reason, GT_REASON_OWN_LOOP);
	assert_int_equal(loops_over(5), 99);
	assert_int_equal(loops_before(5), 99);
}

static void room_is_not_borrowed_on_two_pages(void **state)
{
	struct gt_plan_entry entry = plan_in(plan, borrows_before);

	(void)state;
	assert_int_equal(entry.way, GT_PLAN_SHORT);
	assert_int_equal(entry.extra_count, 2);
	assert_int_equal(gt_plan_extra(plan, &entry, 0)->kind, GT_EXTRA_BLOCK);
	entry = plan_in(plan, borrows_across);
	assert_int_equal(entry.way, GT_PLAN_NONE);
	assert_int_equal(entry.reason, GT_REASON_NO_ROOM);
}

/* Places make the code known first: a function borrows all the same. */
static void room_is_borrowed_where_places_were_planned_before(void **state)
{
	struct gt_plan *other;
	struct gt_plan_entry entry;

	(void)state;
	assert_int_equal(gt_plan_create(object, &other, NULL), 0);
	assert_int_equal(gt_plan_probes(other, NULL, 0, NULL, NULL), 0);
	entry = plan_in(other, borrows_before);
	assert_int_equal(entry.way, GT_PLAN_SHORT);
	assert_int_equal(entry.extra_count, 2);
	gt_plan_destroy(other);
}

static void one_page(uint64_t address, uint64_t bytes)
{
	assert_int_equal(address / 4096, (address + bytes - 1) / 4096);
}

static void every_patch_of_this_program_is_on_one_page(void **state)
{
	uint32_t count = gt_object_function_count(object), i, k;

	(void)state;
	for (i = 0; i < count; i++) {
		struct gt_plan_entry entry;

		assert_int_equal(gt_plan_function(plan, i, &entry, NULL), 0);
		if (entry.way == GT_PLAN_NONE)
			continue;
		one_page(entry.patch_address, entry.patch_bytes);
		for (k = 0; k < entry.extra_count; k++) {
			const struct gt_plan_extra *extra = gt_plan_extra(plan, &entry, k);

			/* An island for the entry's own jump is written before it. */
			if (extra->kind == GT_EXTRA_BLOCK)
				one_page(extra->address, 10);
			else if (extra->kind == GT_EXTRA_BRANCH)
				one_page(extra->address + extra->bytes - 4, 4);
		}
	}
}

static uint32_t sites_in(uint64_t (*function)(uint64_t), uint64_t bytes,
			 const struct gt_special_site **sites)
{
	const uint64_t start = (uint64_t)function - bias;

	return gt_scan_sites(plan->scan, start, start + bytes, sites);
}

static void who_only_takes_the_address_of_a_special_function_does_not_go_there(void **state)
{
	const struct gt_special_site *sites;

	(void)state;
	plan_in(plan, calls_special); /* the object is scanned when it is asked for first */
	assert_int_equal(sites_in(calls_special, 9, &sites), 1);
	assert_int_equal(sites[0].special, GT_SPECIAL_TWICE);
	assert_true(sites[0].call);
	assert_int_equal(sites[0].address + bias, (uint64_t)calls_special + 1);
	assert_int_equal(sites_in(jumps_special, 10, &sites), 1);
	assert_int_equal(sites[0].special, GT_SPECIAL_TWICE);
	assert_false(sites[0].call);
	assert_int_equal(sites_in(names_special, 15, &sites), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			who_only_takes_the_address_of_a_special_function_does_not_go_there),
		cmocka_unit_test(what_would_lie_on_two_pages_takes_a_short_jump),
		cmocka_unit_test(without_two_bytes_before_the_end_only_a_breakpoint_is_left),
		cmocka_unit_test(a_jump_that_leads_to_the_moved_code_is_on_one_page_too),
		cmocka_unit_test(room_is_not_borrowed_on_two_pages),
		cmocka_unit_test(room_is_borrowed_where_places_were_planned_before),
		cmocka_unit_test(every_patch_of_this_program_is_on_one_page),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
