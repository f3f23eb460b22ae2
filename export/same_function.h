/* SPDX-License-Identifier: MIT */
/*
 * When two functions of a recording are one to its reader: each process has its own numbers, and the
 * same function of a file, in however many processes, is one row of a table.
 */
#ifndef GT_EXPORT_SAME_FUNCTION_H
#define GT_EXPORT_SAME_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "core/trace/hash.h"
#include "core/trace/target.h"

#define GT_SAME_FUNCTION_PAGE 4096

static inline uint32_t gt_function_hash(const struct gt_function *function)
{
	return gt_hash_text(GT_HASH_BEGIN, function->name);
}

/* Both have a name and an object. The same function lies at the same place of a page in each
 * process; another of its name in the same file, a static one, mostly does not. */
static inline bool gt_function_is_same(const struct gt_function *a, const struct gt_function *b)
{
	return a->size == b->size && (a->address - b->address) % GT_SAME_FUNCTION_PAGE == 0 &&
	       strcmp(a->name, b->name) == 0 && strcmp(a->object, b->object) == 0;
}

#endif
