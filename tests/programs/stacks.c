/* SPDX-License-Identifier: MIT */
/*
 * Stacks that are left and entered in unusual ways: a coroutine that ends by going to another place
 * of the main stack than it was called from, switches that are tail jumps through a pointer,
 * stacks that are variables of the program's own functions, and a stack that overflows again and
 * again, at another byte each time, which the program handles; a handler that leaves calls by a
 * jump wherever it comes; and calls megabytes apart. The first argument names the kind.
 */
#include "tests/programs/count.h"
#include <alloca.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES 65536

static ucontext_t home, elsewhere, coroutine;
static volatile long total;

COUNTED void leaf(void)
{
	ENTER();
	total++;
	__asm__ volatile("");
	LEAVE();
}

COUNT_PLAIN static void prepare(void (*body)(void), void *stack, size_t bytes)
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = bytes;
	coroutine.uc_link = &home;
	makecontext(&coroutine, body, 0);
}

/* Its caller's depth is another stack's. */
COUNT_PLAIN __attribute__((noinline)) static void set_depth(int depth)
{
	__asm__ volatile("");
	count_depth = depth;
}

/* ---- a coroutine that leaves for an outer call of the stack that it was called from ---- */

COUNTED void leaves(void)
{
	ENTER();
	leaf();
	set_depth(3); /* of what round_trip calls */
	setcontext(&elsewhere);
}

COUNTED void enters(int levels, void *stack)
{
	ENTER();
	if (levels > 0) {
		enters(levels - 1, stack);
	} else {
		prepare(leaves, stack, STACK_BYTES);
		set_depth(0);
		swapcontext(&home, &coroutine);
	}
	puts("not reached");
	LEAVE();
}

COUNTED void round_trip(void *stack)
{
	ENTER();
	volatile int again = 0;
	getcontext(&elsewhere);
	if (!again) {
		again = 1;
		enters(3, stack);
	}
	leaf();
	LEAVE();
}

COUNTED void another_place(void)
{
	ENTER();
	static char stack[STACK_BYTES] __attribute__((aligned(16)));
	for (int i = 0; i < 40; i++) {
		set_depth(1 + 1);
		round_trip(stack);
	}
	LEAVE();
}

/* ---- switches by a tail jump through a pointer ---- */

static int (*volatile swap)(ucontext_t *, const ucontext_t *) = swapcontext;
static long turns;
static char turning_stack[STACK_BYTES] __attribute__((aligned(16)));

COUNTED int turn(ucontext_t *from, ucontext_t *to)
{
	ENTER();
	LEAVE();
	return swap(from, to);
}

COUNT_PLAIN __attribute__((noinline)) static void turning(void)
{
	for (;;) {
		turns++;
		turn(&coroutine, &home);
	}
}

COUNTED void tail_switches(long rounds)
{
	ENTER();
	struct pollfd input = { .fd = 0, .events = POLLIN };
	int depth = count_depth;
	prepare(turning, turning_stack, STACK_BYTES);
	/* rounds 0: until something can be read */
	for (long i = 0; rounds != 0 ? i < rounds : i % 1000 || poll(&input, 1, 0) == 0; i++) {
		/* Counted without depths: a tail call's caller has returned. */
		set_depth(0);
		turn(&home, &coroutine);
	}
	set_depth(depth);
	LEAVE();
}

/* ---- stacks that are variables ---- */

COUNTED void handler(int signal)
{
	/* a handler on a stack of its own is a context of its own */
	set_depth(0);
	ENTER();
	(void)signal;
	leaf();
	leaf();
	LEAVE();
}

COUNTED void raises(int levels)
{
	ENTER();
	int depth = count_depth;
	if (levels > 0)
		raises(levels - 1);
	else
		raise(SIGUSR1);
	set_depth(depth);
	leaf();
	LEAVE();
}

COUNTED void alternate_inside(size_t bytes)
{
	ENTER();
	char stack[STACK_BYTES] __attribute__((aligned(16)));
	stack_t alternate = { .ss_sp = stack, .ss_size = bytes };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 10; i++)
		raises(3 + i % 3);
	alternate.ss_flags = SS_DISABLE;
	sigaltstack(&alternate, NULL);
	LEAVE();
}

COUNTED void yields(void)
{
	ENTER();
	leaf();
	set_depth(2 + 3);
	swapcontext(&coroutine, &home);
	set_depth(2);
	leaf();
	LEAVE();
}

