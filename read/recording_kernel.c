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
#include "read/pages.h"

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

/* Unpacks pages; the part then owns them. */
static int unpack_pages(struct gt_recording_kernel *part)
{
	uint8_t *pages;
	int error = gt_pages_decode(part->bytes, part->count, GRAFTRACE_BLOCK_MAX, &pages,
				    &part->count);

	part->kind = GRAFTRACE_KERNEL_PAGES;
	part->name = "";
	part->bytes = part->memory = pages;
	return error;
}

/* Takes a file from the front of the bytes at *at. False: it is cut off. */
static bool take_file(const struct gt_recording_kernel *part, size_t *at,
		      struct gt_recording_kernel_file *file)
{
	struct graftrace_file_kernel_file head;
	size_t left = part->count - *at;

	if (left < sizeof(head))
		return false;
	memcpy(&head, part->bytes + *at, sizeof(head));
	left -= sizeof(head);
	if (head.name_bytes == 0 || head.name_bytes > left || head.bytes > left - head.name_bytes)
		return false;
	file->name = (const char *)part->bytes + *at + sizeof(head);
	file->bytes = (const uint8_t *)file->name + head.name_bytes;
	file->count = head.bytes;
	*at += sizeof(head) + head.name_bytes + head.bytes;
	return file->name[head.name_bytes - 1] == '\0';
}

bool gt_recording_kernel_file(const struct gt_recording_kernel *part, size_t *at,
			      struct gt_recording_kernel_file *file)
{
	if (part->kind == GRAFTRACE_KERNEL_FILES)
		return *at < part->count && take_file(part, at, file);
	*file = (struct gt_recording_kernel_file){ part->name, part->bytes, part->count };
	return part->kind == GRAFTRACE_KERNEL_FILE && (*at)++ == 0;
}

static bool are_files_whole(const struct gt_recording_kernel *part)
{
	struct gt_recording_kernel_file file;
	size_t at = 0;

	while (at < part->count)
		if (!take_file(part, &at, &file))
			return false;
	return true;
}

int gt_recording_add_kernel(struct gt_recording *recording, const struct graftrace_block *block,
			    const uint8_t *payload, const char **why)
{
	struct gt_recording_kernel part;
	int error = 0;

	if (!parse(payload, block->raw_bytes, &part)) {
		*why = "its lengths are wrong";
		return GT_EFORMAT;
	}
	if (part.kind == GRAFTRACE_KERNEL_FILES && !are_files_whole(&part)) {
		*why = "its files are cut off";
		return GT_EFORMAT;
	}
	if (part.kind == GRAFTRACE_KERNEL_PACKED_PAGES) {
		*why = "its pages cannot be unpacked";
		error = unpack_pages(&part);
		free(part.memory);
	}
	if (error != 0)
		return error;
	if (gt_recording_grow(&recording->kernel, &recording->kernel_size,
			      (uint64_t)recording->kernel_count + 1,
			      sizeof(*recording->kernel)) < 0)
		return GT_ENOMEM;
	recording->kernel[recording->kernel_count++] =
		(struct gt_kernel_index){ *block, part.kind, part.cpu };
	return 0;
}

uint32_t gt_recording_kernel_count(struct gt_recording *recording)
{
	return recording->kernel_count;
}

bool gt_recording_kernel_has_pages(struct gt_recording *recording, uint32_t index, uint32_t *cpu)
{
	const struct gt_kernel_index *part = &recording->kernel[index];

	*cpu = part->cpu;
	return part->kind == GRAFTRACE_KERNEL_PAGES || part->kind == GRAFTRACE_KERNEL_PACKED_PAGES;
}

static int unpack(const struct graftrace_block *block, uint8_t **payload)
{
	uint8_t *raw = malloc(block->raw_bytes + 1);

	if (raw == NULL)
		return GT_ENOMEM;
	size_t got = ZSTD_decompress(raw, block->raw_bytes, *payload, block->payload_bytes);
	free(*payload);
	*payload = raw;
	return ZSTD_isError(got) || got != block->raw_bytes ? GT_EFORMAT : 0;
}

int gt_recording_kernel(struct gt_recording *recording, uint32_t index,
			struct gt_recording_kernel *part)
{
	int error = 0;

	if (index >= recording->kernel_count)
		return GT_ENOENT;
	const struct graftrace_block *block = &recording->kernel[index].block;
	uint64_t padded = (block->payload_bytes + 7) / 8 * 8;
	uint8_t *payload = malloc(padded + 1);
	if (payload == NULL)
		return GT_ENOMEM;
	int64_t got = gt_recording_read(recording, block->offset + sizeof(*block), payload, padded);
	if (got < 0)
		error = GT_EIO;
	else if ((uint64_t)got != padded ||
		 gt_crc32c(0, payload + block->head_bytes, padded - block->head_bytes) !=
			 block->body_crc)
		error = GT_EFORMAT;
	if (error == 0 && block->flags & GRAFTRACE_BLOCK_ZSTD)
		error = unpack(block, &payload);
	if (error == 0 && !parse(payload, block->raw_bytes, part))
		error = GT_EFORMAT;
	if (error != 0) {
		free(payload);
		return error;
	}
	part->memory = payload;
	if (part->kind == GRAFTRACE_KERNEL_PACKED_PAGES) {
		error = unpack_pages(part);
		free(payload);
	}
	return error;
}
