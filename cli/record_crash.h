/* SPDX-License-Identifier: MIT */
/* What `graftrace record` says of processes that a signal killed. */
#ifndef GT_CLI_RECORD_CRASH_H
#define GT_CLI_RECORD_CRASH_H

#include "attach/session/session.h"

/* Once the recording `path` is written: for each process that died of its own fault, and the
 * program itself whatever signal it died of, the calls that were open. */
void gt_record_report_crash(struct gt_session *session, const char *path);

#endif
