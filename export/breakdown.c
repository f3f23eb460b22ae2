/* SPDX-License-Identifier: MIT */
/*
 * Sums by function, thread and pair, each found by an open-addressing hash table of indexes.
 */
#define _GNU_SOURCE
#include "export/breakdown.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_BLOCK (256u << 10)

/* Slots hold an index + 1; 0 is free. A power of two, at most half full. */
struct table {
	uint32_t *slots;
	uint32_t mask;
};

struct names {
	struct names *next;
	char bytes[];
};

struct gt_breakdown_index {
	struct table functions;
	struct table threads;
	struct table cells;
	uint64_t *hashes; /* by function */
	uint32_t functions_size;
	uint32_t threads_size;
	uint32_t cells_size;
	struct names *names;
	size_t names_left;
	char *names_at;
	uint32_t last_thread; /* calls come in runs of one thread */
};

static uint64_t mix(uint64_t value)
{
	value ^= value >> 32;
	value *= 0xd6e8feb86659fd93u;
	value ^= value >> 32;
	value *= 0xd6e8feb86659fd93u;
	return value ^ value >> 32;
}

static uint64_t hash_name(const char *name, size_t len)
{
	uint64_t hash = mix(len);
	uint64_t word;

	for (; len >= 8; name += 8, len -= 8) {
		memcpy(&word, name, 8);
		hash = mix(hash ^ word);
	}
	word = 0;
	memcpy(&word, name, len);
	return mix(hash ^ word);
}

