/* SPDX-License-Identifier: MIT */
/*
 * Jumps out of nested calls, and what is called right after them: at another depth, and deeper on
 * the stack than the frames that were jumped over (alloca), where only the slot of an old frame
 * could tell that they are gone. The first argument names the kind of jump.
 */
#include "tests/programs/count.h"
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static jmp_buf plain;
static sigjmp_buf with_mask;
static void *builtin[5];
static ucontext_t context;
static const char *kind;
static int jumps_back;

COUNTED void leaf(int n)
{
	ENTER();
	__asm__ volatile("" ::"r"(n));
	LEAVE();
}

/* Switches stacks by itself: where that is seen, only its entry is recorded. */
COUNTED void builtin_jump(void)
{
	ENTER();
	__builtin_longjmp(builtin, 1);
}

COUNTED void jump(int n)
{
	ENTER();
	leaf(n);
	if (n < 0) {
		LEAVE();
		return;
	}
	if (!strcmp(kind, "longjmp"))
		longjmp(plain, n);
	if (!strcmp(kind, "_longjmp"))
		_longjmp(plain, n);
	if (!strcmp(kind, "siglongjmp"))
		siglongjmp(with_mask, n);
	if (!strcmp(kind, "builtin"))
		builtin_jump();
	if (!strcmp(kind, "setcontext"))
		setcontext(&context);
	raise(SIGUSR1);
	puts("not reached");
	exit(1);
}

COUNTED void handler(int signal)
{
	/* On an alternate stack it is in a context of its own. */
	if (!strcmp(kind, "signal-alternate"))
		count_depth = 0;
	ENTER();
	leaf(signal);
	siglongjmp(with_mask, 1 + signal);
}

COUNTED void nest(int levels, int n)
{
	ENTER();
	if (levels)
		nest(levels - 1, n);
	else
		jump(n);
	leaf(n);
	LEAVE();
}

COUNTED void deeper(int bytes, int levels)
{
	ENTER();
	volatile char *room = alloca((size_t)bytes);
	room[0] = 1;
	if (levels)
		deeper(bytes, levels - 1);
	leaf(room[0]);
	LEAVE();
}

COUNTED void after_jump(int n)
{
	ENTER();
	leaf(n);
	LEAVE();
}

#define AFTER(n, depth)                                                             \
	do {                                                                        \
		count_depth = depth;                                                \
		jumps_back++;                                                       \
		if ((n)&1) {                                                        \
			volatile char *room = alloca(3000 + 16 * (size_t)((n)&63)); \
			room[0] = 0;                                                \
			after_jump(n);                                              \
		} else {                                                            \
			after_jump(n);                                              \
		}                                                                   \
		deeper(((n)&7) * 40 + 8, (n) % 5);                                  \
	} while (0)

COUNTED void by_setjmp(volatile int n)
{
	ENTER();
	volatile int depth = count_depth;
	if (!setjmp(plain))
		nest(n % 7, n);
	AFTER(n, depth);
	LEAVE();
}

COUNTED void by_underscore(volatile int n)
{
	ENTER();
	volatile int depth = count_depth;
	if (!_setjmp(plain))
		nest(n % 7, n);
	AFTER(n, depth);
	LEAVE();
}

COUNTED void by_sigsetjmp(volatile int n)
{
	ENTER();
	volatile int depth = count_depth;
	if (!sigsetjmp(with_mask, 1))
		nest(n % 7, n);
	AFTER(n, depth);
	LEAVE();
}

COUNTED void by_builtin(volatile int n)
{
	ENTER();
	volatile int depth = count_depth;
	if (!__builtin_setjmp(builtin))
		nest(n % 7, n);
	/* No library call tells that frames were left: the next call has to stand above them. */
	AFTER(n & ~1, depth);
	LEAVE();
}

COUNTED void by_context(volatile int n)
{
	ENTER();
	volatile int depth = count_depth, again = 0;
	getcontext(&context);
	if (!again) {
		again = 1;
		nest(n % 7, n);
	}
	AFTER(n, depth);
	LEAVE();
}

/* A jump over jumps: the inner target is left without being used. */
COUNTED void twice(volatile int n)
{
	ENTER();
	volatile int depth = count_depth;
	jmp_buf outer;
	memcpy(outer, plain, sizeof outer);
	kind = "longjmp";
	by_setjmp(n);
	if (!setjmp(plain))
		nest(9, n);
	AFTER(n, depth);
	memcpy(plain, outer, sizeof outer);
	LEAVE();
}

/* A loop that is left by a jump each time round, from ever other depths. */
COUNTED void loop(int rounds)
{
	ENTER();
	volatile int depth = count_depth;
	volatile int n = 0;
	setjmp(plain);
	count_depth = depth;
	if (n < rounds) {
		n++;
		nest(n % 11, n);
	}
	leaf(n);
	LEAVE();
}

int main(int argc, char **argv)
{
	static char alternate[1 << 16];
	ENTER();

	if (argc < 2)
		return 2;
	kind = argv[1];
	struct sigaction action = { .sa_handler = handler };
	if (!strcmp(kind, "signal-alternate")) {
		stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
		sigaltstack(&stack, NULL);
		action.sa_flags = SA_ONSTACK;
	}
	sigaction(SIGUSR1, &action, NULL);
	for (int n = 1; n <= 200; n++) {
		if (!strcmp(kind, "longjmp"))
			by_setjmp(n);
		else if (!strcmp(kind, "_longjmp"))
			by_underscore(n);
		else if (!strcmp(kind, "builtin"))
			by_builtin(n);
		else if (!strcmp(kind, "setcontext"))
			by_context(n);
		else if (!strcmp(kind, "twice"))
			twice(n), kind = "twice";
		else if (!strcmp(kind, "loop"))
			kind = "longjmp", loop(50), kind = "loop";
		else
			by_sigsetjmp(n);
	}
	printf("%s %d\n", kind, jumps_back);
	LEAVE();
	return 0;
}
