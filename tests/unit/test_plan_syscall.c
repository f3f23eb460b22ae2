/* SPDX-License-Identifier: MIT */
/* Where system calls are taken, and where they are left alone. The program plans its own functions. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "attach/plan/plan_private.h"
#include <graftrace/agent.h>

/* Functions that are planned, never run; no padding is behind. */
#define PLANNED(name, code)                                                                        \
	extern void name(void);                                                                    \
	__asm__(".text\n.p2align 6\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n" code \
		"\n.cfi_endproc\n.size " #name ", . - " #name "\n.fill 16, 1, 0xf4\n")
#define BEGIN "endbr64; xor %ecx, %ecx; xor %edx, %edx; "

PLANNED(goes_on, BEGIN "mov $39, %eax; syscall; mov %rax, %rdi; lea 1(%rdi), %rax; ret");
PLANNED(ends_soon, BEGIN "mov $39, %eax; syscall; ret");
PLANNED(jumps, BEGIN "mov $39, %eax; syscall; test %eax, %eax; js 1f; ret; 1: neg %eax; ret");
PLANNED(short_before, BEGIN "mov $39, %eax; mov %ecx, %edi; syscall; ret");
PLANNED(pushes_before, BEGIN "mov $39, %eax; push %rdi; syscall; ret");
PLANNED(returns_from_a_signal,
	"nop; nop; nop; nop; nop; mov $15, %rax; syscall; ud2; nop; nop; nop");
PLANNED(is_compared_with, BEGIN "mov %r11, 8(%rsp); syscall; ret");
PLANNED(unmaps_its_stack, BEGIN "mov $11, %eax; syscall; xor %rdi, %rdi; mov $60, %eax; syscall; "
				"nop; nop; nop");
PLANNED(is_reached_inside, BEGIN "mov $39, %eax; test %edi, %edi; jz 1f; pop %rdi; syscall; "
				 "1: mov %eax, %edx; lea 1(%rdx), %rax; ret");
PLANNED(is_reached_behind, BEGIN "mov $39, %eax; test %edi, %edi; jz 1f; mov $1, %edi; syscall; "
				 "1: mov %eax, %edx; lea 1(%rdx), %rax; ret");
PLANNED(calls_again, BEGIN "mov $39, %eax; jmp 1f; nop; 1: syscall; test %eax, %eax; js 1b; ret");
PLANNED(calls_behind, BEGIN "test %edi, %edi; jnz 1f; 1: syscall; call *%rdx; nop; ret");
PLANNED(two_calls,
	BEGIN "mov $1, %eax; syscall; mov $39, %eax; syscall; lea 1(%rax), %rax; nop; ret");
PLANNED(data_only, BEGIN "mov $0x050f, %eax; lea 1(%rax), %rax; ret");

static struct gt_object *object;
static struct gt_plan *plan;
static struct gt_plan_entry *entries;
static uint32_t count;
static uint64_t bias;

static int setup(void **state)
{
	struct gt_message message = { "" };
	uint64_t address;

	(void)state;
	if (gt_object_open("/proc/self/exe", &object, &message) ||
	    gt_plan_create(object, &plan, &message) ||
	    gt_object_symbol(object, "goes_on", &address) ||
	    gt_plan_syscalls(plan, &entries, &count, &message))
		return -1;
	bias = (uint64_t)goes_on - address;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(entries);
	gt_plan_destroy(plan);
	gt_object_close(object);
	return 0;
}

/* Of the function's calls this one, from 0 on; NULL: it has not so many. */
static const struct gt_plan_entry *call_of(void (*function)(void), uint32_t number)
{
	uint32_t index, i;

	assert_int_equal(gt_object_function_at(object, (uint64_t)function - bias, &index), 0);
	for (i = 0; i < count; i++)
		if (entries[i].function == index && number-- == 0)
			return &entries[i];
	return NULL;
}

/* The place of the system call: what stands there in the program is one. */
static uint64_t place_of(const struct gt_plan_entry *entry)
{
	const uint64_t place = entry->patch_address + bias + entry->syscall - 1;

	assert_memory_equal((const void *)place, "\x0f\x05", 2);
	return place;
}

/* Taken from `from` bytes before the call on, and moved so that it can be made again. */
static void taken(void (*function)(void), uint32_t number, uint32_t from)
{
	const struct gt_plan_entry *entry = call_of(function, number);
	uint8_t code[GT_PLAN_MOVED_MAX];
	struct gt_plan_map map;
	uint32_t i, calls = 0;
	int bytes, at;

	assert_non_null(entry);
	assert_int_equal(entry->reason, GT_REASON_NONE);
	assert_int_equal(entry->way, GT_PLAN_MOVED);
	assert_int_equal(entry->syscall, from + 1);
	assert_int_equal(entry->patch_bytes, 5);
	assert_in_range(entry->covered_bytes, from + 2 > 5 ? from + 2 : 5, GT_PLAN_ORIGINAL_MAX);
	assert_in_range(place_of(entry), (uint64_t)function, (uint64_t)function + 64);
	bytes = gt_plan_move(plan, entry, bias, (uint64_t)function + 0x10000, code, sizeof(code),
			     &map);
	assert_in_range(bytes, 1, entry->moved_bytes_max);
	at = map.offset[from];
	assert_memory_equal(code + at, "\x0f\x05", 2);
	/* Who returns stands two bytes behind A, and goes on behind the call. */
	assert_int_equal(map.offset[from + 2], at + 2);
	for (i = 0; i + 1 < (uint32_t)bytes; i++)
		calls += code[i] == 0x0f && code[i + 1] == 0x05;
	assert_int_equal(calls, 2); /* A and B */
	assert_memory_equal(code + at + GRAFTRACE_CALL_B, "\x0f\x05", 2);
}

static void left(void (*function)(void), uint32_t number, enum gt_plan_reason reason)
{
	const struct gt_plan_entry *entry = call_of(function, number);

	assert_non_null(entry);
	assert_int_equal(entry->way, GT_PLAN_NONE);
	assert_int_equal(entry->reason, reason);
}

static void calls_move_with_what_is_behind_them_or_before(void **state)
{
	(void)state;
	taken(goes_on, 0, 0);
	taken(jumps, 0, 0);
	taken(ends_soon, 0, 5);
	taken(short_before, 0, 2);
	taken(is_reached_behind, 0, 5);
	taken(two_calls, 0, 0);
	taken(two_calls, 1, 0);
	assert_null(call_of(goes_on, 1));
}

static void code_that_others_know_by_its_bytes_stays(void **state)
{
	(void)state;
	left(returns_from_a_signal, 0, GT_REASON_SIGNAL_RETURN);
	left(is_compared_with, 0, GT_REASON_PLACE_COMPARED);
	left(unmaps_its_stack, 0, GT_REASON_NO_STACK);
	left(unmaps_its_stack, 1, GT_REASON_NO_STACK);
}

static void nothing_leads_into_the_five_bytes(void **state)
{
	(void)state;
	left(is_reached_inside, 0, GT_REASON_REACHED_INSIDE);
	left(calls_again, 0, GT_REASON_OWN_LOOP);
	left(calls_behind, 0, GT_REASON_CALL_INSIDE);
	/* What moved would be the stack pointer that is noted before the call. */
	left(pushes_before, 0, GT_REASON_NO_ROOM);
}

static void the_bytes_of_one_in_another_instruction_are_none(void **state)
{
	(void)state;
	assert_null(call_of(data_only, 0));
}

static void no_two_places_share_a_byte(void **state)
{
	uint32_t i, k;

	(void)state;
	for (i = 0; i < count; i++)
		for (k = 0; k < i; k++)
			if (entries[i].way != GT_PLAN_NONE && entries[k].way != GT_PLAN_NONE)
				assert_true(entries[i].patch_address >=
						    entries[k].patch_address +
							    entries[k].covered_bytes ||
					    entries[k].patch_address >=
						    entries[i].patch_address +
							    entries[i].covered_bytes);
}

/* graftrace makes its own calls by one of the loader's, and restorers stay. */
static void one_place_of_the_loader_is_kept(void **state)
{
	struct gt_plan_entry *calls;
	struct gt_object *loader;
	struct gt_plan *other;
	uint32_t number, i, kept = 0, moved = 0;

	(void)state;
	assert_non_null(gt_object_interpreter(object));
	assert_int_equal(gt_object_open(gt_object_interpreter(object), &loader, NULL), 0);
	assert_int_equal(gt_plan_create(loader, &other, NULL), 0);
	assert_int_equal(gt_plan_syscalls(other, &calls, &number, NULL), 0);
	for (i = 0; i < number; i++) {
		kept += calls[i].reason == GT_REASON_OWN_CALLS;
		moved += calls[i].way != GT_PLAN_NONE;
	}
	assert_int_equal(kept, 1);
	assert_true(moved > number / 2);
	free(calls);
	gt_plan_destroy(other);
	gt_object_close(loader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_move_with_what_is_behind_them_or_before),
		cmocka_unit_test(code_that_others_know_by_its_bytes_stays),
		cmocka_unit_test(nothing_leads_into_the_five_bytes),
		cmocka_unit_test(the_bytes_of_one_in_another_instruction_are_none),
		cmocka_unit_test(no_two_places_share_a_byte),
		cmocka_unit_test(one_place_of_the_loader_is_kept),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
