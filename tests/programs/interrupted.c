/* SPDX-License-Identifier: MIT */
/*
 * Processes that drop their rights in the handler of a signal, which has interrupted a traced call mostly, and stay in
 * it for a while. Beside them one of the same user calls what is traced. Says how many calls were made.
 *
 *	interrupted PROCESSES
 */
#define _GNU_SOURCE
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/programs/recorder_memory.h"

#define USER	65534
#define STAY_MS 60

static struct shared {
	int over;
	unsigned long neighbour;
	unsigned long interrupted;
} * shared;
static volatile sig_atomic_t dropped;

__attribute__((noinline)) int interrupted_work(int x)
{
	__asm__ volatile("" : : : "memory");
	return x + 1;
}

__attribute__((noinline)) int neighbour_work(int x)
{
	__asm__ volatile("" : : : "memory");
	return x + 2;
}

QUIET static void drop(void)
{
	if (setgroups(0, NULL) || setresgid(USER, USER, USER) || setresuid(USER, USER, USER))
		_exit(4);
}

QUIET static void nap_ms(long ms)
{
	nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
}

QUIET static void on_alarm(int signal)
{
	(void)signal;
	drop();
	nap_ms(STAY_MS);
	dropped = 1;
}

QUIET static int be_neighbour(void)
{
	unsigned long calls = 1;
	int sum = neighbour_work(0);

	drop();
	while (!__atomic_load_n(&shared->over, __ATOMIC_SEQ_CST)) {
		sum = neighbour_work(sum);
		if (++calls % 64 == 0)
			nap_ms(1);
	}
	shared->neighbour = calls;
	return sum < 0;
}

QUIET static int be_interrupted(int number)
{
	struct itimerval once = { { 0, 0 }, { 0, 3000 + number * 7 } };
	unsigned long calls = 0;
	int sum = 0, rest = 1000;

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &once, NULL);
	for (; rest; rest -= dropped, calls++)
		sum = interrupted_work(sum);
	shared->interrupted += calls; /* one at a time */
	return sum < 0;
}

int main(int argc, char **argv)
{
	const int processes = argc == 2 ? atoi(argv[1]) : 0;
	int failed = 0, status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (fork() == 0)
		_exit(be_neighbour());
	nap_ms(200);
	for (int i = 0; i < processes; i++) {
		const pid_t pid = fork();

		if (pid == 0)
			_exit(be_interrupted(i));
		failed += waitpid(pid, &status, 0) != pid || status != 0;
	}
	__atomic_store_n(&shared->over, 1, __ATOMIC_SEQ_CST);
	failed += wait(&status) < 0 || status != 0;
	printf("interrupted_work %lu neighbour_work %lu\n", shared->interrupted, shared->neighbour);
	return failed;
}
