/* SPDX-License-Identifier: MIT */
/* error_log: the last errors of writes, each with the place in the text where it went wrong. */
#ifndef GT_CORE_CONTROL_CONTROL_LOG_H
#define GT_CORE_CONTROL_CONTROL_LOG_H

#include "core/control/control.h"

/* Adds an error to the log of the handle's target: it refused these bytes at handle->bad_at. The log
 * keeps the last GT_CONTROL_LOG_LINES. From any thread that may use the handle; cannot fail. */
void gt_control_log_error(struct gt_control_handle *handle, const char *bytes, size_t count,
			  const struct gt_message *message);

#endif
