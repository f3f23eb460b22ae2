/* SPDX-License-Identifier: MIT */
#include "core/trace/settings.h"

#include <graftrace/error.h>
#include "core/trace/glob.h"

static const char mark[] = ":mod:";

#define MARK_BYTES (sizeof(mark) - 1)
#define GLOB_BYTES 1024 /* longer ones name nothing */
/* A list has so many words more than the one that it shares words with; else it copies all of them. */
#define APPENDED_MOST 512

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

static size_t count_of(const char *const *words)
{
	size_t count = 0;

	while (words != NULL && words[count] != NULL)
		count++;
	return count;
}

/* Some words, and what they take in a list that has copies of them. */
struct part {
	const char *const *words;
	size_t count, modules, bytes;
};

static struct part part_of(const char *const *words, size_t count)
{
	struct part part = { words, count, 0, 0 };

	for (size_t i = 0; i < count; i++) {
		part.bytes += length_of(words[i]) + 1;
		part.modules += module_of(words[i]) != NULL;
	}
	return part;
}

/* Copies the words behind those that the list has; where the next text goes. */
static char *copy_part(struct gt_word_list *list, const struct part *part, const char **words,
		       const char **modules, char *text)
{
	for (size_t i = 0; i < part->count; i++) {
		size_t length = length_of(part->words[i]) + 1;

		__builtin_memcpy(text, part->words[i], length);
		words[list->count++] = text;
		if (module_of(text) != NULL)
			modules[list->module_count++] = text;
		text += length;
	}
	return text;
}

/*
 * A list of root's words (NULL: none), which stay where they are, and of copies of two parts. In one
 * block: the struct, the words' pointers, those of words with an object, the texts.
 */
static int make(const struct gt_memory *memory, struct gt_word_list *root, const struct part *first,
		const struct part *second, struct gt_word_list **out)
{
	size_t shared = root != NULL ? root->count : 0;
	size_t shared_modules = root != NULL ? root->module_count : 0;
	size_t pointers = shared + first->count + second->count + 1 + shared_modules +
			  first->modules + second->modules;
	size_t bytes = sizeof(struct gt_word_list) + pointers * sizeof(char *) + first->bytes +
		       second->bytes;
	struct gt_word_list *list = gt_memory_get(memory, bytes);
	const char **words, **modules;
	char *text;

	*out = NULL;
	if (list == NULL)
		return GT_ENOMEM;
	words = (const char **)(list + 1);
	modules = words + shared + first->count + second->count + 1;
	text = (char *)(list + 1) + pointers * sizeof(char *);
	*list = (struct gt_word_list){ .count = shared,
				       .words = words,
				       .modules = modules,
				       .module_count = shared_modules,
				       .memory = *memory,
				       .bytes = bytes,
				       .users = 1 };
	if (root != NULL) {
		__builtin_memcpy(words, root->words, shared * sizeof(*words));
		__builtin_memcpy(modules, root->modules, shared_modules * sizeof(*modules));
	}
	text = copy_part(list, first, words, modules, text);
	copy_part(list, second, words, modules, text);
	words[list->count] = NULL;
	if (gt_words_init(&list->hash, memory, words + shared) != 0) {
		gt_memory_put(memory, list, bytes);
		return GT_ENOMEM;
	}
	list->root = gt_word_list_hold(root);
	*out = list;
	return 0;
}

int gt_word_list_create(const struct gt_memory *memory, const char *const *words,
			struct gt_word_list **out)
{
	struct part all = part_of(words, count_of(words)), none = part_of(NULL, 0);

	*out = NULL;
	return all.count != 0 ? make(memory, NULL, &all, &none, out) : 0;
}

int gt_word_list_append(const struct gt_memory *memory, struct gt_word_list *list,
			const char *const *words, struct gt_word_list **out)
{
	struct gt_word_list *root = list != NULL && list->root != NULL ? list->root : list;
	struct part first, second = part_of(words, count_of(words));

	if (list == NULL)
		return gt_word_list_create(memory, words, out);
	if (second.count == 0) {
		*out = gt_word_list_hold(list);
		return 0;
	}
	if (list->count - root->count + second.count > APPENDED_MOST) {
		first = part_of(list->words, list->count);
		return make(memory, NULL, &first, &second, out);
	}
	first = part_of(list->words + root->count, list->count - root->count);
	return make(memory, root, &first, &second, out);
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
	gt_word_list_release(list->root);
	gt_words_fini(&list->hash);
	gt_memory_put(&memory, list, list->bytes);
}

const char *const *gt_word_list_words(const struct gt_word_list *list)
{
	return list != NULL ? list->words : NULL;
}

bool gt_word_list_match(const struct gt_word_list *list, const char *name)
{
	return list != NULL && (gt_words_match(&list->hash, name) ||
				(list->root != NULL && gt_words_match(&list->root->hash, name)));
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
		if (a->words[i] != b->words[i] && !is_equal(a->words[i], b->words[i]))
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

int gt_trace_settings_append(struct gt_trace_settings *settings, enum gt_list which,
			     const struct gt_memory *memory, const char *const *words)
{
	struct gt_word_list *list;
	int error = gt_word_list_append(memory, settings->lists[which], words, &list);

	if (error == 0) {
		gt_trace_settings_set_list(settings, which, list);
		gt_word_list_release(list);
	}
	return error;
}

bool gt_trace_settings_has_roots(const struct gt_trace_settings *settings)
{
	return settings->tracer != GRAFTRACE_TRACER_FUNCTION &&
	       settings->lists[GT_LIST_GRAPH] != NULL;
}
