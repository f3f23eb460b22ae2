/* SPDX-License-Identifier: MIT */
/*
 * Walks its own stack from nested calls: by backtrace(), by the unwinder, by a debugger. Arguments:
 * backtrace, unwind, or debugger COMMAND… (run as a child, with this process's number as the last
 * argument, from the innermost call; so is what a second thread sees).
 */
#include "tests/programs/count.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

static char **arguments;
static const char *kind;

COUNTED static const char *name_of(void *address, char *text, size_t bytes)
{
	ENTER();
	Dl_info info;
	/* The byte before: a call may be the last instruction of a function. */
	if (dladdr((char *)address - 1, &info) && info.dli_sname)
		snprintf(text, bytes, "%s", info.dli_sname);
	else
		snprintf(text, bytes, "?");
	LEAVE();
	return text;
}

COUNTED void by_backtrace(void)
{
	ENTER();
	void *frames[100];
	char text[100];
	int count = backtrace(frames, 100);
	for (int i = 0; i < count; i++)
		printf("%s\n", name_of(frames[i], text, sizeof text));
	printf("%d frames\n", count);
	LEAVE();
}

COUNTED _Unwind_Reason_Code each(struct _Unwind_Context *context, void *data)
{
	ENTER();
	char text[100];
	(void)data;
	printf("%s\n", name_of((void *)_Unwind_GetIP(context), text, sizeof text));
	LEAVE();
	return _URC_NO_REASON;
}

COUNTED void by_unwinder(void)
{
	ENTER();
	_Unwind_Backtrace(each, NULL);
	LEAVE();
}

COUNTED void by_debugger(void)
{
	ENTER();
	char number[20];
	snprintf(number, sizeof number, "%d", (int)getpid());
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	fflush(stdout);
	pid_t child = fork();
	if (!child) {
		int last = 0;
		while (arguments[last])
			last++;
		char **with = calloc((size_t)last + 2, sizeof *with);
		memcpy(with, arguments, (size_t)last * sizeof *with);
		with[last] = number;
		execvp(with[0], with);
		_exit(99);
	}
	int status;
	waitpid(child, &status, 0);
	printf("debugger ended with %d\n", status);
	LEAVE();
}

COUNTED void innermost(int a, const char *b)
{
	ENTER();
	if (!strcmp(kind, "backtrace"))
		by_backtrace();
	else if (!strcmp(kind, "unwind"))
		by_unwinder();
	else
		by_debugger();
	printf("%d %s\n", a, b);
	LEAVE();
}

COUNTED void nested(int levels)
{
	ENTER();
	if (levels)
		nested(levels - 1);
	else
		innermost(42, "text");
	printf("level %d\n", levels);
	LEAVE();
}

int main(int argc, char **argv)
{
	ENTER();
	if (argc < 2)
		return 2;
	kind = argv[1];
	arguments = argv + 2;
	nested(3);
	LEAVE();
	return 0;
}
