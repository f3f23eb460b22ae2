// SPDX-License-Identifier: MIT
// A thread by clone(2), with a stack and a thread pointer of its own making and nothing mapped to be read
// between the two. It calls a function with addresses from there.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB 0x100000

static char *memory;
static volatile int done;
static volatile long sink;

__attribute__((noinline)) const char *looks(const char *text, int n)
{
	__asm__ volatile("");
	return n ? text : NULL;
}

__attribute__((noinline)) int body(void *unused)
{
	(void)unused;
	for (int i = 1; i <= 300; i++)
		sink += (long)looks(memory + MIB + i * 16384, i);
	done = 1;
	syscall(SYS_exit, 0);
	return 0;
}

int main(void)
{
	char *pointer;

	memory = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || mprotect(memory + MIB, 6 * MIB, PROT_NONE))
		return 1;
	pointer = memory + 7 * MIB + 4096;
	*(void **)pointer = pointer;
	if (clone(body, memory + MIB - 64,
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
			  CLONE_SETTLS,
		  NULL, NULL, pointer, NULL) < 0)
		return 1;
	while (!done)
		usleep(1000);
	puts("done");
	return 0;
}
