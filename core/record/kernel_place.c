/* SPDX-License-Identifier: MIT */
/*
 * Places inside a kernel's functions: see kernel_place.h. What is asked by a trap, or by code that a trap led to, only
 * reads: the address of a place is written last and stays.
 */
#include "core/record/kernel_place.h"
#include "core/record/arch.h"
#include "core/record/port.h"

static const struct gt_sites *table;
static uint64_t first_cell;
static struct gt_place *places;
static uint32_t place_count;

/* Where a search for the place of an address begins. */
static uint32_t begin_of(uint64_t address)
{
	return (uint32_t)((address * 0x9e3779b97f4a7c15ull >> 32) % place_count);
}

/* The place that has the address (0: a free one), place_count: none. */
static uint32_t find(uint64_t address, uint32_t begin)
{
	for (uint32_t i = 0; i < place_count; i++) {
		const uint32_t index = (begin + i) % place_count;
		const uint64_t found = __atomic_load_n(&places[index].address, __ATOMIC_ACQUIRE);

		if (found == address)
			return index;
		if (found == 0) /* places stay: behind a free one there is none of this beginning */
			break;
	}
	return place_count;
}

static uint32_t find_place(uint64_t address)
{
	return place_count != 0 && address != 0 ? find(address, begin_of(address)) : place_count;
}

static uint64_t cell_of(uint32_t index)
{
	return first_cell + (uint64_t)index * GT_PLACE_BYTES;
}

uint8_t gt_places_byte(uint64_t address)
{
	const uint32_t index = find_place(address);

	return index < place_count && places[index].is_set ? places[index].original
							   : *(const volatile uint8_t *)address;
}

/* What stands at the address without traps; zeros from `end` on. */
static void read_code(uint64_t address, uint64_t end, uint8_t code[GT_ARCH_CODE_BYTES])
{
	for (uint32_t i = 0; i < GT_ARCH_CODE_BYTES; i++)
		code[i] = address + i < end ? gt_places_byte(address + i) : 0;
}

/* Does one of the patcher of static events stand there? */
static bool is_event(uint64_t address)
{
	for (uint32_t i = 0; i < table->event_site_count; i++)
		if (address - table->event_sites[i].address < GT_SITE_BYTES)
			return true;
	return false;
}

/* Decodes from the function's start, as instructions follow each other there. *bytes: of the one at the address. */
static enum graftrace_kernel_place look(uint64_t start, uint64_t end, uint64_t address,
					uint8_t code[GT_ARCH_CODE_BYTES], uint32_t *bytes)
{
	for (uint64_t at = start; at <= address && at < end; at += *bytes) {
		read_code(at, end, code);
		*bytes = gt_arch_instruction_bytes(code, at);
		if (*bytes == 0 || *bytes > end - at)
			return GRAFTRACE_KERNEL_PLACE_UNKNOWN;
		if (at == address)
			return GRAFTRACE_KERNEL_PLACE_OK;
	}
	return GRAFTRACE_KERNEL_PLACE_BOUNDARY;
}

/* Takes a free one for the instruction. */
static enum graftrace_kernel_place take(uint64_t address, const uint8_t code[GT_ARCH_CODE_BYTES],
					uint32_t bytes, uint32_t *taken)
{
	const uint32_t index = place_count != 0 ? find(0, begin_of(address)) : place_count;
	uint8_t cell[GT_PLACE_BYTES];

	/* What can have no place in any kernel is said before that there is no room in this one. */
	if (place_count != 0 &&
	    !gt_arch_place_write(cell, cell_of(index % place_count), code, address))
		return GRAFTRACE_KERNEL_PLACE_UNMOVABLE;
	if (index == place_count)
		return GRAFTRACE_KERNEL_PLACE_FULL;
	places[index].bytes = (uint8_t)bytes;
	places[index].original = code[0];
	__atomic_store_n(&places[index].address, address, __ATOMIC_RELEASE);
	*taken = index;
	return GRAFTRACE_KERNEL_PLACE_OK;
}

enum graftrace_kernel_place gt_places_find(uint64_t start, uint64_t end, uint64_t address,
					   uint32_t *place)
{
	enum graftrace_kernel_place found = GRAFTRACE_KERNEL_PLACE_OK;
	uint32_t index = find_place(address), bytes;
	uint8_t code[GT_ARCH_CODE_BYTES];

	if (index == place_count) {
		found = look(start, end, address, code, &bytes);
		if (found == GRAFTRACE_KERNEL_PLACE_OK && is_event(address))
			found = GRAFTRACE_KERNEL_PLACE_PATCHED;
		if (found == GRAFTRACE_KERNEL_PLACE_OK)
			found = take(address, code, bytes, &index);
	}
	*place = index + 1;
	return found;
}

uint64_t gt_places_trap(uint64_t address)
{
	const uint32_t index = find_place(address);

	return index < place_count && places[index].is_made ? cell_of(index) : 0;
}

uint64_t gt_places_origin(uint64_t address)
{
	const uint64_t offset = address - first_cell;

	return offset < (uint64_t)place_count * GT_PLACE_BYTES
		       ? places[offset / GT_PLACE_BYTES].address
		       : address;
}

/* ---- for kernel_probe.c ---- */

struct graftrace_kernel_probe **gt_places_list(uint32_t place)
{
	return &places[place - 1].first;
}

const struct gt_place *gt_places_of_cell(uint64_t stub)
{
	const uint64_t offset = stub - first_cell;

	return offset < (uint64_t)place_count * GT_PLACE_BYTES ? &places[offset / GT_PLACE_BYTES]
							       : NULL;
}

void gt_places_clear(void)
{
	for (uint32_t i = 0; i < place_count; i++)
		places[i].first = NULL;
}

/* Before its first trap. */
static void write_cell(uint32_t index)
{
	struct gt_place *place = &places[index];
	uint8_t code[GT_ARCH_CODE_BYTES], cell[GT_PLACE_BYTES];

	read_code(place->address, place->address + place->bytes, code);
	place->is_made = gt_arch_place_write(cell, cell_of(index), code, place->address);
	gt_port_text_write(cell_of(index), cell, sizeof(cell));
}

void gt_places_write(void)
{
	for (uint32_t i = 0; i < place_count; i++) {
		struct gt_place *place = &places[i];
		const bool wanted = place->first != NULL;
		const uint8_t byte = wanted ? GT_ARCH_TRAP : place->original;

		if (place->is_set == wanted)
			continue;
		if (!place->is_made)
			write_cell(i);
		place->is_set = wanted;
		gt_port_text_write(place->address, &byte, 1);
	}
}

void gt_places_init(struct gt_sites *sites, uint64_t cells, struct gt_place *memory, uint32_t count)
{
	table = sites;
	first_cell = cells;
	places = memory;
	place_count = count;
}
