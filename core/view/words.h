/* SPDX-License-Identifier: MIT */
/*
 * Many words and globs at once: whether any of them matches a name. Plain words are found by a
 * hash, so a list of 50,000 names costs as much as one of three; globs are tried one by one. Memory
 * is the caller's allocator's; the words stay the caller's and must stay. One thread at a time.
 */
#ifndef GT_CORE_VIEW_WORDS_H
#define GT_CORE_VIEW_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/view/memory.h"

/* private */
struct gt_word {
	const char *word;
	uint32_t hash;
	bool noted;
};

/* All zero: no word, nothing matches. */
struct gt_words {
	struct gt_memory memory;
	struct gt_word *slots; /* of plain words: open addressing; NULL word: empty */
	uint32_t slot_count;   /* a power of two, or 0 */
	struct gt_word *globs;
	uint32_t glob_count;
	uint32_t glob_room;
};

/* list: NULL-terminated, NULL is empty. GT_ENOMEM: then it matches nothing. */
int gt_words_init(struct gt_words *words, const struct gt_memory *memory, const char *const *list);

bool gt_words_match(const struct gt_words *words, const char *name);

/* Notes each word that matches the name. True: at least one had not been noted yet. */
bool gt_words_note(struct gt_words *words, const char *name);

/* Whether gt_words_note would note something new: for what is looked at only then. */
bool gt_words_would_note(const struct gt_words *words, const char *name);

/* A word that has not been noted, NULL: all have. */
const char *gt_words_unnoted(const struct gt_words *words);

void gt_words_fini(struct gt_words *words);

#endif
