/* SPDX-License-Identifier: MIT */
/* Reads the disk with several threads and prints a hash of it (OPTIONS: threads, block, blocks). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX 64
#define BLOCK_MAX   (1 << 20)

/* The disk in blocks, given out in order; the hashes are joined in order too. */
static struct {
	pthread_mutex_t mutex;
	size_t block; /* bytes */
	int disk;
	off_t bytes, next;
	uint64_t *hashes; /* one a block */
	int failed;
} work;

/* FNV-1a over words: every program that computes it gets the same hash of the same disk. */
static uint64_t hash_bytes(const void *bytes, size_t count, uint64_t hash)
{
	const uint8_t *at = bytes;
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ at[i]) * 0x100000001b3;
	return hash;
}

static int read_block(char *block, off_t offset, size_t *count)
{
	size_t wanted = (size_t)(work.bytes - offset) < work.block ? (size_t)(work.bytes - offset)
								   : work.block;
	for (*count = 0; *count < wanted;) {
		ssize_t got =
			pread(work.disk, block + *count, wanted - *count, offset + (off_t)*count);
		if (got <= 0)
			return -1;
		*count += (size_t)got;
	}
	return 0;
}

static off_t next_block(void)
{
	pthread_mutex_lock(&work.mutex);
	off_t offset = work.next;
	work.next += (off_t)work.block;
	pthread_mutex_unlock(&work.mutex);
	return offset;
}

static void *hash_blocks(void *argument)
{
	char *block = malloc(work.block);
	uintptr_t done = 0;
	off_t offset;
	(void)argument;
	while (block && (offset = next_block()) < work.bytes) {
		size_t count;
		if (read_block(block, offset, &count)) {
			work.failed = errno;
			break;
		}
		work.hashes[(size_t)offset / work.block] =
			hash_bytes(block, count, 0xcbf29ce484222325);
		done++;
	}
	free(block);
	return (void *)done;
}

static size_t option(const char *text, size_t otherwise, size_t most)
{
	size_t value = text ? (size_t)atoi(text) : 0;

	return !value ? otherwise : value < most ? value : most;
}

int main(void)
{
	pthread_t threads[THREADS_MAX];
	uintptr_t done[THREADS_MAX];
	size_t count = option(getenv("threads"), 4, THREADS_MAX);

	work.block = option(getenv("block"), 16384, BLOCK_MAX);
	work.disk = open("/dev/vda", O_RDONLY);
	if (work.disk < 0) {
		printf("block-hasher: there is no disk: say DISK=FILE\n");
		return 1;
	}
	work.bytes = lseek(work.disk, 0, SEEK_END);
	size_t blocks = ((size_t)work.bytes + work.block - 1) / work.block;
	size_t wanted = option(getenv("blocks"), blocks, blocks);
	if (wanted < blocks) {
		blocks = wanted;
		work.bytes = (off_t)(blocks * work.block);
	}
	work.hashes = calloc(blocks, sizeof(*work.hashes));
	if (!work.hashes)
		return 1;
	for (size_t i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, hash_blocks, NULL))
			return 1;
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], (void **)&done[i]);
	if (work.failed) {
		printf("block-hasher: the disk cannot be read: error %d\n", work.failed);
		return 1;
	}
	printf("block-hasher: %lu blocks by %lu threads (", blocks, count);
	for (size_t i = 0; i < count; i++)
		printf(i ? ", %lu" : "%lu", done[i]);
	printf(")\nblock-hasher: hash %016lx\n",
	       hash_bytes(work.hashes, blocks * sizeof(*work.hashes), 0xcbf29ce484222325));
	return 0;
}
