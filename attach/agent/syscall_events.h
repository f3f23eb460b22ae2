/* SPDX-License-Identifier: MIT */
/*
 * Events of system calls: Linux's names and fields, as its `events/syscalls` and `events/raw_syscalls` have
 * them, and behind them the texts and bytes that arguments lead to ("__filename_val", as Linux has from 6.19 on).
 * Behind a result stand the bytes that the kernel has written ("__buf_val" of sys_exit_read; Linux has none).
 */
#ifndef GT_ATTACH_AGENT_SYSCALL_EVENTS_H
#define GT_ATTACH_AGENT_SYSCALL_EVENTS_H

#include "attach/agent/catalog.h"

/* A call, as it is known. */
struct gt_syscall {
	uint16_t number;
	uint8_t argument_count;
	uint8_t text[2];  /* argument + 1 that is a text, 0: none */
	const char *call; /* its name for programs */
	const char *enter;
	const char *exit;
	const char *behind[2]; /* names of the texts' fields */
	struct {
		const char *type;
		const char *name;
	} arguments[6];
};

/* Sorted by number. */
extern const struct gt_syscall gt_syscall_table[];
extern const uint32_t gt_syscall_count;

/* Bytes that an argument leads to: a buffer, a structure. argument: + 1, 0: none. bytes: enum
 * graftrace_syscall_bytes. name: of their field. */
struct gt_syscall_bytes {
	uint8_t argument;
	uint8_t bytes;
	const char *name;
};

/* What a call is given (recorded before it), and what it gives back (behind it). */
struct gt_syscall_data {
	uint16_t number;
	struct gt_syscall_bytes in;
	struct gt_syscall_bytes out;
};

/* At most so many are recorded. */
#define GT_SYSCALL_BYTES_MOST 64

/* The bytes that are recorded of the call's arguments; NULL: none. */
const struct gt_syscall_data *gt_syscall_data_of(const struct gt_syscall *call);

/* Events: two a call of the table, before and behind it, and two of all calls last. */
uint32_t gt_syscall_event_count(void);
/* The call to which event `index` belongs; NULL: to all calls. */
const struct gt_syscall *gt_syscall_of_event(uint32_t index);
static inline bool gt_syscall_event_is_exit(uint32_t index)
{
	return index & 1;
}

/* Returns the name of event `index`, and *system: its system; both constant. */
const char *gt_syscall_event_name(uint32_t index, const char **system);

/* The numbers of their events in records: the first one's; index 0 … count - 1 follow. Taken at the
 * first call. */
uint32_t gt_syscall_events_first(struct gt_catalog *catalog);
/* Fills in *event for event `index`; its strings are constant. */
void gt_syscall_event_describe(const struct gt_catalog *catalog, uint32_t index,
			       struct gt_event_format *event);

#endif
