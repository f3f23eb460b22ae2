/* SPDX-License-Identifier: MIT */
/*
 * The pass over a recording's blocks when it is opened. Each header is checked; small payloads are
 * read, checked and parsed; of the trace only the heads are read. Damage is reported with its byte
 * offset and skipped: by the block's length if its header is whole, else up to the next whole
 * header.
 */
#include "read/recording_parts.h"
#include "core/trace/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "read/crc32c.h"

#define WINDOW_BYTES 65536u
#define HEADER_BYTES sizeof(struct graftrace_block)

struct scan {
	struct gt_recording *recording;
	uint8_t *window; /* WINDOW_BYTES of the file */
	uint64_t window_offset;
	size_t window_bytes;
	uint8_t *payload;
	size_t payload_size;
	uint64_t number; /* expected number of the next block */
	bool explained;	 /* damage was reported since the last whole block */
	bool ended;
};

static const char *type_name(unsigned type)
{
	static const char *const names[] = {
		[GRAFTRACE_BLOCK_START] = "start",     [GRAFTRACE_BLOCK_OPTIONS] = "options",
		[GRAFTRACE_BLOCK_OBJECT] = "object",   [GRAFTRACE_BLOCK_FUNCTIONS] = "functions",
		[GRAFTRACE_BLOCK_WRITERS] = "threads", [GRAFTRACE_BLOCK_SUB_BUFFERS] = "trace",
		[GRAFTRACE_BLOCK_END] = "end",	       [GRAFTRACE_BLOCK_SWITCHES] = "switches",
		[GRAFTRACE_BLOCK_KERNEL] = "kernel",   [GRAFTRACE_BLOCK_EVENT] = "event",
	};
	return type < sizeof(names) / sizeof(names[0]) && names[type] != NULL ? names[type]
									      : "unknown";
}

static const char *what_is_missing(unsigned type)
{
	switch (type) {
	case GRAFTRACE_BLOCK_OPTIONS:
		return "the recording's options are not known";
	case GRAFTRACE_BLOCK_OBJECT:
		return "an object is not known";
	case GRAFTRACE_BLOCK_FUNCTIONS:
		return "names of functions are missing";
	case GRAFTRACE_BLOCK_WRITERS:
		return "names and ends of threads may be missing";
	case GRAFTRACE_BLOCK_SUB_BUFFERS:
		return "a part of the trace is missing";
	case GRAFTRACE_BLOCK_END:
		return "totals are missing";
	case GRAFTRACE_BLOCK_SWITCHES:
		return "times off the CPU are missing";
	case GRAFTRACE_BLOCK_KERNEL:
		return "a part of what the kernel recorded is missing";
	case GRAFTRACE_BLOCK_EVENT:
		return "names and fields of an event are missing";
	default:
		return "what it holds is missing";
	}
}

/* Returns `count` bytes at `offset`, or NULL: the file ends before (or cannot be read). */
static const uint8_t *look(struct scan *scan, uint64_t offset, size_t count)
{
	if (offset >= scan->window_offset &&
	    offset + count <= scan->window_offset + scan->window_bytes)
		return scan->window + (offset - scan->window_offset);
	/* A header needs at most a page; a search reads whole windows. */
	int64_t got = gt_recording_read(
		scan->recording, offset, scan->window,
		offset == scan->window_offset + scan->window_bytes ? WINDOW_BYTES : 4096);
	scan->window_offset = offset;
	scan->window_bytes = got < 0 ? 0 : (size_t)got;
	return scan->window_bytes >= count ? scan->window : NULL;
}

static uint64_t padded_bytes(const struct graftrace_block *block)
{
	return (block->payload_bytes + 7) / 8 * 8;
}

