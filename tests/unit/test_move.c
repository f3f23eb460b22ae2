/* SPDX-License-Identifier: MIT */
/*
 * Moved instructions do at their new place what they did at the old one. The functions below begin
 * with one instruction of each kind that depends on its place; the program plans itself, moves them
 * to another page, calls the moved code and the function, and compares.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "attach/plan/plan.h"

typedef uint64_t function(uint64_t a, uint64_t b);

/* name: a function of two arguments; code: its instructions. */
#define FUNCTION(name, code)                                                                    \
	extern function name;                                                                   \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" \
		".cfi_startproc\n" code "\n.cfi_endproc\n.size " #name ", . - " #name "\n"      \
		".p2align 4\n")

uint64_t data_word = 0x1122334455667788;
uint64_t (*data_pointer)(uint64_t, uint64_t);

/* What the calls below lead to: tell who called, or what the flags are. */
FUNCTION(tell_caller, "mov (%rsp), %rax; ret");
FUNCTION(tell_carry, "mov $0, %eax; adc $0, %eax; add %rdi, %rax; ret");
FUNCTION(add_them, "lea (%rdi,%rsi), %rax; ret");

FUNCTION(lea_rip, "lea data_word(%rip), %rax; mov (%rax), %rax; ret");
FUNCTION(load_rip, "mov data_word(%rip), %rax; add %rdi, %rax; ret");
FUNCTION(compare_rip, "cmpl $0x55667788, data_word(%rip); sete %al; movzbl %al, %eax; ret");
FUNCTION(compare_rip_word, "cmpw $0x7788, data_word(%rip); sete %al; movzbl %al, %eax; ret");
FUNCTION(store_rip, "movq $77, data_word(%rip); mov data_word(%rip), %rax; ret");
FUNCTION(vector_rip, "movaps vector_word(%rip), %xmm0; movq %xmm0, %rax; ret\n"
		     ".data; .p2align 4; vector_word: .quad 99, 98; .text");
FUNCTION(jump_short, "jmp 1f; nop; nop; nop; nop; nop; 1: mov %rdi, %rax; ret");
FUNCTION(jump_long, "jmp add_them; nop; nop");
FUNCTION(jump_rip, "mov %rsi, %rax; jmp *add_them_pointer(%rip)\n"
		   ".data; add_them_pointer: .quad add_them; .text");
FUNCTION(branch_short, "test %rdi, %rdi; je 1f; mov %rsi, %rax; ret; 1: mov $5, %eax; ret");
FUNCTION(branch_first, "jrcxz 1f; nop; nop; nop; nop; mov $1, %eax; ret; 1: mov $2, %eax; ret");
FUNCTION(branch_long, "test %rdi, %rdi; {disp32} jg add_them; mov $6, %eax; ret");
FUNCTION(branch_carry, "cmp %rsi, %rdi; jb 1f; mov $1, %eax; ret; 1: mov $2, %eax; ret");
FUNCTION(loop_short, "mov %edi, %ecx; loop 1f; mov $3, %eax; ret; 1: mov %rcx, %rax; ret");
FUNCTION(loop_equal,
	 "mov %edi, %ecx; cmp %edi, %esi; loope 1f; mov $3, %eax; ret; 1: mov %rcx, %rax; ret");
FUNCTION(loop_unequal,
	 "mov %edi, %ecx; cmp %edi, %esi; loopne 1f; mov $3, %eax; ret; 1: mov %rcx, %rax; ret");
FUNCTION(jump_ecx, "mov %edi, %ecx; jecxz 1f; mov $3, %eax; ret; 1: mov $4, %eax; ret");
FUNCTION(jump_rcx, "mov %edi, %ecx; jrcxz 1f; mov $3, %eax; ret; 1: mov $4, %eax; ret");
FUNCTION(call_direct, "call tell_caller; nop; ret");
FUNCTION(call_padded, "push %rdi; call tell_caller; pop %rdi; ret");
FUNCTION(call_register, "lea tell_caller(%rip), %rax; call *%rax; ret");
FUNCTION(call_register_late, "push %rbx; mov %rdi, %rbx; call *%rsi; pop %rbx; ret");
FUNCTION(call_r12, "push %r12; mov %rsi, %r12; call *%r12; pop %r12; ret");
FUNCTION(call_memory, "call *data_pointer(%rip); ret");
FUNCTION(call_stack, "push %rsi; nop; nop; call *(%rsp); pop %rcx; ret");
FUNCTION(call_stack_8, "push %rsi; push %rdi; nop; call *8(%rsp); pop %rcx; pop %rcx; ret");
FUNCTION(call_stack_index, "push %rsi; xor %ecx, %ecx; nop; call *(%rsp,%rcx,8); pop %rcx; ret");
FUNCTION(call_carry, "stc; nop; call tell_carry; ret");
FUNCTION(call_carry_register, "stc; push %rbx; nop; nop; call *%rsi; pop %rbx; ret");
FUNCTION(own_loop, "dec %rdi; jg own_loop; mov %rdi, %rax; add %rsi, %rax; ret");
FUNCTION(own_loop_late, "lea 1(%rsi), %rsi; dec %rdi; nop; nop; {disp32} jg own_loop_late;"
			"mov %rsi, %rax; ret");
