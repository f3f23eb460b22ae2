/* SPDX-License-Identifier: MIT */
/*
 * Emits instructions for another place than the one they were made for, and the small jumps that a
 * patch consists of. Nothing here may touch a register, a flag or memory below the stack pointer
 * that the instruction itself would not have touched.
 */
#include "attach/plan/plan_private.h"
#include "attach/plan/instruction.h"
#include <graftrace/agent.h>

#include <string.h>

struct output {
	uint8_t *bytes;
	size_t room;
	size_t used;
	uint64_t address; /* of bytes[0] */
	int error;
};

static uint64_t here(const struct output *output)
{
	return output->address + output->used;
}

static void emit(struct output *output, const void *bytes, size_t count)
{
	if (count > output->room - output->used) {
		output->error = output->error ? output->error : GT_EINVAL;
		return;
	}
	memcpy(output->bytes + output->used, bytes, count);
	output->used += count;
}

/* A 32-bit displacement from the byte behind it (and `behind` more bytes) to the target. */
static void emit_displacement(struct output *output, uint64_t target, uint32_t behind)
{
	const int64_t distance = (int64_t)(target - (here(output) + 4 + behind));
	const int32_t value = (int32_t)distance;

	if (distance != value && !output->error)
		output->error = GT_ENOTSUP;
	emit(output, &value, 4);
}

static void emit_jump(struct output *output, uint64_t target)
{
	emit(output, "\xe9", 1);
	emit_displacement(output, target, 0);
}

/*
 * What a call at the old place would have pushed. push has a sign-extended immediate; the upper
 * half is written behind it, also where it is the same, so that the code is as long for every
 * place. Neither touches flags.
 */
static void emit_push(struct output *output, uint64_t address)
{
	const uint32_t low = (uint32_t)address, high = (uint32_t)(address >> 32);

	emit(output, "\x68", 1);
	emit(output, &low, 4);
	emit(output, "\xc7\x44\x24\x04", 4); /* movl $high, 4(%rsp) */
	emit(output, &high, 4);
}

/* The instruction as it is, but for an operand relative to rip. */
static void emit_copy(struct output *output, const uint8_t *code,
		      const struct gt_instruction *instruction)
{
	const uint32_t at = instruction->rip_offset;

	if (!at) {
		emit(output, code, instruction->bytes);
		return;
	}
	emit(output, code, at);
	emit_displacement(output, instruction->rip_target, instruction->bytes - at - 4u);
	emit(output, code + at + 4, instruction->bytes - at - 4u);
}

/* call *operand becomes push $return; jmp *operand. The operand may use rsp, which push moves by 8.
 */
static void emit_indirect_call(struct output *output, const uint8_t *code,
			       const struct gt_instruction *instruction, uint64_t back)
{
	uint8_t jump[16];
	uint32_t at = 0;

	emit_push(output, back);
	memcpy(jump, code, instruction->bytes);
	while (at + 2u < instruction->bytes && jump[at] != 0xff)
		at++;
	if (jump[at] != 0xff || (jump[at + 1] >> 3 & 7) != 2 ||
	    (!instruction->memory && (jump[at + 1] & 7) == 4 &&
	     !(at && jump[at - 1] & 1 && (jump[at - 1] & 0xf0) == 0x40))) {
		output->error = GT_ENOTSUP; /* a far call, or call *%rsp */
		return;
	}
	jump[at + 1] = (uint8_t)((jump[at + 1] & ~0x38) | 0x20); /* /2 call -> /4 jmp */
	if (instruction->memory && instruction->base == 4) {
		const int64_t displacement = (int64_t)instruction->displacement + 8;
		const int32_t value = (int32_t)displacement;

		/* modrm, sib, then always a 32-bit displacement */
		if (value != displacement) {
			output->error = GT_ENOTSUP;
			return;
		}
		jump[at + 1] = (uint8_t)((jump[at + 1] & 0x3f) | 0x80);
		emit(output, jump, at + 3);
		emit(output, &value, 4);
		return;
	}
	emit_copy(output, jump, instruction);
}

/* loop and jrcxz reach 127 bytes only: they jump over a jump. */
static void emit_loop(struct output *output, const uint8_t *code,
		      const struct gt_instruction *instruction, uint64_t target)
{
	emit(output, code, instruction->bytes - 1u);
	emit(output, "\x02\xeb\x05", 3); /* taken: skip the next one. jmp +5 */
	emit_jump(output, target);
}

