/* SPDX-License-Identifier: MIT */
/*
 * The text of a target for the files `trace` and `trace_pipe`: core/text/text.h with memory from the
 * heap. A reader is used by one thread at a time. Several threads may have readers of one target if its
 * operations allow that. No function takes a lock of its own; the target's operations may.
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

/* Which records are shown, and how. */
struct gt_text_look {
	bool switches; /* lines of sched_switch, in these windows; no window: all */
	uint32_t switch_window_count;
	struct gt_merge_window switch_windows[GT_MERGE_WINDOWS];
	enum gt_control_clock clock;   /* of the time stamps */
	uint64_t options;	       /* bits of enum gt_control_option */
	uint32_t names_kept;	       /* saved_cmdlines_size; 0: all */
	uint64_t time_start;	       /* clock at which the ring was last emptied; 0: unknown */
	struct gt_control_scope scope; /* all zero: the whole trace */
	struct gt_filter_masks masks;  /* values of tracing_cpumask */
	bool stays; /* with consume: given records stay in the ring; the caller frees them */
};

/* Opens a reader. consume: given records are consumed, and at the end of the present records reading is
 * GT_EAGAIN until gt_text_reader_finish. The target must outlive the reader; *look is copied.
 * GT_ENOMEM. */
int gt_text_reader_open(struct gt_target *target, const struct gt_text_look *look, bool consume,
			struct gt_text_reader **reader, struct gt_message *message);

/*
 * For `trace` beside a trace_pipe: leaves out the records that `pipe`, a consuming reader of the same
 * target, has given. Call it before the first read; `pipe` must not be read meanwhile, and may be
 * closed afterwards. GT_ENOMEM.
 */
int gt_text_reader_skip_given(struct gt_text_reader *reader, const struct gt_text_reader *pipe);

/* The parts of that. given: how far a reader has given, by writer; the caller frees the array.
 * GT_ENOMEM. skip: leaves out that much, and then owns the array. skip_switches: leaves out the
 * context switches up to a clock. */
int gt_text_reader_given(const struct gt_text_reader *reader, struct gt_merge_given **given,
			 uint32_t *count);
void gt_text_reader_skip(struct gt_text_reader *reader, struct gt_merge_given *given,
			 uint32_t count);
void gt_text_reader_skip_switches(struct gt_text_reader *reader, uint64_t clock);
/* As gt_text_reader_given, without records that were read ahead: for a reader that is closed early. */
int gt_text_reader_shown(const struct gt_text_reader *reader, struct gt_merge_given **given,
			 uint32_t *count);

/* As gt_text_reader_skip, for records that were consumed CPU by CPU. `cpus` is copied. GT_ENOMEM: the reader may only be
 * closed. */
int gt_text_reader_skip_cpus(struct gt_text_reader *reader, const struct gt_merge_cpu_given *cpus,
			     uint32_t count);

/* Reads text into `buffer`, of `bytes` bytes. Returns the number of bytes read, 0 at the end; GT_EAGAIN: there is none
 * now. Any other error would set the message; at present there is none. */
int64_t gt_text_reader_read(struct gt_text_reader *reader, char *buffer, size_t bytes,
			    struct gt_message *message);

/* Sets sched_switch and the shown CPUs of an open reader as in `look`; the rest of `look` is ignored. */
void gt_text_reader_update(struct gt_text_reader *reader, const struct gt_text_look *look);

/* Throwing away gives up after so many reads: records may come faster than they are read. */
#define GT_TEXT_DISCARDS_MOST 4096

/* Reads into `buffer`, of `bytes` bytes, and throws away: up to a record later than the clock `until`, or to
 * the end of what is there. */
void gt_text_reader_discard(struct gt_text_reader *reader, uint64_t until, char *buffer,
			    size_t bytes);

/* The clock of the last context switch that was given; 0: none. */
uint64_t gt_text_reader_switches_given(const struct gt_text_reader *reader);

/* Tells that the target has ended: a consuming reader comes to an end. */
void gt_text_reader_finish(struct gt_text_reader *reader);

/* Frees it. Not NULL. */
void gt_text_reader_close(struct gt_text_reader *reader);

#endif
