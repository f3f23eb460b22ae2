/* SPDX-License-Identifier: MIT */
/*
 * Emits a function's instructions for another place than the one they were made for (arch/x86_64/code/move.h), and the
 * small jumps that a patch consists of.
 */
#include "attach/plan/plan_private.h"
#include "attach/plan/instruction.h"
#include "arch/x86_64/code/move.h"
#include <graftrace/agent.h>

#include <string.h>

/* Instructions that are moved together. */
struct piece {
	const uint8_t *original;
	uint64_t code;	/* where they stand, at run time */
	uint64_t start; /* of the function: a jump there is a loop */
	uint32_t bytes;
	uint32_t neutral; /* offset + 1 of a call that is left out; 0: none */
	uint32_t syscall; /* … of a system call between stubs */
	int16_t *offset;  /* [bytes + 1] */
};

/* Where a branch goes: into the piece, if it led there. */
static uint64_t new_target(const struct gt_code *output, const struct piece *piece, uint64_t target)
{
	const uint64_t at = target - piece->code;

	if (target == piece->start && piece->start)
		return output->address + (uint64_t)piece->offset[0];
	if (at >= piece->bytes || piece->offset[at] < 0)
		return target;
	return output->address + (uint64_t)piece->offset[at];
}

/*
 * A system call (doc/design/syscalls.md). A: the stub behind it follows. B: the same for calls that return
 * twice, where a child may have its creator's stack, or none yet: only who is given a number goes to the
 * stub. No flag changes, and no register. Returns where the instruction behind it stands: at A's end, so
 * that two bytes before there is always a call that can be made again.
 */
static int16_t emit_syscall(struct gt_code *output, const struct piece *piece, uint32_t at)
{
	int16_t behind;

	if (at)
		gt_code_emit_jump(output, output->address - GRAFTRACE_CALL_BYTES);
	piece->offset[at] = (int16_t)output->used;
	gt_code_emit(output, "\x0f\x05", 2);
	behind = (int16_t)output->used;
	gt_code_emit_jump(output, output->address - GRAFTRACE_CALL_BYTES + GRAFTRACE_CALL_LEAVES);
	/* syscall; xchg %rax,%rcx; jrcxz 1f; xchg %rax,%rcx; jmp; 1: xchg %rax,%rcx */
	gt_code_emit(output, "\x0f\x05\x48\x91\xe3\x07\x48\x91", 8);
	gt_code_emit_jump(output, output->address - GRAFTRACE_CALL_BYTES + GRAFTRACE_CALL_LEAVES);
	gt_code_emit(output, "\x48\x91", 2);
	return behind;
}

/* Twice: the first time tells where each instruction will stand, for jumps within the piece. */
static void emit_piece(struct gt_code *output, const struct piece *piece)
{
	struct gt_instruction instruction;
	uint32_t at = 0;
	int16_t behind = -1; /* a call */
	bool ends = false;

	/* What follows an instruction that does not go on is padding, or dead. */
	while (at < piece->bytes && !ends) {
		const uint8_t *from = piece->original + at;
		uint64_t target;

		if (!gt_instruction_decode(from, piece->bytes - at, piece->code + at,
					   &instruction)) {
			output->error = output->error ? output->error : GT_EINVAL;
			return;
		}
		piece->offset[at] = behind >= 0 ? behind : (int16_t)output->used;
		behind = -1;
		if (piece->syscall == at + 1) {
			behind = emit_syscall(output, piece, at);
			at += instruction.bytes;
			continue;
		}
		target = new_target(output, piece, instruction.target);
		ends = gt_instruction_ends(&instruction);
		if (piece->neutral == at + 1) {
			at += instruction.bytes;
			continue;
		}
		gt_code_move(output, from, &instruction, piece->code + at + instruction.bytes,
			     target);
		at += instruction.bytes;
	}
	piece->offset[piece->bytes] = behind >= 0 ? behind : (int16_t)output->used;
	if (!ends)
		gt_code_emit_jump(output, piece->code + piece->bytes);
}

