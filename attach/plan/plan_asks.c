/* SPDX-License-Identifier: MIT */
/*
 * Looks at functions that are not planned: which of them ask who called them, which lead to such a one by a
 * jump through a pointer, and which is clone().
 */
#include "attach/plan/plan_private.h"
#include "attach/plan/rules.h"

#include <string.h>

#define CLONE_BYTES 64u /* up to its system call */

bool gt_plan_asks_caller(struct gt_plan *plan, uint32_t index)
{
	const struct gt_object_function *function = gt_object_function(plan->object, index);
	enum gt_plan_reason reason = gt_rule_entry_only(function);

	/* What -finstrument-functions compiled loads its return address for its own calls. */
	if (!reason)
		reason =
			gt_rule_code(plan->scan, function,
				     gt_scan_has(plan->scan, GT_SPECIAL_CYG_ENTER), &plan->scratch);
	return reason == GT_REASON_TWICE || reason == GT_REASON_ASKS_CALLER ||
	       reason == GT_REASON_USES_RETURN_ADDRESS || reason == GT_REASON_TAKES_RETURN_ADDRESS;
}

bool gt_plan_jumps_on(struct gt_plan *plan, uint32_t index)
{
	const struct gt_object_function *function = gt_object_function(plan->object, index);
	uint64_t room;
	const uint8_t *code = gt_scan_code(plan->scan, function->address, &room);
	uint32_t at = 0;

	while (code != NULL && at < function->bytes && at < room) {
		struct gt_instruction instruction;

		if (!gt_instruction_decode(code + at, room - at, function->address + at,
					   &instruction)) {
			at++;
			continue;
		}
		if (instruction.kind == GT_INSTRUCTION_JMP_INDIRECT)
			return true;
		at += instruction.bytes;
	}
	return false;
}

static bool has_bytes(const uint8_t *code, uint64_t room, const uint8_t *bytes, uint32_t count)
{
	return room >= count && memcmp(code, bytes, count) == 0;
}

bool gt_plan_is_clone(struct gt_plan *plan, uint32_t index)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	/* mov $-EINVAL,%rax; test %rdi,%rdi … mov $SYS_clone,%eax; syscall */
	static const uint8_t glibc[] = {
		0x48, 0xc7, 0xc0, 0xea, 0xff, 0xff, 0xff, 0x48, 0x85, 0xff
	};
	static const uint8_t calls[] = { 0xb8, 56, 0, 0, 0, 0x0f, 0x05 };
	/* xor %eax,%eax; mov $SYS_clone,%al; mov %rdi,%r11; mov %rdx,%rdi */
	static const uint8_t musl[] = { 0x31, 0xc0, 0xb0, 56, 0x49, 0x89, 0xfb, 0x48, 0x89, 0xd7 };
	uint64_t room;
	const uint8_t *code =
		gt_scan_code(plan->scan, gt_object_function(plan->object, index)->address, &room);

	if (code != NULL && has_bytes(code, room, endbr64, sizeof(endbr64))) {
		code += sizeof(endbr64);
		room -= sizeof(endbr64);
	}
	if (code == NULL || has_bytes(code, room, musl, sizeof(musl)))
		return code != NULL;
	if (!has_bytes(code, room, glibc, sizeof(glibc)))
		return false;
	for (uint32_t at = sizeof(glibc); at < room && at < CLONE_BYTES; at++)
		if (has_bytes(code + at, room - at, calls, sizeof(calls)))
			return true;
	return false;
}
