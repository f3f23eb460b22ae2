/* SPDX-License-Identifier: MIT */
/*
 * Names that threads give themselves while they are recorded: the trace has each as it was at the thread's first
 * call. The system is asked now and then for those of the threads that live; the last one goes to the file.
 */
#ifndef GT_CLI_THREAD_NAMES_H
#define GT_CLI_THREAD_NAMES_H

#include "core/trace/target.h"

struct gt_thread_names;

/* NULL: no memory; all below take that. */
struct gt_thread_names *gt_thread_names_create(void);
void gt_thread_names_destroy(struct gt_thread_names *names);

/* For the file's writer (gt_file_writer_options.see_writer): notes the thread, and gives it the newest name. */
void gt_thread_names_see(void *names, struct gt_writer *writer);

/* To be called often: looks twenty times a second at most. sink: what has to know of threads whose names are
 * others now; it is locked. target: NULL, or a ring whose threads no sink is told of before the end. */
void gt_thread_names_look(struct gt_thread_names *names, const struct gt_sink *sink,
			  struct gt_target *target);

#endif
