/* SPDX-License-Identifier: MIT */
/*
 * What the function profiler has counted, interval by interval, in the formats of systems that keep such
 * figures: `clickhouse` (rows of the interval), `otlp` (OpenTelemetry's metrics as JSON, sums since the
 * start), `prometheus` (the exposition format, sums since the start). These take figures of any number of
 * hosts and builds; nothing is kept here but the last interval's sums.
 *
 * Functions of one name in one object are one row: a system that keys rows by name would take the second
 * for an error. One thread at a time.
 */
#ifndef GT_EXPORT_COUNTED_H
#define GT_EXPORT_COUNTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "export/out.h"

/* Strings are the caller's and live as long as the figures do. */
struct gt_counted_row {
	const char *function;
	const char *object;
	const char *build; /* the object's build ID in hexadecimal, "" none */
	uint64_t calls;	   /* since the start, as are the times */
	uint64_t total_ns; /* from entry to return, of those that have returned */
	uint64_t self_ns;  /* without callees */
};

struct gt_counted_about {
	const char *host;
	const char *program;
	const char *version; /* of graftrace */
	uint32_t pid;
	uint64_t start_ns; /* when counting began, since 1970 */
	uint64_t from_ns;  /* the interval */
	uint64_t to_ns;
	uint64_t lost; /* calls that are in no row, since the start */
};

/* Zeroed to begin with. */
struct gt_counted {
	struct gt_counted_row *rows; /* sorted by name and object */
	uint32_t count;
	struct gt_counted_row *before; /* the same at the end of the interval before */
	uint32_t before_count;
};

/* Sets the sums as they are now; the rows are copied. GT_ENOMEM: the earlier ones stay. */
int gt_counted_take(struct gt_counted *counted, const struct gt_counted_row *rows, uint32_t count);
/* Ends the interval: the next one begins here, and there are no rows until the next take. Without this call the next
 * take prolongs the interval, for figures that could not be delivered. */
void gt_counted_next(struct gt_counted *counted);
/* The figures of row `index` (below `count`) in this interval: the difference to the end of the interval before, 0
 * where they have become less. */
struct gt_counted_row gt_counted_since(const struct gt_counted *counted, uint32_t index);
void gt_counted_fini(struct gt_counted *counted);

struct gt_counted_format {
	const char *name;
	const char *content_type; /* over HTTP */
	const char *path;	  /* over HTTP, where the address has none; %s is the host */
	/* The statement that makes the table, where one is needed; NULL. */
	const char *create_table;
	/* Every interval's output is the whole of it: a file is written anew each time. */
	bool whole;
	void (*put)(const struct gt_counted *counted, const struct gt_counted_about *about,
		    struct gt_out *out);
};

/* All formats; the last entry has no name. */
extern const struct gt_counted_format gt_counted_formats[];

#endif
