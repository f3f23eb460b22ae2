/* SPDX-License-Identifier: MIT */
/* See globs.h. A failed addition leaves the list as it was. */
#include "serve/store/globs.h"

#include <stdlib.h>
#include <string.h>

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
	size_t kept = 0, count = globs->count;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(globs->words[i], word) == 0)
			free(globs->words[i]);
		else
			globs->words[kept++] = globs->words[i];
	}
	if (kept == count)
		return false;
	globs->words[kept] = NULL;
	globs->count = kept;
	return true;
}

const char *gt_globs_module(const char *word)
{
	const char *mark = strstr(word, ":mod:");

	return mark != NULL ? mark + strlen(":mod:") : NULL;
}

bool gt_globs_add_modules(struct gt_globs *modules, const char *const *words)
{
	for (; words != NULL && *words != NULL; words++) {
		if (gt_globs_module(*words) != NULL &&
		    !gt_globs_add(modules, *words, strlen(*words), false))
			return false;
	}
	return true;
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
