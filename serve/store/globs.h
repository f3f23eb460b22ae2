/* SPDX-License-Identifier: MIT */
/* A list of globs that grows and shrinks by words: what set_ftrace_filter and its kin hold. One
 * thread at a time; no locks. */
#ifndef GT_SERVE_GLOBS_H
#define GT_SERVE_GLOBS_H

#include <stdbool.h>
#include <stddef.h>

/* All zero: empty. `words` is NULL-terminated once there is one. */
struct gt_globs {
	char **words;
	size_t count;
	size_t room;
};

/* Appends a copy. plain: it is a name, so characters that mean something in a glob are escaped. false:
 * no memory. */
bool gt_globs_add(struct gt_globs *globs, const char *word, size_t bytes, bool plain);
/* Appends copies of all of a NULL-terminated array (NULL = none). false: no memory; some may have been
 * added. */
bool gt_globs_add_all(struct gt_globs *globs, const char *const *words);
/* Removes every copy of the word; false: there was none. */
bool gt_globs_remove(struct gt_globs *globs, const char *word);
/* Appends the words glob:mod:object of an array: those for functions of an object that may not be loaded
 * yet. false: no memory. */
bool gt_globs_add_modules(struct gt_globs *modules, const char *const *words);
/* The object's name in such a word; NULL: it is another kind of word. */
const char *gt_globs_module(const char *word);
/* The words as a NULL-terminated array, valid until the next change; NULL = empty. */
const char *const *gt_globs_words(const struct gt_globs *globs);
/* Frees all words: it is empty then. */
void gt_globs_clear(struct gt_globs *globs);

#endif
