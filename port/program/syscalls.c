/* SPDX-License-Identifier: MIT */
/*
 * System calls: see syscalls.h. Reached from the stubs by the glue, with signals as the program has them:
 * what may be interrupted here may also never go on.
 *  A. Before the call its event is recorded, then the call is noted as open. A handler that runs in
 *     between notes its own calls above, and takes them off again.
 *  B. Behind the call the note says which one it was. None: it was begun before anybody looked, and no
 *     event tells of its end.
 *  C. Who returns twice is led past the stub behind the call where the result is 0 (attach/plan/plan_move.c):
 *     a child may run on its creator's stack, and in its memory.
 */
#include "port/program/syscalls.h"
#include "core/record/port.h"

#define RAX 0
#define RDX 2
#define RSP 4
#define RSI 6
#define RDI 7
#define R8  8
#define R9  9
#define R10 10

#define SYS_MUNMAP_	11
#define SYS_CLONE_	56
#define SYS_FORK_	57
#define SYS_VFORK_	58
#define SYS_PRCTL_	157
#define SYS_ARCH_PRCTL_ 158
#define SYS_SECCOMP_	317
#define SYS_CLONE3_	435
#define X32_BIT		0x40000000u

#define PR_SET_SECCOMP	22
#define PR_SET_DISPATCH 59 /* PR_SET_SYSCALL_USER_DISPATCH */

#define ERROR_MOST 4095u /* of the kernel's error numbers: results from -4095 on */

#define STUB_CALLS 10u /* gt_event_frame.stub: behind the call in the stub */
#define DATA_MAX   64u /* bytes of a buffer */

static const uint8_t argument_registers[6] = { RDI, RSI, RDX, R10, R8, R9 };

/* The table, its last entry for all calls. NULL: nothing is recorded. */
static const struct graftrace_syscall *table_of(void)
{
	const struct graftrace_arena *arena = gt_port_arena();

	return __atomic_load_n(&arena->syscalls_on, __ATOMIC_RELAXED) == 0
		       ? NULL
		       : graftrace_arena_syscalls(arena);
}

/* The kernel looks at the lower half of the register. */
static uint64_t number_of(const struct gt_event_frame *frame)
{
	return (uint64_t)(int64_t)(int32_t)frame->registers[RAX];
}

/* Calls of ours may be refused from then on, or be deadly. */
static bool sets_filter(uint64_t number, const struct gt_event_frame *frame)
{
	const uint32_t what = (uint32_t)frame->registers[RDI];

	number &= ~(uint64_t)X32_BIT;
	return number == SYS_SECCOMP_ ||
	       (number == SYS_PRCTL_ && (what == PR_SET_SECCOMP || what == PR_SET_DISPATCH));
}

/* Whoever returns with 0 must not be led to the stub behind: C, and what has no stack then, or another
 * thread pointer. */
static bool leaves_alone(uint64_t number, const struct gt_event_frame *frame)
{
	switch (number & ~(uint64_t)X32_BIT) {
	case SYS_CLONE_:
	case SYS_FORK_:
	case SYS_VFORK_:
	case SYS_CLONE3_:
	case SYS_ARCH_PRCTL_:
		return true;
	case SYS_MUNMAP_:
		return frame->registers[RSP] - frame->registers[RDI] <
		       frame->registers[RSI] + GRAFTRACE_RED_ZONE + 4096;
	default:
		return false;
	}
}

static uint64_t argument_of(const struct gt_event_frame *frame, uint32_t index)
{
	return frame->registers[argument_registers[index]];
}

/* How many bytes of a buffer are recorded. */
static uint64_t bytes_of(const struct gt_event_frame *frame, uint32_t rule)
{
	const uint32_t says = rule % GRAFTRACE_BYTES_WORDS;
	uint64_t bytes;

	if (rule & GRAFTRACE_BYTES_FIXED)
		bytes = rule & ~(uint32_t)GRAFTRACE_BYTES_FIXED;
	else if (says == GRAFTRACE_BYTES_OF_RESULT)
		bytes = frame->registers[RAX];
	else
		bytes = argument_of(frame, (says - GRAFTRACE_BYTES_OF_ARGUMENT) % 6);
	if (bytes > DATA_MAX)
		bytes = DATA_MAX;
	if (!(rule & GRAFTRACE_BYTES_FIXED) && rule >= GRAFTRACE_BYTES_WORDS)
		bytes *= rule / GRAFTRACE_BYTES_WORDS * 4;
	return bytes < DATA_MAX ? bytes : DATA_MAX;
}

/* A text, or bytes, behind the fields: field `index` tells where. Without any it is said to be
 * unreadable. */
static void put_behind(struct gt_event *event, uint32_t index, uint32_t bytes)
{
	event->values[index] = 0;
	if (!gt_event_put_behind(event, index, bytes))
		event->faults |= 1u << index;
}

/* The bytes that argument `argument` (from 1) leads to, told of by field `index`. */
static void put_data(struct gt_event *event, const struct gt_event_frame *frame, uint32_t index,
		     uint32_t argument, uint64_t bytes)
{
	const uint64_t address = argument_of(frame, (argument - 1) % 6);
	char *const out = (char *)&event->values[event->count];

	if (address == 0 || !gt_events_fetch(address, out, bytes, frame->registers[RSP]))
		bytes = 0;
	put_behind(event, index, (uint32_t)bytes);
}

