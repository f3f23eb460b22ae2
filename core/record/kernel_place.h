/* SPDX-License-Identifier: MIT */
/*
 * Places inside a kernel's functions that probes take (kernel_probe.h). The first byte of the instruction there becomes a
 * trap, and the kernel's handler of breakpoints lets the CPU go on in the place's cell:
 *
 *	place		int3			and the rest of the instruction
 *	cell + 0	call gt_glue_event	which calls gt_agent_event (kernel_probe.c)
 *	cell + 5	the instruction, moved, and a jump to what stands behind it
 *
 * So the handler changes an address and nothing else: what happens happens in the cell, with the place's registers and
 * its interrupts, and may be interrupted, also for ever. A cell stays its place's for ever, therefore, and a trap leads to
 * it whether probes are there or not. Lists change while every CPU stands still, as all of kernel_probe.h.
 */
#ifndef GT_CORE_RECORD_KERNEL_PLACE_H
#define GT_CORE_RECORD_KERNEL_PLACE_H

#include <graftrace/probe_kernel.h>
#include "core/record/sites.h"

/* A place. It is never given back. */
struct gt_place {
	uint64_t address;		      /* 0: free; written last */
	struct graftrace_kernel_probe *first; /* the probes there; NULL: none */
	uint8_t bytes;			      /* of its instruction */
	uint8_t original;		      /* the first of them */
	bool is_made;			      /* the cell was written */
	bool is_set;			      /* the trap is there */
};

/*
 * At boot, after gt_probes_init: there can be probes inside functions. cells: count * GT_PLACE_BYTES of executable memory
 * within 2 GB of the text; places: count of them, zero; both stay.
 */
void gt_places_init(struct gt_sites *sites, uint64_t cells, struct gt_place *places,
		    uint32_t count);

/*
 * Finds or makes the place at `address` inside the function whose code is [start, end); *place gets what the field of
 * graftrace_kernel_probe wants. Nothing is patched. From one thread at a time, none of which patches meanwhile.
 */
enum graftrace_kernel_place gt_places_find(uint64_t start, uint64_t end, uint64_t address,
					   uint32_t *place);

/* A breakpoint was met at that address: where the CPU goes on with the same registers, 0: it is no place's. From the
 * kernel's handler, interrupts off, on any stack. What goes on there may be in the middle of an NMI's handler: go there
 * without iretq, which would let the next NMI in. */
uint64_t gt_places_trap(uint64_t address);

/* The place that an address in a cell stands for; other addresses as they are. For reports of where a CPU is. */
uint64_t gt_places_origin(uint64_t address);

/* The byte of text that stands at the address when no trap does. */
uint8_t gt_places_byte(uint64_t address);

/* ---- for kernel_probe.c ---- */

/* Where the list of the place's probes begins. */
struct graftrace_kernel_probe **gt_places_list(uint32_t place);
/* Of the cell from which gt_glue_event was called with that return address; NULL: from no cell. */
const struct gt_place *gt_places_of_cell(uint64_t stub);
/* While all other CPUs stand still: no place has probes; and: traps are where probes are. */
void gt_places_clear(void);
void gt_places_write(void);

#endif
