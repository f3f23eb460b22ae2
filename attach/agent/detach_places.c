/* SPDX-License-Identifier: MIT */
/*
 * Detaching from what another host has left: where moved code belongs.
 *
 * That host had plans, which say so of each instruction. Here there is the region's table for unwinders
 * (struct graftrace_places): which instruction of the program each byte of the moved code stands for. A
 * thread can wait for long only in a system call, so only those are looked up, and only where both
 * sides agree: the table's address belongs to this byte and not to the one before it (which would be
 * the midst of an instruction that became longer), nothing has been pushed, and there is `syscall` at
 * the same distance in the moved code and in the program's, which has its own bytes back by now.
 *
 * All of it is read from the process, which may have written anything there: the worst that it gets is
 * to go on at one of its own `syscall` instructions.
 */
#include "attach/agent/detach_private.h"
#include "attach/agent/region.h"

#define REGION_MOST   (1ull << 32)
#define SYSCALL_BYTES 2

static int read_at(const struct gt_detach *out, uint64_t address, void *bytes, size_t size)
{
	return gt_process_read(out->process, address, bytes, size);
}

/* The region whose moved code the address is in. */
static bool find_region(const struct gt_detach *out, uint64_t address, struct gt_region *region)
{
	struct graftrace_region page;
	uint64_t start = 0, bytes = 0;
	uint32_t i;

	for (i = 0; i < out->state.region_count; i++) {
		start = out->state.regions[i].start;
		bytes = out->state.regions[i].bytes;
		if (address - start < bytes)
			break;
	}
	if (i == out->state.region_count || start % GT_DETACH_PAGE || bytes % GT_DETACH_PAGE ||
	    start >= GT_DETACH_HIGHEST || bytes > REGION_MOST ||
	    read_at(out, start, &page, sizeof(page)))
		return false;
	/* So many stubs alone would be more than all of it. */
	if (page.journal_mains > bytes / GRAFTRACE_STUB_BYTES ||
	    gt_region_bytes(page.journal_mains, 0) > bytes)
		return false;
	gt_region_init(region, start, bytes, page.journal_mains, 0);
	return page.journal == region->journal && page.journal_room == region->journal_room &&
	       address >= region->moved_first && address < region->moved_end;
}

/* What that byte stands for, by the table; 0: not known, or more than the place is different. */
static uint64_t stands_for(const struct gt_detach *out, const struct gt_region *region,
			   uint64_t address)
{
	const uint64_t zero = region->start - GRAFTRACE_PLACES_BIAS;
	const uint32_t byte = (uint32_t)(address - region->moved_first) % GRAFTRACE_PLACES_BYTES;
	struct graftrace_places record;
	uint64_t place;
	uint32_t word;

	if (address < region->moved_first ||
	    read_at(out, gt_region_places(region, address), &word, sizeof(word)))
		return 0;
	place = zero + word;
	if (place - region->start < region->bytes) {
		if (read_at(out, place, &record, sizeof(record)) ||
		    record.at[byte] >= GRAFTRACE_PLACES_BELOW)
			return 0;
		place = zero + record.base + record.at[byte];
	} else {
		place += byte;
	}
	return gt_detach_is_ours(out, place) ? 0 : place;
}

static bool is_call(const struct gt_detach *out, uint64_t address)
{
	uint8_t code[SYSCALL_BYTES];

	return read_at(out, address, code, sizeof(code)) == 0 && code[0] == 0x0f && code[1] == 0x05;
}

uint64_t gt_detach_place_of_call(const struct gt_detach *out, uint64_t address)
{
	const struct gt_map *map;
	struct gt_region region;
	uint64_t place;

	if (!find_region(out, address, &region))
		return 0;
	place = stands_for(out, &region, address);
	map = place ? gt_maps_find(&out->maps, place) : NULL;
	if (map == NULL || !map->executable || stands_for(out, &region, address - 1) == place)
		return 0;
	if (is_call(out, address))
		return is_call(out, place) ? place : 0;
	return is_call(out, address - SYSCALL_BYTES) && is_call(out, place - SYSCALL_BYTES) ? place
											    : 0;
}
