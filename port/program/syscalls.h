/* SPDX-License-Identifier: MIT */
/*
 * System calls of the program, at its own `syscall` instructions (doc/design/syscalls.md), and what
 * recording them shares with probes (events.c).
 */
#ifndef GT_PORT_PROGRAM_SYSCALLS_H
#define GT_PORT_PROGRAM_SYSCALLS_H

#include "core/record/event.h"
#include "port/program/agent.h"

/* The stubs before a call, and behind it. */
void gt_syscalls_enter(struct gt_event_frame *frame);
void gt_syscalls_leave(const struct gt_event_frame *frame);

/* Calls that a thread is in: a handler may have interrupted one with others of its own. Found again by
 * the stack pointer and the place, the newest first. Those that were left by a jump stay, until newer
 * ones need their room. */
#define GT_CALLS_OPEN 8
struct gt_open_calls {
	uint32_t count;
	uint32_t unused;
	struct {
		uint64_t sp;
		uint64_t place;
		uint64_t number;
	} calls[GT_CALLS_OPEN];
};

/* threads.c: of a block, NULL: it is of no thread of ours. */
struct gt_open_calls *gt_threads_open_calls(const struct gt_thread *thread);

/* hooks.c: what a call by number does to us, before it is made: it may set a filter, or take a register. */
void gt_hooks_call(uint64_t number, uint64_t first, uint64_t second, uint64_t third);

/* events.c: the bytes at `address`, which may not be mapped: false. sp: the thread's. */
bool gt_events_fetch(uint64_t address, void *out, uint64_t bytes, uint64_t sp);
/* The text at `address`, its zero byte included, at most `room`; 0: none can be read. */
uint32_t gt_events_copy_text(uint64_t address, char *out, uint32_t room, uint64_t sp);
/* Whether an event of this number may be recorded now: whether to gather it. */
bool gt_events_begin(uint32_t number);
void gt_events_finish(const struct gt_event *event);

#endif
