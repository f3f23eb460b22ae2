/* SPDX-License-Identifier: MIT */
/*
 * Coroutines that leave their stacks for good in the midst of their calls, as most do at their ends.
 *
 *	abandoned same|fresh|last COUNT
 *
 * on one stack, or on a new one each time (at a hundred places); last: on one stack, and the switch is the last thing
 * that the outermost call does, which is over by then for who looks at the stack. Prints by how many kB the process's memory has
 * grown during the last nine tenths of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES (256 * 1024ul)
#define STACKS	    100

static ucontext_t starter, coroutine;

__attribute__((noinline)) int leaves(int n)
{
	swapcontext(&coroutine, &starter);
	return n + 1;
}

__attribute__((noinline)) int calls(int n)
{
	return leaves(n) + 1;
}

static void body(void)
{
	exit(calls(1));
}

static void last_body(void)
{
	setcontext(&starter);
}

static long resident_kb(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		exit(3);
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char **argv)
{
	const int count = argc > 2 ? atoi(argv[2]) : 0, fresh = count && !strcmp(argv[1], "fresh");
	void (*const begins)(void) = count && !strcmp(argv[1], "last") ? last_body : body;
	long before = 0;
	char *stacks = mmap(NULL, STACKS * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!count || stacks == MAP_FAILED)
		return 2;
	for (int i = 0; i < count; i++) {
		char *stack = stacks + (fresh ? (size_t)i % STACKS : 0) * STACK_BYTES;
		getcontext(&coroutine);
		coroutine.uc_stack.ss_sp = stack;
		coroutine.uc_stack.ss_size = STACK_BYTES;
		coroutine.uc_link = NULL;
		makecontext(&coroutine, begins, 0);
		swapcontext(&starter, &coroutine);
		if (fresh)
			mmap(stack, STACK_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		if (i == count / 10)
			before = resident_kb();
	}
	printf("%ld\n", resident_kb() - before);
	return 0;
}