FUNCTION(marked, "endbr64; lea data_word(%rip), %rax; mov (%rax), %rax; ret");
FUNCTION(tiny, "ret");
FUNCTION(tiny_value, "mov %edi, %eax; ret");
FUNCTION(tiny_marked, "endbr64; ret");
FUNCTION(red_zone, "mov %rdi, -8(%rsp); mov -8(%rsp), %rax; ret");
FUNCTION(transaction, "xbegin 1f; xend; 1: ret");
FUNCTION(call_early, "push %rbx; call *%rsi; pop %rbx; ret");
FUNCTION(jumped_into, "mov %edi, %eax; 1: inc %eax; cmp $100, %eax; jl 1b; ret");

static struct gt_object *object;
static struct gt_plan *plan;
static uint64_t bias;
static uint8_t *page;

static int setup(void **state)
{
	struct gt_message message = { "" };
	uint64_t address;

	(void)state;
	if (gt_object_open("/proc/self/exe", &object, &message) ||
	    gt_plan_create(object, &plan, &message) ||
	    gt_object_symbol(object, "tell_caller", &address))
		return -1;
	bias = (uint64_t)tell_caller - address;
	for (address = (uint64_t)&data_word & -0x100000ull;; address += 0x100000) {
		page = mmap((void *)address, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (page != MAP_FAILED)
			return 0;
	}
}

static int teardown(void **state)
{
	(void)state;
	munmap(page, 4096);
	gt_plan_destroy(plan);
	gt_object_close(object);
	return 0;
}

static struct gt_plan_entry plan_of(function *which)
{
	struct gt_message message = { "" };
	struct gt_plan_entry entry;
	uint32_t index;

	assert_int_equal(gt_object_function_at(object, (uint64_t)which - bias, &index), 0);
	assert_int_equal(gt_plan_function(plan, index, &entry, &message), 0);
	assert_int_equal(entry.address + bias, (uint64_t)which);
	return entry;
}

/* Moves the function's first instructions to the page, and returns them as a function. */
static function *move(function *which, struct gt_plan_entry *entry, struct gt_plan_map *map)
{
	int bytes;

	*entry = plan_of(which);
	assert_int_not_equal(entry->way, GT_PLAN_NONE);
	assert_int_equal(entry->body, 0);
	bytes = gt_plan_move(plan, entry, bias, (uint64_t)page, page, 4096, map);
	assert_in_range(bytes, 1, entry->moved_bytes_max);
	return (function *)page;
}

static const uint64_t values[] = { 0, 1, 2, 3, 77, 0x80000000, 0xffffffff, ~0ull };
#define VALUES (sizeof(values) / sizeof(*values))

static void same(function *which)
{
	struct gt_plan_entry entry;
	struct gt_plan_map map;
	function *moved = move(which, &entry, &map);
	size_t i, k;

	for (i = 0; i < VALUES; i++)
		for (k = 0; k < VALUES; k++)
			assert_int_equal(moved(values[i], values[k]), which(values[i], values[k]));
}

static void operands_relative_to_rip_keep_their_target(void **state)
{
	(void)state;
	same(lea_rip);
	same(load_rip);
	same(compare_rip);
	same(compare_rip_word);
	same(vector_rip);
	same(marked);
}

static void a_store_relative_to_rip_goes_to_the_same_place(void **state)
{
	struct gt_plan_entry entry;
	function *moved = move(store_rip, &entry, NULL);
	const uint64_t before = data_word;

	(void)state;
	assert_int_equal(moved(0, 0), 77);
	assert_int_equal(data_word, 77);
	data_word = before;
}

static void jumps_keep_their_target(void **state)
{
	(void)state;
	same(jump_short);
	same(jump_long);
	same(jump_rip);
	same(red_zone);
}

static void branches_keep_their_target_and_condition(void **state)
{
	(void)state;
	same(branch_short);
	same(branch_first);
	same(branch_long);
	same(branch_carry);
}

static void loops_that_only_reach_near_keep_their_target(void **state)
{
	static const uint64_t counts[] = { 1, 2, 3, 77 };
	function *const loops[] = { loop_short, loop_equal, loop_unequal };
	struct gt_plan_entry entry;
	size_t i, k, other;

	(void)state;
	same(jump_ecx);
	same(jump_rcx);
	for (i = 0; i < 3; i++) {
		function *moved = move(loops[i], &entry, NULL);

		for (k = 0; k < 4; k++)
			for (other = 0; other < 4; other++)
				assert_int_equal(moved(counts[k], counts[other]),
						 loops[i](counts[k], counts[other]));
	}
}

static void a_moved_call_pushes_the_original_return_address(void **state)
{
	const uint64_t callers[] = { (uint64_t)tell_caller };
	function *const indirect[] = { call_register_late, call_r12, call_stack, call_stack_8,
				       call_stack_index };
	struct gt_plan_entry entry;
	size_t i;

	(void)state;
	same(call_direct);
	same(call_padded);
	same(call_register);
	assert_int_equal(call_direct(0, 0), (uint64_t)call_direct + 5);
	for (i = 0; i < sizeof(indirect) / sizeof(*indirect); i++) {
		function *moved = move(indirect[i], &entry, NULL);
		const uint64_t told = moved(1, callers[0]);

		assert_int_equal(told, indirect[i](1, callers[0]));
		assert_in_range(told, (uint64_t)indirect[i], (uint64_t)indirect[i] + 32);
	}
	data_pointer = tell_caller;
	same(call_memory);
}

static void a_moved_call_leaves_the_flags_alone(void **state)
{
	struct gt_plan_entry entry;
	function *moved = move(call_carry, &entry, NULL);

	(void)state;
	assert_int_equal(moved(10, 0), 11);
	moved = move(call_carry_register, &entry, NULL);
	assert_int_equal(moved(20, (uint64_t)tell_carry), 21);
}

static void a_jump_to_its_own_start_stays_in_the_moved_code(void **state)
{
	struct gt_plan_entry entry;
	struct gt_plan_map map;
	const struct gt_plan_extra *extra;
	uint8_t bytes[8];
	int32_t displacement;
	function *moved = move(own_loop, &entry, &map);

	(void)state;
	assert_int_equal(moved(50, 7), 7);
	assert_int_equal(entry.extra_count, 0);
	/* No jump of the moved code leads to the entry, where the patch stands. */
	assert_int_equal(page[map.offset[3]], 0x0f);
	memcpy(&displacement, page + map.offset[3] + 2, 4);
	assert_ptr_equal(page + map.offset[3] + 6 + displacement, page);

	moved = move(own_loop_late, &entry, NULL);
	assert_int_equal(moved(9, 1), 10);
	assert_int_equal(entry.extra_count, 1);
	extra = gt_plan_extra(plan, &entry, 0);
	assert_int_equal(extra->kind, GT_EXTRA_BRANCH);
	assert_int_equal(gt_plan_extra_bytes(extra, bias, 0, (uint64_t)page, bytes), 0);
	memcpy(&displacement, bytes + extra->bytes - 4, 4);
	assert_int_equal(extra->address + bias + extra->bytes + (uint64_t)(int64_t)displacement,
			 (uint64_t)page);
	assert_memory_equal(bytes, extra->original, extra->bytes - 4u);
}

static void short_functions_take_the_padding_behind_them(void **state)
{
	struct gt_plan_entry entry = plan_of(tiny);

	(void)state;
	assert_int_equal(entry.way, GT_PLAN_PADDING);
	assert_int_equal(entry.covered_bytes, 5);
	assert_int_equal(entry.moved_bytes_max, 1); /* ret, and no jump back */
	same(tiny_value);
	entry = plan_of(tiny_marked);
	assert_int_equal(entry.way, GT_PLAN_PADDING);
	assert_int_equal(entry.patch_address, entry.address + 4);
}

static void a_patch_stands_behind_endbr64(void **state)
{
	const struct gt_plan_entry entry = plan_of(marked);

	(void)state;
	assert_int_equal(entry.patch_address, entry.address + 4);
	assert_int_equal(entry.way, GT_PLAN_MOVED);
}

static void a_transaction_keeps_its_abort_target(void **state)
{
	struct gt_plan_entry entry;
	int32_t displacement;

	(void)state;
	move(transaction, &entry, NULL);
	assert_memory_equal(page, "\xc7\xf8", 2);
	memcpy(&displacement, page + 2, 4);
	assert_ptr_equal(page + 6 + displacement, (uint8_t *)transaction + 9);
}

static void a_call_that_would_return_into_the_jump_takes_a_short_one(void **state)
{
	struct gt_plan_entry entry;
	function *moved = move(call_early, &entry, NULL);
	const struct gt_plan_extra *extra = gt_plan_extra(plan, &entry, 0);
	uint8_t jump[8];

	(void)state;
	assert_int_equal(entry.way, GT_PLAN_SHORT);
	assert_int_equal(entry.patch_bytes, 2);
	assert_int_equal(moved(1, (uint64_t)tell_caller), (uint64_t)call_early + 3);
	assert_int_equal(extra->kind, GT_EXTRA_STUB);
	assert_int_equal(gt_plan_jump(plan, &entry, bias, (uint64_t)page, jump), 0);
	assert_int_equal(jump[0], 0xeb);
	assert_int_equal(entry.patch_address + 2 + (uint64_t)(int64_t)(int8_t)jump[1],
			 extra->address);
}

static void nothing_stands_on_a_byte_that_a_jump_leads_to(void **state)
{
	const struct gt_plan_entry entry = plan_of(jumped_into);

	(void)state;
	/* The loop begins in the third byte: five do not fit, two and padding nearby do. */
	assert_int_equal(entry.way, GT_PLAN_SHORT);
	assert_int_equal(entry.covered_bytes, 2);
	same(jumped_into);
}

static void the_map_leads_from_old_to_new_instructions(void **state)
{
	struct gt_plan_entry entry;
	struct gt_plan_map map;

	(void)state;
	move(call_stack_8, &entry, &map); /* push, push, nop, call */
	assert_int_equal(map.offset[0], 0);
	assert_int_equal(map.offset[1], 1);
	assert_int_equal(map.offset[2], 2);
	assert_int_equal(map.offset[3], 3);
	assert_int_equal(map.offset[4], -1);
	assert_int_not_equal(map.offset[entry.covered_bytes], -1);
	assert_true(map.offset[entry.covered_bytes] <= map.bytes);
}

static void what_is_too_far_away_is_refused(void **state)
{
	struct gt_plan_entry entry = plan_of(lea_rip);
	uint8_t out[GT_PLAN_MOVED_MAX];

	(void)state;
	assert_int_equal(
		gt_plan_move(plan, &entry, 0, entry.address + 0x80001000, out, sizeof(out), NULL),
		GT_ENOTSUP);
	assert_int_equal(gt_plan_jump(plan, &entry, 0, 1ull << 40, out), GT_ENOTSUP);
}

static void too_little_room_is_refused(void **state)
{
	struct gt_plan_entry entry = plan_of(call_direct);
	uint8_t out[GT_PLAN_MOVED_MAX];
	int bytes, room;

	(void)state;
	bytes = gt_plan_move(plan, &entry, 0x7f0000000000, 0x7f0000001000, out, sizeof(out), NULL);
	for (room = 0; room < bytes; room++)
		assert_int_equal(gt_plan_move(plan, &entry, 0x7f0000000000, 0x7f0000001000, out,
					      (size_t)room, NULL),
				 GT_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operands_relative_to_rip_keep_their_target),
		cmocka_unit_test(a_store_relative_to_rip_goes_to_the_same_place),
		cmocka_unit_test(jumps_keep_their_target),
		cmocka_unit_test(branches_keep_their_target_and_condition),
		cmocka_unit_test(loops_that_only_reach_near_keep_their_target),
		cmocka_unit_test(a_moved_call_pushes_the_original_return_address),
		cmocka_unit_test(a_moved_call_leaves_the_flags_alone),
		cmocka_unit_test(a_jump_to_its_own_start_stays_in_the_moved_code),
		cmocka_unit_test(short_functions_take_the_padding_behind_them),
		cmocka_unit_test(a_patch_stands_behind_endbr64),
		cmocka_unit_test(a_transaction_keeps_its_abort_target),
		cmocka_unit_test(a_call_that_would_return_into_the_jump_takes_a_short_one),
		cmocka_unit_test(nothing_stands_on_a_byte_that_a_jump_leads_to),
		cmocka_unit_test(the_map_leads_from_old_to_new_instructions),
		cmocka_unit_test(what_is_too_far_away_is_refused),
		cmocka_unit_test(too_little_room_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
