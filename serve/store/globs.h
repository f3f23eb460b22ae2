/* SPDX-License-Identifier: MIT */
/* A list of globs that grows and shrinks by words: what set_ftrace_filter and its kin hold. One
 * thread at a time. */
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

/* Appends a copy. plain: a name; what a glob would read otherwise is escaped. false: no memory. */
bool gt_globs_add(struct gt_globs *globs, const char *word, size_t bytes, bool plain);
/* Appends copies of all of a NULL-terminated array (NULL = none). */
bool gt_globs_add_all(struct gt_globs *globs, const char *const *words);
/* Whether the word stands in the list, byte for byte; if so it is taken out, however often. */
bool gt_globs_remove(struct gt_globs *globs, const char *word);
/* Words glob:mod:object stand for functions of an object that may not be loaded yet. add: those of
 * such an array, which may be long. match: whether one names the function `name` of the object. */
bool gt_globs_add_modules(struct gt_globs *modules, const char *const *words);
bool gt_globs_match_module(const struct gt_globs *modules, const char *object, const char *name);
/* The object's part; NULL: it is no such word. */
const char *gt_globs_module(const char *word);
/* NULL-terminated, for others to read; NULL = empty. */
const char *const *gt_globs_words(const struct gt_globs *globs);
void gt_globs_clear(struct gt_globs *globs);

#endif
