/* SPDX-License-Identifier: MIT */
/*
 * Probes in the middle of functions: their arguments are fetched as the probe says, then the event
 * is recorded. Called from a probe's stub through the glue, with the program's signal mask, so all
 * of it may be interrupted and nested in itself. No value of the program is trusted: memory is read
 * by a system call, which reports unmapped addresses, except for the running thread's own stack.
 */
#include "core/record/event.h"
#include "core/record/port.h"
#include "port/program/agent.h"
#include "port/program/syscall.h"
#include "port/program/syscalls.h"

#define PAGE	    4096ull
#define STRING_MAX  64u /* bytes, with the NUL */
#define RSP	    4
#define PR_GET_NAME 16

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

/* The page to which the stub's call has just written is mapped. */
static bool is_near_stack(uint64_t address, uint64_t bytes, uint64_t sp)
{
	const uint64_t low = sp - GRAFTRACE_RED_ZONE;
	const uint64_t end = ((low - 1) & ~(PAGE - 1)) + PAGE;

	return address >= low && address < end && bytes <= end - address;
}

/* The running thread's own stack is mapped, if its bounds are known, not guessed. */
static bool is_on_stack(uint64_t address, uint64_t bytes, uint64_t sp)
{
	const struct gt_thread *thread = gt_threads_at_hand();
	const struct gt_context *context = thread != NULL ? thread->context : NULL;

	return context != NULL && context->known == 1 && sp >= context->low && sp < context->high &&
	       address >= sp && address < context->high && bytes <= context->high - address;
}

/* Is it in a mapping that is read-only for good, so that it stays readable? */
static bool is_constant(uint64_t address, uint64_t bytes)
{
	static uint32_t last; /* where the last address was found */
	const uint32_t count = __atomic_load_n(&gt_agent_state.constant_count, __ATOMIC_ACQUIRE);
	const uint32_t first = __atomic_load_n(&last, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < count && i < GRAFTRACE_AGENT_CONSTANTS; i++) {
		const uint32_t at = (first + i) % GRAFTRACE_AGENT_CONSTANTS;
		const uint64_t end = gt_agent_state.constants[at].end;

		if (address < gt_agent_state.constants[at].start || address >= end)
			continue;
		if (at != first)
			__atomic_store_n(&last, at, __ATOMIC_RELAXED);
		return bytes <= end - address;
	}
	return false;
}

/* Copies bytes that may be unmapped. In a sandbox that may forbid the agent's system calls, only
 * the stack is read. */
