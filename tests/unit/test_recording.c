/* SPDX-License-Identifier: MIT */
/*
 * Recording files: what is written comes back, whatever is cut off or changed is said, and nothing
 * that differs from what was written is ever given out as right.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zstd.h>
#include "read/columns.h"
#include "read/crc32c.h"
#include "read/block_output.h"
#include "read/recording.h"
#include "read/recording_file.h"
#include "read/recording_parts.h"
#include "read/writer.h"
#include "tests/unit/recording_sample.h"
#include "tests/unit/recording_directory.h"

/* A disk with an error: from this byte on nothing of a file can be read. */
static off_t unreadable_from = INT64_MAX;

ssize_t pread(int fd, void *bytes, size_t count, off_t offset)
{
	if (offset < unreadable_from)
		return syscall(SYS_pread64, fd, bytes, count, offset);
	errno = EIO;
	return -1;
}

static const char *const arguments[] = { "./prog", "it's", "a test", NULL };
static const char *const option_list[] = { "tracer=function_graph", "buffer-size=64M", NULL };
static const struct gt_clock sample_clock = { SAMPLE_CLOCK, 5000000000ull, 1677721600, 32 };

static struct gt_file_writer *create_writer(const struct sample *sample, bool compress)
{
	struct gt_file_writer *writer;
	struct gt_message message = { "" };
	const struct gt_file_writer_options options = {
		.size = sizeof(options),
		.path = path,
		.compress = compress,
		.clock = sample_clock,
		.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
		.cpu_count = 4,
		.sub_buffer_bytes = (uint32_t)sample_bytes(sample),
		.argv = arguments,
		.program = "/bin/prog",
		.options = option_list,
	};

	if (gt_file_writer_create(&options, &writer, &message) < 0)
		fail_msg("%s", message.text);
	return writer;
}

static const struct gt_file_writer_totals sample_totals = {
	.words = 77,
	.calls = 33,
	.ns = 123456789,
	.threads = 3,
	.processes = 1,
	.exit_status = 0x100,
	.lost = { 5, 0, 0, 0, 1 },
};

static void write_sample(const struct sample *sample, bool compress)
{
	struct gt_message message = { "" };
	struct gt_file_writer *writer = create_writer(sample, compress);

	assert_int_equal(sample_write(sample, gt_file_writer_sink(writer)), 0);
	assert_int_equal(gt_file_writer_finish(writer, &sample_totals, &message), 0);
	assert_string_equal(message.text, "");
	gt_file_writer_destroy(writer);
}

/* What was read of a sample. */
struct found {
	uint32_t sub_buffers; /* whole and right */
	uint32_t missing;     /* of what the sample has */
	uint32_t names_missing;
	uint32_t others_missing; /* writers, strings, totals, objects */
};

/* Compares all that the recording gives with the sample: what it gives must be right. */
static struct found compare(struct gt_recording *recording, const struct sample *sample)
{
	struct found found = { 0 };
	struct gt_target *target = gt_recording_target(recording);
	const struct gt_recording_info *info = gt_recording_info(recording);
	size_t room = target->sub_buffer_bytes > sample_bytes(sample) ? target->sub_buffer_bytes
								      : sample_bytes(sample);
	struct graftrace_sub_buffer *wanted = malloc(room), *buffer = malloc(room);
	uint32_t count = target->ring->writer_count(target);

