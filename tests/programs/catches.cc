/* SPDX-License-Identifier: MIT */
/*
 * Throws and catches, at least so many rounds as the argument says and until its input ends. Says
 * how many clean-ups are missing.
 */
#include <poll.h>
#include <stdexcept>
#include <stdio.h>
#include <stdlib.h>

static long cleaned;

struct cleanup {
	~cleanup() { cleaned++; }
};

__attribute__((noinline)) static long thrower(long n)
{
	cleanup here;

	if (n % 3 != 0)
		throw std::runtime_error("odd");
	return n;
}

__attribute__((noinline)) static long middle(long n)
{
	cleanup here;

	return thrower(n) + 1;
}

int main(int, char **arguments)
{
	const long least = atol(arguments[1]);
	struct pollfd input = { 0, POLLIN, 0 };
	long rounds = 0, caught = 0;

	for (; rounds < least || poll(&input, 1, 0) == 0; rounds++) {
		try {
			middle(rounds);
		} catch (const std::exception &) {
			caught++;
		}
	}
	printf("%ld missing, %s\n", rounds * 2 - cleaned,
	       caught == rounds - (rounds + 2) / 3 ? "all caught" : "some not caught");
	return 0;
}
