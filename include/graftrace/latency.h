/* SPDX-License-Identifier: MIT */
/*
 * A latency of a kernel: a time in which interrupts, or preemption, were off on a CPU. What the
 * recorder measures (core/record/latency.h) and the control files show.
 */
#ifndef GRAFTRACE_LATENCY_H
#define GRAFTRACE_LATENCY_H

#include <stdint.h>

#define GRAFTRACE_LATENCY_IRQS	  1u
#define GRAFTRACE_LATENCY_PREEMPT 2u

/* What an event of the system preemptirq is wanted for (gt_sites_apply_events): to be recorded, and to
 * be measured with. */
#define GRAFTRACE_EVENT_RECORDED 1u
#define GRAFTRACE_EVENT_MEASURED 2u
#define GRAFTRACE_EVENT_ACTS \
	4u /* … and it has triggers, which act also while nothing is recorded */

/* Where it began, or ended. */
struct graftrace_latency_edge {
	uint64_t clock;	  /* full tsc */
	uint64_t address; /* in the function that did it */
	uint64_t caller;  /* where that one returns to */
	uint32_t state;	  /* GRAFTRACE_STATE_… */
	uint32_t reserved;
};

struct graftrace_latency {
	uint32_t number; /* of worst cases since the measuring began, this one included; 0: none */
	uint32_t cpu;
	uint32_t tid;
	uint32_t reserved;
	struct graftrace_latency_edge from, to;
};

#endif
