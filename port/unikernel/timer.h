/* SPDX-License-Identifier: MIT */
/* One-shot timers of each processor, and the end of a thread's turn. */
#ifndef PORT_UNIKERNEL_TIMER_H
#define PORT_UNIKERNEL_TIMER_H

#include <stdint.h>
#include "port/unikernel/list.h"

/* Never: a deadline that is not waited for. */
#define TIMER_NEVER (~0ull)

struct timer {
	struct list link;
	uint64_t deadline; /* clock_ns() */
	/* Called by the timer interrupt, on the processor that started it. */
	void (*expired)(struct timer *timer);
	uint32_t cpu;	 /* where it runs + 1; 0: it does not */
	uint32_t firing; /* `expired` is being called */
};

void timer_init(void); /* the interrupt, once */
/* Starts a timer that is not running. Interrupts off. */
void timer_start(struct timer *timer);
/* Stops it; on return `expired` is not running and will not be called. Not from `expired`. */
void timer_stop(struct timer *timer);
/* The turn of this processor's thread ends so many nanoseconds from now (0: it has no end).
 * Interrupts off. */
void timer_set_turn(uint64_t nanoseconds);

#endif