	assert_true(count <= sample->writers);
	uint8_t *seen = calloc(sample->writers, 1);
	for (uint32_t at = 0; at < count; at++) {
		struct gt_writer writer, expected;
		assert_int_equal(target->ring->writer(target, at, &writer), 0);
		assert_in_range(writer.generation, 1, sample->writers);
		uint32_t index = writer.generation - 1;
		assert_false(seen[index]);
		seen[index] = 1;
		sample_writer(sample, index, true, &expected);
		assert_true(writer.next <= sample->sub_buffers);
		if (writer.pid) {
			assert_int_equal(writer.pid, expected.pid);
			assert_int_equal(writer.tid, expected.tid);
		}
		if (strcmp(writer.comm, expected.comm) != 0 || writer.end != expected.end ||
		    writer.start != expected.start)
			found.others_missing++;
		for (uint32_t k = 0; k < sample->sub_buffers; k++) {
			const struct graftrace_sub_buffer *bytes = NULL;
			int64_t got = target->ring->sub_buffer(target, at, k, buffer, &bytes);
			if (got < 0) {
				found.missing++;
				continue;
			}
			uint32_t words = sample_sub_buffer(sample, index, k, wanted);
			assert_int_equal(got, words);
			wanted->bytes = bytes->bytes;
			assert_memory_equal(bytes, wanted,
					    sizeof(*wanted) + words * sizeof(uint64_t));
			found.sub_buffers++;
		}
		const struct graftrace_sub_buffer *bytes;
		assert_true(target->ring->sub_buffer(target, at, sample->sub_buffers, buffer,
						     &bytes) < 0);
	}
	for (uint32_t index = 0; index < sample->writers; index++)
		if (!seen[index])
			found.missing += sample->sub_buffers;
	for (uint32_t number = 1; number <= sample->functions; number++) {
		struct gt_function function, expected;
		char name[64];
		if (gt_target_function(target, number, &function) < 0) {
			found.names_missing++;
			continue;
		}
		sample_function(number, name, sizeof(name), &expected);
		assert_string_equal(function.name, expected.name);
		assert_int_equal(function.address, expected.address);
		assert_int_equal(function.size, expected.size);
		assert_int_equal(
			gt_target_function_at(target, 1000, expected.address + 39, &function), 0);
		assert_string_equal(function.name, expected.name);
	}
	struct gt_function function;
	assert_int_equal(gt_target_function(target, 0, &function), GT_ENOENT);
	assert_int_equal(gt_target_function(target, sample->functions + 1, &function), GT_ENOENT);
	assert_memory_equal(&target->clock, &sample_clock, sizeof(sample_clock));
	if (info->argc != 3 || strcmp(info->command_line, "./prog 'it'\\''s' 'a test'") != 0)
		found.others_missing++;
	if (!info->options[0] || strcmp(info->options[0], option_list[0]) != 0)
		found.others_missing++;
	struct gt_recording_object object;
	if (gt_recording_object(recording, 0, &object) < 0)
		found.others_missing++;
	else
		assert_string_equal(object.path, "/bin/prog");
	if (!info->ended) {
		found.others_missing++;
	} else {
		assert_int_equal(info->exit_status, 0x100);
		assert_int_equal(info->calls, 33);
		assert_int_equal(info->lost[GRAFTRACE_LOST_STREAM], 1);
	}
	free(seen);
	free(wanted);
	free(buffer);
	return found;
}

static struct gt_recording *open_recording(void)
{
	struct gt_message message = { "" };
	struct gt_recording *recording;

	if (gt_recording_open(path, &recording, &message) < 0)
		fail_msg("%s", message.text);
	return recording;
}

static void check_whole(const struct sample *sample)
{
	struct gt_recording *recording = open_recording();
	struct found found = compare(recording, sample);

	assert_null(gt_recording_problem(recording, 0));
	assert_false(gt_recording_damaged(recording));
	assert_int_equal(found.sub_buffers, sample->writers * sample->sub_buffers);
	assert_int_equal(found.missing + found.names_missing + found.others_missing, 0);
	assert_int_equal(gt_recording_verify(recording), 0);
	assert_null(gt_recording_problem(recording, 0));
	gt_recording_close(recording);
}

