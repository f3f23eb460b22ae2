/* SPDX-License-Identifier: MIT */
/*
 * See live_awake.h. A thread has a running sum of its time off the CPU (gt_off_cpu.before), so a
 * call's time off the CPU is the sum's growth between entry and return. Entries are kept by depth;
 * if another call's entry is there (a coroutine's, or one that began before), the kernel's context
 * switches in the call's time are summed instead. The traced program writes the depths: entries are kept
 * up to DEPTH_MAX only.
 */
#include "serve/live/live_awake.h"

#include <stdlib.h>
#include <string.h>

#include "port/host/memory.h"

#define DEPTH_MAX GT_AWAKE_DEPTH_MAX

__extension__ typedef unsigned __int128 u128;

struct entry {
	uint64_t start;
	uint64_t before;   /* time off the CPU of the thread, in ticks, at its start */
	uint64_t children; /* time off the CPU of its callees */
};

struct thread {
	struct entry *entries; /* by depth */
	uint32_t room;
};

/* For a function in a thread: the time to subtract from its calls. [0]: in all, [1]: without
 * callees. */
struct found {
	uint64_t key; /* thread and function; 0: free */
	uint64_t ticks[2];
	u128 squares[2];
};

struct gt_awake {
	struct gt_target *session;
	struct gt_merge merge;
	bool follows;
	uint64_t since;
	struct thread *threads; /* by the writers' index */
	uint32_t thread_count;
	struct found *found; /* hashed by key, open addressing */
	uint32_t found_count, found_room;
};

static struct found *slot_of(const struct gt_awake *awake, uint64_t key)
{
	uint32_t mask = awake->found_room - 1;
	uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & mask;

	while (awake->found[at].key != 0 && awake->found[at].key != key)
		at = (at + 1) & mask;
	return &awake->found[at];
}

static struct found *found_of(struct gt_awake *awake, uint64_t key)
{
	struct found *slot;

	if (2 * (awake->found_count + 1) > awake->found_room) {
		struct gt_awake grown = *awake;

		grown.found_room = awake->found_room != 0 ? awake->found_room * 2 : 256;
		grown.found = calloc(grown.found_room, sizeof(*grown.found));
		if (grown.found == NULL)
			return NULL;
		for (uint32_t i = 0; i < awake->found_room; i++) {
			if (awake->found[i].key != 0)
				*slot_of(&grown, awake->found[i].key) = awake->found[i];
		}
		free(awake->found);
		awake->found = grown.found;
		awake->found_room = grown.found_room;
	}
	slot = slot_of(awake, key);
	awake->found_count += slot->key == 0;
	slot->key = key;
	return slot;
}

static void add(struct found *found, int which, uint64_t ticks, uint64_t off)
{
	off = off < ticks ? off : ticks;
	found->ticks[which] += off;
	/* of the squares: t² - (t - o)² */
	found->squares[which] += (u128)off * (2 * (u128)ticks - off);
}

/* NULL: no memory, or too deep. */
static struct entry *entry_at(struct gt_awake *awake, uint32_t index, uint32_t depth)
{
	struct thread *thread;

	if (depth >= DEPTH_MAX)
		return NULL;
	if (index >= awake->thread_count) {
		uint32_t count = index + index / 2 + 16;
		struct thread *grown = realloc(awake->threads, count * sizeof(*grown));

		if (grown == NULL)
			return NULL;
		memset(grown + awake->thread_count, 0,
		       (count - awake->thread_count) * sizeof(*grown));
		awake->threads = grown;
		awake->thread_count = count;
	}
	thread = &awake->threads[index];
	if (depth >= thread->room) {
		uint32_t room = depth + depth / 2 + 16;
		struct entry *grown;

		room = room < DEPTH_MAX ? room : DEPTH_MAX;
		grown = realloc(thread->entries, room * sizeof(*grown));
		if (grown == NULL)
			return NULL;
		memset(grown + thread->room, 0, (room - thread->room) * sizeof(*grown));
		thread->entries = grown;
		thread->room = room;
	}
	return &thread->entries[depth];
}

static void take_return(struct gt_awake *awake, const struct gt_source *source, uint64_t before)
{
	const struct gt_record *record = &source->record;
	struct entry *entry = entry_at(awake, source->index, record->depth), *caller;
	uint64_t ticks = record->clock - record->start;
	uint64_t off, inner = 0, self;
	struct found *found;

	/* Of the calls that are too deep the outermost are callees of one that is not. */
	if ((entry == NULL && record->depth != DEPTH_MAX) || record->start < awake->since ||
	    (record->flags & GT_RECORD_START_UNKNOWN))
		return;
	if (entry != NULL && entry->start == record->start) {
		off = before - entry->before;
		inner = entry->children;
	} else {
		off = gt_target_off_cpu(awake->session, source->tid, record->start, record->clock);
	}
	if (entry != NULL)
		entry->start = 0;
	if (off == 0)
		return;
	caller = record->depth > 0 ? entry_at(awake, source->index, record->depth - 1) : NULL;
	if (caller != NULL)
		caller->children += off;
	if (entry == NULL)
		return;
	found = found_of(awake, (uint64_t)source->tid << 32 | record->function);
	if (found == NULL)
		return;
	self = ticks > record->children ? ticks - record->children : 0;
	add(found, 0, ticks, off);
	add(found, 1, self, off > inner ? off - inner : 0);
}

