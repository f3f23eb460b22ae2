/* SPDX-License-Identifier: MIT */
/*
 * A dynamic probe of a kernel that embeds the core (doc/porting.md): what the control files tell the recorder of it. C11
 * and C++17.
 */
#ifndef GRAFTRACE_PROBE_KERNEL_H
#define GRAFTRACE_PROBE_KERNEL_H

#include <stdint.h>
#include <graftrace/agent.h>

/* Whether a place inside a function can have a probe. */
enum graftrace_kernel_place {
	GRAFTRACE_KERNEL_PLACE_OK = 0,
	GRAFTRACE_KERNEL_PLACE_BOUNDARY, /* no instruction begins there */
	GRAFTRACE_KERNEL_PLACE_UNKNOWN, /* an instruction there, or before it in its function, is not known */
	GRAFTRACE_KERNEL_PLACE_UNMOVABLE, /* its instruction works where it is only */
	GRAFTRACE_KERNEL_PLACE_PATCHED,	  /* it is a static event's */
	GRAFTRACE_KERNEL_PLACE_FULL,	  /* the kernel's room for places is used up */
};

struct graftrace_kernel_probe {
	struct graftrace_kernel_probe *next; /* at the same place: the recorder's */
	uint64_t address;		     /* of the place */
	uint32_t function;		     /* its function's number */
	uint32_t
		wanted; /* how the event is wanted (GRAFTRACE_EVENT_…), 0: off; the control files' */
	uint32_t
		max_active; /* of a return: calls of the function that may be open at once, 0: any number */
	uint32_t
		place; /* inside its function: which one, as the recorder has said it; 0: its entry, or returns */
	/* Written by the recorder: how often it happened, recorded or not, and how often it did not because the recorder
	 * was at work or too many calls were open. */
	uint64_t hits;
	uint64_t missed;
	const struct graftrace_probe *fetch; /* its event, and its arguments */
};

#endif
