/* SPDX-License-Identifier: MIT */
/*
 * The page allocator: a buddy system. The links of a free run are in its first page; one byte for
 * each page has the state of a run that begins there.
 */
#include "port/unikernel/memory.h"

#include "port/unikernel/boot.h"
#include "port/unikernel/console.h"
#include "port/unikernel/crash.h"
#include "port/unikernel/list.h"
#include "port/unikernel/spinlock.h"
#include "port/unikernel/thread.h"
#include "port/unikernel/include/string.h"

/* The state of a run that begins at a page. Any other page (inside a run, or never given out)
 * has 0. */
#define STATE_FREE	0x40 /* and the order */
#define STATE_ALLOCATED 0x80 /* and the order */
#define STATE_ORDER	0x0f

#define KEPT_BACK_BYTES 0x400000

struct run_state {
	uint8_t state; /* STATE_… */
	uint8_t mark;  /* of an allocated run */
};

extern const char kernel_start_address[], kernel_end_address[];

static struct spinlock lock;
static struct list free_runs[PAGES_ORDER_MAX + 1];
static struct run_state *states; /* one a page, from address 0 to memory_end */
static uint64_t page_count;
static uint64_t free_bytes, total_bytes;
static bool exhausted; /* already reported */

static uint64_t index_of(const void *address)
{
	return physical_of_direct(address) / PAGE_BYTES;
}

static void put_free(uint64_t index, unsigned order)
{
	struct list *run = direct_of_physical(index * PAGE_BYTES);
	states[index].state = (uint8_t)(STATE_FREE | order);
	list_insert_before(free_runs[order].next, run);
}

static void release_locked(uint64_t index, unsigned order)
{
	free_bytes += (uint64_t)PAGE_BYTES << order;
	states[index].state = 0;
	while (order < PAGES_ORDER_MAX) {
		uint64_t buddy = index ^ 1ull << order;
		if (buddy >= page_count || states[buddy].state != (STATE_FREE | order))
			break;
		list_remove(direct_of_physical(buddy * PAGE_BYTES));
		states[buddy].state = 0;
		index &= ~(1ull << order);
		order++;
	}
	put_free(index, order);
}

/* Free memory that is in no list yet: its beginning, in the range of that number. */
static uint64_t fresh, fresh_range, fresh_floor;

/* Moves a run of it, as large as its alignment allows, to the free lists. Done on demand, since
 * a virtual machine's host has to provide each 2 MiB at the first write to it. */
static bool take_fresh(void)
{
	for (; fresh_range < memory_range_count; fresh_range++, fresh = fresh_floor) {
		const struct memory_range *range = &memory_ranges[fresh_range];
		if (fresh < range->start)
			fresh = range->start;
		if (fresh >= range->end)
			continue;
		unsigned order = 0;
		while (order < PAGES_ORDER_MAX &&
		       !(fresh & (((uint64_t)PAGE_BYTES << (order + 1)) - 1)) &&
		       fresh + ((uint64_t)PAGE_BYTES << (order + 1)) <= range->end)
			order++;
		put_free(fresh / PAGE_BYTES, order);
		fresh += (uint64_t)PAGE_BYTES << order;
		return true;
	}
	return false;
}

void pages_init(void)
{
	uint64_t used = ((uint64_t)kernel_end_address - KERNEL_BASE + PAGE_BYTES - 1) &
			-(uint64_t)PAGE_BYTES;
	for (unsigned i = 0; i <= PAGES_ORDER_MAX; i++)
		list_init(&free_runs[i]);
	/* The table of states follows the kernel; the loader put nothing there. */
	page_count = memory_end / PAGE_BYTES;
	states = direct_of_physical(used);
	memset(states, 0, page_count * sizeof(*states));
	used += (page_count * sizeof(*states) + PAGE_BYTES - 1) & -(uint64_t)PAGE_BYTES;
	/* The first megabyte belongs to the firmware and the trampoline. */
	fresh = fresh_floor = used;
	for (uint32_t i = 0; i < memory_range_count; i++) {
		uint64_t start = memory_ranges[i].start;
		if (start < used)
			start = used;
		if (start < memory_ranges[i].end)
			free_bytes += memory_ranges[i].end - start;
	}
	total_bytes = free_bytes;
}

/* The last pages are reserved for the network and the tracer, so that the trace that led here
 * can be read. */
static bool is_kept_back(unsigned order)
{
	struct cpu *cpu = cpu_this();
	return !cpu->depth && cpu->current && cpu->current->program &&
	       free_bytes < KEPT_BACK_BYTES + ((uint64_t)PAGE_BYTES << order);
}

void *pages_allocate(unsigned order)
{
	uint64_t flags = spin_lock(&lock);
	unsigned from;
	do
		for (from = order; from <= PAGES_ORDER_MAX && list_is_empty(&free_runs[from]);)
			from++;
	while (from > PAGES_ORDER_MAX && take_fresh());
	if (from > PAGES_ORDER_MAX || is_kept_back(order)) {
		bool say = !exhausted;
		exhausted = true;
		spin_unlock(&lock, flags);
		if (say)
			console_print("memory: exhausted: no %u KiB in a row left of %lu MiB "
				      "(%lu KiB are free); who asks:\n",
				      4u << order, total_bytes >> 20, free_bytes >> 10);
		if (say)
			crash_print_stack((uint64_t)__builtin_frame_address(0));
		return NULL;
	}
	struct list *run = free_runs[from].next;
	uint64_t index = index_of(run);
	list_remove(run);
	while (from > order) {
		from--;
		put_free(index + (1ull << from), from);
	}
	states[index] = (struct run_state){ (uint8_t)(STATE_ALLOCATED | order), 0 };
	free_bytes -= (uint64_t)PAGE_BYTES << order;
	spin_unlock(&lock, flags);
	return run;
}

void pages_release(void *pages, unsigned order)
{
	uint64_t flags = spin_lock(&lock);
	release_locked(index_of(pages), order);
	spin_unlock(&lock, flags);
}

void pages_set_mark(void *pages, unsigned mark)
{
	states[index_of(pages)].mark = (uint8_t)mark;
}

int pages_mark(const void *address, unsigned *order)
{
	uint64_t index = index_of(address);
	if (index >= page_count || !(states[index].state & STATE_ALLOCATED))
		return -1;
	*order = states[index].state & STATE_ORDER;
	return states[index].mark;
}

uint64_t pages_free_bytes(void)
{
	return free_bytes;
}
