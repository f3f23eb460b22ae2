/* SPDX-License-Identifier: MIT */
/*
 * Calls as Linux makes them in poll(), by the same names and in the same order of addresses: a line
 * that is read says of how many file descriptors. And an event with the name and the fields of one of
 * Linux'; "rename NAME SCORE" makes it.
 */
#include <graftrace/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

FUNCTION rename_task(int pid, const char *from, const char *to, short score)
{
	GRAFTRACE_EVENT(task, task_rename, GRAFTRACE_INT(int, pid, pid),
			GRAFTRACE_STRING(oldcomm, from), GRAFTRACE_STRING(newcomm, to),
			GRAFTRACE_INT(short, oom_score_adj, score));
}

/* "rename NAME SCORE" */
static void rename_as(const char *line)
{
	static char before[16] = "init", name[16];
	int score = 0;

	sscanf(line, "rename %15s %d", name, &score);
	rename_task(1, before, name, (short)score);
	strcpy(before, name);
}

int main(void)
{
	char line[64];

	setvbuf(stdout, NULL, _IOLBF, 0); /* a line is one write */
	puts("ready");
	if (getenv("RENAME"))
		rename_task(1, "a", "b", 0);
	while (fgets(line, sizeof(line), stdin)) {
		if (line[0] == 'r')
			rename_as(line);
		else
			__x64_sys_poll(atoi(line));
		puts("done");
	}
	return 0;
}
