/* SPDX-License-Identifier: MIT */
/*
 * A little server of nobody, for two minutes: requests come all the time, and now and then one is
 * slow. Built without any preparation; see the README for how the slow function is found.
 */
#include <stdio.h>
#include <unistd.h>

#define ENTRIES 4096

static unsigned cache[ENTRIES];
static unsigned used;

unsigned parse(unsigned request)
{
	return request * 2654435761u >> 20;
}

/* Everything anew: this is what takes its time. */
unsigned reload(void)
{
	unsigned sum = 0;

	for (unsigned round = 0; round < 4000; round++)
		for (unsigned i = 0; i < ENTRIES; i++)
			sum += cache[i] = i * 40503u ^ round;
	used = 0;
	return sum;
}

unsigned look_up(unsigned key)
{
	if (++used % 100 == 0)
		return reload();
	return cache[key % ENTRIES];
}

unsigned handle_request(unsigned request)
{
	return look_up(parse(request));
}

int main(void)
{
	unsigned sum = 0;

	alarm(120);
	for (unsigned request = 0;; request++) {
		sum += handle_request(request);
		usleep(500);
		if (sum == 1)
			puts("never");
	}
}