static void what_is_written_comes_back(void **state)
{
	const struct sample samples[] = {
		{ 1, 3, 9, 500, 20, false },   { 2, 1, 40, 8000, 300, true },
		{ 3, 7, 5, 2000, 5000, true }, { 4, 2, 3, 40000, 20000, true },
		{ 5, 1, 1, 6, 1, false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		write_sample(&samples[i], false);
		check_whole(&samples[i]);
		write_sample(&samples[i], true);
		check_whole(&samples[i]);
	}
}

/* A reader that goes on does not come back: what it was given needs no memory. */
static void what_was_given_is_not_kept(void **state)
{
	const struct sample sample = { 6, 2, 200, 8000, 300, true };
	struct gt_recording *recording;
	struct graftrace_sub_buffer *buffer = malloc(sample_bytes(&sample));
	size_t most = 0;

	(void)state;
	write_sample(&sample, true);
	recording = open_recording();
	for (int again = 0; again < 2; again++) {
		for (uint32_t sequence = 0; sequence < sample.sub_buffers; sequence++) {
			for (uint32_t index = 0; index < sample.writers; index++) {
				assert_true(gt_recording_sub_buffer(recording, index, sequence,
								    buffer) > 0);
				if (recording->cached_bytes > most)
					most = recording->cached_bytes;
			}
		}
	}
	assert_true(most < 6u << 20);
	gt_recording_close(recording);
	free(buffer);
	check_whole(&sample);
}

static void context_switches_come_back(void **state)
{
	struct sample sample = { .seed = 9, .writers = 2, .words = 100, .sub_buffers = 3 };
	const uint32_t count = 20000; /* more than a block has */
	struct gt_recording *recording = NULL;
	struct gt_message message = { "" };
	struct gt_off_cpu time;
	struct gt_switch one;
	uint64_t cursor = 0;

	(void)state;
	for (int compress = 0; compress < 2; compress++) {
		struct gt_file_writer *writer = create_writer(&sample, compress);
		const struct gt_sink *sink = gt_file_writer_sink(writer);

		assert_int_equal(sink->switches(sink->data, SAMPLE_CLOCK, 0, NULL, 0), 0);
		for (uint32_t i = 0; i < count; i++) {
			one = (struct gt_switch){ SAMPLE_CLOCK + 10 + i * 5, 500 + i / 2 % 3,
						  (uint16_t)(i % 7), i % 2 ? 0 : GT_SWITCH_OUT };
			assert_int_equal(sink->switches(sink->data, SAMPLE_CLOCK, 3, &one, 1), 0);
		}
		assert_int_equal(gt_file_writer_finish(writer, &sample_totals, &message), 0);
		gt_file_writer_destroy(writer);
		assert_int_equal(gt_recording_open(path, &recording, &message), 0);
		assert_null(gt_recording_problem(recording, 0));
		struct gt_target *target = gt_recording_target(recording);
		assert_true(gt_recording_info(recording)->has_switches);
		assert_int_equal(gt_recording_info(recording)->switches, count);
		assert_int_equal(gt_recording_info(recording)->switches_lost, 3);
		cursor = 0;
		for (uint32_t i = 0; i < count; i++) {
			assert_int_equal(gt_target_read_switches(target, &cursor, &one, 1), 1);
			assert_int_equal(one.clock, SAMPLE_CLOCK + 10 + i * 5);
			assert_int_equal(one.tid, 500 + i / 2 % 3);
			assert_int_equal(one.cpu, i % 7);
			assert_int_equal(one.flags, i % 2 ? 0 : GT_SWITCH_OUT);
		}
		assert_int_equal(gt_target_read_switches(target, &cursor, &one, 1), 0);
		assert_int_equal(gt_target_find_off_cpu(target, 501, 0, &time), 0);
		assert_int_equal(time.to - time.from, 5);
		assert_int_equal(gt_target_find_off_cpu(target, 99, 0, &time), GT_ENOENT);
		gt_recording_close(recording);
	}
	/* none were watched */
	struct gt_file_writer *writer = create_writer(&sample, true);
	assert_int_equal(gt_file_writer_finish(writer, &sample_totals, &message), 0);
	gt_file_writer_destroy(writer);
	assert_int_equal(gt_recording_open(path, &recording, &message), 0);
	struct gt_target *target = gt_recording_target(recording);
	assert_int_equal(gt_target_find_off_cpu(target, 501, 0, &time), GT_ENOTSUP);
	assert_int_equal(gt_target_read_switches(target, &cursor, &one, 1), 0);
	gt_recording_close(recording);
}

static void thousands_of_writers_come_back(void **state)
{
	const struct sample sample = { 6, 3000, 4, 120, 50, false };
	(void)state;
	write_sample(&sample, false);
	check_whole(&sample);
	write_sample(&sample, true);
	check_whole(&sample);
}

static void pressure_changes_nothing_but_the_size(void **state)
{
	const struct sample sample = { 7, 1, 60, 8000, 30, true };
	struct gt_message message = { "" };
	uint64_t last = 0;
	(void)state;
	for (unsigned pressure = 0; pressure <= 100; pressure += 50) {
		struct gt_file_writer *writer = create_writer(&sample, true);
		gt_file_writer_set_pressure(writer, pressure);
		assert_int_equal(sample_write(&sample, gt_file_writer_sink(writer)), 0);
		assert_int_equal(gt_file_writer_finish(writer, &sample_totals, &message), 0);
		assert_true(gt_file_writer_bytes(writer) > last);
		last = gt_file_writer_bytes(writer);
		gt_file_writer_destroy(writer);
		check_whole(&sample);
	}
}

static void an_existing_recording_becomes_old(void **state)
{
	const struct sample first = { 8, 1, 1, 50, 5, false }, second = { 9, 2, 1, 50, 5, false };
	char old[160];
	(void)state;
	unlink(path);
	write_sample(&first, false);
	write_sample(&second, false);
	check_whole(&second);
	snprintf(old, sizeof(old), "%s.old", path);
	assert_int_equal(rename(old, path), 0);
	check_whole(&first);
}

static void a_recording_is_for_its_owner_alone(void **state)
{
	const struct sample sample = { 8, 1, 1, 50, 5, false };
	struct stat status;
	mode_t mask = umask(0);
	(void)state;
	unlink(path);
	write_sample(&sample, false);
	umask(mask);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
}

static void links_in_the_way_are_moved_aside(void **state)
{
	const struct sample sample = { 8, 1, 1, 50, 5, false };
	char old[160], elsewhere[160], to[160] = "";
	struct stat status;
	(void)state;
	snprintf(old, sizeof(old), "%s.old", path);
	snprintf(elsewhere, sizeof(elsewhere), "%s.elsewhere", path);
	/* To nothing, to a file; PATH.old is a link too. */
	for (int there = 0; there < 2; there++) {
		unlink(path);
		unlink(old);
		assert_int_equal(symlink(elsewhere, path), 0);
		assert_int_equal(symlink(elsewhere, old), 0);
		if (there)
			close(open(elsewhere, O_WRONLY | O_CREAT, 0600));
		write_sample(&sample, false);
		check_whole(&sample);
		assert_int_equal(lstat(path, &status), 0);
		assert_true(S_ISREG(status.st_mode));
		assert_int_equal(readlink(old, to, sizeof(to)), strlen(elsewhere));
		assert_int_equal(stat(elsewhere, &status), there ? 0 : -1);
		assert_int_equal(there ? status.st_size : 0, 0);
	}
	unlink(elsewhere);
}

static void a_pipe_that_a_link_of_ours_leads_to_is_written_to(void **state)
{
	char pipe_path[160], byte;
	int reader, writer;
	(void)state;
	snprintf(pipe_path, sizeof(pipe_path), "%s.pipe", path);
	unlink(path);
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	assert_int_equal(symlink(pipe_path, path), 0);
	reader = open(pipe_path, O_RDONLY | O_NONBLOCK);
	writer = gt_recording_file_create(path);
	assert_true(reader >= 0 && writer >= 0);
	assert_int_equal(write(writer, "x", 1), 1);
	assert_int_equal(read(reader, &byte, 1), 1);
	close(writer);
	close(reader);
	unlink(pipe_path);
	unlink(path);
}

/* A whole file in memory, and back with changes. */

static uint8_t *load(size_t *bytes)
{
	struct stat status;
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	*bytes = (size_t)status.st_size;
	uint8_t *content = malloc(*bytes + 1);
	assert_int_equal(read(fd, content, *bytes), *bytes);
	close(fd);
	return content;
}

static void store(const uint8_t *content, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, bytes), bytes);
	close(fd);
}

