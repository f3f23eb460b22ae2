/* SPDX-License-Identifier: MIT */
/*
 * A coroutine is preempted while its only call is on its way in or out, at an instruction of a second call's way
 * out, which a handler makes there: the handler of SIGTRAP switches away. Then another coroutine begins on the next
 * stack, is left in its call for good, and the first one goes on. Signals come at random instants.
 *
 *	preempted N		at the N-th instruction after the second call's body
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES (32 * 1024ul)
#define ROUNDS	    200
#define CALL	    __attribute__((noinline, patchable_function_entry(5)))
#define NO_CALL	    __attribute__((noinline))

static ucontext_t scheduler, first, other;
static volatile int in_first, is_over, rounds, is_asked;
static volatile int at, traps;
static pid_t main_tid;

NO_CALL static void set_trap_flag(void)
{
	__asm__ volatile("pushf; orq $0x100, (%%rsp); popf" : : : "memory", "cc");
}

NO_CALL static void clear_trap_flag(void)
{
	__asm__ volatile("pushf; andq $~0x100, (%%rsp); popf" : : : "memory", "cc");
}

CALL long leaf(long n)
{
	__asm__ volatile("");
	return n + 1;
}

CALL long stepped(long n)
{
	set_trap_flag();
	return n + 1;
}

CALL long left_for_good(long n)
{
	swapcontext(&other, &scheduler);
	return n + 2;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	if (traps++ != at)
		return;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100l;
	swapcontext(&first, &scheduler);
}

static void on_ask(int signal)
{
	int error = errno;

	(void)signal;
	if (in_first) {
		leaf(1);
		leaf(2);
		leaf(3);
		traps = 0;
		stepped(1);
		clear_trap_flag();
		leaf(4);
		rounds++;
	}
	is_asked = 0;
	errno = error;
}

static void first_body(void)
{
	in_first = 1;
	while (rounds < ROUNDS)
		leaf(0);
	in_first = 0;
	swapcontext(&first, &scheduler);
}

static void other_body(void)
{
	left_for_good(1);
	abort();
}

static void *ask(void *unused)
{
	unsigned seed = (unsigned)main_tid;

	while (!is_over) {
		if (!in_first || is_asked)
			continue;
		is_asked = 1;
		for (volatile int i = rand_r(&seed) % 3000; i > 0; i--)
			;
		syscall(SYS_tgkill, getpid(), main_tid, SIGUSR1);
	}
	return unused;
}

static void make(ucontext_t *coroutine, char *stack, void (*body)(void))
{
	getcontext(coroutine);
	coroutine->uc_stack.ss_sp = stack;
	coroutine->uc_stack.ss_size = STACK_BYTES;
	coroutine->uc_link = NULL;
	makecontext(coroutine, body, 0);
}

int main(int argc, char **argv)
{
	struct sigaction trapped = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	struct sigaction asked = { .sa_handler = on_ask };
	char *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	at = argc > 1 ? atoi(argv[1]) : 10;
	sigaction(SIGTRAP, &trapped, NULL);
	sigaction(SIGUSR1, &asked, NULL);
	main_tid = (pid_t)syscall(SYS_gettid);
	make(&first, stacks, first_body);
	pthread_create(&thread, NULL, ask, NULL);
	do {
		swapcontext(&scheduler, &first);
		make(&other, stacks + STACK_BYTES, other_body);
		swapcontext(&scheduler, &other);
	} while (rounds < ROUNDS || in_first);
	is_over = 1;
	pthread_join(thread, NULL);
	puts("done");
	return 0;
}
