/* SPDX-License-Identifier: MIT */
/*
 * Regions: see region.h. Pure computation.
 *
 * The unwind data. A call that is under way has the stub's return point (stub + 21) in its return
 * slot, and the real return address at slot XOR 1<<46. Seen from the callee's frame the stub is the
 * caller:
 *
 *	slot + 8   stack pointer of the stub's "frame", and of the real caller too
 *	slot       the callee's return address: stub + 21
 *
 * A frame of no size is refused by unwinders, so the stub's is said to have 8 bytes: its CFA is
 * rsp + 8 = slot + 16, the caller's stack pointer is CFA - 8 (a val_offset), and its return address
 * lies at (CFA - 16) XOR 1<<46.
 */
#include "attach/region.h"
#include "attach/process.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

#define PAGE	      4096ull
#define LOW_PREFERRED 0x70000000ull
/* Room left between the code and the region, for libraries that are mapped below it. */
#define DISTANCE    (512ull << 20)
#define LOWEST	    0x10000ull
#define HIGHEST	    0x7fffffffe000ull
#define CALL_RETURN 6 /* offset of the return point in the stub that calls its function */

static uint64_t page_up(uint64_t value)
{
	return (value + PAGE - 1) & ~(PAGE - 1);
}

/* Moved code begins on a page of its own: pages are written as a whole. */
static uint64_t moved_offset(uint32_t stub_room)
{
	return page_up(GRAFTRACE_REGION_STUBS_OFFSET + (uint64_t)stub_room * GRAFTRACE_STUB_BYTES);
}

/* One entry a stub, and room for patches elsewhere and hooks. Only what is used costs memory. */
static uint32_t journal_room(uint32_t stub_room)
{
	return 3 * stub_room + 512;
}

static uint64_t journal_bytes(uint32_t stub_room)
{
	return page_up((uint64_t)journal_room(stub_room) * sizeof(struct graftrace_patch));
}

uint64_t gt_region_bytes(uint32_t stub_room, uint64_t moved_bytes)
{
	return moved_offset(stub_room) + page_up(moved_bytes + GRAFTRACE_STUB_BYTES) +
	       journal_bytes(stub_room);
}

bool gt_region_reaches(const struct gt_region *region, uint64_t low, uint64_t high)
{
	uint64_t first = low < region->start ? low : region->start;
	uint64_t end = region->start + region->bytes;
	uint64_t last = high > end ? high : end;

	return last - first <= GT_REGION_REACH;
}

/* The address in [first, last] that is nearest to `preferred`; all are page-aligned. */
static uint64_t nearest(uint64_t first, uint64_t last, uint64_t preferred)
{
	return preferred < first ? first : preferred > last ? last : preferred;
}

int gt_region_place(const struct gt_maps *maps, uint64_t low, uint64_t high, uint64_t bytes,
		    uint64_t *start)
{
	uint64_t min, max, preferred, gap_start = LOWEST, best = 0, best_distance = ~0ull;
	size_t i;

	bytes = page_up(bytes);
	if (high < low || high - low + bytes > GT_REGION_REACH)
		return GT_ENOSPC;
	min = high > GT_REGION_REACH ? page_up(high - GT_REGION_REACH) : LOWEST;
	max = (low + GT_REGION_REACH - bytes) & ~(PAGE - 1);
	if (max > HIGHEST - bytes)
		max = HIGHEST - bytes;
	if (min < LOWEST)
		min = LOWEST;
	preferred = low < (2ull << 30)	     ? LOW_PREFERRED
		    : low > DISTANCE + bytes ? (low - DISTANCE - bytes) & ~(PAGE - 1)
					     : LOWEST;
	for (i = 0; i <= maps->count; i++) {
		uint64_t gap_end = i < maps->count ? maps->entries[i].start : HIGHEST;
		/* A page on each side stays free: guards of neighbours that grow. */
		uint64_t first = gap_start + PAGE, last;

		if (gap_end >= first + bytes + PAGE) {
			last = gap_end - bytes - PAGE;
			first = first < min ? min : first;
			last = last > max ? max : last;
			if (first <= last) {
				uint64_t at = nearest(first, last, preferred);
				uint64_t distance =
					at > preferred ? at - preferred : preferred - at;

				if (distance < best_distance) {
					best = at;
					best_distance = distance;
				}
			}
		}
		if (i < maps->count && maps->entries[i].end > gap_start)
			gap_start = maps->entries[i].end;
	}
	if (!best)
		return GT_ENOSPC;
	*start = best;
	return 0;
}

