/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a recording file: opened or refused, and all of it read. Checksums would end nearly
 * every mutated file at its first block, so, unless the input's first byte is odd, they are made
 * right before: what is behind them has to stand on its own.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "read/calls.h"
#include "read/crc32c.h"
#include "read/recording.h"
#include <graftrace/file.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The checksums of the groups of a SUB_BUFFERS block, as far as its head makes sense. */
static void mend_groups(uint8_t *payload, size_t head_bytes, size_t bytes)
{
	struct graftrace_file_sub_buffers head;
	struct graftrace_file_group group;
	size_t body = head_bytes;

	if (head_bytes < sizeof(head))
		return;
	memcpy(&head, payload, sizeof(head));
	for (uint32_t i = 0; i < head.group_count; i++) {
		size_t at = sizeof(head) + (size_t)i * sizeof(group);
		if (at + sizeof(group) > head_bytes)
			return;
		memcpy(&group, payload + at, sizeof(group));
		if (group.stored_bytes > bytes - body)
			return;
		group.crc = gt_crc32c(0, payload + body, group.stored_bytes);
		memcpy(payload + at, &group, sizeof(group));
		body += group.stored_bytes;
	}
}

static void mend(uint8_t *bytes, size_t count)
{
	size_t at = GRAFTRACE_FILE_MAGIC_BYTES;
	uint64_t number = 0;

	while (at < count && count - at >= sizeof(struct graftrace_block)) {
		struct graftrace_block block;
		uint8_t *payload = bytes + at + sizeof(block);
		memcpy(&block, bytes + at, sizeof(block));
		block.magic = GRAFTRACE_BLOCK_MAGIC;
		block.offset = at;
		block.number = number++;
		size_t left = count - at - sizeof(block);
		if (block.payload_bytes <= left && block.head_bytes <= block.payload_bytes) {
			size_t padded = (block.payload_bytes + 7) / 8 * 8;
			if (padded > left)
				padded = left;
			if (block.type == GRAFTRACE_BLOCK_SUB_BUFFERS)
				mend_groups(payload, block.head_bytes, padded);
			block.head_crc = gt_crc32c(0, payload, block.head_bytes);
			block.body_crc = block.type == GRAFTRACE_BLOCK_SUB_BUFFERS
						 ? 0
						 : gt_crc32c(0, payload + block.head_bytes,
							     padded - block.head_bytes);
			left = padded;
		}
		block.header_crc =
			gt_crc32c(0, &block, offsetof(struct graftrace_block, header_crc));
		memcpy(bytes + at, &block, sizeof(block));
		at += sizeof(block) + left;
	}
}

static int count_call(void *user, const struct gt_call *call)
{
	*(size_t *)user += strlen(call->function);
	return 0;
}

static void read_all(struct gt_recording *recording)
{
	struct gt_calls_report report;
	struct gt_target *target = gt_recording_target(recording);
	const struct gt_recording_info *info = gt_recording_info(recording);
	struct gt_recording_object object;
	struct gt_function function;
	uint32_t end = gt_recording_function_end(recording);
	size_t length = strlen(info->command_line) + strlen(info->program);

	gt_recording_verify(recording);
	gt_calls_read(target, false, count_call, &length, &report);
	gt_calls_read(target, true, count_call, &length, &report);
	for (uint32_t i = 0; i < end && i < 5000; i++)
		if (gt_target_function(target, i, &function) == 0) {
			length += strlen(function.name) + strlen(function.object);
			gt_target_function_at(target, i % 3, function.address, &function);
		}
	for (uint32_t i = 0; gt_recording_object(recording, i, &object) == 0; i++)
		length += strlen(object.path);
	for (uint32_t i = 0; gt_recording_problem(recording, i); i++)
		length += strlen(gt_recording_problem(recording, i));
	if (length == SIZE_MAX) /* the strings were read */
		abort();
}

/* Whatever their clocks are: times off the CPU do not run backwards. */
static void read_switches(struct gt_target *target)
{
	struct gt_switch one;
	struct gt_off_cpu time;
	uint64_t cursor = 0;

	while (gt_target_read_switches(target, &cursor, &one, 1) == 1) {
		if (gt_target_find_off_cpu(target, one.tid, one.clock, &time) != 0 ||
		    (time.to < time.from && time.from != UINT64_MAX))
			abort();
		gt_target_off_cpu(target, one.tid, 0, one.clock);
	}
}

/* What was found whole when the file was opened is whole still. */
static void read_kernel(struct gt_recording *recording)
{
	struct gt_recording_kernel part;
	struct gt_recording_kernel_file file;
	size_t sum = 0;

	for (uint32_t i = 0; i < gt_recording_kernel_count(recording); i++) {
		if (gt_recording_kernel(recording, i, &part) != 0)
			abort();
		for (size_t at = 0; at < part.count; at++)
			sum += part.bytes[at];
		for (size_t at = 0; gt_recording_kernel_file(&part, &at, &file);)
			sum += strlen(file.name) + (file.count ? file.bytes[file.count - 1] : 0);
		free(part.memory);
	}
	if (sum == SIZE_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_message message = { "" };
	struct gt_recording *recording;
	char path[32];

	if (!size)
		return 0;
	uint8_t *bytes = malloc(size);
	memcpy(bytes, data + 1, size - 1);
	if (data[0] % 2 == 0)
		mend(bytes, size - 1);
	int fd = memfd_create("recording", MFD_CLOEXEC);
	if (fd < 0 || write(fd, bytes, size - 1) != (ssize_t)size - 1)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (gt_recording_open(path, &recording, &message) == 0) {
		read_all(recording);
		read_kernel(recording);
		read_switches(gt_recording_target(recording));
		gt_recording_close(recording);
	} else if (!message.text[0]) {
		abort();
	}
	close(fd);
	free(bytes);
	return 0;
}