static void emit_conditional(struct output *output, const uint8_t *code,
			     const struct gt_instruction *instruction, uint64_t target)
{
	/* Both forms have the condition in the last opcode byte's low half. */
	const uint8_t opcode = code[instruction->target_offset - 1];
	const uint8_t bytes[2] = { 0x0f, (uint8_t)(0x80 | (opcode & 0x0f)) };

	emit(output, bytes, 2);
	emit_displacement(output, target, 0);
}

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
static uint64_t new_target(const struct output *output, const struct piece *piece, uint64_t target)
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
static int16_t emit_syscall(struct output *output, const struct piece *piece, uint32_t at)
{
	int16_t behind;

	if (at)
		emit_jump(output, output->address - GRAFTRACE_CALL_BYTES);
	piece->offset[at] = (int16_t)output->used;
	emit(output, "\x0f\x05", 2);
	behind = (int16_t)output->used;
	emit_jump(output, output->address - GRAFTRACE_CALL_BYTES + GRAFTRACE_CALL_LEAVES);
	/* syscall; xchg %rax,%rcx; jrcxz 1f; xchg %rax,%rcx; jmp; 1: xchg %rax,%rcx */
	emit(output, "\x0f\x05\x48\x91\xe3\x07\x48\x91", 8);
	emit_jump(output, output->address - GRAFTRACE_CALL_BYTES + GRAFTRACE_CALL_LEAVES);
	emit(output, "\x48\x91", 2);
	return behind;
}

/* Twice: the first time tells where each instruction will stand, for jumps within the piece. */
static void emit_piece(struct output *output, const struct piece *piece)
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
		switch (instruction.kind) {
		case GT_INSTRUCTION_CALL:
			emit_push(output, piece->code + at + instruction.bytes);
			emit_jump(output, instruction.target);
			break;
		case GT_INSTRUCTION_CALL_INDIRECT:
			emit_indirect_call(output, from, &instruction,
					   piece->code + at + instruction.bytes);
			break;
		case GT_INSTRUCTION_JMP:
			emit_jump(output, target);
			break;
		case GT_INSTRUCTION_JCC:
			emit_conditional(output, from, &instruction, target);
			break;
		case GT_INSTRUCTION_LOOP:
			emit_loop(output, from, &instruction, target);
			break;
		case GT_INSTRUCTION_XBEGIN:
			if (instruction.target_bytes != 4)
				output->error = GT_ENOTSUP;
			emit(output, from, instruction.target_offset);
			emit_displacement(output, target, 0);
			break;
		default:
			emit_copy(output, from, &instruction);
			break;
		}
		at += instruction.bytes;
	}
	piece->offset[piece->bytes] = behind >= 0 ? behind : (int16_t)output->used;
	if (!ends)
		emit_jump(output, piece->code + piece->bytes);
}

static void emit_all(const struct gt_plan *plan, const struct gt_plan_entry *entry, uint64_t bias,
		     struct output *output, struct gt_plan_map *map)
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
			emit(output, "\xcc", 1);
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
	struct output output = { .bytes = out, .room = size, .address = moved };
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
	struct output output = { .bytes = out, .room = 8, .address = extra->address + bias };

	switch (extra->kind) {
	case GT_EXTRA_BYTES:
		memcpy(out, extra->replacement, extra->bytes);
		return 0;
	case GT_EXTRA_BRANCH:
		emit(&output, extra->replacement, extra->bytes - 4u);
		emit_displacement(&output, moved + extra->target, 0);
		return output.error;
	case GT_EXTRA_JUMP:
	case GT_EXTRA_BLOCK:
		emit_jump(&output, moved + extra->target);
		return output.error;
	case GT_EXTRA_STUB:
		emit_jump(&output, stub);
		return output.error;
	default:
		return GT_EINVAL;
	}
}

int gt_plan_jump(const struct gt_plan *plan, const struct gt_plan_entry *entry, uint64_t bias,
		 uint64_t stub, uint8_t *out)
{
	struct output output = { .bytes = out, .room = 5, .address = entry->patch_address + bias };

	if (entry->way == GT_PLAN_NONE)
		return GT_EINVAL;
	if (entry->way == GT_PLAN_BREAKPOINT) {
		out[0] = 0xcc;
		return 0;
	}
	if (entry->way != GT_PLAN_SHORT) {
		emit_jump(&output, stub);
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
