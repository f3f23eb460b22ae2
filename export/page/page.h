/* SPDX-License-Identifier: MIT */
/*
 * A recording, read once and kept as the page shows it: tracks of boxes for the time line, a merged
 * call tree of each stack for the flame graph, sums and slowest calls of each function. Then
 * questions are answered as JSON (gt_page_answer says which), each with no more than a screen shows.
 *
 * Memory: some 25 bytes a call up to GT_PAGE_CALLS calls; of more, short ones are kept together.
 * Reading is called from one thread, and has helpers of its own; when it is done, questions may come
 * from any number of threads.
 */
#ifndef GT_EXPORT_PAGE_PAGE_H
#define GT_EXPORT_PAGE_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include "export/export.h"

#define GT_PAGE_CALLS 24000000u

struct gt_page;

struct gt_page_options {
	struct gt_target *target;     /* must outlive the page */
	struct gt_export_about about; /* its strings must outlive the page; start 0: not known */
	uint64_t expected_calls;      /* for the progress; 0: not known */
	uint64_t most_calls;	      /* kept one by one; 0: GT_PAGE_CALLS */
	const char *problem;	      /* what is damaged or cut off, in words; NULL */
	bool one_thread;	      /* gt_page_read starts no other threads */
};

/* GT_ENOMEM. */
int gt_page_create(const struct gt_page_options *options, struct gt_page **page);
/* Reads the whole target. GT_ENOMEM, GT_EAGAIN: gt_page_stop was called. Once. */
int gt_page_read(struct gt_page *page, struct gt_filter *filter);
/* Ends gt_page_read soon. From any thread. */
void gt_page_stop(struct gt_page *page);
/* How much of it is read: 0 to 1; 1 only when it is done. From any thread. */
double gt_page_progress(const struct gt_page *page);
void gt_page_destroy(struct gt_page *page);

/* Instead of gt_page_read, for a caller that reads the stacks itself (the format `html`): give the calls to this sink,
 * then call gt_page_finish(). GT_ENOMEM. */
struct gt_stack_sink gt_page_sink(struct gt_page *page);
int gt_page_finish(struct gt_page *page, const struct gt_stack_report *report);

/* A parameter of a question, or NULL. */
typedef const char *gt_page_parameter(void *user, const char *name);

/*
 * Answers a question with JSON, appended to `out` (gt_out_init_memory, or a file). Times are ns since
 * the start of the recording; functions and lanes (stacks of threads) are numbers:
 *
 *   overview                     the run, lanes, processes, what stands out
 *   timeline from to width lanes what the lanes (a list, "0,3-5") show there, in boxes of two pixels
 *   flame of path width          the merged calls of: all, pid:N, lane:N; below the functions of path
 *   functions sort q limit       sums, by self (default), total, calls, max, p99 or name
 *   function id                  one of them with all that is known
 *   selftimes by                 self times by lane, lane-on-cpu (without what was off it) or cpu, of the
 *                                functions with the most
 *   names ids                    of functions, by number
 *   find id from way             the next (way=1) or last (-1) call of a function from a time on
 *   offcpu lane from to          how long the lane's thread was off the CPU meanwhile
 *
 * GT_ENOENT: no such question, function or stack; GT_EINVAL: a parameter is wrong; GT_ENOMEM. Then
 * what stands in `out` is of no use.
 */
int gt_page_answer(struct gt_page *page, const char *question, gt_page_parameter *parameter,
		   void *user, struct gt_out *out);

#endif
