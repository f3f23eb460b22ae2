/* SPDX-License-Identifier: MIT */
/*
 * The records of a trace.dat in order of time over all CPUs and buffers. libtracecmd finds and
 * decompresses the pages and says when the first record of each was; the records behind it are read
 * here (read/kernel_page.h), which takes a tenth of the time. Whatever the two do not agree about is read by
 * libtracecmd alone. From one thread at a time.
 */
#ifndef GT_LINUX_DAT_RECORDS_H
#define GT_LINUX_DAT_RECORDS_H

#include <stdbool.h>

#include <event-parse.h>
#include <trace-cmd.h>

struct gt_dat_records;

/* The handles are the caller's, and nobody else reads records of theirs meanwhile. by_library: reads all
 * of it by libtracecmd. GT_ENOMEM. */
int gt_dat_records_create(struct tracecmd_input *const *handles, int count, bool by_library,
			  struct gt_dat_records **records);

/* 1: *record is the next one, whole until the next call. 0: there is none. GT_EAGAIN: the pages are not
 * as expected, and everything has to be read again by libtracecmd. */
int gt_dat_records_next(struct gt_dat_records *records, struct tep_record **record);

void gt_dat_records_destroy(struct gt_dat_records *records);

#endif
