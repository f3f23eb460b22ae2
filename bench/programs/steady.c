/* SPDX-License-Identifier: MIT */
/*
 * The same work over and over, with its pace written down: from the lines it prints one sees
 * whether anything slowed it meanwhile.
 *
 *	steady SECONDS
 *
 * About every 20 ms it prints `NANOSECONDS UNITS`: the monotonic clock and how much was done.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

__attribute__((noinline)) unsigned leaf(unsigned x)
{
	return x * 1664525u + 1013904223u;
}

__attribute__((noinline)) unsigned branch(unsigned x)
{
	for (int i = 0; i < 8; i++)
		x = leaf(x) ^ (x >> 3);
	return x;
}

int main(int argc, char **argv)
{
	uint64_t begin = now_ns(), last = begin, end, units = 0;
	unsigned x = 1;

	end = begin + (uint64_t)(argc > 1 ? atoi(argv[1]) : 1) * 1000000000u;
	for (uint64_t now = begin; now < end; now = now_ns()) {
		for (int i = 0; i < 1000; i++)
			x = branch(x);
		units++;
		if (now - last >= 20000000u) {
			printf("%llu %llu\n", (unsigned long long)now, (unsigned long long)units);
			fflush(stdout);
			last = now;
		}
	}
	return x == 0;
}
