/* SPDX-License-Identifier: MIT */
/*
 * A kernel's ring as a recording file (doc/format.md), made block by block into the caller's
 * buffers: nothing is ever held but the block in work. Sub-buffers go in as they are (encoding 0).
 * Freestanding; a writer belongs to one caller.
 *
 * A consuming writer gives sub-buffers back once their bytes were taken, and waits for more when it
 * has given what there is: its file has no END, and is whole at any time. Sub-buffers go out of the
 * ring whole: one that stays open for a while is closed for it, and all are when somebody asks for
 * the end of the recording (GT_ARENA_DRAIN_ENDS). So each word goes out once, and none is missing
 * between two recordings.
 */
#ifndef GT_CORE_KERNEL_KERNEL_FILE_H
#define GT_CORE_KERNEL_KERNEL_FILE_H

#include "core/kernel/kernel_control.h"

struct gt_arena_file {
	struct gt_arena_control *control;
	struct gt_arena_target target;
	bool consumes;
	bool ends;	 /* consuming: at `limit` */
	bool has_let_go; /* … and has taken all: the ring is somebody else's */
	bool waits; /* a closed sub-buffer lacks a word that an interrupted writer still stores */
	uint32_t stage;
	uint32_t function; /* next to be named */
	uint32_t event;	   /* … and described */
	uint32_t writer;   /* whose turn it is */
	uint32_t writers;  /* that were told */
	uint32_t threads;  /* that were told */
	uint32_t turn;	   /* writers in a row that had nothing */
	uint64_t next[GT_ARENA_WRITERS];
	/* A file that ends, ends with what there was when it was opened: sequences below this, and
	 * of the last of them so many words. */
	uint64_t limit[GT_ARENA_WRITERS];
	uint32_t limit_words[GT_ARENA_WRITERS];
	uint64_t looked_ns;		 /* at what is open … */
	uint64_t open[GT_ARENA_WRITERS]; /* … then: its sequence + 1; 0: nothing that has words */
	uint64_t waits_until[GT_ARENA_WRITERS]; /* for such a word; 0: for none */
	uint64_t offset;			/* in the file, of the block in work */
	uint64_t number;			/* of the block in work */
	uint64_t sub_buffers, words;
	uint8_t *block; /* the block in work */
	uint32_t capacity, bytes, given;
};

/* GT_ENOMEM; GT_EBUSY: consumes, and somebody else does. */
int gt_arena_file_open(struct gt_arena_control *control, bool consume, struct gt_arena_file **file,
		       struct gt_message *message);
/* The next bytes; 0 at the end; GT_EAGAIN: nothing now (consuming ones). */
int64_t gt_arena_file_read(struct gt_arena_file *file, char *buffer, size_t bytes);
void gt_arena_file_close(struct gt_arena_file *file);

#endif
