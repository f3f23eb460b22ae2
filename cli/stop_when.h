/* SPDX-License-Identifier: MIT */
/*
 * `record --stop-when`: when a recording ends while its program goes on.
 *
 *	FUNC > TIME     a call of the function took longer (10us, 1.5ms, 2s)
 *	FUNC hit N      the function is called for the N-th time
 *	signal NAME     the program's handler of that signal is called, or the signal kills it
 *	crash           a process of the program dies of SIGSEGV, SIGABRT and their kind
 *
 * FUNC is a glob as --filter has it and may hold blanks; blanks around the parts do not count.
 */
#ifndef GT_CLI_STOP_WHEN_H
#define GT_CLI_STOP_WHEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/target.h"

enum gt_stop_kind {
	GT_STOP_LATE,
	GT_STOP_HIT,
	GT_STOP_SIGNAL,
	GT_STOP_CRASH,
};

struct gt_stop_condition {
	enum gt_stop_kind kind;
	char *function; /* LATE, HIT: malloc'ed */
	uint64_t ns;	/* LATE */
	uint64_t hits;	/* HIT */
	int signal;	/* SIGNAL */
};

/* GT_EINVAL: the message has the text, and below it a caret where it goes wrong; GT_ENOMEM. */
int gt_stop_parse(const char *text, struct gt_stop_condition *condition,
		  struct gt_message *message);
void gt_stop_condition_fini(struct gt_stop_condition *condition);

/* The trigger of a condition on a function. False: it needs none. */
bool gt_stop_trigger(const struct gt_stop_condition *condition, struct gt_trigger *trigger);

/* "SIGSEGV (Segmentation fault)"; the text is the caller's. */
const char *gt_stop_signal_name(int signal, char *text, size_t bytes);

#endif
