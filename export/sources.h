/* SPDX-License-Identifier: MIT */
/*
 * "words.c:41" of functions, as people read it, and the text of that line if it is wanted: kept by the
 * functions' numbers, looked up once. One thread at a time.
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

/* NULL: not known (or no memory). `data` is a struct gt_sources; what is returned stays until
 * gt_sources_fini. Without control characters, and without the end of a C comment. */
const char *gt_sources_note(void *data, uint32_t number);
void gt_sources_fini(struct gt_sources *sources);

#endif
