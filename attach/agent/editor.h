/* SPDX-License-Identifier: MIT */
/*
 * Edits of a process's memory in many small places: a window that is read once, changed here, and
 * written back page by page where something changed. For rising addresses, as functions come. The
 * process is stopped, or does not run that code yet. Nothing is to be freed. 64 KB: not for the stack.
 */
#ifndef GT_ATTACH_EDITOR_H
#define GT_ATTACH_EDITOR_H

#include <stddef.h>
#include <stdint.h>

struct gt_process;

#define GT_EDITOR_WINDOW 65536u
#define GT_EDITOR_MOST	 4096u /* bytes of one edit */

struct gt_editor {
	const struct gt_process *process;
	uint64_t start;		  /* of the window, a page boundary; 0 = none yet */
	size_t bytes;		  /* readable from there */
	uint32_t dirty;		  /* a bit a page */
	struct gt_editor *before; /* is flushed first: what this one's bytes lead to. NULL none */
	uint8_t window[GT_EDITOR_WINDOW];
};

void gt_editor_init(struct gt_editor *editor, const struct gt_process *process);

/* The bytes [address, address + size), to look at; valid until the next call. NULL: not mapped, more than
 * GT_EDITOR_MOST, or the window could not be written back. */
const uint8_t *gt_editor_look(struct gt_editor *editor, uint64_t address, size_t size);

/* Changes them, in the process when the window moves on or is flushed. GT_EINVAL: more than GT_EDITOR_MOST;
 * GT_EIO: not mapped; errors as of gt_editor_flush(). */
int gt_editor_put(struct gt_editor *editor, uint64_t address, const void *bytes, size_t size);

/* Writes what was changed, that of `before` first. Errors as of gt_process_write(): it stays to be written. */
int gt_editor_flush(struct gt_editor *editor);

#endif
