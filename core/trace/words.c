/* SPDX-License-Identifier: MIT */
/* See words.h. */
#include "core/trace/words.h"

#include <graftrace/error.h>
#include "core/trace/glob.h"
#include "core/trace/hash.h"

/* Of a name, or of a word without its escapes. */
static uint32_t hash_of(const char *text, bool escapes)
{
	uint32_t hash = GT_HASH_BEGIN;

	for (; *text != '\0'; text++) {
		if (escapes && *text == '\\' && text[1] != '\0')
			text++;
		hash = gt_hash_byte(hash, *text);
	}
	return hash;
}

/* Whether the plain word says that name. */
static bool is_name(const char *word, const char *name)
{
	for (; *word != '\0'; word++, name++) {
		if (*word == '\\' && word[1] != '\0')
			word++;
		if (*word != *name)
			return false;
	}
	return *name == '\0';
}

/* An escape alone makes no glob. */
static bool is_plain(const char *word)
{
	for (; *word != '\0'; word++) {
		if (*word == '\\' && word[1] != '\0')
			word++;
		else if (*word == '*' || *word == '?' || *word == '[')
			return false;
	}
	return true;
}

static void put(struct gt_words *words, const char *word)
{
	uint32_t hash = hash_of(word, true);
	uint32_t at = hash;

	while (words->slots[at & (words->slot_count - 1)].word != NULL)
		at++;
	words->slots[at & (words->slot_count - 1)] = (struct gt_word){ word, hash };
}

int gt_words_init(struct gt_words *words, const struct gt_memory *memory, const char *const *list)
{
	uint32_t plain = 0;
	uint32_t globs = 0;

	*words = (struct gt_words){ .memory = *memory };
	for (uint32_t i = 0; list != NULL && list[i] != NULL; i++) {
		if (is_plain(list[i]))
			plain++;
		else
			globs++;
	}
	if (plain > 0) {
		words->slot_count = 8;
		while (words->slot_count / 2 < plain)
			words->slot_count *= 2;
		words->slots = gt_memory_get(memory, words->slot_count * sizeof(*words->slots));
	}
	if (globs > 0) {
		words->glob_room = globs;
		words->globs = gt_memory_get(memory, globs * sizeof(*words->globs));
	}
	if ((plain > 0 && words->slots == NULL) || (globs > 0 && words->globs == NULL)) {
		gt_words_fini(words);
		return GT_ENOMEM;
	}
	for (uint32_t i = 0; i < words->slot_count; i++)
		words->slots[i] = (struct gt_word){ NULL, 0 };
	for (uint32_t i = 0; list != NULL && list[i] != NULL; i++) {
		if (is_plain(list[i]))
			put(words, list[i]);
		else
			words->globs[words->glob_count++] = list[i];
	}
	return 0;
}

static bool has_plain(const struct gt_words *words, const char *name)
{
	uint32_t hash = hash_of(name, false);

	for (uint32_t at = hash;; at++) {
		const struct gt_word *slot = &words->slots[at & (words->slot_count - 1)];

		if (slot->word == NULL)
			return false;
		if (slot->hash == hash && is_name(slot->word, name))
			return true;
	}
}

bool gt_words_match(const struct gt_words *words, const char *name)
{
	if (words->slot_count > 0 && has_plain(words, name))
		return true;
	for (uint32_t i = 0; i < words->glob_count; i++) {
		if (gt_glob_match(words->globs[i], name))
			return true;
	}
	return false;
}

void gt_words_fini(struct gt_words *words)
{
	gt_memory_put(&words->memory, words->slots, words->slot_count * sizeof(*words->slots));
	gt_memory_put(&words->memory, words->globs, words->glob_room * sizeof(*words->globs));
	words->slots = NULL;
	words->globs = NULL;
	words->slot_count = words->glob_count = words->glob_room = 0;
}
