/* SPDX-License-Identifier: MIT */
/*
 * The tool of patching: see patcher.h. What jumps lead to and the journal are written when the patcher
 * is finished, before any jump.
 */
#include "attach/agent/patcher.h"
#include "attach/agent/places.h"

#include <stdlib.h>
#include <string.h>

struct gt_patcher *gt_patcher_start(struct gt_tracee *tracee, struct gt_tracee_object *object,
				    bool running, struct gt_message *message)
{
	struct gt_patcher *patcher = malloc(sizeof(*patcher));

	if (patcher == NULL) {
		gt_fail(message, GT_ENOMEM, "no memory to patch %s", object->file->path);
		return NULL;
	}
	patcher->tracee = tracee;
	patcher->object = object;
	patcher->region = &tracee->agent.regions[object->region];
	patcher->running = running;
	patcher->jumps = false;
	gt_editor_init(&patcher->code, &tracee->process);
	gt_editor_init(&patcher->stubs, &tracee->process);
	gt_editor_init(&patcher->moved, &tracee->process);
	gt_editor_init(&patcher->places, &tracee->process);
	gt_editor_init(&patcher->journal, &tracee->process);
	return patcher;
}

/* Unwinders are told of jumps in the midst of the object's code. Without room, they are not. */
static int tell_of_jumps(struct gt_patcher *patcher)
{
	const struct gt_process *process = &patcher->tracee->process;
	struct gt_tracee_object *object = patcher->object;
	struct gt_region *region = patcher->region;
	const uint64_t text[2] = { object->start, object->end };
	int error;

	if (!patcher->jumps || object->jumps_from == object->start ||
	    region->text_count == GRAFTRACE_REGION_TEXTS)
		return 0;
	error = gt_process_write(process,
				 region->start + offsetof(struct graftrace_region, texts) +
					 region->text_count * sizeof(text),
				 text, sizeof(text));
	if (error)
		return error;
	region->text_count++;
	object->jumps_from = object->start;
	return gt_process_write(process,
				region->start + offsetof(struct graftrace_region, text_count),
				&region->text_count, sizeof(region->text_count));
}

/* Stubs, moved code and the journal are there before the first jump to them. */
int gt_patcher_finish(struct gt_patcher *patcher, int error, struct gt_message *message)
{
	const struct gt_region *region = patcher->region;

	if (!error)
		error = gt_editor_flush(&patcher->moved);
	if (!error)
		error = gt_editor_flush(&patcher->places);
	if (!error)
		error = gt_editor_flush(&patcher->stubs);
	if (!error)
		error = gt_editor_flush(&patcher->journal);
	if (!error)
		error = gt_process_write(&patcher->tracee->process,
					 region->start +
						 offsetof(struct graftrace_region, journal_used),
					 &region->journal_used, sizeof(region->journal_used));
	if (!error)
		error = tell_of_jumps(patcher);
	if (error)
		gt_fail(message, error, "cannot patch %s in process %d",
			patcher->object->file->path, (int)patcher->tracee->process.pid);
	free(patcher);
	return error;
}

/* The code at `address` is `expected`. */
bool gt_patcher_finds(struct gt_patcher *patcher, uint64_t address, const uint8_t *expected,
		      size_t size)
{
	const uint8_t *bytes = gt_editor_look(&patcher->code, address, size);

	return bytes != NULL && memcmp(bytes, expected, size) == 0;
}

bool gt_patcher_finds_extras(struct gt_patcher *patcher, const struct gt_plan_entry *entry)
{
	for (uint32_t i = 0; i < entry->extra_count; i++) {
		const struct gt_plan_extra *extra =
			gt_plan_extra(patcher->object->file->plan, entry, i);

		if (!gt_patcher_finds(patcher, extra->address + patcher->object->bias,
				      extra->original, extra->bytes))
			return false;
	}
	return true;
}

