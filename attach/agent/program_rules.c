/* SPDX-License-Identifier: MIT */
/* Rules of a program's events: see program_rules.h. */
#define _GNU_SOURCE /* MADV_REMOVE, qsort_r */
#include "attach/agent/program_rules.h"
#include "attach/agent/synthetics.h"
#include "attach/agent/syscall_events.h"
#include "port/host/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- arenas ---- */

static bool find_arena(void *data, uint32_t index, struct gt_rules_arena *found)
{
	const struct gt_rules_of_program *of = data;
	const struct gt_arena *arena = of->arena;

	while (arena != NULL && index-- > 0)
		arena = arena->next;
	if (arena == NULL)
		return false;
	*found = (struct gt_rules_arena){ arena->memory,
					  (char *)arena->memory + arena->hists_offset };
	return true;
}

static void wipe(void *data, void *memory, uint64_t bytes)
{
	(void)data;
	if (madvise(memory, bytes, MADV_REMOVE) != 0)
		memset(memory, 0, bytes);
}

static struct graftrace_hist_table *table_at(const struct gt_arena *arena, uint64_t offset)
{
	return (struct graftrace_hist_table *)((char *)arena->memory + arena->hists_offset +
					       offset);
}

/* ---- events ---- */

static bool find_probe(const struct gt_catalog *catalog, const char *system, const char *name,
		       struct gt_event_format *found)
{
	for (size_t i = 0; i < catalog->file_count; i++)
		for (uint32_t k = 0; k < catalog->files[i]->probe_count; k++) {
			const struct gt_catalog_probe *probe = &catalog->files[i]->probes[k];

			if (probe->removed || strcmp(probe->probe->name, name) != 0 ||
			    strcmp(probe->probe->system, system) != 0)
				continue;
			gt_catalog_describe_event(catalog->files[i], k, found);
			return true;
		}
	return false;
}

static bool find_call(const struct gt_catalog *catalog, const char *system, const char *name,
		      struct gt_event_format *found)
{
	const char *its_system;

	for (uint32_t i = 0; catalog->syscall_events && i < gt_syscall_event_count(); i++)
		if (strcmp(gt_syscall_event_name(i, &its_system), name) == 0 &&
		    strcmp(its_system, system) == 0) {
			gt_syscall_event_describe(catalog, i, found);
			return true;
		}
	return false;
}

static const struct gt_event_format *find_event(void *data, const char *system, const char *name,
						struct gt_event_format *room)
{
	const struct gt_rules_of_program *of = data;
	const struct gt_synthetic_event *synthetic = strcmp(system, GT_EVENT_SYNTHETIC) == 0
							     ? gt_synthetics_find(of->catalog, name)
							     : NULL;

	if (synthetic != NULL)
		return &synthetic->definition.format;
	return find_probe(of->catalog, system, name, room) ||
			       find_call(of->catalog, system, name, room)
		       ? room
		       : NULL;
}

/* ---- histograms of several arenas ---- */

struct gathered {
	uint64_t *words; /* elements of all arenas, and pointers to them */
	uint64_t **elements;
	uint64_t count;
	uint64_t hits;
	uint64_t drops;
};

