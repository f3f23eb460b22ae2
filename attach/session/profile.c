/* SPDX-License-Identifier: MIT */
/*
 * The profiler's tables: see profile.h. A page's state is written by its owner before the page, and
 * says who that is; a state that fits no writer, or a function that nobody has, is left out.
 */
#include "attach/session/profile.h"

#include <stdlib.h>
#include <string.h>

#define FUNCTIONS GRAFTRACE_PROFILE_FUNCTIONS
/* Dead threads' pages are taken when so many are in use (16 MB). */
#define COLLECT_PAGES 4096

void gt_profile_init(struct gt_profile *profile, struct gt_arena *arena, struct gt_drain *drain,
		     struct gt_catalog *catalog)
{
	*profile = (struct gt_profile){ .arena = arena, .drain = drain, .catalog = catalog };
}

static void forget(struct gt_profile_counts ***pages, uint32_t count)
{
	for (uint32_t i = 0; *pages != NULL && i < count; i++)
		free((*pages)[i]);
	free(*pages);
	*pages = NULL;
}

void gt_profile_fini(struct gt_profile *profile)
{
	forget(&profile->dead.pages, profile->dead.count);
	if (profile->arena != NULL)
		forget(&profile->before, profile->arena->profile_page_count);
	*profile = (struct gt_profile){ 0 };
}

/* Pages that were ever used: the target can write the word. */
static uint32_t used_pages(const struct gt_profile *profile)
{
	uint32_t next = __atomic_load_n(&profile->arena->memory->profile_next, __ATOMIC_ACQUIRE);
	uint32_t count = profile->arena->profile_page_count;

	return next < count ? next : count;
}

struct owner {
	const struct gt_live_writer *writer; /* NULL: it has gone, or is not known yet */
	bool dead;
	uint32_t first; /* number of the page's first function */
};

/* False: the page is nobody's, or its functions are none. */
static bool find_owner(const struct gt_profile *profile, uint32_t page, struct owner *owner)
{
	const struct graftrace_profile_state *state = gt_arena_profile_state(profile->arena, page);
	uint32_t generation = __atomic_load_n(&state->generation, __ATOMIC_ACQUIRE);
	uint32_t stream = __atomic_load_n(&state->stream, __ATOMIC_RELAXED);
	uint32_t first = __atomic_load_n(&state->first, __ATOMIC_RELAXED);
	const struct gt_drain *drain = profile->drain;

	if (!generation || first > GRAFTRACE_SPECIAL / FUNCTIONS ||
	    first * FUNCTIONS >= profile->catalog->next_number)
		return false;
	*owner = (struct owner){ .first = first * FUNCTIONS };
	if (stream < profile->arena->stream_count && drain->of_stream[stream]) {
		const struct gt_live_writer *writer = &drain->writers[drain->of_stream[stream] - 1];

		if (writer->writer.generation == generation && !writer->ended)
			owner->writer = writer;
	}
	/* Of the numbers up to this one every writer was found; a later one may live. */
	owner->dead = owner->writer == NULL && generation <= drain->generations;
	return true;
}

/* A number of two words that its owner may be adding to: read until it stands still. */
static void load_pair(const uint64_t *pair, uint64_t *low, uint64_t *high)
{
	uint64_t again;
	int tries = 0;

	do {
		*high = __atomic_load_n(&pair[1], __ATOMIC_ACQUIRE);
		*low = __atomic_load_n(&pair[0], __ATOMIC_ACQUIRE);
		again = __atomic_load_n(&pair[1], __ATOMIC_ACQUIRE);
	} while (again != *high && ++tries < 8);
}

static void load_entry(const struct graftrace_profile_entry *from, struct gt_profile_counts *to)
{
	to->hits = __atomic_load_n(&from->hits, __ATOMIC_RELAXED);
	to->ticks = __atomic_load_n(&from->ticks, __ATOMIC_RELAXED);
	to->self_ticks = __atomic_load_n(&from->self_ticks, __ATOMIC_RELAXED);
	load_pair(from->squares, &to->squares[0], &to->squares[1]);
	load_pair(from->self_squares, &to->self_squares[0], &to->self_squares[1]);
	graftrace_profile_histogram(from, to->buckets);
}

static void add_pair(uint64_t to[2], const uint64_t value[2], bool minus)
{
	__extension__ typedef unsigned __int128 u128;
	u128 a = (u128)to[1] << 64 | to[0], b = (u128)value[1] << 64 | value[0];

	a = minus ? a - b : a + b;
	to[0] = (uint64_t)a;
	to[1] = (uint64_t)(a >> 64);
}

