/* SPDX-License-Identifier: MIT */
/*
 * What Linux recorded, on its way into a recording: files as they are, small ones together, pages in
 * columns where a recording is packed.
 */
#include "read/writer_private.h"

#include <stdlib.h>
#include <string.h>

#define FILE_BYTES   (16u << 20) /* of a file, in a block */
#define GATHER_BYTES (1u << 20)	 /* of small files */

static int put_part(struct gt_file_writer *writer, enum graftrace_file_kernel_kind kind,
		    uint32_t cpu, const char *name, const void *bytes, size_t count)
{
	size_t name_bytes = name != NULL ? strlen(name) + 1 : 0;
	struct graftrace_file_kernel head = {
		.kind = kind,
		.cpu = cpu,
		.name_bytes = (uint32_t)name_bytes,
		.bytes = count,
	};

	if (writer->output.error)
		return writer->output.error;
	uint8_t *at = gt_file_writer_start_payload(writer, sizeof(head) + name_bytes + count);
	if (at == NULL)
		return writer->output.error;
	memcpy(at, &head, sizeof(head));
	if (name != NULL)
		memcpy(at + sizeof(head), name, name_bytes);
	memcpy(at + sizeof(head) + name_bytes, bytes, count);
	return gt_file_writer_put_payload(writer, GRAFTRACE_BLOCK_KERNEL,
					  sizeof(head) + name_bytes + count);
}

int gt_file_writer_kernel_file(struct gt_file_writer *writer, const char *name, const void *bytes,
			       size_t count)
{
	const uint8_t *from = bytes;

	do {
		size_t part = count < FILE_BYTES ? count : FILE_BYTES;
		int error = put_part(writer, GRAFTRACE_KERNEL_FILE, 0, name, from, part);
		if (error < 0)
			return error;
		from += part;
		count -= part;
	} while (count);
	return 0;
}

int gt_file_writer_kernel_gathered(struct gt_file_writer *writer)
{
	size_t count = writer->kernel_file_bytes;

	writer->kernel_file_bytes = 0;
	return count ? put_part(writer, GRAFTRACE_KERNEL_FILES, 0, NULL, writer->kernel_files,
				count)
		     : writer->output.error;
}

int gt_file_writer_kernel_gather(struct gt_file_writer *writer, const char *name, const void *bytes,
				 size_t count)
{
	const struct graftrace_file_kernel_file head = { (uint32_t)strlen(name) + 1,
							 (uint32_t)count };
	size_t length = sizeof(head) + head.name_bytes + count;

	if (writer->output.error)
		return writer->output.error;
	if (length > GATHER_BYTES)
		return gt_file_writer_kernel_file(writer, name, bytes, count);
	if (writer->kernel_files == NULL)
		writer->kernel_files = malloc(GATHER_BYTES);
	if (writer->kernel_files == NULL)
		return gt_file_writer_no_memory(writer);
	if (writer->kernel_file_bytes + length > GATHER_BYTES &&
	    gt_file_writer_kernel_gathered(writer) < 0)
		return writer->output.error;
	uint8_t *at = writer->kernel_files + writer->kernel_file_bytes;
	memcpy(at, &head, sizeof(head));
	memcpy(at + sizeof(head), name, head.name_bytes);
	memcpy(at + sizeof(head) + head.name_bytes, bytes, count);
	writer->kernel_file_bytes += length;
	return 0;
}

int gt_file_writer_kernel_pages(struct gt_file_writer *writer, uint32_t cpu, const void *pages,
				size_t count, size_t page_bytes)
{
	const uint8_t *packed;
	int64_t packed_bytes = GT_EINVAL;

	if (writer->compress) {
		if (writer->pages_encoder == NULL)
			writer->pages_encoder = gt_pages_encoder_create();
		if (writer->pages_encoder == NULL)
			return gt_file_writer_no_memory(writer);
		packed_bytes =
			gt_pages_encode(writer->pages_encoder, pages, count, page_bytes, &packed);
	}
	if (packed_bytes == GT_ENOMEM)
		return gt_file_writer_no_memory(writer);
	if (packed_bytes < 0 || (size_t)packed_bytes >= count)
		return put_part(writer, GRAFTRACE_KERNEL_PAGES, cpu, NULL, pages, count);
	return put_part(writer, GRAFTRACE_KERNEL_PACKED_PAGES, cpu, NULL, packed,
			(size_t)packed_bytes);
}