void gt_region_init(struct gt_region *region, uint64_t start, uint64_t bytes, uint32_t stub_room,
		    uint32_t first_number)
{
	*region = (struct gt_region){
		.start = start,
		.bytes = bytes,
		.stubs = start + GRAFTRACE_REGION_STUBS_OFFSET,
		.first_number = first_number,
		.stub_room = stub_room,
		.call_stub = start + moved_offset(stub_room),
		.moved = start + moved_offset(stub_room) + GRAFTRACE_STUB_BYTES,
		.moved_end = start + bytes - journal_bytes(stub_room),
		.journal = start + bytes - journal_bytes(stub_room),
		.journal_room = journal_room(stub_room),
		.journal_used = stub_room,
	};
}

/* Bytes that grow, with a limit; the unwind data is of constant size. */
struct writer {
	uint8_t *bytes;
	size_t used;
	size_t room;
};

static void put(struct writer *writer, const void *bytes, size_t size)
{
	if (size && writer->used + size <= writer->room)
		memcpy(writer->bytes + writer->used, bytes, size);
	writer->used += size;
}

static void put32(struct writer *writer, uint32_t value)
{
	put(writer, &value, sizeof(value));
}

static void set32(struct writer *writer, size_t at, uint32_t value)
{
	memcpy(writer->bytes + at, &value, sizeof(value));
}

static void pad_entry(struct writer *writer, size_t start)
{
	while ((writer->used - start) % 8 != 4) /* the length itself does not count */
		put(writer, "\0", 1);
	set32(writer, start, (uint32_t)(writer->used - start - 4));
}

/* One FDE; pc-relative to `address`, where the eh_frame stands at run time. Returns its offset. */
static size_t put_fde(struct writer *writer, uint64_t address, uint64_t first, uint64_t end,
		      const uint8_t *rules, size_t rules_bytes)
{
	size_t start = writer->used;

	put32(writer, 0);
	put32(writer, (uint32_t)writer->used); /* back to the CIE, which stands at 0 */
	put32(writer, (uint32_t)(first - (address + writer->used)));
	put32(writer, (uint32_t)(end - first));
	put(writer, "\0", 1);
	put(writer, rules, rules_bytes);
	pad_entry(writer, start);
	return start;
}

