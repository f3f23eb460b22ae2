/* SPDX-License-Identifier: MIT */
/*
 * Which instruction of the program each byte of moved code stands for: what unwinders are told of it
 * (struct graftrace_places). Pure computation.
 */
#ifndef GT_ATTACH_PLACES_H
#define GT_ATTACH_PLACES_H

#include <graftrace/agent.h>
#include "attach/plan/plan.h"

/* Of the bytes [from, from + 16) of an entry's moved code, `from` being a multiple of 16. at[i]: what is
 * to be added to the result, an address of the object's, and GRAFTRACE_PLACES_PUSHED. map: of
 * gt_plan_move(). */
uint64_t gt_places_of_moved(const struct gt_plan *plan, const struct gt_plan_entry *entry,
			    const struct gt_plan_map *map, uint32_t from,
			    uint8_t at[GRAFTRACE_PLACES_BYTES]);

/* The same of a hook's stub (gt_region_hook_stub()): it stands for the hooked function's first byte. */
void gt_places_of_hook(uint32_t from, uint8_t at[GRAFTRACE_PLACES_BYTES]);
/* And of a probe's (gt_region_probe_stub()): for the probe's nop. */
void gt_places_of_probe(uint32_t from, uint8_t at[GRAFTRACE_PLACES_BYTES]);

#endif
