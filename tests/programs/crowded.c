/* SPDX-License-Identifier: MIT */
/*
 * Two small stacks side by side, whose calls stand in one context: the first coroutine, on the upper one, goes to the
 * second one by a switch that no library knows, for good. The second one is preempted at an instruction of its way out
 * of a call: the handler of SIGTRAP switches away. A third one begins on the upper stack, and the second one goes on.
 *
 *	crowded N BYTES		at the N-th instruction after the call's body, on stacks of that size
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "tests/programs/preempt.h"

/* switch.S */
void switch_stack(void **from, void *to);
void *prepare_stack(void *top, void (*start)(void));

static ucontext_t third;
static void *main_pointer, *first_pointer, *second_pointer;
static volatile int done;

CALL long goes_to_second(long n)
{
	switch_stack(&first_pointer, second_pointer);
	return n + 1;
}

CALL long left_for_good(long n)
{
	swapcontext(&third, &scheduler);
	return n + 2;
}

static void first_body(void)
{
	goes_to_second(1);
	abort();
}

static void second_body(void)
{
	void *here;
	long sum = stepped(leaf(leaf(0)));

	clear_trap_flag();
	for (int i = 0; i < 100; i++)
		sum = leaf(sum);
	if (sum != 103)
		abort();
	done = 1;
	if (preempt_count)
		swapcontext(&preempted, &scheduler);
	switch_stack(&here, main_pointer);
	abort();
}

static void third_body(void)
{
	left_for_good(1);
	abort();
}

int main(int argc, char **argv)
{
	const size_t bytes = argc > 2 ? (size_t)atoi(argv[2]) : 4096;
	static volatile int begun;
	static char *stacks;

	stacks = mmap(NULL, 3 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	preempt_at_instruction(argc > 1 ? atoi(argv[1]) : 10);
	leaf(0);
	second_pointer = prepare_stack(stacks + 2 * bytes, second_body);
	first_pointer = prepare_stack(stacks + 3 * bytes, first_body);
	getcontext(&scheduler);
	if (!begun) {
		begun = 1;
		switch_stack(&main_pointer, first_pointer);
	}
	if (preempt_count && !done) {
		make(&third, stacks + 2 * bytes, bytes, third_body);
		swapcontext(&scheduler, &third);
		swapcontext(&scheduler, &preempted);
	}
	puts(done ? "done" : "not done");
	return 0;
}
