/* SPDX-License-Identifier: MIT */
/*
 * The kernel's page tables. No page is writable and executable at once: text is written through an
 * alias that exists only during the change. Entries are made, never moved, so reading them needs no
 * lock.
 */
#include "port/unikernel/memory.h"

#include "port/unikernel/boot.h"
#include "port/unikernel/crash.h"
#include "port/unikernel/spinlock.h"
#include "port/unikernel/include/string.h"

#define PRESENT	   1ull
#define LARGE	   0x80ull
#define GLOBAL	   0x100ull
#define NO_EXECUTE (1ull << 63)
#define FRAME	   0x000ffffffffff000ull

#define ALIAS (DEVICE_BASE - 2 * (uint64_t)PAGE_BYTES) /* the two pages for writes to text */

uint64_t kernel_tables;

static struct spinlock lock;
static struct spinlock alias_lock;
static uint64_t next_device = DEVICE_BASE;

extern const char kernel_start_address[], text_end[], constants_end[], kernel_end_address[];

static UNTRACED unsigned index_at(uint64_t address, unsigned level)
{
	return address >> (12 + 9 * level) & 511;
}

/* Returns the entry of `address` in the table of `level` (0: pages, 1: 2 MiB); makes the tables
 * above it if `make` is set. NULL: there is none, no memory, or a larger page maps it (if not
 * making). */
static UNTRACED uint64_t *entry_of(uint64_t address, unsigned level, bool make)
{
	uint64_t *table = direct_of_physical(kernel_tables);
	for (unsigned at = 3; at > level; at--) {
		uint64_t *entry = &table[index_at(address, at)];
		if (!(*entry & PRESENT)) {
			void *new = make ? pages_allocate(0) : NULL;
			if (!new)
				return NULL;
			memset(new, 0, PAGE_BYTES);
			*entry = physical_of_direct(new) | PRESENT | MAP_WRITE;
		} else if (*entry & LARGE) {
			return NULL;
		}
		table = direct_of_physical(*entry & FRAME);
	}
	return &table[index_at(address, level)];
}

static void forget(uint64_t address)
{
	__asm__ volatile("invlpg (%0)" ::"r"(address) : "memory");
}

bool paging_map(uint64_t address, uint64_t physical, uint64_t bytes, uint64_t flags)
{
	uint64_t bits = PRESENT | GLOBAL | (flags & (MAP_WRITE | MAP_UNCACHED)) |
			(flags & MAP_EXECUTE ? 0 : NO_EXECUTE);
	uint64_t saved = spin_lock(&lock);
	bool done = true;
	while (bytes && done) {
		bool large = !((address | physical) & (LARGE_PAGE_BYTES - 1)) &&
			     bytes >= LARGE_PAGE_BYTES;
		uint64_t size = large ? LARGE_PAGE_BYTES : PAGE_BYTES;
		uint64_t *entry = entry_of(address, large ? 1 : 0, true);
		done = entry != NULL;
		if (done)
			*entry = physical | bits | (large ? LARGE : 0);
		address += size;
		physical += size;
		bytes -= size;
	}
	spin_unlock(&lock, saved);
	return done;
}

void paging_unmap(uint64_t address, uint64_t bytes)
{
	uint64_t saved = spin_lock(&lock);
	for (uint64_t at = 0; at < bytes; at += PAGE_BYTES) {
		uint64_t *entry = entry_of(address + at, 0, false);
		if (entry)
			*entry = 0;
		forget(address + at);
	}
	spin_unlock(&lock, saved);
}

UNTRACED uint64_t paging_entry(uint64_t address)
{
	for (unsigned level = 0; level < 3; level++) {
		uint64_t *entry = entry_of(address, level, false);
		if (entry && (level == 0 || *entry & LARGE))
			return *entry & PRESENT ? *entry : 0;
	}
	return 0;
}

volatile void *paging_map_device(uint64_t physical, uint64_t bytes)
{
	uint64_t offset = physical & (PAGE_BYTES - 1);
	bytes = (offset + bytes + PAGE_BYTES - 1) & -(uint64_t)PAGE_BYTES;
	uint64_t address = __atomic_fetch_add(&next_device, bytes, __ATOMIC_RELAXED);
	if (!paging_map(address, physical - offset, bytes, MAP_WRITE | MAP_UNCACHED))
		return NULL;
	return (volatile void *)(address + offset);
}

static uint64_t kernel_physical(const void *address)
{
	return (uint64_t)address - KERNEL_BASE;
}

void paging_write_text(void *text, const void *bytes, size_t count)
{
	uint64_t physical = kernel_physical(text);
	uint64_t offset = physical & (PAGE_BYTES - 1);
	uint64_t saved = spin_lock(&alias_lock);
	uint64_t length = offset + count > PAGE_BYTES ? 2 * PAGE_BYTES : PAGE_BYTES;
	if (!paging_map(ALIAS, physical - offset, length, MAP_WRITE))
		crash("paging: no memory for the alias of text");
	for (uint64_t at = 0; at < length; at += PAGE_BYTES)
		forget(ALIAS + at); /* the last write may have been another processor's */
	memcpy((void *)(ALIAS + offset), bytes, count);
	paging_unmap(ALIAS, length);
	spin_unlock(&alias_lock, saved);
}

void paging_init(void)
{
	uint64_t *top = pages_allocate(0);
	if (!top)
		crash("paging: no memory for the first table");
	memset(top, 0, PAGE_BYTES);
	kernel_tables = physical_of_direct(top);

	uint64_t start = kernel_physical(kernel_start_address);
	uint64_t text = kernel_physical(text_end), constants = kernel_physical(constants_end);
	uint64_t end = kernel_physical(kernel_end_address);
	uint64_t memory = (memory_end + LARGE_PAGE_BYTES - 1) & -(uint64_t)LARGE_PAGE_BYTES;
	bool done = paging_map(KERNEL_BASE + start, start, text - start, MAP_EXECUTE);
	done = done && paging_map(KERNEL_BASE + text, text, constants - text, 0);
	done = done && paging_map(KERNEL_BASE + constants, constants, end - constants, MAP_WRITE);
	done = done && paging_map(DIRECT_BASE, 0, start, MAP_WRITE);
	done = done && paging_map(DIRECT_BASE + start, start, constants - start, 0);
	done = done &&
	       paging_map(DIRECT_BASE + constants, constants, memory - constants, MAP_WRITE);
	if (!done)
		crash("paging: no memory for the tables");
	/* Makes the alias's tables now, so that later writes to text need no memory. */
	if (!paging_map(ALIAS, 0, 2 * PAGE_BYTES, 0))
		crash("paging: no memory for the tables");
	paging_unmap(ALIAS, 2 * PAGE_BYTES);
	__asm__ volatile("mov %0, %%cr3" ::"r"(kernel_tables) : "memory");
}
