/* SPDX-License-Identifier: MIT */
/* How errors of attach/ are told. */
#ifndef GT_ATTACH_FAIL_H
#define GT_ATTACH_FAIL_H

#include <graftrace/error.h>

/* Prints into *message (may be NULL; what does not fit is cut) and returns error. Any thread. */
__attribute__((format(printf, 3, 4))) int gt_fail(struct gt_message *message, int error,
						  const char *format, ...);

#endif
