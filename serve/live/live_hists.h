/* SPDX-License-Identifier: MIT */
/*
 * Histograms of a program's events as text: the operations of struct gt_control_ops of the same names,
 * which say what they take and give. From any thread, with no lock held: check and open take the session's lock, read and
 * close none. One thread at a time for what one open gave.
 */
#ifndef GT_SERVE_LIVE_HISTS_H
#define GT_SERVE_LIVE_HISTS_H

#include "serve/live/live_private.h"

int gt_live_event_hist_check(struct gt_control_target *target, const char *word, const char *text,
			     bool is_new, struct gt_hist_error *error);
int gt_live_event_hists_open(struct gt_control_target *target, const char *word, void **hists,
			     struct gt_message *message);
size_t gt_live_event_hists_read(struct gt_control_target *target, void *hists, uint64_t offset,
				char *buffer, size_t bytes);
void gt_live_event_hists_close(struct gt_control_target *target, void *hists);

#endif
