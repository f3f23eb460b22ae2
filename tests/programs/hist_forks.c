/* SPDX-License-Identifier: MIT */
/* Five processes that make the same events at once. */
#include <graftrace/event.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 5

int main(void)
{
	int bad = 0, status;

	for (int child = 0; child < CHILDREN; child++) {
		if (fork() != 0)
			continue;
		for (int i = 0; i < 100; i++)
			GRAFTRACE_EVENT(shop, made, GRAFTRACE_INT(int, number, i),
					GRAFTRACE_INT(int, child, child));
		_exit(0);
	}
	for (int child = 0; child < CHILDREN; child++)
		bad |= wait(&status) < 0 || status != 0;
	puts(bad ? "bad" : "done");
	return bad;
}
