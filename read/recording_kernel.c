/* SPDX-License-Identifier: MIT */
/*
 * The kernel's part of a recording: its blocks are found when the file is opened, and read again
 * when they are used.
 */
#include "read/recording_parts.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "read/crc32c.h"

/* Checks the lengths in a payload; *part points into it. */
static bool parse(const uint8_t *payload, uint64_t bytes, struct gt_recording_kernel *part)
{
	struct graftrace_file_kernel head;

	if (bytes < sizeof(head))
		return false;
	memcpy(&head, payload, sizeof(head));
	bytes -= sizeof(head);
	if (head.name_bytes > bytes || head.bytes > bytes - head.name_bytes)
		return false;
	if (head.name_bytes && payload[sizeof(head) + head.name_bytes - 1] != 0)
		return false;
	part->kind = head.kind;
	part->cpu = head.cpu;
	part->name = head.name_bytes ? (const char *)payload + sizeof(head) : "";
	part->bytes = payload + sizeof(head) + head.name_bytes;
	part->count = (size_t)head.bytes;
	return true;
}

int gt_recording_add_kernel(struct gt_recording *recording, const struct graftrace_block *block,
			    const uint8_t *payload, const char **why)
{
	struct gt_recording_kernel part;

	if (!parse(payload, block->raw_bytes, &part)) {
		*why = "its lengths are wrong";
		return GT_EFORMAT;
	}
	if (gt_recording_grow(&recording->kernel, &recording->kernel_size,
			      (uint64_t)recording->kernel_count + 1,
			      sizeof(*recording->kernel)) < 0)
		return GT_ENOMEM;
	recording->kernel[recording->kernel_count++] = *block;
	return 0;
}

uint32_t gt_recording_kernel_count(struct gt_recording *recording)
{
	return recording->kernel_count;
}

static int unpack(const struct graftrace_block *block, uint8_t **payload)
{
	uint8_t *raw = malloc(block->raw_bytes + 1);

	if (!raw)
		return GT_ENOMEM;
	size_t got = ZSTD_decompress(raw, block->raw_bytes, *payload, block->payload_bytes);
	free(*payload);
	*payload = raw;
	return ZSTD_isError(got) || got != block->raw_bytes ? GT_EFORMAT : GT_OK;
}

int gt_recording_kernel(struct gt_recording *recording, uint32_t index,
			struct gt_recording_kernel *part)
{
	int error = GT_OK;

	if (index >= recording->kernel_count)
		return GT_ENOENT;
	const struct graftrace_block *block = &recording->kernel[index];
	uint64_t padded = (block->payload_bytes + 7) / 8 * 8;
	uint8_t *payload = malloc(padded + 1);
	if (!payload)
		return GT_ENOMEM;
	int64_t got = gt_recording_read(recording, block->offset + sizeof(*block), payload, padded);
	if (got < 0)
		error = GT_EIO;
	else if ((uint64_t)got != padded ||
		 gt_crc32c(0, payload + block->head_bytes, padded - block->head_bytes) !=
			 block->body_crc)
		error = GT_EFORMAT;
	if (error == GT_OK && block->flags & GRAFTRACE_BLOCK_ZSTD)
		error = unpack(block, &payload);
	if (error == GT_OK && !parse(payload, block->raw_bytes, part))
		error = GT_EFORMAT;
	if (error != GT_OK) {
		free(payload);
		return error;
	}
	part->memory = payload;
	return GT_OK;
}