COUNTED void body(void)
{
	ENTER();
	yields();
	yields();
	LEAVE();
	set_depth(2 + 3);
}

COUNTED void resumes(int levels)
{
	ENTER();
	if (levels > 0) {
		resumes(levels - 1);
	} else {
		set_depth(0);
		swapcontext(&home, &coroutine);
		set_depth(2 + 3);
		leaf();
	}
	LEAVE();
}

COUNTED void coroutine_inside(void)
{
	ENTER();
	char stack[STACK_BYTES] __attribute__((aligned(16)));
	for (int i = 0; i < 5; i++) {
		prepare(body, stack, sizeof(stack));
		for (int k = 0; k < 3; k++)
			resumes(2);
	}
	LEAVE();
}

/* ---- an overflow that the program handles ---- */

static sigjmp_buf before_overflow;
static volatile int overflows;

COUNTED void caught(int signal)
{
	set_depth(0);
	ENTER();
	(void)signal;
	overflows++;
	siglongjmp(before_overflow, 1);
}

/* Its calls are not counted: how many there are room for differs. */
__attribute__((noinline)) static int endless(int n)
{
	volatile char room[24];
	room[0] = (char)n;
	n = endless(n + 1) + room[0];
	__asm__ volatile("");
	return n;
}

COUNTED void overflow(int shift)
{
	ENTER();
	volatile char *room = alloca(16 + (size_t)shift);
	room[0] = 1;
	if (!sigsetjmp(before_overflow, 1))
		endless(shift);
	set_depth(3);
	leaf();
	LEAVE();
}

COUNTED void overflow_all(void)
{
	ENTER();
	static char stack[STACK_BYTES];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = caught, .sa_flags = SA_ONSTACK };
	sigaltstack(&alternate, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	for (int i = 0; i < 200; i++)
		overflow(16 * (i % 256));
	printf("%d overflows\n", overflows);
	LEAVE();
}

/* ---- a handler that comes anywhere in the recording path, and leaves ---- */

static sigjmp_buf before_work;

static void leaves_handler(int signal)
{
	(void)signal;
	siglongjmp(before_work, 1);
}

COUNT_PLAIN static void start_timer(int round)
{
	struct itimerval timer = { { 0, 0 }, { 0, 100 + round % 37 } };
	setitimer(ITIMER_REAL, &timer, NULL);
}

COUNTED void works(int round)
{
	ENTER();
	start_timer(round);
	for (;;)
		leaf();
}

COUNTED void works_end(void)
{
	ENTER();
	leaf();
	LEAVE();
}

COUNTED void leave_all(void)
{
	ENTER();
	struct sigaction action = { .sa_handler = leaves_handler };
	sigaction(SIGALRM, &action, NULL);
	for (volatile int i = 0; i < 1000; i++) {
		if (sigsetjmp(before_work, 1))
			continue;
		if (i % 2 == 0)
			works(i);
		start_timer(i);
		for (;;)
			leaf();
	}
	works_end();
	LEAVE();
}

/* ---- calls far apart on one stack, with nothing traced between them ---- */

COUNT_PLAIN __attribute__((noinline)) static void leaf_below(size_t bytes)
{
	volatile char *room = alloca(bytes);
	room[0] = 1;
	leaf();
	room[0] = 2;
}

COUNTED void far_apart(void)
{
	ENTER();
	leaf();
	leaf_below(5600000);
	leaf();
	for (size_t bytes = 5500000; bytes > 100000; bytes -= 100000)
		leaf_below(bytes);
	LEAVE();
}

int main(int argc, char **argv)
{
	ENTER();
	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "another-place"))
		another_place();
	else if (!strcmp(argv[1], "tail-switches"))
		tail_switches(argc > 2 ? atol(argv[2]) : 0);
	else if (!strcmp(argv[1], "alternate-inside"))
		alternate_inside(STACK_BYTES);
	else if (!strcmp(argv[1], "small-alternate-inside"))
		alternate_inside(MINSIGSTKSZ + 4096);
	else if (!strcmp(argv[1], "overflows"))
		overflow_all();
	else if (!strcmp(argv[1], "leaves"))
		leave_all();
	else if (!strcmp(argv[1], "far-apart"))
		far_apart();
	else
		coroutine_inside();
	printf("total %ld, turned %s\n", total, turns > 0 ? "yes" : "no");
	LEAVE();
	return 0;
}
