/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: finds threads that wait for each other's mutexes in a ring, and processors that
 * take no interrupt. What it reads may change meanwhile, so a finding counts only if the next look,
 * a second later, finds the same. (A thread that waits for a signal which never comes looks like
 * any idle server's thread: this is not found.)
 */
#include "port/unikernel/watchdog.h"

#include "port/unikernel/clock.h"
#include "port/unikernel/console.h"
#include "port/unikernel/crash.h"
#include "port/unikernel/interrupts.h"
#include "port/unikernel/thread.h"
#include "port/unikernel/timer.h"

#define LOOK_NS	     1000000000ull
#define LONGEST_RING 16
#define SILENT_LOOKS 10
#define SAVED_FRAME  5 /* of what switch_stacks saves: rbp */

struct ring {
	struct thread *threads[LONGEST_RING];
	struct mutex *mutexes[LONGEST_RING]; /* which the thread at the same index waits for */
	unsigned length;		     /* 0: none */
};

/* By processor: its look at the next one, and what it saw there. */
static struct {
	struct timer timer;
	uint64_t interrupts;
	unsigned silent; /* looks in a row without an interrupt */
} looks[CPU_MAX];

/* Follows from one thread who waits for whose mutex; notes a ring if that leads back to the
 * thread. */
static bool follow(struct thread *first, void *argument)
{
	struct ring *ring = argument;
	struct thread *thread = first;
	for (ring->length = 0; ring->length < LONGEST_RING;) {
		struct mutex *mutex = __atomic_load_n(&thread->waits_for, __ATOMIC_RELAXED);
		struct thread *owner =
			mutex ? __atomic_load_n(&mutex->owner, __ATOMIC_RELAXED) : NULL;
		if (!owner || !thread_is_there(owner))
			break;
		ring->threads[ring->length] = thread;
		ring->mutexes[ring->length++] = mutex;
		if (owner == first)
			return false; /* found: ends the walk over the threads */
		thread = owner;
	}
	ring->length = 0;
	return true;
}

static bool is_same(const struct ring *a, const struct ring *b)
{
	if (!a->length || a->length != b->length)
		return false;
	for (unsigned i = 0; i < a->length; i++)
		if (a->threads[i] != b->threads[i] || a->mutexes[i] != b->mutexes[i])
			return false;
	return true;
}

static void report(const struct ring *ring)
{
	console_print("\n*** deadlock: %u thread%s for ever\n", ring->length,
		      ring->length == 1 ? " waits" : "s wait");
	for (unsigned i = 0; i < ring->length; i++) {
		const struct thread *thread = ring->threads[i], *owner = ring->mutexes[i]->owner;
		const char *name = ring->mutexes[i]->name;
		console_print("thread %u (%s) waits for mutex %s%s%p, which thread %u (%s) holds\n",
			      thread->number, thread->name, name ? name : "", name ? " " : "",
			      (const void *)ring->mutexes[i], owner->number, owner->name);
		crash_print_stack(((const uint64_t *)thread->sp)[SAVED_FRAME]);
	}
}

/* Each processor takes an interrupt for its own look. (If all of them hang, none can report.) */
static void look_at_next(struct timer *timer)
{
	uint32_t here = cpu_this()->number, next = (here + 1) % cpu_count;
	uint64_t interrupts = __atomic_load_n(&cpus[next].interrupts, __ATOMIC_RELAXED);
	bool is_silent = interrupts == looks[here].interrupts && next != here;
	looks[here].silent = is_silent ? looks[here].silent + 1 : 0;
	looks[here].interrupts = interrupts;
	if (looks[here].silent == SILENT_LOOKS) {
		console_print("\n*** CPU %u has taken no interrupt for %u s; it does this:\n", next,
			      SILENT_LOOKS);
		crash_ask_cpu(&cpus[next]);
	}
	timer->deadline = clock_ns() + LOOK_NS;
	timer_start(timer);
}

void watchdog_cpu_start(void)
{
	struct timer *timer = &looks[cpu_this()->number].timer;
	timer->expired = look_at_next;
	timer->deadline = clock_ns() + LOOK_NS;
	timer_start(timer);
}

static void *watch(void *argument)
{
	struct ring last = { .length = 0 }, now;
	(void)argument;
	for (;;) {
		thread_sleep_until(clock_ns() + LOOK_NS);
		now.length = 0;
		threads_visit(follow, &now);
		if (is_same(&last, &now)) {
			report(&now);
			machine_end(true);
		}
		last = now;
	}
	return NULL;
}

void watchdog_start(void)
{
	if (!thread_create("watchdog", watch, NULL, 0, true))
		console_print("no memory for the watchdog\n");
}
