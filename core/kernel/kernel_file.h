/* SPDX-License-Identifier: MIT */
/*
 * A kernel's ring as a recording file (doc/format.md), made block by block into the caller's
 * buffers: only the present block is in memory. Sub-buffers are written unpacked (encoding 0).
 * Freestanding; a writer belongs to one caller.
 *
 * A consuming writer frees sub-buffers once their bytes were taken, and returns GT_EAGAIN when there are
 * no more: its file has no END, and is valid at any length. It takes closed sub-buffers only: one that
 * stays open for a while is closed for it, and all are at the end of the recording
 * (GT_ARENA_DRAIN_ENDS). So each word is written once, and none is missing between two recordings.
 */
#ifndef GT_CORE_KERNEL_KERNEL_FILE_H
#define GT_CORE_KERNEL_KERNEL_FILE_H

#include "core/kernel/kernel_control.h"

struct gt_arena_file {
	struct gt_arena_control *control;
	struct gt_arena_target target;
	bool consumes;
	bool ends;	 /* consuming: at `limit` */
	bool has_let_go; /* consuming: it has taken all and consumes no more */
	bool waits; /* a closed sub-buffer lacks a word that an interrupted writer still stores */
	uint32_t stage;
	uint32_t function; /* next to be named */
	uint32_t event;	   /* next to be described */
	uint32_t writer;   /* the next to be looked at */
	uint32_t writers;  /* written so far */
	uint32_t threads;  /* written so far */
	uint32_t turn;	   /* writers in a row that had no records */
	uint64_t next[GT_ARENA_WRITERS];
	/* A file that ends, ends with what there was when it was opened: sequences below this, and
	 * of the last of them so many words. */
	uint64_t limit[GT_ARENA_WRITERS];
	uint32_t limit_words[GT_ARENA_WRITERS];
	uint64_t looked_ns;			/* when open sub-buffers were last looked at */
	uint64_t open[GT_ARENA_WRITERS];	/* sequence + 1 of those with words then; 0: none */
	uint64_t waits_until[GT_ARENA_WRITERS]; /* limit of waiting for such a word; 0: none */
	/* By CPU: the losses of before, which are not this recording's; those told at its end */
	uint64_t lost_before[GT_ARENA_WRITERS][GRAFTRACE_LOST_CAUSES];
	uint64_t lost_told[GT_ARENA_WRITERS][GRAFTRACE_LOST_CAUSES];
	uint64_t offset; /* of the present block in the file */
	uint64_t number; /* of the present block */
	uint64_t sub_buffers, words;
	uint8_t *block; /* the present block */
	uint32_t capacity, bytes, given;
};

/* GT_ENOMEM; GT_EBUSY: another reader consumes. */
int gt_arena_file_open(struct gt_arena_control *control, bool consume, struct gt_arena_file **file,
		       struct gt_message *message);
/* The next bytes; 0 at the end; GT_EAGAIN: nothing now (consuming ones). */
int64_t gt_arena_file_read(struct gt_arena_file *file, char *buffer, size_t bytes);
void gt_arena_file_close(struct gt_arena_file *file);

#endif
