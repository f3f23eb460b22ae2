/* SPDX-License-Identifier: MIT */
/*
 * An event's straight line: see event_line.h. The routine in the hot text has left the record's place in rcx,
 * and has stored what rax, rcx and rdx were below the stack pointer; here rax and rdx are free. The place
 * stays in rcx to the end, where a handler that leaves by a jump finds it (port/program/hooks.c).
 */
#include "attach/agent/event_line.h"

#include <string.h>

#define RAX 0
#define RCX 1
#define RDX 2
#define RSP 4

#define HEAD_WORDS 3 /* head, clock and number */

/* Where the routine's stack pointer was 8 bytes lower. */
#define SAVED_RAX   (-16)
#define SAVED_RCX   (-24)
#define SAVED_RDX   (-32)
#define SAVED_FLAGS (-40)

/* Of the stack above the function's stack pointer, what is read without a look whether it is mapped: it lies in the
 * frame of the function that the compiler said it of. */
#define STACK_READ 1024

uint32_t gt_event_line_words(uint32_t count)
{
	return HEAD_WORDS + count;
}

static void put(struct gt_event_line *line, const void *bytes, size_t count)
{
	if (line->used + count > sizeof(line->bytes))
		line->used = sizeof(line->bytes) + 1; /* noticed at the end */
	else {
		memcpy(line->bytes + line->used, bytes, count);
		line->used += (uint32_t)count;
	}
}

#define PUT(line, ...) \
	put(line, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put_32(struct gt_event_line *line, int64_t value)
{
	const int32_t narrow = (int32_t)value;

	put(line, &narrow, sizeof(narrow));
}

static bool put_jump(struct gt_event_line *line, uint8_t opcode, uint64_t at, uint64_t target)
{
	const int64_t distance = (int64_t)(target - (at + line->used + 5));

	PUT(line, opcode);
	put_32(line, distance);
	return distance == (int32_t)distance;
}

/* mov number, 8 * word(%rcx) */
static void put_store(struct gt_event_line *line, unsigned number, uint32_t word)
{
	PUT(line, (uint8_t)(0x48 | (number >> 3) << 2), 0x89, (uint8_t)(0x81 | (number & 7) << 3));
	put_32(line, 8 * word);
}

/* The opcode of a load into rax that fills up all of it; its operand follows. rex: what else the prefix says. */
static void put_load(struct gt_event_line *line, unsigned bytes, bool is_signed, uint8_t rex)
{
	switch (bytes) {
	case 1:
		PUT(line, (uint8_t)(0x48 | rex), 0x0f, is_signed ? 0xbe : 0xb6);
		break;
	case 2:
		PUT(line, (uint8_t)(0x48 | rex), 0x0f, is_signed ? 0xbf : 0xb7);
		break;
	case 4:
		if (is_signed)
			PUT(line, (uint8_t)(0x48 | rex), 0x63);
		else
			PUT(line, (uint8_t)(0x40 | rex), 0x8b);
		break;
	default:
		PUT(line, (uint8_t)(0x48 | rex), 0x8b);
	}
}

/* … from offset(%rsp) */
static void put_load_stack(struct gt_event_line *line, unsigned bytes, bool is_signed,
			   int32_t offset)
{
	put_load(line, bytes, is_signed, 0);
	PUT(line, 0x84, 0x24);
	put_32(line, offset);
}

static void put_constant(struct gt_event_line *line, int64_t value, uint32_t word)
{
	if (value == (int32_t)value) {
		PUT(line, 0x48, 0xc7, 0x81); /* mov $value, 8 * word(%rcx) */
		put_32(line, 8 * word);
		put_32(line, value);
		return;
	}
	PUT(line, 0x48, 0xb8); /* movabs $value, %rax */
	put(line, &value, sizeof(value));
	put_store(line, RAX, word);
}

static bool put_register(struct gt_event_line *line, const struct graftrace_probe_argument *from,
			 uint32_t word)
{
	const int32_t saved = from->base == RAX	  ? SAVED_RAX
			      : from->base == RCX ? SAVED_RCX
			      : from->base == RDX ? SAVED_RDX
						  : 0;

	if (from->base > 15 || from->value != 0 || (from->base == RSP && from->bytes != 8))
		return false;
	if (saved != 0) {
		put_load_stack(line, from->bytes, from->is_signed, saved);
	} else if (from->base == RSP) {
		PUT(line, 0x48, 0x8d, 0x84, 0x24); /* lea 128(%rsp), %rax */
		put_32(line, GRAFTRACE_RED_ZONE);
	} else if (from->bytes == 8) {
		put_store(line, from->base, word);
		return true;
	} else {
		put_load(line, from->bytes, from->is_signed, from->base >> 3);
		PUT(line, (uint8_t)(0xc0 | (from->base & 7)));
	}
	put_store(line, RAX, word);
	return true;
}

static int64_t extended(int64_t value, unsigned bytes, bool is_signed)
{
	const unsigned unused = 64 - 8 * bytes;
	const uint64_t high = (uint64_t)value << unused;

	return is_signed ? (int64_t)high >> unused : (int64_t)(high >> unused);
}

/* False: the value is not at hand, or may not be readable. */
static bool put_field(struct gt_event_line *line, const struct graftrace_probe_argument *from,
		      uint32_t word)
{
	if (from->take != GRAFTRACE_TAKE_NUMBER || from->step_count || from->bit_count ||
	    (from->bytes != 1 && from->bytes != 2 && from->bytes != 4 && from->bytes != 8))
		return false;
	switch (from->place) {
	case GRAFTRACE_PLACE_REGISTER:
		return put_register(line, from, word);
	case GRAFTRACE_PLACE_CONSTANT:
		put_constant(line, extended(from->value, from->bytes, from->is_signed), word);
		return true;
	case GRAFTRACE_PLACE_MEMORY:
		if (from->base != RSP || from->index != GRAFTRACE_NO_REGISTER || from->value < 0 ||
		    from->value > STACK_READ)
			return false;
		put_load_stack(line, from->bytes, from->is_signed,
			       (int32_t)from->value + GRAFTRACE_RED_ZONE);
		put_store(line, RAX, word);
		return true;
	default:
		return false;
	}
}

static void put_parameters(struct gt_event_line *line, uint64_t stub, uint32_t event,
			   uint32_t count)
{
	const uint32_t words = gt_event_line_words(count);
	const struct graftrace_event_line parameters = {
		.head = graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
					       GRAFTRACE_EVENT_PROBE << 16 | (words - 1)),
		.number = event,
		.slow = stub + GRAFTRACE_LINE_BELOW,
	};

	put(line, &parameters, sizeof(parameters));
}

