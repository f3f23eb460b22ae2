/* SPDX-License-Identifier: MIT */
/* A directory of control files as a page for people, or as JSON for programs. */
#ifndef GT_SERVE_INDEX_H
#define GT_SERVE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include "core/control/control.h"

/* Makes the page of the directory at `path` ("" or "options/"), NUL-terminated; the caller frees it. *bytes: its
 * length. title: what is traced. query: what its links end in ("?token=…", or ""). json: as JSON. NULL: no memory. From
 * any thread. */
char *gt_index_make(const struct gt_control_node *directory, const char *path, const char *title,
		    const char *query, bool json, size_t *bytes);

#endif
