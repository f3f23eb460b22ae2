/* SPDX-License-Identifier: MIT */
/* The groups of rows, each in a file of its own: what a file adds here is on every door. */
#ifndef GT_CORE_CONTROL_CONTROL_TABLE_H
#define GT_CORE_CONTROL_CONTROL_TABLE_H

#include "core/control/control.h"

/* Hidden: a kernel has no table of global offsets. */
#define GT_CONTROL_GROUP(name) \
	extern const struct gt_control_group name __attribute__((visibility("hidden")))

GT_CONTROL_GROUP(gt_control_readme);
GT_CONTROL_GROUP(gt_control_tracer_files);
GT_CONTROL_GROUP(gt_control_trace_files);
GT_CONTROL_GROUP(gt_control_filter_files);
GT_CONTROL_GROUP(gt_control_buffer_files);
GT_CONTROL_GROUP(gt_control_names_files);
GT_CONTROL_GROUP(gt_control_log_files);
GT_CONTROL_GROUP(gt_control_snapshot_files);
GT_CONTROL_GROUP(gt_control_profile_files);
GT_CONTROL_GROUP(gt_control_raw_files);
GT_CONTROL_GROUP(gt_control_events_files);
GT_CONTROL_GROUP(gt_control_probes_files);
GT_CONTROL_GROUP(gt_control_synthetic_files);
GT_CONTROL_GROUP(gt_control_options_files);

extern const struct gt_control_group *const gt_control_groups[]
	__attribute__((visibility("hidden")));
extern const uint32_t gt_control_group_count __attribute__((visibility("hidden")));

#endif