/* Sub-buffers in the blocks that are whole in the first `bytes`; *boundary: the end of the last. */
static uint32_t whole_sub_buffers(const uint8_t *content, size_t bytes, size_t *boundary)
{
	size_t at = GRAFTRACE_FILE_MAGIC_BYTES;
	uint32_t count = 0;

	while (at + sizeof(struct graftrace_block) <= bytes) {
		struct graftrace_block block;
		struct graftrace_file_sub_buffers head;
		memcpy(&block, content + at, sizeof(block));
		size_t end = at + sizeof(block) + (block.payload_bytes + 7) / 8 * 8;
		if (end > bytes)
			break;
		if (block.type == GRAFTRACE_BLOCK_SUB_BUFFERS) {
			memcpy(&head, content + at + sizeof(block), sizeof(head));
			count += head.sub_buffer_count;
		}
		at = end;
	}
	*boundary = at;
	return count;
}

/* Opens what stands at the path, a changed file: everything that is given is right, and if anything
 * is missing it is said. Returns false if it was refused, in words. */
static bool check_changed(const struct sample *sample, const char *what, size_t at,
			  uint32_t at_least)
{
	struct gt_message message = { "" };
	struct gt_recording *recording;
	int error = gt_recording_open(path, &recording, &message);

	if (error) {
		assert_int_equal(error, GT_EFORMAT);
		assert_true(strlen(message.text) > strlen(path));
		return false;
	}
	struct found found = compare(recording, sample);
	const char *problem = gt_recording_problem(recording, 0);
	if (!problem)
		fail_msg("%s at byte %zu: %u sub-buffers, %u names, %u others missing, not a word",
			 what, at, found.missing, found.names_missing, found.others_missing);
	if (found.missing && !strstr(problem, "not ended"))
		assert_true(gt_recording_damaged(recording));
	if (found.sub_buffers < at_least)
		fail_msg("%s at byte %zu: %u sub-buffers, not %u", what, at, found.sub_buffers,
			 at_least);
	gt_recording_close(recording);
	return true;
}

static void cut_anywhere_it_opens_up_to_its_last_whole_block(void **state)
{
	const struct sample sample = { 10, 2, 3, 60, 20, false };
	(void)state;
	for (int compress = 0; compress < 2; compress++) {
		size_t bytes, boundary;
		write_sample(&sample, compress);
		uint8_t *content = load(&bytes);
		size_t start = 0;
		for (size_t cut = bytes; cut-- > 0;) {
			assert_int_equal(truncate(path, (off_t)cut), 0);
			uint32_t whole = whole_sub_buffers(content, cut, &boundary);
			bool opened = check_changed(&sample, "cut", cut, whole);
			assert_int_equal(opened, boundary > GRAFTRACE_FILE_MAGIC_BYTES);
			start += opened;
		}
		assert_true(start > 1000);
		free(content);
	}
}

static void cut_between_blocks_only_the_end_is_missing(void **state)
{
	const struct sample sample = { 11, 3, 40, 4000, 100, true };
	size_t bytes, boundary;
	(void)state;
	write_sample(&sample, true);
	uint8_t *content = load(&bytes);
	for (size_t cut = bytes - 1; cut > 2000; cut = boundary - 1) {
		uint32_t whole = whole_sub_buffers(content, cut, &boundary);
		assert_int_equal(truncate(path, (off_t)boundary), 0);
		assert_true(check_changed(&sample, "cut", boundary, whole));
		struct gt_recording *recording = open_recording();
		assert_non_null(strstr(gt_recording_problem(recording, 0), "not ended"));
		assert_null(gt_recording_problem(recording, 1));
		assert_false(gt_recording_damaged(recording));
		gt_recording_close(recording);
	}
	free(content);
}