/* What unwinders are told of 16 bytes of moved code. */
int gt_patcher_put_places(struct gt_patcher *patcher, uint64_t moved, uint64_t base,
			  const uint8_t at[GRAFTRACE_PLACES_BYTES])
{
	struct graftrace_places record;
	uint64_t record_at;
	const uint32_t word = gt_region_place_word(patcher->region, base, at, &record_at, &record);
	int error = 0;

	if (record_at)
		error = gt_editor_put(&patcher->moved, record_at, &record, sizeof(record));
	if (!error)
		error = gt_editor_put(&patcher->places, gt_region_places(patcher->region, moved),
				      &word, sizeof(word));
	return error;
}

/* Moved code: made once, at *at (0 = not yet). Returns the address it goes on at; GT_ENOSPC,
 * GT_ENOTSUP. */
int gt_patcher_move(struct gt_patcher *patcher, const struct gt_plan_entry *entry, uint64_t *at,
		    struct gt_plan_map *map)
{
	const struct gt_plan *plan = patcher->object->file->plan;
	uint8_t code[GT_PLAN_MOVED_MAX];
	bool fresh = !*at;
	int bytes, error;

	if (fresh)
		*at = gt_region_alloc(patcher->region, entry->moved_bytes_max, 16);
	if (!*at)
		return GT_ENOSPC;
	bytes = gt_plan_move(plan, entry, patcher->object->bias, *at, code, sizeof(code), map);
	if (bytes < 0)
		return bytes;
	error = gt_editor_put(&patcher->moved, *at, code, (size_t)bytes);
	for (int from = 0; !error && fresh && from < bytes; from += GRAFTRACE_PLACES_BYTES) {
		uint8_t places[GRAFTRACE_PLACES_BYTES];
		uint64_t base = gt_places_of_moved(plan, entry, map, (uint32_t)from, places);

		error = gt_patcher_put_places(patcher, *at + (uint64_t)from,
					      base + patcher->object->bias, places);
	}
	return error;
}

int gt_patcher_displace(struct gt_patcher *patcher, const struct gt_plan_entry *entry,
			uint64_t body, const struct gt_plan_map *map)
{
	struct gt_displaced *displaced;

	if (!patcher->running)
		return 0;
	displaced = gt_edits_displace(&patcher->tracee->edits);
	if (displaced == NULL)
		return GT_ENOMEM;
	*displaced = (struct gt_displaced){
		.start = entry->patch_address + patcher->object->bias,
		.target = body,
		.covered = entry->covered_bytes,
		.to_body = map == NULL,
	};
	if (map == NULL)
		return 0;
	memcpy(displaced->offset, map->offset, sizeof(displaced->offset));
	for (int i = 0; i < map->block_count; i++) {
		displaced = gt_edits_displace(&patcher->tracee->edits);
		if (displaced == NULL)
			return GT_ENOMEM;
		displaced->start = map->block[i].address + patcher->object->bias;
		displaced->target = body;
		displaced->covered = map->block[i].covered;
		memcpy(displaced->offset, map->block[i].offset, sizeof(displaced->offset));
	}
	return 0;
}

/* An entry of the journal. */
static int note(struct gt_patcher *patcher, uint32_t index, uint64_t address,
		const uint8_t *original, const uint8_t *patched, uint32_t bytes, bool neutral,
		bool elsewhere)
{
	struct graftrace_patch patch = {
		.address = address,
		.bytes = (uint8_t)bytes,
		.neutral = neutral,
		.elsewhere = elsewhere,
	};

	if (bytes > sizeof(patch.original))
		return GT_EINVAL;
	memcpy(patch.original, original, bytes);
	memcpy(patch.patched, patched, bytes);
	return gt_editor_put(&patcher->journal,
			     patcher->region->journal + (uint64_t)index * sizeof(patch), &patch,
			     sizeof(patch));
}

