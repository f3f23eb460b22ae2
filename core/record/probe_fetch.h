/* SPDX-License-Identifier: MIT */
/*
 * The arguments of a probe, fetched as its description says (graftrace/agent.h), and gathered into an event: the same
 * for programs and kernels. A part of a source that says before this how that target's memory is read:
 *
 *	bool is_on_stack(address, bytes, sp)	it is the running thread's own stack, which is mapped
 *	bool is_constant(address, bytes)	it stays readable for good
 *	bool fetch(address, out, bytes, sp)	copies bytes that may be unmapped; false: they are
 *	uint64_t vector_register(number)
 *	uint64_t caller_of(frame, returned)	where the function returns to
 *	uint32_t copy_name(out, room)		the running thread's name with its NUL; 0: it is not known
 *	PAGE, RSP				bytes of a page; the stack pointer's number
 *
 * No value is trusted. All of it may be interrupted and nested in itself.
 */
#ifndef GT_CORE_RECORD_PROBE_FETCH_H
#define GT_CORE_RECORD_PROBE_FETCH_H

#include <graftrace/agent.h>
#include "core/record/event.h"

#define STRING_MAX 64u /* bytes, with the NUL */

struct unaligned {
	uint64_t word;
} __attribute__((packed, may_alias));

static uint64_t extend(uint64_t value, unsigned bytes, bool is_signed)
{
	const unsigned unused = bytes < 8 ? 64 - 8 * bytes : 0;
	return is_signed ? (uint64_t)((int64_t)(value << unused) >> unused)
			 : value << unused >> unused;
}

static uint64_t register_of(const struct gt_event_frame *frame, unsigned number)
{
	return number < 16 ? frame->registers[number] : number == 16 ? frame->flags : 0;
}

/* Fetches the value with which the argument begins. False: it cannot be read. */
static bool first_value(const struct gt_event_frame *frame,
			const struct graftrace_probe_argument *argument, uint32_t flags,
			uint32_t bytes, uint64_t *value)
{
	uint64_t address;

	switch (argument->place) {
	case GRAFTRACE_PLACE_REGISTER:
		*value = register_of(frame, argument->base);
		if (argument->base == RSP && flags & GRAFTRACE_PROBE_RETURN)
			*value += 8;
		*value >>= argument->value & 63;
		return true;
	case GRAFTRACE_PLACE_CONSTANT:
		*value = (uint64_t)argument->value;
		return true;
	case GRAFTRACE_PLACE_VECTOR:
		*value = vector_register(argument->base);
		return true;
	case GRAFTRACE_PLACE_MEMORY:
		address = register_of(frame, argument->base) +
			  (register_of(frame, argument->index) << (argument->shift & 3)) +
			  (uint64_t)argument->value;
		if (argument->base == RSP && flags & GRAFTRACE_PROBE_RETURN)
			address += 8;
		return fetch(address, value, bytes, frame->registers[RSP]);
	case GRAFTRACE_PLACE_CALLER:
		*value = caller_of(frame, flags & GRAFTRACE_PROBE_RETURN);
		return true;
	default:
		return false;
	}
}

/* Fetches the number, or the address of what is to be copied. False: it cannot be read. */
static bool argument_value(const struct gt_event_frame *frame, const struct graftrace_probe *probe,
			   const struct graftrace_probe_argument *argument, const int64_t *steps,
			   uint64_t *value)
{
	const uint32_t bytes = argument->bytes <= 8 ? argument->bytes : 8;
	const uint32_t last = argument->step_count;

	*value = 0;
	if (!first_value(frame, argument, probe->flags, last != 0 ? 8 : bytes, value))
		return false;
	for (uint32_t i = 1; i <= last; i++) {
		const uint64_t address = *value + (uint64_t)steps[argument->first_step + i - 1];

		*value = i == last && argument->take != GRAFTRACE_TAKE_NUMBER ? address : 0;
		if ((i < last || argument->take == GRAFTRACE_TAKE_NUMBER) &&
		    !fetch(address, value, i < last ? 8 : bytes, frame->registers[RSP]))
			return false;
	}
	if (argument->take != GRAFTRACE_TAKE_NUMBER)
		return true;
	if (argument->bit_count != 0) {
		*value >>= argument->bit_first & 63;
		*value &= ~0ull >> (64 - (argument->bit_count & 63));
	}
	*value = extend(*value, bytes, argument->is_signed);
	return true;
}

/* As copy_string(), of `room` readable bytes, eight at once: what is behind the NUL may come with it. Some program may write
 * there meanwhile, so each is read once. */
static uint32_t copy_readable(uint64_t address, char *out, uint32_t room)
{
	const uint64_t ones = 0x0101010101010101u, highs = ones << 7;
	uint32_t done = 0;

	for (; done + 8 <= room; done += 8) {
		const uint64_t word = ((const volatile struct unaligned *)(address + done))->word;
		const uint64_t zeros = (word - ones) & ~word & highs; /* the lowest is right */

		((struct unaligned *)(out + done))->word = word;
		if (zeros != 0)
			return done + (uint32_t)__builtin_ctzll(zeros) / 8 + 1;
	}
	while (done < room && (out[done] = ((const volatile char *)address)[done]) != 0)
		done++;
	if (done == room)
		out[--done] = 0;
	return done + 1;
}

