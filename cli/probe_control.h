/* SPDX-License-Identifier: MIT */
/*
 * The probes of a program that is being recorded, or of a mount, by its file dynamic_events. All complain as
 * `graftrace NAME` and return an exit code.
 */
#ifndef GT_CLI_PROBE_CONTROL_H
#define GT_CLI_PROBE_CONTROL_H

#include <sys/types.h>

struct gt_probe_control {
	const char *directory; /* a mount, or NULL: the recording of … */
	pid_t pid;	       /* … this process; 0: the only one */
};

/* line: of dynamic_events. */
int gt_probe_control_add(const struct gt_probe_control *control, const char *name,
			 const char *line);
/* Prints them, as `perf probe --list` does. */
int gt_probe_control_list(const struct gt_probe_control *control, const char *name);
/* Those that one of the globs matches; a glob that matches none is an error. */
int gt_probe_control_remove(const struct gt_probe_control *control, const char *name,
			    const char *const *globs, int count);

#endif
