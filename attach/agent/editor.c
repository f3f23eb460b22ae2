/* SPDX-License-Identifier: MIT */
/*
 * The editor: see editor.h.
 */
#include "attach/agent/editor.h"
#include "attach/process/process.h"

#include <string.h>

#define PAGE 4096u

void gt_editor_init(struct gt_editor *editor, const struct gt_process *process)
{
	editor->process = process;
	editor->start = 0;
	editor->bytes = 0;
	editor->dirty = 0;
	editor->before = NULL;
}

int gt_editor_flush(struct gt_editor *editor)
{
	uint32_t page = 0, pages = GT_EDITOR_WINDOW / PAGE, end;

	if (editor->dirty && editor->before != NULL) {
		int error = gt_editor_flush(editor->before);

		if (error)
			return error;
	}
	for (; editor->dirty && page < pages; page = end + 1) {
		int error;

		for (end = page; end < pages && editor->dirty >> end & 1; end++)
			;
		if (end == page)
			continue;
		error = gt_process_write(editor->process, editor->start + (uint64_t)page * PAGE,
					 editor->window + page * PAGE, (end - page) * PAGE);
		if (error)
			return error;
	}
	editor->dirty = 0;
	return 0;
}

static int move_to(struct gt_editor *editor, uint64_t address)
{
	int error = gt_editor_flush(editor);

	if (error)
		return error;
	editor->start = address & ~(uint64_t)(PAGE - 1);
	editor->bytes = 0;
	/* At once, or page by page up to where the mapping ends. */
	if (gt_process_read(editor->process, editor->start, editor->window, GT_EDITOR_WINDOW) == 0)
		editor->bytes = GT_EDITOR_WINDOW;
	while (editor->bytes < GT_EDITOR_WINDOW &&
	       gt_process_read(editor->process, editor->start + editor->bytes,
			       editor->window + editor->bytes, PAGE) == 0)
		editor->bytes += PAGE;
	return 0;
}

static int hold(struct gt_editor *editor, uint64_t address, size_t size)
{
	if (size > GT_EDITOR_MOST)
		return GT_EINVAL;
	if (!editor->start || address < editor->start ||
	    address + size > editor->start + editor->bytes) {
		int error = move_to(editor, address);

		if (error)
			return error;
	}
	return address + size <= editor->start + editor->bytes ? 0 : GT_EIO;
}

const uint8_t *gt_editor_look(struct gt_editor *editor, uint64_t address, size_t size)
{
	return hold(editor, address, size) ? NULL : editor->window + (address - editor->start);
}

int gt_editor_put(struct gt_editor *editor, uint64_t address, const void *bytes, size_t size)
{
	size_t offset;
	int error = hold(editor, address, size);

	if (error)
		return error;
	offset = address - editor->start;
	if (size == 0 || memcmp(editor->window + offset, bytes, size) == 0)
		return 0;
	memcpy(editor->window + offset, bytes, size);
	for (size_t page = offset / PAGE; page <= (offset + size - 1) / PAGE; page++)
		editor->dirty |= 1u << page;
	return 0;
}