/* Copies the string at `address` with its NUL, at most `room` bytes; returns 0 if none can be
 * read. A string ends at the latest where memory is unmapped. */
static uint32_t copy_string(uint64_t address, char *out, uint32_t room, uint64_t sp)
{
	uint32_t done = 0;

	/* the usual case: it can be read, some bytes behind its end, too */
	if ((address >= sp && is_on_stack(address, room, sp)) || is_constant(address, room))
		return copy_readable(address, out, room);
	while (done < room) {
		const uint64_t left = PAGE - (address + done) % PAGE;
		const uint32_t step = left < room - done ? (uint32_t)left : room - done;

		if (!fetch(address + done, out + done, step, sp))
			break;
		for (const uint32_t end = done + step; done < end; done++)
			if (out[done] == 0)
				return done + 1;
	}
	if (done == room)
		out[done - 1] = 0;
	else if (done != 0)
		out[done++] = 0;
	return done;
}

/* Returns the room after the fields; 0 bytes: there is none. */
static char *room_behind(struct gt_event *event, uint32_t *room)
{
	*room = (GT_EVENT_VALUES - event->count) * 8;
	return (char *)&event->values[event->count];
}

/* Copies whole elements, as many as there is room for. */
static uint32_t copy_array(const struct graftrace_probe_argument *argument, uint64_t address,
			   char *out, uint32_t room, uint64_t sp)
{
	const uint32_t each = argument->bytes != 0 && argument->bytes <= 8 ? argument->bytes : 8;
	const uint32_t count = argument->count < room / each ? argument->count : room / each;

	return fetch(address, out, (uint64_t)count * each, sp) ? count * each : 0;
}

/* Copies strings, each with its NUL; for one that cannot be read "(fault)". */
static uint32_t copy_strings(const struct graftrace_probe_argument *argument, uint64_t address,
			     char *out, uint32_t room, uint64_t sp)
{
	static const char fault[8] = "(fault)";
	uint32_t done = 0;

	for (uint32_t i = 0; i < argument->count && done < room; i++) {
		uint32_t left = room - done, bytes = 0;
		uint64_t text = 0;

		if (left > STRING_MAX)
			left = STRING_MAX;
		if (!fetch(address + 8ull * i, &text, sizeof(text), sp))
			return i != 0 ? done : 0;
		bytes = copy_string(text, out + done, left, sp);
		for (; bytes == 0 && bytes < sizeof(fault) && left >= sizeof(fault); bytes = 8)
			for (uint32_t k = 0; k < sizeof(fault); k++)
				out[done + k] = fault[k];
		done += bytes;
	}
	return done;
}

/* Copies data after the fields, as far as there is room. */
static bool take(struct gt_event *event, uint32_t field,
		 const struct graftrace_probe_argument *argument, uint64_t sp)
{
	const uint64_t address = event->values[field];
	uint32_t room, bytes;
	char *const out = room_behind(event, &room);

	event->values[field] = 0;
	if (room == 0)
		return false;
	if (argument->take == GRAFTRACE_TAKE_ARRAY)
		bytes = copy_array(argument, address, out, room, sp);
	else if (argument->take == GRAFTRACE_TAKE_STRINGS)
		bytes = copy_strings(argument, address, out, room, sp);
	else if (argument->place == GRAFTRACE_PLACE_COMM)
		bytes = copy_name(out, room);
	else
		bytes = copy_string(address, out, room < STRING_MAX ? room : STRING_MAX, sp);
	return gt_event_put_behind(event, field, bytes);
}

static __attribute__((noinline)) void gather(const struct gt_event_frame *frame,
					     const struct graftrace_probe *probe,
					     struct gt_event *event)
{
	const struct graftrace_probe_argument *arguments = (const void *)(probe + 1);
	const int64_t *steps = (const void *)(arguments + probe->argument_count);
	const uint32_t count = probe->argument_count < GRAFTRACE_PROBE_FIELDS
				       ? probe->argument_count
				       : GRAFTRACE_PROBE_FIELDS;
	uint32_t taken = 0;

	event->number = probe->event;
	event->depth = 0;
	event->faults = 0;
	event->count = count;
	for (uint32_t i = 0; i < count; i++) {
		const struct graftrace_probe_argument *argument = &arguments[i];

		if (argument->take != GRAFTRACE_TAKE_NUMBER)
			taken |= 1u << i;
		if (argument->place != GRAFTRACE_PLACE_COMM &&
		    !argument_value(frame, probe, argument, steps, &event->values[i]))
			event->faults |= 1u << i;
	}
	for (uint32_t i = 0; taken >> i != 0; i++)
		if (taken >> i & 1 && !(event->faults & 1u << i) &&
		    !(probe->flags & GRAFTRACE_PROBE_OF_CALL && event->values[i] == 0) &&
		    !take(event, i, &arguments[i], frame->registers[RSP]))
			event->faults |= 1u << i;
}

#endif
