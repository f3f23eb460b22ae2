/* SPDX-License-Identifier: MIT */
/*
 * What is asked of a tracer: the top of the control files, each of their instances, a session and a
 * copy of its records have one struct gt_trace_settings each, and share the lists of words in it.
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
 * Words and globs (core/trace/glob.h), and words glob:mod:object, which name functions of that
 * object alone. It never changes once it is made, so any thread may read it; who keeps it holds it.
 * NULL is the empty list.
 */
struct gt_word_list {
	size_t count;
	const char *const *words; /* NULL-terminated */
	/* private */
	const char *const *modules; /* the words glob:mod:object among them */
	size_t module_count;
	struct gt_words hash;
	struct gt_memory memory;
	size_t bytes; /* of all of it */
	uint32_t users;
};

/* A copy of a NULL-terminated array (NULL: none), held once; an empty one is NULL. GT_ENOMEM. */
int gt_word_list_create(const struct gt_memory *memory, const char *const *words,
			struct gt_word_list **list);
/* The same list, held once more. */
struct gt_word_list *gt_word_list_hold(struct gt_word_list *list);
/* Held once less; the last one frees it. */
void gt_word_list_release(struct gt_word_list *list);

/* NULL-terminated; NULL: it is empty. */
const char *const *gt_word_list_words(const struct gt_word_list *list);
/* Whether one of the words that are for all objects matches the name. */
bool gt_word_list_match(const struct gt_word_list *list, const char *name);
/* Whether one of the words that are for objects names the function of this one (a path, or the
 * path's last part). */
bool gt_word_list_match_module(const struct gt_word_list *list, const char *object,
			       const char *name);
bool gt_word_list_has_modules(const struct gt_word_list *list);
/* Word by word, in order. */
bool gt_word_list_is_same(const struct gt_word_list *a, const struct gt_word_list *b);

/* Lists of settings. */
enum gt_list {
	GT_LIST_FILTER,	       /* set_ftrace_filter; empty: every function */
	GT_LIST_NOTRACE,       /* set_ftrace_notrace */
	GT_LIST_GRAPH,	       /* set_graph_function: only below these */
	GT_LIST_GRAPH_NOTRACE, /* set_graph_notrace: neither these nor what they call */
	GT_LISTS,
};

struct gt_trace_settings {
	enum graftrace_tracer tracer; /* nop: nothing is asked */
	bool on;		      /* tracing_on */
	uint32_t max_depth;	      /* 0: no limit */
	uint64_t threshold_ns;	      /* 0: none */
	struct gt_word_list *lists[GT_LISTS];
};

/* A copy that holds the lists. */
struct gt_trace_settings gt_trace_settings_copy(const struct gt_trace_settings *settings);
/* Releases the lists. */
void gt_trace_settings_fini(struct gt_trace_settings *settings);

/* One list becomes `list`, which the settings hold from then on. */
void gt_trace_settings_set_list(struct gt_trace_settings *settings, enum gt_list which,
				struct gt_word_list *list);

/* Whether calls are looked for below some functions only. The tracer function knows no such thing. */
bool gt_trace_settings_has_roots(const struct gt_trace_settings *settings);

#endif
