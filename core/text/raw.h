/* SPDX-License-Identifier: MIT */
/*
 * A target's records of one CPU as pages of Linux's ring buffer (raw_page.h): a cursor, as text.h
 * is one for text. Calls that were ended by longjmp or an exception come as ended then; what no
 * event of Linux says (a switch of stacks) is left out, and so are returns whose start is not known, and
 * events whose format is not known or that are longer than a page. Texts of trace_marker are cut at 1024
 * bytes. Freestanding; one caller at a time, which must hold no lock that the target's operations take.
 */
#ifndef GT_CORE_TEXT_RAW_H
#define GT_CORE_TEXT_RAW_H

#include "core/trace/merge.h"
#include "core/text/raw_page.h"

/* Where the function of trace_marker's events "lies": kallsyms names it tracing_mark_write. No
 * program has code there. */
#define GT_RAW_MARK_ADDRESS UINT64_C(0xffffffffff000000)

#define GT_RAW_FUNCTIONS   512
#define GT_RAW_CALLERS_MAX 32 /* of a stack trace */

struct gt_raw_options {
	uint32_t cpu;
	bool ticks; /* times are of the time stamp counter, not nanoseconds */
	enum gt_merge_mode mode;
	/* Events sched_switch, as in struct gt_text_options; windows beyond GT_MERGE_WINDOWS are left out. */
	bool switches;
	uint32_t switch_window_count;
	struct gt_merge_window switch_windows[GT_MERGE_WINDOWS];
	struct gt_filter_masks masks; /* only what these let through */
	bool stacks; /* options/stacktrace: behind each event with fields the calls that are open in it */
};

/* Some 24 kB; must not be moved between init and fini. The caller may use `merge`; the rest is private. */
struct gt_raw {
	struct gt_target *target;
	struct gt_merge merge;
	struct gt_filter filter;
	uint32_t cpu;
	bool ticks;
	bool is_first;	  /* CPU 0: it also stands for those that are not known */
	bool giving;	  /* `page` is finished and `given` bytes of it were given */
	bool stacks;	  /* as in the options */
	bool held;	  /* `event` did not fit into the page before */
	uint64_t missed;  /* events lost in front of the page being filled */
	uint64_t skipped; /* … of the next one: the page has to end here */
	uint32_t given;
	uint32_t event_bytes;
	uint64_t event_time;
	struct gt_raw_page page;
	uint8_t event[GT_RAW_EVENT_BYTES_MAX];
	uint32_t callers; /* calls that are open in `event`, the next one to be given; 0: none */
	uint64_t caller[GT_RAW_CALLERS_MAX];
	struct {
		uint32_t number;
		uint64_t address;
	} functions[GT_RAW_FUNCTIONS]; /* looked up lately, by number */
};

/* options, memory: copied; target must stay valid until gt_raw_fini. GT_ENOMEM: there is nothing to be
 * freed. */
int gt_raw_init(struct gt_raw *raw, struct gt_target *target, const struct gt_memory *memory,
		const struct gt_raw_options *options);

/* Whether there are events sched_switch from now on, and of which times (count 0: all; copied; without `on`
 * not looked at). Without memory for them there are none. */
void gt_raw_set_switches(struct gt_raw *raw, bool on, const struct gt_merge_window *windows,
			 uint32_t count);

/* Whether the calls that are open in an event with fields are given, too, from now on. */
void gt_raw_set_stacks(struct gt_raw *raw, bool on);

/* Which CPUs' records are wanted from now on, and when they were. */
void gt_raw_set_masks(struct gt_raw *raw, const struct gt_filter_masks *masks);

/* The next bytes of pages: whole ones and, when there is nothing more now, the one that was begun.
 * A page is given to its end before the next one begins; at most what is left of one at a time. `bytes`
 * must not be 0. 0 at the end (a snapshot's, or after gt_merge_finish(&raw->merge)); GT_EAGAIN: there is
 * nothing now. No other error: a writer for which there is no memory is left out. */
int64_t gt_raw_read(struct gt_raw *raw, void *buffer, size_t bytes);

/* Frees what the merge holds; the struct is the caller's. */
void gt_raw_fini(struct gt_raw *raw);

#endif
