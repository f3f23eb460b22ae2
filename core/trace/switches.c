/* SPDX-License-Identifier: MIT */
/*
 * See switches.h. A thread's first switch says where it was before: coming back, it had been off
 * the CPU since the beginning; leaving, it had been on that CPU. Two of the same kind in a row mean
 * that one between them is missing: of two departures the later counts, of two arrivals the
 * earlier, so that no time off the CPU is invented.
 */
#include "core/trace/switches.h"

struct gt_switch_thread {
	struct gt_off_cpu *times; /* in order */
	uint32_t tid;
	uint32_t count, room;
	uint32_t cpu;  /* that it is on, or left */
	uint64_t out;  /* when it went off, if it is off */
	uint64_t last; /* clock of its last switch */
	bool used, is_off;
	uint16_t out_flags;
};

void gt_switches_init(struct gt_switches *switches, const struct gt_memory *memory, uint64_t start,
		      uint32_t most)
{
	__builtin_memset(switches, 0, sizeof(*switches));
	switches->memory = *memory;
	switches->start = switches->known = start;
	switches->most = most;
}

void gt_switches_restart(struct gt_switches *switches, uint64_t start)
{
	const struct gt_memory *memory = &switches->memory;
	for (uint32_t i = 0; i < switches->thread_room; i++)
		gt_memory_put(memory, switches->threads[i].times,
			      switches->threads[i].room * sizeof(*switches->threads[i].times));
	gt_memory_put(memory, switches->threads,
		      switches->thread_room * sizeof(*switches->threads));
	switches->threads = NULL;
	switches->thread_count = switches->thread_room = 0;
	switches->start = switches->known = start;
}

void gt_switches_fini(struct gt_switches *switches)
{
	gt_switches_restart(switches, 0);
	gt_memory_put(&switches->memory, switches->all, switches->room * sizeof(*switches->all));
	switches->all = NULL;
	switches->room = 0;
}

/* ---- threads ---- */

static struct gt_switch_thread *slot_of(const struct gt_switches *switches, uint32_t tid)
{
	uint32_t mask = switches->thread_room - 1;
	uint32_t at = tid * 0x9e3779b1u & mask;
	while (switches->threads[at].used && switches->threads[at].tid != tid)
		at = (at + 1) & mask;
	return &switches->threads[at];
}

static bool grow_threads(struct gt_switches *switches)
{
	struct gt_switches grown = *switches;
	grown.thread_room = switches->thread_room ? switches->thread_room * 2 : 64;
	size_t bytes = grown.thread_room * sizeof(*grown.threads);
	grown.threads = gt_memory_get(&switches->memory, bytes);
	if (grown.threads == NULL)
		return false;
	__builtin_memset(grown.threads, 0, bytes);
	for (uint32_t i = 0; i < switches->thread_room; i++)
		if (switches->threads[i].used)
			*slot_of(&grown, switches->threads[i].tid) = switches->threads[i];
	gt_memory_put(&switches->memory, switches->threads,
		      switches->thread_room * sizeof(*switches->threads));
	*switches = grown;
	return true;
}

static struct gt_switch_thread *thread_of(struct gt_switches *switches, uint32_t tid)
{
	if (2 * (switches->thread_count + 1) > switches->thread_room && !grow_threads(switches))
		return NULL;
	struct gt_switch_thread *thread = slot_of(switches, tid);
	if (!thread->used) {
		*thread = (struct gt_switch_thread){ .used = true,
						     .tid = tid,
						     .last = switches->start };
		switches->thread_count++;
	}
	return thread;
}

/* ---- arrays ---- */

/* Room for one element more: the array at *array, of `size` bytes an element. Small at first: a short
 * thread is off the CPU once or twice. False: no memory. */
static bool make_room(const struct gt_memory *memory, void **array, uint32_t count, uint32_t *room,
		      size_t size)
{
	if (count < *room)
		return true;
	uint32_t wanted = *room ? *room * 2 : 4;
	if (wanted <= *room)
		return false;
	void *grown = memory->resize(memory->data, *array, *room * size, wanted * size);
	if (grown == NULL)
		return false;
	*array = grown;
	*room = wanted;
	return true;
}

/* The oldest go. */
static void drop(struct gt_switches *switches, uint32_t count)
{
	switches->first += count;
	switches->count -= count;
	__builtin_memmove(switches->all, switches->all + count,
			  switches->count * sizeof(*switches->all));
}

static bool keep(struct gt_switches *switches, const struct gt_switch *added)
{
	void *all = switches->all;
	if (switches->most && switches->count == switches->most)
		drop(switches, switches->count / 2);
	bool made = make_room(&switches->memory, &all, switches->count, &switches->room,
			      sizeof(*switches->all));
	switches->all = all;
	if (made)
		switches->all[switches->count++] = *added;
	return made;
}

