/* SPDX-License-Identifier: MIT */
/*
 * Errors and messages. Functions below the command line return 0 (or a count) or a negative
 * enum gt_error, and say what went wrong, where and what to do in a struct gt_message that the
 * caller owns. Usable everywhere: no libc, no allocation.
 */
#ifndef GRAFTRACE_ERROR_H
#define GRAFTRACE_ERROR_H

enum gt_error {
	GT_OK = 0,
	GT_ENOMEM = -1,	   /* no memory */
	GT_EINVAL = -2,	   /* an argument or a written value is not valid */
	GT_ENOENT = -3,	   /* no such file, function, thread, control file */
	GT_EIO = -4,	   /* the operating system refused; the message has its words */
	GT_EFORMAT = -5,   /* data is not in the stated format; the message has the byte offset */
	GT_ECUT = -6,	   /* data ends in the middle; what is whole was given */
	GT_EPERM = -7,	   /* no permission */
	GT_EBUSY = -8,	   /* somebody else has it */
	GT_EAGAIN = -9,	   /* nothing there yet; ask again or wait */
	GT_EGONE = -10,	   /* the target has ended */
	GT_ENOTSUP = -11,  /* this target or machine cannot do it; the message says why */
	GT_ENOSPC = -12,   /* the medium or a fixed table is full */
	GT_EEXIST = -13,   /* it is there already */
	GT_EBADF = -14,	   /* not open for that, or not now (trace_marker while tracing is off) */
	GT_ERANGE = -15,   /* a number of more than 64 bits */
	GT_ENODEV = -16,   /* what is to be taken away is not there (a function's command) */
	GT_ECANTRUN = -17, /* the program is there, but exec refuses it */
	GT_ESRCH = -18,	   /* a quote is missing, as Linux tells of it */
	GT_EDOM = -19,	   /* a division by zero */
};

/* One message to a person, without the leading program name and without a newline. Empty = none. */
struct gt_message {
	char text[512];
};

#endif
