/* SPDX-License-Identifier: MIT */
/*
 * graftrace profile --interval, --to: what was counted in each interval, as tables one after the other or
 * in the formats of export/counted.h, to a descriptor, a file or a server.
 */
#ifndef GT_CLI_PROFILE_INTERVAL_H
#define GT_CLI_PROFILE_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/session/session.h"
#include "cli/profile_table.h"
#include "export/counted.h"

struct gt_intervals;

struct gt_intervals_options {
	const char *command;			/* whose complaints they are */
	const struct gt_counted_format *format; /* NULL: tables */
	struct gt_profile_table table;
	const char *output;  /* a file, "-", "http://…" (of a format); NULL: fd */
	int fd;		     /* the caller's */
	const char *program; /* its name */
	uint32_t pid;
};

/* GT_EINVAL, GT_EIO, GT_ENOMEM with the message. The strings are used until the end. */
int gt_intervals_create(const struct gt_intervals_options *options, struct gt_intervals **intervals,
			struct gt_message *message);

/*
 * An interval is over: its figures go out. What a server did not take is told once, and goes with the
 * next interval's; at the `last` one it is waited for. GT_EIO, GT_ENOMEM: told, and nothing more can go
 * out; GT_ENOENT: the reader has gone away.
 */
int gt_intervals_tick(struct gt_intervals *intervals, struct gt_session *session, bool last);

void gt_intervals_destroy(struct gt_intervals *intervals);

#endif