static void put_unwind_data(const struct gt_region *region, struct graftrace_region *page)
{
	static const uint8_t cie[] = {
		0,    0,    0,	  0, /* length */
		0,    0,    0,	  0, /* a CIE */
		1,    'z',  'R',  0, /* version, augmentation */
		1,    0x78,	     /* code and data alignment: 1, -8 */
		16,   1,    0x1b,    /* return address column; FDEs: pcrel sdata4 */
		0x0c, 7,    8,	     /* def_cfa rsp, 8 */
		0x90, 1,	     /* offset rip, cfa - 8 */
	};
	static const uint8_t stub_rules[] = {
		0x14, 7,    1,			    /* val_offset rsp, cfa - 8 */
		0x10, 16,   12,			    /* expression rip: the CFA is on the stack */
		0x40, 0x1c,			    /* lit16, minus */
		0x0e, 0,    128, 0, 0, 0, 64, 0, 0, /* const8u 1 << 46 | 0x8000: the mirror */
		0x27,				    /* xor */
	};
	uint64_t eh_frame = region->start + offsetof(struct graftrace_region, eh_frame);
	uint64_t header = region->start + offsetof(struct graftrace_region, eh_frame_hdr);
	uint64_t moved = region->start + moved_offset(region->stub_room);
	struct writer frame = { page->eh_frame, 0, sizeof(page->eh_frame) };
	struct writer table = { page->eh_frame_hdr, 0, sizeof(page->eh_frame_hdr) };
	static const uint8_t call_rules[] = { 0x0e, 16 }; /* def_cfa_offset 16 */
	size_t stub_fde, call_fde, moved_fde;

	put(&frame, cie, sizeof(cie));
	pad_entry(&frame, 0);
	stub_fde = put_fde(&frame, eh_frame, region->stubs, moved, stub_rules, sizeof(stub_rules));
	/* The call stub has pushed one word when it calls. */
	call_fde = put_fde(&frame, eh_frame, moved, moved + GRAFTRACE_STUB_BYTES, call_rules,
			   sizeof(call_rules));
	/* Moved code is the beginning of a function: the rules of its entry. */
	moved_fde =
		put_fde(&frame, eh_frame, moved + GRAFTRACE_STUB_BYTES, region->moved_end, NULL, 0);
	put32(&frame, 0);

	put(&table, "\x01\x1b\x03\x3b", 4); /* version; pcrel sdata4, udata4, datarel sdata4 */
	put32(&table, (uint32_t)(eh_frame - (header + 4)));
	put32(&table, 3);
	put32(&table, (uint32_t)(region->stubs - header));
	put32(&table, (uint32_t)(eh_frame + stub_fde - header));
	put32(&table, (uint32_t)(moved - header));
	put32(&table, (uint32_t)(eh_frame + call_fde - header));
	put32(&table, (uint32_t)(moved + GRAFTRACE_STUB_BYTES - header));
	put32(&table, (uint32_t)(eh_frame + moved_fde - header));
}

static void put_program_headers(const struct gt_region *region, struct graftrace_region *page)
{
	Elf64_Phdr headers[2] = {
		{
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_filesz = region->bytes,
			.p_memsz = region->bytes,
			.p_align = PAGE,
		},
		{
			.p_type = PT_GNU_EH_FRAME,
			.p_flags = PF_R,
			.p_offset = offsetof(struct graftrace_region, eh_frame_hdr),
			.p_vaddr = offsetof(struct graftrace_region, eh_frame_hdr),
			.p_paddr = offsetof(struct graftrace_region, eh_frame_hdr),
			.p_filesz = sizeof(page->eh_frame_hdr),
			.p_memsz = sizeof(page->eh_frame_hdr),
			.p_align = 4,
		},
	};

	_Static_assert(sizeof(headers) <= sizeof(page->phdrs), "two program headers");
	memcpy(page->phdrs, headers, sizeof(headers));
}

void gt_region_header(const struct gt_region *region, const struct graftrace_agent_image *header,
		      uint64_t image, struct graftrace_region *page)
{
	*page = (struct graftrace_region){
		.bias = region->stubs + 5 - (uint64_t)GRAFTRACE_STUB_BYTES * region->first_number,
		.entry_slow = image + header->entry_slow,
		.exit_slow = image + header->exit_slow,
		.hook_slow = image + header->hook_slow,
		.state = image + header->state_offset,
		.journal = region->journal,
		.journal_mains = region->stub_room,
		.journal_room = region->journal_room,
		.journal_used = region->journal_used,
		.call_return = region->start + moved_offset(region->stub_room) + CALL_RETURN,
	};
	put_unwind_data(region, page);
	put_program_headers(region, page);
}

uint64_t gt_region_stub_address(const struct gt_region *region, uint32_t slot)
{
	return region->stubs + (uint64_t)slot * GRAFTRACE_STUB_BYTES;
}

