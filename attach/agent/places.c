/* SPDX-License-Identifier: MIT */
/*
 * Places: see places.h. An instruction that moved as it was stands for itself, byte by byte. One that
 * became longer stands for itself with its first byte only, and a call has pushed a word when the next
 * instruction of what became of it runs (plan_move.c).
 */
#include "attach/agent/places.h"
#include "attach/plan/instruction.h"

/* Instructions that were moved together. */
struct piece {
	uint64_t address; /* the object's */
	const uint8_t *original;
	uint32_t covered;
	const int16_t *offset;
	uint32_t syscall; /* offset + 1 of one that stubs stand around */
};

static struct piece piece_at(const struct gt_plan *plan, const struct gt_plan_entry *entry,
			     const struct gt_plan_map *map, uint32_t from)
{
	struct piece piece = { entry->patch_address, entry->original, entry->covered_bytes,
			       map->offset, entry->syscall };

	for (int k = 0; k < map->block_count; k++) {
		const struct gt_plan_block_map *block = &map->block[k];

		if (block->offset[0] < 0 || (uint32_t)block->offset[0] > from)
			continue;
		for (uint32_t i = 0; i < entry->extra_count; i++) {
			const struct gt_plan_extra *extra = gt_plan_extra(plan, entry, i);

			if (extra->kind == GT_EXTRA_BLOCK && extra->address == block->address)
				piece = (struct piece){ block->address, extra->original,
							block->covered, block->offset, 0 };
		}
	}
	return piece;
}

static uint8_t place(const struct piece *piece, uint32_t moved)
{
	struct gt_instruction instruction;
	uint32_t at = 0, beyond, next;

	for (uint32_t offset = 0; offset <= piece->covered; offset++)
		if (piece->offset[offset] >= 0 && (uint32_t)piece->offset[offset] <= moved)
			at = offset;
	beyond = moved - (uint32_t)piece->offset[at];
	/* The jump back, too, stands where the next instruction stood. */
	if (at == piece->covered)
		return (uint8_t)(piece->syscall ? at : at + beyond);
	if (!gt_instruction_decode(piece->original + at, piece->covered - at, piece->address + at,
				   &instruction))
		return (uint8_t)at;
	if (instruction.kind == GT_INSTRUCTION_CALL ||
	    instruction.kind == GT_INSTRUCTION_CALL_INDIRECT)
		return (uint8_t)(at | (beyond ? GRAFTRACE_PLACES_PUSHED : 0));
	next = at + instruction.bytes;
	/* The jump to the stub before a call. */
	if (next + 1 == piece->syscall && beyond >= instruction.bytes)
		return (uint8_t)next;
	if (next <= piece->covered && piece->offset[next] == piece->offset[at] + instruction.bytes)
		return (uint8_t)(at + beyond);
	return (uint8_t)at;
}

uint64_t gt_places_of_moved(const struct gt_plan *plan, const struct gt_plan_entry *entry,
			    const struct gt_plan_map *map, uint32_t from,
			    uint8_t at[GRAFTRACE_PLACES_BYTES])
{
	const struct piece piece = piece_at(plan, entry, map, from);

	for (uint32_t i = 0; i < GRAFTRACE_PLACES_BYTES; i++)
		at[i] = place(&piece, from + i);
	return piece.address;
}

void gt_places_of_hook(uint32_t from, uint8_t at[GRAFTRACE_PLACES_BYTES])
{
	/* Between its push and where it has gone from the stack. */
	for (uint32_t i = 0; i < GRAFTRACE_PLACES_BYTES; i++)
		at[i] = from + i >= 5 && from + i < 15 ? GRAFTRACE_PLACES_PUSHED : 0;
}

void gt_places_of_probe(uint32_t from, uint8_t at[GRAFTRACE_PLACES_BYTES])
{
	/* Between the two additions to the stack pointer. */
	for (uint32_t i = 0; i < GRAFTRACE_PLACES_BYTES; i++)
		at[i] = from + i >= 5 && from + i < 18 ? GRAFTRACE_PLACES_BELOW : 0;
}
