/* SPDX-License-Identifier: MIT */
/*
 * Stubs and entries of a kernel's functions, as bytes: what graftrace/agent.h describes, made
 * inside the target. Nothing is written here; the caller puts the bytes where they belong.
 */
#include <graftrace/agent.h>
#include "core/record/arch.h"

/* In hot.S; hidden, so that their addresses need no table. */
#define HIDDEN __attribute__((visibility("hidden")))
extern const char gt_hot_entry[] HIDDEN, gt_hot_entry_root[] HIDDEN, gt_hot_entry_only[] HIDDEN,
	gt_hot_entry_notrace[] HIDDEN, gt_hot_entry_trigger[] HIDDEN, gt_hot_entry_silent[] HIDDEN,
	gt_hot_exit[] HIDDEN;
extern const char gt_glue_entry[] HIDDEN, gt_glue_exit[] HIDDEN, gt_glue_hook[] HIDDEN;

/* What hot.S reads: the one region, and (to know a return point) the list of them. */
struct graftrace_region gt_hot_region HIDDEN;
static struct graftrace_agent_state state;

_Static_assert(GT_STUB_BYTES == GRAFTRACE_STUB_BYTES, "one length of stubs");

static void put_32(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

void gt_arch_stubs_at(uint64_t first, uint64_t bytes)
{
	gt_hot_region.bias = first + GT_SITE_BYTES - GT_STUB_BYTES;
	gt_hot_region.entry_slow = (uint64_t)gt_glue_entry;
	gt_hot_region.exit_slow = (uint64_t)gt_glue_exit;
	gt_hot_region.hook_slow = (uint64_t)gt_glue_hook;
	gt_hot_region.state = (uint64_t)&state;
	state.regions[0].start = first;
	state.regions[0].bytes = bytes;
	state.region_count = 1;
}

void gt_arch_stub_write(uint8_t bytes[GT_STUB_BYTES], uint64_t at, uint32_t number,
			enum gt_stub_kind kind, uint64_t body)
{
	const char *entry = kind == GT_STUB_ROOT	 ? gt_hot_entry_root
			    : kind == GT_STUB_ENTRY_ONLY ? gt_hot_entry_only
			    : kind == GT_STUB_NOTRACE	 ? gt_hot_entry_notrace
			    : kind == GT_STUB_SILENT	 ? gt_hot_entry_silent
			    : kind == GT_STUB_TRIGGER	 ? gt_hot_entry_trigger
							 : gt_hot_entry;
	static const uint8_t shape[GT_STUB_BYTES] = {
		0xe8, 0,    0,	  0,	0,	    /* call entry */
		0x0f, 0x82, 0,	  0,	0,    0,    /* jc body */
		0x48, 0x8d, 0x64, 0x24, 0x08,	    /* lea 8(%rsp),%rsp */
		0xe8, 0,    0,	  0,	0,	    /* call body */
		0x68, 0,    0,	  0,	0,	    /* push $(number << 1 | 1) */
		0xe9, 0,    0,	  0,	0,    0xcc, /* jmp exit */
	};
	for (int i = 0; i < GT_STUB_BYTES; i++)
		bytes[i] = shape[i];
	put_32(&bytes[1], (uint64_t)entry - (at + 5));
	put_32(&bytes[7], body - (at + 11));
	put_32(&bytes[17], body - (at + 21));
	put_32(&bytes[22], (uint64_t)number << 1 | 1);
	put_32(&bytes[27], (uint64_t)gt_hot_exit - (at + 31));
}

void gt_arch_site_jump(uint8_t bytes[GT_SITE_BYTES], uint64_t site, uint64_t stub)
{
	bytes[0] = 0xe9;
	put_32(&bytes[1], stub - (site + GT_SITE_BYTES));
}

void gt_arch_site_nop(uint8_t bytes[GT_SITE_BYTES])
{
	static const uint8_t nop[GT_SITE_BYTES] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	for (int i = 0; i < GT_SITE_BYTES; i++)
		bytes[i] = nop[i];
}

bool gt_arch_site_is_room(const uint8_t bytes[GT_SITE_BYTES])
{
	bool nops = true;
	for (int i = 0; i < GT_SITE_BYTES; i++)
		nops = nops && bytes[i] == 0x90;
	/* one of five bytes, whatever address it pretends to use */
	return nops || (bytes[0] == 0x0f && bytes[1] == 0x1f && bytes[2] == 0x44);
}
