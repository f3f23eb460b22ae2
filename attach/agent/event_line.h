/* SPDX-License-Identifier: MIT */
/*
 * The straight line of an event whose fields are numbers at hand: in registers, constants, or near the stack
 * pointer. Code that is made for the one place, since no general routine knows where its fields are: the nop
 * leads here, not to the probe's stub (struct graftrace_event_line). Pure computation.
 */
#ifndef GT_ATTACH_EVENT_LINE_H
#define GT_ATTACH_EVENT_LINE_H

#include <stdbool.h>
#include <graftrace/agent.h>
#include "attach/agent/region.h"

#define GT_EVENT_LINE_MAX 512

struct gt_event_line {
	uint8_t bytes[GT_EVENT_LINE_MAX]; /* struct graftrace_event_line, then the code */
	uint32_t used;
	uint32_t below_end; /* the stack pointer is lowered from GRAFTRACE_LINE_BELOW to here */
};

/*
 * arguments: [count], as the agent is told of them. stub: the probe's stub, which does it all where the line
 * cannot. body: where the program goes on. at: where the line will stand. False: the fields are not all at hand, or
 * something is too far away.
 */
bool gt_event_line(const struct gt_region *region, const struct graftrace_agent_image *header,
		   uint64_t at, uint64_t stub, uint64_t body, uint32_t event,
		   const struct graftrace_probe_argument *arguments, uint32_t count,
		   struct gt_event_line *line);

/* Words that the event's record has. */
uint32_t gt_event_line_words(uint32_t count);

/* Of the bytes [from, from + GRAFTRACE_PLACES_BYTES) of a line: as gt_places_of_probe(). */
void gt_places_of_line(const struct gt_event_line *line, uint32_t from,
		       uint8_t at[GRAFTRACE_PLACES_BYTES]);

#endif
