/* SPDX-License-Identifier: MIT */
/*
 * Calls to CSV: the header "function,tid,latency_us,latency_us_self", then a row a call, lines
 * ended by a newline alone. Times are microseconds with exactly three decimals, so nothing is
 * rounded. A name that holds a comma, a quote or a line end is quoted as RFC 4180 says.
 *
 * Writes to a file descriptor through a buffer of its own. One thread.
 */
#ifndef GT_EXPORT_CSV_H
#define GT_EXPORT_CSV_H

#include <stddef.h>
#include <stdint.h>

#include <graftrace/error.h>

#define GT_CSV_HEADER "function,tid,latency_us,latency_us_self\n"

struct gt_csv_writer {
	char *buffer;
	size_t used;
	uint64_t bytes; /* written before what the buffer holds */
	int fd;		/* the caller's; never closed here */
	int error; /* errno of the first write that failed, 0 if none: all later rows are refused */
};

/* Prepares *writer and puts the header line into its buffer. The descriptor stays the caller's. GT_ENOMEM: there is
 * nothing to be freed. */
int gt_csv_writer_init(struct gt_csv_writer *writer, int fd);

/* Writes one row. GT_EIO once a write has failed; writer->error has the errno. */
int gt_csv_write_call(struct gt_csv_writer *writer, const char *function, size_t function_len,
		      int64_t tid, uint64_t latency_ns, uint64_t self_ns);

/* Writes out what is buffered. GT_EIO with the system's words in *message. */
int gt_csv_writer_flush(struct gt_csv_writer *writer, struct gt_message *message);

/* Frees the buffer; what was not flushed is gone. */
void gt_csv_writer_fini(struct gt_csv_writer *writer);

#endif
