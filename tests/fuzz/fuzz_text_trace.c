/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as function_graph text: no crash, no hang, and the books balance: each line is counted,
 * rows come only from lines of a trace, and cutting the text into blocks elsewhere changes nothing.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "read/text_trace.h"

struct sums {
	uint64_t rows;
	uint64_t hash;
};

static int take(void *user, const struct gt_text_call *call)
{
	struct sums *sums = user;

	if (call->function_len == 0 || call->self_ns > call->latency_ns)
		abort();
	for (size_t i = 0; i < call->function_len; i++) {
		if ((unsigned char)call->function[i] < 0x20)
			abort();
		sums->hash = (sums->hash ^ (unsigned char)call->function[i]) * 0x100000001b3u;
	}
	sums->hash = (sums->hash ^ (uint64_t)call->tid) * 0x100000001b3u;
	sums->hash = (sums->hash ^ call->self_ns) * 0x100000001b3u;
	sums->rows++;
	return 0;
}

static struct sums run(const char *text, size_t size, size_t piece)
{
	const struct gt_text_trace_report *report;
	struct gt_text_trace *trace;
	struct sums sums = { 0, 0 };

	if (gt_text_trace_create(&trace, take, &sums) != GT_OK ||
	    gt_text_trace_peek(trace, text, size) != GT_OK)
		abort();
	for (size_t at = 0; at < size; at += piece)
		if (gt_text_trace_feed(trace, text + at, size - at < piece ? size - at : piece) !=
		    GT_OK)
			abort();
	if (gt_text_trace_finish(trace) != GT_OK)
		abort();
	report = gt_text_trace_report(trace);
	if (report->calls != sums.rows || report->bytes != size ||
	    report->trace_lines + report->other.count > report->lines ||
	    report->calls + report->open_at_start.count > report->trace_lines)
		abort();
	gt_text_trace_destroy(trace);
	return sums;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct sums whole = run(text, size, size + 1);
	struct sums pieces = run(text, size, 1 + size % 61);

	if (whole.rows != pieces.rows || whole.hash != pieces.hash)
		abort();
	return 0;
}
