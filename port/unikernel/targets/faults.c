/* SPDX-License-Identifier: MIT */
/* Does what must not be done: OPTIONS="fault=null", overflow, deadlock, memory, lock … */
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
	/* The condition is for compilers that see through endless recursion. */
	return here[0] < 0 ? 0 : fault_overflow(here) + here[0];
}

/* Through a pointer that leads nowhere. */
__attribute__((noinline)) static void fault_jump(void)
{
	void (*volatile nowhere)(void) = NULL;
	nowhere();
	__asm__ volatile(""); /* a call, with something behind it */
}

static void *fail(void *argument)
{
	(void)argument;
	usleep(1000);
	fault_null();
	return NULL;
}

/* Four threads, as close to each other as it gets. */
__attribute__((noinline)) static void fault_several(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, fail, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void *take_second_then_first(void *argument)
{
	(void)argument;
	pthread_setname_np(pthread_self(), "other");
	pthread_mutex_lock(&second);
	usleep(20000);
	pthread_mutex_lock(&first);
	return NULL;
}

__attribute__((noinline)) static void fault_deadlock(void)
{
	pthread_t other;
	pthread_mutex_lock(&first);
	pthread_create(&other, NULL, take_second_then_first, NULL);
	usleep(20000);
	pthread_mutex_lock(&second);
}

__attribute__((noinline)) static void fault_memory(void)
{
	size_t taken = 0;
	while (malloc(1 << 16))
		taken += 1 << 16;
	printf("faults: malloc gave %lu MiB, then nothing\n", taken >> 20);
}

__attribute__((noinline)) static int fault_divide(volatile int by)
{
	return 1000 / by;
}

__attribute__((noinline)) static void fault_hang(void)
{
	__asm__ volatile("cli");
	for (;;)
		;
}

/* The rest are the kernel's: in an interrupt, under one of its locks, by its own word. */

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

int main(void)
{
	const char *fault = getenv("fault");
	volatile int start = 0;
	if (!fault) {
		printf("faults: which one? OPTIONS=fault=null, for example\n");
		return 1;
	}
	if (!strcmp(fault, "null"))
		fault_null();
	else if (!strcmp(fault, "overflow"))
		return fault_overflow(&start);
	else if (!strcmp(fault, "jump"))
		fault_jump();
	else if (!strcmp(fault, "several"))
		fault_several();
	else if (!strcmp(fault, "deadlock"))
		fault_deadlock();
	else if (!strcmp(fault, "memory"))
		fault_memory();
	else if (!strcmp(fault, "abort"))
		abort();
	else if (!strcmp(fault, "divide"))
		return fault_divide(start);
	else if (!strcmp(fault, "hang"))
		fault_hang();
	else if (!strcmp(fault, "interrupt"))
		fault_interrupt();
	else if (!strcmp(fault, "lock"))
		fault_lock();
	else if (!strcmp(fault, "panic"))
		crash("the target asked for it");
	return 1;
}
