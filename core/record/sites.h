/* SPDX-License-Identifier: MIT */
/*
 * The functions of a kernel: their entries, where the compiler left room (`-fpatchable-function-
 * entry=5`), their stubs, and which of them are traced. The kernel's own patcher of text: one
 * table, changed in batches while every other CPU stands still.
 *
 * Function numbers are places in the table of entries, from 1.
 */
#ifndef GT_CORE_RECORD_SITES_H
#define GT_CORE_RECORD_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/arena.h>
#include <graftrace/event_kernel.h>
#include "core/record/layout.h"

struct graftrace_kernel_probe;

struct gt_sites {
	const uint64_t *entries; /* addresses of the room, in ascending order */
	uint8_t *states;	 /* enum graftrace_entry of each */
	uint32_t count;
	uint64_t stubs; /* gt_sites_stub_bytes of executable memory within 2 GB of the text */
	/* static events (graftrace/event_kernel.h): their places, and each event by its number */
	const struct graftrace_event_site *event_sites;
	uint32_t event_site_count;
	uint32_t event_count;
	struct graftrace_kernel_event **events;
	uint8_t *event_states; /* of each: is it on? */
	/* dynamic probes (kernel_probe.h): the stubs of the functions' probes, the first probe of each function,
	 * and whether its entry leads there. All 0: there are none. */
	uint64_t probe_stubs;
	struct graftrace_kernel_probe **probes;
	uint8_t *probed;
};

/* Of the stubs of so many functions. They begin at a page. */
static inline uint64_t gt_sites_stub_bytes(uint32_t count)
{
	return ((uint64_t)count + GT_STUBS_A_PAGE - 1) / GT_STUBS_A_PAGE * GT_STUB_PAGE;
}

/*
 * At boot, on the only CPU that runs, interrupts off: puts the entries in order, makes the stubs,
 * and one instruction of what may be five at each entry. `entries` and `states` (a byte each) stay
 * the table's. Nothing is traced yet.
 */
void gt_sites_init(struct gt_sites *sites, uint64_t *entries, uint8_t *states, uint32_t count,
		   uint64_t stubs);

/* Makes all stubs anew, for gt_arch_clocks_apart. As gt_sites_init, or with all other CPUs stopped.
 */
void gt_sites_rewrite(struct gt_sites *sites);

/* Writes what stands at the entry of function `index`, counted from 0: for kernel_probe.c, while all other CPUs stand
 * still. */
void gt_sites_write(const struct gt_sites *sites, uint32_t index);

/* Makes every entry what `wanted` (a byte each; GRAFTRACE_ENTRY_NEVER ones stay) says, in one batch. From
 * one CPU at a time. Returns how many were changed. */
uint32_t gt_sites_apply(struct gt_sites *sites, const uint8_t *wanted);

/*
 * At boot, at any time: takes the kernel's section __graftrace_events and gives each event its
 * number, from 1 in the order of systems and names; places of one name have one number. `events` and
 * `states` (one an event, at most `count`) stay the table's. All are off.
 */
void gt_sites_events_init(struct gt_sites *sites, const struct graftrace_event_site *rows,
			  uint32_t count, struct graftrace_kernel_event **events, uint8_t *states);

/* Switches every event to what `wanted` (a byte each, by number - 1; 0: off) says, as
 * gt_sites_apply does. Returns how many places were changed. */
uint32_t gt_sites_apply_events(struct gt_sites *sites, const uint8_t *wanted);

/* Event `number`, NULL: there is none. */
static inline struct graftrace_kernel_event *gt_sites_event(const struct gt_sites *sites,
							    uint32_t number)
{
	return number - 1 < sites->event_count ? sites->events[number - 1] : NULL;
}

/* The address of function `number`, 0: there is none. */
static inline uint64_t gt_sites_address(const struct gt_sites *sites, uint32_t number)
{
	return number - 1 < sites->count ? sites->entries[number - 1] : 0;
}

/* Does an address lie among the stubs? What port.h's gt_port_is_stub_return asks. */
bool gt_sites_is_stub_return(const struct gt_sites *sites, uint64_t address);

#endif
