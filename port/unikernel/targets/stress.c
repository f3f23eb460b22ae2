/* SPDX-License-Identifier: MIT */
/* Threads, locks, sleeps and deep recursion at once; counts every call that it makes. */
/* OPTIONS="nmi=1": and non-maskable interrupts, which come at any instruction; "depth=4" of the
 * recursion; "endless=1": until somebody connects to port 8080. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "port/unikernel/apic.h"
#include "port/unikernel/interrupts.h"

#define THREADS 16
#define ROUNDS	40
#define DEPTH	200
#define TURN	8 /* rounds between two barriers of all threads */
#define PORT	8080

static unsigned depth = DEPTH;
static unsigned rounds_wanted = ROUNDS;
static bool is_told; /* to end */

/* The expected trace, call by call: each function counts its own calls. */
static struct {
	unsigned long locked, recursed, slept, yielded, waited, threads, nmis, below_nmis;
} calls;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static unsigned whose_turn;
static unsigned long guarded; /* by the mutex, without atomics: must be exact */

static void count(unsigned long *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

__attribute__((noinline)) void stress_lock(void)
{
	count(&calls.locked);
	pthread_mutex_lock(&mutex);
	guarded++;
	pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) unsigned stress_recurse(unsigned left)
{
	count(&calls.recursed);
	volatile unsigned here = left; /* prevents a tail call or a loop */
	unsigned below = left ? stress_recurse(left - 1) : 0;
	return below + (here != 0);
}

__attribute__((noinline)) void stress_sleep(unsigned microseconds)
{
	count(&calls.slept);
	usleep(microseconds);
}

__attribute__((noinline)) void stress_yield(void)
{
	count(&calls.yielded);
	sched_yield();
}

/* The threads take turns in order. */
__attribute__((noinline)) void stress_wait(unsigned number)
{
	count(&calls.waited);
	pthread_mutex_lock(&mutex);
	while (whose_turn != number)
		pthread_cond_wait(&turn, &mutex);
	whose_turn = (whose_turn + 1) % THREADS;
	pthread_cond_broadcast(&turn);
	pthread_mutex_unlock(&mutex);
}

static void *stress_thread(void *argument)
{
	unsigned number = (unsigned)(uintptr_t)argument, wrong = 0;
	count(&calls.threads);
	for (unsigned round = 0; round < __atomic_load_n(&rounds_wanted, __ATOMIC_RELAXED);
	     round++) {
		stress_lock();
		wrong += stress_recurse(depth) != depth;
		stress_sleep(100 + 37 * number % 500);
		stress_yield();
		if (round % TURN)
			continue;
		/* No thread is beyond this turn, which the first thread begins. */
		if (number == 0 && __atomic_load_n(&is_told, __ATOMIC_RELAXED))
			__atomic_store_n(&rounds_wanted, round + TURN, __ATOMIC_RELAXED);
		stress_wait(number);
	}
	return (void *)(uintptr_t)wrong;
}

static int listen_for_end(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int listening = socket(AF_INET, SOCK_STREAM, 0);
	if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(listening, 1))
		return -1;
	rounds_wanted = UINT32_MAX;
	return listening;
}

static void wait_for_end(int listening)
{
	printf("stress: until somebody connects to port %d\n", PORT);
	while (accept(listening, NULL, NULL) < 0)
		usleep(10000);
	__atomic_store_n(&is_told, true, __ATOMIC_RELAXED);
}

/* ---- NMIs ---- */

static unsigned nmis_wanted, nmis_in_work, nmis_late;

__attribute__((noinline)) unsigned stress_below_nmi(unsigned number)
{
	count(&calls.below_nmis);
	return number + 1;
}

__attribute__((noinline)) unsigned stress_nmi(void)
{
	count(&calls.nmis);
	return stress_below_nmi(1) + stress_below_nmi(2);
}

/* NMIs after the counts were printed do not count. */
static UNTRACED bool take_nmi(struct registers *registers)
{
	__atomic_add_fetch(&nmis_in_work, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&nmis_wanted, __ATOMIC_SEQ_CST)) {
		if (!registers)
			__atomic_add_fetch(&nmis_late, 1, __ATOMIC_RELAXED);
		stress_nmi();
	}
	__atomic_sub_fetch(&nmis_in_work, 1, __ATOMIC_SEQ_CST);
	return true;
}

/* Sends an NMI to every processor in turn, this one too. */
static void *send_nmis(void *argument)
{
	(void)argument;
	for (uint32_t cpu = 0; __atomic_load_n(&nmis_wanted, __ATOMIC_RELAXED); cpu++) {
		apic_send_nmi(cpus[cpu % cpu_count].apic_id);
		if (cpu % 4 == 0)
			usleep(50);
	}
	return NULL;
}

static void end_nmis(pthread_t sender)
{
	__atomic_store_n(&nmis_wanted, 0, __ATOMIC_SEQ_CST);
	pthread_join(sender, NULL);
	while (__atomic_load_n(&nmis_in_work, __ATOMIC_SEQ_CST))
		sched_yield();
	printf("stress: calls stress_nmi %lu stress_below_nmi %lu\n", calls.nmis, calls.below_nmis);
	printf("stress: %u NMIs waited for the recorder\n", nmis_late);
}

static bool is_on(const char *option)
{
	return option && strcmp(option, "0") != 0;
}

int main(void)
{
	pthread_t threads[THREADS], sender;
	unsigned long wrong = 0;
	bool nmi = is_on(getenv("nmi")), endless = is_on(getenv("endless"));
	int listening = endless ? listen_for_end() : 0;
	if (listening < 0)
		return 1;
	if (getenv("depth"))
		depth = (unsigned)atoi(getenv("depth"));
	if (nmi) {
		nmis_wanted = 1;
		exception_set(VECTOR_NMI, take_nmi);
		if (pthread_create(&sender, NULL, send_nmis, NULL))
			return 1;
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, stress_thread, (void *)i)) {
			printf("stress: no memory for thread %lu\n", i);
			return 1;
		}
	if (endless)
		wait_for_end(listening);
	for (int i = 0; i < THREADS; i++) {
		void *result;
		pthread_join(threads[i], &result);
		wrong += (uintptr_t)result;
	}
	if (nmi)
		end_nmis(sender);
	printf("stress: calls stress_thread %lu stress_lock %lu stress_recurse %lu stress_sleep "
	       "%lu "
	       "stress_yield %lu stress_wait %lu\n",
	       calls.threads, calls.locked, calls.recursed, calls.slept, calls.yielded,
	       calls.waited);
	if (wrong || guarded != calls.locked) {
		printf("stress: WRONG: %lu sums, %lu of %lu under the lock\n", wrong, guarded,
		       calls.locked);
		return 1;
	}
	printf("stress: all is well\n");
	return 0;
}
