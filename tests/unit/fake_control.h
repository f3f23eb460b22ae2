/* SPDX-License-Identifier: MIT */
/* A target for tests of the control files and their doors: a few functions, a trace of fixed text,
 * and a record of what was asked of it. */
#ifndef GT_TESTS_UNIT_FAKE_CONTROL_H
#define GT_TESTS_UNIT_FAKE_CONTROL_H

#include <pthread.h>

#include "core/control/control.h"

struct fake_control {
	struct gt_control_target control;
	struct gt_target view;
	struct gt_control_log log;
	uint64_t values[GT_CONTROL_VALUES];
	/* the lists, words separated by blanks; set[]: not "all functions" */
	char lists[GT_CONTROL_LISTS][4096];
	bool set[GT_CONTROL_LISTS];
	char edit[4096]; /* the edit in progress */
	int edit_list;
	int opened; /* lists, edits and texts that are open */
	int cleared;
	struct gt_control_scope scope; /* of the last text, clear or stats */
	int marks;
	char mark[1100]; /* the last mark: thread, text */
	struct gt_control_command command;
	char function[64];
	bool has_command;
	uint32_t tids[4][1024];
	uint32_t tid_count[4];
	struct gt_control_target instance;
	char instance_name[64]; /* of the one that there can be */
	bool pipe_busy;
	bool pipe_ended;
	size_t pipe_at;
	uint32_t writers;
	size_t repeat;	      /* how often `trace` gives FAKE_TRACE */
	pthread_mutex_t lock; /* held by every operation: servers call from many threads */
};

void fake_control_init(struct fake_control *fake, enum gt_control_kind kind);

#define FAKE_TRACE "# tracer: function_graph\n#\n 0)   0.071 us    |  one();\n"

#endif
