/* SPDX-License-Identifier: MIT */
/*
 * The call stacks behind a function_graph text: one for each task, whichever CPU it runs on, and
 * one for each CPU whose task the text does not tell. Rebuilds which call a closing brace ends and
 * how much of its time its callees took.
 *
 * A stack holds only what is open, so memory is that of the calls open at a time. When a text keeps
 * opening calls without an end, and more than GT_TEXT_STACKS_BYTES_MAX are held for them or there are
 * GT_TEXT_TASKS_MAX stacks, all open calls are forgotten, and counted. One thread.
 */
#ifndef GT_READ_TEXT_STACKS_H
#define GT_READ_TEXT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_TEXT_STACKS_BYTES_MAX (64u << 20)
#define GT_TEXT_TASKS_MAX	 (256u << 10)

/* Calls that began in the text and whose end is not told by it, by cause. */
struct gt_text_open_counts {
	/* Its caller, or a call beside it, came first: longjmp, an exception, a dead task. */
	uint64_t never_returned;
	/* Events were lost on its CPU while it was open; or a task turned out to have calls on two CPUs. */
	uint64_t cut_by_loss;
	uint64_t forgotten; /* dropped at one of the two limits */
	uint64_t at_end;    /* open when the text ended */
};

struct gt_text_task; /* one stack */

/* What a closing brace ended. */
struct gt_text_closed {
	const char *name; /* valid until the next call of this module */
	size_t name_len;
	uint64_t self_ns;
	bool children_exceed; /* the callees' times add to more: self_ns is 0 instead of negative */
};

struct gt_text_stacks {
	struct gt_text_task **buckets;
	size_t buckets_count; /* a power of two */
	size_t tasks_count;
	struct gt_text_task *spare; /* freed tasks, their memory kept for the next */
	size_t spare_count;
	struct gt_text_cpu *cpus; /* by number + 1; 0 stands for "no CPU column" */
	size_t cpus_count;
	uint64_t bytes; /* held by all stacks */
	struct gt_text_open_counts counts;
	/* Called for each call that at_end counts. May be NULL. */
	void (*left_open)(void *user, const char *name, size_t name_len, int64_t pid);
	void *user;
};

/* Zeroes and prepares *stacks. GT_ENOMEM. */
int gt_text_stacks_init(struct gt_text_stacks *stacks);

/* A `cpu` is -1 to GT_TEXT_CPU_MAX of text_line.h below. */

/*
 * The task to which a line of CPU `cpu` (-1: no such column) belongs. pid -1: the line does not
 * say, so it is the task that runs there; else task `pid` runs there from now on.
 * NULL: no memory. Valid until the next call with the same CPU.
 */
struct gt_text_task *gt_text_stacks_task(struct gt_text_stacks *stacks, int32_t cpu, int64_t pid);

/* Call for a task switch: `from` ran on `cpu` until now, `to` runs there from now on. GT_ENOMEM. */
int gt_text_stacks_switch(struct gt_text_stacks *stacks, int32_t cpu, int64_t from, int64_t to);

/* Says which task runs on `cpu` at the text's begin; nothing happens if that is known already. GT_ENOMEM. */
int gt_text_stacks_first(struct gt_text_stacks *stacks, int32_t cpu, int64_t pid);

/* Call when events of `cpu` were lost (or its buffer begins): calls that were open there may have ended. GT_ENOMEM. */
int gt_text_stacks_lost(struct gt_text_stacks *stacks, int32_t cpu);

/* The number for the tid column: the task's, or 0, -1, -2 ... for the unnamed one of CPU 0, 1, 2.
 */
int64_t gt_text_task_tid(const struct gt_text_task *task);

/* Call when a call begins. indent: see struct gt_text_line. GT_ENOMEM. */
int gt_text_stacks_enter(struct gt_text_stacks *stacks, struct gt_text_task *task, const char *name,
			 size_t name_len, int32_t indent);

/* Call for a call without callees, which took duration_ns. */
void gt_text_stacks_leaf(struct gt_text_stacks *stacks, struct gt_text_task *task, int32_t indent,
			 uint64_t duration_ns);

/*
 * Call when a call that took duration_ns ends. tail: the name behind the brace, or NULL. True: *closed is that
 * call. False: its begin is not in the text, or was dropped (struct gt_text_open_counts).
 */
bool gt_text_stacks_leave(struct gt_text_stacks *stacks, struct gt_text_task *task, int32_t indent,
			  const char *tail, size_t tail_len, uint64_t duration_ns,
			  struct gt_text_closed *closed);

/* Call when the text ends, or another begins: counts all open calls, and empties all stacks. */
void gt_text_stacks_end(struct gt_text_stacks *stacks);

void gt_text_stacks_fini(struct gt_text_stacks *stacks);

#endif
