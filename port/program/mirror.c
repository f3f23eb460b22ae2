/* SPDX-License-Identifier: MIT */
/*
 * The mirror of stacks: for a return slot at address s the real return address lies at s XOR 1
 * << 46. It is mapped in granules of 64 KiB as stacks are used, and counted by the contexts that
 * use them, so that dead threads' mirrors go (each costs a page, a page-table page and time at
 * every fork).
 */
#include "port/program/agent.h"
#include "core/record/port.h"
#include "port/program/syscall.h"

#define GRANULE_SHIFT 16
#define EMPTY	      0ull
#define REMOVED	      1ull

struct granule {
	uint64_t key; /* (address >> 16) + 2; EMPTY, REMOVED */
	uint64_t uses;
};

static struct granule *table;
static uint32_t table_size; /* a power of two */
static uint32_t table_used; /* with removed ones */

static struct granule *look_up(uint64_t key)
{
	if (table_size == 0)
		return NULL;
	uint32_t mask = table_size - 1;
	uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 40) & mask;
	for (; table[i].key != EMPTY; i = (i + 1) & mask)
		if (table[i].key == key)
			return &table[i];
	return NULL;
}

static void put_in(struct granule *into, uint32_t size, struct granule granule)
{
	uint32_t mask = size - 1;
	uint32_t i = (uint32_t)(granule.key * 0x9e3779b97f4a7c15ull >> 40) & mask;
	while (into[i].key != EMPTY)
		i = (i + 1) & mask;
	into[i] = granule;
}

static bool make_room(uint32_t more)
{
	if (table_size != 0 && (table_used + more) * 2 <= table_size)
		return true;
	uint32_t live = 0;
	for (uint32_t i = 0; i < table_size; i++)
		live += table[i].key > REMOVED;
	uint32_t size = 1024;
	while ((live + more) * 4 > size)
		size *= 2;
	struct granule *bigger = gt_port_allocate(size * sizeof(*bigger));
	if (bigger == NULL)
		return false;
	for (uint32_t i = 0; i < table_size; i++)
		if (table[i].key > REMOVED)
			put_in(bigger, size, table[i]);
	if (table_size != 0)
		gt_port_release(table, table_size * sizeof(*table));
	table = bigger;
	table_size = size;
	table_used = live;
	return true;
}

bool gt_port_peek(uint64_t address, uint64_t *value)
{
	struct {
		uint64_t base, bytes;
	} local = { (uint64_t)value, 8 }, remote = { address, 8 };
	long pid = gt_syscall3(SYS_GETPID, 0, 0, 0);
	return gt_syscall6(SYS_PROCESS_VM_READV, pid, (long)&local, 1, (long)&remote, 1, 0) == 8;
}

/* Maps one run. A mapping that is there already and can't be read (a sanitizer's reserved hole) is
 * taken over; any other one is left alone. */
static bool map_run(uint64_t low, uint64_t high)
{
	const long flags = 0x02 | 0x20 | 0x4000; /* private, anonymous, no reserve */
	const long fixed = 0x10, fixed_noreplace = 0x100000;
	uint64_t at = low ^ 1ull << GT_MIRROR_BIT;
	long got = gt_syscall6(SYS_MMAP, (long)at, (long)(high - low), 3, flags | fixed_noreplace,
			       -1, 0);
	if (got == (long)at)
		return true;
	if (!gt_syscall_failed(got)) { /* an old kernel took it as a hint */
		gt_syscall3(SYS_MUNMAP, got, (long)(high - low), 0);
		return false;
	}
	if (got != -17) /* EEXIST */
		return false;
	for (uint64_t page = at; page < at + (high - low); page += 4096) {
		uint64_t value;
		if (gt_port_peek(page, &value))
			return false;
	}
	got = gt_syscall6(SYS_MMAP, (long)at, (long)(high - low), 3, flags | fixed, -1, 0);
	return got == (long)at;
}

bool gt_port_mirror_open(uint64_t low, uint64_t high)
{
	bool done = false;
	if (high <= low || high > 1ull << 47)
		return false;
	gt_port_lock();
	if (!make_room((uint32_t)((high - low) >> GRANULE_SHIFT)))
		goto unlock;
	/* map the runs that are not there … */
	for (uint64_t at = low; at < high;) {
		uint64_t end = at;
		while (end < high && look_up((end >> GRANULE_SHIFT) + 2) == NULL)
			end += 1ull << GRANULE_SHIFT;
		if (end > at && !map_run(at, end))
			goto unlock;
		for (; at < end; at += 1ull << GRANULE_SHIFT) {
			put_in(table, table_size, (struct granule){ (at >> GRANULE_SHIFT) + 2, 0 });
			table_used++;
		}
		while (at < high && look_up((at >> GRANULE_SHIFT) + 2) != NULL)
			at += 1ull << GRANULE_SHIFT;
	}
	/* … and count this user */
	for (uint64_t at = low; at < high; at += 1ull << GRANULE_SHIFT)
		look_up((at >> GRANULE_SHIFT) + 2)->uses++;
	done = true;
unlock:
	gt_port_unlock();
	return done;
}

void gt_mirror_close(uint64_t low, uint64_t high)
{
	uint64_t run = 0;
	for (uint64_t at = low; at <= high; at += 1ull << GRANULE_SHIFT) {
		struct granule *granule = at < high ? look_up((at >> GRANULE_SHIFT) + 2) : NULL;
		if (granule != NULL && granule->uses > 0 && --granule->uses == 0) {
			granule->key = REMOVED;
			if (run == 0)
				run = at;
			continue;
		}
		if (run != 0)
			gt_syscall3(SYS_MUNMAP, (long)(run ^ 1ull << GT_MIRROR_BIT),
				    (long)(at - run), 0);
		run = 0;
	}
}
