/* SPDX-License-Identifier: MIT */
/* The page's own memory: read by page.c, looked at by answers*.c and format_html.c.
 *
 * While the page is read, its functions are the reader's, in one thread, and take no lock; gt_page_add_left() alone is the
 * helper's where there is one. When it was read, nothing changes but the selections. */
#ifndef GT_EXPORT_PAGE_PAGE_PRIVATE_H
#define GT_EXPORT_PAGE_PAGE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include "core/trace/off_cpu.h"
#include "export/call_tree.h"
#include "export/page/functions.h"
#include "export/page/page.h"
#include "export/page/tracks.h"

#define GT_PAGE_DEPTH_MAX  GT_TREE_DEPTH_MAX
#define GT_PAGE_MOMENTS	   20000u
#define GT_PAGE_LANES_MAX  (1u << 24)
#define GT_PAGE_CACHE_LINE 64u
/* The call tree has a node for each lane right below the root, with this bit and the lane's number
 * for its function; functions themselves are their numbers + 1. */
#define GT_PAGE_LANE_NODE (1u << 31)

/* A thread, of which lanes are the stacks. */
struct gt_page_thread {
	uint32_t pid, tid;
	struct gt_off_cpu_follow off_cpu;
};

/* Ticks off the CPU of an open call. */
struct gt_page_off {
	uint64_t own, callees;
};

/* While it is read, the reader writes what stands before `apart`, and the helper what stands behind:
 * no line of the cache is written by both. */
struct gt_page_lane {
	uint32_t pid, tid, stack, thread;
	char name[16];
	uint32_t node;		 /* in the tree */
	struct gt_page_off *off; /* by depth, of the open calls */
	uint32_t off_room;
	uint32_t marks; /* of the page's moments */
	char apart[GT_PAGE_CACHE_LINE];
	uint64_t first, last; /* ns */
	uint64_t calls;
	uint64_t self, self_off; /* ticks, of its calls that returned */
	struct gt_track *tracks; /* by depth */
	uint32_t track_count;
};

/* A call that has ended, for the sums and the boxes. Times in ticks. */
struct gt_page_left {
	uint64_t start, took, self;
	uint64_t
		off; /* off the CPU in its own time, as the switches tell: may be more than `self` */
	uint32_t lane, function, depth, cpu;
	uint32_t node; /* in the tree */
	uint8_t flags; /* enum gt_stack_flags */
	bool again;    /* a call of the same function is around it */
};

/* Sums of a node of the tree, in ticks, while calls are added: the nodes are the reader's then. */
struct gt_page_node_sum {
	uint64_t calls, total, self;
	uint64_t off; /* off the CPU in its own time */
};

struct gt_page_moment {
	uint64_t at; /* ns */
	uint32_t lane;
	enum gt_moment_kind kind;
	uint64_t value;
	char *text; /* of a mark */
};

/* What a call was called with and returned. */
struct gt_page_value {
	uint64_t at; /* its start, ns */
	uint32_t lane, depth;
	char *texts; /* two, one behind the other */
	bool has_arguments, has_result;
};

#define GT_PAGE_VALUES 1000000u /* calls of which they are kept; of further ones they are not */

/* The merged tree of a selection, as it was asked for. */
struct gt_page_selection {
	char of[32]; /* "": none */
	struct gt_tree tree;
	uint64_t *off; /* ticks off the CPU in a node's own time */
	uint64_t used; /* when it was asked for last */
};

#define GT_PAGE_SELECTIONS 8u

struct gt_page {
	struct gt_page_options options;
	/* What was read, from here … */
	uint64_t start; /* ticks from which times count; 0: from the first call or event */
	struct gt_page_functions functions;
	struct gt_page_thread *threads;
	uint32_t thread_count, thread_room;
	struct gt_page_lane *lanes;
	uint32_t lane_count, lane_room;
	struct gt_tree tree; /* nodes of all lanes, by function number + 1 */
	uint8_t *node_again; /* a call of the same function is around it */
	uint64_t *node_off;  /* ticks off the CPU in its own time */
	uint32_t node_known, node_room;
	struct gt_page_moment *moments;
	uint32_t moment_count, moment_room, moments_left_out;
	struct gt_page_value *values; /* values.c */
	uint32_t value_count, value_room;
	uint64_t values_left_out;
	uint64_t length; /* ns from the start to the last moment */
	struct gt_stack_report report;
	/* The helper's, while it is read. */
	char apart[GT_PAGE_CACHE_LINE];
	uint64_t boxes;	     /* kept, of all tracks */
	uint64_t grain;	     /* ns; calls that are shorter are kept together; 0: none are */
	uint64_t too_deep;   /* calls that are in no track */
	uint32_t lanes_used; /* lanes[0 … lanes_used - 1] may have boxes */
	uint32_t node_sum_room;
	struct gt_page_node_sum *node_sums; /* by node; NULL again when they are in the tree */
	char apart_behind[GT_PAGE_CACHE_LINE];
	/* … to here; all zero to begin with. */
	bool has_off_cpu;
	struct gt_page_helper *helper; /* NULL: there is none (helper.c) */
	/* Where the next call that has ended goes, and one past the last of these places. */
	struct gt_page_left *next_left, *left_end;
	struct gt_page_left alone; /* the only place without a helper */
	atomic_bool stopped;
	_Atomic uint64_t entered;
	atomic_bool ready;
	pthread_mutex_t lock; /* guards the selections, and the target, once it is read */
	struct gt_page_selection selections[GT_PAGE_SELECTIONS];
	uint64_t asked;
};

