/* SPDX-License-Identifier: MIT */
/*
 * What a host that was killed has left in the memory that it shared with a process: the records that
 * it had not taken out. Read before that process is attached to anew, which takes all of it out.
 *
 * None of it is trusted: it is read from the process's memory, which the process, or others of its
 * recording, may have written. It is copied, then checked as a live process's is (drain.h). One thread
 * at a time; no lock.
 */
#ifndef GT_ATTACH_LEFTOVER_H
#define GT_ATTACH_LEFTOVER_H

#include <stdint.h>
#include <sys/types.h>
#include "core/trace/target.h"

struct gt_leftover;

/* Copies what process `pid` has, which runs on meanwhile. *leftover NULL: there is nothing, its host lives, or an
 * error: GT_EGONE, GT_EPERM, GT_EIO, GT_EFORMAT, GT_ENOMEM. */
int gt_leftover_read(pid_t pid, struct gt_leftover **leftover, struct gt_message *message);

/* The path of the file that its host wrote, as the memory has it; "": none. Lives as long as the leftover. */
const char *gt_leftover_recording(const struct gt_leftover *leftover);
/* The base of that file's clock, as the memory has it: ticks of the TSC, and ns at the same moment. */
uint64_t gt_leftover_tsc(const struct gt_leftover *leftover);
uint64_t gt_leftover_ns(const struct gt_leftover *leftover);

/* The number of writers that its host had, as the memory has it. */
uint32_t gt_leftover_writers(const struct gt_leftover *leftover);

/* Gives all to the sink: writers, with what they have lost, and sub-buffers, in order. Call it
 * once. *calls: the number of calls in the sub-buffers, with an error in those that were given so far. 0, the
 * sink's error, or GT_ENOMEM. */
int gt_leftover_give(struct gt_leftover *leftover, const struct gt_sink *sink, uint64_t *calls,
		     struct gt_message *message);

/* Frees it; NULL is allowed. */
void gt_leftover_free(struct gt_leftover *leftover);

#endif