static bool fetch(uint64_t address, void *out, uint64_t bytes, uint64_t sp)
{
	if (is_near_stack(address, bytes, sp) || is_constant(address, bytes) ||
	    is_on_stack(address, bytes, sp)) {
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
	return number < 16 ? frame->registers[number] : number == 16 ? frame->flags : 0;
}

/* Returns the function's return address: at its return only the mirror has it. */
static uint64_t caller_of(const struct gt_event_frame *frame, bool returned)
{
	const uint64_t slot = frame->registers[RSP];

	return *(const volatile uint64_t *)(returned ? gt_program_mirror(slot) : slot);
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

/* Copies the string at `address` with its NUL, at most `room` bytes; returns 0 if none can be
 * read. A string ends at the latest where memory is unmapped. */
static uint32_t copy_string(uint64_t address, char *out, uint32_t room, uint64_t sp)
{
	uint32_t done = 0;

	/* The usual case: all of it is readable, and it is short. */
	if (is_constant(address, room) || is_on_stack(address, room, sp)) {
		while (done < room && (out[done] = ((const volatile char *)address)[done]) != 0)
			done++;
		if (done == room)
			out[--done] = 0;
		return done + 1;
	}
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

/* Returns the room after the fields, with a zero word at its end; 0 bytes: there is none. */
static char *room_behind(struct gt_event *event, uint32_t *room)
{
	*room = (GT_EVENT_VALUES - event->count) * 8;
	for (uint32_t i = event->count; i < GT_EVENT_VALUES; i++)
		event->values[i] = 0;
	return (char *)&event->values[event->count];
}

static bool put_behind(struct gt_event *event, uint32_t field, uint32_t bytes)
{
	if (bytes == 0)
		return false;
	event->values[field] = event->count * 8 | (uint64_t)bytes << 16;
	event->count += (bytes + 7) / 8;
	return true;
}

static uint32_t copy_name(char *out, uint32_t room)
{
	char name[16] = { 0 };
	uint32_t i = 0;

	if (gt_agent_sandboxed() || gt_syscall3(SYS_PRCTL, PR_GET_NAME, (long)name, 0) != 0)
		return 0;
	for (; i + 1 < sizeof(name) && i + 1 < room && name[i] != 0; i++)
		out[i] = name[i];
	out[i] = 0;
	return i + 1;
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
	return put_behind(event, field, bytes);
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

/* The values of a call are recorded only if the call itself is. */
static bool is_left_out(const struct gt_thread *thread, const struct graftrace_probe *probe)
{
	return probe != NULL && probe->flags & GRAFTRACE_PROBE_OF_CALL &&
	       gt_event_leaves_call_out(thread, probe->flags & GRAFTRACE_PROBE_OF_ROOT);
}

/* what: the result of gt_event_look(). Returns what is to be done with signals as they are. */
static __attribute__((noinline, cold)) unsigned
record_slow(const struct gt_event *event, const struct graftrace_probe *probe, unsigned what)
{
	uint64_t saved;

	if (gt_agent_sandboxed())
		return 0;
	gt_signals_mask(&saved);
	struct gt_thread *thread = gt_threads_current();
	if (thread != NULL && thread->mode == 0)
		gt_stream_choose(thread);
	if (thread != NULL && !is_left_out(thread, probe)) {
		if (what & GT_EVENT_ASK)
			what = gt_event_look(thread, event);
		if (what & GT_EVENT_ACT)
			gt_event_act(thread, event);
		else if (what & GT_EVENT_RECORD)
			gt_event_record(thread, event);
		if (what & GT_EVENT_SNAPSHOT)
			gt_event_snapshot(thread, event);
	} else {
		what = 0;
	}
	gt_signals_restore(&saved);
	return what & GT_EVENT_FOLLOW;
}

/* What a histogram with actions needs of the stack, with one event that it makes and that is counted or recorded:
 * for what that one makes is looked again. */
#define FOLLOW_BYTES 3072

/* Whether the stack has that much. Below a small alternate stack there is no page that would fault, but another's
 * memory. */
static bool has_room_to_follow(const struct gt_thread *thread)
{
	const uint64_t sp = (uint64_t)__builtin_frame_address(0);
	const struct gt_context *const context =
		__atomic_load_n(&thread->context, __ATOMIC_RELAXED);
	uint64_t low, high;

	if (context != NULL && context->known == 1 && sp >= context->low && sp < context->high)
		return sp - context->low >= FOLLOW_BYTES;
	if (gt_agent_sandboxed() || !gt_port_alternate_stack(&low, &high) || sp < low || sp >= high)
		return true;
	return sp - low >= FOLLOW_BYTES;
}

/* The event is gathered: it is recorded, and all else that its rules say is done. thread: at hand, NULL: not
 * yet. */
static void conclude(struct gt_thread *thread, const struct gt_event *event,
		     const struct graftrace_probe *probe, bool has_rules)
{
	unsigned what = GT_EVENT_RECORD, follow;

	if (thread == NULL)
		what = GT_EVENT_ASK;
	else if (has_rules)
		what = gt_event_look(thread, event);
	follow = what & GT_EVENT_FOLLOW;
	what &= ~GT_EVENT_FOLLOW;
	if (what == GT_EVENT_RECORD ? !(has_rules && gt_event_is_stopped(thread)) &&
					      !gt_event_try_record(thread, event)
				    : what != 0)
		follow |= record_slow(event, probe, what);
	if (!follow)
		return;
	thread = gt_threads_at_hand();
	if (thread != NULL && has_room_to_follow(thread) && gt_event_follow(thread, event) != 0)
		record_slow(event, probe, GT_EVENT_SNAPSHOT);
}

static void happen(struct gt_event_frame *frame, const struct graftrace_probe *probe)
{
	const bool has_rules = gt_event_has_rules(probe->event);
	struct gt_thread *thread = gt_threads_at_hand();
	struct gt_event event;

	if (!(probe->flags & GRAFTRACE_PROBE_OF_CALL))
		gt_event_hit(probe->event);
	if (thread != NULL && thread->mode != 0 && is_left_out(thread, probe))
		return;
	/* Recording is off or there is no room: nothing is fetched, unless a trigger may need
	 * it. */
	if (thread != NULL && !has_rules && gt_event_is_stopped(thread))
		return;
	if (probe->flags & (GRAFTRACE_PROBE_OF_CALL | GRAFTRACE_PROBE_RETURN))
		frame->registers[RSP] =
			(uint64_t)(&frame->stub + (probe->flags & GRAFTRACE_PROBE_RETURN ? 1 : 2));
	gather(frame, probe, &event);
	conclude(thread, &event, probe, has_rules);
}

bool gt_events_fetch(uint64_t address, void *out, uint64_t bytes, uint64_t sp)
{
	return fetch(address, out, bytes, sp);
}

uint32_t gt_events_copy_text(uint64_t address, char *out, uint32_t room, uint64_t sp)
{
	return copy_string(address, out, room, sp);
}

bool gt_events_begin(uint32_t number)
{
	struct gt_thread *thread = gt_threads_at_hand();

	return thread == NULL || gt_event_has_rules(number) || !gt_event_is_stopped(thread);
}

void gt_events_finish(const struct gt_event *event)
{
	conclude(gt_threads_at_hand(), event, NULL, gt_event_has_rules(event->number));
}

void gt_port_event(const struct gt_event *event)
{
	gt_events_finish(event);
}

void gt_agent_event(struct gt_event_frame *frame)
{
	const struct graftrace_probe_site *site =
		(const struct graftrace_probe_site *)((frame->stub &
						       ~(GRAFTRACE_STUB_BYTES - 1ull)) +
						      GRAFTRACE_STUB_BYTES);
	const struct graftrace_probe *probe;

	frame->registers[RSP] = (uint64_t)(&frame->stub + 1) + GRAFTRACE_RED_ZONE;
	if (site->first == GRAFTRACE_SITE_ENTERS) {
		gt_syscalls_enter(frame);
		return;
	}
	if (site->first == GRAFTRACE_SITE_LEAVES) {
		gt_syscalls_leave(frame);
		return;
	}
	for (probe = (const struct graftrace_probe *)site->first; probe != NULL;
	     probe = (const struct graftrace_probe *)probe->next)
		happen(frame, probe);
}