static void put_texts(struct gt_event *event, const struct gt_event_frame *frame,
		      const struct graftrace_syscall *call)
{
	const uint32_t first = event->count, texts = (call->text[0] != 0) + (call->text[1] != 0);
	const uint64_t sp = frame->registers[RSP];
	uint32_t data = first + texts;

	event->count = data + (call->data != 0);
	if (call->data != 0)
		put_data(event, frame, data, call->data, bytes_of(frame, call->data_bytes));
	for (uint32_t i = 0; i < texts; i++) {
		char *const out = (char *)&event->values[event->count];
		const uint32_t room = (GT_EVENT_VALUES - event->count) * 8 / (texts - i);
		const uint64_t at = argument_of(frame, (call->text[i] - 1u) % 6);
		put_behind(event, first + i, gt_events_copy_text(at, out, room & ~7u, sp));
	}
}

static __attribute__((noinline)) void record_enter(const struct gt_event_frame *frame,
						   const struct graftrace_syscall *call)
{
	struct gt_event event = { .number = call->enter };
	const uint32_t count = call->argument_count <= 6 ? call->argument_count : 6;

	event.values[0] = number_of(frame);
	for (uint32_t i = 0; i < count; i++)
		event.values[1 + i] = argument_of(frame, i);
	event.count = 1 + count;
	if (call->text[0] != 0 || call->data != 0)
		put_texts(&event, frame, call);
	gt_events_finish(&event);
}

/* The kernel leaves the arguments' registers as they were. */
static __attribute__((noinline)) void record_leave(uint32_t event_number, uint64_t number,
						   const struct gt_event_frame *frame,
						   const struct graftrace_syscall *call)
{
	const uint64_t result = frame->registers[RAX];
	struct gt_event event = { .number = event_number, .count = 2 };

	event.values[0] = number;
	event.values[1] = result;
	if (call->out != 0) {
		event.count = 3;
		for (uint32_t i = event.count; i < GT_EVENT_VALUES; i++)
			event.values[i] = 0;
		if (result >= (uint64_t)-ERROR_MOST)
			put_behind(&event, 2, 0);
		else
			put_data(&event, frame, 2, call->out, bytes_of(frame, call->out_bytes));
	}
	gt_events_finish(&event);
}

/* A. The place is taken first: what interrupts has the one above. */
static void note(const struct gt_event_frame *frame)
{
	const struct gt_thread *thread = gt_threads_at_hand();
	struct gt_open_calls *open = thread != NULL ? gt_threads_open_calls(thread) : NULL;

	if (open == NULL)
		return;
	uint32_t at = __atomic_load_n(&open->count, __ATOMIC_RELAXED);
	if (at >= GT_CALLS_OPEN) {
		for (at = 0; at + 1 < GT_CALLS_OPEN; at++)
			open->calls[at] = open->calls[at + 1];
	}
	__atomic_store_n(&open->count, at + 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	open->calls[at].sp = frame->registers[RSP];
	open->calls[at].number = number_of(frame);
	open->calls[at].place = frame->stub - STUB_CALLS;
}

/* Nothing is recorded of an end, wherever it leads to. */
static void forget_notes(void)
{
	const struct gt_thread *thread = gt_threads_at_hand();
	struct gt_open_calls *open = thread != NULL ? gt_threads_open_calls(thread) : NULL;

	if (open != NULL)
		__atomic_store_n(&open->count, 0, __ATOMIC_RELAXED);
}

/* B. False: there is none. */
static bool take_note(const struct gt_event_frame *frame, uint64_t *number)
{
	const struct gt_thread *thread = gt_threads_at_hand();
	struct gt_open_calls *open = thread != NULL ? gt_threads_open_calls(thread) : NULL;
	const uint64_t place = frame->stub - STUB_CALLS - GRAFTRACE_CALL_LEAVES;

	if (open == NULL)
		return false;
	uint32_t at = __atomic_load_n(&open->count, __ATOMIC_RELAXED);
	if (at > GT_CALLS_OPEN)
		at = GT_CALLS_OPEN;
	while (at-- > 0) {
		if (open->calls[at].sp != frame->registers[RSP] || open->calls[at].place != place)
			continue;
		*number = open->calls[at].number;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		__atomic_store_n(&open->count, at, __ATOMIC_RELAXED);
		return true;
	}
	return false;
}

void gt_syscalls_enter(struct gt_event_frame *frame)
{
	const struct graftrace_syscall *table = table_of();
	const uint64_t number = number_of(frame);
	const bool sets = sets_filter(number, frame);
	const struct graftrace_syscall *call, *any;

	if (table != NULL) {
		any = &table[GRAFTRACE_ARENA_SYSCALLS];
		call = number < GRAFTRACE_ARENA_SYSCALLS ? &table[number] : any;
		if (any->enter != 0 && gt_events_begin(any->enter))
			record_enter(frame, any);
		if (call != any && call->enter != 0 && gt_events_begin(call->enter))
			record_enter(frame, call);
		if ((any->exit | call->exit) != 0 && !sets)
			note(frame);
	}
	gt_hooks_call(number & ~(uint64_t)X32_BIT, frame->registers[RDI], frame->registers[RSI],
		      frame->registers[RDX]);
	if (sets)
		forget_notes();
	if (sets || leaves_alone(number, frame))
		frame->stub += GRAFTRACE_CALL_TWICE - STUB_CALLS;
}

void gt_syscalls_leave(const struct gt_event_frame *frame)
{
	const struct graftrace_syscall *table = table_of();
	const struct graftrace_syscall *call, *any;
	uint64_t number;

	if (table == NULL || !take_note(frame, &number))
		return;
	any = &table[GRAFTRACE_ARENA_SYSCALLS];
	call = number < GRAFTRACE_ARENA_SYSCALLS ? &table[number] : any;
	if (call != any && call->exit != 0 && gt_events_begin(call->exit))
		record_leave(call->exit, number, frame, call);
	if (any->exit != 0 && gt_events_begin(any->exit))
		record_leave(any->exit, number, frame, any);
}
