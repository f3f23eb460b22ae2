/* SPDX-License-Identifier: MIT */
/*
 * Probes in the middle of functions: the arguments are fetched as the probe says, then the event is
 * recorded. Reached from a probe's stub by the glue, with signals as the program has them, so all of
 * it may be interrupted and nested in itself. Nothing that the program says is believed: memory is read
 * by the kernel, which says where there is none, but for the running thread's own stack.
 */
#include "core/record/event.h"
#include "port/program/agent.h"
#include "port/program/syscall.h"

#define PAGE	   4096ull
#define STRING_MAX 64u /* bytes of one, its zero byte included */
#define RSP	   4

/* The registers of the interrupted function, as gt_glue_event lays them out. */
struct gt_event_frame {
	uint64_t flags;
	uint64_t registers[16]; /* as instructions number them */
	uint64_t stub;		/* + 10: where the stub goes on */
};

/* Called from glue.S only. */
void gt_agent_event(struct gt_event_frame *frame);

static uint64_t vector_register(unsigned number)
{
	uint64_t value = 0;
#define CASE(n)                                                \
	case n:                                                \
		__asm__("movq %%xmm" #n ", %0" : "=r"(value)); \
		break;
	switch (number) {
		CASE(0)
		CASE(1)
		CASE(2)
		CASE(3)
		CASE(4)
		CASE(5)
		CASE(6)
		CASE(7)
		CASE(8)
		CASE(9)
		CASE(10)
		CASE(11)
		CASE(12)
		CASE(13)
		CASE(14)
		CASE(15)
	}
#undef CASE
	return value;
}

/* What lies on the page that the stub's call has written to is there. */
static bool is_near_stack(uint64_t address, uint64_t bytes, uint64_t sp)
{
	const uint64_t low = sp - GRAFTRACE_RED_ZONE;
	const uint64_t end = ((low - 1) & ~(PAGE - 1)) + PAGE;

	return address >= low && address < end && bytes <= end - address;
}

/* Bytes that may not be mapped. In a sandbox that may forbid the agent's system calls only the
 * stack is looked at. */
static bool fetch(uint64_t address, void *out, uint64_t bytes, uint64_t sp)
{
	if (is_near_stack(address, bytes, sp)) {
		for (uint64_t i = 0; i < bytes; i++)
			((uint8_t *)out)[i] = ((const volatile uint8_t *)address)[i];
		return true;
	}
	return !gt_agent_sandboxed() && gt_peek_bytes(address, out, bytes);
}

static uint64_t extend(uint64_t value, unsigned bytes, bool is_signed)
{
	const unsigned unused = bytes < 8 ? 64 - 8 * bytes : 0;
	return is_signed ? (uint64_t)((int64_t)(value << unused) >> unused)
			 : value << unused >> unused;
}

static uint64_t register_of(const struct gt_event_frame *frame, unsigned number)
{
	return number < 16 ? frame->registers[number] : 0;
}

/* False: it cannot be read. */
static bool argument_value(const struct gt_event_frame *frame,
			   const struct graftrace_probe_argument *argument, uint64_t *value)
{
	const unsigned bytes = argument->bytes <= 8 ? argument->bytes : 8;
	uint64_t address;

	*value = 0;
	switch (argument->place) {
	case GRAFTRACE_PLACE_REGISTER:
		*value = register_of(frame, argument->base) >> (argument->value & 63);
		break;
	case GRAFTRACE_PLACE_CONSTANT:
		*value = (uint64_t)argument->value;
		break;
	case GRAFTRACE_PLACE_VECTOR:
		*value = vector_register(argument->base);
		break;
	case GRAFTRACE_PLACE_MEMORY:
		address = register_of(frame, argument->base) +
			  (register_of(frame, argument->index) << (argument->shift & 3)) +
			  (uint64_t)argument->value;
		if (!fetch(address, value, bytes, frame->registers[RSP]))
			return false;
		break;
	default:
		return false;
	}
	*value = extend(*value, bytes, argument->is_signed);
	return true;
}

/* Bytes of the string at `address`, its zero byte included, at most `room`; 0: none can be read. A
 * string ends at the latest where nothing is mapped any more. */
static uint32_t copy_string(uint64_t address, char *out, uint32_t room, uint64_t sp)
{
	uint32_t done = 0;

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

/* Behind the fields, as far as there is room. */
static bool take_string(struct gt_event *event, uint32_t field, uint64_t address, uint64_t sp)
{
	uint32_t room = (GT_EVENT_VALUES - event->count) * 8;
	uint32_t bytes;

	event->values[field] = 0;
	if (room > STRING_MAX)
		room = STRING_MAX;
	if (room == 0)
		return false;
	const uint32_t words = room / 8;
	for (uint32_t i = 0; i < words; i++)
		event->values[event->count + i] = 0;
	bytes = copy_string(address, (char *)&event->values[event->count], room, sp);
	if (bytes == 0)
		return false;
	event->values[field] = event->count * 8 | (uint64_t)bytes << 16;
	event->count += (bytes + 7) / 8;
	return true;
}

static void gather(const struct gt_event_frame *frame, const struct graftrace_probe *probe,
		   struct gt_event *event)
{
	const uint32_t count = probe->argument_count < GRAFTRACE_PROBE_FIELDS
				       ? probe->argument_count
				       : GRAFTRACE_PROBE_FIELDS;

	event->number = probe->event;
	event->faults = 0;
	event->count = count;
	for (uint32_t i = 0; i < count; i++)
		if (!argument_value(frame, &probe->arguments[i], &event->values[i]))
			event->faults |= 1u << i;
	for (uint32_t i = 0; i < count; i++)
		if (probe->arguments[i].is_string && !(event->faults & 1u << i) &&
		    !take_string(event, i, event->values[i], frame->registers[RSP]))
			event->faults |= 1u << i;
}

/* is_new: nobody has asked yet whether it is wanted. */
static __attribute__((noinline, cold)) void record_slow(const struct gt_event *event, bool is_new)
{
	uint64_t saved;

	if (gt_agent_sandboxed())
		return;
	gt_signals_mask(&saved);
	struct gt_thread *thread = gt_threads_current();
	if (thread != NULL && (!is_new || gt_event_is_wanted(thread, event)))
		gt_event_record(thread, event);
	gt_signals_restore(&saved);
}

void gt_agent_event(struct gt_event_frame *frame)
{
	const struct graftrace_probe *probe =
		(const struct graftrace_probe *)((frame->stub & ~(GRAFTRACE_STUB_BYTES - 1ull)) +
						 GRAFTRACE_STUB_BYTES);
	struct gt_thread *thread = gt_threads_at_hand();
	struct gt_event event;

	/* Switched off, by whomever, or without room: nothing is fetched. */
	if (thread != NULL && gt_event_is_stopped(thread))
		return;
	frame->registers[RSP] = (uint64_t)(&frame->stub + 1) + GRAFTRACE_RED_ZONE;
	gather(frame, probe, &event);
	if (thread != NULL && !gt_event_is_wanted(thread, &event))
		return;
	if (thread == NULL || !gt_event_try_record(thread, &event))
		record_slow(&event, thread == NULL);
}
