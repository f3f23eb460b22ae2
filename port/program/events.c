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

/* Returns the function's return address: at its return only the mirror has it. */
static uint64_t caller_of(const struct gt_event_frame *frame, bool returned)
{
	const uint64_t slot = frame->registers[RSP];

	return *(const volatile uint64_t *)(returned ? gt_program_mirror(slot) : slot);
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

#include "core/record/probe_fetch.h"

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
