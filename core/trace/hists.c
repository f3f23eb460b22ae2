/* SPDX-License-Identifier: MIT */
/* Histograms of events: see hists.h. */
#include "core/trace/hists.h"
#include "core/trace/message.h"
#include "core/trace/strings.h"

#define PAGE 4096ull

void gt_hists_init(struct gt_hists *hists, const struct gt_rules_host *host)
{
	*hists = (struct gt_hists){ .host = host };
}

static const struct gt_memory *memory_of(const struct gt_hists *hists)
{
	return &hists->host->memory;
}

static void *take_zeroed(const struct gt_hists *hists, size_t bytes)
{
	void *const taken = gt_memory_get(memory_of(hists), bytes);

	if (taken != NULL)
		__builtin_memset(taken, 0, bytes);
	return taken;
}

static void forget(struct gt_hists *hists, struct gt_hist_table *table)
{
	struct gt_hist_table **link = &hists->tables;

	while (*link != NULL && *link != table)
		link = &(*link)->next;
	if (*link != NULL)
		*link = table->next;
	gt_string_drop(memory_of(hists), table->name);
	gt_memory_put(memory_of(hists), table, sizeof(*table));
}

void gt_hists_fini(struct gt_hists *hists)
{
	while (hists->tables != NULL)
		forget(hists, hists->tables);
}

struct gt_hist_table *gt_hists_find(const struct gt_hists *hists, const char *name)
{
	struct gt_hist_table *table = hists->tables;

	while (table != NULL && !gt_string_is(table->name, name))
		table = table->next;
	return table;
}

struct gt_hist_use *gt_hists_new(struct gt_hists *hists, const char *text)
{
	struct gt_hist_use *use = take_zeroed(hists, sizeof(*use));
	struct gt_hist_table *table = NULL;
	struct gt_hist_error error;

	if (use == NULL)
		return NULL;
	use->born = ++hists->born;
	use->text = gt_string_keep(memory_of(hists), text, gt_string_bytes(text));
	if (use->text != NULL &&
	    gt_hist_parse(text, gt_string_bytes(text), NULL, NULL, &use->hist, &error) == 0) {
		table = use->hist.name != NULL ? gt_hists_find(hists, use->hist.name) : NULL;
		if (table != NULL)
			table->users++;
		use->table = table != NULL ? table : take_zeroed(hists, sizeof(*table));
	}
	if (use->table != NULL && table == NULL) {
		use->table->users = 1;
		if (use->hist.name != NULL)
			use->table->name = gt_string_keep(memory_of(hists), use->hist.name,
							  gt_string_bytes(use->hist.name));
		use->table->next = hists->tables;
		hists->tables = use->table;
	}
	if (use->table == NULL || (use->hist.name != NULL && use->table->name == NULL)) {
		gt_hists_free(hists, use);
		return NULL;
	}
	return use;
}

void gt_hists_free(struct gt_hists *hists, struct gt_hist_use *use)
{
	if (use == NULL)
		return;
	if (use->table != NULL && --use->table->users == 0)
		forget(hists, use->table);
	gt_string_drop(memory_of(hists), use->text);
	gt_memory_put(memory_of(hists), use, sizeof(*use));
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

	for (table = hists->tables; table != NULL; table = table->next)
		if (table->bytes && at < table->offset + pages(table->bytes) &&
		    table->offset < at + bytes)
			return table->offset + pages(table->bytes);
	return at;
}

static bool find_room(const struct gt_hists *hists, uint64_t from, uint64_t bytes, uint64_t *offset)
{
	uint64_t at = from, next;

	while (at + bytes <= hists->host->hists_bytes) {
		next = behind_table(hists, at, bytes);
		if (next == at) {
			*offset = at;
			return true;
		}
		at = next;
	}
	return false;
}

static bool arena_of(const struct gt_hists *hists, uint32_t index, struct gt_rules_arena *arena)
{
	return hists->host->arena(hists->host->data, index, arena);
}

/* What others left there is taken out. */
static int take_room(struct gt_hists *hists, uint64_t bytes, uint64_t *offset,
		     struct gt_message *message)
{
	const struct gt_rules_host *host = hists->host;
	struct gt_rules_arena arena;

	if (!find_room(hists, hists->from, pages(bytes), offset) &&
	    !find_room(hists, 0, pages(bytes), offset))
		return gt_fail(
			message, GT_ENOSPC,
			hists->host->hists_bytes
				? "no room for a histogram of this size: it takes %llu bytes "
				  "of shared memory"
				: "no room for histograms: the limit of the address space "
				  "(ulimit -v) leaves none (%llu bytes)",
			(unsigned long long)bytes);
	for (uint32_t i = 0; arena_of(hists, i, &arena); i++)
		if (host->wipe != NULL)
			host->wipe(host->data, gt_hists_table(&arena, *offset), pages(bytes));
		else
			__builtin_memset(gt_hists_table(&arena, *offset), 0, pages(bytes));
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

	if (gt_hist_parse(use->text, gt_string_bytes(use->text), event, world, &made, &wrong))
		return gt_fail(message, GT_EINVAL, "histogram '%s' of %s:%s: %s%s%s", use->text,
			       event->system, event->name,
			       wrong.text != NULL ? wrong.text : "Error", wrong.part[0] ? " " : "",
			       wrong.part);
	gt_hist_duplicate(&made, &use->hist);
	use->description_bytes =
		gt_hist_describe(&use->hist, hists->host->clock, 0, &use->description);
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

int gt_hists_copy(const struct gt_hists *hists, const struct gt_hist_use *use,
		  struct gt_hist_copy *copy)
{
	const struct gt_rules_host *host = hists->host;
	const uint64_t most = 1ull << use->hist.bits;
	struct graftrace_hist_shape shape;
	struct gt_rules_arena arena;
	int error = 0;

	*copy = (struct gt_hist_copy){ .memory = host->memory };
	copy->hist = take_zeroed(hists, sizeof(*copy->hist));
	if (copy->hist == NULL)
		return GT_ENOMEM;
	gt_hist_duplicate(&use->hist, copy->hist);
	copy->view = (struct gt_hist_view){ .hist = copy->hist };
	if (!use->is_described || !graftrace_hist_shape_of(&use->description, &shape))
		return 0;
	copy->element_bytes = most * 8 * shape.words;
	copy->words = take_zeroed(hists, copy->element_bytes);
	copy->order = take_zeroed(hists, most * sizeof(*copy->order));
	if (copy->words == NULL || copy->order == NULL) {
		gt_hist_copy_free(copy);
		return GT_ENOMEM;
	}
	if (host->gather != NULL && arena_of(hists, 1, &arena))
		error = host->gather(host->data, use, copy);
	else if (arena_of(hists, 0, &arena))
		gt_hist_look(&copy->view, copy->hist, &use->description,
			     gt_hists_table(&arena, use->table->offset), use->table->bytes,
			     copy->words, copy->order);
	if (error)
		gt_hist_copy_free(copy);
	return error;
}

void gt_hist_copy_free(struct gt_hist_copy *copy)
{
	const struct gt_memory memory = copy->memory;

	if (copy->order != NULL)
		gt_memory_put(&memory, copy->order, sizeof(*copy->order) << copy->hist->bits);
	gt_memory_put(&memory, copy->words, copy->element_bytes);
	gt_memory_put(&memory, copy->hist, sizeof(*copy->hist));
	gt_string_drop(&memory, copy->filter);
	*copy = (struct gt_hist_copy){ 0 };
}
