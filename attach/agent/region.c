/* SPDX-License-Identifier: MIT */
/* Regions: see region.h. Pure computation. What unwinders are told of them: region_unwind.c. */
#include "attach/agent/region.h"
#include "attach/process/process.h"

#include <string.h>

#define PAGE	      4096ull
#define LOW_PREFERRED 0x70000000ull
/* Room left between the code and the region, for libraries that are mapped below it. */
#define DISTANCE (512ull << 20)
#define LOWEST	 0x10000ull
#define HIGHEST	 0x7fffffffe000ull

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
	return 3 * stub_room + 4096;
}

static uint64_t journal_bytes(uint32_t stub_room)
{
	return page_up((uint64_t)journal_room(stub_room) * sizeof(struct graftrace_patch));
}

static uint64_t places_bytes(uint64_t moved_bytes)
{
	return page_up(moved_bytes / GRAFTRACE_PLACES_BYTES * sizeof(uint32_t));
}

uint64_t gt_region_bytes(uint32_t stub_room, uint64_t moved_bytes)
{
	moved_bytes = page_up(moved_bytes);
	return moved_offset(stub_room) + moved_bytes + places_bytes(moved_bytes) +
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
	for (size_t i = 0; i <= maps->count; i++) {
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
	const uint64_t journal = start + bytes - journal_bytes(stub_room);
	const uint64_t moved = start + moved_offset(stub_room);
	uint64_t end = moved + (journal - moved) / 5 * 4;

	/* As much as leaves room for the places of it. */
	end = page_up(end);
	while (end > moved && end + places_bytes(end - moved) > journal)
		end -= PAGE;
	*region = (struct gt_region){
		.start = start,
		.bytes = bytes,
		.stubs = start + GRAFTRACE_REGION_STUBS_OFFSET,
		.first_number = first_number,
		.stub_room = stub_room,
		.moved_first = moved,
		.moved = moved,
		.moved_end = end,
		.places = end,
		.journal = journal,
		.journal_room = journal_room(stub_room),
		.journal_used = stub_room,
	};
}

void gt_region_header(const struct gt_region *region, const struct graftrace_agent_image *header,
		      uint64_t image, struct graftrace_region *page)
{
	*page = (struct graftrace_region){
		.bias = region->stubs + 5 - (uint64_t)GRAFTRACE_STUB_BYTES * region->first_number,
		.entry_slow = image + header->entry_slow,
		.exit_slow = image + header->exit_slow,
		.hook_slow = image + header->hook_slow,
		.event_slow = image + header->event_slow,
		.state = image + header->state_offset,
		.journal = region->journal,
		.journal_mains = region->stub_room,
		.journal_room = region->journal_room,
		.journal_used = region->journal_used,
	};
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

int gt_region_probe_stub(const struct gt_region *region, const struct graftrace_agent_image *header,
			 uint64_t at, uint64_t body, uint8_t out[GRAFTRACE_STUB_BYTES])
{
	static const uint8_t code[] = {
		0x48, 0x8d, 0x64, 0x24, 0x80, /* lea -128(%rsp),%rsp */
		0xe8, 0,    0,	  0,	0,    /* call hot + event */
		0x48, 0x8d, 0xa4, 0x24, GRAFTRACE_RED_ZONE,
		0,    0,    0,		   /* lea 128(%rsp),%rsp */
		0xe9, 0,    0,	  0,	0, /* jmp body */
	};
	uint64_t hot = region->start + GRAFTRACE_REGION_HOT_OFFSET;

	memset(out, 0xcc, GRAFTRACE_STUB_BYTES);
	memcpy(out, code, sizeof(code));
	if (displace(out + 6, at + 10, hot + header->event) || displace(out + 19, at + 23, body))
		return GT_ENOTSUP;
	return 0;
}

int gt_region_values_stub(const struct gt_region *region, uint64_t at, uint32_t recorder,
			  uint32_t target, uint8_t out[GRAFTRACE_STUB_BYTES])
{
	const uint64_t hot = region->start + GRAFTRACE_REGION_HOT_OFFSET;

	memset(out, 0xcc, GRAFTRACE_STUB_BYTES);
	out[0] = 0xe8; /* call hot + recorder */
	out[5] = 0xe9; /* jmp hot + target */
	if (displace(out + 1, at + 5, hot + recorder) || displace(out + 6, at + 10, hot + target))
		return GT_ENOTSUP;
	return 0;
}

int gt_region_lead_stub(uint64_t stub, uint64_t call, uint64_t jump,
			uint8_t bytes[GRAFTRACE_STUB_BYTES])
{
	if ((call && displace(bytes + 1, stub + 5, call)) ||
	    (jump &&
	     displace(bytes + GRAFTRACE_STUB_LEAVES + 1, stub + GRAFTRACE_STUB_LEAVES + 5, jump)))
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

/* An address as the table has it. */
static uint32_t place_of(const struct gt_region *region, uint64_t address)
{
	return (uint32_t)(address - (region->start - GRAFTRACE_PLACES_BIAS));
}

uint64_t gt_region_places(const struct gt_region *region, uint64_t moved)
{
	return region->places +
	       (moved - region->moved_first) / GRAFTRACE_PLACES_BYTES * sizeof(uint32_t);
}

uint32_t gt_region_place_word(struct gt_region *region, uint64_t base, const uint8_t *at,
			      uint64_t *record_at, struct graftrace_places *record)
{
	uint32_t straight = 1;

	/* Where all of it stands as it did. */
	*record_at = 0;
	for (uint32_t i = 1; i < GRAFTRACE_PLACES_BYTES; i++)
		straight += at[i] == (uint8_t)(at[0] + i);
	if (straight == GRAFTRACE_PLACES_BYTES &&
	    at[GRAFTRACE_PLACES_BYTES - 1] < GRAFTRACE_PLACES_PUSHED)
		return place_of(region, base + at[0]);
	*record_at = gt_region_alloc(region, sizeof(*record), sizeof(uint32_t));
	if (!*record_at)
		return place_of(region, base);
	record->base = place_of(region, base);
	memcpy(record->at, at, sizeof(record->at));
	return place_of(region, *record_at);
}
