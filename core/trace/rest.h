/* SPDX-License-Identifier: MIT */
/*
 * The event graftrace:off_cpu: a thread runs again; why it was off the CPU, and how long it waited for one.
 * Who reads Linux's switches and wake-ups writes it (linux/records.c). Freestanding; records are hostile.
 */
#ifndef GT_CORE_TRACE_REST_H
#define GT_CORE_TRACE_REST_H

#include <stdbool.h>
#include <stdint.h>
#include "core/trace/decode.h"
#include "core/trace/event.h"

struct gt_rest {
	bool preempted; /* it could run all the time, and was not woken: the waker's fields are 0 */
	bool by_interrupt;  /* an interrupt woke it, in the thread that is called the waker */
	uint64_t slept_ns;  /* until it was woken */
	uint64_t waited_ns; /* for a CPU, since it could run */
	uint32_t waker_tid;
	uint32_t waker_bytes;
	const char *waker; /* its name, not NUL-terminated */
};

/* The event's description, with that number. The strings are static. */
void gt_rest_format(uint32_t number, struct gt_event_format *format);

/* What follows the event's first two words in a record (GRAFTRACE_EVENT_PROBE). Returns how many words; a
 * name of more than GT_REST_WAKER_MAX bytes is cut. */
#define GT_REST_WAKER_MAX 20
#define GT_REST_WORDS	  9
uint32_t gt_rest_words(const struct gt_rest *rest, uint64_t words[GT_REST_WORDS]);

/* Takes an event's record apart; the name is in the record. False: it is another event. */
bool gt_rest_read(const struct gt_event_format *format, const struct gt_record *record,
		  struct gt_rest *rest);

#endif
