/* SPDX-License-Identifier: MIT */
/*
 * Uses the %gs register for itself, as compiled WebAssembly modules do: while a module runs, %gs has
 * the base of its memory, and gets back what it had before. Functions are called meanwhile, threads
 * and children are made, jumps leave. All that the module has stored must be there, and nowhere else.
 *
 *   segment inline|libc|syscall	how %gs is set: by the system call arch_prctl(2) itself, or by a
 *				function of the C library
 *
 * With -DINSTRUCTION there is a wrgsbase in it as well, used where it is allowed.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY	 (1ul << 20)
#define INLINE	 static inline __attribute__((always_inline))
#define SEPARATE __attribute__((noinline))
/* Where the module keeps its table. */
#define TABLE 0x4f2a4

static enum { BY_CALL, BY_LIBC, BY_SYSCALL } way;
int arch_prctl(int what, unsigned long address);

INLINE long system_call(long number, long a, long b)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b)
			 : "rcx", "r11", "memory");
	return result;
}

INLINE uint64_t get_base(void)
{
	uint64_t base = 0;

	system_call(SYS_arch_prctl, ARCH_GET_GS, (long)&base);
	return base;
}

INLINE void set_base(uint64_t base)
{
#ifdef INSTRUCTION
	if (getauxval(AT_HWCAP2) & 2) {
		__asm__ volatile("wrgsbase %0" : : "r"(base) : "memory");
		return;
	}
#endif
	if (way == BY_LIBC)
		arch_prctl(ARCH_SET_GS, base);
	else if (way == BY_SYSCALL)
		syscall(SYS_arch_prctl, ARCH_SET_GS, base);
	else
		system_call(SYS_arch_prctl, ARCH_SET_GS, (long)base);
}

INLINE void store(uint64_t at, uint32_t value)
{
	__asm__ volatile("movl %0, %%gs:(%1)" : : "r"(value), "r"(at) : "memory");
}

INLINE uint32_t load(uint64_t at)
{
	uint32_t value;

	__asm__ volatile("movl %%gs:(%1), %0" : "=r"(value) : "r"(at) : "memory");
	return value;
}

static void fail(const char *what)
{
	set_base(0);
	fprintf(stderr, "segment: %s\n", what);
	_exit(9);
}

SEPARATE static int outside(volatile int n)
{
	return n ? 1 + outside(n - 1) : 0;
}

/* Functions that begin with one base and return with another. */
SEPARATE static uint64_t begin(uint64_t base)
{
	uint64_t before = get_base();

	outside(1);
	set_base(base);
	return before;
}

SEPARATE static void end(uint64_t base)
{
	outside(1);
	set_base(base);
	outside(1);
}

SEPARATE static void *thread(void *nothing)
{
	uint64_t before = get_base();
	long sum = 0;
	int i;

	for (i = 0; i < 100; i++)
		sum += outside(i % 7);
	if (get_base() != before)
		fail("a thread's base has changed");
	return nothing ? NULL : (void *)sum;
}

SEPARATE static void leave(jmp_buf back)
{
	longjmp(back, 1 + outside(2));
}

SEPARATE static long module(char *memory, unsigned seed, int what)
{
	long sum = 0;
	jmp_buf back;
	void *other;
	pthread_t id;
	unsigned i;

	for (i = 0; i < 64; i++)
		store(TABLE + 8 * i, 0x4f2a4 + 8 * i + seed);
	for (i = 0; i < 64; i++) {
		sum += outside((int)(i % 5));
		sum += load(TABLE + 8 * i) - seed;
	}
	if (what % 16 == 3) {
		if (pthread_create(&id, NULL, thread, NULL) || pthread_join(id, &other))
			fail("no thread");
		sum += (long)other;
	}
	if (what % 16 == 5) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			sum += outside(3);
			if (get_base() != (uint64_t)memory || load(TABLE) != 0x4f2a4 + seed)
				_exit(1);
			_exit(pthread_create(&id, NULL, thread, NULL) || pthread_join(id, &other) ||
			      (long)other != 295);
		}
		if (waitpid(child, &status, 0) != child || status)
			fail("a child has ended otherwise");
	}
	if (what % 16 == 7 && !setjmp(back))
		leave(back);
	if (get_base() != (uint64_t)memory)
		fail("the base has changed");
	for (i = 0; i < 64; i++)
		if (load(TABLE + 8 * i) != 0x4f2a4 + 8 * i + seed)
			fail("the memory has changed");
	return sum;
}

/* One thread's work: modules of a memory that has anything in it. */
SEPARATE static void *work(void *number)
{
	unsigned random = 1 + (unsigned)(uintptr_t)number, i, round, rounds = 48;
	char *memory =
		mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long sum = 0;

	if (memory == MAP_FAILED)
		return NULL;
	for (round = 0; round < rounds; round++) {
		uint64_t before;

		for (i = 0; i < 128; i++) {
			random = random * 1103515245 + 12345;
			memcpy(memory + 4 * i, &random, 4);
		}
		/* where the agent has a word of its own: like one that says "nothing special" */
		if (round % 2)
			memset(memory + 8, 0, 3);
		memory[11] |= 0x40;
		before = begin((uint64_t)memory);
		sum += module(memory, random, (int)round);
		end(before);
		if (get_base() != before)
			fail("the base is not what it was");
		sum += outside(4);
	}
	munmap(memory, MEMORY);
	return (void *)sum;
}

int main(int argc, char **argv)
{
	pthread_t ids[3];
	long sum = 0;
	void *result;
	uintptr_t i;

	if (argc < 2)
		return 2;
	way = strcmp(argv[1], "libc") == 0	? BY_LIBC
	      : strcmp(argv[1], "syscall") == 0 ? BY_SYSCALL
						: BY_CALL;
	for (i = 0; i < 3; i++)
		if (pthread_create(&ids[i], NULL, work, (void *)i))
			return 3;
	sum += (long)work((void *)i);
	for (i = 0; i < 3; i++) {
		pthread_join(ids[i], &result);
		sum += (long)result;
	}
	printf("%ld\n", sum);
	return 0;
}