/* Reads the header at that offset. True if its checksum and its lengths are right. */
static bool header_at(struct scan *scan, uint64_t offset, struct graftrace_block *block)
{
	const uint8_t *bytes = look(scan, offset, HEADER_BYTES);

	if (bytes == NULL)
		return false;
	memcpy(block, bytes, HEADER_BYTES);
	return block->magic == GRAFTRACE_BLOCK_MAGIC &&
	       block->header_crc ==
		       gt_crc32c(0, block, offsetof(struct graftrace_block, header_crc)) &&
	       block->offset == offset && block->payload_bytes <= GRAFTRACE_BLOCK_MAX &&
	       block->head_bytes <= block->payload_bytes && block->raw_bytes <= GRAFTRACE_BLOCK_MAX;
}

/* Returns the offset of the next header after `offset`, or the file's end. */
static uint64_t next_header(struct scan *scan, uint64_t offset)
{
	const uint64_t magic = GRAFTRACE_BLOCK_MAGIC;
	struct graftrace_block block;
	uint64_t at = (offset + 8) / 8 * 8;

	for (; at + HEADER_BYTES <= scan->recording->bytes; at += 8) {
		const uint8_t *bytes = look(scan, at, HEADER_BYTES);
		if (bytes == NULL)
			break;
		if (memcmp(bytes, &magic, sizeof(magic)) == 0 && header_at(scan, at, &block))
			return at;
	}
	return scan->recording->bytes;
}

/* Payloads. Each function takes `bytes` bytes whose checksum was right; sets *why for
 * GT_EFORMAT. */

static char *copy_string(const uint8_t *bytes, size_t count)
{
	char *copy = malloc(count + 1);
	if (copy == NULL)
		return NULL;
	memcpy(copy, bytes, count);
	copy[count] = 0;
	return copy;
}

static int add_to_list(char ***list, uint32_t *count, uint32_t *size, char *string)
{
	if (gt_recording_grow(list, size, (uint64_t)*count + 2, sizeof(char *)) < 0) {
		free(string);
		return GT_ENOMEM;
	}
	(*list)[(*count)++] = string;
	(*list)[*count] = NULL;
	return 0;
}

static int take_strings(struct gt_recording *recording, const uint8_t *bytes, size_t count,
			const char **why)
{
	while (count) {
		struct graftrace_file_string head;
		if (count < sizeof(head)) {
			*why = "its strings are cut off";
			return GT_EFORMAT;
		}
		memcpy(&head, bytes, sizeof(head));
		uint64_t all = sizeof(head) + ((uint64_t)head.bytes + 8) / 8 * 8;
		if (all > count) {
			*why = "a string is cut off";
			return GT_EFORMAT;
		}
		char *string = copy_string(bytes + sizeof(head), head.bytes);
		int error = 0;
		if (string == NULL)
			return GT_ENOMEM;
		if (head.tag == GRAFTRACE_STRING_ARGUMENT) {
			error = add_to_list(&recording->arguments, &recording->argument_count,
					    &recording->argument_size, string);
		} else if (head.tag == GRAFTRACE_STRING_OPTION) {
			error = add_to_list(&recording->options, &recording->option_count,
					    &recording->option_size, string);
		} else if (head.tag == GRAFTRACE_STRING_HISTS) {
			error = add_to_list(&recording->hists, &recording->hist_count,
					    &recording->hist_size, string);
		} else if (head.tag < GRAFTRACE_STRING_OPTION) {
			free(recording->strings[head.tag]);
			recording->strings[head.tag] = string;
		} else {
			free(string);
		}
		if (error)
			return error;
		bytes += all;
		count -= all;
	}
	return 0;
}

/* Takes a clock; false if no processor has such a one. Ticks of more than a millisecond or less
 * than a millionth of a nanosecond would make times overflow. */
static bool take_clock(struct gt_recording *recording, const struct graftrace_file_clock *clock)
{
	if (clock->shift >= 64 || !clock->mult || clock->mult >> clock->shift >= 1000000 ||
	    (clock->shift > 20 && !(clock->mult >> (clock->shift - 20))))
		return false;
	recording->target.clock =
		(struct gt_clock){ clock->tsc_base, clock->ns_base, clock->mult, clock->shift };
	recording->have_clock = true;
	return true;
}

