/* SPDX-License-Identifier: MIT */
/* Histograms of events: see hists.h. */
#define _GNU_SOURCE /* MADV_REMOVE, qsort_r */
#include "attach/agent/hists.h"
#include "core/trace/message.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096ull

void gt_hists_init(struct gt_hists *hists, struct gt_arena *arena, const struct gt_clock *clock)
{
	*hists = (struct gt_hists){ .arena = arena, .clock = clock };
}

static void forget(struct gt_hists *hists, struct gt_hist_table *table)
{
	struct gt_hist_table **link = &hists->tables;

	while (*link && *link != table)
		link = &(*link)->next;
	if (*link)
		*link = table->next;
	free(table->name);
	free(table);
}

void gt_hists_fini(struct gt_hists *hists)
{
	while (hists->tables)
		forget(hists, hists->tables);
}

struct gt_hist_table *gt_hists_find(const struct gt_hists *hists, const char *name)
{
	struct gt_hist_table *table = hists->tables;

	while (table && (!table->name || strcmp(table->name, name) != 0))
		table = table->next;
	return table;
}

struct gt_hist_use *gt_hists_new(struct gt_hists *hists, const char *text)
{
	struct gt_hist_use *use = calloc(1, sizeof(*use));
	struct gt_hist_table *table = NULL;
	struct gt_hist_error error;

	if (!use)
		return NULL;
	use->text = strdup(text);
	if (use->text && gt_hist_parse(text, strlen(text), NULL, NULL, &use->hist, &error) == 0) {
		table = use->hist.name ? gt_hists_find(hists, use->hist.name) : NULL;
		if (table)
			table->users++;
		use->table = table ? table : calloc(1, sizeof(*table));
	}
	if (use->table && !table) {
		use->table->users = 1;
		use->table->name = use->hist.name ? strdup(use->hist.name) : NULL;
		use->table->next = hists->tables;
		hists->tables = use->table;
	}
	if (!use->table || (use->hist.name && !use->table->name)) {
		gt_hists_free(hists, use);
		return NULL;
	}
	return use;
}

void gt_hists_free(struct gt_hists *hists, struct gt_hist_use *use)
{
	if (!use)
		return;
	if (use->table && --use->table->users == 0)
		forget(hists, use->table);
	free(use->text);
	free(use);
}

/* ---- room ---- */

static uint64_t pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) & ~(PAGE - 1);
}

/* Behind the table that overlaps the place; the place itself: none does. */
static uint64_t behind_table(const struct gt_hists *hists, uint64_t at, uint64_t bytes)
{
	const struct gt_hist_table *table;

	for (table = hists->tables; table; table = table->next)
		if (table->bytes && at < table->offset + pages(table->bytes) &&
		    table->offset < at + bytes)
			return table->offset + pages(table->bytes);
	return at;
}

static bool find_room(const struct gt_hists *hists, uint64_t from, uint64_t bytes, uint64_t *offset)
{
	uint64_t at = from, next;

	while (at + bytes <= hists->arena->hists_bytes) {
		next = behind_table(hists, at, bytes);
		if (next == at) {
			*offset = at;
			return true;
		}
		at = next;
	}
	return false;
}

static struct graftrace_hist_table *table_at(const struct gt_arena *arena, uint64_t offset)
{
	return (struct graftrace_hist_table *)((char *)arena->memory + arena->hists_offset +
					       offset);
}

/* What others left there is taken out. */
static int take_room(struct gt_hists *hists, uint64_t bytes, uint64_t *offset,
		     struct gt_message *message)
{
	const struct gt_arena *arena;

	if (!find_room(hists, hists->from, pages(bytes), offset) &&
	    !find_room(hists, 0, pages(bytes), offset))
		return gt_fail(
			message, GT_ENOSPC,
			hists->arena->hists_bytes
				? "no room for a histogram of this size: it takes %llu bytes "
				  "of shared memory"
				: "no room for histograms: the limit of the address space "
				  "(ulimit -v) leaves none (%llu bytes)",
			(unsigned long long)bytes);
	for (arena = hists->arena; arena; arena = arena->next)
		if (madvise(table_at(arena, *offset), pages(bytes), MADV_REMOVE) != 0)
			memset(table_at(arena, *offset), 0, pages(bytes));
	hists->from = *offset + pages(bytes);
	return 0;
}

int gt_hists_clear(struct gt_hists *hists, struct gt_hist_use *use, struct gt_message *message)
{
	uint64_t offset;
	int error;

	if (!use->table->bytes)
		return 0;
	error = take_room(hists, use->table->bytes, &offset, message);
	if (!error)
		use->table->offset = offset;
	return error;
}

/* ---- descriptions ---- */

int gt_hists_describe(struct gt_hists *hists, struct gt_hist_use *use,
		      const struct gt_event_format *event, const struct gt_hist_world *world,
		      struct gt_message *message)
{
	struct gt_hist made;
	struct gt_hist_table *table = use->table;
	struct graftrace_hist_shape shape;
	struct gt_hist_error wrong;
	uint64_t offset;
	int error;

