/* SPDX-License-Identifier: MIT */
/*
 * Memory, from the bottom up: pages (pages.c), the tables that map them (paging.c), large pieces
 * (map.c), objects (objects.c: malloc), stacks with their mirror twins (stacks.c). All may be
 * called by threads of any processor, with interrupts off too; none sleeps.
 */
#ifndef PORT_UNIKERNEL_MEMORY_H
#define PORT_UNIKERNEL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "port/unikernel/layout.h"

/* ---- pages.c: 2^order pages in a row, at most 2 MiB ---- */

#define PAGES_ORDER_MAX 9

void pages_init(void);
/* Direct-map address of 2^order pages, aligned to their size, contents undefined; NULL: none left,
 * which is said once on the console. */
void *pages_allocate(unsigned order);
void pages_release(void *pages, unsigned order);
/* For objects.c: marks what an allocated run is used for (0 to 62), and reads the mark back by any
 * address in its first page. pages_mark of what is no start of an allocated run: -1. */
void pages_set_mark(void *pages, unsigned mark);
int pages_mark(const void *address, unsigned *order);
uint64_t pages_free_bytes(void);

static inline uint64_t physical_of_direct(const void *address)
{
	return (uint64_t)address - DIRECT_BASE;
}

static inline void *direct_of_physical(uint64_t physical)
{
	return (void *)(DIRECT_BASE + physical);
}

/* ---- paging.c ---- */

#define MAP_WRITE    2
#define MAP_UNCACHED 0x18
#define MAP_EXECUTE  0x10000 /* else the no-execute bit is set */

extern uint64_t kernel_tables; /* physical address of the top table */

/* Makes the kernel's own tables and changes to them. */
void paging_init(void);
/* Maps [address, address + bytes) to the physical range; whole pages, nothing mapped there before.
 * False: no memory for a table (what was mapped by then stays). */
bool paging_map(uint64_t address, uint64_t physical, uint64_t bytes, uint64_t flags);
/* Takes the mapping of whole pages away, on this processor; the caller sees to the others. */
void paging_unmap(uint64_t address, uint64_t bytes);
/* The entry that maps an address (bit 0: present), with the frame's physical address; 0: none. */
uint64_t paging_entry(uint64_t address);
/* Maps a device's registers. NULL: no memory for a table. */
volatile void *paging_map_device(uint64_t physical, uint64_t bytes);
/* Writes to the kernel's text or constants by an alias of its own. The caller keeps every processor
 * from executing what changes, and serializes them (smp_stopped). At most a page's worth. */
void paging_write_text(void *text, const void *bytes, size_t count);

/* ---- map.c ---- */

/* A piece of any size in one row of addresses, made of pieces of at most 2 MiB, zeroed; never given
 * back. NULL: not that much left. */
void *map_allocate(uint64_t bytes);

/* ---- objects.c: C's own functions, for the kernel and its target alike ---- */

void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *object, size_t bytes);
void free(void *object);

/* ---- stacks.c ---- */

/* A stack of at least `bytes` (at most 1 MiB) with unmapped pages around it and its mirror twin at
 * (address + MIRROR_DISTANCE). Its top, 16-byte aligned; 0: no memory. *low is its lowest address.
 */
uint64_t stack_allocate(uint64_t bytes, uint64_t *low);
void stack_release(uint64_t low);
/* Is the address in the unmapped pages below or above a stack? */
bool stack_is_guard(uint64_t address);
/* Does a stack (of any kind) hold the address? Then its bounds. */
bool stack_bounds(uint64_t address, uint64_t *low, uint64_t *top);

#endif