static int take_start(struct gt_recording *recording, const uint8_t *bytes, size_t count,
		      const char **why)
{
	struct graftrace_file_start start;

	if (count < sizeof(start)) {
		*why = "it is too short";
		return GT_EFORMAT;
	}
	if (recording->have_clock) {
		*why = "there is one already";
		return GT_EFORMAT;
	}
	memcpy(&start, bytes, sizeof(start));
	if (start.major > GRAFTRACE_FILE_MAJOR)
		return GT_ENOTSUP;
	if (start.string_bytes > count - sizeof(start)) {
		*why = "its strings are cut off";
		return GT_EFORMAT;
	}
	if (!start.major || !take_clock(recording, &start.clock)) {
		*why = "there cannot be such a clock";
		return GT_EFORMAT;
	}
	recording->info.realtime_ns = start.realtime_ns;
	recording->target.tracer = start.tracer <= GRAFTRACE_TRACER_FUNCTION_GRAPH
					   ? (enum graftrace_tracer)start.tracer
					   : GRAFTRACE_TRACER_FUNCTION_GRAPH;
	recording->target.cpu_count = start.cpu_count;
	return take_strings(recording, bytes + sizeof(start), start.string_bytes, why);
}

static int take_writers(struct gt_recording *recording, const uint8_t *bytes, size_t count,
			const char **why)
{
	struct graftrace_file_writers head;

	if (count < sizeof(head)) {
		*why = "it is too short";
		return GT_EFORMAT;
	}
	memcpy(&head, bytes, sizeof(head));
	if (head.record_bytes < sizeof(struct graftrace_file_writer) ||
	    (uint64_t)head.count * head.record_bytes > count - sizeof(head)) {
		*why = "its records are cut off";
		return GT_EFORMAT;
	}
	for (uint32_t i = 0; i < head.count; i++) {
		struct graftrace_file_writer record;
		memcpy(&record, bytes + sizeof(head) + (size_t)i * head.record_bytes,
		       sizeof(record));
		if (!record.generation) {
			*why = "a thread has no number";
			return GT_EFORMAT;
		}
		struct gt_writer_index *index = gt_recording_writer(recording, record.generation);
		if (index == NULL)
			return GT_ENOMEM;
		struct gt_writer *writer = &index->writer;
		writer->pid = record.pid;
		writer->tid = record.tid;
		memcpy(writer->comm, record.comm, sizeof(writer->comm));
		writer->comm[sizeof(writer->comm) - 1] = 0;
		writer->start = record.start;
		writer->end = record.end;
		memcpy(writer->lost, record.lost, sizeof(writer->lost));
		index->described = true;
	}
	return 0;
}

static int take_end(struct scan *scan, const uint8_t *bytes, size_t count, const char **why)
{
	struct gt_recording *recording = scan->recording;
	struct graftrace_file_end end;

	if (count < sizeof(end)) {
		*why = "it is too short";
		return GT_EFORMAT;
	}
	memcpy(&end, bytes, sizeof(end));
	struct gt_recording_info *info = &recording->info;
	info->ended = true;
	info->exit_status = end.exit_status;
	info->ns = end.ns;
	info->calls = end.calls;
	info->threads = end.threads;
	info->processes = end.processes;
	memcpy(info->lost, end.lost, sizeof(info->lost));
	recording->said_sub_buffers = end.sub_buffers;
	/* The end's clock may have been measured over the whole run: it replaces the start's. */
	take_clock(recording, &end.clock);
	scan->ended = true;
	return 0;
}

/* Handles a block with a whole header: reads the part that is needed now, and takes it. */