static void every_changed_byte_is_noticed(void **state)
{
	const struct sample sample = { 12, 2, 3, 60, 20, false };
	static const uint8_t changes[] = { 0x01, 0x80, 0xff };
	(void)state;
	for (int compress = 0; compress < 2; compress++) {
		size_t bytes, opened = 0;
		write_sample(&sample, compress);
		uint8_t *content = load(&bytes);
		int fd = open(path, O_WRONLY);
		for (size_t at = 0; at < bytes; at++)
			for (size_t k = 0; k < sizeof(changes); k++) {
				uint8_t changed = content[at] ^ changes[k];
				assert_int_equal(pwrite(fd, &changed, 1, (off_t)at), 1);
				opened += check_changed(&sample, "changed", at, 0);
				assert_int_equal(pwrite(fd, &content[at], 1, (off_t)at), 1);
			}
		close(fd);
		/* START's loss is made good by END, so all of them open. */
		assert_int_equal(opened, bytes * sizeof(changes));
		free(content);
	}
}

static void a_damaged_block_costs_only_itself(void **state)
{
	const struct sample sample = { 13, 1, 300, 2000, 100, false };
	size_t bytes;
	(void)state;
	write_sample(&sample, true);
	uint8_t *content = load(&bytes);
	struct graftrace_block block;
	size_t at = GRAFTRACE_FILE_MAGIC_BYTES, trace = 0;
	for (; at < bytes; at += sizeof(block) + (block.payload_bytes + 7) / 8 * 8) {
		memcpy(&block, content + at, sizeof(block));
		if (block.type != GRAFTRACE_BLOCK_SUB_BUFFERS || ++trace != 2)
			continue;
		/* once its header, once its head, once its body */
		const size_t places[] = { at + 20, at + 64 + 50, at + 64 + block.head_bytes + 300 };
		struct graftrace_file_sub_buffers head;
		memcpy(&head, content + at + 64, sizeof(head));
		for (int i = 0; i < 3; i++) {
			content[places[i]] ^= 4;
			store(content, bytes);
			content[places[i]] ^= 4;
			struct gt_recording *recording = open_recording();
			struct found found = compare(recording, &sample);
			assert_int_equal(found.missing, head.sub_buffer_count);
			assert_int_equal(found.names_missing + found.others_missing, 0);
			assert_true(gt_recording_damaged(recording));
			char offset[32];
			snprintf(offset, sizeof(offset), "bytes %zu to",
				 i < 2 ? at : at + 64 + block.head_bytes);
			assert_non_null(strstr(gt_recording_problem(recording, 0), offset));
			gt_recording_close(recording);
		}
	}
	assert_true(trace > 2);
	free(content);
}

static void a_full_disk_leaves_whole_blocks(void **state)
{
	const struct sample sample = { 14, 2, 200, 4000, 100, true };
	struct gt_message message = { "" };
	struct rlimit limit, before;
	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 3000001;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	struct gt_file_writer *writer = create_writer(&sample, false);
	int error = sample_write(&sample, gt_file_writer_sink(writer));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(error, GT_ENOSPC);
	assert_non_null(strstr(gt_file_writer_error(writer), "File too large"));
	assert_int_equal(gt_file_writer_flush(writer), GT_ENOSPC);
	assert_int_equal(gt_file_writer_finish(writer, &sample_totals, &message), GT_ENOSPC);
	assert_non_null(strstr(message.text, "stay readable"));
	uint64_t written = gt_file_writer_bytes(writer);
	gt_file_writer_destroy(writer);

	size_t bytes, boundary;
	uint8_t *content = load(&bytes);
	assert_int_equal(bytes, written);
	uint32_t whole = whole_sub_buffers(content, bytes, &boundary);
	assert_int_equal(boundary, bytes);
	assert_true(whole > 10);
	struct gt_recording *recording = open_recording();
	assert_int_equal(compare(recording, &sample).sub_buffers, whole);
	assert_false(gt_recording_damaged(recording));
	assert_non_null(strstr(gt_recording_problem(recording, 0), "not ended"));
	gt_recording_close(recording);
	free(content);
}

static void no_room_at_all_is_said(void **state)
{
	struct gt_file_writer_options options = { .size = sizeof(options), .path = "/dev/full" };
	struct gt_file_writer *writer;
	struct gt_message message = { "" };
	(void)state;
	assert_int_equal(gt_file_writer_create(&options, &writer, &message), GT_ENOSPC);
	assert_string_equal(message.text, "cannot write '/dev/full': No space left on device");
	options.path = "/nowhere/at/all";
	assert_int_equal(gt_file_writer_create(&options, &writer, &message), GT_ENOENT);
	options.size--;
	assert_int_equal(gt_file_writer_create(&options, &writer, &message), GT_EINVAL);
}

