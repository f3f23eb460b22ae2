/* SPDX-License-Identifier: MIT */
/*
 * Calls as Linux makes them in poll(), by the same names and in the same order of addresses: a line
 * that is read says of how many file descriptors.
 */
#include <stdio.h>
#include <stdlib.h>

#define FUNCTION __attribute__((noinline)) void

FUNCTION eventfd_poll(void);

FUNCTION poll_freewait(void)
{
	__asm__ volatile("");
}

FUNCTION do_sys_poll(int count)
{
	for (int i = 0; i < count; i++)
		eventfd_poll();
	poll_freewait();
	__asm__ volatile("");
}

FUNCTION __x64_sys_poll(int count)
{
	do_sys_poll(count);
	__asm__ volatile("");
}

FUNCTION eventfd_poll(void)
{
	__asm__ volatile("");
}

int main(void)
{
	char line[64];

	setvbuf(stdout, NULL, _IOLBF, 0); /* a line is one write */
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		__x64_sys_poll(atoi(line));
		puts("done");
	}
	return 0;
}
