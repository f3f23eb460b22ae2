/* SPDX-License-Identifier: MIT */
/*
 * For programs whose coroutine is preempted at the N-th instruction of its way out of a call: that call, and the
 * handler of SIGTRAP that switches away there. Include it once.
 */
#ifndef GT_TESTS_PROGRAMS_PREEMPT_H
#define GT_TESTS_PROGRAMS_PREEMPT_H

#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#define CALL	__attribute__((noinline, patchable_function_entry(5)))
#define NO_CALL __attribute__((noinline))

static ucontext_t scheduler, preempted;
static volatile int preempt_at, preempt_traps,
	preempt_count; /* which instruction, how many so far; how often */

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

/* Whoever called it calls clear_trap_flag() then. */
CALL long stepped(long n)
{
	preempt_traps = 0;
	set_trap_flag();
	return n + 1;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	if (preempt_traps++ != preempt_at)
		return;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100l;
	preempt_count++;
	swapcontext(&preempted, &scheduler);
}

static void preempt_at_instruction(int number)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	preempt_at = number;
	sigaction(SIGTRAP, &action, NULL);
}

static void make(ucontext_t *coroutine, char *stack, size_t bytes, void (*body)(void))
{
	getcontext(coroutine);
	coroutine->uc_stack.ss_sp = stack;
	coroutine->uc_stack.ss_size = bytes;
	coroutine->uc_link = NULL;
	makecontext(coroutine, body, 0);
}

#endif
