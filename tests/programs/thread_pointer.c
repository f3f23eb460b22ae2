/* SPDX-License-Identifier: MIT */
/* A thread without a C library, whose thread pointer leads to a word that is no address: the number that is named. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (1u << 20)

static unsigned long storage[1024] __attribute__((aligned(64)));
static volatile int done;

__attribute__((noinline)) int work(int x)
{
	__asm__ volatile("" : : : "memory");
	return x + 1;
}

__attribute__((no_instrument_function, patchable_function_entry(0),
	       optimize("no-stack-protector"))) static int
body(void *unused)
{
	for (int i = 0; i < 10; i++)
		work(i);
	done = 1;
	syscall(SYS_exit, 0);
	return unused != NULL;
}

int main(int argc, char **argv)
{
	char *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	storage[0] = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	if (clone(body, stack + STACK_BYTES,
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
			  CLONE_SETTLS,
		  NULL, NULL, storage, NULL) < 0)
		return 2;
	while (!done)
		usleep(1000);
	usleep(20000);
	puts("done");
	return 0;
}