static bool came_back(struct gt_switches *switches, struct gt_switch_thread *thread,
		      const struct gt_off_cpu *time)
{
	void *times = thread->times;
	if (switches->most && thread->count == switches->most) {
		uint32_t half = thread->count / 2;
		thread->count -= half;
		__builtin_memmove(thread->times, thread->times + half,
				  thread->count * sizeof(*thread->times));
	}
	bool made = make_room(&switches->memory, &times, thread->count, &thread->room,
			      sizeof(*thread->times));
	thread->times = times;
	if (!made)
		return false;
	struct gt_off_cpu *last = thread->count ? &thread->times[thread->count - 1] : NULL;
	thread->times[thread->count] = *time;
	thread->times[thread->count++].before =
		last != NULL ? last->before + (last->to - last->from) : 0;
	return true;
}

/* The thread was told that it leaves its CPU, or comes back. */
static void follow(struct gt_switches *switches, struct gt_switch_thread *thread,
		   const struct gt_switch *added)
{
	/* A thread's own switches come in order: what says otherwise is damage. */
	uint64_t clock = added->clock > thread->last ? added->clock : thread->last;
	bool first = thread->last == switches->start && !thread->count && !thread->is_off;
	if (added->flags & GT_SWITCH_OUT) {
		thread->out = clock;
		thread->out_flags = added->flags;
		thread->is_off = true;
	} else if (thread->is_off || first) {
		struct gt_off_cpu time = {
			.from = thread->is_off ? thread->out : switches->start,
			.to = clock,
			.cpu = thread->is_off ? thread->cpu : added->cpu,
			.flags = thread->is_off ? thread->out_flags : GT_SWITCH_OUT,
		};
		thread->is_off = false;
		if (!came_back(switches, thread, &time))
			switches->lost++;
	}
	thread->cpu = added->cpu;
	thread->last = clock;
}

void gt_switches_add(struct gt_switches *switches, const struct gt_switch *added)
{
	bool wants_times = !switches->in_order_only;
	struct gt_switch_thread *thread = wants_times ? thread_of(switches, added->tid) : NULL;
	if ((wants_times && thread == NULL) || !keep(switches, added)) {
		switches->lost++;
		return;
	}
	if (added->clock > switches->known)
		switches->known = added->clock;
	if (thread != NULL)
		follow(switches, thread, added);
}

void gt_switches_find_times(struct gt_switches *switches)
{
	if (!switches->in_order_only)
		return;
	switches->in_order_only = false;
	if (switches->first)
		switches->start = switches->count ? switches->all[0].clock : switches->known;
	for (uint32_t i = 0; i < switches->count; i++) {
		struct gt_switch_thread *thread = thread_of(switches, switches->all[i].tid);
		if (thread != NULL)
			follow(switches, thread, &switches->all[i]);
		else
			switches->lost++;
	}
}

void gt_switches_forget(struct gt_switches *switches, uint64_t before)
{
	if (!switches->in_order_only || before <= switches->first)
		return;
	uint64_t read = before - switches->first;
	uint32_t count = read < switches->count ? (uint32_t)read : switches->count;
	/* Not for a few of many: the rest is moved. */
	if (count >= switches->count - count)
		drop(switches, count);
}

/* ---- questions ---- */

int gt_switches_off_cpu(const struct gt_switches *switches, uint32_t tid, uint64_t after,
			struct gt_off_cpu *time)
{
	struct gt_switch_thread *thread = switches->thread_room ? slot_of(switches, tid) : NULL;
	if (thread == NULL || !thread->used)
		return GT_ENOENT;
	uint32_t low = 0, high = thread->count;
	while (low < high) { /* the first that ends behind `after` */
		uint32_t middle = low + (high - low) / 2;
		if (thread->times[middle].to <= after)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < thread->count) {
		*time = thread->times[low];
		return 0;
	}
	const struct gt_off_cpu *last = thread->count ? &thread->times[thread->count - 1] : NULL;
	*time = (struct gt_off_cpu){
		.from = thread->is_off ? thread->out : UINT64_MAX,
		.to = UINT64_MAX,
		.before = last != NULL ? last->before + (last->to - last->from) : 0,
		.cpu = thread->cpu,
		.flags = thread->is_off ? thread->out_flags : 0,
	};
	return 0;
}

uint32_t gt_switches_read(const struct gt_switches *switches, uint64_t *cursor,
			  struct gt_switch *out, uint32_t room)
{
	uint32_t count = 0;
	if (*cursor < switches->first)
		*cursor = switches->first;
	while (count < room && *cursor - switches->first < switches->count)
		out[count++] = switches->all[(*cursor)++ - switches->first];
	return count;
}
