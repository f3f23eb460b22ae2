/* SPDX-License-Identifier: MIT */
/* See words.h. */
#include "core/view/words.h"

#include <graftrace/error.h>
#include "core/view/glob.h"

/* FNV-1a, of a name, or of a word without its escapes. */
static uint32_t hash_of(const char *text, bool escapes)
{
	uint32_t hash = 2166136261u;

	for (; *text != '\0'; text++) {
		if (escapes && *text == '\\' && text[1] != '\0')
			text++;
		hash = (hash ^ (unsigned char)*text) * 16777619u;
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
	words->slots[at & (words->slot_count - 1)] = (struct gt_word){ word, hash, false };
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
		words->slots[i] = (struct gt_word){ NULL, 0, false };
	for (uint32_t i = 0; list != NULL && list[i] != NULL; i++) {
		if (is_plain(list[i]))
			put(words, list[i]);
		else
			words->globs[words->glob_count++] = (struct gt_word){ list[i], 0, false };
	}
	return 0;
}

/* The first plain word that says the name, from slot *at on, which moves behind it. NULL: none. */
static struct gt_word *next_plain(const struct gt_words *words, const char *name, uint32_t hash,
				  uint32_t *at)
{
	for (;;) {
		struct gt_word *slot = &words->slots[(*at)++ & (words->slot_count - 1)];

		if (slot->word == NULL)
			return NULL;
		if (slot->hash == hash && is_name(slot->word, name))
			return slot;
	}
}

bool gt_words_match(const struct gt_words *words, const char *name)
{
	if (words->slot_count > 0) {
		uint32_t hash = hash_of(name, false);
		uint32_t at = hash;

		if (next_plain(words, name, hash, &at) != NULL)
			return true;
	}
	for (uint32_t i = 0; i < words->glob_count; i++) {
		if (gt_glob_match(words->globs[i].word, name))
			return true;
	}
	return false;
}

bool gt_words_would_note(const struct gt_words *words, const char *name)
{
	if (words->slot_count > 0) {
		uint32_t hash = hash_of(name, false);
		uint32_t at = hash;
		const struct gt_word *word;

		while ((word = next_plain(words, name, hash, &at)) != NULL) {
			if (!word->noted)
				return true;
		}
	}
	for (uint32_t i = 0; i < words->glob_count; i++) {
		if (!words->globs[i].noted && gt_glob_match(words->globs[i].word, name))
			return true;
	}
	return false;
}

bool gt_words_note(struct gt_words *words, const char *name)
{
	bool noted = false;

	if (words->slot_count > 0) {
		uint32_t hash = hash_of(name, false);
		uint32_t at = hash;
		struct gt_word *word;

		while ((word = next_plain(words, name, hash, &at)) != NULL) {
			noted |= !word->noted;
			word->noted = true;
		}
	}
	for (uint32_t i = 0; i < words->glob_count; i++) {
		struct gt_word *glob = &words->globs[i];

		if (!glob->noted && gt_glob_match(glob->word, name)) {
			noted = true;
			glob->noted = true;
		}
	}
	return noted;
}

const char *gt_words_unnoted(const struct gt_words *words)
{
	for (uint32_t i = 0; i < words->slot_count; i++) {
		if (words->slots[i].word != NULL && !words->slots[i].noted)
			return words->slots[i].word;
	}
	for (uint32_t i = 0; i < words->glob_count; i++) {
		if (!words->globs[i].noted)
			return words->globs[i].word;
	}
	return NULL;
}

void gt_words_fini(struct gt_words *words)
{
	gt_memory_put(&words->memory, words->slots, words->slot_count * sizeof(*words->slots));
	gt_memory_put(&words->memory, words->globs, words->glob_room * sizeof(*words->globs));
	words->slots = NULL;
	words->globs = NULL;
	words->slot_count = words->glob_count = words->glob_room = 0;
}
