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
/* Where the straight lines have distances to what does not move with them: offsets, up to a 0. */
extern const uint16_t gt_hot_line_far[] HIDDEN;
extern const char gt_glue_entry[] HIDDEN, gt_glue_exit[] HIDDEN, gt_glue_hook[] HIDDEN,
	gt_glue_event[] HIDDEN;

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
	gt_hot_region.entry_slow = (uint64_t)gt_glue_entry;
	gt_hot_region.exit_slow = (uint64_t)gt_glue_exit;
	gt_hot_region.hook_slow = (uint64_t)gt_glue_hook;
	gt_hot_stubs[0] = first;
	gt_hot_stubs[1] = bytes;
}

void gt_arch_stub_head_write(uint8_t bytes[GT_STUB_HEAD], uint64_t at)
{
	const uint8_t *line = (const uint8_t *)gt_hot_entry;
	for (int i = 0; i < GT_STUB_HEAD; i++)
		bytes[i] = line[i];
	for (const uint16_t *far = gt_hot_line_far; *far != 0; far++) {
		uint32_t distance = 0;
		for (int i = 3; i >= 0; i--)
			distance = distance << 8 | bytes[*far + i];
		put_32(&bytes[*far], distance + (uint64_t)line - at);
	}
}

bool gt_arch_is_stub_head(uint64_t address)
{
	uint64_t offset = address - gt_hot_stubs[0];
	return offset < gt_hot_stubs[1] && offset % GT_STUB_PAGE < GT_STUB_HEAD;
}

enum { REX_B = 0x41, POP_R10 = 0x5a, CALL = 0xe8, JUMP = 0xe9, REX_W = 0x48, MOV_TO_RCX = 0xb9 };

void gt_arch_stub_write(uint8_t bytes[GT_STUB_BYTES], uint64_t at, uint32_t number,
			enum graftrace_entry kind, uint64_t body)
{
	const char *entry = kind == GRAFTRACE_ENTRY_ROOT      ? gt_hot_entry_root
			    : kind == GRAFTRACE_ENTRY_ONLY    ? gt_hot_entry_only
			    : kind == GRAFTRACE_ENTRY_NOTRACE ? gt_hot_entry_notrace
			    : kind == GRAFTRACE_ENTRY_SILENT  ? gt_hot_entry_silent
			    : kind == GRAFTRACE_ENTRY_TRIGGER ? gt_hot_entry_trigger
							      : gt_hot_entry;
	/* the page's own lines */
	const uint64_t head = at - (at - gt_hot_stubs[0]) % GT_STUB_PAGE;
	uint64_t entry_at = entry == gt_hot_entry ? head : (uint64_t)entry;
	uint64_t exit_at = head + (uint64_t)(gt_hot_exit - gt_hot_entry);
	if (gt_arch_is_apart) {
		entry_at = (uint64_t)twin_of(entry);
		exit_at = (uint64_t)twin_of(gt_hot_exit);
	}
	/* hot_kernel.S has the picture */
	for (int i = 0; i < GT_STUB_BYTES; i++)
		bytes[i] = 0xcc;
	put_32(&bytes[GT_STUB_WORD], 0);
	put_32(&bytes[GT_STUB_WORD + 4], (uint64_t)number << 1);
	bytes[GT_STUB_START] = REX_B;
	bytes[GT_STUB_START + 1] = POP_R10;
	bytes[GT_STUB_START + 2] = CALL;
	put_32(&bytes[GT_STUB_START + 3], entry_at - (at + GT_STUB_RETURN));
	bytes[GT_STUB_RETURN] = REX_W;
	bytes[GT_STUB_RETURN + 1] = MOV_TO_RCX;
	put_32(&bytes[GT_STUB_RETURN + 2], 0);
	put_32(&bytes[GT_STUB_RETURN + 6], (uint64_t)number << 1 | 1);
	bytes[GT_STUB_RETURN + 10] = JUMP;
	put_32(&bytes[GT_STUB_RETURN + 11], exit_at - (at + GT_STUB_UNTRACED));
	bytes[GT_STUB_UNTRACED] = JUMP;
	put_32(&bytes[GT_STUB_UNTRACED + 1], body - (at + GT_STUB_BODY));
	put_32(&bytes[GT_STUB_BODY], body);
	put_32(&bytes[GT_STUB_BODY + 4], body >> 32);
}

void gt_arch_probe_stub_write(uint8_t bytes[GT_PROBE_STUB_BYTES], uint64_t at, uint64_t next)
{
	for (int i = 0; i < GT_PROBE_STUB_BYTES; i++)
		bytes[i] = 0xcc;
	bytes[0] = CALL;
	put_32(&bytes[1], (uint64_t)gt_glue_event - (at + GT_PROBE_STUB_CALLED));
	bytes[GT_PROBE_STUB_CALLED] = JUMP;
	put_32(&bytes[GT_PROBE_STUB_CALLED + 1], next - (at + GT_PROBE_STUB_CALLED + 5));
}

void gt_arch_site_jump(uint8_t bytes[GT_SITE_BYTES], uint64_t site, uint64_t stub)
{
	bytes[0] = JUMP;
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
