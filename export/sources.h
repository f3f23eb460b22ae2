/* SPDX-License-Identifier: MIT */
/*
 * Source places of functions ("words.c:41"), with the text of that line if it is wanted. Each is looked up once and
 * kept by the function's number. One thread at a time.
 */
#ifndef GT_EXPORT_SOURCES_H
#define GT_EXPORT_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/target.h"

#define GT_SOURCE_MAX 192 /* bytes of what is kept, its zero byte too */

struct gt_source_file;

/* Set `target` and `with_text`; all else zero. */
struct gt_sources {
	struct gt_target *target;
	bool with_text; /* "words.c:41: int main(int argc, char **argv)" */
	char **notes;
	uint32_t room;
	struct gt_source_file *files; /* that lines were read from */
};

/* The place of function `number`, valid until gt_sources_fini; it has no control characters, and no end of a C comment.
 * NULL: it is not known (or no memory). `data` is a struct gt_sources. */
const char *gt_sources_note(void *data, uint32_t number);
void gt_sources_fini(struct gt_sources *sources);

#endif
