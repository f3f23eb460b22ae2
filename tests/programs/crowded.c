/* SPDX-License-Identifier: MIT */
/*
 * Two small stacks side by side, whose calls stand in one context: the first coroutine, on the upper one, goes to the
 * second one by a switch that no library knows, for good. The second one is preempted at an instruction of its way out
 * of a call: the handler of SIGTRAP switches away. A third one begins on the upper stack, and the second one goes on.
 *
 *	crowded N BYTES		at the N-th instruction after the call's body, on stacks of that size
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define CALL	__attribute__((noinline, patchable_function_entry(5)))
#define NO_CALL __attribute__((noinline))

/* switch.S */
void switch_stack(void **from, void *to);
void *prepare_stack(void *top, void (*start)(void));

static ucontext_t scheduler, second, third;
static void *main_pointer, *first_pointer, *second_pointer;
static volatile int at, traps, preempted, done;

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

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	if (traps++ != at)
		return;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100l;
	preempted = 1;
	swapcontext(&second, &scheduler);
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
	if (preempted)
		swapcontext(&second, &scheduler);
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
	struct sigaction trapped = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	const size_t bytes = argc > 2 ? (size_t)atoi(argv[2]) : 4096;
	static volatile int begun;
	static char *stacks;

	stacks = mmap(NULL, 3 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	at = argc > 1 ? atoi(argv[1]) : 10;
	sigaction(SIGTRAP, &trapped, NULL);
	leaf(0);
	second_pointer = prepare_stack(stacks + 2 * bytes, second_body);
	first_pointer = prepare_stack(stacks + 3 * bytes, first_body);
	getcontext(&scheduler);
	if (!begun) {
		begun = 1;
		switch_stack(&main_pointer, first_pointer);
	}
	if (preempted && !done) {
		getcontext(&third);
		third.uc_stack.ss_sp = stacks + 2 * bytes;
		third.uc_stack.ss_size = bytes;
		third.uc_link = NULL;
		makecontext(&third, third_body, 0);
		swapcontext(&scheduler, &third);
		swapcontext(&scheduler, &second);
	}
	puts(done ? "done" : "not done");
	return 0;
}
