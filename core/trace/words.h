/* SPDX-License-Identifier: MIT */
/*
 * Many words and globs at once: whether any of them matches a name. Plain words are found by a
 * hash, so a list of 50,000 names costs as much as one of three; globs are tried one by one. Memory
 * is the caller's allocator's; the words stay the caller's and must stay until gt_words_fini(). No locks: any number
 * of threads may match at once, while none makes or ends the structure.
 */
#ifndef GT_CORE_TRACE_WORDS_H
#define GT_CORE_TRACE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/memory.h"

/* private */
struct gt_word {
	const char *word;
	uint32_t hash;
};

/* All zero: no word, nothing matches. */
struct gt_words {
	struct gt_memory memory;
	struct gt_word *slots; /* of plain words: open addressing; NULL word: empty */
	uint32_t slot_count;   /* a power of two, or 0 */
	const char **globs;
	uint32_t glob_count;
	uint32_t glob_room;
};

/* list: NULL-terminated, NULL is empty; words and globs as core/trace/glob.h has them. The array need not stay. *memory
 * is copied. What *words had before is not freed. GT_ENOMEM: it matches nothing, and has nothing to free. */
int gt_words_init(struct gt_words *words, const struct gt_memory *memory, const char *const *list);

/* Whether a word or a glob matches the whole name. */
bool gt_words_match(const struct gt_words *words, const char *name);

/* Frees the tables: then nothing matches. Also of a structure that is all zero, or was ended before. */
void gt_words_fini(struct gt_words *words);

#endif