static int by_key(const void *left, const void *right, void *data)
{
	const uint64_t *a = *(uint64_t *const *)left, *b = *(uint64_t *const *)right;
	const uint32_t *words = data;

	for (uint32_t i = 0; i < *words; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* What each arena's table has. copy: its memory is used meanwhile. */
static int gather(const struct gt_arena *first, const struct gt_hist_use *use,
		  struct gt_hist_copy *copy, struct gathered *all)
{
	const uint64_t most = 1ull << use->hist.bits;
	const struct gt_arena *arena;
	uint64_t arenas = 0, bytes;

	for (arena = first; arena != NULL; arena = arena->next)
		arenas++;
	*all = (struct gathered){ 0 };
	for (arena = first; arena != NULL; arena = arena->next) {
		uint64_t *words;

		gt_hist_look(&copy->view, copy->hist, &use->description,
			     table_at(arena, use->table->offset), use->table->bytes, copy->words,
			     copy->order);
		bytes = 8ull * copy->view.shape.words;
		words = all->words != NULL ? all->words : malloc(arenas * most * bytes);
		if (words == NULL)
			return GT_ENOMEM;
		all->words = words;
		memcpy(words + all->count * copy->view.shape.words, copy->words,
		       copy->view.count * bytes);
		all->count += copy->view.count;
		all->hits += copy->view.hits;
		all->drops += copy->view.drops;
	}
	all->elements = calloc(all->count + 1, sizeof(*all->elements));
	for (uint64_t i = 0; all->elements != NULL && i < all->count; i++)
		all->elements[i] = all->words + i * copy->view.shape.words;
	if (all->elements != NULL)
		qsort_r(all->elements, all->count, sizeof(*all->elements), by_key,
			(void *)&use->description.key_words);
	return all->elements != NULL ? 0 : GT_ENOMEM;
}

/* Of one key in several arenas: the variables stay together; the largest maximum goes before. */
static void take_variables(const struct gt_hist_use *use, const struct graftrace_hist_shape *shape,
			   uint64_t *into, const uint64_t *from)
{
	const struct gt_hist *hist = &use->hist;
	uint32_t at = shape->set;

	if (shape->words == shape->set || !from[at])
		return;
	for (uint32_t i = 0; i < hist->variable_count; i++)
		if (hist->variables[i].is_tracked)
			at = shape->set + 1 + hist->variables[i].at;
	if (!into[shape->set] || (at != shape->set && from[at] > into[at]))
		memcpy(into + shape->set, from + shape->set, 8ull * (shape->words - shape->set));
}

/* The same as one table. */
static void join(const struct gathered *all, const struct gt_hist_use *use,
		 const struct graftrace_hist_shape *shape, struct graftrace_hist_table *table)
{
	const uint64_t most = 1ull << use->hist.bits;
	uint64_t *slots = graftrace_hist_slots(table), *last = NULL, i;
	uint32_t count = 0;

	table->hits = all->hits;
	table->drops = all->drops;
	for (i = 0; i < all->count; i++) {
		uint64_t *element = all->elements[i];

		if (last != NULL && !by_key(&last, &element, (void *)&use->description.key_words)) {
			for (uint32_t k = shape->hits; k < shape->set; k++)
				last[k] += element[k];
			take_variables(use, shape, last, element);
		} else if (count == most) {
			table->drops += element[shape->hits];
			last = NULL;
		} else {
			last = graftrace_hist_element(table, shape, count);
			memcpy(last, element, 8ull * shape->words);
			slots[count] = count + 1;
			count++;
		}
	}
}

static int gather_all(void *data, const struct gt_hist_use *use, struct gt_hist_copy *copy)
{
	const struct gt_rules_of_program *of = data;
	struct graftrace_hist_table *table = calloc(1, use->table->bytes);
	struct gathered all = { 0 };
	int error = table != NULL ? gather(of->arena, use, copy, &all) : GT_ENOMEM;

	if (!error) {
		join(&all, use, &copy->view.shape, table);
		gt_hist_look(&copy->view, copy->hist, &use->description, table, use->table->bytes,
			     copy->words, copy->order);
	}
	free(all.words);
	free(all.elements);
	free(table);
	return error;
}

void gt_rules_of_program_init(struct gt_rules_of_program *of, struct gt_arena *arena,
			      const struct gt_clock *clock, struct gt_catalog *catalog)
{
	*of = (struct gt_rules_of_program){
		.host = {
			.memory = gt_host_memory,
			.clock = clock,
			.hists_bytes = arena->hists_bytes,
			.arena = find_arena,
			.find_event = find_event,
			.wipe = wipe,
			.gather = gather_all,
			.data = of,
		},
		.arena = arena,
		.catalog = catalog,
	};
}
