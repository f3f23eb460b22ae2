/* SPDX-License-Identifier: MIT */
/*
 * The decoder by table says of every instruction what Zydis says, or that it does not know it: at
 * every byte of this program's and the C library's code, which is data read out of step, too, and
 * of made-up bytes.
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <link.h>

#include "attach/plan/instruction_private.h"
#include "attach/object/object.h"

static uint64_t common, all;

static void compare_stack(const uint8_t *code, size_t room)
{
	struct gt_stack_effect fast, slow;

	if (!gt_instruction_stack_common(code, room, &fast))
		return;
	gt_instruction_stack_any(code, room, &slow);
	if (fast.unknown != slow.unknown || fast.from_frame != slow.from_frame ||
	    fast.sets_frame != slow.sets_frame || fast.loads_stack != slow.loads_stack ||
	    fast.loaded_from != slow.loaded_from || fast.saved_to != slow.saved_to ||
	    fast.delta != slow.delta)
		fail_msg("%02x %02x %02x %02x %02x: the stack: %d %d %d %d %u %u %d", code[0],
			 code[1], code[2], code[3], code[4], slow.unknown, slow.from_frame,
			 slow.sets_frame, slow.loads_stack, slow.loaded_from, slow.saved_to,
			 slow.delta);
}

static void compare(const uint8_t *code, size_t room, uint64_t address)
{
	struct gt_instruction fast, slow;
	bool known;

	memset(&slow, 0, sizeof(slow));
	all++;
	if (!gt_instruction_decode_common(code, room, address, &fast))
		return;
	common++;
	known = gt_instruction_decode_any(code, room, address, &slow);
	if (known && fast.bytes == slow.bytes && fast.kind == slow.kind &&
	    fast.target_offset == slow.target_offset && fast.target_bytes == slow.target_bytes &&
	    fast.target == slow.target && fast.rip_offset == slow.rip_offset &&
	    fast.rip_target == slow.rip_target && fast.immediate_offset == slow.immediate_offset &&
	    fast.immediate_bytes == slow.immediate_bytes && fast.is_lea == slow.is_lea &&
	    fast.stack == slow.stack && fast.memory == slow.memory && fast.base == slow.base &&
	    fast.reg == slow.reg && fast.indexed == slow.indexed &&
	    fast.displacement == slow.displacement) {
		if (fast.stack)
			compare_stack(code, room);
		return;
	}
	fail_msg(
		"%02x %02x %02x %02x %02x %02x %02x %02x: known %d, bytes %u %u, kind %u %u, stack "
		"%d %d, memory %d %d, base %u %u, reg %u %u, indexed %d %d, immediate %u %u, "
		"displacement %d %d",
		code[0], code[1], code[2], code[3], code[4], code[5], code[6], code[7], known,
		fast.bytes, slow.bytes, fast.kind, slow.kind, fast.stack, slow.stack, fast.memory,
		slow.memory, fast.base, slow.base, fast.reg, slow.reg, fast.indexed, slow.indexed,
		fast.immediate_bytes, slow.immediate_bytes, fast.displacement, slow.displacement);
}

static void compare_file(const char *path)
{
	struct gt_object *object;
	uint32_t i;

	assert_int_equal(gt_object_open(path, &object, NULL), 0);
	for (i = 0; i < gt_object_segment_count(object); i++) {
		const struct gt_object_segment *segment = gt_object_segment(object, i);
		const uint8_t *code;
		uint64_t at;

		if (!segment->execute)
			continue;
		code = gt_object_bytes(object, segment->address, segment->file_bytes);
		assert_non_null(code);
		for (at = 0; at < segment->file_bytes; at++)
			compare(code + at, segment->file_bytes - at, segment->address + at);
	}
	gt_object_close(object);
}

static int each_loaded(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	if (strstr(info->dlpi_name, "/libc.so"))
		compare_file(info->dlpi_name);
	return 0;
}

static void the_table_agrees_with_zydis_on_real_code_and_on_data(void **state)
{
	(void)state;
	compare_file("/proc/self/exe");
	dl_iterate_phdr(each_loaded, NULL);
	/* Out of step, most bytes are still something common. */
	assert_true(common > all / 2);
}

static void the_table_agrees_with_zydis_on_made_up_bytes(void **state)
{
	uint64_t random = 88172645463325252ull;
	uint8_t code[24];
	uint32_t i, k;

	(void)state;
	for (i = 0; i < 3000000; i++) {
		for (k = 0; k < sizeof(code); k++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			code[k] = (uint8_t)random;
		}
		/* Prefixes and escapes more often than chance has them. */
		if (i & 1)
			code[i >> 1 & 1] =
				"\x66\xf3\xf2\x2e\x48\x41\x0f\x0f\x65\x64\xf0\xf0\x66\xf3\x0f\x0f"
					[i >> 2 & 15];
		if (i & 32)
			code[1 + (i >> 10 & 1)] = "\x66\xf3\xf2\x2e\x48\x41\x0f\x0f"[i >> 6 & 7];
		compare(code, sizeof(code), 0x555555554000ull + i);
	}
}

static void nothing_is_read_beyond_the_room(void **state)
{
	static const uint8_t ret[] = { 0xc3 };
	struct gt_instruction instruction;

	(void)state;
	assert_false(gt_instruction_decode_common(ret, 1, 0, &instruction));
	assert_true(gt_instruction_decode(ret, 1, 0, &instruction));
	assert_int_equal(instruction.kind, GT_INSTRUCTION_RET);
	assert_false(gt_instruction_decode((const uint8_t *)"\xe8\0\0", 3, 0, &instruction));
}

static void the_stack_pointer_comes_from_the_frame_by_mov_and_lea_alone(void **state)
{
	static const struct {
		uint8_t code[5];
		bool from_frame, unknown, loads_stack;
	} cases[] = {
		{ { 0x48, 0x89, 0xec }, true, false, false },		  /* mov %rbp, %rsp */
		{ { 0x48, 0x8d, 0x65, 0xf0 }, true, false, false },	  /* lea -16(%rbp), %rsp */
		{ { 0x48, 0x01, 0xec }, false, true, false },		  /* add %rbp, %rsp */
		{ { 0x48, 0x21, 0xec }, false, true, false },		  /* and %rbp, %rsp */
		{ { 0x48, 0x89, 0xc4 }, false, true, true },		  /* mov %rax, %rsp */
		{ { 0x48, 0x8b, 0x60, 0x10 }, false, true, true },	  /* mov 16(%rax), %rsp */
		{ { 0x48, 0x8b, 0x65, 0x10 }, false, true, false },	  /* mov 16(%rbp), %rsp */
		{ { 0x48, 0x8b, 0x64, 0x24, 0x10 }, false, true, false }, /* mov 16(%rsp), %rsp */
		{ { 0x48, 0x87, 0xec }, false, true, true },		  /* xchg %rbp, %rsp */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct gt_stack_effect effect;

		gt_instruction_stack_any(cases[i].code, sizeof(cases[i].code), &effect);
		assert_int_equal(effect.from_frame, cases[i].from_frame);
		assert_int_equal(effect.unknown, cases[i].unknown);
		assert_int_equal(effect.loads_stack, cases[i].loads_stack);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_agrees_with_zydis_on_real_code_and_on_data),
		cmocka_unit_test(the_table_agrees_with_zydis_on_made_up_bytes),
		cmocka_unit_test(nothing_is_read_beyond_the_room),
		cmocka_unit_test(the_stack_pointer_comes_from_the_frame_by_mov_and_lea_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
