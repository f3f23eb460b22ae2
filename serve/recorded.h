/* SPDX-License-Identifier: MIT */
/*
 * The control files of a recording: the operations of struct gt_control_target over an opened file. Only
 * the way in which its text is shown can be changed. Any number of threads may use them.
 */
#ifndef GT_SERVE_RECORDED_H
#define GT_SERVE_RECORDED_H

#include "core/control/control.h"
#include "read/recording.h"

struct gt_recorded;

/* Makes the files. The recording must outlive them, and no other code may use it meanwhile.
 * GT_ENOMEM; *recorded is not set then. */
int gt_recorded_create(struct gt_recording *recording, struct gt_recorded **recorded,
		       struct gt_message *message);

/* Never NULL; valid until gt_recorded_destroy. */
struct gt_control_target *gt_recorded_control(struct gt_recorded *recorded);

/* Frees it. No other thread uses it any more. No handle of its files may be open. */
void gt_recorded_destroy(struct gt_recorded *recorded);

#endif