/* Reads `count` payload bytes from `skip` on into scan->payload, with `room` bytes after them. */
static int read_payload(struct scan *scan, uint64_t offset, size_t skip, size_t count)
{
	if (count > scan->payload_size || scan->payload == NULL) {
		free(scan->payload);
		scan->payload = malloc(count + 1);
		scan->payload_size = scan->payload != NULL ? count : 0;
		if (scan->payload == NULL)
			return GT_ENOMEM;
	}
	int64_t got = gt_recording_read(scan->recording, offset + HEADER_BYTES + skip,
					scan->payload, count);
	return got < 0 ? (int)got : (uint64_t)got < count ? GT_ECUT : 0;
}

static int take_trace(struct scan *scan, const struct graftrace_block *block, const char **why)
{
	int error = read_payload(scan, block->offset, 0, block->head_bytes);
	if (error)
		return error;
	if (gt_crc32c(0, scan->payload, block->head_bytes) != block->head_crc) {
		*why = "its head is damaged (checksum)";
		return GT_EFORMAT;
	}
	return gt_recording_add_groups(scan->recording, scan->payload, block->head_bytes,
				       block->offset + HEADER_BYTES + block->head_bytes,
				       padded_bytes(block) - block->head_bytes, why);
}

/* Decompresses scan->payload in place. */
static int unpack(struct scan *scan, const struct graftrace_block *block, const char **why)
{
	*why = "its zstd frame is damaged";
	if (block->raw_bytes >
		    GRAFTRACE_EXPANSION_BASE + GRAFTRACE_EXPANSION_BLOCK * block->payload_bytes ||
	    ZSTD_getFrameContentSize(scan->payload, block->payload_bytes) != block->raw_bytes)
		return GT_EFORMAT;
	uint8_t *raw = malloc(block->raw_bytes + 1);
	if (raw == NULL)
		return GT_ENOMEM;
	size_t got = ZSTD_decompress(raw, block->raw_bytes, scan->payload, block->payload_bytes);
	free(scan->payload);
	scan->payload = raw;
	scan->payload_size = block->raw_bytes;
	return ZSTD_isError(got) || got != block->raw_bytes ? GT_EFORMAT : 0;
}

static int take_block(struct scan *scan, const struct graftrace_block *block, const char **why)
{
	struct gt_recording *recording = scan->recording;
	int error;

	if (block->type == GRAFTRACE_BLOCK_SUB_BUFFERS)
		return take_trace(scan, block, why);
	error = read_payload(scan, block->offset, 0, padded_bytes(block));
	if (error)
		return error;
	if (gt_crc32c(0, scan->payload, block->head_bytes) != block->head_crc ||
	    gt_crc32c(0, scan->payload + block->head_bytes,
		      padded_bytes(block) - block->head_bytes) != block->body_crc) {
		*why = "damaged (checksum)";
		return GT_EFORMAT;
	}
	if (block->flags & GRAFTRACE_BLOCK_ZSTD) {
		error = unpack(scan, block, why);
		if (error)
			return error;
	} else if (block->raw_bytes != block->payload_bytes) {
		*why = "its lengths differ";
		return GT_EFORMAT;
	}
	size_t bytes = block->raw_bytes;
	switch (block->type) {
	case GRAFTRACE_BLOCK_START:
		return take_start(recording, scan->payload, bytes, why);
	case GRAFTRACE_BLOCK_OPTIONS:
		return take_strings(recording, scan->payload, bytes, why);
	case GRAFTRACE_BLOCK_OBJECT:
		return gt_recording_add_object(recording, scan->payload, bytes, why);
	case GRAFTRACE_BLOCK_FUNCTIONS:
		error = gt_recording_add_functions(recording, &scan->payload, bytes, why);
		if (scan->payload == NULL)
			scan->payload_size = 0;
		return error;
	case GRAFTRACE_BLOCK_WRITERS:
		return take_writers(recording, scan->payload, bytes, why);
	case GRAFTRACE_BLOCK_SWITCHES:
		return gt_recording_add_switches(recording, scan->payload, bytes, why);
	case GRAFTRACE_BLOCK_KERNEL:
		return gt_recording_add_kernel(recording, block, scan->payload, why);
	case GRAFTRACE_BLOCK_EVENT:
		return gt_recording_add_event(recording, scan->payload, bytes, why);
	case GRAFTRACE_BLOCK_END:
		return take_end(scan, scan->payload, bytes, why);
	default:
		if (!(block->flags & GRAFTRACE_BLOCK_OPTIONAL))
			gt_recording_add_problem(
				recording, true,
				"bytes %" PRIu64 " to %" PRIu64
				": a block of type %u, which this version of graftrace "
				"does not know",
				block->offset, block->offset + HEADER_BYTES + padded_bytes(block),
				block->type);
		return 0;
	}
}

