/* SPDX-License-Identifier: MIT */
/*
 * Coroutines that a timer's handler takes turns with, at random instructions, in a way that no library knows.
 *
 *	turns registers SECONDS		the handler edits the registers that the kernel puts back
 *	turns assembly SECONDS		the handler switches stacks, and returns when its coroutine's turn comes again
 *
 * At the end each coroutine's sum must be that of its rounds.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CALL	   __attribute__((noinline, patchable_function_entry(5)))
#define COROUTINES 8
#define STACK	   (256 * 1024ul)
#define TURN_US	   40

static struct coroutine {
	gregset_t registers;
	void **sp;
	volatile uint64_t rounds, sum;
} coroutines[COROUTINES];
static volatile int current;
static time_t end;
static int by_registers;

void switch_stacks(void ***from, void **to);
__asm__(".text\n"
	".type switch_stacks, @function\n"
	"switch_stacks: push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret\n"
	".size switch_stacks, . - switch_stacks\n");

CALL uint64_t leaf(uint64_t n)
{
	__asm__ volatile("" : : : "memory");
	return n * 3 + 1;
}

CALL uint64_t mid(uint64_t n)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < 3; i++)
		sum += leaf(n + i);
	return sum;
}

static void work(int number)
{
	struct coroutine *const self = &coroutines[number];

	for (;;) {
		self->sum = self->sum * 5 + mid(self->sum);
		self->rounds++;
	}
}

/* One may have been stopped between its sum and its count. */
static int is_right(const struct coroutine *coroutine)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < coroutine->rounds; i++)
		sum = sum * 5 + 3 * (3 * sum + 3) + 3;
	return coroutine->sum == sum || coroutine->sum == sum * 5 + 3 * (3 * sum + 3) + 3;
}

static void finish(void)
{
	int wrong = 0;

	for (int i = 0; i < COROUTINES; i++)
		wrong += !is_right(&coroutines[i]) || coroutines[i].rounds == 0;
	printf("%d wrong\n", wrong);
	fflush(stdout);
	_exit(wrong != 0);
}

static void on_timer(int signal, siginfo_t *info, void *data)
{
	ucontext_t *const context = data;
	struct coroutine *const from = &coroutines[current];
	struct coroutine *const to = &coroutines[(current + 1) % COROUTINES];

	(void)signal, (void)info;
	if (time(NULL) >= end)
		finish();
	current = (current + 1) % COROUTINES;
	if (by_registers) {
		memcpy(from->registers, context->uc_mcontext.gregs, sizeof(gregset_t));
		memcpy(context->uc_mcontext.gregs, to->registers, sizeof(gregset_t));
	} else {
		switch_stacks(&from->sp, to->sp);
	}
}

static void begin(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	work(current);
}

static void make(int number, char *stack)
{
	struct coroutine *const self = &coroutines[number];
	greg_t *const registers = self->registers;
	uint16_t cs;

	/* six registers and where to go on, aligned as behind a call */
	self->sp = (void **)(stack + STACK) - 10;
	self->sp[6] = (void *)begin;
	__asm__("mov %%cs, %0" : "=r"(cs));
	registers[REG_RIP] = (greg_t)work;
	registers[REG_RDI] = number;
	registers[REG_RSP] = (greg_t)(stack + STACK - 8);
	registers[REG_EFL] = 0x202;
	registers[REG_CSGSFS] = (greg_t)(0x002b000000000000 | cs);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_timer, .sa_flags = SA_RESTART | SA_SIGINFO };
	struct itimerval timer = { { 0, TURN_US }, { 0, TURN_US } };
	void **nowhere;

	if (argc != 3)
		return 2;
	by_registers = strcmp(argv[1], "registers") == 0;
	end = time(NULL) + atoi(argv[2]);
	char *stacks = mmap(NULL, COROUTINES * STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < COROUTINES; i++)
		make(i, stacks + (size_t)i * STACK);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	switch_stacks(&nowhere, coroutines[0].sp);
	return 3;
}
