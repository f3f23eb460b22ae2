/* SPDX-License-Identifier: MIT */
/*
 * Recording the Linux kernel beside a program: its function tracers and events, through libtracefs,
 * in an instance of tracefs that is ours alone. Kernels that have function_graph at the top only are
 * recorded there, if nobody else uses it. What the kernel cannot do is found out first and said.
 * Everything is put back when the tracer is destroyed; what a graftrace that was killed left is put
 * back by the next one. One at a time in a process, from one thread.
 *
 * Nothing is decoded: pages of the kernel's ring go to the recording as they are, with what is
 * needed to read them on any machine (doc/format.md, KERNEL).
 */
#ifndef GT_LINUX_TRACER_H
#define GT_LINUX_TRACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <graftrace/error.h>
#include "read/writer.h"

struct gt_kernel_tracer;

enum gt_kernel_what {
	GT_KERNEL_BEST = 0,	 /* the first of these that the kernel has */
	GT_KERNEL_GRAPH = 1,	 /* each function's entry and return */
	GT_KERNEL_FUNCTIONS = 2, /* each function's entry, with its caller */
	GT_KERNEL_EVENTS = 3,
};

/* What a function tracer is told: a file of tracefs that takes a number, or one word more. */
struct gt_kernel_setting {
	const char *file; /* set_ftrace_filter, set_graph_function, max_graph_depth, … */
	const char *value;
};

struct gt_kernel_options {
	size_t size; /* sizeof(struct gt_kernel_options), or more: room to grow */
	enum gt_kernel_what what;
	/* SYSTEM:EVENT, SYSTEM, EVENT; NULL-terminated. NULL or none: context switches and wake-ups,
	 * and, where no functions are recorded, system calls. */
	const char *const *events;
	const struct gt_kernel_setting *settings; /* of function tracers */
	size_t setting_count;
	bool whole_system;   /* all tasks; else those that descend from `pids` */
	const int32_t *pids; /* processes, with all their threads */
	size_t pid_count;
	/* Told of what is recorded otherwise than one may think; NULL: nobody wants it. */
	void (*note)(void *data, const char *text);
	void *note_data;
};

/* Whether the kernel has an event or a system of that name: SYSTEM:EVENT, SYSTEM or EVENT. */
bool gt_kernel_has_event(const char *word);

/*
 * Sets up, and does not switch on. GT_ENOENT: there is no tracefs; GT_EPERM: not permitted;
 * GT_EBUSY: somebody else uses the kernel's tracer; GT_ENOTSUP: the kernel has no such tracer, or
 * refuses it; GT_EINVAL: no such event or function, or options of an older size; GT_EIO.
 */
int gt_kernel_tracer_create(const struct gt_kernel_options *options,
			    struct gt_kernel_tracer **tracer, struct gt_message *message);

/* This machine's clock as the kernel's records have it. */
uint64_t gt_kernel_tracer_now(const struct gt_kernel_tracer *tracer);
/* … which counts the processor's ticks; else nanoseconds of CLOCK_MONOTONIC. */
bool gt_kernel_tracer_has_ticks(const struct gt_kernel_tracer *tracer);

/* This machine's clock minus that of the machine whose recording the pages go to lies between these
 * two, in units of this machine's. */
struct gt_kernel_apart {
	int64_t least, most;
	uint32_t exchanges; /* that it was measured by */
};

/* The recording's clock is another machine's. Before gt_kernel_tracer_describe, and again when more is
 * known: with a writer, that goes to the recording at once. 0, or the writer's error. */
int gt_kernel_tracer_set_apart(struct gt_kernel_tracer *tracer, const struct gt_kernel_apart *apart,
			       struct gt_file_writer *writer);

/* What is needed to read the pages goes to the recording: formats, symbols, the clock and its error.
 * Before the start, so that it is there if we are killed. 0, or the writer's error. */
int gt_kernel_tracer_describe(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer);

int gt_kernel_tracer_start(struct gt_kernel_tracer *tracer, struct gt_message *message);

/* This process itself is not meant any more, only those that it has started meanwhile. */
void gt_kernel_tracer_leave_us(struct gt_kernel_tracer *tracer);

/* Takes what is there to the recording. 0, or the writer's error. */
int gt_kernel_tracer_take(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer);

/* Switches off, takes the rest, names and losses. *lost: records that the kernel had no room for, in
 * words by CPU in `losses` if there are any. */
int gt_kernel_tracer_finish(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer,
			    uint64_t *lost, struct gt_message *losses);

/* Puts everything back. NULL is fine. */
void gt_kernel_tracer_destroy(struct gt_kernel_tracer *tracer);

#endif
