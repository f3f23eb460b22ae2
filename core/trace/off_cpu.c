/* SPDX-License-Identifier: MIT */
/* See off_cpu.h. */
#include "core/trace/off_cpu.h"

#define FIRST_ROOM 64u
#define MOST_ROOM  16384u

struct gt_off_cpu_thread {
	uint32_t tid; /* 0: nobody's */
	struct gt_off_cpu_follow follow;
};

static struct gt_off_cpu_thread *slot_of(const struct gt_off_cpu_threads *threads, uint32_t tid)
{
	uint32_t mask = threads->room - 1;
	uint32_t at = tid * 0x9e3779b1u & mask;
	while (threads->slots[at].tid && threads->slots[at].tid != tid)
		at = (at + 1) & mask;
	return &threads->slots[at];
}

static bool grow(struct gt_off_cpu_threads *threads)
{
	struct gt_off_cpu_threads grown = *threads;
	grown.room = threads->room ? threads->room * 2 : FIRST_ROOM;
	size_t bytes = grown.room * sizeof(*grown.slots);
	if (grown.room > MOST_ROOM ||
	    (grown.slots = gt_memory_get(&threads->memory, bytes)) == NULL)
		return false;
	__builtin_memset(grown.slots, 0, bytes);
	for (uint32_t i = 0; i < threads->room; i++)
		if (threads->slots[i].tid)
			*slot_of(&grown, threads->slots[i].tid) = threads->slots[i];
	gt_off_cpu_threads_fini(threads);
	*threads = grown;
	return true;
}

uint64_t gt_off_cpu_take(struct gt_off_cpu_threads *threads, struct gt_target *target,
			 const struct gt_record *record)
{
	/* An interrupt is on the CPU; and a change of contexts is in no call. */
	if (!record->tid || record->context != record->tid || record->kind == GT_RECORD_CONTEXT ||
	    record->kind == GT_RECORD_SWITCH)
		return 0;
	if (threads->count * 4 >= threads->room * 3 && !grow(threads) &&
	    threads->count + 1 >= threads->room)
		return 0;
	struct gt_off_cpu_thread *thread = slot_of(threads, record->tid);
	if (!thread->tid) {
		thread->tid = record->tid;
		threads->count++;
	}
	if (record->clock < thread->follow.until)
		return 0;
	return gt_off_cpu_move(&thread->follow, target, record->tid, record->clock);
}

void gt_off_cpu_threads_fini(struct gt_off_cpu_threads *threads)
{
	gt_memory_put(&threads->memory, threads->slots, threads->room * sizeof(*threads->slots));
	threads->slots = NULL;
	threads->count = threads->room = 0;
}
