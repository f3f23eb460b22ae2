/* SPDX-License-Identifier: MIT */
/* Makes faults: OPTIONS="fault=null", overflow, deadlock, memory, lock … */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "port/unikernel/apic.h"
#include "port/unikernel/crash.h"
#include "port/unikernel/interrupts.h"
#include "port/unikernel/spinlock.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void fault_null(void)
{
	volatile int *nowhere = NULL;
	__asm__("" : "+r"(nowhere));
	*nowhere = 1;
}

__attribute__((noinline)) static int fault_overflow(volatile int *above)
{
	volatile int here[64];
	here[0] = *above + 1;
	/* The condition hides the endless recursion from compilers. */
	return here[0] < 0 ? 0 : fault_overflow(here) + here[0];
}

__attribute__((noinline)) static void overflow(void)
{
	volatile int start = 0, end = fault_overflow(&start);
	(void)end;
}

/* Calls through an invalid pointer. */
__attribute__((noinline)) static void fault_jump(void)
{
	void (*volatile nowhere)(void) = NULL;
	nowhere();
	__asm__ volatile(""); /* keeps the call from being a tail call */
}

static void *fail(void *argument)
{
	(void)argument;
	usleep(1000);
	fault_null();
	return NULL;
}

/* Four threads, as close to each other in time as possible. */
__attribute__((noinline)) static void fault_several(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, fail, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void *take_second_then_first(void *taken)
{
	pthread_setname_np(pthread_self(), "other");
	pthread_mutex_lock(&second);
	__atomic_store_n((int *)taken, 1, __ATOMIC_RELEASE);
	pthread_mutex_lock(&first);
	return NULL;
}

__attribute__((noinline)) static void fault_deadlock(void)
{
	pthread_t other;
	int taken = 0;
	pthread_mutex_lock(&first);
	pthread_create(&other, NULL, take_second_then_first, &taken);
	while (!__atomic_load_n(&taken, __ATOMIC_ACQUIRE))
		usleep(1000);
	pthread_mutex_lock(&second);
}

__attribute__((noinline)) static void fault_memory(void)
{
	size_t taken = 0;
	while (malloc(1 << 16))
		taken += 1 << 16;
	printf("faults: malloc gave %lu MiB, then nothing\n", taken >> 20);
}

__attribute__((noinline)) static void fault_divide(void)
{
	volatile int by = 0, result = 1000 / by;
	(void)result;
}

__attribute__((noinline)) static void fault_hang(void)
{
	__asm__ volatile("cli");
	for (;;)
		;
}

/* The rest are the kernel's own faults: in an interrupt, under one of its locks, by its own
 * check. */

static void handle(void *argument)
{
	(void)argument;
	fault_null();
}

__attribute__((noinline)) static void fault_interrupt(void)
{
	interrupt_set(VECTOR_RESCHEDULE - 1, handle, NULL);
	apic_send_self(VECTOR_RESCHEDULE - 1);
}

__attribute__((noinline)) static void fault_lock(void)
{
	static struct spinlock lock;
	uint64_t flags = spin_lock(&lock);
	fault_null();
	spin_unlock(&lock, flags);
}

__attribute__((noinline)) static void fault_panic(void)
{
	crash("the target asked for it");
}

static const struct {
	const char *name;
	void (*commit)(void);
} faults[] = {
	{ "null", fault_null },
	{ "overflow", overflow },
	{ "jump", fault_jump },
	{ "several", fault_several },
	{ "deadlock", fault_deadlock },
	{ "memory", fault_memory },
	{ "abort", abort },
	{ "divide", fault_divide },
	{ "hang", fault_hang },
	{ "interrupt", fault_interrupt },
	{ "lock", fault_lock },
	{ "panic", fault_panic },
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

int main(void)
{
	const char *fault = getenv("fault");
	for (unsigned i = 0; fault && i < FAULTS; i++)
		if (!strcmp(fault, faults[i].name)) {
			faults[i].commit();
			return 1;
		}
	if (fault)
		printf("faults: there is no fault '%s'.", fault);
	printf("%s OPTIONS=fault=NAME, with one of\n", fault ? "" : "faults: which one?");
	for (unsigned i = 0; i < FAULTS; i++)
		printf(" %s", faults[i].name);
	printf("\n");
	return 1;
}