static void add_entry(struct gt_profile_counts *to, const struct gt_profile_counts *entry)
{
	to->hits += entry->hits;
	to->ticks += entry->ticks;
	to->self_ticks += entry->self_ticks;
	add_pair(to->squares, entry->squares, false);
	add_pair(to->self_squares, entry->self_squares, false);
	for (uint32_t i = 0; i < GRAFTRACE_PROFILE_BUCKETS; i++)
		to->buckets[i] += entry->buckets[i];
}

static void take_off(struct gt_profile_counts *from, const struct gt_profile_counts *entry)
{
	from->hits -= entry->hits;
	from->ticks -= entry->ticks;
	from->self_ticks -= entry->self_ticks;
	add_pair(from->squares, entry->squares, true);
	add_pair(from->self_squares, entry->self_squares, true);
	for (uint32_t i = 0; i < GRAFTRACE_PROFILE_BUCKETS; i++)
		from->buckets[i] -= entry->buckets[i];
	/* of 32 bits in the target */
	for (uint32_t i = GRAFTRACE_PROFILE_SHORT_BUCKETS; i < GRAFTRACE_PROFILE_BUCKETS; i++)
		from->buckets[i] = (uint32_t)from->buckets[i];
}

/* What one function of the page has counted since the profiler was switched on. False: it was never called. */
static bool read_entry(const struct gt_profile *profile, uint32_t page, uint32_t at,
		       struct gt_profile_counts *entry)
{
	const struct graftrace_profile_entry *from =
		&gt_arena_profile_page(profile->arena, page)[at];

	if (__atomic_load_n(&from->hits, __ATOMIC_RELAXED) == 0)
		return false;
	load_entry(from, entry);
	if (profile->before != NULL && profile->before[page] != NULL)
		take_off(entry, &profile->before[page][at]);
	return true;
}

int gt_profile_reset(struct gt_profile *profile)
{
	uint32_t used = used_pages(profile), page, i;
	struct owner owner;

	forget(&profile->dead.pages, profile->dead.count);
	profile->dead.count = 0;
	profile->out_of_memory = false;
	if (profile->before == NULL && used)
		profile->before =
			calloc(profile->arena->profile_page_count, sizeof(*profile->before));
	if (profile->before == NULL && used)
		return GT_ENOMEM;
	for (page = 0; page < used; page++) {
		if (!find_owner(profile, page, &owner))
			continue;
		if (profile->before[page] == NULL)
			profile->before[page] = calloc(FUNCTIONS, sizeof(**profile->before));
		if (profile->before[page] == NULL)
			return GT_ENOMEM;
		for (i = 0; i < FUNCTIONS; i++)
			load_entry(&gt_arena_profile_page(profile->arena, page)[i],
				   &profile->before[page][i]);
	}
	return 0;
}

/* The page of a table that has function `first`, made if there is none; NULL: no memory. */
static struct gt_profile_counts *page_of(const struct gt_catalog *catalog,
					 struct gt_profile_pages *table, uint32_t first)
{
	uint32_t at = first / FUNCTIONS;

	if (at >= table->count) {
		uint32_t count = catalog->next_number / FUNCTIONS + 1;
		struct gt_profile_counts **grown = realloc(table->pages, count * sizeof(*grown));

		if (grown == NULL)
			return NULL;
		memset(grown + table->count, 0, (count - table->count) * sizeof(*grown));
		table->pages = grown;
		table->count = count;
	}
	if (table->pages[at] == NULL)
		table->pages[at] = calloc(FUNCTIONS, sizeof(**table->pages));
	return table->pages[at];
}

/* Adds what a page of the arena has to one of a table. False: no memory. */
static bool add_page(const struct gt_profile *profile, struct gt_profile_pages *table,
		     uint32_t page, uint32_t first)
{
	struct gt_profile_counts *to = page_of(profile->catalog, table, first), entry;

	for (uint32_t i = 0; to != NULL && i < FUNCTIONS; i++) {
		if (read_entry(profile, page, i, &entry))
			add_entry(&to[i], &entry);
	}
	return to != NULL;
}

