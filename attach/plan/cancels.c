/* SPDX-License-Identifier: MIT */
/*
 * Names would tell, but this is for programs that have none. So it is every function with a syscall
 * instruction, some of which wait, and all that these lead to directly; in a program that cancels
 * threads every function, since handlers interrupt calls that wait.
 */
#define _GNU_SOURCE
#include "attach/plan/cancels.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t syscall_bytes[] = { 0x0f, 0x05 };

void gt_cancels_free(struct gt_cancels *cancels)
{
	free(cancels->in);
	memset(cancels, 0, sizeof(*cancels));
}

/* Goes through the function. Returns whether it makes a system call; callees: what it leads to is
 * marked there, if given. */
static bool look_through(struct gt_scan *scan, const struct gt_object_function *function,
			 uint8_t *callees)
{
	uint64_t room, at = 0;
	const uint8_t *code = gt_scan_code(scan, function->address, &room);
	bool calls = false;

	if (room > function->bytes)
		room = function->bytes;
	if (code == NULL ||
	    (callees == NULL && memmem(code, room, syscall_bytes, sizeof(syscall_bytes)) == NULL))
		return false;
	while (at < room) {
		struct gt_instruction instruction;
		uint32_t index;

		if (!gt_instruction_decode(code + at, room - at, function->address + at,
					   &instruction)) {
			at++;
			continue;
		}
		calls = calls || memcmp(code + at, syscall_bytes, sizeof(syscall_bytes)) == 0;
		if (callees != NULL && instruction.target_bytes &&
		    gt_object_function_at(gt_scan_object(scan), instruction.target, &index) == 0)
			callees[index] = 1;
		at += instruction.bytes;
	}
	return calls;
}

/* pthread_cancel sets the handler of SIGCANCEL (32), with SA_SIGINFO | SA_RESTART. */
static bool cancels_threads(struct gt_scan *scan, const struct gt_object_function *function)
{
	static const uint8_t number[] = { 0xbf, 0x20, 0, 0, 0 }; /* mov $32,%edi */
	static const uint8_t flags[] = { 0x04, 0, 0, 0x10 };
	uint64_t room;
	const uint8_t *code = gt_scan_code(scan, function->address, &room);

	if (room > function->bytes)
		room = function->bytes;
	return code != NULL && memmem(code, room, number, sizeof(number)) != NULL &&
	       memmem(code, room, flags, sizeof(flags)) != NULL;
}

static void find(struct gt_cancels *cancels, struct gt_scan *scan)
{
	const struct gt_object *object = gt_scan_object(scan);
	const uint32_t count = gt_object_function_count(object);

	cancels->ready = true;
	cancels->in = calloc(count + 1ul, 1);
	for (uint32_t i = 0; cancels->in != NULL && i < count; i++) {
		const struct gt_object_function *function = gt_object_function(object, i);

		cancels->anywhere = cancels->anywhere || cancels_threads(scan, function);
		if (!look_through(scan, function, NULL))
			continue;
		cancels->in[i] = 1;
		look_through(scan, function, cancels->in);
	}
}

bool gt_cancels_in(struct gt_cancels *cancels, struct gt_scan *scan, uint32_t index)
{
	if (!cancels->ready)
		find(cancels, scan);
	return cancels->anywhere || cancels->in == NULL || cancels->in[index];
}