/* Room for `count` appended entries: *first is the index of the first, plus one; it stays. */
int gt_patcher_reserve(struct gt_patcher *patcher, uint32_t *first, uint32_t count)
{
	struct gt_region *region = patcher->region;

	if (*first || !count)
		return 0;
	if (region->journal_room - region->journal_used < count)
		return GT_ENOSPC;
	*first = region->journal_used + 1;
	region->journal_used += count;
	return 0;
}

/* A thread that stands at a jump which goes again goes where that leads: below an island is padding, or the
 * middle of an instruction. */
static int displace_jump(struct gt_patcher *patcher, uint64_t address, const uint8_t *jump)
{
	struct gt_displaced *displaced;
	int32_t distance;

	if (!patcher->running)
		return 0;
	displaced = gt_edits_displace(&patcher->tracee->edits);
	if (displaced == NULL)
		return GT_ENOMEM;
	memcpy(&distance, jump + 1, sizeof(distance));
	/* None of its bytes but the first can be stood at, and the first byte of an entry never counts. */
	*displaced = (struct gt_displaced){
		.start = address - 1,
		.target = address + 5 + (uint64_t)(int64_t)distance,
		.covered = 2,
		.to_body = true,
	};
	return 0;
}

static int change_extra(struct gt_patcher *patcher, const struct gt_change *change, uint32_t i)
{
	const struct gt_plan_extra *extra =
		gt_plan_extra(patcher->object->file->plan, change->entry, i);
	uint64_t address = extra->address + patcher->object->bias;
	struct gt_edit *edit;
	uint8_t bytes[8];
	int error = gt_plan_extra_bytes(extra, patcher->object->bias, change->stub, change->moved,
					bytes);

	if (!error)
		error = note(patcher, *change->extras - 1 + i, address, extra->original, bytes,
			     extra->bytes, false, true);
	if (!error && !change->on && extra->bytes == 5 && bytes[0] == 0xe9)
		error = displace_jump(patcher, address, bytes);
	if (error)
		return error;
	patcher->jumps |= bytes[0] == 0xe9;
	edit = gt_edits_add(&patcher->tracee->edits);
	if (edit == NULL)
		return GT_ENOMEM;
	edit->address = address;
	edit->bytes = edit->compared = extra->bytes;
	memcpy(edit->expected, change->on ? extra->original : bytes, extra->bytes);
	memcpy(edit->value, change->on ? bytes : extra->original, extra->bytes);
	return 0;
}

/* All or none of the function's edits. */
int gt_patcher_change(struct gt_patcher *patcher, struct gt_change *change, const uint8_t *jump)
{
	const struct gt_plan_entry *entry = change->entry;
	struct gt_edits *edits = &patcher->tracee->edits;
	size_t count = edits->count;
	struct gt_edit *edit;
	int error;

	error = gt_patcher_reserve(patcher, change->extras, entry->extra_count);
	if (!error)
		error = note(patcher, change->main - 1,
			     entry->patch_address + patcher->object->bias, entry->original, jump,
			     entry->patch_bytes, entry->way == GT_PLAN_NOPS, false);
	if (error)
		return error;
	edit = gt_edits_add(edits);
	if (edit == NULL)
		return GT_ENOMEM;
	*edit = (struct gt_edit){
		.address = entry->patch_address + patcher->object->bias,
		.state = change->state,
		.new_state = change->new_state,
		.foreign_state = change->foreign_state,
		.main = true,
		.on = change->on,
		.extras = entry->extra_count,
		.bytes = entry->patch_bytes,
		.compared = change->before_bytes,
	};
	memcpy(edit->expected, change->before, sizeof(edit->expected));
	memcpy(edit->value, change->after, sizeof(edit->value));
	for (uint32_t i = 0; !error && i < entry->extra_count; i++)
		error = change_extra(patcher, change, i);
	if (error)
		edits->count = count;
	return error;
}

/* Errors that concern this one function only. */
bool gt_patcher_may_go_on(int error)
{
	return error == GT_ENOTSUP || error == GT_ENOSPC || error == GT_EINVAL;
}