static void take_page(struct gt_profile *profile, uint32_t page, uint32_t first)
{
	if (!add_page(profile, &profile->dead, page, first)) {
		profile->out_of_memory = true;
		return; /* it stays where it is, and is counted from there */
	}
	if (profile->before != NULL) {
		free(profile->before[page]);
		profile->before[page] = NULL;
	}
	gt_arena_profile_free(profile->arena, page);
}

void gt_profile_collect(struct gt_profile *profile)
{
	uint32_t used = used_pages(profile), page;
	struct owner owner;

	/* Once all were used for the first time, what is free is on the stack. */
	if (used < COLLECT_PAGES && used < profile->arena->profile_page_count / 2)
		return;
	for (page = 0; page < used; page++)
		if (find_owner(profile, page, &owner) && owner.dead)
			take_page(profile, page, owner.first);
}

static int by_function(const void *left, const void *right)
{
	const struct gt_profile_sum *a = left, *b = right;

	return a->function < b->function ? -1 : a->function > b->function;
}

/* The same file in another process has other numbers: each number becomes the file's first one. */
static uint32_t first_number(const struct gt_catalog *catalog, uint32_t function)
{
	const struct gt_catalog_block *block = NULL;

	for (size_t i = 0; i < catalog->block_count && block == NULL; i++)
		if (function - catalog->blocks[i].first < catalog->blocks[i].count)
			block = &catalog->blocks[i];
	for (size_t i = 0; block != NULL && i < catalog->block_count; i++)
		if (catalog->blocks[i].file == block->file &&
		    function - block->first < catalog->blocks[i].count)
			return catalog->blocks[i].first + (function - block->first);
	return function;
}

void gt_profile_merge(const struct gt_catalog *catalog, struct gt_profile_sum *sums,
		      uint32_t *count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; catalog->block_count > 1 && i < *count; i++)
		sums[i].function = first_number(catalog, sums[i].function);
	if (*count) /* else there is no array */
		qsort(sums, *count, sizeof(*sums), by_function);
	for (uint32_t i = 0; i < *count; i++) {
		if (kept && sums[kept - 1].function == sums[i].function)
			add_entry(&sums[kept - 1].entry, &sums[i].entry);
		else
			sums[kept++] = sums[i];
	}
	*count = kept;
}

/* All that a table has, as an array. GT_ENOMEM. */
static int list(const struct gt_profile_pages *table, struct gt_profile_sum **out, uint32_t *count)
{
	uint32_t called = 0;

	for (uint32_t page = 0; page < table->count; page++)
		for (uint32_t i = 0; table->pages[page] != NULL && i < FUNCTIONS; i++)
			called += table->pages[page][i].hits != 0;
	struct gt_profile_sum *sums = calloc(called + 1u, sizeof(*sums));
	if (sums == NULL)
		return GT_ENOMEM;
	*count = 0;
	for (uint32_t page = 0; page < table->count; page++)
		for (uint32_t i = 0; table->pages[page] != NULL && i < FUNCTIONS; i++)
			if (table->pages[page][i].hits != 0)
				sums[(*count)++] = (struct gt_profile_sum){ page * FUNCTIONS + i,
									    table->pages[page][i] };
	*out = sums;
	return 0;
}

int gt_profile_read(struct gt_profile *profile, uint32_t tid, struct gt_profile_sum **sums,
		    uint32_t *count)
{
	const struct gt_profile_pages *dead = &profile->dead;
	const uint32_t used = used_pages(profile);
	struct gt_profile_pages table = { NULL, 0 };
	struct owner owner;
	int error = 0;

	gt_drain_find_writers(profile->drain);
	for (uint32_t page = 0; page < used && !error; page++) {
		if (!find_owner(profile, page, &owner) ||
		    (tid && (owner.writer == NULL || owner.writer->writer.tid != tid)))
			continue;
		if (!add_page(profile, &table, page, owner.first))
			error = GT_ENOMEM;
	}
	for (uint32_t page = 0; !tid && page < dead->count && !error; page++) {
		struct gt_profile_counts *to =
			dead->pages[page] != NULL
				? page_of(profile->catalog, &table, page * FUNCTIONS)
				: NULL;

		for (uint32_t i = 0; to != NULL && i < FUNCTIONS; i++)
			add_entry(&to[i], &dead->pages[page][i]);
		if (dead->pages[page] != NULL && to == NULL)
			error = GT_ENOMEM;
	}
	if (!error)
		error = list(&table, sums, count);
	forget(&table.pages, table.count);
	if (!error)
		gt_profile_merge(profile->catalog, *sums, count);
	return error;
}
