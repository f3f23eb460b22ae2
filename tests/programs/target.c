/* SPDX-License-Identifier: MIT */
/*
 * What others start: makes ARG calls and ends with that number.
 */
#include "tests/programs/count.h"
#include <stdio.h>
#include <stdlib.h>

static volatile long sum;

COUNTED void target_leaf(long n)
{
	ENTER();
	sum += n;
	LEAVE();
}

COUNTED void target_work(int n)
{
	ENTER();
	for (int i = 0; i < n; i++)
		target_leaf(i);
	LEAVE();
}

int main(int argc, char **argv)
{
	ENTER();
	int n = argc > 1 ? atoi(argv[1]) : 10;
	target_work(n);
	printf("target %d %ld\n", n, sum);
	LEAVE();
	return n & 127;
}
