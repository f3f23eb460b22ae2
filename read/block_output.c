/* SPDX-License-Identifier: MIT */
/*
 * Writes blocks to a file. After a failed write the file is truncated to the end of its last whole
 * block, so that a full disk leaves a recording that opens without damage.
 */
#include "read/block_output.h"
#include "core/trace/message.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "read/crc32c.h"
#include "read/recording_file.h"

static int error_of(int number)
{
	switch (number) {
	case ENOENT:
	case ENOTDIR:
		return GT_ENOENT;
	case EACCES:
	case EPERM:
	case EROFS:
		return GT_EPERM;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return GT_ENOSPC;
	case ENOMEM:
		return GT_ENOMEM;
	default:
		return GT_EIO;
	}
}

int gt_block_output_fail(struct gt_block_output *output, int error, const char *what)
{
	if (output->error)
		return output->error;
	output->error = error;
	return gt_fail(&output->message, error, "%s", what);
}

static int fail_errno(struct gt_block_output *output, const char *verb, int number)
{
	char what[400];
	int written = snprintf(what, sizeof(what), "cannot %s '%.250s': %s", verb, output->path,
			       strerror(number));

	if (output->offset > GRAFTRACE_FILE_MAGIC_BYTES && written > 0)
		snprintf(what + written, sizeof(what) - (size_t)written,
			 "; the %" PRIu64 " bytes before stay readable", output->offset);
	return gt_block_output_fail(output, error_of(number), what);
}

/* As fail_errno(), with the way out where the folder is not there or nothing may be written to it. */
static int fail_to_create(struct gt_block_output *output, int number)
{
	char folder[sizeof(output->path)], what[512];
	char *slash;

	strcpy(folder, output->path);
	slash = strrchr(folder, '/');
	if (slash == NULL)
		strcpy(folder, ".");
	else
		slash[slash == folder] = '\0';
	if (number == ENOENT && access(folder, F_OK) != 0)
		snprintf(what, sizeof(what), "cannot create '%.200s': there is no folder '%.200s'",
			 output->path, folder);
	else if (access(folder, W_OK) != 0)
		snprintf(what, sizeof(what),
			 "cannot create '%.150s': nothing may be written to the folder '%.150s' "
			 "(%s): -o "
			 "FILE names another place",
			 output->path, folder, strerror(errno));
	else
		return fail_errno(output, "create", number);
	return gt_block_output_fail(output, error_of(number), what);
}

static int write_all(struct gt_block_output *output, const uint8_t *bytes, size_t count)
{
	while (count) {
		ssize_t written = write(output->fd, bytes, count);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			int number = written ? errno : ENOSPC;
			if (output->regular && ftruncate(output->fd, (off_t)output->offset) < 0)
				number = errno;
			return fail_errno(output, "write", number);
		}
		bytes += written;
		count -= (size_t)written;
	}
	return 0;
}

int gt_block_output_create(struct gt_block_output *output, const char *path)
{
	struct stat status;

	memset(output, 0, sizeof(*output));
	output->fd = -1;
	if (strlen(path) >= sizeof(output->path))
		return gt_block_output_fail(output, GT_EINVAL, "the recording's path is too long");
	strcpy(output->path, path);
	output->fd = gt_recording_file_create(path);
	if (output->fd < 0)
		return fail_to_create(output, errno);
	output->regular = fstat(output->fd, &status) == 0 && S_ISREG(status.st_mode);
	if (write_all(output, (const uint8_t *)GRAFTRACE_FILE_MAGIC, GRAFTRACE_FILE_MAGIC_BYTES) <
	    0)
		return output->error;
	output->offset = GRAFTRACE_FILE_MAGIC_BYTES;
	return 0;
}

int gt_block_output_append(struct gt_block_output *output, const char *path, uint64_t offset,
			   uint64_t number)
{
	struct stat status;

	memset(output, 0, sizeof(*output));
	output->fd = -1;
	if (strlen(path) >= sizeof(output->path))
		return gt_block_output_fail(output, GT_EINVAL, "the recording's path is too long");
	strcpy(output->path, path);
	output->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
	if (output->fd < 0 || fstat(output->fd, &status) < 0)
		return fail_errno(output, "open", errno);
	if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_nlink != 1 ||
	    (uint64_t)status.st_size < offset)
		return fail_errno(output, "go on with", EPERM);
	if (ftruncate(output->fd, (off_t)offset) < 0 ||
	    lseek(output->fd, (off_t)offset, SEEK_SET) < 0)
		return fail_errno(output, "write", errno);
	output->regular = true;
	output->offset = offset;
	output->number = number;
	return 0;
}

int gt_block_output_put(struct gt_block_output *output, uint8_t *block,
			enum graftrace_block_type type, uint32_t flags, size_t payload_bytes,
			size_t raw_bytes, size_t head_bytes)
{
	struct graftrace_block header = {
		.magic = GRAFTRACE_BLOCK_MAGIC,
		.offset = output->offset,
		.number = output->number,
		.type = (uint16_t)type,
		.version = 1,
		.flags = flags,
		.payload_bytes = payload_bytes,
		.raw_bytes = raw_bytes,
		.head_bytes = (uint32_t)head_bytes,
	};
	uint8_t *payload = block + sizeof(header);
	size_t padded = (payload_bytes + 7) / 8 * 8;

	if (output->error)
		return output->error;
	memset(payload + payload_bytes, 0, padded - payload_bytes);
	header.head_crc = gt_crc32c(0, payload, head_bytes);
	/* Groups of sub-buffers have their own checksums, so that each can be read alone. */
	if (type != GRAFTRACE_BLOCK_SUB_BUFFERS)
		header.body_crc = gt_crc32c(0, payload + head_bytes, padded - head_bytes);
	header.header_crc = gt_crc32c(0, &header, offsetof(struct graftrace_block, header_crc));
	memcpy(block, &header, sizeof(header));
	if (write_all(output, block, sizeof(header) + padded) < 0)
		return output->error;
	output->offset += sizeof(header) + padded;
	output->number++;
	return 0;
}

int gt_block_output_close(struct gt_block_output *output)
{
	if (output->fd >= 0 && close(output->fd) < 0 && errno != EINTR)
		fail_errno(output, "close", errno);
	output->fd = -1;
	return output->error;
}
