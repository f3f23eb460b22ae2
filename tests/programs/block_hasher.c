/* SPDX-License-Identifier: MIT */
/*
 * Reads blocks of a device or file in several threads and hashes them:
 *
 *     block_hasher -d DEVICE [-b BLOCK_BYTES] [-t THREADS] [-n BLOCKS] [-D]
 *
 * Thread i reads the blocks i, i + THREADS, ... until it has read BLOCKS of them, around the end of
 * the device if it is shorter. -D: past the page cache (O_DIRECT). Prints one line: the hash of all
 * blocks, which does not depend on the order of the threads, and how long it took.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64

static struct {
	int fd;
	size_t block_bytes;
	unsigned threads, blocks;
	uint64_t device_blocks;
} job = { .fd = -1, .block_bytes = 1 << 20, .threads = 10, .blocks = 100 };

/* FNV-1a of 8 bytes at a time. */
__attribute__((noinline)) uint64_t hash_block(const uint64_t *block, size_t bytes)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < bytes / sizeof(*block); i++)
		hash = (hash ^ block[i]) * 0x100000001b3u;
	return hash;
}

__attribute__((noinline)) ssize_t read_block(void *block, uint64_t number)
{
	return pread(job.fd, block, job.block_bytes, (off_t)(number * job.block_bytes));
}

static void *worker(void *argument)
{
	uint64_t first = (uint64_t)(uintptr_t)argument, sum = 0;
	uint64_t *block = NULL;

	if (posix_memalign((void **)&block, 4096, job.block_bytes) != 0)
		return NULL;
	for (unsigned i = 0; i < job.blocks; i++) {
		uint64_t number = (first + (uint64_t)i * job.threads) % job.device_blocks;
		ssize_t got = read_block(block, number);
		if (got <= 0)
			break;
		sum += hash_block(block, (size_t)got);
	}
	free(block);
	return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	struct timespec from, to;
	const char *device = NULL;
	int option, flags = O_RDONLY;
	uint64_t sum = 0;

	while ((option = getopt(argc, argv, "d:b:t:n:D")) != -1) {
		if (option == 'd')
			device = optarg;
		else if (option == 'b')
			job.block_bytes = strtoul(optarg, NULL, 10);
		else if (option == 't')
			job.threads = (unsigned)strtoul(optarg, NULL, 10);
		else if (option == 'n')
			job.blocks = (unsigned)strtoul(optarg, NULL, 10);
		else if (option == 'D')
			flags |= O_DIRECT;
		else
			return 2;
	}
	if (device == NULL || job.block_bytes < 512 || job.threads == 0 ||
	    job.threads > THREADS_MAX)
		return 2;
	job.fd = open(device, flags);
	off_t bytes = job.fd >= 0 ? lseek(job.fd, 0, SEEK_END) : -1;
	if (bytes < (off_t)job.block_bytes) {
		perror(device);
		return 1;
	}
	job.device_blocks = (uint64_t)bytes / job.block_bytes;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (unsigned i = 0; i < job.threads; i++)
		if (pthread_create(&threads[i], NULL, worker, (void *)(uintptr_t)i) != 0)
			return 1;
	for (unsigned i = 0; i < job.threads; i++) {
		void *result = NULL;
		pthread_join(threads[i], &result);
		sum += (uint64_t)(uintptr_t)result;
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("hash %016" PRIx64 " in %.3f s\n", sum,
	       (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
	return 0;
}
