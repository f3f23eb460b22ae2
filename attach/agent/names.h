/* SPDX-License-Identifier: MIT */
/*
 * Which functions of a file have a name: an index, so that one name among 100,000 functions is
 * found without looking at them. Made at the first question. Under the session's lock.
 */
#ifndef GT_ATTACH_NAMES_H
#define GT_ATTACH_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <graftrace/error.h>

struct gt_catalog_file;

struct gt_names {
	uint32_t *slots; /* open addressing: index of a function + 1; 0: empty. NULL: not made */
	uint32_t mask;
};

/* Whether the word is one name: no glob. An escape (\*) alone makes none. */
bool gt_names_is_plain(const char *word);

/* The next function whose plain or shown name is what the plain word says, from *at on (0 at
 * first), in no order. GT_ENOENT: there is no other one. GT_ENOMEM: no index can be made. */
int gt_names_next(struct gt_catalog_file *file, const char *word, uint32_t *at, uint32_t *index);

void gt_names_fini(struct gt_names *names);

#endif
