/* SPDX-License-Identifier: MIT */
/*
 * Stacks. Each has STACK_STRIDE of address space and is in its middle, so that an overflow at
 * either end meets unmapped pages. The twin at the same offset of the mirror's range is mapped and
 * unmapped with it. Stacks are kept for the next thread with one of that size.
 */
#include "port/unikernel/memory.h"

#include "port/unikernel/spinlock.h"

#define LARGEST 0x100000ull

/* Translation caches are indexed by the low bits of a page's number, which would be the same for
 * all stacks: so their ends differ by two pages, in COLOURS steps, next to as many for their
 * twins. */
#define COLOURS 16

struct stack {
	uint32_t pages; /* mapped; 0: none yet */
	uint32_t next;	/* in the list of free ones: index + 1 */
};

static struct spinlock lock;
static struct stack stacks[STACK_COUNT];
static uint32_t used;	     /* entries of `stacks` made so far */
static uint32_t waiting[32]; /* heads of the lists, by the size's power of two */

static UNTRACED uint64_t top_of(uint32_t index)
{
	return STACK_BASE + (uint64_t)index * STACK_STRIDE + STACK_STRIDE / 2 + LARGEST / 2 -
	       (uint64_t)(index % COLOURS) * 2 * PAGE_BYTES;
}

static unsigned power_of(uint64_t pages)
{
	return pages <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(pages - 1);
}

static bool map(uint64_t low, uint64_t pages)
{
	for (uint64_t i = 0; i < pages; i++) {
		void *page = pages_allocate(0);
		if (!page || !paging_map(low + i * PAGE_BYTES, physical_of_direct(page), PAGE_BYTES,
					 MAP_WRITE))
			return false;
	}
	return true;
}

uint64_t stack_allocate(uint64_t bytes, uint64_t *low)
{
	if (bytes > LARGEST)
		return 0;
	unsigned power = power_of((bytes + PAGE_BYTES - 1) / PAGE_BYTES);
	uint64_t pages = 1ull << power;
	uint64_t flags = spin_lock(&lock);
	uint32_t index = waiting[power];
	if (index) {
		index--;
		waiting[power] = stacks[index].next;
	} else if (used < STACK_COUNT) {
		index = used++;
	} else {
		spin_unlock(&lock, flags);
		return 0;
	}
	bool mapped = stacks[index].pages != 0;
	stacks[index].pages = (uint32_t)pages;
	spin_unlock(&lock, flags);

	*low = top_of(index) - pages * PAGE_BYTES;
	mapped = mapped || (map(*low, pages) && map(*low + MIRROR_DISTANCE, pages));
	return mapped ? top_of(index) : 0;
}

void stack_release(uint64_t low)
{
	uint32_t index = (uint32_t)((low - STACK_BASE) / STACK_STRIDE);
	uint64_t flags = spin_lock(&lock);
	unsigned power = power_of(stacks[index].pages);
	stacks[index].next = waiting[power];
	waiting[power] = index + 1;
	spin_unlock(&lock, flags);
}

UNTRACED bool stack_bounds(uint64_t address, uint64_t *low, uint64_t *top)
{
	uint64_t index = (address - STACK_BASE) / STACK_STRIDE;
	if (address < STACK_BASE || index >= used)
		return false;
	*top = top_of((uint32_t)index);
	*low = *top - (uint64_t)stacks[index].pages * PAGE_BYTES;
	return address >= *low && address < *top;
}

UNTRACED bool stack_is_guard(uint64_t address)
{
	uint64_t low, top;
	return (address - STACK_BASE) / STACK_STRIDE < STACK_COUNT &&
	       !stack_bounds(address, &low, &top);
}
