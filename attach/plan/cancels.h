/* SPDX-License-Identifier: MIT */
/*
 * Functions in which the C library lets a signal cancel the thread (pthread_cancel), whose unwinder
 * then begins at any of their instructions: the wrappers of system calls that wait, and what they
 * switch cancellation on and off by. Where no unwinder can be told of our code, none of it may be
 * there.
 */
#ifndef GT_ATTACH_CANCELS_H
#define GT_ATTACH_CANCELS_H

#include "attach/object/object.h"
#include "attach/plan/scan.h"

/* What is known of an object's functions. Starts as zeroes, and is zeroes when it was freed. One thread at a
 * time. */
struct gt_cancels {
	bool ready;
	/* The object has glibc's pthread_cancel: a handler of the program's own may interrupt a call that
	 * waits, so whatever a handler leads to may be cancelled, too. */
	bool anywhere;
	uint8_t *in; /* by function, 1: it is one of these; NULL: there was no memory, all are */
};
void gt_cancels_free(struct gt_cancels *cancels);

/* Whether the function is one of these: it makes a system call, or is called (or jumped to) by one
 * that does, or any is. Looks through the object's code the first time; `scan` is of the same object each time. */
bool gt_cancels_in(struct gt_cancels *cancels, struct gt_scan *scan, uint32_t index);

#endif
