/* SPDX-License-Identifier: MIT */
/* A directory of control files as a page for people, or as JSON for programs. */
#ifndef GT_SERVE_INDEX_H
#define GT_SERVE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include "core/control/control.h"

/* The page of `path` ("" or "options/"), NUL-terminated and malloc'ed: the caller frees. query: what
 * its links end in ("?token=…", or ""). NULL: no memory. From
 * any thread. */
char *gt_index_make(const struct gt_control_node *directory, const char *path, const char *title,
		    const char *query, bool json, size_t *bytes);

#endif
