/* SPDX-License-Identifier: MIT */
/*
 * Runs a command and prints the most memory that it had at a time, in kB: the kernel's ru_maxrss
 * counts what the process had before its exec too, and this program has next to nothing.
 *
 *	peak COMMAND [ARGUMENT...]
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rusage usage;
	int status;
	pid_t pid;

	if (argc < 2)
		return 2;
	pid = fork();
	if (pid == 0) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0)
		return 1;
	printf("peak_kb=%ld\n", usage.ru_maxrss);
	return 0;
}
