/* SPDX-License-Identifier: MIT */
/* See names.h. A function with a shown name of its own stands in the table twice. */
#include "attach/agent/names.h"
#include "attach/agent/catalog.h"
#include "core/trace/hash.h"

#include <stdlib.h>
#include <string.h>

/* Of a word without its escapes: as that of the name that it says. */
static uint32_t hash_of_word(const char *word)
{
	uint32_t hash = GT_HASH_BEGIN;

	for (; *word; word++) {
		if (*word == '\\' && word[1])
			word++;
		hash = gt_hash_byte(hash, *word);
	}
	return hash;
}

static bool says(const char *word, const char *name)
{
	for (; *word; word++, name++) {
		if (*word == '\\' && word[1])
			word++;
		if (*word != *name)
			return false;
	}
	return *name == '\0';
}

bool gt_names_is_plain(const char *word)
{
	for (; *word; word++) {
		if (*word == '\\' && word[1])
			word++;
		else if (*word == '*' || *word == '?' || *word == '[')
			return false;
	}
	return true;
}

static void put(struct gt_names *names, const char *name, uint32_t index)
{
	uint32_t at = gt_hash_text(GT_HASH_BEGIN, name);

	while (names->slots[at & names->mask])
		at++;
	names->slots[at & names->mask] = index + 1;
}

static int make(struct gt_catalog_file *file)
{
	struct gt_names *names = &file->names;
	uint32_t count = 0, size = 16;

	for (uint32_t i = 0; i < file->function_count; i++)
		count += 1 + (gt_object_function_name(file->object, i) !=
			      gt_object_function(file->object, i)->name);
	while (size / 2 < count)
		size *= 2;
	names->slots = calloc(size, sizeof(*names->slots));
	if (names->slots == NULL)
		return GT_ENOMEM;
	names->mask = size - 1;
	for (uint32_t i = 0; i < file->function_count; i++) {
		const char *plain = gt_object_function(file->object, i)->name;
		const char *shown = gt_object_function_name(file->object, i);

		put(names, plain, i);
		if (shown != plain)
			put(names, shown, i);
	}
	return 0;
}

int gt_names_next(struct gt_catalog_file *file, const char *word, uint32_t *at, uint32_t *index)
{
	struct gt_names *names = &file->names;
	uint32_t hash, slot;

	if (!file->function_count)
		return GT_ENOENT;
	if (names->slots == NULL && make(file))
		return GT_ENOMEM;
	hash = hash_of_word(word);
	while ((slot = names->slots[(hash + *at) & names->mask]) != 0) {
		++*at;
		if (!says(word, gt_object_function(file->object, slot - 1)->name) &&
		    !says(word, gt_object_function_name(file->object, slot - 1)))
			continue;
		*index = slot - 1;
		return 0;
	}
	return GT_ENOENT;
}

void gt_names_fini(struct gt_names *names)
{
	free(names->slots);
	names->slots = NULL;
}
