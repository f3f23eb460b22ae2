/* SPDX-License-Identifier: MIT */
/* A program that marks what it does, by <graftrace/mark.h>. */
#include <graftrace/mark.h>
#include <stdio.h>

__attribute__((noinline)) static int work(int n)
{
	char text[80];

	graftrace_mark("begun");
	snprintf(text, sizeof(text), "part %d of \"all\"", n);
	graftrace_mark(text);
	graftrace_mark_value("left", 3 - n);
	return n + 1;
}

int main(void)
{
	int sum = 0;

	for (int i = 0; i < 3; i++)
		sum += work(i);
	printf("%d\n", sum);
	return 0;
}