/* Of a writer whose recorder goes on without it: all functions of its sink accept what comes. */
static void a_sink_that_goes_on_accepts_all_after_an_error(void **state)
{
	struct gt_file_writer_options options = {
		.size = sizeof(options), .path = path, .clock = { .mult = 1 }, .goes_on = true
	};
	const struct gt_event_format event = { .system = "a", .name = "b", .object = "" };
	const struct gt_function function = { .name = "c", .object = "/d" };
	const struct gt_writer thread = { .generation = 1 };
	const struct gt_switch change = { .clock = 1, .tid = 1 };
	struct rlimit limit, before;
	struct gt_message message = { "" };
	struct gt_file_writer *writer;
	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(gt_file_writer_create(&options, &writer, &message), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = gt_file_writer_bytes(writer);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	const struct gt_sink *sink = gt_file_writer_sink(writer);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sink->event(sink->data, &event), 0);
		assert_int_equal(sink->functions(sink->data, 1, 1, &function, 1), 0);
		assert_int_equal(sink->object(sink->data, 1, "/d", 1, 2, 0, NULL, 0), 0);
		assert_int_equal(sink->writer(sink->data, &thread), 0);
		assert_int_equal(sink->switches(sink->data, 1, 0, &change, 1), 0);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(gt_file_writer_flush(writer), GT_ENOSPC);
	gt_file_writer_destroy(writer);
}

static void no_recordings_are_refused_in_words(void **state)
{
	static const char *const contents[] = { "", "x", "graftrace.dat", "graftrace.data\n",
						"# tracer: function_graph\n#\n# CPU  DURATION\n" };
	struct gt_message message = { "" };
	struct gt_recording *recording;
	(void)state;
	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		store((const uint8_t *)contents[i], strlen(contents[i]));
		assert_int_equal(gt_recording_open(path, &recording, &message), GT_EFORMAT);
		assert_null(recording);
		assert_non_null(strstr(message.text, path));
	}
	assert_int_equal(gt_recording_open("/nowhere", &recording, &message), GT_ENOENT);
	assert_int_equal(gt_recording_open("/", &recording, &message), GT_EFORMAT);
	assert_int_equal(gt_recording_open("/dev/zero", &recording, &message), GT_EFORMAT);
}

static void a_disk_that_cannot_be_read_is_said(void **state)
{
	const struct sample sample = { 15, 2, 50, 1000, 100, true };
	struct gt_message message = { "" };
	struct gt_recording *recording;
	(void)state;
	write_sample(&sample, false);
	unreadable_from = 4096;
	assert_int_equal(gt_recording_open(path, &recording, &message), GT_EIO);
	unreadable_from = INT64_MAX;
	assert_null(recording);
	assert_non_null(strstr(message.text, "cannot be opened: byte 4"));
	assert_non_null(strstr(message.text, "cannot be read: Input/output error"));
}

/* A file made block by block. */

struct crafted {
	struct gt_block_output output;
	uint8_t block[sizeof(struct graftrace_block) + 65536 + 8];
};

static void craft_start(struct crafted *crafted, uint32_t major)
{
	struct graftrace_file_start start = {
		.major = major,
		.clock = { sample_clock.tsc_base, sample_clock.ns_base, sample_clock.mult,
			   sample_clock.shift, 0 },
	};
	assert_int_equal(gt_block_output_create(&crafted->output, path), 0);
	memcpy(crafted->block + sizeof(struct graftrace_block), &start, sizeof(start));
	assert_int_equal(gt_block_output_put(&crafted->output, crafted->block,
					     GRAFTRACE_BLOCK_START, 0, sizeof(start), sizeof(start),
					     0),
			 0);
}

static void newer_formats_are_refused_and_newer_blocks_passed_over(void **state)
{
	struct crafted crafted;
	struct gt_message message = { "" };
	struct gt_recording *recording;
	(void)state;
	craft_start(&crafted, GRAFTRACE_FILE_MAJOR + 1);
	gt_block_output_close(&crafted.output);
	assert_int_equal(gt_recording_open(path, &recording, &message), GT_EFORMAT);
	assert_non_null(strstr(message.text, "newer format"));

	craft_start(&crafted, GRAFTRACE_FILE_MAJOR);
	memset(crafted.block, 0, sizeof(crafted.block));
	gt_block_output_put(&crafted.output, crafted.block, 77, GRAFTRACE_BLOCK_OPTIONAL, 13, 13,
			    0);
	gt_block_output_put(&crafted.output, crafted.block, 78, 0, 13, 13, 0);
	gt_block_output_put(&crafted.output, crafted.block, GRAFTRACE_BLOCK_END, 0, 200, 200, 0);
	gt_block_output_close(&crafted.output);
	recording = open_recording();
	assert_non_null(strstr(gt_recording_problem(recording, 0), "type 78"));
	assert_null(gt_recording_problem(recording, 1));
	assert_true(gt_recording_info(recording)->ended);
	gt_recording_close(recording);
}

