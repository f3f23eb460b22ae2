/* SPDX-License-Identifier: MIT */
/*
 * What Linux recorded, in a recording file: it comes back, and a part that makes no sense is told, with
 * its offset, and left out.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "read/block_output.h"
#include "read/recording.h"
#include "read/writer.h"
#include "tests/unit/recording_directory.h"

static const struct gt_clock clock_of_all = { 1, 5000000000ull, 1677721600, 32 };

static struct gt_file_writer *create_writer(bool compress)
{
	static const char *const arguments[] = { "program", NULL };
	const struct gt_file_writer_options options = {
		.size = sizeof(options),
		.path = path,
		.compress = compress,
		.clock = clock_of_all,
		.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
		.sub_buffer_bytes = 65536,
		.argv = arguments,
		.program = "program",
	};
	struct gt_file_writer *writer;
	struct gt_message message = { "" };

	assert_int_equal(gt_file_writer_create(&options, &writer, &message), 0);
	return writer;
}

static void what_the_kernel_recorded_comes_back(void **state)
{
	struct gt_recording *recording = NULL;
	struct gt_recording_kernel part;
	struct gt_recording_kernel_file file;
	struct gt_message message = { "" };
	const struct gt_file_writer_totals totals = { .threads = 1 };
	static uint8_t pages[3 * 4096];

	(void)state;
	for (size_t i = 0; i < sizeof(pages); i++)
		pages[i] = (uint8_t)(i * 7 >> 3);
	for (int compress = 0; compress <= 1; compress++) {
		struct gt_file_writer *writer = create_writer(compress);
		size_t at = 0;
		assert_int_equal(gt_file_writer_kernel_pages(writer, 3, pages, sizeof(pages), 4096),
				 0);
		assert_int_equal(gt_file_writer_kernel_gather(writer, "one", "1", 1), 0);
		assert_int_equal(gt_file_writer_kernel_gather(writer, "none", "", 0), 0);
		assert_int_equal(gt_file_writer_kernel_gathered(writer), 0);
		assert_int_equal(gt_file_writer_kernel_gathered(writer), 0);
		assert_int_equal(gt_file_writer_kernel_file(writer, "trace_clock", "[x86-tsc]", 9),
				 0);
		assert_int_equal(gt_file_writer_finish(writer, &totals, &message), 0);
		gt_file_writer_destroy(writer);
		assert_int_equal(gt_recording_open(path, &recording, &message), 0);
		assert_int_equal(gt_recording_kernel_count(recording), 3);
		assert_int_equal(gt_recording_kernel(recording, 0, &part), 0);
		assert_int_equal(part.kind, GRAFTRACE_KERNEL_PAGES);
		assert_int_equal(part.cpu, 3);
		assert_string_equal(part.name, "");
		assert_int_equal(part.count, sizeof(pages));
		assert_memory_equal(part.bytes, pages, sizeof(pages));
		free(part.memory);
		assert_int_equal(gt_recording_kernel(recording, 1, &part), 0);
		assert_true(gt_recording_kernel_file(&part, &at, &file));
		assert_string_equal(file.name, "one");
		assert_int_equal(file.count, 1);
		assert_memory_equal(file.bytes, "1", 1);
		assert_true(gt_recording_kernel_file(&part, &at, &file));
		assert_string_equal(file.name, "none");
		assert_int_equal(file.count, 0);
		assert_false(gt_recording_kernel_file(&part, &at, &file));
		free(part.memory);
		assert_int_equal(gt_recording_kernel(recording, 2, &part), 0);
		assert_int_equal(part.kind, GRAFTRACE_KERNEL_FILE);
		at = 0;
		assert_true(gt_recording_kernel_file(&part, &at, &file));
		assert_string_equal(file.name, "trace_clock");
		assert_false(gt_recording_kernel_file(&part, &at, &file));
		assert_string_equal(part.name, "trace_clock");
		assert_int_equal(part.count, 9);
		assert_memory_equal(part.bytes, "[x86-tsc]", 9);
		free(part.memory);
		assert_int_equal(gt_recording_kernel(recording, 3, &part), GT_ENOENT);
		gt_recording_close(recording);
	}
}

/* A recording of a START block and a KERNEL block with that payload. *offset: of the latter. */
static struct gt_recording *open_crafted(const struct graftrace_file_kernel *head,
					 const void *bytes, size_t count, uint64_t *offset)
{
	static uint8_t block[4096];
	uint8_t *payload = block + sizeof(struct graftrace_block);
	struct gt_block_output output;
	const struct graftrace_file_start start = {
		.major = GRAFTRACE_FILE_MAJOR,
		.clock = { clock_of_all.tsc_base, clock_of_all.ns_base, clock_of_all.mult,
			   clock_of_all.shift, 0 },
	};
	struct gt_recording *recording;
	struct gt_message message = { "" };

	assert_int_equal(gt_block_output_create(&output, path), 0);
	memcpy(payload, &start, sizeof(start));
	gt_block_output_put(&output, block, GRAFTRACE_BLOCK_START, 0, sizeof(start), sizeof(start),
			    0);
	*offset = output.offset;
	memcpy(payload, head, sizeof(*head));
	memcpy(payload + sizeof(*head), bytes, count);
	count += sizeof(*head);
	gt_block_output_put(&output, block, GRAFTRACE_BLOCK_KERNEL, GRAFTRACE_BLOCK_OPTIONAL, count,
			    count, 0);
	gt_block_output_close(&output);
	assert_int_equal(gt_recording_open(path, &recording, &message), 0);
	return recording;
}

