/* SPDX-License-Identifier: MIT */
/* graftrace record: the histograms of events are kept with the recording. */
#ifndef GT_CLI_RECORD_HISTS_H
#define GT_CLI_RECORD_HISTS_H

#include "core/control/control.h"
#include "read/writer.h"

/* What has no room is told on stderr. */
void gt_record_keep_hists(struct gt_control_target *control, struct gt_file_writer *writer);

#endif
