/* SPDX-License-Identifier: MIT */
/*
 * A signature's memory, and the registers that pass values (System V ABI, AMD64 supplement, "Parameter
 * Passing").
 */
#include "attach/object/signature_private.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t general[GT_GENERAL_COUNT] = { 7, 6, 2, 1, 8, 9 };

/* By their numbers in instructions. */
static const char *const registers[16] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					   "r8",  "r9",	 "r10", "r11", "r12", "r13", "r14", "r15" };

int gt_signature_register(const char *name, uint32_t length)
{
	for (int i = 0; i < 16; i++)
		if (strlen(registers[i]) == length && memcmp(registers[i], name, length) == 0)
			return i;
	if ((length == 4 || length == 5) && memcmp(name, "xmm", 3) == 0) {
		int number = name[3] - '0';

		if (length == 5)
			number = number * 10 + name[4] - '0';
		if (number >= 0 && number < 16)
			return 16 + number;
	}
	return -1;
}

struct gt_signature *gt_signature_new(uint32_t arguments, uint32_t results)
{
	struct gt_signature *signature =
		calloc(1, sizeof(*signature) + (arguments + results) * sizeof(*signature->values));

	if (signature != NULL) {
		signature->argument_count = arguments;
		signature->result_count = results;
	}
	return signature;
}

void gt_signature_free(struct gt_signature *signature)
{
	if (signature == NULL)
		return;
	for (uint32_t i = 0; i < signature->argument_count + signature->result_count; i++) {
		free(signature->values[i].name);
		free(signature->values[i].type);
	}
	free(signature);
}

struct graftrace_probe_argument gt_signature_pass(struct gt_signature_cursor *cursor,
						  uint32_t bytes, bool is_float)
{
	if (is_float && cursor->vector < GT_VECTOR_COUNT)
		return gt_place_in_vector((uint8_t)cursor->vector++, bytes);
	if (!is_float && cursor->general < GT_GENERAL_COUNT)
		return gt_place_in_register(general[cursor->general++], bytes);
	cursor->stack += 8;
	return gt_place_on_stack(cursor->stack, bytes);
}
