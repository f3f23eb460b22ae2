/* SPDX-License-Identifier: MIT */
/*
 * Dynamic probes of a kernel, in its own text: at the entries of its functions and at their returns; inside them by
 * kernel_place.h. Changed in batches,
 * while every other CPU stands still, as the rest of the table of sites.
 *
 *	entry		jmp P			in the room that the compiler left (sites.h)
 *	P + 0		call gt_glue_event	which calls gt_agent_event (kernel_probe.c)
 *	P + 5		jmp			to the function's stub, where the function is traced; else to its body
 *
 * A return is taken by the slot: at the entry, before the function's stub looks at it, the slot's address is exchanged
 * for gt_arch_probe_return, which knows by the slot where to return to. So a call that is traced, too, returns through its
 * stub first, and whoever asks the stub's mirror is told gt_arch_probe_return. Where a traced call has jumped to the
 * function, the slot is that call's, and the mirror's address is exchanged.
 */
#ifndef GT_CORE_RECORD_KERNEL_PROBE_H
#define GT_CORE_RECORD_KERNEL_PROBE_H

#include <graftrace/probe_kernel.h>
#include "core/record/sites.h"

/* Of the stubs of so many functions' probes. */
static inline uint64_t gt_probes_stub_bytes(uint32_t count)
{
	return (uint64_t)count * GT_PROBE_STUB_BYTES;
}

/*
 * At boot, after gt_sites_init: this kernel can have probes. stubs: gt_probes_stub_bytes(sites->count) of executable
 * memory within 2 GB of the text; places, patched: one for each function, zero; all of them stay the table's.
 */
void gt_probes_init(struct gt_sites *sites, uint64_t stubs, struct graftrace_kernel_probe **places,
		    uint8_t *patched);

/*
 * Makes the kernel's text what `wanted` of these probes says, in one batch; on: false: none is wanted. From one CPU at a
 * time. On return no CPU uses a probe that is not among them. Probes of one place happen in this order. Calls that are
 * open return to where they came from whatever is wanted then.
 */
void gt_probes_apply(struct gt_sites *sites, struct graftrace_kernel_probe *const *probes,
		     uint32_t count, bool on);

/* The real return address that belongs to a slot with `value` in it: `value` where no probe has taken it. From
 * anywhere. */
uint64_t gt_probes_return_address(uint64_t slot, uint64_t value);

#endif
