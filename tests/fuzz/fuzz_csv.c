/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a CSV of calls: no crash, no hang, each row within the limits; and what it says is
 * read back the same after it was written again.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "export/csv.h"
#include "read/csv.h"

struct sums {
	struct gt_csv_writer *writer; /* NULL: the second reading */
	uint64_t rows;
	uint64_t hash;
};

static int take(void *user, const struct gt_csv_row *row)
{
	struct sums *sums = user;

	if (row->function_len == 0 || row->latency_ns > 1000000000000000000 ||
	    row->latency_ns < -1000000000000000000)
		abort();
	/* What is written has no negative times. */
	if (row->latency_ns < 0 || row->self_ns < 0)
		return 0;
	for (size_t i = 0; i < row->function_len; i++)
		sums->hash = (sums->hash ^ (unsigned char)row->function[i]) * 0x100000001b3u;
	sums->hash = (sums->hash ^ (uint64_t)row->tid) * 0x100000001b3u;
	sums->hash = (sums->hash ^ (uint64_t)row->latency_ns) * 0x100000001b3u;
	sums->hash = (sums->hash ^ (uint64_t)row->self_ns) * 0x100000001b3u;
	sums->rows++;
	if (sums->writer != NULL &&
	    gt_csv_write_call(sums->writer, row->function, row->function_len, row->tid,
			      (uint64_t)row->latency_ns, (uint64_t)row->self_ns) != GT_OK)
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_csv_report report;
	struct gt_message message = { "" };
	struct gt_csv_writer writer;
	struct sums first = { &writer, 0, 0 };
	struct sums second = { NULL, 0, 0 };
	int in = memfd_create("in", 0);
	int out = memfd_create("out", 0);
	int result;

	if (in < 0 || out < 0 || write(in, data, size) != (ssize_t)size ||
	    lseek(in, 0, SEEK_SET) != 0 || gt_csv_writer_init(&writer, out) != GT_OK)
		abort();
	result = gt_csv_read(in, take, &first, &report, &message);
	if (result != GT_OK && message.text[0] == '\0')
		abort();
	if (gt_csv_writer_flush(&writer, &message) != GT_OK || lseek(out, 0, SEEK_SET) != 0 ||
	    gt_csv_read(out, take, &second, &report, &message) != GT_OK || report.bad.count != 0 ||
	    first.rows != second.rows || first.hash != second.hash)
		abort();
	gt_csv_writer_fini(&writer);
	close(in);
	close(out);
	return 0;
}