static void small_files_cannot_make_much_work(void **state)
{
	struct crafted crafted;
	size_t huge = GRAFTRACE_BLOCK_MAX;
	uint8_t *zeros = calloc(1, huge), *packed = malloc(65536);
	(void)state;
	size_t bytes = ZSTD_compress(packed, 65536, zeros, huge, 3);
	assert_false(ZSTD_isError(bytes));
	craft_start(&crafted, GRAFTRACE_FILE_MAJOR);
	uint8_t *payload = crafted.block + sizeof(struct graftrace_block);
	memcpy(payload, packed, bytes);
	gt_block_output_put(&crafted.output, crafted.block, GRAFTRACE_BLOCK_FUNCTIONS,
			    GRAFTRACE_BLOCK_ZSTD, bytes, huge, 0);
	/* counts that promise more than there is */
	memset(payload, 0xff, 4096);
	for (unsigned type = GRAFTRACE_BLOCK_START; type < GRAFTRACE_BLOCK_END; type++)
		for (size_t head = 0; head < 256; head += 8)
			gt_block_output_put(&crafted.output, crafted.block, type, 0, 512, 512,
					    head);
	gt_block_output_close(&crafted.output);
	struct gt_recording *recording = open_recording();
	assert_true(gt_recording_damaged(recording));
	assert_non_null(strstr(gt_recording_problem(recording, 0), "zstd frame is damaged"));
	assert_non_null(gt_recording_problem(recording, GT_RECORDING_PROBLEMS - 1));
	assert_null(gt_recording_problem(recording, GT_RECORDING_PROBLEMS));
	gt_recording_close(recording);
	free(zeros);
	free(packed);
}

/* A hole of a file as trace: blocks of 48 MB that take no room, and a real one behind them. */
static void recordings_longer_than_4_gigabytes_open(void **state)
{
	struct {
		struct graftrace_file_sub_buffers counts;
		struct graftrace_file_group group;
		struct graftrace_file_sub_buffer entries[3];
	} head = { .counts = { 1, 3, 0 } };
	const struct graftrace_sub_buffer header = {
		.magic = GRAFTRACE_SUB_BUFFER_MAGIC, .generation = 1, .used = 1, .sequence = 1000000
	};
	struct crafted crafted;
	uint8_t *payload = crafted.block + sizeof(struct graftrace_block);
	uint64_t word = graftrace_word(7, 0, 9);
	(void)state;
	craft_start(&crafted, GRAFTRACE_FILE_MAJOR);
	for (int i = 0; i < 3; i++)
		head.entries[i].words = GRAFTRACE_WORDS_MAX;
	head.group = (struct graftrace_file_group){ .generation = 1,
						    .sub_buffer_count = 3,
						    .stored_bytes =
							    3 * (GRAFTRACE_WORDS_MAX * 8 + 128) };
	while (crafted.output.offset < 5ull << 30) {
		/* The header and the head; the body is skipped, and is zeros. */
		struct graftrace_block block = {
			.magic = GRAFTRACE_BLOCK_MAGIC,
			.offset = crafted.output.offset,
			.number = crafted.output.number++,
			.type = GRAFTRACE_BLOCK_SUB_BUFFERS,
			.version = 1,
			.payload_bytes = sizeof(head) + head.group.stored_bytes,
			.raw_bytes = sizeof(head) + head.group.stored_bytes,
			.head_bytes = sizeof(head),
			.head_crc = gt_crc32c(0, &head, sizeof(head)),
		};
		block.header_crc =
			gt_crc32c(0, &block, offsetof(struct graftrace_block, header_crc));
		assert_int_equal(write(crafted.output.fd, &block, sizeof(block)), sizeof(block));
		assert_int_equal(write(crafted.output.fd, &head, sizeof(head)), sizeof(head));
		crafted.output.offset += sizeof(block) + block.payload_bytes;
		assert_int_equal(lseek(crafted.output.fd, (off_t)crafted.output.offset, SEEK_SET),
				 crafted.output.offset);
		head.group.first_sequence += 3;
	}
	head.counts.sub_buffer_count = 1;
	head.entries[0].words = 1;
	memcpy(payload + 64, &header, GRAFTRACE_HEADER_BYTES);
	memcpy(payload + 64 + GRAFTRACE_HEADER_BYTES, &word, sizeof(word));
	head.group = (struct graftrace_file_group){
		.generation = 1,
		.sub_buffer_count = 1,
		.first_sequence = header.sequence,
		.stored_bytes = GRAFTRACE_HEADER_BYTES + 8,
		.crc = gt_crc32c(0, payload + 64, GRAFTRACE_HEADER_BYTES + 8),
	};
	memcpy(payload, &head, 64);
	gt_block_output_put(&crafted.output, crafted.block, GRAFTRACE_BLOCK_SUB_BUFFERS, 0,
			    64 + GRAFTRACE_HEADER_BYTES + 8, 64 + GRAFTRACE_HEADER_BYTES + 8, 64);
	assert_int_equal(gt_block_output_close(&crafted.output), 0);

	struct gt_recording *recording = open_recording();
	struct gt_target *target = gt_recording_target(recording);
	struct graftrace_sub_buffer *buffer = malloc(target->sub_buffer_bytes);
	const struct graftrace_sub_buffer *bytes;
	assert_true(gt_recording_info(recording)->file_bytes > 5ull << 30);
	assert_int_equal(target->ring->sub_buffer(target, 0, header.sequence, buffer, &bytes), 1);
	assert_int_equal(graftrace_sub_buffer_words(buffer)[0], word);
	/* What a writer has, but nobody can read, and what it does not have: on both sides. */
	struct gt_writer writer;
	assert_int_equal(target->ring->writer(target, 0, &writer), 0);
	assert_int_equal(writer.next, header.sequence + 1);
	assert_int_equal(target->ring->sub_buffer(target, 0, 2, buffer, &bytes), GT_EFORMAT);
	assert_int_equal(target->ring->sub_buffer(target, 0, writer.first, buffer, &bytes),
			 GT_EFORMAT);
	assert_int_equal(target->ring->sub_buffer(target, 0, writer.next - 2, buffer, &bytes),
			 GT_EFORMAT);
	assert_int_equal(target->ring->sub_buffer(target, 0, writer.first - 1, buffer, &bytes),
			 GT_ENOENT);
	assert_int_equal(target->ring->sub_buffer(target, 0, writer.next, buffer, &bytes),
			 GT_ENOENT);
	assert_int_equal(target->ring->sub_buffer(target, 1, writer.first, buffer, &bytes),
			 GT_ENOENT);
	free(buffer);
	gt_recording_close(recording);
	unlink(path);
}

