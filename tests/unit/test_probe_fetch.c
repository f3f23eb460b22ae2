/* SPDX-License-Identifier: MIT */
/* Texts that a probe fetches: what of them is recorded, and that nothing behind their ends is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/record/event.h"

#define PAGE  4096u
#define RSP   4
#define TEXT  64u /* bytes that are recorded of a text, at most */
#define FIRST 2u  /* fields before the texts */

/* Where the memory of the test is, and whether it is known to be readable without asking. */
static enum { ON_STACK, CONSTANT, ASKED_FOR } memory_is;
static char memory[2 * PAGE] __attribute__((aligned(4096)));

static bool is_on_stack(uint64_t address, uint64_t bytes, uint64_t sp)
{
	(void)sp;
	return memory_is == ON_STACK &&
	       address + bytes <= (uint64_t)(uintptr_t)memory + sizeof(memory);
}

static bool is_constant(uint64_t address, uint64_t bytes)
{
	return memory_is == CONSTANT &&
	       address + bytes <= (uint64_t)(uintptr_t)memory + sizeof(memory);
}

static bool fetch(uint64_t address, void *out, uint64_t bytes, uint64_t sp)
{
	(void)sp;
	if (address - (uint64_t)(uintptr_t)memory > sizeof(memory) - bytes)
		return false;
	memcpy(out, memory + (address - (uint64_t)(uintptr_t)memory), bytes);
	return true;
}

static uint64_t vector_register(unsigned number)
{
	return number;
}

static uint64_t caller_of(const struct gt_event_frame *frame, bool returned)
{
	return frame->registers[RSP] + returned;
}

static uint32_t copy_name(char *out, uint32_t room)
{
	return (uint32_t)snprintf(out, room, "name") + 1;
}

#include "core/record/probe_fetch.h"

static struct {
	struct graftrace_probe probe;
	struct graftrace_probe_argument arguments[FIRST];
} made;

/* The event of a number and the text there, in words that had something else in them. */
static void gather_text(const char *text, struct gt_event *event)
{
	struct gt_event_frame frame = { .registers = { [7] = (uint64_t)(uintptr_t)text } };

	made.probe.argument_count = FIRST;
	made.arguments[0].place = GRAFTRACE_PLACE_CONSTANT;
	made.arguments[0].value = 5;
	made.arguments[0].bytes = 8;
	made.arguments[1].place = GRAFTRACE_PLACE_REGISTER;
	made.arguments[1].base = 7;
	made.arguments[1].bytes = 8;
	made.arguments[1].take = GRAFTRACE_TAKE_STRING;
	memset(event, 0xee, sizeof(*event));
	gather(&frame, &made.probe, event);
}

static void check(const struct gt_event *event, const char *text, uint32_t bytes)
{
	char expected[TEXT + 8] = { 0 };

	memcpy(expected, text, bytes - 1);
	assert_int_equal(event->faults, 0);
	assert_int_equal(event->values[0], 5);
	assert_int_equal(event->values[1], FIRST * 8 | (uint64_t)bytes << 16);
	assert_int_equal(event->count, FIRST + (bytes + 7) / 8);
	assert_memory_equal(&event->values[FIRST], expected, (bytes + 7) / 8 * 8);
}

static void texts_are_recorded_with_zeroes_behind_them(void **state)
{
	struct gt_event event;

	(void)state;
	for (memory_is = ON_STACK; memory_is <= ASKED_FOR; memory_is++)
		for (uint32_t offset = 0; offset < 9; offset++)
			for (uint32_t length = 0; length < TEXT + 9; length++) {
				char *text = memory + PAGE - 30 + offset;

				memset(memory, 'S', sizeof(memory));
				memset(text, 'x', length);
				text[length] = '\0';
				gather_text(text, &event);
				check(&event, text, length < TEXT ? length + 1 : TEXT);
			}
}

static void bytes_with_their_highest_bit_do_not_end_a_text(void **state)
{
	struct gt_event event;
	char *text = memory + 1;

	(void)state;
	memory_is = ON_STACK;
	for (uint32_t length = 1; length < 20; length++)
		for (uint32_t byte = 1; byte < 256; byte++) {
			memset(memory, 1, sizeof(memory));
			memset(text, (int)byte, length);
			text[length] = '\0';
			gather_text(text, &event);
			check(&event, text, length + 1);
		}
}

static void a_text_ends_where_memory_does(void **state)
{
	struct gt_event event;
	char *text = memory + sizeof(memory) - 13;

	(void)state;
	memset(memory, 'y', sizeof(memory));
	for (memory_is = ON_STACK; memory_is <= ASKED_FOR; memory_is++) {
		gather_text(text, &event);
		check(&event, text, 14);
	}
	gather_text(memory + sizeof(memory), &event);
	assert_int_equal(event.faults, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_recorded_with_zeroes_behind_them),
		cmocka_unit_test(bytes_with_their_highest_bit_do_not_end_a_text),
		cmocka_unit_test(a_text_ends_where_memory_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