bool gt_event_line(const struct gt_region *region, const struct graftrace_agent_image *header,
		   uint64_t at, uint64_t stub, uint64_t body, uint32_t event,
		   const struct graftrace_probe_argument *arguments, uint32_t count,
		   struct gt_event_line *line)
{
	const uint64_t hot = region->start + GRAFTRACE_REGION_HOT_OFFSET;

	line->used = 0;
	if (count > GRAFTRACE_PROBE_FIELDS)
		return false;
	put_parameters(line, stub, event, count);
	PUT(line, 0x48, 0x8d, 0x64, 0x24, 0x80); /* lea -128(%rsp), %rsp */
	if (!put_jump(line, 0xe8, at, hot + header->place))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!put_field(line, &arguments[i], HEAD_WORDS + i))
			return false;
	PUT(line, 0x0f, 0x31);		 /* rdtsc */
	PUT(line, 0x48, 0xc1, 0xe2, 32); /* shl $32, %rdx */
	PUT(line, 0x48, 0x09, 0xd0);	 /* or %rdx, %rax */
	PUT(line, 0x48, 0x89, 0x41, 8);	 /* mov %rax, 8(%rcx): the record is complete */
	PUT(line, 0x8b, 0x44, 0x24, SAVED_FLAGS & 0xff); /* mov -40(%rsp), %eax */
	PUT(line, 0x04, 0x7f, 0x9e);			 /* add $0x7f, %al; sahf */
	PUT(line, 0x48, 0x8b, 0x44, 0x24, SAVED_RAX & 0xff);
	PUT(line, 0x48, 0x8b, 0x4c, 0x24, SAVED_RCX & 0xff);
	PUT(line, 0x48, 0x8b, 0x54, 0x24, SAVED_RDX & 0xff);
	PUT(line, 0x48, 0x8d, 0xa4, 0x24); /* lea 128(%rsp), %rsp */
	put_32(line, GRAFTRACE_RED_ZONE);
	line->below_end = line->used;
	return put_jump(line, 0xe9, at, body) && line->used <= sizeof(line->bytes);
}

void gt_places_of_line(const struct gt_event_line *line, uint32_t from,
		       uint8_t at[GRAFTRACE_PLACES_BYTES])
{
	const uint32_t below = sizeof(struct graftrace_event_line) + GRAFTRACE_LINE_BELOW;

	for (uint32_t i = 0; i < GRAFTRACE_PLACES_BYTES; i++)
		at[i] = from + i >= below && from + i < line->below_end ? GRAFTRACE_PLACES_BELOW
									: 0;
}
