/* SPDX-License-Identifier: MIT */
/*
 * What goes from one recording to another as it is: the records of a kernel, beside which there are
 * another machine's, those of its host; and descriptions of events. From one thread at a time.
 */
#ifndef GT_LINUX_GUEST_H
#define GT_LINUX_GUEST_H

#include <stdint.h>

#include "core/trace/target.h"
#include "read/recording.h"

/* Above the generations of all its CPUs; its threads have other ones. */
uint32_t gt_linux_guest_generations(struct gt_recording *recording);

/* Its CPUs: numbers from there on are free. */
uint32_t gt_linux_guest_cpus(struct gt_recording *recording);

/* Copies what is known of events with fields, and of functions' arguments and results. */
int gt_linux_copy_events(struct gt_recording *recording, const struct gt_sink *sink);

/* Copies the writers, threads, events and sub-buffers. 0, GT_ENOMEM, or what the sink returned. What
 * the file has lost is left out, and the recording's problems tell it. */
int gt_linux_guest_copy(struct gt_recording *recording, const struct gt_sink *sink);

#endif
