/* SPDX-License-Identifier: MIT */
/*
 * Coroutines: each has a stack and nested calls of its own, and yields from the depth of them.
 * Interleaved, finished, abandoned (the stack is used again), waiting beside such, moved between threads, on stacks in
 * the heap and in the program's own data; by makecontext and swapcontext, by setjmp and longjmp
 * between stacks, and by an assembly switch that no library knows. A coroutine's first function
 * runs at depth 0 of its context.
 */
#include "tests/programs/count.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES 65536
#define COROUTINES  8

/* switch.S: keeps what the calling convention wants kept, and the stack pointer in *from. */
void switch_stack(void **from, void *to);
void *prepare_stack(void *top, void (*start)(void));

struct coroutine {
	ucontext_t context, back;
	jmp_buf jump, back_jump;
	int started;
	void *stack_pointer, *back_pointer;
	void *stack;
	int depth, back_depth; /* count_depth while the other one runs */
	int n, done;
	long value;
};

static int by_assembly, by_jump;
static __thread struct coroutine *running;
static char data_stacks[COROUTINES][STACK_BYTES] __attribute__((aligned(16)));
static volatile long total;

/* The address of a thread's own variable must not be kept over a switch. */
COUNT_PLAIN __attribute__((noinline)) static struct coroutine *self(void)
{
	struct coroutine *mine = running;
	__asm__ volatile("" : "+r"(mine));
	return mine;
}

COUNT_PLAIN __attribute__((noinline)) static void set_depth(int depth)
{
	__asm__ volatile("");
	count_depth = depth;
}

COUNT_PLAIN __attribute__((noinline)) static int get_depth(void)
{
	__asm__ volatile("");
	return count_depth;
}

COUNTED void leaf(long n)
{
	ENTER();
	total += n;
	LEAVE();
}

/* No ENTER()'s pointer to thread-local storage lives across the switch in these two. */
COUNT_PLAIN __attribute__((noinline)) static void switch_away(struct coroutine *c)
{
	c->depth = get_depth();
	if (by_assembly) {
		switch_stack(&c->stack_pointer, c->back_pointer);
	} else if (by_jump) {
		if (!_setjmp(c->jump))
			_longjmp(c->back_jump, 1);
	} else {
		swapcontext(&c->context, &c->back);
	}
	set_depth(c->depth);
}

COUNT_PLAIN __attribute__((noinline)) static void switch_in(struct coroutine *c)
{
	struct coroutine *before = self();
	c->back_depth = get_depth();
	set_depth(c->depth);
	running = c;
	if (by_assembly) {
		switch_stack(&c->back_pointer, c->stack_pointer);
	} else if (by_jump) {
		if (!_setjmp(c->back_jump)) {
			if (c->started)
				_longjmp(c->jump, 1);
			c->started = 1;
			setcontext(&c->context);
		}
	} else {
		swapcontext(&c->back, &c->context);
	}
	running = before;
	set_depth(c->back_depth);
}

COUNTED void yield(long value)
{
	ENTER();
	struct coroutine *c = self();
	c->value = value;
	leaf(value);
	switch_away(c);
	leaf(1);
	set_depth(get_depth() - 1);
}

COUNTED void resume(struct coroutine *c)
{
	ENTER();
	leaf(c->n);
	switch_in(c);
	leaf(2);
	set_depth(get_depth() - 1);
}

COUNTED void walk(int levels, int n)
{
	ENTER();
	leaf(levels);
	if (levels) {
		walk(levels - 1, n);
		if (levels & 1)
			yield(levels * 100 + n);
		walk(levels - 1, n + 1);
	} else {
		yield(n);
	}
	set_depth(get_depth() - 1);
}

COUNTED void body(void)
{
	ENTER();
	struct coroutine *c = self();
	walk(2 + c->n % 3, c->n);
	leaf(3);
	self()->done = 1;
	set_depth(get_depth() - 1);
}

/* Where the others than ucontext's start: nothing to return to. */
COUNT_PLAIN static void body_and_stay(void)
{
	body();
	for (;;)
		switch_away(self());
}

COUNT_PLAIN static void start(struct coroutine *c, int n, void *stack)
{
	memset(c, 0, sizeof *c);
	c->n = n;
	c->stack = stack;
	if (by_assembly) {
		c->stack_pointer = prepare_stack((char *)stack + STACK_BYTES, body_and_stay);
		return;
	}
	getcontext(&c->context);
	c->context.uc_stack.ss_sp = stack;
	c->context.uc_stack.ss_size = STACK_BYTES;
	c->context.uc_link = &c->back;
	makecontext(&c->context, by_jump ? body_and_stay : body, 0);
}

