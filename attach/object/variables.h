/* SPDX-License-Identifier: MIT */
/*
 * Functions, lines and variables of an object by their names in source: what DWARF says of them, in the file
 * itself or in its separate debug file. Values become fetch arguments of Linux's uprobe_events
 * (core/trace/probe.h), as `perf probe` makes them. Files are hostile as all objects. One thread at a time.
 */
#ifndef GT_ATTACH_VARIABLES_H
#define GT_ATTACH_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>

struct gt_variables;

/* GT_ENOENT: the file has no debug information. GT_ENOMEM, GT_EIO. */
int gt_variables_open(const char *path, struct gt_variables **variables,
		      struct gt_message *message);
void gt_variables_close(struct gt_variables *variables);

/* A place in source. */
struct gt_source_place {
	const char *function; /* NULL: file and line say */
	const char *file;     /* the end of its path; NULL: wherever the function is */
	bool has_line;
	uint32_t line; /* of the file or, with a function, from its first line on (0) */
	uint32_t last; /* gt_variables_each_line of a file: up to this one; 0: 20 further */
};

/* Addresses (the object's) of the place: calls back until it returns non-zero. entry: the function's first
 * instruction; else the place is where its variables are: behind what sets up its frame, where that writes
 * parameters, else the first instruction too. GT_ENOENT: the message says what is not there. */
int gt_variables_each_address(struct gt_variables *variables, const struct gt_source_place *place,
			      bool entry, int (*each)(void *data, uint64_t address), void *data,
			      struct gt_message *message);

/* In an expression: the result of the function at whose first instruction `address` is, when it returns. */
#define GT_VARIABLES_RESULT "$retval"

/* The fetch argument of an expression as C has it (var, var->field, var.field, var[N]), with a type unless
 * `type` is one: "+8(+0(%di)):s32". GT_ENOENT, GT_ENOTSUP: the message says why. */
int gt_variables_fetch(struct gt_variables *variables, uint64_t address, const char *expression,
		       const char *type, char *out, size_t size, struct gt_message *message);

/* Variables that can be had at an address: their names and types as people write them. parameters: only
 * those. */
int gt_variables_each(struct gt_variables *variables, uint64_t address, bool parameters,
		      int (*each)(void *data, const char *type, const char *name), void *data,
		      struct gt_message *message);

/* Lines of the function, or around the place, that code comes from: calls back with each line from the first to the
 * last, its number and whether a probe can be there. */
int gt_variables_each_line(struct gt_variables *variables, const struct gt_source_place *place,
			   int (*each)(void *data, const char *file, uint32_t line, bool code),
			   void *data, struct gt_message *message);

#endif
