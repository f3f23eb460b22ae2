/* SPDX-License-Identifier: MIT */
/*
 * The merged call tree as text or JSON: each different stack once, with calls, total and own time,
 * callees below their callers, or, turned around, callers below their callees. One thread at a time.
 */
#ifndef GT_EXPORT_GRAPH_H
#define GT_EXPORT_GRAPH_H

#include <stdbool.h>
#include <stdint.h>
#include "export/out.h"
#include "export/stacks.h"

struct gt_graph_options {
	struct gt_filter *filter; /* NULL: all. Its `graph`: the roots are these functions' calls */
	const char
		*callers_of; /* a glob: the roots are these functions, their callers below; NULL */
	uint32_t function_end; /* one more than the highest function number */
	uint64_t least_ns;     /* stacks of less total time are left out, and counted */
	double least_part;     /* the same, as a part of all: 0.01 */
	uint32_t depth;	       /* levels that are printed; 0 all */
	bool json;
	bool brief;	/* of text: short names (short_names.h) … */
	uint32_t width; /* … cut in the middle to lines of so many columns; 0: not */
	bool lines;	/* file and line of functions … */
	bool source;	/* … and of text that line itself */
};

/* Reads the target, writes the tree and flushes `out`. *report is what was read; after an error it may not be set.
 * GT_ENOMEM; GT_EIO (out->error); GT_ENOENT: no call is left, and nothing was written. */
int gt_graph_write(struct gt_target *target, const struct gt_graph_options *options,
		   struct gt_out *out, struct gt_stack_report *report);

#endif