	if (gt_hist_parse(use->text, strlen(use->text), event, world, &made, &wrong))
		return gt_fail(message, GT_EINVAL, "histogram '%s' of %s:%s: %s%s%s", use->text,
			       event->system, event->name, wrong.text ? wrong.text : "Error",
			       wrong.part[0] ? " " : "", wrong.part);
	gt_hist_duplicate(&made, &use->hist);
	use->description_bytes = gt_hist_describe(&use->hist, hists->clock, 0, &use->description);
	if (!graftrace_hist_shape_of(&use->description, &shape))
		return gt_fail(message, GT_EINVAL, "histogram '%s': it cannot be", use->text);
	if (!table->bytes) {
		error = take_room(hists, shape.bytes, &offset, message);
		if (error)
			return error;
		table->offset = offset;
		table->bytes = shape.bytes;
		table->key_words = use->description.key_words;
		table->words = shape.words;
	}
	if (table->bytes != shape.bytes || table->words != shape.words ||
	    table->key_words != use->description.key_words)
		return gt_fail(message, GT_EINVAL,
			       "Named hist trigger doesn't match existing named trigger (includes "
			       "variables)");
	use->description.table = (uint32_t)(table->offset / 64);
	use->is_described = true;
	return 0;
}

/* ---- of several arenas ---- */

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
	uint32_t i;

	for (i = 0; i < *words; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* What each arena's table has. copy: its memory is used meanwhile. */
static int gather(const struct gt_hists *hists, const struct gt_hist_use *use,
		  struct gt_hist_copy *copy, struct gathered *all)
{
	const uint64_t most = 1ull << use->hist.bits;
	const struct gt_arena *arena;
	uint64_t arenas = 0, bytes, i;

	for (arena = hists->arena; arena; arena = arena->next)
		arenas++;
	*all = (struct gathered){ 0 };
	for (arena = hists->arena; arena; arena = arena->next) {
		uint64_t *words;

		gt_hist_look(&copy->view, copy->hist, &use->description,
			     table_at(arena, use->table->offset), use->table->bytes, copy->words,
			     copy->order);
		bytes = 8ull * copy->view.shape.words;
		words = all->words ? all->words : malloc(arenas * most * bytes);
		if (!words)
			return GT_ENOMEM;
		all->words = words;
		memcpy(words + all->count * copy->view.shape.words, copy->words,
		       copy->view.count * bytes);
		all->count += copy->view.count;
		all->hits += copy->view.hits;
		all->drops += copy->view.drops;
	}
	all->elements = calloc(all->count + 1, sizeof(*all->elements));
	for (i = 0; all->elements && i < all->count; i++)
		all->elements[i] = all->words + i * copy->view.shape.words;
	if (all->elements)
		qsort_r(all->elements, all->count, sizeof(*all->elements), by_key,
			(void *)&use->description.key_words);
	return all->elements ? 0 : GT_ENOMEM;
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
	uint32_t count = 0, k;

	table->hits = all->hits;
	table->drops = all->drops;
	for (i = 0; i < all->count; i++) {
		uint64_t *element = all->elements[i];

		if (last && !by_key(&last, &element, (void *)&use->description.key_words)) {
			for (k = shape->hits; k < shape->set; k++)
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

static int look_at_all(const struct gt_hists *hists, const struct gt_hist_use *use,
		       struct gt_hist_copy *copy)
{
	struct graftrace_hist_table *table = calloc(1, use->table->bytes);
	struct gathered all = { 0 };
	int error = table ? gather(hists, use, copy, &all) : GT_ENOMEM;

	if (!error) {
		join(&all, use, &copy->view.shape, table);
		gt_hist_look(&copy->view, copy->hist, &use->description, table, use->table->bytes,
			     copy->words, copy->order);
	}
	free(all.words);
	free(all.elements);
	free(table);
	if (error)
		gt_hist_copy_free(copy);
	return error;
}

int gt_hists_copy(const struct gt_hists *hists, const struct gt_hist_use *use,
		  struct gt_hist_copy *copy)
{
	struct graftrace_hist_shape shape;
	const uint64_t most = 1ull << use->hist.bits;

	*copy = (struct gt_hist_copy){ .hist = malloc(sizeof(*copy->hist)) };
	if (!copy->hist)
		return GT_ENOMEM;
	gt_hist_duplicate(&use->hist, copy->hist);
	copy->view = (struct gt_hist_view){ .hist = copy->hist };
	if (!use->is_described || !graftrace_hist_shape_of(&use->description, &shape))
		return 0;
	copy->words = calloc(most, 8ull * shape.words);
	copy->order = calloc(most, sizeof(*copy->order));
	if (!copy->words || !copy->order) {
		gt_hist_copy_free(copy);
		return GT_ENOMEM;
	}
	if (hists->arena->next)
		return look_at_all(hists, use, copy);
	gt_hist_look(&copy->view, copy->hist, &use->description,
		     table_at(hists->arena, use->table->offset), use->table->bytes, copy->words,
		     copy->order);
	return 0;
}

void gt_hist_copy_free(struct gt_hist_copy *copy)
{
	free(copy->hist);
	free(copy->words);
	free(copy->order);
	free(copy->filter);
	*copy = (struct gt_hist_copy){ 0 };
}
