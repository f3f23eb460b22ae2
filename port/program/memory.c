/* SPDX-License-Identifier: MIT */
/*
 * The agent's memory: zeroed pieces cut from private mappings, freed into lists by size class.
 * Large pieces have mappings of their own, which take no memory until they are touched. Protected
 * by its own lock (taken with signals masked). Also the byte functions that compilers call
 * implicitly.
 */
#include "port/program/agent.h"
#include "core/record/port.h"
#include "port/program/syscall.h"

#define CHUNK_BYTES (256 * 1024ul)
#define LARGE_BYTES (64 * 1024ul)
#define CLASS_COUNT 17 /* 2^0 … 2^16 */

struct piece {
	struct piece *next;
};

static struct piece *free_pieces[CLASS_COUNT];
static char *chunk;
static size_t chunk_left;
static struct gt_lock heap_lock;
static struct gt_lock tables_lock;
/* Each list is on a cache line of its own. */
static struct {
	struct gt_lock lock;
	uint32_t pad[13];
} part_locks[GT_PORT_PARTS] __attribute__((aligned(64)));

void gt_port_lock(void)
{
	gt_lock(&tables_lock);
}

void gt_port_unlock(void)
{
	gt_unlock(&tables_lock);
}

void gt_port_lock_part(uint32_t part)
{
	gt_lock(&part_locks[part].lock);
}

void gt_port_unlock_part(uint32_t part)
{
	gt_unlock(&part_locks[part].lock);
}

void gt_locks_forked(void)
{
	for (uint32_t part = 0; part < GT_PORT_PARTS; part++)
		gt_lock_reset(&part_locks[part].lock);
	gt_lock_reset(&tables_lock);
	gt_lock_reset(&heap_lock);
}

static void *map_raw(size_t bytes)
{
	/* PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE */
	long address = gt_syscall6(SYS_MMAP, 0, (long)bytes, 3, 0x02 | 0x20 | 0x4000, -1, 0);
	return gt_syscall_failed(address) ? NULL : (void *)address;
}

/* Most of a piece that large is never touched. */
#define VAST_BYTES (1024 * 1024ul)

/* Without access, mlockall cannot populate the mapping, and what has no pages is not missed. As MAP_STACK
 * it gets no huge pages where Linux would align it to them, which has both since 6.7. */
static void *map_unlocked(size_t bytes)
{
	/* PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK */
	long address =
		gt_syscall6(SYS_MMAP, 0, (long)bytes, 0, 0x02 | 0x20 | 0x4000 | 0x20000, -1, 0);
	if (gt_syscall_failed(address))
		return NULL;
	gt_locked_give_free((void *)address, bytes);
	if (gt_syscall_failed(gt_syscall3(SYS_MPROTECT, address, (long)bytes, 3))) {
		gt_syscall3(SYS_MUNMAP, address, (long)bytes, 0);
		return NULL;
	}
	return (void *)address;
}

static void unmap_raw(void *memory, size_t bytes)
{
	gt_syscall3(SYS_MUNMAP, (long)memory, (long)bytes, 0);
}

/* Notes a mapping for the host, which unmaps it when the agent leaves. The heap's lock is held.
 * False: no memory. */
static bool note(void *memory, size_t bytes)
{
	struct graftrace_mappings *page = (struct graftrace_mappings *)gt_agent_state.mappings;
	uint32_t i;
	for (; page != NULL; page = (struct graftrace_mappings *)page->next) {
		for (i = 0; i < page->used && page->entries[i].start != 0; i++)
			;
		if (i < GRAFTRACE_MAPPINGS)
			break;
	}
	if (page == NULL) {
		page = map_raw(4096);
		if (page == NULL)
			return false;
		page->entries[0].start = (uint64_t)page;
		page->entries[0].bytes = 4096;
		page->used = i = 1;
		page->next = gt_agent_state.mappings;
		__atomic_store_n(&gt_agent_state.mappings, (uint64_t)page, __ATOMIC_RELEASE);
	}
	page->entries[i].bytes = bytes;
	__atomic_store_n(&page->entries[i].start, (uint64_t)memory, __ATOMIC_RELEASE);
	if (i >= page->used)
		page->used = i + 1;
	return true;
}

static void forget(void *memory)
{
	struct graftrace_mappings *page = (struct graftrace_mappings *)gt_agent_state.mappings;
	for (; page != NULL; page = (struct graftrace_mappings *)page->next)
		for (uint32_t i = 0; i < page->used; i++)
			if (page->entries[i].start == (uint64_t)memory) {
				page->entries[i].start = 0;
				return;
			}
}

uint64_t gt_memory_end(uint64_t address)
{
	const struct graftrace_mappings *page = (const struct graftrace_mappings *)__atomic_load_n(
		&gt_agent_state.mappings, __ATOMIC_ACQUIRE);

	for (; page != NULL; page = (const struct graftrace_mappings *)page->next)
		for (uint32_t i = 0; i < page->used; i++) {
			const uint64_t start =
				__atomic_load_n(&page->entries[i].start, __ATOMIC_ACQUIRE);

			if (start != 0 && address - start < page->entries[i].bytes)
				return start + page->entries[i].bytes;
		}
	return 0;
}

/* The heap's lock is held. */
static void *map(size_t bytes)
{
	void *memory =
		bytes < VAST_BYTES && !gt_locks_later() ? map_raw(bytes) : map_unlocked(bytes);
	if (memory != NULL && !note(memory, bytes)) {
		unmap_raw(memory, bytes);
		memory = NULL;
	}
	return memory;
}

static uint32_t class_of(size_t bytes)
{
	uint32_t class = 6;
	while ((1ul << class) < bytes)
		class ++;
	return class;
}

void *gt_port_allocate(size_t bytes)
{
	void *memory = NULL;
	if (bytes > LARGE_BYTES) {
		gt_lock(&heap_lock);
		memory = map((bytes + 4095) & ~4095ul);
		gt_unlock(&heap_lock);
		return memory;
	}
	uint32_t class = class_of(bytes);
	size_t size = 1ul << class;
	gt_lock(&heap_lock);
	if (free_pieces[class] != NULL) {
		memory = free_pieces[class];
		free_pieces[class] = free_pieces[class]->next;
	} else {
		if (chunk_left < size) {
			chunk = map(CHUNK_BYTES);
			chunk_left = chunk == NULL ? 0 : CHUNK_BYTES;
		}
		if (chunk_left >= size) {
			memory = chunk;
			chunk += size;
			chunk_left -= size;
		}
	}
	gt_unlock(&heap_lock);
	if (memory != NULL)
		memset(memory, 0, size);
	return memory;
}

void gt_port_release(void *memory, size_t bytes)
{
	if (bytes > LARGE_BYTES) {
		/* Removed from the list first: the host may unmap what is listed. */
		gt_lock(&heap_lock);
		forget(memory);
		gt_unlock(&heap_lock);
		unmap_raw(memory, (bytes + 4095) & ~4095ul);
		return;
	}
	uint32_t class = class_of(bytes);
	struct piece *piece = memory;
	gt_lock(&heap_lock);
	piece->next = free_pieces[class];
	free_pieces[class] = piece;
	gt_unlock(&heap_lock);
}

void *memset(void *memory, int value, size_t bytes)
{
	void *at = memory;
	__asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(value) : "memory");
	return memory;
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	void *at = to;
	__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(bytes) : : "memory");
	return to;
}