/* The 32-bit displacement from the instruction that ends at `end`. */
static int displace(uint8_t *out, uint64_t end, uint64_t target)
{
	int64_t distance = (int64_t)(target - end);
	int32_t value = (int32_t)distance;

	if (value != distance)
		return GT_ENOTSUP;
	memcpy(out, &value, sizeof(value));
	return 0;
}

int gt_region_stub(const struct gt_region *region, const struct graftrace_agent_image *header,
		   uint32_t entry, uint32_t slot, uint64_t body, uint8_t out[GRAFTRACE_STUB_BYTES])
{
	static const uint8_t code[GRAFTRACE_STUB_BYTES] = {
		0xe8, 0,    0,	  0,	0,    /* call hot + entry */
		0x0f, 0x82, 0,	  0,	0, 0, /* jc body */
		0x48, 0x8d, 0x64, 0x24, 8,    /* lea 8(%rsp),%rsp */
		0xe8, 0,    0,	  0,	0,    /* call body */
		0x68, 0,    0,	  0,	0,    /* push $(n << 1 | 1) */
		0xe9, 0,    0,	  0,	0,    /* jmp hot + exit */
		0xcc,
	};
	uint64_t at = gt_region_stub_address(region, slot);
	uint64_t hot = region->start + GRAFTRACE_REGION_HOT_OFFSET;
	uint32_t number = (region->first_number + slot) << 1 | 1;

	memcpy(out, code, sizeof(code));
	memcpy(out + 22, &number, sizeof(number));
	if (displace(out + 1, at + 5, hot + entry) || displace(out + 7, at + 11, body) ||
	    displace(out + 17, at + 21, body) || displace(out + 27, at + 31, hot + header->exit))
		return GT_ENOTSUP;
	return 0;
}

int gt_region_hook_stub(const struct gt_region *region, const struct graftrace_agent_image *header,
			uint64_t at, uint32_t site, uint64_t body,
			uint8_t out[GRAFTRACE_STUB_BYTES])
{
	static const uint8_t code[] = {
		0x68, 0,    0,	  0,	0, /* push $site */
		0xe8, 0,    0,	  0,	0, /* call hot + hook */
		0x48, 0x8d, 0x64, 0x24, 8, /* lea 8(%rsp),%rsp */
		0xe9, 0,    0,	  0,	0, /* jmp body */
	};
	uint64_t hot = region->start + GRAFTRACE_REGION_HOT_OFFSET;

	memset(out, 0xcc, GRAFTRACE_STUB_BYTES);
	memcpy(out, code, sizeof(code));
	memcpy(out + 1, &site, sizeof(site));
	if (displace(out + 6, at + 10, hot + header->hook) || displace(out + 16, at + 20, body))
		return GT_ENOTSUP;
	return 0;
}

int gt_region_call_stub(const struct gt_region *region, const struct graftrace_agent_image *header,
			uint64_t at, uint32_t site, uint64_t body,
			uint8_t out[GRAFTRACE_STUB_BYTES])
{
	static const uint8_t code[] = {
		0x57,		  /* push %rdi: the stack is aligned */
		0xe8, 0, 0, 0, 0, /* call body */
		0x5f,		  /* pop %rdi */
		0x68, 0, 0, 0, 0, /* push $site */
		0xe8, 0, 0, 0, 0, /* call hot + hook, which returns to the caller */
	};
	uint64_t hot = region->start + GRAFTRACE_REGION_HOT_OFFSET;

	memset(out, 0xcc, GRAFTRACE_STUB_BYTES);
	memcpy(out, code, sizeof(code));
	memcpy(out + 8, &site, sizeof(site));
	if (displace(out + 2, at + 6, body) || displace(out + 13, at + 17, hot + header->hook))
		return GT_ENOTSUP;
	return 0;
}

uint64_t gt_region_alloc(struct gt_region *region, uint64_t bytes, uint64_t alignment)
{
	uint64_t at = (region->moved + alignment - 1) & ~(alignment - 1);

	if (at > region->moved_end || region->moved_end - at < bytes)
		return 0;
	region->moved = at + bytes;
	return at;
}
