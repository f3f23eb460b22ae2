/* SPDX-License-Identifier: MIT */
/* See globs.h. A failed addition leaves the list as it was. */
#include "serve/globs.h"

#include <stdlib.h>
#include <string.h>

#include "core/view/glob.h"

static bool make_room(struct gt_globs *globs)
{
	size_t room = globs->room != 0 ? globs->room * 2 : 16;
	char **words;

	if (globs->count + 1 < globs->room)
		return true;
	words = realloc(globs->words, room * sizeof(*words));
	if (words == NULL)
		return false;
	globs->words = words;
	globs->room = room;
	return true;
}

bool gt_globs_add(struct gt_globs *globs, const char *word, size_t bytes, bool plain)
{
	char *copy;
	size_t length = 0;

	if (!make_room(globs))
		return false;
	copy = malloc(bytes * (plain ? 2 : 1) + 1);
	if (copy == NULL)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		if (plain && strchr("*?[]\\", word[i]) != NULL)
			copy[length++] = '\\';
		copy[length++] = word[i];
	}
	copy[length] = '\0';
	globs->words[globs->count++] = copy;
	globs->words[globs->count] = NULL;
	return true;
}

bool gt_globs_add_all(struct gt_globs *globs, const char *const *words)
{
	for (; words != NULL && *words != NULL; words++) {
		if (!gt_globs_add(globs, *words, strlen(*words), false))
			return false;
	}
	return true;
}

bool gt_globs_remove(struct gt_globs *globs, const char *word)
{
	for (size_t i = 0; i < globs->count; i++) {
		if (strcmp(globs->words[i], word) != 0)
			continue;
		free(globs->words[i]);
		memmove(&globs->words[i], &globs->words[i + 1],
			(globs->count - i) * sizeof(*globs->words));
		globs->count--;
		return true;
	}
	return false;
}

bool gt_globs_match(const struct gt_globs *globs, const char *name)
{
	for (size_t i = 0; i < globs->count; i++) {
		if (gt_glob_match(globs->words[i], name))
			return true;
	}
	return false;
}

const char *const *gt_globs_words(const struct gt_globs *globs)
{
	return globs->count > 0 ? (const char *const *)globs->words : NULL;
}

void gt_globs_clear(struct gt_globs *globs)
{
	for (size_t i = 0; i < globs->count; i++)
		free(globs->words[i]);
	free(globs->words);
	*globs = (struct gt_globs){ NULL, 0, 0 };
}
