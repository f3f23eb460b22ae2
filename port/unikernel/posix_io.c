/* SPDX-License-Identifier: MIT */
/*
 * Files by number: 1 and 2 are the console, 3 to 15 the disk (each with its own offset), the rest
 * lwIP's sockets. Also further functions of <stdlib.h> for targets.
 */
#include "port/unikernel/include/sys/socket.h"

#include "port/unikernel/block.h"
#include "port/unikernel/boot.h"
#include "port/unikernel/console.h"
#include "port/unikernel/crash.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/posix_calls.h"
#include "port/unikernel/include/limits.h"
#include "port/unikernel/include/stdlib.h"
#include "port/unikernel/include/string.h"

#define FIRST_FILE   3
#define FILE_COUNT   (LWIP_SOCKET_OFFSET - FIRST_FILE)
#define BOUNCE_BYTES 65536

/* Read offset of an open file + 1; 0: not open. */
static uint64_t places[FILE_COUNT];

static ssize_t failed(int error)
{
	errno = error;
	return -1;
}

static int open_file(const char *path, int flags)
{
	if (strcmp(path, "/dev/vda"))
		return (int)failed(ENOENT);
	if (!block_bytes())
		return (int)failed(ENXIO);
	if (flags != O_RDONLY)
		return (int)failed(EROFS);
	for (int i = 0; i < FILE_COUNT; i++) {
		uint64_t closed = 0;
		if (__atomic_compare_exchange_n(&places[i], &closed, 1, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return FIRST_FILE + i;
	}
	return (int)failed(EMFILE);
}

static uint64_t *place_of(int file)
{
	if (file < FIRST_FILE || file >= LWIP_SOCKET_OFFSET || !places[file - FIRST_FILE])
		return NULL;
	return &places[file - FIRST_FILE];
}

static ssize_t read_at(int file, void *buffer, size_t bytes, off_t offset)
{
	if (!place_of(file))
		return failed(EBADF);
	if (offset < 0)
		return failed(EINVAL);
	if ((uint64_t)offset >= block_bytes())
		return 0;
	if (bytes > block_bytes() - (uint64_t)offset)
		bytes = block_bytes() - (uint64_t)offset;
	/* Reads whole sectors around the wanted bytes into memory that the device can reach. */
	uint64_t first = (uint64_t)offset / BLOCK_SECTOR;
	uint64_t skip = (uint64_t)offset % BLOCK_SECTOR;
	if (bytes > BOUNCE_BYTES - BLOCK_SECTOR)
		bytes = BOUNCE_BYTES - BLOCK_SECTOR;
	uint32_t all = (uint32_t)((skip + bytes + BLOCK_SECTOR - 1) & -(uint64_t)BLOCK_SECTOR);
	char *bounce = malloc(all);
	if (!bounce)
		return failed(ENOMEM);
	bool done = block_transfer(first, bounce, all, false);
	if (done)
		memcpy(buffer, bounce + skip, bytes);
	free(bounce);
	return done ? (ssize_t)bytes : failed(EIO);
}

static ssize_t read_file(int file, void *buffer, size_t bytes)
{
	if (file >= LWIP_SOCKET_OFFSET)
		return lwip_read(file, buffer, bytes);
	uint64_t *place = place_of(file);
	if (!place)
		return failed(EBADF);
	ssize_t done = read_at(file, buffer, bytes, (off_t)(*place - 1));
	if (done > 0)
		*place += (uint64_t)done;
	return done;
}

static ssize_t write_file(int file, const void *buffer, size_t bytes)
{
	if (file >= LWIP_SOCKET_OFFSET)
		return lwip_write(file, buffer, bytes);
	if (file != 1 && file != 2)
		return failed(EBADF);
	console_write(buffer, bytes);
	return (ssize_t)bytes;
}

static off_t seek_file(int file, off_t offset, int whence)
{
	uint64_t *place = place_of(file);
	if (!place)
		return failed(file >= LWIP_SOCKET_OFFSET ? ESPIPE : EBADF);
	if (whence == SEEK_CUR)
		offset += (off_t)(*place - 1);
	else if (whence == SEEK_END)
		offset += (off_t)block_bytes();
	if (offset < 0)
		return failed(EINVAL);
	*place = (uint64_t)offset + 1;
	return offset;
}

static int close_file(int file)
{
	if (file >= LWIP_SOCKET_OFFSET)
		return lwip_close(file);
	uint64_t *place = place_of(file);
	if (!place)
		return (int)failed(EBADF);
	__atomic_store_n(place, 0, __ATOMIC_RELEASE);
	return 0;
}

/* ---- functions for targets ---- */

int open(const char *path, int flags, ...)
{
	CALL_ENTER3(open, 2, unsigned long, filename, path, int, flags, flags, unsigned int, mode,
		    0);
	int result = open_file(path, flags);
	CALL_EXIT(open, 2, result);
	return result;
}

ssize_t pread(int file, void *buffer, size_t bytes, off_t offset)
{
	CALL_ENTER4(pread64, 17, unsigned int, fd, file, unsigned long, buf, buffer, unsigned long,
		    count, bytes, long, pos, offset);
	ssize_t result = read_at(file, buffer, bytes, offset);
	CALL_EXIT(pread64, 17, result);
	return result;
}

ssize_t read(int file, void *buffer, size_t bytes)
{
	CALL_ENTER3(read, 0, unsigned int, fd, file, unsigned long, buf, buffer, unsigned long,
		    count, bytes);
	ssize_t result = read_file(file, buffer, bytes);
	CALL_EXIT(read, 0, result);
	return result;
}

ssize_t write(int file, const void *buffer, size_t bytes)
{
	CALL_ENTER3(write, 1, unsigned int, fd, file, unsigned long, buf, buffer, unsigned long,
		    count, bytes);
	ssize_t result = write_file(file, buffer, bytes);
	CALL_EXIT(write, 1, result);
	return result;
}

off_t lseek(int file, off_t offset, int whence)
{
	CALL_ENTER3(lseek, 8, unsigned int, fd, file, long, offset, offset, unsigned int, whence,
		    whence);
	off_t result = seek_file(file, offset, whence);
	CALL_EXIT(lseek, 8, result);
	return result;
}

int close(int file)
{
	CALL_ENTER1(close, 3, unsigned int, fd, file);
	int result = close_file(file);
	CALL_EXIT(close, 3, result);
	return result;
}

void exit(int code)
{
	CALL_ENTER1(exit_group, 231, int, error_code, code);
	if (code)
		console_print("the program ended with %d\n", code);
	machine_end(code != 0);
}

void abort(void)
{
	__builtin_trap();
}

char *getenv(const char *name)
{
	uint32_t length;
	const char *text = option_text(name, &length);
	char *copy = text ? malloc(length + 1) : NULL;
	if (copy) {
		memcpy(copy, text, length);
		copy[length] = 0;
	}
	return copy;
}

int atoi(const char *text)
{
	long number = 0;
	while (*text >= '0' && *text <= '9' && number <= INT_MAX)
		number = number * 10 + *text++ - '0';
	return number <= INT_MAX ? (int)number : INT_MAX;
}
