/* SPDX-License-Identifier: MIT */
#include "core/trace/settings.h"

#include <graftrace/error.h>
#include "core/trace/glob.h"

static const char mark[] = ":mod:";

#define MARK_BYTES (sizeof(mark) - 1)
#define GLOB_BYTES 1024 /* longer ones name nothing */

static size_t length_of(const char *text)
{
	size_t bytes = 0;

	while (text[bytes] != '\0')
		bytes++;
	return bytes;
}

static bool is_equal(const char *a, const char *b)
{
	for (; *a != '\0' && *a == *b; a++, b++)
		;
	return *a == *b;
}

/* Where the object's part begins, with the mark; NULL: the word is for all objects. */
static const char *module_of(const char *word)
{
	for (; *word != '\0'; word++) {
		size_t at = 0;

		while (at < MARK_BYTES && word[at] == mark[at])
			at++;
		if (at == MARK_BYTES)
			return word;
	}
	return NULL;
}

/* In one block: the struct, the words' pointers, those of words with an object, the texts. */
int gt_word_list_create(const struct gt_memory *memory, const char *const *words,
			struct gt_word_list **out)
{
	size_t count = 0, modules = 0, bytes = sizeof(struct gt_word_list);
	struct gt_word_list *list;
	const char **copies, **of_modules;
	char *text;

	*out = NULL;
	for (; words != NULL && words[count] != NULL; count++) {
		bytes += length_of(words[count]) + 1;
		modules += module_of(words[count]) != NULL;
	}
	if (count == 0)
		return GT_OK;
	bytes += (count + 1 + modules) * sizeof(char *);
	list = gt_memory_get(memory, bytes);
	if (list == NULL)
		return GT_ENOMEM;
	copies = (const char **)(list + 1);
	of_modules = copies + count + 1;
	text = (char *)(of_modules + modules);
	*list = (struct gt_word_list){ .count = count,
				       .words = copies,
				       .modules = of_modules,
				       .memory = *memory,
				       .bytes = bytes,
				       .users = 1 };
	for (size_t i = 0; i < count; i++) {
		size_t length = length_of(words[i]) + 1;

		__builtin_memcpy(text, words[i], length);
		copies[i] = text;
		if (module_of(text) != NULL)
			of_modules[list->module_count++] = text;
		text += length;
	}
	copies[count] = NULL;
	if (gt_words_init(&list->hash, memory, copies) != GT_OK) {
		gt_memory_put(memory, list, bytes);
		return GT_ENOMEM;
	}
	*out = list;
	return GT_OK;
}

struct gt_word_list *gt_word_list_hold(struct gt_word_list *list)
{
	if (list != NULL)
		__atomic_fetch_add(&list->users, 1, __ATOMIC_RELAXED);
	return list;
}

void gt_word_list_release(struct gt_word_list *list)
{
	struct gt_memory memory;

	if (list == NULL || __atomic_sub_fetch(&list->users, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	memory = list->memory;
	gt_words_fini(&list->hash);
	gt_memory_put(&memory, list, list->bytes);
}

const char *const *gt_word_list_words(const struct gt_word_list *list)
{
	return list != NULL ? list->words : NULL;
}

bool gt_word_list_match(const struct gt_word_list *list, const char *name)
{
	return list != NULL && gt_words_match(&list->hash, name);
}

bool gt_word_list_has_modules(const struct gt_word_list *list)
{
	return list != NULL && list->module_count > 0;
}

bool gt_word_list_match_module(const struct gt_word_list *list, const char *object,
			       const char *name)
{
	const char *base = object;

	if (!gt_word_list_has_modules(list))
		return false;
	for (; *object != '\0'; object++) {
		if (*object == '/')
			base = object + 1;
	}
	for (size_t i = 0; i < list->module_count; i++) {
		const char *word = list->modules[i], *module = module_of(word);
		size_t bytes = (size_t)(module - word);
		char glob[GLOB_BYTES];

		if (bytes >= sizeof(glob) || !is_equal(module + MARK_BYTES, base))
			continue;
		__builtin_memcpy(glob, word, bytes);
		glob[bytes] = '\0';
		if (gt_glob_match(glob, name))
			return true;
	}
	return false;
}

bool gt_word_list_is_same(const struct gt_word_list *a, const struct gt_word_list *b)
{
	if (a == b)
		return true;
	if (a == NULL || b == NULL || a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (!is_equal(a->words[i], b->words[i]))
			return false;
	}
	return true;
}

struct gt_trace_settings gt_trace_settings_copy(const struct gt_trace_settings *settings)
{
	for (int i = 0; i < GT_LISTS; i++)
		gt_word_list_hold(settings->lists[i]);
	return *settings;
}

void gt_trace_settings_fini(struct gt_trace_settings *settings)
{
	for (int i = 0; i < GT_LISTS; i++) {
		gt_word_list_release(settings->lists[i]);
		settings->lists[i] = NULL;
	}
}

void gt_trace_settings_set_list(struct gt_trace_settings *settings, enum gt_list which,
				struct gt_word_list *list)
{
	gt_word_list_hold(list);
	gt_word_list_release(settings->lists[which]);
	settings->lists[which] = list;
}

bool gt_trace_settings_has_roots(const struct gt_trace_settings *settings)
{
	return settings->tracer != GRAFTRACE_TRACER_FUNCTION &&
	       settings->lists[GT_LIST_GRAPH] != NULL;
}
