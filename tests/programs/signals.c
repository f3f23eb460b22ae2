/* SPDX-License-Identifier: MIT */
/*
 * Signal handlers that make traced calls: raised from nested calls, nested three deep, on the
 * normal and on an alternate stack, in threads, after a fault, and in a storm of timers that come
 * anywhere. The first argument names the way.
 */
#include "tests/programs/count.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile long sum;
static volatile sig_atomic_t storms;
static void *page;
static int alternate;
static __thread int outermost;

/* A handler on an alternate stack is in a context of its own: its calls begin at depth 0. */
COUNT_INLINE int enter_stack(void)
{
	int depth = count_depth;
	if (alternate && outermost++ == 0)
		count_depth = 0;
	return depth;
}

COUNT_INLINE void leave_stack(int depth)
{
	if (alternate && --outermost == 0)
		count_depth = depth;
}

COUNTED void leaf(long n)
{
	ENTER();
	sum += n;
	LEAVE();
}

COUNTED void third(int signal)
{
	ENTER();
	leaf(signal);
	LEAVE();
}

COUNTED void second(int signal)
{
	ENTER();
	leaf(signal);
	raise(SIGRTMIN + 2);
	leaf(signal);
	LEAVE();
}

COUNTED void first(int signal)
{
	int depth = enter_stack();
	ENTER();
	int kept = errno;
	leaf(signal);
	raise(SIGRTMIN + 1);
	leaf(signal);
	errno = kept;
	LEAVE();
	leave_stack(depth);
}

COUNTED void raises(int levels)
{
	ENTER();
	leaf(levels);
	if (levels)
		raises(levels - 1);
	else
		raise(SIGRTMIN);
	leaf(levels);
	LEAVE();
}

COUNTED void fault(int signal, siginfo_t *info, void *context)
{
	int depth = enter_stack();
	ENTER();
	(void)context;
	leaf(signal);
	if (info->si_addr == page)
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
	LEAVE();
	leave_stack(depth);
}

COUNTED long touches(int levels)
{
	ENTER();
	long r = levels ? touches(levels - 1) : ++*(volatile long *)page;
	leaf(r);
	LEAVE();
	return r;
}

/* The handler changes where the interrupted code goes on. */
COUNTED void skip(int signal, siginfo_t *info, void *context)
{
	int depth = enter_stack();
	ENTER();
	(void)info;
	leaf(signal);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2; /* ud2 */
	LEAVE();
	leave_stack(depth);
}

COUNTED void stumbles(int n)
{
	ENTER();
	__asm__ volatile("ud2");
	leaf(n);
	LEAVE();
}

/* In the storm nobody knows how deep they come. */
COUNTED void storm_leaf(long n)
{
	ENTER_ANYWHERE();
	__atomic_fetch_add((long *)&sum, n & 0, __ATOMIC_RELAXED);
}

COUNTED void storm_work(int levels)
{
	ENTER_ANYWHERE();
	if (levels) {
		storm_work(levels - 1);
		storm_work(levels - 1);
	}
	storm_leaf(levels);
}

COUNTED void storm(int signal)
{
	ENTER_ANYWHERE();
	storms++;
	storm_work(2);
	storm_leaf(signal);
}

COUNTED void weather(int wanted)
{
	ENTER_ANYWHERE();
	while (storms < wanted)
		storm_work(5);
}

COUNTED void *thread(void *argument)
{
	ENTER();
	if (argument) {
		stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
		sigaltstack(&stack, NULL);
	}
	for (int i = 0; i < 30; i++)
		raises(i % 5);
	LEAVE();
	return NULL;
}

static void on(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	sigaction(signal, &action, NULL);
}

COUNT_PLAIN static timer_t timer(int signal, long ns)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal };
	struct itimerspec when = { { 0, ns }, { 0, ns } };
	timer_t made;
	timer_create(CLOCK_MONOTONIC, &event, &made);
	timer_settime(made, 0, &when, NULL);
	return made;
}

int main(int argc, char **argv)
{
	ENTER();
	if (argc < 2)
		return 2;
	const char *kind = argv[1];
	alternate = strstr(kind, "alternate") != NULL;
	if (alternate) {
		stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
		sigaltstack(&stack, NULL);
	}
	int flags = alternate ? SA_ONSTACK : 0;
	on(SIGRTMIN, first, flags);
	on(SIGRTMIN + 1, second, flags);
	on(SIGRTMIN + 2, third, flags);
	if (!strncmp(kind, "raise", 5)) {
		for (int i = 0; i < 200; i++) {
			errno = i;
			raises(i % 7);
			if (errno != i)
				printf("errno %d for %d\n", errno, i);
		}
		printf("raised %ld\n", sum);
	} else if (!strncmp(kind, "thread", 6)) {
		pthread_t threads[4];
		for (int i = 0; i < 4; i++) {
			pthread_create(&threads[i], NULL, thread, alternate ? &threads : NULL);
			pthread_join(threads[i], NULL);
		}
		printf("threads %ld\n", sum);
	} else if (!strncmp(kind, "fault", 5)) {
		struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO | flags };
		sigaction(SIGSEGV, &action, NULL);
		page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (int i = 0; i < 50; i++) {
			mprotect(page, 4096, PROT_READ);
			touches(i % 5);
		}
		action.sa_sigaction = skip;
		sigaction(SIGILL, &action, NULL);
		for (int i = 0; i < 20; i++)
			stumbles(i);
		printf("faults %ld\n", sum);
	} else if (!strncmp(kind, "storm", 5)) {
		on(SIGALRM, storm, flags | SA_RESTART | (alternate ? 0 : SA_NODEFER));
		on(SIGUSR1, storm, flags | SA_RESTART);
		on(SIGUSR2, storm, flags | SA_RESTART);
		timer_t timers[3] = { timer(SIGALRM, 170000), timer(SIGUSR1, 210000),
				      timer(SIGUSR2, 330000) };
		weather(300);
		for (int i = 0; i < 3; i++)
			timer_delete(timers[i]);
		printf("storm over\n");
	} else {
		return 2;
	}
	LEAVE();
	return 0;
}
