/* SPDX-License-Identifier: MIT */
/* What `graftrace record` is asked for. */
#ifndef GT_CLI_RECORD_OPTIONS_H
#define GT_CLI_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/record.h>
#include "cli/session_options.h"
#include "cli/stop_when.h"
#include "linux/tracer.h"

/* Strings are argv's. The arrays are NULL-terminated and malloc'ed. */
struct gt_record_options {
	struct gt_session_choice choice;
	const char *output;
	bool compress;
	int level;		 /* of compression; 0 = the default */
	const char *serve;	 /* address, NULL = not */
	const char *allow_users; /* of gt_http_options */
	const char *token_file;	 /* of gt_http_options */
	bool linger;
	uint64_t linger_ns; /* 0 = until Ctrl-C */
	bool no_switches;
	bool no_libcalls; /* --no-libcall: also not where a program would show little without them */
	bool children;
	bool kernel;	 /* what Linux does is recorded too … */
	bool kernel_try; /* … if that can be */
	bool kernel_all; /* … of all tasks */
	enum gt_kernel_what kernel_what;
	struct gt_kernel_setting *kernel_settings; /* of its tracer; malloc'ed */
	size_t kernel_setting_count;
	const char **events; /* of it; NULL-terminated, malloc'ed */
	size_t event_count;
	/* Of -e, as they came, and behind a NULL the filter of what was named before; malloc'ed. */
	const char **event_words;
	size_t event_word_count;
	char kernel_threshold[24]; /* microseconds; kernel_settings may point here */
	char **argv;		   /* the program; NULL with pids */
	int32_t *pids;		   /* processes to attach to */
	size_t pid_count;
	uint64_t for_ns;		 /* how long, 0 = no limit */
	const char *from;		 /* a kernel's trace, over HTTP; NULL = none */
	const char *subject;		 /* how the program is called in messages */
	struct gt_stop_condition *stops; /* --stop-when; malloc'ed */
	size_t stop_count;
};

/* -1: go on; else the exit code, all has been said. */
/* A program's path that was given where a function's name belongs ("-g ./prog", as perf has it); NULL: none. */
const char *gt_record_options_taken(const struct gt_record_options *options);

int gt_record_options_parse(int argc, char **argv, struct gt_record_options *options);
void gt_record_options_fini(struct gt_record_options *options);

/* Whether a word of --event names sched:sched_switch, which is no event of the session: the kernel tells of switches. */
bool gt_record_is_of_switches(const char *word);
/* Whether --event asks for it. */
bool gt_record_options_want_switches(const struct gt_record_options *options);

#endif
