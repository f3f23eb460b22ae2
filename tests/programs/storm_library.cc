/* SPDX-License-Identifier: MIT */
/* The library of storm.cc: exceptions pass through it, and it comes and goes. */
#include "tests/programs/storm.h"

struct guard {
	long *gone;
	~guard()
	{
		++*gone;
	}
};

extern "C" __attribute__((noinline)) long storm_inner(storm_callback *callback, long n, long *gone)
{
	guard guard = { gone };
	return callback(n) + 1;
}

extern "C" __attribute__((noinline)) long storm_pass(storm_callback *callback, long n, long *gone)
{
	guard guard = { gone };
	return storm_inner(callback, n, gone) + 1;
}

extern "C" __attribute__((noinline)) long storm_sum(long n)
{
	return n <= 0 ? 0 : n + storm_sum(n - 1);
}
