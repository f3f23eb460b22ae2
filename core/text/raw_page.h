/* SPDX-License-Identifier: MIT */
/*
 * Pages of Linux's ring buffer, as per_cpu/cpuN/trace_pipe_raw gives them and trace.dat keeps them:
 * 4096 bytes, a time stamp, how many bytes follow, and events with the time since the one before.
 * What a page means is in events/header_page and events/header_event; what the events mean in
 * events/ftrace/NAME/format (control_raw.c has all of them). Little-endian, longs of 8 bytes.
 *
 * Reading programs: libtraceevent's kbuffer, trace-cmd, KernelShark. Layout:
 * include/linux/ring_buffer.h and kernel/trace/ring_buffer.c of Linux 6.1.
 *
 * Freestanding, reentrant, allocates nothing.
 */
#ifndef GT_CORE_TEXT_RAW_PAGE_H
#define GT_CORE_TEXT_RAW_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_RAW_PAGE_BYTES   4096
#define GT_RAW_HEADER_BYTES 16
#define GT_RAW_ROOM_BYTES   (GT_RAW_PAGE_BYTES - GT_RAW_HEADER_BYTES)
/* The longest event that fits into an empty page; its own header, of 8 bytes, comes in front of it. */
#define GT_RAW_EVENT_BYTES_MAX (GT_RAW_ROOM_BYTES - 8)

/* Events of Linux 6.1's enum trace_type. */
enum gt_raw_type {
	GT_RAW_FUNCTION = 1,
	GT_RAW_SWITCH = 2,
	GT_RAW_STACK = 4,
	GT_RAW_PRINT = 5,
	GT_RAW_GRAPH_EXIT = 10,
	GT_RAW_GRAPH_ENTRY = 11,
	GT_RAW_SCHED_SWITCH = 316, /* an event: the number is ours to choose */
};

/* In front of every event. */
struct gt_raw_common {
	uint16_t type; /* enum gt_raw_type */
	uint8_t flags;
	uint8_t preempt_count;
	int32_t pid; /* of the thread */
};

struct gt_raw_function {
	struct gt_raw_common common;
	uint64_t ip;
	uint64_t parent_ip;
};

struct gt_raw_switch {
	struct gt_raw_common common;
	uint32_t prev_pid, next_pid, next_cpu;
	uint8_t prev_prio, prev_state, next_prio, next_state;
};

struct gt_raw_sched_switch {
	struct gt_raw_common common;
	char prev_comm[16];
	int32_t prev_pid, prev_prio;
	int64_t prev_state;
	char next_comm[16];
	int32_t next_pid, next_prio;
};

/* As many callers as there are follow, innermost first, each an address of 8 bytes. */
struct gt_raw_stack {
	struct gt_raw_common common;
	int32_t size; /* how many */
	uint32_t unused;
};

/* The text follows, with a newline and a NUL. */
struct gt_raw_print {
	struct gt_raw_common common;
	uint64_t ip;
};

struct gt_raw_graph_entry {
	struct gt_raw_common common;
	uint64_t func;
	int32_t depth;
} __attribute__((packed));

struct gt_raw_graph_exit {
	struct gt_raw_common common;
	uint64_t func;
	int32_t depth;
	uint32_t overrun;
	uint64_t calltime;
	uint64_t rettime;
};

_Static_assert(sizeof(struct gt_raw_function) == 24, "as events/ftrace/function/format says");
_Static_assert(sizeof(struct gt_raw_switch) == 24, "context_switch");
_Static_assert(sizeof(struct gt_raw_sched_switch) == 64, "sched_switch");
_Static_assert(sizeof(struct gt_raw_stack) == 16, "kernel_stack");
_Static_assert(sizeof(struct gt_raw_print) == 16, "print");
_Static_assert(sizeof(struct gt_raw_graph_entry) == 20, "funcgraph_entry");
_Static_assert(sizeof(struct gt_raw_graph_exit) == 40, "funcgraph_exit");

#define GT_RAW_MISSED_UNKNOWN UINT64_MAX

/* A page that is being filled. */
struct gt_raw_page {
	uint64_t last; /* time of its last event, in the units of the trace's clock */
	uint32_t used; /* bytes behind the header; 0: empty */
	uint8_t bytes[GT_RAW_PAGE_BYTES] __attribute__((aligned(8)));
};

/* Empties it. */
void gt_raw_page_begin(struct gt_raw_page *page);

/* Appends an event. Times do not run backwards: an earlier one than the last is taken for the same.
 * false: there is no room (nothing was changed); never of an empty page if bytes is at most
 * GT_RAW_EVENT_BYTES_MAX. */
bool gt_raw_page_add(struct gt_raw_page *page, uint64_t time, const void *event, uint32_t bytes);

/* Makes page->bytes whole. missed: events that were lost in front of it, 0 none,
 * GT_RAW_MISSED_UNKNOWN some: that is also what a page says that has no 8 bytes left for the number. */
void gt_raw_page_finish(struct gt_raw_page *page, uint64_t missed);

#endif
