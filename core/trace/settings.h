/* SPDX-License-Identifier: MIT */
/*
 * Settings of a tracer. The top of the control files, each instance, a session and a copy of its records
 * have one struct gt_trace_settings each, and share the lists of words in it.
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
 * that object only. It has a count of references and never changes, so any thread may read it. NULL is
 * the empty list.
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

/* Makes a list of a NULL-terminated array (NULL: empty) with one reference. GT_ENOMEM. */
int gt_word_list_create(const struct gt_memory *memory, const char *const *words,
			struct gt_word_list **list);
/* Makes a list of an older one's words (NULL: none) and those of an array behind them; if that is empty, it
 * is the older one with one more reference. It costs what is added and a copy of pointers: the words of a
 * long list are shared, and its hash, until some hundred were added; then all are copied once. GT_ENOMEM. */
int gt_word_list_append(const struct gt_memory *memory, struct gt_word_list *list,
			const char *const *words, struct gt_word_list **appended);
/* Takes a reference, and returns the same list. */
struct gt_word_list *gt_word_list_hold(struct gt_word_list *list);
/* Drops a reference; the last one frees the list. */
void gt_word_list_release(struct gt_word_list *list);

/* Its words, NULL-terminated; NULL: it is empty. */
const char *const *gt_word_list_words(const struct gt_word_list *list);
/* Whether a word without an object matches the name. */
bool gt_word_list_match(const struct gt_word_list *list, const char *name);
/* Whether a word glob:mod:object matches that function of that object (a path, or its last part). */
bool gt_word_list_match_module(const struct gt_word_list *list, const char *object,
			       const char *name);
bool gt_word_list_has_modules(const struct gt_word_list *list);
/* Whether both have the same words in the same order. */
bool gt_word_list_is_same(const struct gt_word_list *a, const struct gt_word_list *b);

/* Lists of settings. */
enum gt_list {
	GT_LIST_FILTER,	       /* set_ftrace_filter; empty: every function */
	GT_LIST_NOTRACE,       /* set_ftrace_notrace */
	GT_LIST_GRAPH,	       /* set_graph_function: only below these */
	GT_LIST_GRAPH_NOTRACE, /* set_graph_notrace: neither these nor what they call */
	GT_LIST_EVENTS,	       /* set_event: words of gt_event_words_match(); empty: none */
	GT_LISTS,
};

struct gt_trace_settings {
	enum graftrace_tracer tracer; /* nop: no records */
	bool on;		      /* tracing_on */
	uint32_t max_depth;	      /* 0: no limit */
	uint64_t threshold_ns;	      /* 0: none */
	struct gt_word_list *lists[GT_LISTS];
};

/* A copy, with references to the lists. */
struct gt_trace_settings gt_trace_settings_copy(const struct gt_trace_settings *settings);
/* Drops the references. */
void gt_trace_settings_fini(struct gt_trace_settings *settings);

/* Replaces a list: takes a reference to `list`, drops the old one's. */
void gt_trace_settings_set_list(struct gt_trace_settings *settings, enum gt_list which,
				struct gt_word_list *list);

/* Whether only calls below some functions are recorded (set_graph_function). Never of the tracer
 * function. */
bool gt_trace_settings_has_roots(const struct gt_trace_settings *settings);

#endif
