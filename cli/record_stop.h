/* SPDX-License-Identifier: MIT */
/* When `record --stop-when` ends a recording, and what it says then. */
#ifndef GT_CLI_RECORD_STOP_H
#define GT_CLI_RECORD_STOP_H

#include <stdbool.h>
#include "attach/session/session.h"
#include "cli/record_options.h"

struct gt_record_stop {
	const struct gt_record_options *options;
	struct gt_trigger *triggers; /* of the conditions; for gt_session_options */
	size_t trigger_count;
	uint64_t signals; /* as gt_session_options has them */
	bool ends;	  /* how processes end is a condition */
	/* Hits that end nothing: of functions' commands. */
	void (*command)(void *data, const struct gt_trigger_hit *hit);
	void *command_data;
	bool stopped;
	char why[512]; /* "'f' took 12.345 ms in thread 71 of process 70" */
};

/* The triggers; false: no memory. */
bool gt_record_stop_init(struct gt_record_stop *stop, const struct gt_record_options *options);
void gt_record_stop_fini(struct gt_record_stop *stop);

/* The session runs: says which conditions name no function of it so far, and listens. `command` is
 * set. */
void gt_record_stop_watch(struct gt_record_stop *stop, struct gt_session *session);

/* After each poll of the session: whether a condition has come true. */
bool gt_record_stop_now(struct gt_record_stop *stop, struct gt_session *session);

#endif
