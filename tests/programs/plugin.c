/* SPDX-License-Identifier: MIT */
/*
 * A shared library that is loaded and unloaded many times; its constructor and destructor make
 * calls too. Compiled with COUNT_FAR: its counts live in the program.
 */
#include "tests/programs/count.h"

#ifndef PLUGIN
#define PLUGIN(name) plugin_##name
#endif

static volatile long state;

COUNTED void PLUGIN(leaf)(long n)
{
	ENTER();
	state += n;
	LEAVE();
}

COUNTED long PLUGIN(work)(long n, void (*back)(long))
{
	ENTER();
	for (long i = 0; i < n; i++)
		PLUGIN(leaf)(i);
	if (back)
		back(n);
	LEAVE();
	return state;
}

__attribute__((constructor)) COUNTED static void PLUGIN(constructor)(void)
{
	ENTER();
	PLUGIN(leaf)(1000);
	LEAVE();
}

__attribute__((destructor)) COUNTED static void PLUGIN(destructor)(void)
{
	ENTER();
	PLUGIN(leaf)(1);
	LEAVE();
}
