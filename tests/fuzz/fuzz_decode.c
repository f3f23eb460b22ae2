/* SPDX-License-Identifier: MIT */
/*
 * Any words as a target's sub-buffers: decoded, merged, printed and summed up. The input is a
 * little program, so that mutations make words that mean something: an opcode byte, then its
 * operands.
 *
 * Checked besides memory: text has no control characters, a reader of few bytes at a time gets the
 * same text, and a table counts no more calls than there are words.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/text.h"
#include "export/report.h"
#include "port/host/memory.h"
#include "tests/fuzz/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t memory_now;

static void *resize(void *data, void *memory, size_t old_bytes, size_t new_bytes)
{
	memory_now += new_bytes - old_bytes;
	/* A frame for a word, and a little for each writer. */
	if (memory_now > (8u << 20))
		abort();
	return gt_host_resize(data, memory, old_bytes, new_bytes);
}

static const struct gt_memory memory = { resize, NULL };

static char text_a[4 << 20], text_b[4 << 20];

static size_t print(struct gt_target *target, const struct gt_text_options *options, char *to,
		    size_t piece)
{
	static struct gt_text text;
	size_t length = 0;
	int64_t bytes;
	if (gt_text_init(&text, target, &memory, options) != GT_OK)
		abort();
	if (options->mode != GT_MERGE_SNAPSHOT)
		gt_text_finish(&text);
	while ((bytes = gt_text_read(&text, to + length, piece)) > 0) {
		length += (size_t)bytes;
		if (length + piece > sizeof(text_a))
			abort(); /* 4 MB of text out of at most 8192 words */
	}
	if (bytes != 0)
		abort();
	gt_text_fini(&text);
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)to[i] < ' ' && to[i] != '\n' && to[i] != '\t')
			abort(); /* a marker keeps its lines and tabs */
	return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const globs[] = { "ma*", NULL };
	static struct gt_filter filter;
	struct input input = { data, data + size };
	struct gt_target target = { .ring = &ring,
				    .names = &names,
				    .clock = { .mult = 1 },
				    .sub_buffer_bytes = sizeof(struct sub_buffer),
				    .cpu_count = 4 };
	uint64_t how = take(&input, 2);
	struct gt_text_options options = { .options = GT_OPTIONS_DEFAULT ^
						      (uint32_t)(how >> 4 & 0xfff),
					   .header = how & 1,
					   .filter = how & 2 ? &filter : NULL };
	following = how & 4;
	options.mode = how & 4 ? GT_MERGE_FOLLOW : GT_MERGE_SNAPSHOT;
	target.tracer = how & 8 ? GRAFTRACE_TRACER_FUNCTION : GRAFTRACE_TRACER_FUNCTION_GRAPH;
	memset(&filter, 0, sizeof(filter));
	filter.graph = globs;
	filter.max_depth = 3;
	script(&input);

	size_t a = print(&target, &options, text_a, 100000);
	size_t b = print(&target, &options, text_b, 37);
	if (a != b || memcmp(text_a, text_b, a) != 0)
		abort();

	for (enum gt_report_by by = GT_REPORT_FUNCTION; by <= GT_REPORT_PROCESS; by++) {
		struct gt_report *report;
		char *text;
		size_t bytes;
		/* Every other one picks calls, by their times, their callers and their lengths. */
		const struct gt_report_options wanted = {
			.by = by,
			.of = "*1*",
			.from_ns = by % 2 ? 1000 : 0,
			.to_ns = by % 2 ? 1u << 20 : 0,
			.graph = by % 2 ? globs : NULL,
			.least_ns = by % 2 ? 3 : 0,
		};
		if (gt_report_make(&target, &wanted, &report, NULL) != GT_OK)
			abort();
		if (report->calls > (WORDS + GRAFTRACE_OPEN_CALLS) * WRITERS * SUB_BUFFERS)
			abort();
		gt_report_sort(report, GT_REPORT_SELF);
		const struct gt_report_style style = { .format = by % 3, .width = 80 };
		if (gt_report_format(report, &style, &text, &bytes) != GT_OK)
			abort();
		free(text);
		gt_report_destroy(report);
	}
	forget_script();
	if (memory_now)
		abort();
	return 0;
}
