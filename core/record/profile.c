/* SPDX-License-Identifier: MIT */
/*
 * The function profiler's slow half: finding and taking the page of a function, and the whole of
 * the counting for calls that leave the straight line. Runs with signals masked. Never blocks; what
 * has no room is counted as lost.
 *
 * A thread's directory says where its pages are: private memory, an element for 16 functions, made
 * at the first call, large enough for all numbers that are likely, and touched only where it is
 * used.
 */
#include "core/record/recorder.h"
#include "core/record/arch.h"
#include "core/record/port.h"

#define RELAXED __ATOMIC_RELAXED
#define ACQUIRE __ATOMIC_ACQUIRE
#define RELEASE __ATOMIC_RELEASE

/* For 4 million functions: 2 MiB of addresses, 4 KiB of memory for each 8192 of them. */
#define DIRECTORY_PAGES (1u << 18)

/* Index of a page nobody has, or -1. The stack's tag guards against a page that was popped, used
 * and pushed again meanwhile, as with sub-buffers (stream.c). */
static int64_t take_page(struct graftrace_arena *arena)
{
	struct graftrace_profile_state *states = graftrace_arena_profile_states(arena);
	uint64_t head = __atomic_load_n(&arena->profile_free, ACQUIRE);

	/* bounded: another process may change the head without end */
	for (uint32_t attempt = 0;
	     attempt < 100000 && (uint32_t)head != 0 && (uint32_t)head <= arena->profile_page_count;
	     attempt++) {
		uint32_t index = (uint32_t)head - 1;
		uint64_t next = __atomic_load_n(&states[index].next, RELAXED);
		uint64_t new_head = ((head >> 32) + 1) << 32 | next;

		if (__atomic_compare_exchange_n(&arena->profile_free, &head, new_head, true,
						__ATOMIC_ACQ_REL, ACQUIRE))
			return index;
	}
	uint32_t fresh = __atomic_load_n(&arena->profile_next, RELAXED);
	for (uint32_t attempt = 0; attempt < 100000 && fresh < arena->profile_page_count;
	     attempt++) {
		if (__atomic_compare_exchange_n(&arena->profile_next, &fresh, fresh + 1, true,
						__ATOMIC_ACQ_REL, RELAXED))
			return fresh;
	}
	return -1;
}

static bool make_directory(struct gt_thread *thread)
{
	if (thread->profile_home == NULL)
		return false;
	struct graftrace_profile_entry **directory =
		gt_port_allocate(DIRECTORY_PAGES * sizeof(*directory));
	if (directory == NULL)
		return false;
	*thread->profile_home = directory;
	thread->profile = directory;
	/* last: the straight line looks at `profile` if this is larger than its index */
	__atomic_store_n(&thread->profile_pages, DIRECTORY_PAGES, RELEASE);
	return true;
}

void gt_profile_release(struct graftrace_profile_entry ***home)
{
	if (*home != NULL)
		gt_port_release(*home, DIRECTORY_PAGES * sizeof(**home));
	*home = NULL;
}

/* The entry of a function in the thread's table, or NULL: there is no room. */
static struct graftrace_profile_entry *entry_of(struct gt_thread *thread, uint32_t function)
{
	struct graftrace_arena *arena = gt_port_arena();
	uint32_t page = function >> GT_PROFILE_SHIFT;

	if (page >= DIRECTORY_PAGES || thread->stream == NULL)
		return NULL;
	if (thread->profile == NULL && !make_directory(thread))
		return NULL;
	if (page >= thread->profile_pages)
		return NULL;
	if (thread->profile[page] == NULL) {
		int64_t index = take_page(arena);
		if (index < 0)
			return NULL;
		struct graftrace_profile_state *state =
			&graftrace_arena_profile_states(arena)[index];
		state->stream = (uint32_t)(thread->stream - graftrace_arena_streams(arena));
		state->first = page;
		__atomic_store_n(&state->generation, thread->generation, RELEASE);
		thread->profile[page] = graftrace_arena_profile_page(arena, (uint32_t)index);
	}
	return &thread->profile[page][function % GRAFTRACE_PROFILE_FUNCTIONS];
}

bool gt_profile_hit(struct gt_thread *thread, uint32_t function)
{
	struct graftrace_profile_entry *entry = entry_of(thread, function);

	if (entry == NULL) {
		if (thread->stream != NULL)
			__atomic_fetch_add(&thread->stream->lost[GRAFTRACE_LOST_PROFILE], 1,
					   RELAXED);
		return false;
	}
	entry->hits++;
	return true;
}

static void add_square(uint64_t *sum, uint64_t value)
{
	__extension__ typedef unsigned __int128 u128;
	u128 square = (u128)value * value;
	u128 total = ((u128)sum[1] << 64 | sum[0]) + square;

	sum[0] = (uint64_t)total;
	sum[1] = (uint64_t)(total >> 64);
}

/* The call that ended before comes into its bucket: see struct graftrace_profile_entry. */
static void count_duration(struct graftrace_profile_entry *entry, uint64_t ticks)
{
	const uint64_t last =
		__atomic_exchange_n(&entry->last, ticks | 1ull << GRAFTRACE_PROFILE_LEAST, RELAXED);
	const uint32_t bucket = graftrace_profile_bucket(last);

	if (bucket < GRAFTRACE_PROFILE_SHORT_BUCKETS)
		entry->buckets[bucket]++;
	else
		entry->long_buckets[bucket - GRAFTRACE_PROFILE_SHORT_BUCKETS]++;
}

void gt_profile_leave(struct gt_thread *thread, struct gt_frame *frame)
{
	if (!(gt_frame_flags(frame) & GT_FRAME_PROFILE) || !gt_profile_is_on(thread))
		return;
	struct graftrace_profile_entry *entry = entry_of(thread, gt_frame_function(frame));
	uint64_t clock = gt_arch_clock();
	uint64_t begin = gt_frame_start(frame, clock);
	uint64_t ticks = clock > begin ? clock - begin : 0;
	uint64_t self = ticks > frame->children ? ticks - frame->children : 0;

	if (frame != thread->context->frames)
		frame[-1].children += ticks;
	if (entry == NULL)
		return;
	entry->ticks += ticks;
	entry->self_ticks += self;
	count_duration(entry, ticks);
	add_square(entry->squares, ticks);
	add_square(entry->self_squares, self);
}
