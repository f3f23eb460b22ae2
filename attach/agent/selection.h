/* SPDX-License-Identifier: MIT */
/*
 * What is to be traced: what those who trace ask for, by names, and whether a function is among it.
 */
#ifndef GT_ATTACH_SELECTION_H
#define GT_ATTACH_SELECTION_H

#include <stdbool.h>
#include <stdint.h>
#include "attach/agent/catalog.h"
#include "core/trace/event_rules.h"
#include "attach/agent/triggers.h"
#include "core/trace/settings.h"

/* What one of those who trace asks for. */
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

/* Globs, once: does one of those who ask, or any of them, name this function? file: whose it is;
 * NULL: words with :mod: name none. */
bool gt_asked_wants(const struct gt_asked *asked, const struct gt_catalog_file *file,
		    const char *plain, const char *shown);
bool gt_selection_wants(const struct gt_selection *selection, const struct gt_catalog_file *file,
			const char *plain, const char *shown);
bool gt_selection_is_root(const struct gt_selection *selection, const char *plain,
			  const char *shown);

bool gt_selection_is_notrace(const struct gt_selection *selection, const char *plain,
			     const char *shown);

/* Whether function `index` is one for this selection, as far as can be told before it is planned,
 * and then. */
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
