/* SPDX-License-Identifier: MIT */
/* Says again and again what a call of an empty function costs, in clock ticks. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CALLS	 10000
#define PAUSE_US 20000

/* The clock that the tracer reads too; with `-icount shift=0` it counts instructions. */
static inline uint64_t ticks(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

__attribute__((noinline)) void call_cost_empty(void)
{
	__asm__ volatile("");
}

/* The middle of three, so that an interrupt in one of them does not count. */
static uint64_t middle(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t low = a < b ? a : b, high = a < b ? b : a;
	return c < low ? low : c > high ? high : c;
}

int main(void)
{
	const char *limit = getenv("rounds");
	for (int rounds = limit ? atoi(limit) : 1000000; rounds > 0; rounds--) {
		uint64_t took[3];
		for (int i = 0; i < 3; i++) {
			uint64_t start = ticks();
			for (int call = 0; call < CALLS; call++)
				call_cost_empty();
			took[i] = ticks() - start;
		}
		uint64_t tenths = middle(took[0], took[1], took[2]) * 10 / CALLS;
		printf("call-cost: %lu.%lu ticks a call\n", tenths / 10, tenths % 10);
		usleep(PAUSE_US);
	}
	return 0;
}
