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

/* The handles, one at least, are the caller's, outlive the records, and nobody else reads records of theirs
 * meanwhile. by_library: reads all of it by libtracecmd. GT_ENOMEM: *records is NULL. */
int gt_dat_records_create(struct tracecmd_input *const *handles, int count, bool by_library,
			  struct gt_dat_records **records);

/* 1: *record is the next one, not to be freed, until the next call; its offset, record_size and the like are
 * those of the first one in its page. 0: there is none. GT_EAGAIN (not by_library; also behind records): the pages
 * are not as expected, and everything has to be read again, by_library. After either only destroy. */
int gt_dat_records_next(struct gt_dat_records *records, struct tep_record **record);

/* NULL is allowed. */
void gt_dat_records_destroy(struct gt_dat_records *records);

#endif