/* Ticks as nanoseconds. */
static inline uint64_t gt_page_ns(const struct gt_page *page, uint64_t ticks)
{
	return gt_clock_duration_ns(&page->options.target->clock, ticks);
}

/* Nanoseconds from the start of the recording to a clock; 0 of an earlier one. */
static inline uint64_t gt_page_at(const struct gt_page *page, uint64_t clock)
{
	uint64_t start = page->start;

	return (int64_t)(clock - start) > 0 ? gt_page_ns(page, clock - start) : 0;
}

/* Adds a call that has ended to the sums and the boxes. From the helper's thread; without a helper, the reader's.
 * GT_ENOMEM: the page is of no use. */
int gt_page_add_left(struct gt_page *page, const struct gt_page_left *left);

/* Starts the helper, a thread that adds calls which the reader hands over when they have ended. If it cannot be started
 * or is not wanted (options.one_thread, a single CPU), the reader adds them itself. */
void gt_page_helper_start(struct gt_page *page);
/* The cold half of gt_page_helper_give(): the places are used up. */
int gt_page_helper_give_slow(struct gt_page *page);
/* Hands over the call that was filled into `next_left`; or adds it, without a helper. GT_ENOMEM, also
 * for one before. */
static inline int gt_page_helper_give(struct gt_page *page)
{
	/* The helper has had these lines of the cache. */
	__builtin_prefetch(page->next_left + 4, 1);
	return ++page->next_left == page->left_end ? gt_page_helper_give_slow(page) : GT_OK;
}
/* Returns when all that was handed over is added (after an error: dropped): then arrays of the page can be moved. */
void gt_page_helper_wait(struct gt_page *page);
/* The same, and ends the thread; without a helper it does nothing. GT_ENOMEM: not all could be added. */
int gt_page_helper_end(struct gt_page *page);
/* Call when all calls were added: makes the coarser levels of all tracks, in several threads. GT_ENOMEM. */
int gt_page_finish_tracks(struct gt_page *page);

/* values.c. add: the values of a call that has ended, which began at that clock; copied, up to 200 bytes of each; NULL:
 * not recorded. Behind GT_PAGE_VALUES calls they are only counted. GT_ENOMEM. sort: call it when all were added, before
 * find. find: those of the call that began at that time (ns, gt_page_at()); NULL: none were recorded, or kept. arguments,
 * result: as long as the page; NULL: not recorded. forget: frees them all, once. */
int gt_page_add_values(struct gt_page *page, uint32_t lane, uint32_t depth, uint64_t clock,
		       const char *arguments, const char *result);
void gt_page_sort_values(struct gt_page *page);
const struct gt_page_value *gt_page_find_values(const struct gt_page *page, uint32_t lane,
						uint32_t depth, uint64_t at);
const char *gt_page_arguments(const struct gt_page_value *value);
const char *gt_page_result(const struct gt_page_value *value);
void gt_page_forget_values(struct gt_page *page);

/* Makes or finds the merged tree of "all", "pid:N" or "lane:N". Call with page->lock held; *selection is valid until
 * the lock is released. GT_EINVAL: it is none of these; GT_ENOENT: there is no such lane or process; GT_ENOMEM. */
int gt_page_select(struct gt_page *page, const char *of, struct gt_page_selection **selection);

/* The extent of an answer for all lanes, from start to end. */
struct gt_page_whole {
	uint64_t grain;	    /* of boxes, ns; 0: each call */
	uint64_t off_cells; /* cells with times off the CPU, at most; 0: none */
	uint32_t lanes;	    /* so many, those with the most calls */
	size_t most;	    /* bytes */
};

/* Appends the answer to `timeline` of that, when the page was read. Uses the target: not beside gt_page_answer() in another
 * thread, for it takes no lock. GT_ENOSPC: it has more bytes; GT_ENOMEM. Then what stands in `out` is of no use. */
int gt_page_put_whole_timeline(struct gt_page *page, const struct gt_page_whole *whole,
			       struct gt_out *out);

#endif
