/* SPDX-License-Identifier: MIT */
/*
 * Executes itself again after so many milliseconds each, so many times, and then calls a function
 * until its input ends. Arguments: times, milliseconds.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

__attribute__((noipa)) long called(long n)
{
	return n * n * 5 + 12345;
}

int main(int count, char **arguments)
{
	const int times = count > 1 ? atoi(arguments[1]) : 0;
	struct pollfd input = { 0, POLLIN, 0 };
	char left[16];

	if (times > 0) {
		const long ms = atol(arguments[2]);

		nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
		snprintf(left, sizeof(left), "%d", times - 1);
		execl("/proc/self/exe", arguments[0], left, arguments[2], NULL);
		return 1;
	}
	while (poll(&input, 1, 1) == 0)
		called(1);
	return 7;
}
