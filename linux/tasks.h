/* SPDX-License-Identifier: MIT */
/*
 * What a Linux kernel recorded, task by task: calls, returns and events come in, in order of time
 * over all CPUs, and sub-buffers of one writer for each task go to a sink, as if each task had been
 * a traced thread. A task's open calls go with it from CPU to CPU, and an interrupt's calls stand
 * in the calls of the task that it interrupted: so Linux's function_graph tracer keeps its stacks.
 *
 * Nothing is guessed: a call whose return is missing is left without one, a return whose entry is
 * missing keeps the time that the kernel measured, and what makes no sense is counted. Memory grows
 * with the number of tasks, not with that of records. From one thread at a time.
 */
#ifndef GT_LINUX_TASKS_H
#define GT_LINUX_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <graftrace/error.h>
#include "core/trace/target.h"

/* The process number under which the idle tasks of all CPUs stand: Linux has 0, which is a kernel's
 * CPU in a recording (rule 5 of <graftrace/record.h>), and no process has this one. */
#define GT_TASKS_IDLE_PROCESS INT32_MAX

struct gt_tasks;

/* When, where and in which task something happened. */
struct gt_tasks_moment {
	uint64_t clock;
	uint32_t cpu;
	uint32_t tid; /* 0: the idle task of that CPU */
	/* What the program recorded by itself; its calls stand below all of the kernel's. */
	bool is_user;
};

/* A call as its return tells of it. */
struct gt_tasks_return {
	uint32_t function;
	uint32_t depth;	   /* calls of the task that stay open */
	uint64_t start;	   /* clock of the call's begin; 0: not known, or of another clock */
	uint64_t duration; /* ticks of the clock */
};

struct gt_tasks_options {
	const struct gt_sink *sink;
	/* The tasks' writers have generations from here on; 0: from 1 on. */
	uint32_t first_generation;
	enum graftrace_tracer tracer; /* FUNCTION_GRAPH, or FUNCTION: its records are pairs */
	/* Ticks by which two clocks of one moment may differ: the kernel reads the clock of a call
	 * and that of its record one after the other. */
	uint64_t slack;
	/* The task's name at the time of asking; "" or NULL: not known. */
	const char *(*name)(void *data, uint32_t tid);
	/* Before a sub-buffer goes to the sink: functions must have gone before. */
	int (*before)(void *data);
	void *data;
};

/* GT_ENOMEM. The options are copied; the sink stays the caller's. */
int gt_tasks_create(const struct gt_tasks_options *options, struct gt_tasks **tasks);

/* A task of which more is known than the kernel's records say. Before its first record. */
int gt_tasks_introduce(struct gt_tasks *tasks, const struct gt_writer *writer);

/*
 * Each returns 0, GT_ENOMEM, or what the sink returned. Depths are the kernel's, or the program's,
 * without the other's. Clocks that run backwards within a task are
 * taken for those of the record before.
 */
int gt_tasks_enter(struct gt_tasks *tasks, const struct gt_tasks_moment *moment, uint32_t function,
		   uint32_t depth);
int gt_tasks_leave(struct gt_tasks *tasks, const struct gt_tasks_moment *moment,
		   const struct gt_tasks_return *call);
/* A program's calls end without a return down to that depth. is_unseen: they may have returned. */
int gt_tasks_unwind(struct gt_tasks *tasks, const struct gt_tasks_moment *moment, uint32_t depth,
		    bool is_unseen);
/* A record of the function tracer: `caller` is the address that the function returns to. */
int gt_tasks_function(struct gt_tasks *tasks, const struct gt_tasks_moment *moment,
		      uint32_t function, uint64_t caller);
/* A line of text. is_marker: what somebody wrote into trace_marker; else an event, "name: ...". */
int gt_tasks_text(struct gt_tasks *tasks, const struct gt_tasks_moment *moment, const char *text,
		  size_t bytes, bool is_marker);
/*
 * A record of the program that is no call, in its own words: a described event, the values of the call
 * that is entered or left next, open calls, a raw marker. `head` are its first words, none of them 0 but
 * the second, and `bytes` what follows. One that is longer than any sub-buffer is counted as damaged.
 */
struct gt_tasks_words {
	enum graftrace_event type;
	uint64_t head[2];
	uint32_t head_count;
	const void *bytes;
	size_t byte_count;
};
int gt_tasks_words(struct gt_tasks *tasks, const struct gt_tasks_moment *moment,
		   const struct gt_tasks_words *words);
/* Records were lost just before this moment; 0: nobody knows how many. */
int gt_tasks_lost(struct gt_tasks *tasks, const struct gt_tasks_moment *moment, uint64_t records);

/* Why a task does not run; clocks are 0 where nothing is known. Kept for whoever reads the kernel's
 * switches, and not looked at here. */
struct gt_tasks_rest {
	uint64_t off_clock; /* it left the CPU */
	uint64_t wake_clock;
	uint32_t waker; /* tid */
	bool is_preempted;
	bool by_interrupt;  /* the waker was interrupted by what woke it */
	bool is_introduced; /* by gt_tasks_introduce */
};

/* Of this task, until the tasks are destroyed. NULL: no memory. */
struct gt_tasks_rest *gt_tasks_rest(struct gt_tasks *tasks, uint32_t tid);

struct gt_tasks_totals {
	uint64_t words;
	uint64_t calls;
	uint64_t first_clock;
	uint64_t last_clock;
	uint64_t lost;	  /* records, as far as their number is known */
	uint64_t damaged; /* records that make no sense */
	uint32_t tasks;
};

/* Gives out what is gathered, and the writers with their names and ends. */
int gt_tasks_finish(struct gt_tasks *tasks, struct gt_tasks_totals *totals);

void gt_tasks_destroy(struct gt_tasks *tasks);

#endif
