/* SPDX-License-Identifier: MIT */
/* Copies buffers by a slow copy, byte by byte, which the breakdown shows. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS	     200
#define BUFFER_BYTES 65536
#define PIECE_BYTES  4096

/* The trace must show the function's name: it is not inlined, and gcc makes no variant with
 * fewer arguments of it (copy_bytes.constprop.0). */
#if __has_attribute(noipa)
#define SHOWN __attribute__((noipa))
#else
#define SHOWN __attribute__((noinline))
#endif

static int mended; /* OPTIONS="mended=1" uses a fast copy */

/* The function that the trace is to find. The barrier keeps compilers from making a memcpy of
 * it. */
static SHOWN void copy_bytes(char *to, const char *from, size_t count)
{
	if (mended) {
		memcpy(to, from, count);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		to[i] = from[i];
		__asm__ volatile("" ::: "memory");
	}
}

static SHOWN uint32_t checksum(const char *bytes, size_t count)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < count; i += 64)
		sum = sum * 31 + (uint8_t)bytes[i];
	return sum;
}

static SHOWN void fill(char *bytes, size_t count, unsigned round)
{
	memset(bytes, (int)(round + 1), count);
}

static SHOWN uint32_t move_buffer(char *to, const char *from)
{
	for (size_t at = 0; at < BUFFER_BYTES; at += PIECE_BYTES)
		copy_bytes(to + at, from + at, PIECE_BYTES);
	return checksum(to, BUFFER_BYTES);
}

static SHOWN uint32_t round_trip(char *to, char *from, unsigned round)
{
	fill(from, BUFFER_BYTES, round);
	return move_buffer(to, from);
}

int main(void)
{
	char *from = malloc(BUFFER_BYTES), *to = malloc(BUFFER_BYTES);
	struct timespec start, end;
	uint32_t sum = 0;

	const char *option = getenv("mended");

	mended = option && strcmp(option, "0");
	if (!from || !to)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (unsigned round = 0; round < ROUNDS; round++)
		sum ^= round_trip(to, from, round);
	clock_gettime(CLOCK_MONOTONIC, &end);
	long microseconds =
		(end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000;
	printf("slow-memcpy: %u KiB copied in %ld us, checksum %08x\n",
	       ROUNDS * BUFFER_BYTES / 1024, microseconds, sum);
	return 0;
}
