/* SPDX-License-Identifier: MIT */
/* What `graftrace record` is asked for. */
#ifndef GT_CLI_RECORD_OPTIONS_H
#define GT_CLI_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/record.h>
#include "cli/stop_when.h"

/* Strings are argv's. The arrays are NULL-terminated and malloc'ed. */
struct gt_record_options {
	enum graftrace_tracer tracer;
	const char **filter;
	const char **notrace;
	const char **graph;
	const char **graph_notrace;
	uint32_t max_graph_depth;
	uint64_t threshold_ns;
	uint64_t buffer_bytes;
	bool overwrite;
	const char *output;
	bool compress;
	int level;	   /* of compression; 0 = the default */
	const char *serve; /* address, NULL = not */
	bool linger;
	uint64_t linger_ns; /* 0 = until Ctrl-C */
	bool no_fork;
	bool no_switches;
	bool children;
	bool unprepared;
	bool libraries;
	const char **library_globs;
	bool breakpoints;
	bool libcalls;
	char **argv;   /* the program; NULL with pids */
	int32_t *pids; /* processes to attach to */
	size_t pid_count;
	uint64_t for_ns;		 /* how long, 0 = no limit */
	const char *from;		 /* a kernel's trace, over HTTP; NULL = none */
	const char *subject;		 /* how the program is called in messages */
	struct gt_stop_condition *stops; /* --stop-when; malloc'ed */
	size_t stop_count;
};

/* -1: go on; else the exit code, all has been said. */
int gt_record_options_parse(int argc, char **argv, struct gt_record_options *options);
void gt_record_options_fini(struct gt_record_options *options);

#endif
