/* SPDX-License-Identifier: MIT */
/*
 * Changes of code: see edits.h. Nothing here stops a process: whoever applies has seen to that.
 */
#include "attach/agent/edits.h"
#include "attach/agent/editor.h"
#include "attach/process/process.h"

#include <stdlib.h>
#include <string.h>

struct gt_edit *gt_edits_add(struct gt_edits *edits)
{
	struct gt_edit *edit;

	if (edits->count == edits->room) {
		size_t room = edits->room ? edits->room * 2 : 256;
		void *list = realloc(edits->list, room * sizeof(*edits->list));

		if (list == NULL)
			return NULL;
		edits->list = list;
		edits->room = room;
	}
	edit = &edits->list[edits->count++];
	*edit = (struct gt_edit){ 0 };
	return edit;
}

struct gt_displaced *gt_edits_displace(struct gt_edits *edits)
{
	struct gt_displaced *displaced;

	if (edits->displaced_count == edits->displaced_room) {
		size_t room = edits->displaced_room ? edits->displaced_room * 2 : 64;
		void *bigger = realloc(edits->displaced, room * sizeof(*edits->displaced));

		if (bigger == NULL)
			return NULL;
		edits->displaced = bigger;
		edits->displaced_room = room;
	}
	displaced = &edits->displaced[edits->displaced_count++];
	*displaced = (struct gt_displaced){ 0 };
	return displaced;
}

void gt_edits_clear(struct gt_edits *edits)
{
	edits->count = 0;
	edits->displaced_count = 0;
}

void gt_edits_fini(struct gt_edits *edits)
{
	free(edits->list);
	free(edits->displaced);
	*edits = (struct gt_edits){ 0 };
}

void gt_edits_drop(struct gt_edits *edits, uint64_t start, uint64_t end)
{
	size_t kept = 0;

	for (size_t i = 0; i < edits->count; i++)
		if (edits->list[i].address >= start && edits->list[i].address < end)
			edits->list[i].refused = true;
	for (size_t i = 0; i < edits->displaced_count; i++)
		if (edits->displaced[i].start < start || edits->displaced[i].start >= end)
			edits->displaced[kept++] = edits->displaced[i];
	edits->displaced_count = kept;
}

static int by_start(const void *left, const void *right)
{
	const struct gt_displaced *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

void gt_edits_sort_displaced(struct gt_edits *edits)
{
	if (edits->displaced_count)
		qsort(edits->displaced, edits->displaced_count, sizeof(*edits->displaced),
		      by_start);
}

const struct gt_displaced *gt_edits_displaced(const struct gt_edits *edits, uint64_t address)
{
	size_t low = 0, high = edits->displaced_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct gt_displaced *displaced = &edits->displaced[middle];

		if (address <= displaced->start)
			high = middle;
		else if (address >= displaced->start + displaced->covered)
			low = middle + 1;
		else
			return displaced;
	}
	return NULL;
}

uint64_t gt_edits_new_place(const struct gt_displaced *displaced, uint64_t address)
{
	uint64_t offset = address - displaced->start;

	if (displaced->to_body)
		return displaced->target;
	if (offset > GT_PLAN_ORIGINAL_MAX || displaced->offset[offset] < 0)
		return 0;
	return displaced->target + (uint64_t)displaced->offset[offset];
}

/* A function's places are all as expected, or it is left out. */
static void check(struct gt_edits *edits, struct gt_editor *editor)
{
	struct gt_edit *main = NULL;

	for (size_t i = 0; i < edits->count; i++) {
		struct gt_edit *edit = &edits->list[i];
		const uint8_t *bytes;

		if (edit->main)
			main = edit;
		if (!edit->compared)
			continue;
		bytes = gt_editor_look(editor, edit->address, edit->compared);
		if (bytes != NULL && memcmp(bytes, edit->expected, edit->compared) == 0)
			continue;
		edit->refused = true;
		if (main != NULL)
			main->refused = true;
	}
}

static int write(struct gt_edits *edits, struct gt_editor *editor, bool mains, bool on)
{
	const struct gt_edit *main = NULL;
	int error = 0;

	for (size_t i = 0; !error && i < edits->count; i++) {
		const struct gt_edit *edit = &edits->list[i];

		if (edit->main)
			main = edit;
		if (edit->main == mains && main != NULL && main->on == on && !main->refused)
			error = gt_editor_put(editor, edit->address, edit->value, edit->bytes);
	}
	return error ? error : gt_editor_flush(editor);
}

int gt_edits_apply(struct gt_edits *edits, const struct gt_process *process)
{
	struct gt_editor *editor;
	int error;

	if (!edits->count)
		return 0;
	editor = malloc(sizeof(*editor));
	if (editor == NULL)
		return GT_ENOMEM;
	gt_editor_init(editor, process);
	check(edits, editor);
	error = write(edits, editor, false, true);
	if (!error)
		error = write(edits, editor, true, true);
	if (!error)
		error = write(edits, editor, true, false);
	if (!error)
		error = write(edits, editor, false, false);
	for (size_t i = 0; !error && i < edits->count; i++) {
		struct gt_edit *edit = &edits->list[i];

		if (edit->main && edit->state != NULL)
			*edit->state = edit->refused ? edit->foreign_state : edit->new_state;
	}
	free(editor);
	return error;
}
