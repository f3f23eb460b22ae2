/* SPDX-License-Identifier: MIT */
/*
 * Linux's records, as libtraceevent reads them, to the calls and events of tasks: which event is
 * which, the fields of those that are calls, names of kernel functions, and the text of all others.
 * From one thread at a time.
 */
#ifndef GT_LINUX_RECORDS_H
#define GT_LINUX_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include <event-parse.h>

#include "core/trace/target.h"
#include "linux/modules.h"
#include "linux/tasks.h"

struct gt_linux_records;

/* What a record is, to choose the text's layout before anything is read. */
enum gt_linux_kind {
	GT_LINUX_EVENT = 0,
	GT_LINUX_CALL = 1,     /* of the tracer function_graph */
	GT_LINUX_FUNCTION = 2, /* of the tracer function */
};

struct gt_linux_options {
	struct tep_handle *tep; /* with the formats and symbols; the caller's */
	const struct gt_sink *sink;
	enum graftrace_tracer tracer;
	uint64_t slack; /* as gt_tasks_options has it */
	/* Of the records' clock. Calls are measured in nanoseconds, whichever that is. */
	struct gt_clock clock;
	/* Where functions' numbers begin, below are others'. 0: at 1. */
	uint32_t first_function;
	uint32_t first_generation; /* … and writers' generations; 0: at 1 */
	uint32_t first_event;	   /* … and described events' numbers; 0: at 1 */
	/* Whose functions are which; NULL: not known. The caller's, as long as the records. */
	const struct gt_linux_modules *modules;
	bool no_switches; /* they are known otherwise */
	/* Switches between tasks that were not introduced to the tasks are not all recorded. */
	bool has_chosen;
};

/* GT_ENOMEM. */
int gt_linux_records_create(const struct gt_linux_options *options,
			    struct gt_linux_records **records);

enum gt_linux_kind gt_linux_kind_of(struct tep_handle *tep, struct tep_record *record);

/* Of a return: the nanosecond of the call's end, by the kernel's local clock. 0: it is none. */
uint64_t gt_linux_end_of(struct tep_handle *tep, struct tep_record *record);

/* The next one in order of time over all CPUs. 0, GT_ENOMEM, or what the sink returned. */
int gt_linux_records_take(struct gt_linux_records *records, struct tep_record *record);

/* The same of a record that is not to be seen: what it says of other tasks' rests is taken. */
int gt_linux_records_pass(struct gt_linux_records *records, struct tep_record *record);

struct gt_linux_totals {
	struct gt_tasks_totals tasks;
	uint64_t unknown;	 /* records of events without a format */
	uint64_t unknown_losses; /* places where records are missing, nobody knows how many */
};

/* The tasks, for what else is known of them. */
struct gt_tasks *gt_linux_records_tasks(struct gt_linux_records *records);

int gt_linux_records_finish(struct gt_linux_records *records, struct gt_linux_totals *totals);

void gt_linux_records_destroy(struct gt_linux_records *records);

#endif