static void take(struct gt_awake *awake, const struct gt_source *source)
{
	const struct gt_record *record = &source->record;
	/* an unknown time counts as 0 */
	uint64_t before = source->off_cpu.known ? source->off_cpu.time.before : 0;

	if (record->kind == GT_RECORD_ENTRY) {
		struct entry *entry = entry_at(awake, source->index, record->depth);

		if (entry != NULL && source->off_cpu.known)
			*entry = (struct entry){ .start = record->clock, .before = before };
	} else if ((record->kind == GT_RECORD_RETURN ||
		    (record->kind == GT_RECORD_UNWOUND && record->function != 0 &&
		     !(record->flags & GT_RECORD_UNSEEN))) &&
		   source->off_cpu.known) {
		take_return(awake, source, before);
	}
}

void gt_awake_pull(struct gt_awake *awake)
{
	struct gt_source *source;

	if (awake == NULL || !awake->follows || gt_merge_poll(&awake->merge) != 0)
		return;
	while (gt_merge_next(&awake->merge, &source) > 0)
		take(awake, source);
}

int gt_awake_follow(struct gt_awake **awake, struct gt_target *session)
{
	struct gt_awake *follower = *awake != NULL ? *awake : calloc(1, sizeof(*follower));

	if (follower == NULL)
		return GT_ENOMEM;
	if (follower->follows)
		return 0;
	if (gt_merge_init(&follower->merge, session, &gt_host_memory, GT_MERGE_FOLLOW, NULL) != 0) {
		if (*awake == NULL)
			gt_awake_destroy(follower);
		return GT_ENOMEM;
	}
	follower->session = session;
	follower->since = __builtin_ia32_rdtsc();
	follower->follows = true;
	*awake = follower;
	return 0;
}

void gt_awake_stop(struct gt_awake *awake)
{
	if (awake == NULL || !awake->follows)
		return;
	gt_merge_fini(&awake->merge);
	awake->follows = false;
	for (uint32_t i = 0; i < awake->thread_count; i++)
		free(awake->threads[i].entries);
	free(awake->threads);
	awake->threads = NULL;
	awake->thread_count = 0;
}

void gt_awake_destroy(struct gt_awake *awake)
{
	if (awake == NULL)
		return;
	gt_awake_stop(awake);
	free(awake->found);
	free(awake);
}

/* The table */

static int by_name(const void *left, const void *right)
{
	const struct gt_profile_row *a = *(struct gt_profile_row *const *)left;
	const struct gt_profile_row *b = *(struct gt_profile_row *const *)right;
	int order = strcmp(a->named.name, b->named.name);

	return order != 0 ? order : strcmp(a->named.object, b->named.object);
}

/* Functions with one name in one object are distinguished by address; in another process the
 * address differs. */
static struct gt_profile_row *row_of(struct gt_profile_row **sorted, uint32_t count,
				     const struct gt_function *function)
{
	struct gt_profile_row wanted = { .named = *function }, *key = &wanted;
	struct gt_profile_row **at = bsearch(&key, sorted, count, sizeof(*sorted), by_name);
	struct gt_profile_row **same;

	if (at == NULL)
		return NULL;
	while (at > sorted && by_name(at - 1, &key) == 0)
		at--;
	for (same = at; same < sorted + count && by_name(same, &key) == 0; same++) {
		if ((*same)->named.address == function->address)
			return *same;
	}
	return *at;
}

/* Subtracts from time and variance, given these sums of a sample. */
static void take_off(struct gt_profile_row *row, uint64_t ns, long double squares_ns)
{
	long double n = (long double)row->hits, sum = (long double)row->time_ns, all, value;

	all = n > 0 ? ((long double)row->variance * 1000 * n * (n - 1) + sum * sum) / n : 0;
	row->time_ns -= ns < row->time_ns ? ns : row->time_ns;
	sum = (long double)row->time_ns;
	all -= squares_ns;
	value = n > 1 ? (n * all - sum * sum) / (n * (n - 1) * 1000) : 0;
	row->variance = value > 0 ? (uint64_t)value : 0;
}

void gt_awake_take_out(const struct gt_awake *awake, uint32_t tid, bool self,
		       struct gt_profile_row *rows, uint32_t count)
{
	struct gt_profile_row **sorted = calloc(count + 1, sizeof(*sorted));
	const struct gt_clock *clock;
	long double tick;

	if (awake == NULL || sorted == NULL) {
		free(sorted);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = &rows[i];
	qsort(sorted, count, sizeof(*sorted), by_name);
	clock = &awake->session->clock;
	tick = (long double)clock->mult / (long double)(UINT64_C(1) << clock->shift);
	for (uint32_t i = 0; i < awake->found_room; i++) {
		const struct found *found = &awake->found[i];
		struct gt_function function;
		struct gt_profile_row *row;

		if (found->key == 0 || (tid != 0 && found->key >> 32 != tid) ||
		    gt_target_function(awake->session, (uint32_t)found->key, &function) != 0)
			continue;
		row = row_of(sorted, count, &function);
		if (row != NULL)
			take_off(row, gt_clock_duration_ns(clock, found->ticks[self]),
				 (long double)found->squares[self] * tick * tick);
	}
	free(sorted);
	qsort(rows, count, sizeof(*rows), gt_profile_row_order);
}