static void emit_all(const struct gt_plan *plan, const struct gt_plan_entry *entry, uint64_t bias,
		     struct gt_code *output, struct gt_plan_map *map)
{
	struct piece piece = {
		.original = entry->original,
		.code = entry->patch_address + bias,
		.start = entry->address + bias,
		.bytes = entry->covered_bytes,
		.neutral = entry->neutral,
		.syscall = entry->syscall,
		.offset = map->offset,
	};

	emit_piece(output, &piece);
	map->block_count = 0;
	for (uint32_t i = 0; plan != NULL && i < entry->extra_count; i++) {
		const struct gt_plan_extra *extra = gt_plan_extra(plan, entry, i);
		struct gt_plan_block_map *block = &map->block[map->block_count];

		if (extra->kind != GT_EXTRA_BLOCK || map->block_count == GT_PLAN_BLOCKS_MAX)
			continue;
		/* What it stands for is told for each 16 bytes (struct graftrace_places). */
		while (output->used % 16 && !output->error)
			gt_code_emit(output, "\xcc", 1);
		block->address = extra->address;
		block->covered = extra->covered;
		piece = (struct piece){ .original = extra->original,
					.code = extra->address + bias,
					.bytes = extra->covered,
					.offset = block->offset };
		emit_piece(output, &piece);
		map->block_count++;
	}
}

int gt_plan_move(const struct gt_plan *plan, const struct gt_plan_entry *entry, uint64_t bias,
		 uint64_t moved, uint8_t *out, size_t size, struct gt_plan_map *map)
{
	struct gt_code output = { .bytes = out, .room = size, .address = moved };
	struct gt_plan_map own;

	if (entry->way != GT_PLAN_MOVED && entry->way != GT_PLAN_PADDING &&
	    entry->way != GT_PLAN_SHORT && entry->way != GT_PLAN_BREAKPOINT)
		return GT_EINVAL;
	map = map != NULL ? map : &own;
	memset(map->offset, 0xff, sizeof(map->offset));
	for (uint32_t i = 0; i < GT_PLAN_BLOCKS_MAX; i++)
		memset(map->block[i].offset, 0xff, sizeof(map->block[i].offset));
	emit_all(plan, entry, bias, &output, map);
	if (output.error == GT_EINVAL)
		return output.error;
	output.used = 0;
	output.error = 0;
	emit_all(plan, entry, bias, &output, map);
	map->bytes = (uint16_t)output.used;
	return output.error ? output.error : (int)output.used;
}

int gt_plan_extra_bytes(const struct gt_plan_extra *extra, uint64_t bias, uint64_t stub,
			uint64_t moved, uint8_t *out)
{
	struct gt_code output = { .bytes = out, .room = 8, .address = extra->address + bias };

	switch (extra->kind) {
	case GT_EXTRA_BYTES:
		memcpy(out, extra->replacement, extra->bytes);
		return 0;
	case GT_EXTRA_BRANCH:
		gt_code_emit(&output, extra->replacement, extra->bytes - 4u);
		gt_code_emit_displacement(&output, moved + extra->target, 0);
		return output.error;
	case GT_EXTRA_JUMP:
	case GT_EXTRA_BLOCK:
		gt_code_emit_jump(&output, moved + extra->target);
		return output.error;
	case GT_EXTRA_STUB:
		gt_code_emit_jump(&output, stub);
		return output.error;
	default:
		return GT_EINVAL;
	}
}

int gt_plan_jump(const struct gt_plan *plan, const struct gt_plan_entry *entry, uint64_t bias,
		 uint64_t stub, uint8_t *out)
{
	struct gt_code output = { .bytes = out, .room = 5, .address = entry->patch_address + bias };

	if (entry->way == GT_PLAN_NONE)
		return GT_EINVAL;
	if (entry->way == GT_PLAN_BREAKPOINT) {
		out[0] = 0xcc;
		return 0;
	}
	if (entry->way != GT_PLAN_SHORT) {
		gt_code_emit_jump(&output, stub);
		return output.error;
	}
	for (uint32_t i = 0; i < entry->extra_count; i++) {
		const struct gt_plan_extra *extra = gt_plan_extra(plan, entry, i);

		if (extra != NULL && extra->kind == GT_EXTRA_STUB) {
			out[0] = 0xeb;
			out[1] = (uint8_t)(extra->address - (entry->patch_address + 2));
			return 0;
		}
	}
	return GT_EINVAL;
}
