/* SPDX-License-Identifier: MIT */
/*
 * The selection of what is traced: what the askers (the top and the instances) ask for by names, and whether that
 * includes a function. Read under the session's lock.
 */
#ifndef GT_ATTACH_SELECTION_H
#define GT_ATTACH_SELECTION_H

#include <stdbool.h>
#include <stdint.h>
#include "attach/agent/catalog.h"
#include "core/trace/event_rules.h"
#include "attach/agent/triggers.h"
#include "core/trace/settings.h"

/* What one asker asks for. */
struct gt_asked {
	const struct gt_trace_settings *settings;
	bool off;  /* nothing: tracer nop and no profiler */
	bool flat; /* the function tracer: the graph list means nothing, as on Linux */
};

/* The top of the control files, and its instances. */
#define GT_ASKED_MAX 64

/* What is to be traced: what any of them asks for. With nothing asked, all functions keep their
 * bytes but those with triggers. */
struct gt_selection {
	struct gt_asked *asked[GT_ASKED_MAX]; /* NULL: nobody */
	uint32_t asked_count;
	char **library_globs; /* --lib: these of the system's libraries */
	bool libraries;	      /* all of them */
	bool unprepared;      /* see gt_selection_takes_unprepared() */
	bool libcalls;	      /* --libcall: linkage stubs too */
	bool breakpoints;     /* --breakpoints: also functions that no jump fits in */
	bool uprobe_safe;     /* --uprobe-safe: only functions whose first instruction stays */
	struct gt_triggers
		*triggers; /* NULL = none; the functions that they name are patched too */
	struct gt_event_rules *event_rules; /* NULL: none */
	bool syscalls;			    /* some events of system calls are recorded */
	char **events; /* whose probes are patched: gt_events_match(); NULL: none */
	const struct gt_values *values; /* arguments and results that are recorded; NULL: none */
	const struct gt_word_list *graph_notrace; /* what set_graph_notrace names */
	bool stacks; /* the function tracer writes stack traces: all functions are patched */
};

/* Whether this asker, or any of them, asks for the function with these names (plain: as the linker has it; shown: as it
 * is printed). file: the function's; NULL: words with :mod: match nothing. */
bool gt_asked_wants(const struct gt_asked *asked, const struct gt_catalog_file *file,
		    const char *plain, const char *shown);
bool gt_selection_wants(const struct gt_selection *selection, const struct gt_catalog_file *file,
			const char *plain, const char *shown);
/* Whether set_graph_function of any asker names it; whether set_graph_notrace does. */
bool gt_selection_is_root(const struct gt_selection *selection, const char *plain,
			  const char *shown);

bool gt_selection_is_notrace(const struct gt_selection *selection, const char *plain,
			     const char *shown);

/* Whether the selection may have function `index`, whatever its name: takes, as far as is known before it is planned;
 * takes_entry, by its plan. */
bool gt_selection_takes(const struct gt_selection *selection, const struct gt_catalog_file *file,
			uint32_t index);
bool gt_selection_takes_entry(const struct gt_selection *selection,
			      const struct gt_catalog_file *file,
			      const struct gt_plan_entry *entry);
/* Whether functions that no compiler has prepared are traced in this file: where none is prepared,
 * or if it was asked for. */
bool gt_selection_takes_unprepared(const struct gt_selection *selection,
				   const struct gt_catalog_file *file);
/* Whether functions of a file that is not the program itself are traced at all. */
bool gt_selection_takes_file(const struct gt_selection *selection,
			     const struct gt_catalog_file *file);

#endif