/* Reports a damaged block whose header is whole. */
static void report_bad_block(struct scan *scan, const struct graftrace_block *block,
			     const char *why)
{
	gt_recording_add_problem(scan->recording, true,
				 "bytes %" PRIu64 " to %" PRIu64 ": a %s block: %s; %s",
				 block->offset, block->offset + HEADER_BYTES + padded_bytes(block),
				 type_name(block->type), why, what_is_missing(block->type));
}

/* Scans the block at `offset`, whose header is whole. Returns the offset after it, or 0 with
 * *error set. */
static uint64_t scan_block(struct scan *scan, const struct graftrace_block *block, int *error)
{
	struct gt_recording *recording = scan->recording;
	uint64_t end = block->offset + HEADER_BYTES + padded_bytes(block);
	const char *why = "";

	if (end > recording->bytes) {
		gt_recording_add_problem(recording, true,
					 "the file is cut off at byte %" PRIu64
					 ", in the %s block that begins at byte %" PRIu64
					 " and needs %" PRIu64 " more; all before it is there",
					 recording->bytes, type_name(block->type), block->offset,
					 end - recording->bytes);
		return recording->bytes;
	}
	if (block->number != scan->number && !scan->explained)
		gt_recording_add_problem(recording, true,
					 "byte %" PRIu64 ": block %" PRIu64
					 " stands where block %" PRIu64 " should",
					 block->offset, block->number, scan->number);
	scan->number = block->number + 1;
	scan->explained = false;
	*error = take_block(scan, block, &why);
	if (*error == GT_EFORMAT) {
		report_bad_block(scan, block, why);
		*error = 0;
	} else if (*error == GT_ECUT) {
		report_bad_block(scan, block, "the file was cut while it was read");
		*error = 0;
	}
	recording->info.whole_bytes = end;
	recording->info.blocks = scan->number;
	return *error ? 0 : end;
}

static int scan_blocks(struct scan *scan)
{
	struct gt_recording *recording = scan->recording;
	uint64_t at = GRAFTRACE_FILE_MAGIC_BYTES;
	int error = 0;

	while (at < recording->bytes) {
		struct graftrace_block block;
		if (scan->ended) {
			gt_recording_add_problem(
				recording, true,
				"byte %" PRIu64 ": %" PRIu64
				" bytes follow the end block; they are passed over",
				at, recording->bytes - at);
			break;
		}
		if (header_at(scan, at, &block)) {
			at = scan_block(scan, &block, &error);
			if (error)
				return error;
			continue;
		}
		uint64_t next = next_header(scan, at);
		if (next == recording->bytes && next - at < HEADER_BYTES)
			gt_recording_add_problem(
				recording, true,
				"the file is cut off at byte %" PRIu64
				", in the header of the block that begins at byte %" PRIu64
				"; all before it is there",
				next, at);
		else
			gt_recording_add_problem(recording, true,
						 "bytes %" PRIu64 " to %" PRIu64
						 ": no whole block begins here; passed over",
						 at, next);
		scan->explained = true;
		at = next;
	}
	return 0;
}

