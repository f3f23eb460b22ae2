/* SPDX-License-Identifier: MIT */
/*
 * The mirror of stacks: for a return slot the real return address lies at gt_program_mirror(slot),
 * in the granule that is 1 << 46 away. It is mapped in granules of 64 KiB as stacks are used, and
 * counted by the contexts that use them, so that dead threads' mirrors go (each costs a page, a
 * page-table page and time at every fork). A few are kept: the next thread mostly gets the stack of
 * one that has ended.
 */
#include "port/program/agent.h"
#include "core/record/port.h"
#include "port/program/syscall.h"

#define GRANULE_SHIFT GRAFTRACE_GRANULE_SHIFT
#define EMPTY	      0ull
#define REMOVED	      1ull
#define TAKEN	      GRAFTRACE_GRANULE_TAKEN
#define IDLE_MOST     64

static struct graftrace_granule *table;
static uint32_t table_size; /* a power of two */
static uint32_t table_used; /* with removed ones */
static uint32_t idle;	    /* granules that are mapped and that no context uses */

static struct graftrace_granule *look_up(uint64_t key)
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

static void put_in(struct graftrace_granule *into, uint32_t size, struct graftrace_granule granule)
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
	struct graftrace_granule *bigger = gt_port_allocate(size * sizeof(*bigger));
	if (bigger == NULL)
		return false;
	for (uint32_t i = 0; i < table_size; i++)
		if (table[i].key > REMOVED)
			put_in(bigger, size, table[i]);
	struct graftrace_granule *old = table;
	uint32_t old_size = table_size;
	table = bigger;
	table_size = size;
	gt_agent_state.mirror_table = (uint64_t)table;
	gt_agent_state.mirror_size = size;
	if (old_size != 0)
		gt_port_release(old, old_size * sizeof(*old));
	table_used = live;
	return true;
}

bool gt_peek_bytes(uint64_t address, void *bytes, uint64_t count)
{
	struct {
		uint64_t base, bytes;
	} local = { (uint64_t)bytes, count }, remote = { address, count };
	long pid = gt_syscall3(SYS_GETPID, 0, 0, 0);
	return gt_syscall6(SYS_PROCESS_VM_READV, pid, (long)&local, 1, (long)&remote, 1, 0) ==
	       (long)count;
}

bool gt_port_peek(uint64_t address, uint64_t *value)
{
	return gt_peek_bytes(address, value, sizeof(*value));
}

/* Maps one run. An existing mapping that cannot be read (a sanitizer's reserved hole) is
 * replaced; any other one is left alone. */
static bool map_run(uint64_t low, uint64_t high, uint64_t *flag)
{
	const long flags = 0x02 | 0x20 | 0x4000; /* private, anonymous, no reserve */
	const long fixed = 0x10, fixed_noreplace = 0x100000;
	*flag = 0;
	uint64_t at = low ^ 1ull << GT_MIRROR_BIT;
	long got = gt_syscall6(SYS_MMAP, (long)at, (long)(high - low), 3, flags | fixed_noreplace,
			       -1, 0);
	if (got == (long)at)
		return true;
	if (!gt_syscall_failed(got)) { /* an old kernel took the address as a hint */
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
	*flag = TAKEN;
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
	/* map the missing runs … */
	for (uint64_t at = low; at < high;) {
		uint64_t end = at, flag = 0;
		while (end < high && look_up((end >> GRANULE_SHIFT) + 2) == NULL)
			end += 1ull << GRANULE_SHIFT;
		if (end > at && !map_run(at, end, &flag))
			goto unlock;
		for (; at < end; at += 1ull << GRANULE_SHIFT) {
			put_in(table, table_size,
			       (struct graftrace_granule){ (at >> GRANULE_SHIFT) + 2, flag });
			table_used++;
			idle++;
		}
		while (at < high && look_up((at >> GRANULE_SHIFT) + 2) != NULL)
			at += 1ull << GRANULE_SHIFT;
	}
	/* … and count this user */
	for (uint64_t at = low; at < high; at += 1ull << GRANULE_SHIFT) {
		struct graftrace_granule *granule = look_up((at >> GRANULE_SHIFT) + 2);
		idle -= (granule->uses & ~TAKEN) == 0;
		granule->uses++;
	}
	done = true;
unlock:
	gt_port_unlock();
	return done;
}

static void unmap_run(uint64_t low, uint64_t high)
{
	if (low != 0)
		gt_syscall3(SYS_MUNMAP, (long)(low ^ 1ull << GT_MIRROR_BIT), (long)(high - low), 0);
}

void gt_mirror_close(uint64_t low, uint64_t high)
{
	const uint64_t bytes = 1ull << GRANULE_SHIFT;
	uint64_t run = 0;
	for (uint64_t at = low; at < high; at += bytes) {
		struct graftrace_granule *granule = look_up((at >> GRANULE_SHIFT) + 2);
		bool last = granule != NULL && (granule->uses & ~TAKEN) > 0 &&
			    (--granule->uses & ~TAKEN) == 0;
		if (last && !(granule->uses & TAKEN) && idle < IDLE_MOST) {
			idle++;
			last = false;
		}
		if (last)
			granule->key = REMOVED;
		if (last && !(granule->uses & TAKEN)) {
			if (run == 0)
				run = at;
			continue;
		}
		unmap_run(run, at);
		run = 0;
		if (last) /* the hole again: no access, private, anonymous, no reserve, fixed */
			gt_syscall6(SYS_MMAP, (long)(at ^ 1ull << GT_MIRROR_BIT), (long)bytes, 0,
				    0x02 | 0x20 | 0x4000 | 0x10, -1, 0);
	}
	unmap_run(run, high);
}
