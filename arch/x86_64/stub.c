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

/* In hot_apart.S. */
extern const char gt_apart_entry[] HIDDEN, gt_apart_entry_root[] HIDDEN,
	gt_apart_entry_only[] HIDDEN, gt_apart_entry_notrace[] HIDDEN,
	gt_apart_entry_trigger[] HIDDEN, gt_apart_entry_silent[] HIDDEN, gt_apart_exit[] HIDDEN;

/* glue.S reads it. */
uint8_t gt_arch_is_apart HIDDEN;

static const char *twin_of(const char *hot)
{
	return hot == gt_hot_entry	     ? gt_apart_entry
	       : hot == gt_hot_entry_root    ? gt_apart_entry_root
	       : hot == gt_hot_entry_only    ? gt_apart_entry_only
	       : hot == gt_hot_entry_notrace ? gt_apart_entry_notrace
	       : hot == gt_hot_entry_trigger ? gt_apart_entry_trigger
	       : hot == gt_hot_entry_silent  ? gt_apart_entry_silent
					     : gt_apart_exit;
}

/* What hot.S reads: the one region, and (to know a return point) where stubs begin, and their
 * bytes. */
struct graftrace_region gt_hot_region HIDDEN;
uint64_t gt_hot_stubs[2] HIDDEN = { ~0ull, 0 };

void gt_arch_clocks_apart(void)
{
	gt_arch_is_apart = 1;
}

static void put_32(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

void gt_arch_stubs_at(uint64_t first, uint64_t bytes)
{
	/* the return point of function 0, if there were one */
	gt_hot_region.bias = first + GT_STUB_RETURN - GT_STUB_BYTES;
	gt_hot_region.entry_slow = (uint64_t)gt_glue_entry;
	gt_hot_region.exit_slow = (uint64_t)gt_glue_exit;
	gt_hot_region.hook_slow = (uint64_t)gt_glue_hook;
	gt_hot_stubs[0] = first;
	gt_hot_stubs[1] = bytes;
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
	/* hot_kernel.S has the picture */
	static const uint8_t shape[GT_STUB_BYTES] = {
		0,    0,    0, 0, 0, 0, 0, 0,	    /* the entry's word */
		0xe8, 0,    0, 0, 0,		    /* call entry */
		0xe8, 0,    0, 0, 0,		    /* call body */
		0x48, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0, /* movabs $word, %rcx */
		0xe9, 0,    0, 0, 0,		    /* jmp exit */
		0xe9, 0,    0, 0, 0,		    /* jmp body */
		0xcc, 0xcc,
	};
	for (int i = 0; i < GT_STUB_BYTES; i++)
		bytes[i] = shape[i];
	const char *exit = gt_hot_exit;
	if (gt_arch_is_apart) {
		entry = twin_of(entry);
		exit = twin_of(exit);
	}
	put_32(&bytes[4], (uint64_t)number << 1);
	put_32(&bytes[9], (uint64_t)entry - (at + 13));
	put_32(&bytes[14], body - (at + 18));
	put_32(&bytes[24], (uint64_t)number << 1 | 1);
	put_32(&bytes[29], (uint64_t)exit - (at + 33));
	put_32(&bytes[34], body - (at + 38));
}

void gt_arch_site_jump(uint8_t bytes[GT_SITE_BYTES], uint64_t site, uint64_t stub)
{
	bytes[0] = 0xe9;
	put_32(&bytes[1], stub + GT_STUB_START - (site + GT_SITE_BYTES));
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