/* Sets the message of a file that is none, with what it is and who reads it if its first bytes tell. */
static int refuse_other(struct scan *scan, struct gt_message *message)
{
	static const struct {
		const char *begin, *what;
	} others[] = {
		{ "PERFILE", "it is perf's: 'perf report -i' reads it" },
		{ "\177ELF", "it is a program or library: 'graftrace record' runs a program" },
		{ "SQLite format 3", "it is a database: sqlite3 reads it" },
		{ "function,tid,",
		  "it is a table of calls: 'graftrace runtime-breakdown' reads it" },
	};
	const uint64_t bytes = scan->recording->bytes;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const size_t length = strlen(others[i].begin);
		const uint8_t *first = bytes >= length ? look(scan, 0, (uint32_t)length) : NULL;

		if (first != NULL && memcmp(first, others[i].begin, length) == 0)
			return gt_fail(message, GT_EFORMAT, "is no graftrace recording: %s",
				       others[i].what);
	}
	if (bytes < GRAFTRACE_FILE_MAGIC_BYTES)
		return gt_fail(message, GT_EFORMAT,
			       "is no graftrace recording: it has only %" PRIu64 " bytes", bytes);
	return gt_fail(message, GT_EFORMAT, "is no graftrace recording: byte 0 does not begin one");
}

/* Sets the message of a file that cannot be read, with the problem that gt_recording_read() added last. */
static void refuse_unread(const struct gt_recording *recording, struct gt_message *message)
{
	const uint32_t last = recording->problem_count - 1;
	const char *problem = last < GT_RECORDING_PROBLEMS ? recording->problems[last] : NULL;

	gt_message_set(message, "cannot be opened: %s",
		       problem != NULL ? problem : "a part of it cannot be read");
}

int gt_recording_scan(struct gt_recording *recording, struct gt_message *message)
{
	struct scan scan = { .recording = recording };
	struct graftrace_block block;
	int error;

	scan.window = malloc(WINDOW_BYTES);
	if (scan.window == NULL)
		return GT_ENOMEM;
	const uint8_t *magic = look(&scan, 0, GRAFTRACE_FILE_MAGIC_BYTES);
	if (magic == NULL || memcmp(magic, GRAFTRACE_FILE_MAGIC, GRAFTRACE_FILE_MAGIC_BYTES) != 0) {
		if (!header_at(&scan, GRAFTRACE_FILE_MAGIC_BYTES, &block)) {
			error = refuse_other(&scan, message);
			goto free_scan;
		}
		gt_recording_add_problem(
			recording, true,
			"bytes 0 to 16: the file does not begin as a recording does");
	}
	error = scan_blocks(&scan);
	if (error == GT_ENOTSUP) {
		gt_message_set(message,
			       "was written in a newer format than this version of graftrace reads "
			       "(start block at byte %d)",
			       GRAFTRACE_FILE_MAGIC_BYTES);
		error = GT_EFORMAT;
	} else if (error == GT_EIO) {
		refuse_unread(recording, message);
	} else if (!error && !recording->have_clock) {
		gt_message_set(message,
			       "cannot be read: the block with the clock is missing or damaged%s%s",
			       recording->problem_count ? ": " : "",
			       recording->problem_count ? recording->problems[0] : "");
		error = GT_EFORMAT;
	}
	if (!error)
		error = gt_recording_index_places(recording);
	if (error)
		goto free_scan;
	if (!scan.ended)
		gt_recording_add_problem(
			recording, false,
			"the recording was not ended (graftrace was killed, the disk was "
			"full, or the file was cut): it ends at byte %" PRIu64 ", without totals",
			recording->bytes);
	else if (recording->said_sub_buffers != recording->info.sub_buffers)
		gt_recording_add_problem(recording, true,
					 "%" PRIu64 " of %" PRIu64 " sub-buffers are in the file",
					 recording->info.sub_buffers, recording->said_sub_buffers);

free_scan:
	free(scan.window);
	free(scan.payload);
	return error;
}
