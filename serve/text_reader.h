/* SPDX-License-Identifier: MIT */
/*
 * The text of a target for the rows `trace` and `trace_pipe`: core/text/text.h with memory from the
 * heap. A reader belongs to one thread at a time; readers of one target may be in different threads
 * if the target's operations allow that.
 */
#ifndef GT_SERVE_TEXT_READER_H
#define GT_SERVE_TEXT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/control/control.h"
#include "core/trace/filter.h"
#include "core/trace/merge.h"
#include "core/trace/target.h"

struct gt_text_reader;

/* What is shown, and how. */
struct gt_text_look {
	bool switches; /* sched_switch's lines, of these times; no time: all */
	uint32_t switch_window_count;
	struct gt_merge_window switch_windows[GT_MERGE_WINDOWS];
	enum gt_control_clock clock; /* of the time stamps */
	uint64_t options;	     /* bits of enum gt_control_option */
	uint32_t names_kept;	     /* saved_cmdlines_size; 0: all */
	uint64_t time_start;	     /* the counter when the ring was emptied last; 0: not known */
	struct gt_control_scope scope; /* all zero: all of it */
	struct gt_filter_masks masks;  /* tracing_cpumask, as it was and is */
	bool stays; /* with consume: what is given stays in the ring, to be freed by the caller */
};

/* consume: what is given leaves the ring, and the end of what is there is GT_EAGAIN until
 * gt_text_reader_finish. GT_ENOMEM. */
int gt_text_reader_open(struct gt_target *target, const struct gt_text_look *look, bool consume,
			struct gt_text_reader **reader, struct gt_message *message);

/*
 * `trace` beside a trace_pipe: leaves out what `pipe`, a consuming reader of the same target, has
 * given. Before the first read; nobody reads from `pipe` during this call, and it is not needed
 * afterwards. GT_ENOMEM.
 */
int gt_text_reader_skip_given(struct gt_text_reader *reader, const struct gt_text_reader *pipe);

/* The parts of it: how far a reader has given, by writers, malloc'ed; leaving that out, which takes
 * `given` over; and leaving out the context switches up to a clock. */
int gt_text_reader_given(const struct gt_text_reader *reader, struct gt_merge_given **given,
			 uint32_t *count);
void gt_text_reader_skip(struct gt_text_reader *reader, struct gt_merge_given *given,
			 uint32_t count);
void gt_text_reader_skip_switches(struct gt_text_reader *reader, uint64_t clock);
/* As gt_text_reader_given, of a reader that may be given up: without what it has looked ahead at.
 */
int gt_text_reader_shown(const struct gt_text_reader *reader, struct gt_merge_given **given,
			 uint32_t *count);

/* The same of what was taken out CPU by CPU: copied. GT_ENOMEM. */
int gt_text_reader_skip_cpus(struct gt_text_reader *reader, const struct gt_merge_cpu_given *cpus,
			     uint32_t count);

/* Bytes, 0 at the end, GT_EAGAIN, or an error. */
int64_t gt_text_reader_read(struct gt_text_reader *reader, char *buffer, size_t bytes,
			    struct gt_message *message);

/* The event sched_switch is on or off, and CPUs are shown or not, as that look has it: for a reader
 * that is being read. */
void gt_text_reader_update(struct gt_text_reader *reader, const struct gt_text_look *look);

/* The clock of the last context switch that was given; 0: none was. */
uint64_t gt_text_reader_switches_given(const struct gt_text_reader *reader);

/* The target has ended: what is there is all. */
void gt_text_reader_finish(struct gt_text_reader *reader);

void gt_text_reader_close(struct gt_text_reader *reader);

#endif
