/* SPDX-License-Identifier: MIT */
/*
 * A flame graph as one SVG file that needs nothing else: time goes to the right, calls upwards; a
 * click on a frame makes it as wide as the picture, a click on the bottom goes back, and what is
 * typed behind Ctrl-F in the browser is found, since names are text. Frames narrower than a tenth of
 * a unit are left out; their time stays in their caller's. One thread at a time.
 */
#ifndef GT_EXPORT_FLAME_H
#define GT_EXPORT_FLAME_H

#include "export/call_tree.h"
#include "export/out.h"

#define GT_FLAME_WORDS 256

/* All stays the caller's. Each function is given `user` and the index of a node, below the root. */
struct gt_flame {
	const struct gt_tree *tree; /* finished; the frames are as wide as its totals */
	const char *title;
	void *user;
	/* Valid until the next call. */
	const char *(*name)(void *user, uint32_t node);
	/* Writes the second line of the note that is shown when the pointer rests on a frame. */
	void (*words)(void *user, uint32_t node, char text[GT_FLAME_WORDS]);
	void (*color)(void *user, uint32_t node, unsigned color[3]);
};

/* Writes a time with three significant digits: "12.3 ms". */
void gt_flame_time(char text[32], uint64_t ns);

/* Writes the SVG file, and does not flush `out`. GT_EIO: out->error. */
int gt_flame_write(const struct gt_flame *flame, struct gt_out *out);

#endif