static int64_t add_saturated(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

static uint64_t cell_hash(uint32_t function, uint32_t thread)
{
	return mix((uint64_t)function << 32 | thread);
}

static int table_init(struct table *table)
{
	table->mask = 255;
	table->slots = calloc((size_t)table->mask + 1, sizeof *table->slots);
	return table->slots != NULL ? 0 : GT_ENOMEM;
}

static void table_put(struct table *table, uint64_t hash, uint32_t index)
{
	uint32_t slot = (uint32_t)hash & table->mask;

	while (table->slots[slot] != 0)
		slot = (slot + 1) & table->mask;
	table->slots[slot] = index + 1;
}

/* Doubles the slots; hash_of gives the hash of an existing entry. */
static int table_grow(struct table *table, const struct gt_breakdown *breakdown, uint32_t count,
		      uint64_t (*hash_of)(const struct gt_breakdown *breakdown, uint32_t index))
{
	struct table grown = { .mask = table->mask * 2 + 1 };

	if (count * 2 <= table->mask)
		return 0;
	grown.slots = calloc((size_t)grown.mask + 1, sizeof *grown.slots);
	if (grown.slots == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		table_put(&grown, hash_of(breakdown, i), i);
	free(table->slots);
	*table = grown;
	return 0;
}

/* Makes room for one more entry in an array. */
static int array_grow(void **array, uint32_t count, uint32_t *size, size_t entry_bytes)
{
	uint32_t wanted = *size == 0 ? 64 : *size * 2;
	void *grown;

	if (count < *size)
		return 0;
	if (count >= GT_BREAKDOWN_ENTRIES_MAX)
		return GT_ENOSPC;
	grown = realloc(*array, wanted * entry_bytes);
	if (grown == NULL)
		return GT_ENOMEM;
	*array = grown;
	*size = wanted;
	return 0;
}

static uint64_t function_hash(const struct gt_breakdown *breakdown, uint32_t index)
{
	return breakdown->index->hashes[index];
}

static uint64_t thread_hash(const struct gt_breakdown *breakdown, uint32_t index)
{
	return mix((uint64_t)breakdown->threads[index].tid);
}

static uint64_t hash_of_cell(const struct gt_breakdown *breakdown, uint32_t index)
{
	return cell_hash(breakdown->cells[index].function, breakdown->cells[index].thread);
}

static const char *keep_name(struct gt_breakdown_index *index, const char *name, size_t len)
{
	char *kept;

	if (len > index->names_left) {
		size_t size = len > NAMES_BLOCK ? len : NAMES_BLOCK;
		struct names *block = malloc(sizeof *block + size);

		if (block == NULL)
			return NULL;
		block->next = index->names;
		index->names = block;
		index->names_at = block->bytes;
		index->names_left = size;
	}
	kept = index->names_at;
	memcpy(kept, name, len);
	index->names_at += len;
	index->names_left -= len;
	return kept;
}

static int find_function(struct gt_breakdown *breakdown, const char *name, size_t len,
			 uint32_t *function)
{
	struct gt_breakdown_index *index = breakdown->index;
	uint64_t hash = hash_name(name, len);
	uint32_t slot = (uint32_t)hash & index->functions.mask;
	uint32_t size = index->functions_size;
	struct gt_breakdown_function *entry;
	const char *kept;
	void *array;
	int result;

	for (; index->functions.slots[slot] != 0; slot = (slot + 1) & index->functions.mask) {
		uint32_t i = index->functions.slots[slot] - 1;

		entry = &breakdown->functions[i];
		if (index->hashes[i] == hash && entry->name_len == len &&
		    memcmp(entry->name, name, len) == 0) {
			*function = i;
			return 0;
		}
	}
	array = breakdown->functions;
	result = array_grow(&array, breakdown->functions_count, &index->functions_size,
			    sizeof *entry);
	if (result != 0)
		return result;
	breakdown->functions = array;
	if (index->functions_size != size) {
		array = realloc(index->hashes, index->functions_size * sizeof *index->hashes);
		if (array == NULL) {
			index->functions_size = size;
			return GT_ENOMEM;
		}
		index->hashes = array;
	}
	result =
		table_grow(&index->functions, breakdown, breakdown->functions_count, function_hash);
	if (result != 0)
		return result;
	kept = keep_name(index, name, len);
	if (kept == NULL)
		return GT_ENOMEM;
	*function = breakdown->functions_count++;
	index->hashes[*function] = hash;
	breakdown->functions[*function] =
		(struct gt_breakdown_function){ .name = kept, .name_len = len };
	table_put(&index->functions, hash, *function);
	return 0;
}

static int find_thread(struct gt_breakdown *breakdown, int64_t tid, uint32_t *thread)
{
	struct gt_breakdown_index *index = breakdown->index;
	uint64_t hash = mix((uint64_t)tid);
	uint32_t slot = (uint32_t)hash & index->threads.mask;
	void *array = breakdown->threads;
	int result;

	if (index->last_thread < breakdown->threads_count &&
	    breakdown->threads[index->last_thread].tid == tid) {
		*thread = index->last_thread;
		return 0;
	}
	for (; index->threads.slots[slot] != 0; slot = (slot + 1) & index->threads.mask) {
		uint32_t i = index->threads.slots[slot] - 1;

		if (breakdown->threads[i].tid == tid) {
			index->last_thread = i;
			*thread = i;
			return 0;
		}
	}
	result = array_grow(&array, breakdown->threads_count, &index->threads_size,
			    sizeof *breakdown->threads);
	if (result != 0)
		return result;
	breakdown->threads = array;
	result = table_grow(&index->threads, breakdown, breakdown->threads_count, thread_hash);
	if (result != 0)
		return result;
	*thread = breakdown->threads_count++;
	breakdown->threads[*thread] = (struct gt_breakdown_thread){ .tid = tid };
	table_put(&index->threads, hash, *thread);
	index->last_thread = *thread;
	return 0;
}

static int find_cell(struct gt_breakdown *breakdown, uint32_t function, uint32_t thread,
		     uint32_t *cell)
{
	struct gt_breakdown_index *index = breakdown->index;
	uint64_t hash = cell_hash(function, thread);
	uint32_t slot = (uint32_t)hash & index->cells.mask;
	void *array = breakdown->cells;
	int result;

	for (; index->cells.slots[slot] != 0; slot = (slot + 1) & index->cells.mask) {
		uint32_t i = index->cells.slots[slot] - 1;

		if (breakdown->cells[i].function == function &&
		    breakdown->cells[i].thread == thread) {
			*cell = i;
			return 0;
		}
	}
	result = array_grow(&array, breakdown->cells_count, &index->cells_size,
			    sizeof *breakdown->cells);
	if (result != 0)
		return result;
	breakdown->cells = array;
	result = table_grow(&index->cells, breakdown, breakdown->cells_count, hash_of_cell);
	if (result != 0)
		return result;
	*cell = breakdown->cells_count++;
	breakdown->cells[*cell] =
		(struct gt_breakdown_cell){ .function = function, .thread = thread };
	table_put(&index->cells, hash, *cell);
	return 0;
}

int gt_breakdown_init(struct gt_breakdown *breakdown)
{
	struct gt_breakdown_index *index = calloc(1, sizeof *index);

	memset(breakdown, 0, sizeof *breakdown);
	if (index == NULL)
		return GT_ENOMEM;
	breakdown->index = index;
	if (table_init(&index->functions) == 0 && table_init(&index->threads) == 0 &&
	    table_init(&index->cells) == 0)
		return 0;
	gt_breakdown_fini(breakdown);
	return GT_ENOMEM;
}

int gt_breakdown_add(struct gt_breakdown *breakdown, const char *function, size_t function_len,
		     int64_t tid, int64_t latency_ns, int64_t self_ns)
{
	struct gt_breakdown_function *by_function;
	struct gt_breakdown_thread *by_thread;
	uint32_t f;
	uint32_t t;
	uint32_t c;
	int result = find_function(breakdown, function, function_len, &f);

	if (result == 0)
		result = find_thread(breakdown, tid, &t);
	if (result == 0)
		result = find_cell(breakdown, f, t, &c);
	if (result != 0)
		return result;
	by_function = &breakdown->functions[f];
	by_function->calls++;
	by_function->latency_ns = add_saturated(by_function->latency_ns, latency_ns);
	by_function->self_ns = add_saturated(by_function->self_ns, self_ns);
	by_thread = &breakdown->threads[t];
	by_thread->calls++;
	by_thread->self_ns = add_saturated(by_thread->self_ns, self_ns);
	breakdown->cells[c].self_ns = add_saturated(breakdown->cells[c].self_ns, self_ns);
	breakdown->calls++;
	breakdown->self_ns = add_saturated(breakdown->self_ns, self_ns);
	return 0;
}

static int compare_functions(const void *a, const void *b, void *user)
{
	const struct gt_breakdown *breakdown = user;
	const struct gt_breakdown_function *x = &breakdown->functions[*(const uint32_t *)a];
	const struct gt_breakdown_function *y = &breakdown->functions[*(const uint32_t *)b];
	int order;

	if (x->self_ns != y->self_ns)
		return x->self_ns > y->self_ns ? -1 : 1;
	order = memcmp(x->name, y->name, x->name_len < y->name_len ? x->name_len : y->name_len);
	if (order != 0)
		return order;
	return x->name_len < y->name_len ? -1 : x->name_len > y->name_len;
}

static int compare_threads(const void *a, const void *b, void *user)
{
	const struct gt_breakdown *breakdown = user;
	const struct gt_breakdown_thread *x = &breakdown->threads[*(const uint32_t *)a];
	const struct gt_breakdown_thread *y = &breakdown->threads[*(const uint32_t *)b];

	if (x->self_ns != y->self_ns)
		return x->self_ns > y->self_ns ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int rank(const struct gt_breakdown *breakdown, uint32_t count, uint32_t **order,
		int (*compare)(const void *a, const void *b, void *user))
{
	uint32_t *ranked = malloc(((size_t)count + 1) * sizeof *ranked);

	if (ranked == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		ranked[i] = i;
	qsort_r(ranked, count, sizeof *ranked, compare, (void *)(uintptr_t)breakdown);
	*order = ranked;
	return 0;
}

int gt_breakdown_rank_functions(const struct gt_breakdown *breakdown, uint32_t **order)
{
	return rank(breakdown, breakdown->functions_count, order, compare_functions);
}

int gt_breakdown_rank_threads(const struct gt_breakdown *breakdown, uint32_t **order)
{
	return rank(breakdown, breakdown->threads_count, order, compare_threads);
}

void gt_breakdown_fini(struct gt_breakdown *breakdown)
{
	struct gt_breakdown_index *index = breakdown->index;

	if (index != NULL) {
		while (index->names != NULL) {
			struct names *next = index->names->next;

			free(index->names);
			index->names = next;
		}
		free(index->functions.slots);
		free(index->threads.slots);
		free(index->cells.slots);
		free(index->hashes);
		free(index);
	}
	free(breakdown->functions);
	free(breakdown->threads);
	free(breakdown->cells);
	memset(breakdown, 0, sizeof *breakdown);
}
