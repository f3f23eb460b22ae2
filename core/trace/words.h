/* SPDX-License-Identifier: MIT */
/*
 * Many words and globs at once: whether any of them matches a name. Plain words are found by a
 * hash, so a list of 50,000 names costs as much as one of three; globs are tried one by one. Memory
 * is the caller's allocator's; the words stay the caller's and must stay. One thread at a time.
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

/* list: NULL-terminated, NULL is empty. GT_ENOMEM: then it matches nothing. */
int gt_words_init(struct gt_words *words, const struct gt_memory *memory, const char *const *list);

bool gt_words_match(const struct gt_words *words, const char *name);

void gt_words_fini(struct gt_words *words);

#endif