COUNT_PLAIN static void *fresh_stack(int n)
{
	if (n % 3 == 0)
		return data_stacks[n % COROUTINES];
	if (n % 3 == 1)
		return malloc(STACK_BYTES);
	return mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

COUNT_PLAIN static void drop_stack(int n, void *stack)
{
	if (n % 3 == 1)
		free(stack);
	else if (n % 3 == 2)
		munmap(stack, STACK_BYTES);
}

COUNTED void interleaved(void)
{
	ENTER();
	static struct coroutine all[COROUTINES];
	int left = COROUTINES;
	long sum = 0;
	for (int i = 0; i < COROUTINES; i++)
		start(&all[i], i, fresh_stack(i));
	while (left) {
		for (int i = 0; i < COROUTINES; i++) {
			if (all[i].done)
				continue;
			resume(&all[i]);
			if (all[i].done)
				left--;
			else
				sum = sum * 31 + all[i].value;
			leaf(4);
		}
	}
	for (int i = 0; i < COROUTINES; i++)
		drop_stack(i, all[i].stack);
	printf("interleaved %ld\n", sum);
	LEAVE();
}

/* Left in the middle of their calls; their stacks go to the next ones. */
COUNTED void abandoned(void)
{
	ENTER();
	static struct coroutine all[COROUTINES];
	long sum = 0;
	for (int round = 0; round < 40; round++) {
		int i = round % COROUTINES;
		void *stack = fresh_stack(i);
		start(&all[i], i, stack);
		for (int steps = 0; steps <= round % 6 && !all[i].done; steps++) {
			resume(&all[i]);
			sum = sum * 17 + all[i].value;
		}
		drop_stack(i, stack);
		leaf(5);
	}
	printf("abandoned %ld\n", sum);
	LEAVE();
}

/* Hundreds wait in the midst of their calls, each on a stack that one was left on before, while thousands
 * are left on others, in the heap and mapped; then those that wait go on to their ends. */
COUNTED void waiting(void)
{
	ENTER();
	enum { WAIT = 600, LEFT_EACH = 6 };
	static struct coroutine all[WAIT], left;
	long sum = 0;
	for (int i = 0; i < WAIT; i++) {
		void *stack = fresh_stack(3 * i + 1);
		start(&left, i, stack);
		resume(&left);
		start(&all[i], i, stack);
		for (int steps = 0; steps <= i % 3; steps++)
			resume(&all[i]);
		for (int n = 0; n < LEFT_EACH; n++) {
			void *other = fresh_stack(3 * n + 1 + n % 2);
			start(&left, n, other);
			resume(&left);
			drop_stack(3 * n + 1 + n % 2, other);
		}
	}
	for (int i = WAIT; i-- > 0;) {
		while (!all[i].done)
			resume(&all[i]);
		sum = sum * 17 + all[i].value;
		drop_stack(1, all[i].stack);
	}
	printf("waiting %ld\n", sum);
	LEAVE();
}

/* Ping-pong: two threads take the same coroutines in turn. */
static struct coroutine shared[COROUTINES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn;

COUNTED void *taker(void *argument)
{
	ENTER();
	long mine = (long)argument;
	int live = 1;
	while (live) {
		pthread_mutex_lock(&lock);
		while (turn % 3 != mine)
			pthread_cond_wait(&turned, &lock);
		live = 0;
		for (int i = 0; i < COROUTINES; i++)
			if (!shared[i].done) {
				live = 1;
				resume(&shared[i]);
			}
		turn++;
		pthread_cond_broadcast(&turned);
		pthread_mutex_unlock(&lock);
	}
	set_depth(get_depth() - 1);
	return NULL;
}

COUNTED void moved(void)
{
	ENTER();
	pthread_t threads[3];
	for (int i = 0; i < COROUTINES; i++)
		start(&shared[i], i, fresh_stack(i));
	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, taker, (void *)i);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < COROUTINES; i++)
		drop_stack(i, shared[i].stack);
	printf("moved %ld\n", total);
	LEAVE();
}

/* A coroutine in a coroutine, and a thousand that only begin and end. */
COUNTED void many(void)
{
	ENTER();
	static struct coroutine one;
	for (int i = 0; i < 1000; i++) {
		void *stack = fresh_stack(i);
		start(&one, 0, stack);
		while (!one.done)
			resume(&one);
		drop_stack(i, stack);
	}
	printf("many %ld\n", total);
	LEAVE();
}

int main(int argc, char **argv)
{
	ENTER();
	if (argc < 3)
		return 2;
	by_assembly = !strcmp(argv[1], "assembly");
	by_jump = !strcmp(argv[1], "jump");
	if (!strcmp(argv[2], "interleaved"))
		interleaved();
	else if (!strcmp(argv[2], "abandoned"))
		abandoned();
	else if (!strcmp(argv[2], "waiting"))
		waiting();
	else if (!strcmp(argv[2], "moved"))
		moved();
	else
		many();
	printf("total %ld\n", total);
	LEAVE();
	return 0;
}
