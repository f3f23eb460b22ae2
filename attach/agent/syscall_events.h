/* SPDX-License-Identifier: MIT */
/*
 * Events of system calls: Linux's names and fields, as its `events/syscalls` and `events/raw_syscalls` have
 * them, and behind them the texts and bytes that arguments lead to ("__filename_val", as Linux has from 6.19 on).
 */
#ifndef GT_ATTACH_AGENT_SYSCALL_EVENTS_H
#define GT_ATTACH_AGENT_SYSCALL_EVENTS_H

#include "attach/agent/catalog.h"

/* A call, as it is known. */
struct gt_syscall {
	uint16_t number;
	uint8_t argument_count;
	uint8_t text[2]; /* argument + 1 that is a text, 0: none */
	uint8_t data;	 /* … that is the address of bytes … */
	uint8_t data_bytes;
	const char *call; /* its name for programs */
	const char *enter;
	const char *exit;
	const char *behind[3]; /* names of fields: texts, then bytes */
	struct {
		const char *type;
		const char *name;
	} arguments[6];
};

/* Sorted by number. */
extern const struct gt_syscall gt_syscall_table[];
extern const uint32_t gt_syscall_count;

/* Events: two a call of the table, before and behind it, and two of all calls last. */
uint32_t gt_syscall_event_count(void);
/* Which call event `index` is of; NULL: of all. */
const struct gt_syscall *gt_syscall_of_event(uint32_t index);
static inline bool gt_syscall_event_is_exit(uint32_t index)
{
	return index & 1;
}

/* Its system and name. */
const char *gt_syscall_event_name(uint32_t index, const char **system);

/* The numbers of their events in records: the first one's; index 0 … count - 1 follow. Taken at the
 * first call. */
uint32_t gt_syscall_events_first(struct gt_catalog *catalog);
/* Of event `index`; its strings are constant. */
void gt_syscall_event_describe(const struct gt_catalog *catalog, uint32_t index,
			       struct gt_event_format *event);

#endif
