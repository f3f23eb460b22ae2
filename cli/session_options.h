/* SPDX-License-Identifier: MIT */
/*
 * What of a program is traced, as `record` and `mount` are told: one table of options for both.
 * Where there is a control file for it, an option is a write to that file: the same rows take the
 * value, and refuse it in the same words.
 */
#ifndef GT_CLI_SESSION_OPTIONS_H
#define GT_CLI_SESSION_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>
#include <graftrace/record.h>
#include "core/trace/settings.h"

struct gt_session;
struct gt_session_event_trigger;
struct gt_session_options;
struct gt_live_options;

/* Strings and arrays are malloc'ed; the arrays are NULL-terminated. */
struct gt_session_choice {
	struct gt_trace_settings settings;
	const char **library_globs;
	const char **event_filters; /* in turns a word of events and its filter */
	const char **wanted_probes; /* as given: gt_session_choice_probes() makes … */
	const char **synthetics;    /* --synthetic: lines of synthetic_events */
	const char **probes;	    /* … lines of dynamic_events of them */
	const char **values;	    /* arguments and results: words of gt_values_new() */
	struct gt_session_event_trigger *event_triggers;
	size_t event_trigger_count;
	bool names_functions; /* a tracer, or functions, were named: else events are alone */
	uint64_t buffer_bytes;
	bool overwrite;
	bool no_fork;
	bool libraries;
	bool libcalls;
	bool unprepared;
	bool breakpoints;
	bool uprobe_safe;
	bool no_demangle;
};

enum {
	GT_OPTION_FIRST = 1024,
	GT_CHOICE_THRESHOLD = GT_OPTION_FIRST,
	GT_CHOICE_OVERWRITE,
	GT_CHOICE_NO_FORK,
	GT_CHOICE_LIBS,
	GT_CHOICE_LIB,
	GT_CHOICE_LIBCALL,
	GT_CHOICE_UNPREPARED,
	GT_CHOICE_BREAKPOINTS,
	GT_CHOICE_UPROBE_SAFE,
	GT_CHOICE_NO_DEMANGLE,
	GT_CHOICE_FILTER, /* of functions; behind an event its own */
	GT_CHOICE_PROBE,
	GT_CHOICE_SYNTHETIC,
	GT_CHOICE_TRIGGER,
	GT_CHOICE_ARGS,
	GT_CHOICE_RETVAL,
};

/* For getopt_long's short options, and for its table. */
#define GT_CHOICE_SHORT "p:l:n:g:N:D:b:e:A:R:"
#define GT_CHOICE_OPTIONS                                                      \
	{ "tracer", required_argument, NULL, 'p' },                            \
		{ "filter", required_argument, NULL, GT_CHOICE_FILTER },       \
		{ "notrace", required_argument, NULL, 'n' },                   \
		{ "graph", required_argument, NULL, 'g' },                     \
		{ "event", required_argument, NULL, 'e' },                     \
		{ "probe", required_argument, NULL, GT_CHOICE_PROBE },         \
		{ "synthetic", required_argument, NULL, GT_CHOICE_SYNTHETIC }, \
		{ "trigger", required_argument, NULL, GT_CHOICE_TRIGGER },     \
		{ "args", no_argument, NULL, GT_CHOICE_ARGS },                 \
		{ "retval", no_argument, NULL, GT_CHOICE_RETVAL },             \
		{ "argument", required_argument, NULL, 'A' },                  \
		{ "return", required_argument, NULL, 'R' },                    \
		{ "graph-notrace", required_argument, NULL, 'N' },             \
		{ "buffer-size", required_argument, NULL, 'b' },               \
		{ "max-graph-depth", required_argument, NULL, 'D' },           \
		{ "threshold", required_argument, NULL, GT_CHOICE_THRESHOLD }, \
		{ "overwrite", no_argument, NULL, GT_CHOICE_OVERWRITE },       \
		{ "no-fork", no_argument, NULL, GT_CHOICE_NO_FORK },           \
		{ "libs", no_argument, NULL, GT_CHOICE_LIBS },                 \
		{ "lib", required_argument, NULL, GT_CHOICE_LIB },             \
		{ "libcall", no_argument, NULL, GT_CHOICE_LIBCALL },           \
		{ "unprepared", no_argument, NULL, GT_CHOICE_UNPREPARED },     \
		{ "no-demangle", no_argument, NULL, GT_CHOICE_NO_DEMANGLE },   \
		{ "uprobe-safe", no_argument, NULL, GT_CHOICE_UPROBE_SAFE },   \
	{                                                                      \
		"breakpoints", no_argument, NULL, GT_CHOICE_BREAKPOINTS        \
	}

/* Adds a copy of a word to one of the lists. GT_ENOMEM with the message. */
int gt_settings_add(struct gt_trace_settings *settings, enum gt_list which, const char *word,
		    struct gt_message *message);
/* The words of one of the lists, NULL-terminated; never NULL. Valid until the list changes. */
const char *const *gt_session_choice_list(const struct gt_session_choice *choice,
					  enum gt_list which);
/* The default but for the tracer: 64 MB, everything. GT_ENOMEM. */
int gt_session_choice_init(struct gt_session_choice *choice, enum graftrace_tracer tracer);
/* One of GT_CHOICE_OPTIONS; value: optarg. GT_EINVAL with the message; GT_ENOENT: it is none of
 * them. */
int gt_session_choice_take(struct gt_session_choice *choice, int option, const char *value,
			   struct gt_message *message);
/* Makes probes of those that were wanted, and has their events recorded. program: the path of the file that
 * they mean if they do not say. GT_EINVAL, GT_ENOENT, GT_ENOMEM with the message. */
int gt_session_choice_probes(struct gt_session_choice *choice, const char *program,
			     struct gt_message *message);
/* Complains of the probes' places that cannot be patched; `name`: the command's. */
void gt_session_choice_report(const struct gt_session_choice *choice, struct gt_session *session,
			      const char *name);
/* Whether one of its triggers is a histogram. */
bool gt_session_choice_has_hists(const struct gt_session_choice *choice);
/* What of it the session is started with, and its control files are told: the lists and strings are the
 * choice's, which must stay. */
void gt_session_choice_session(const struct gt_session_choice *choice,
			       struct gt_session_options *session);
void gt_session_choice_live(const struct gt_session_choice *choice, struct gt_live_options *live);
void gt_session_choice_fini(struct gt_session_choice *choice);

#endif
