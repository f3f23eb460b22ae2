/* SPDX-License-Identifier: MIT */
/*
 * Forbids itself the time stamp counter, and goes on calling functions.
 *
 *   clock prctl|syscall	by that function of the C library, with another thread beside it
 *   clock before SECONDS	at once; then it calls functions for so long
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int stop;

__attribute__((noinline)) static int inner(volatile int n)
{
	return n ? 1 + inner(n - 1) : 0;
}

__attribute__((noinline)) static long forbid(int by_syscall)
{
	long sum = inner(2);

	if (by_syscall)
		syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	else
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	return sum + inner(3);
}

static void *other(void *sum)
{
	while (!stop)
		*(long *)sum = inner(5);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t id;
	long sum = 0, others = 0;
	int i;

	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "before") == 0) {
		time_t end = time(NULL) + atoi(argv[2]);

		prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
		puts("ready");
		fflush(stdout);
		while (time(NULL) < end)
			usleep(1000 * (unsigned)inner(10));
		return 0;
	}
	if (pthread_create(&id, NULL, other, &others))
		return 3;
	sum = forbid(strcmp(argv[1], "syscall") == 0);
	for (i = 0; i < 10000; i++)
		sum += inner(i % 10);
	stop = 1;
	pthread_join(id, NULL);
	printf("%ld\n", sum);
	return 0;
}