static void assert_told_and_left_out(struct gt_recording *recording, uint64_t offset,
				     const char *why)
{
	const char *problem = gt_recording_problem(recording, 0);
	char where[64];

	snprintf(where, sizeof(where), "bytes %" PRIu64, offset);
	assert_non_null(strstr(problem, where));
	assert_non_null(strstr(problem, why));
	assert_true(gt_recording_damaged(recording));
	assert_int_equal(gt_recording_kernel_count(recording), 0);
	gt_recording_close(recording);
}

static void pages_that_cannot_be_unpacked_are_told_and_left_out(void **state)
{
	const struct graftrace_file_pages pages = { .page_bytes = 4096, .pages = 1 };
	const struct graftrace_file_kernel head = { .kind = GRAFTRACE_KERNEL_PACKED_PAGES,
						    .bytes = sizeof(pages) };
	uint64_t offset;
	struct gt_recording *recording = open_crafted(&head, &pages, sizeof(pages), &offset);

	(void)state;
	assert_told_and_left_out(recording, offset, "its pages cannot be unpacked");
}

/* The length of the name, and that of the bytes, lead out; a name has no end; a name is empty. */
static void files_that_are_cut_off_are_told_and_left_out(void **state)
{
	static const struct {
		struct graftrace_file_kernel_file head;
		char rest[8];
	} wrong[] = {
		{ { 9, 0 }, "name" },	 { { 5, 4 }, "name" },	     { { 8, 0 }, "12345678" },
		{ { 0, 8 }, "1234567" }, { { 2, UINT32_MAX }, "n" },
	};
	const struct graftrace_file_kernel head = { .kind = GRAFTRACE_KERNEL_FILES,
						    .bytes = sizeof(wrong[0]) };
	uint64_t offset;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct gt_recording *recording =
			open_crafted(&head, &wrong[i], sizeof(wrong[i]), &offset);
		assert_told_and_left_out(recording, offset, "its files are cut off");
	}
}

static void after_an_error_no_file_is_gathered(void **state)
{
	const struct gt_function function = { .name = "none", .object = "" };
	struct gt_file_writer *writer = create_writer(false);
	const struct gt_sink *sink = gt_file_writer_sink(writer);

	(void)state;
	assert_int_equal(gt_file_writer_kernel_gather(writer, "one", "1", 1), 0);
	assert_int_equal(sink->functions(sink->data, 1, 0, &function, 1), GT_EINVAL);
	assert_int_equal(gt_file_writer_kernel_gather(writer, "two", "2", 1), GT_EINVAL);
	assert_int_equal(gt_file_writer_kernel_gathered(writer), GT_EINVAL);
	gt_file_writer_destroy(writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_kernel_recorded_comes_back),
		cmocka_unit_test(pages_that_cannot_be_unpacked_are_told_and_left_out),
		cmocka_unit_test(files_that_are_cut_off_are_told_and_left_out),
		cmocka_unit_test(after_an_error_no_file_is_gathered),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
