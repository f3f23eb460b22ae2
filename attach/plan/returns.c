/* SPDX-License-Identifier: MIT */
/*
 * The opcode c2 is searched for, behind it a plausible number of bytes; only where there is one the
 * function is decoded. Then the set grows by the functions that jump into it, until it stays.
 */
#include "attach/plan/returns.h"

#include <stdlib.h>
#include <string.h>

#define RET_TAKES_OPCODE 0xc2

void gt_returns_free(struct gt_returns *returns)
{
	free(returns->takes);
	memset(returns, 0, sizeof(*returns));
}

/* The function's code; *room: its bytes that are there. NULL: none. */
static const uint8_t *code_of(struct gt_scan *scan, const struct gt_object_function *function,
			      uint64_t *room)
{
	const uint8_t *code = gt_scan_code(scan, function->address, room);

	if (*room > function->bytes)
		*room = function->bytes;
	return code;
}

/* Stack slots are words, and 0 would be a plain return. */
static bool is_plausible(const uint8_t *opcode)
{
	return opcode[1] % 8 == 0 && opcode[2] < 0x80 && (opcode[1] || opcode[2]);
}

static bool has_candidate(const uint8_t *code, uint64_t bytes)
{
	const uint8_t *at = code, *end = code + bytes;

	while (end - at >= 3) {
		at = memchr(at, RET_TAKES_OPCODE, (size_t)(end - at) - 2);
		if (at == NULL)
			return false;
		if (is_plausible(at))
			return true;
		at++;
	}
	return false;
}

/* Calls `each` for every instruction of the function until it returns true. */
static bool any_instruction(struct gt_scan *scan, const struct gt_object_function *function,
			    bool (*each)(const void *data,
					 const struct gt_instruction *instruction),
			    const void *data)
{
	uint64_t room, at = 0;
	const uint8_t *code = code_of(scan, function, &room);
	struct gt_instruction instruction;

	while (code != NULL && at < room) {
		if (!gt_instruction_decode(code + at, room - at, function->address + at,
					   &instruction)) {
			at++;
			continue;
		}
		if (each(data, &instruction))
			return true;
		at += instruction.bytes;
	}
	return false;
}

static bool takes_itself(const void *data, const struct gt_instruction *instruction)
{
	(void)data;
	return instruction->kind == GT_INSTRUCTION_RET && instruction->takes;
}

struct jumper {
	const struct gt_object *object;
	const struct gt_object_function *function;
	const uint8_t *takes;
};

static bool jumps_to_taker(const void *data, const struct gt_instruction *instruction)
{
	const struct jumper *jumper = data;
	uint32_t index;

	return (instruction->kind == GT_INSTRUCTION_JMP ||
		instruction->kind == GT_INSTRUCTION_JCC) &&
	       instruction->target - jumper->function->address >= jumper->function->bytes &&
	       gt_object_function_at(jumper->object, instruction->target, &index) == 0 &&
	       jumper->takes[index];
}

static void find(struct gt_returns *returns, struct gt_scan *scan)
{
	const struct gt_object *object = gt_scan_object(scan);
	const uint32_t count = gt_object_function_count(object);
	bool grown = false;

	returns->ready = true;
	for (uint32_t i = 0; i < count; i++) {
		const struct gt_object_function *function = gt_object_function(object, i);
		uint64_t room;
		const uint8_t *code = code_of(scan, function, &room);

		/* V8's, which only its own machine code jumps to. */
		if (strncmp(function->name, "Builtins_", 9) == 0)
			continue;
		if (code == NULL || !has_candidate(code, room) ||
		    !any_instruction(scan, function, takes_itself, NULL))
			continue;
		if (returns->takes == NULL)
			returns->takes = calloc(1, count);
		if (returns->takes == NULL)
			return;
		returns->takes[i] = 1;
		grown = true;
	}
	while (grown) {
		grown = false;
		for (uint32_t i = 0; i < count; i++) {
			const struct jumper jumper = { object, gt_object_function(object, i),
						       returns->takes };

			if (returns->takes[i] ||
			    !any_instruction(scan, jumper.function, jumps_to_taker, &jumper))
				continue;
			returns->takes[i] = 1;
			grown = true;
		}
	}
}

bool gt_returns_take(struct gt_returns *returns, struct gt_scan *scan,
		     const struct gt_object_function *function)
{
	uint32_t index;

	if (!returns->ready)
		find(returns, scan);
	return returns->takes != NULL &&
	       gt_object_function_at(gt_scan_object(scan), function->address, &index) == 0 &&
	       returns->takes[index];
}
