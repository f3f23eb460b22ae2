/* SPDX-License-Identifier: MIT */
/*
 * A shared library that a program is linked with: calls into it, out of it again, through the
 * procedure linkage table, and from its constructor, before main.
 */
#include "tests/programs/library.h"
#include "tests/programs/count.h"

static volatile long state;

COUNTED void library_leaf(long n)
{
	ENTER();
	state += n;
	LEAVE();
}

COUNTED static long library_inner(int levels, long (*back)(long))
{
	ENTER();
	library_leaf(levels);
	long r = back(levels);
	if (levels)
		r += library_work(levels - 1, back);
	library_leaf(1);
	LEAVE();
	return r;
}

COUNTED long library_work(int levels, long (*back)(long))
{
	ENTER();
	long r = library_inner(levels, back) + state % 7;
	LEAVE();
	return r;
}

__attribute__((constructor)) COUNTED static void library_constructor(void)
{
	ENTER();
	library_leaf(3);
	LEAVE();
}