static void codes_without_a_symbol_are_refused(void **state)
{
	/* META with an empty dictionary and one header, eight codes, eight clocks */
	uint8_t group[40 + 144 + 16] = { 0 };
	const uint32_t lengths[10] = { 144, 144, 8, 8, 8, 8, 0, 0, 0, 0 };
	const struct graftrace_file_sub_buffer entry = { 0, 8, 0, 0 };
	struct gt_columns_decoder *decoder = gt_columns_decoder_create();
	struct gt_columns_group *opened;
	struct gt_message message = { "" };
	struct {
		struct graftrace_sub_buffer header;
		uint64_t words[8];
	} out;
	(void)state;
	memcpy(group, lengths, sizeof(lengths));
	for (unsigned code = 0; code < 256; code++) {
		memset(group + 40 + 144, (int)code, 8);
		assert_int_equal(gt_columns_open(decoder, group, sizeof(group), &entry, 1, &opened,
						 &message),
				 0);
		int wanted = code == GRAFTRACE_CODE_RETURN ? 0 : GT_EFORMAT;
		assert_int_equal(gt_columns_sub_buffer(opened, 0, &out.header, &message), wanted);
		gt_columns_close(opened);
	}
	gt_columns_decoder_destroy(decoder);
}

static void checksums_are_crc32c_on_every_machine(void **state)
{
	uint8_t bytes[20000];
	struct sample_random random = { 1 };
	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)sample_next(&random);
	assert_int_equal(gt_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(gt_crc32c_portable(0, "123456789", 9), 0xe3069283);
	for (size_t count = 0; count < sizeof(bytes) - 8; count += count < 50 ? 1 : 331)
		assert_int_equal(gt_crc32c(9, bytes + count % 8, count),
				 gt_crc32c_portable(9, bytes + count % 8, count));
	assert_int_equal(gt_crc32c(gt_crc32c(0, bytes, 777), bytes + 777, 9000),
			 gt_crc32c(0, bytes, 9777));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_comes_back),
		cmocka_unit_test(what_was_given_is_not_kept),
		cmocka_unit_test(context_switches_come_back),
		cmocka_unit_test(thousands_of_writers_come_back),
		cmocka_unit_test(pressure_changes_nothing_but_the_size),
		cmocka_unit_test(an_existing_recording_becomes_old),
		cmocka_unit_test(a_recording_is_for_its_owner_alone),
		cmocka_unit_test(links_in_the_way_are_moved_aside),
		cmocka_unit_test(a_pipe_that_a_link_of_ours_leads_to_is_written_to),
		cmocka_unit_test(cut_anywhere_it_opens_up_to_its_last_whole_block),
		cmocka_unit_test(cut_between_blocks_only_the_end_is_missing),
		cmocka_unit_test(every_changed_byte_is_noticed),
		cmocka_unit_test(a_damaged_block_costs_only_itself),
		cmocka_unit_test(a_full_disk_leaves_whole_blocks),
		cmocka_unit_test(a_sink_that_goes_on_accepts_all_after_an_error),
		cmocka_unit_test(no_room_at_all_is_said),
		cmocka_unit_test(no_recordings_are_refused_in_words),
		cmocka_unit_test(a_disk_that_cannot_be_read_is_said),
		cmocka_unit_test(newer_formats_are_refused_and_newer_blocks_passed_over),
		cmocka_unit_test(small_files_cannot_make_much_work),
		cmocka_unit_test(recordings_longer_than_4_gigabytes_open),
		cmocka_unit_test(codes_without_a_symbol_are_refused),
		cmocka_unit_test(checksums_are_crc32c_on_every_machine),
	};
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
