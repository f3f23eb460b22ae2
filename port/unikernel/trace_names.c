/* SPDX-License-Identifier: MIT */
/*
 * Names of threads, for those who read the trace: of all threads that run, and of the newest ones of those
 * that are over. Callable from threads and interrupts.
 */
#include "port/unikernel/trace_private.h"

#include "port/unikernel/spinlock.h"
#include "port/unikernel/thread.h"
#include "port/unikernel/include/string.h"

#define NAMES 1024

struct name {
	uint32_t number; /* of the thread; 0: no name */
	bool runs;	 /* the thread is not over */
	char text[16];
};

static struct spinlock names_lock;
/* Of the threads with the highest numbers: at number % NAMES. */
static struct name newest[NAMES];
/* Of threads that still ran when their place in `newest` was wanted; by number. */
static struct name older[NAMES];
static uint32_t older_count;
static uint32_t last;

/* Room for one more: the oldest thread's name that is over goes. False: all of them run. */
static bool make_room(void)
{
	uint32_t over = 0;
	if (older_count < NAMES)
		return true;
	while (over < NAMES && older[over].runs)
		over++;
	if (over == NAMES)
		return false;
	for (older_count--; over < older_count; over++)
		older[over] = older[over + 1];
	return true;
}

/* Threads that are made at the same time may come here in another order than that of their numbers. */
static void keep(const struct name *name)
{
	if (!make_room())
		return;
	uint32_t at = older_count++;
	for (; at > 0 && older[at - 1].number > name->number; at--)
		older[at] = older[at - 1];
	older[at] = *name;
}

static struct name *find(uint32_t number)
{
	uint32_t low = 0, high = older_count;
	if (newest[number % NAMES].number == number)
		return &newest[number % NAMES];
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (older[middle].number == number)
			return &older[middle];
		if (older[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

void trace_name_thread(uint32_t number, const char text[16])
{
	uint64_t flags = spin_lock(&names_lock);
	struct name *name = &newest[number % NAMES];
	if (name->runs)
		keep(name);
	name->number = number;
	name->runs = true;
	memcpy(name->text, text, sizeof(name->text));
	if (number > last)
		__atomic_store_n(&last, number, __ATOMIC_RELAXED);
	spin_unlock(&names_lock, flags);
}

void trace_name_over(uint32_t number)
{
	uint64_t flags = spin_lock(&names_lock);
	struct name *name = find(number);
	if (name)
		name->runs = false;
	spin_unlock(&names_lock, flags);
}

bool trace_name_of(uint32_t number, char text[16])
{
	uint64_t flags = spin_lock(&names_lock);
	const struct name *name = find(number);
	if (name)
		memcpy(text, name->text, sizeof(name->text));
	spin_unlock(&names_lock, flags);
	return name != NULL;
}

uint32_t trace_last_thread(void)
{
	return __atomic_load_n(&last, __ATOMIC_RELAXED);
}

/* The index'th name of those whose thread runs, or of the others: its number; 0: behind the last. */
static uint32_t nth(bool runs, uint32_t *index)
{
	uint32_t first = last < NAMES ? 1 : last - NAMES + 1;
	for (uint32_t at = 0; at < older_count + NAMES; at++) {
		const struct name *name =
			at < older_count ? &older[at] : &newest[(first + at - older_count) % NAMES];
		if (name->number != 0 && name->runs == runs && (*index)-- == 0)
			return name->number;
	}
	return 0;
}

uint32_t trace_named_thread(uint32_t index)
{
	uint64_t flags = spin_lock(&names_lock);
	uint32_t number = nth(false, &index);
	if (number == 0)
		number = nth(true, &index);
	spin_unlock(&names_lock, flags);
	return number;
}

const char *trace_comm(const struct thread *thread)
{
	static const char idle[16] = "<idle>";
	return thread->number == 0 ? idle : thread->name;
}
