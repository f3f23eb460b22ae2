/* SPDX-License-Identifier: MIT */
/*
 * Settings of a tracer. The top of the control files, each instance, a session and a copy of its records
 * have one struct gt_trace_settings each, and share the lists of words in it.
 *
 * Lists never change, and their counts are atomic: any thread may use, hold and release them. Settings have
 * no lock: their owner has one (a session's), or one thread alone uses them.
 */
#ifndef GT_CORE_TRACE_SETTINGS_H
#define GT_CORE_TRACE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/record.h>
#include "core/trace/memory.h"
#include "core/trace/words.h"

/*
 * A list of names and globs (core/trace/glob.h), and of words glob:mod:object, which match functions of
 * that object only: the last part of its path, no glob. It has a count of references. NULL is the empty list,
 * which all functions here take.
 */
struct gt_word_list {
	size_t count;
	const char *const *words; /* NULL-terminated */
	/* private */
	const char *const *modules; /* the words glob:mod:object among them */
	size_t module_count;
	struct gt_words hash;	   /* of the words that are not root's */
	struct gt_word_list *root; /* the list whose words are the first ones here, or NULL */
	struct gt_memory memory;
	size_t bytes; /* of all of it */
	uint32_t users;
};

/* Makes a list of copies of the words of a NULL-terminated array (NULL: empty), with one reference; of no
 * words, NULL. GT_ENOMEM, and *list is NULL. `memory` is copied; its data outlive the list. */
int gt_word_list_create(const struct gt_memory *memory, const char *const *words,
			struct gt_word_list **list);
/* Makes a list of an older one's words (NULL: none) and those of an array behind them; if that is empty, it
 * is the older one with one more reference. The caller keeps its reference to the older one. The words of a
 * long list are shared, and its hash, until 512 were added; then all are copied once. It costs a copy of
 * pointers, and of the words added since all were copied. GT_ENOMEM, and *appended is NULL. */
int gt_word_list_append(const struct gt_memory *memory, struct gt_word_list *list,
			const char *const *words, struct gt_word_list **appended);
/* Takes a reference, and returns the same list. */
struct gt_word_list *gt_word_list_hold(struct gt_word_list *list);
/* Drops a reference; the last one frees the list. */
void gt_word_list_release(struct gt_word_list *list);

/* All its words, NULL-terminated, as long as the list lives; NULL: it is empty. */
const char *const *gt_word_list_words(const struct gt_word_list *list);
/* Whether a word without an object matches the name. */
bool gt_word_list_match(const struct gt_word_list *list, const char *name);
/* Whether a word glob:mod:object matches that function of that object (a path, or its last part). A glob
 * of 1024 bytes or more matches nothing. */
bool gt_word_list_match_module(const struct gt_word_list *list, const char *object,
			       const char *name);
bool gt_word_list_has_modules(const struct gt_word_list *list);
/* Whether both have the same words in the same order. */
bool gt_word_list_is_same(const struct gt_word_list *a, const struct gt_word_list *b);

/* Lists of settings. */
enum gt_list {
	GT_LIST_FILTER,	       /* set_ftrace_filter; empty: every function */
	GT_LIST_NOTRACE,       /* set_ftrace_notrace; empty: none */
	GT_LIST_GRAPH,	       /* set_graph_function: only these and what they call; empty: all */
	GT_LIST_GRAPH_NOTRACE, /* set_graph_notrace: neither these nor what they call */
	GT_LIST_EVENTS,	       /* set_event: words of gt_event_words_match(); empty: none */
	GT_LISTS,
};

struct gt_trace_settings {
	enum graftrace_tracer tracer; /* nop: no calls, but events and markers */
	bool on;		      /* tracing_on */
	uint32_t max_depth;	      /* 0: no limit */
	uint64_t threshold_ns;	      /* 0: none */
	struct gt_word_list *lists[GT_LISTS];
};

/* A copy, with references to the lists. No errors. */
struct gt_trace_settings gt_trace_settings_copy(const struct gt_trace_settings *settings);
/* Drops the references: the lists are empty then. */
void gt_trace_settings_fini(struct gt_trace_settings *settings);

/* Replaces a list: takes a reference to `list` (the caller keeps its own), drops the old one's. They may be
 * the same. */
void gt_trace_settings_set_list(struct gt_trace_settings *settings, enum gt_list which,
				struct gt_word_list *list);

/* Appends copies of the words of a NULL-terminated array (NULL: none) to a list. GT_ENOMEM, and the list is
 * the old one. */
int gt_trace_settings_append(struct gt_trace_settings *settings, enum gt_list which,
			     const struct gt_memory *memory, const char *const *words);

/* Whether only some functions and what they call are recorded (set_graph_function). Never of the tracer
 * function. */
bool gt_trace_settings_has_roots(const struct gt_trace_settings *settings);

#endif
