/* SPDX-License-Identifier: MIT */
/* Tables of histograms, read, sorted and printed: see hist.h. Whatever stands in a table, no more is read than
 * its description says. */
#include "core/trace/hist.h"
#include "core/trace/hist_private.h"
#include "core/trace/message.h"

/* ---- looking ---- */

static void copy_element(struct gt_hist_view *view, struct graftrace_hist_table *table,
			 uint32_t element)
{
	const uint64_t *from = graftrace_hist_element(table, &view->shape, element);
	uint64_t *to = view->words + (uint64_t)view->count * view->shape.words;

	for (uint32_t i = 0; i < view->shape.words; i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/* Marks the elements that are in a slot, each once whatever the slots say. */
static void mark_elements(struct gt_hist_view *view, struct graftrace_hist_table *table,
			  uint32_t limit)
{
	const uint64_t *slots = graftrace_hist_slots(table);

	for (uint32_t i = 0; i < limit; i++)
		view->order[i] = 0;
	for (uint32_t i = 0; i < view->shape.slots; i++) {
		/* Partner: the release by which an element came there. */
		const uint64_t slot = __atomic_load_n(&slots[i], __ATOMIC_ACQUIRE);
		const uint32_t element = (uint32_t)slot - 1;

		if (element < limit)
			view->order[element] = 1;
	}
}

/* In their own order: slots have none. An entry's number is never above its element's, whose mark is gone by then. */
static void copy_elements(struct gt_hist_view *view, struct graftrace_hist_table *table,
			  uint32_t limit)
{
	const uint32_t snapped = view->snapped;

	view->snapped = 0;
	for (uint32_t element = 0; element < limit; element++) {
		if (view->order[element] == 0)
			continue;
		copy_element(view, table, element);
		if (element + 1 == snapped)
			view->snapped = view->count + 1;
		view->order[view->count] = view->count;
		view->count++;
	}
}

static const uint64_t *element_of(const struct gt_hist_view *view, uint32_t entry)
{
	return view->words + (uint64_t)entry * view->shape.words;
}

static const struct gt_hist_field *key_of(const struct gt_hist_view *view, uint32_t key)
{
	return &view->hist->fields[view->hist->keys[key]];
}

static int compare_strings(const char *a, const char *b)
{
	const size_t most = GRAFTRACE_HIST_STRING_WORDS * 8;

	for (size_t i = 0; i < most; i++) {
		if (a[i] != b[i])
			return (unsigned char)a[i] < (unsigned char)b[i] ? -1 : 1;
		if (a[i] == '\0')
			return 0;
	}
	return 0;
}

/* As numbers of the field's size, which other keys than fields have none of. */
static int compare_numbers(const struct gt_hist_field *field, uint64_t a, uint64_t b)
{
	const bool is_field = field->kind == GT_HIST_FIELD || field->kind == GT_HIST_THREAD;
	const unsigned unused = is_field && field->bytes < 8 ? 64 - 8u * field->bytes : 0;

	a <<= unused;
	b <<= unused;
	if (field->is_signed)
		return (int64_t)a < (int64_t)b ? -1 : (int64_t)a > (int64_t)b;
	return a < b ? -1 : a > b;
}

static int compare_by(const struct gt_hist_view *view, uint32_t what, uint32_t a, uint32_t b)
{
	const uint64_t *one = element_of(view, a), *other = element_of(view, b);
	const uint32_t sums = 1u + view->hist->sum_count;

	if (what < sums) {
		const uint64_t left = one[view->shape.hits + what];
		const uint64_t right = other[view->shape.hits + what];

		return left < right ? -1 : left > right;
	}
	const struct gt_hist_field *field = key_of(view, what - sums);
	const uint32_t at = view->key_at[what - sums];

	return field->is_string
		       ? compare_strings((const char *)(one + at), (const char *)(other + at))
		       : compare_numbers(field, one[at], other[at]);
}

/* Equal ones stay in the order in which they came. */
static bool is_before(const struct gt_hist_view *view, uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < view->hist->sort_count; i++) {
		const int order = compare_by(view, view->hist->sorts[i].what, a, b);

		if (order != 0)
			return view->hist->sorts[i].descending ? order > 0 : order < 0;
	}
	return a < b;
}

static void sink(struct gt_hist_view *view, uint32_t at, uint32_t count)
{
	uint32_t *order = view->order;

	for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && is_before(view, order[child], order[child + 1]))
			child++;
		if (!is_before(view, order[at], order[child]))
			return;
		const uint32_t swapped = order[at];

		order[at] = order[child];
		order[child] = swapped;
	}
}

static void sort(struct gt_hist_view *view)
{
	for (uint32_t i = view->count / 2; i-- > 0;)
		sink(view, i, view->count);
	for (uint32_t left = view->count; left-- > 1;) {
		const uint32_t last = view->order[left];

		view->order[left] = view->order[0];
		view->order[0] = last;
		sink(view, 0, left);
	}
}

void gt_hist_look(struct gt_hist_view *view, const struct gt_hist *hist,
		  const struct graftrace_hist *description, struct graftrace_hist_table *table,
		  uint64_t room, uint64_t *words, uint32_t *order)
{
	uint32_t at = 0;

	*view = (struct gt_hist_view){ .hist = hist, .words = words, .order = order };
	if (!graftrace_hist_shape_of(description, &view->shape) || view->shape.bytes > room)
		return;
	for (uint32_t i = 0; i < hist->key_count; i++) {
		view->key_at[i] = at;
		at += gt_hist_words_of(key_of(view, i));
	}
	if (at != description->key_words)
		return;
	view->hits = __atomic_load_n(&table->hits, __ATOMIC_RELAXED);
	view->drops = __atomic_load_n(&table->drops, __ATOMIC_RELAXED);
	view->snap = __atomic_load_n(&table->snap, __ATOMIC_RELAXED);
	view->snapped = __atomic_load_n(&table->snapped, __ATOMIC_RELAXED);
	mark_elements(view, table, 1u << description->bits);
	copy_elements(view, table, 1u << description->bits);
	sort(view);
}

/* ---- printing ---- */

/* A program's string must not steer a terminal. */
static void put_clean(struct gt_hist_output *output, const char *text, size_t most, int width)
{
	char clean[GRAFTRACE_HIST_STRING_WORDS * 8 + 1];
	size_t i = 0;

	for (; i < most && i + 1 < sizeof(clean) && text[i] != '\0'; i++)
		clean[i] = (char)((unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i]);
	clean[i] = '\0';
	gt_hist_append(output, "%-*s", width, clean);
}

static void put_symbol(struct gt_hist_output *output, const struct gt_hist_names *names,
		       uint64_t address, bool with_offset)
{
	uint64_t start = 0, bytes = 0;
	const char *name = names->function != NULL
				   ? names->function(names->data, address, &start, &bytes)
				   : NULL;
	char text[512];

	if (name == NULL)
		gt_format(text, sizeof(text), "0x%llx", (unsigned long long)address);
	else if (with_offset)
		gt_format(text, sizeof(text), "%s+0x%llx/0x%llx", name,
			  (unsigned long long)(address - start), (unsigned long long)bytes);
	else
		gt_format(text, sizeof(text), "%s", name);
	gt_hist_append(output, "[%llx] %-*s", (unsigned long long)address, with_offset ? 55 : 45,
		       text);
}

static void put_stack(struct gt_hist_output *output, const uint64_t *words,
		      const struct gt_hist_names *names)
{
	for (uint32_t i = 0; i < GRAFTRACE_HIST_STACK_WORDS && words[i] != 0; i++) {
		const char *name = names->numbered != NULL
					   ? names->numbered(names->data, (uint32_t)words[i])
					   : NULL;

		gt_hist_append(output, "%*c", 9, ' ');
		if (name != NULL)
			gt_hist_append(output, "%s\n", name);
		else
			gt_hist_append(output, "function %u\n", (unsigned)words[i]);
	}
}

static void put_key(struct gt_hist_output *output, const struct gt_hist_view *view, uint32_t key,
		    const uint64_t *words, const struct gt_hist_names *names)
{
	const struct gt_hist_field *field = key_of(view, key);
	const uint64_t *at = words + view->key_at[key];
	const unsigned long long number = *at;
	const char *name = NULL;

	if (field->kind == GT_HIST_STACK) {
		gt_hist_append(output, "stacktrace:\n");
		put_stack(output, at, names);
		return;
	}
	gt_hist_append(output, "%s: ", field->name);
	switch (field->modifier) {
	case GT_HIST_HEX:
		gt_hist_append(output, "%llx", number);
		return;
	case GT_HIST_SYM:
	case GT_HIST_SYM_OFFSET:
		put_symbol(output, names, number, field->modifier == GT_HIST_SYM_OFFSET);
		return;
	case GT_HIST_EXECNAME:
		put_clean(output, (const char *)(words + view->shape.comm), 15, 16);
		gt_hist_append(output, "[%10llu]", number);
		return;
	case GT_HIST_SYSCALL:
		if (names->system_call != NULL)
			name = names->system_call(names->data, number);
		gt_hist_append(output, "%-30s[%3llu]", name != NULL ? name : "unknown_syscall",
			       number);
		return;
	case GT_HIST_LOG2:
		gt_hist_append(output, "~ 2^%-2llu", number);
		return;
	case GT_HIST_BUCKETS:
		gt_hist_append(output, "~ %llu-%llu", number, number + field->number - 1);
		return;
	default:
		if (field->is_string)
			put_clean(output, (const char *)at, GRAFTRACE_HIST_STRING_WORDS * 8, 50);
		else
			gt_hist_append(output, "%10llu", number);
	}
}

static void put_keys(struct gt_hist_output *output, const struct gt_hist_view *view,
		     const uint64_t *words, const struct gt_hist_names *names)
{
	bool has_stack = false;

	gt_hist_append(output, "{ ");
	for (uint32_t i = 0; i < view->hist->key_count; i++) {
		gt_hist_append(output, "%s", i != 0 ? ", " : "");
		put_key(output, view, i, words, names);
		has_stack |= key_of(view, i)->kind == GT_HIST_STACK;
	}
	gt_hist_append(output, "%s}", has_stack ? "" : " ");
}

static void put_saved(struct gt_hist_output *output, const struct gt_hist_view *view,
		      const uint64_t *words)
{
	const struct gt_hist *hist = view->hist;

	for (uint32_t i = 0; i < hist->variable_count; i++) {
		const struct gt_hist_variable *variable = &hist->variables[i];
		const uint64_t *at = &words[view->shape.set + 1 + variable->at];

		if (!variable->is_saved)
			continue;
		gt_hist_append(output, "  %s: ", variable->name);
		if (variable->words != 1)
			put_clean(output, (const char *)at, GRAFTRACE_HIST_STRING_WORDS * 8, 32);
		else
			gt_hist_append(output, "%10llu", (unsigned long long)*at);
	}
}

/* What onmax() and onchange() keep: track_data_print() of Linux. */
static void put_tracked(struct gt_hist_output *output, const struct gt_hist_view *view,
			const uint64_t *words)
{
	const struct gt_hist *hist = view->hist;

	for (uint32_t i = 0; i < hist->action_count; i++) {
		const struct gt_hist_action *action = &hist->actions[i];

		if (action->handler == GRAFTRACE_HIST_ON_MATCH ||
		    action->act == GRAFTRACE_HIST_SNAPSHOT)
			continue;
		gt_hist_append(
			output, "\n\t%s: %10llu",
			action->handler == GRAFTRACE_HIST_ON_MAX ? "max" : "changed",
			(unsigned long long)
				words[view->shape.set + 1 + hist->variables[action->track].at]);
		if (action->act == GRAFTRACE_HIST_SAVE)
			put_saved(output, view, words);
	}
}

size_t gt_hist_put_entry(const struct gt_hist_view *view, uint32_t index,
			 const struct gt_hist_names *names, char *at)
{
	const struct gt_hist *hist = view->hist;
	const uint64_t *words = element_of(view, view->order[index]);
	struct gt_hist_output output = { at, GT_HIST_LINE_BYTES };

	put_keys(&output, view, words, names);
	gt_hist_append(&output, " hitcount: %10llu", (unsigned long long)words[view->shape.hits]);
	for (uint32_t i = 0; i < hist->sum_count; i++) {
		const struct gt_hist_field *field = &hist->fields[hist->sums[i]];

		if (field->kind != GT_HIST_EXPRESSION)
			gt_hist_append(&output,
				       field->modifier == GT_HIST_HEX ? "  %s: %10llx"
								      : "  %s: %10llu",
				       field->name + (field->kind == GT_HIST_REFERENCE),
				       (unsigned long long)words[view->shape.hits + 1 + i]);
	}
	put_tracked(&output, view, words);
	gt_hist_append(&output, "\n");
	return (size_t)(output.at - at);
}

size_t gt_hist_put_snapshot(const struct gt_hist_view *view, const struct gt_hist_names *names,
			    char *at)
{
	const struct gt_hist_action *action = view->hist->actions;
	const struct gt_hist_action *end = action + view->hist->action_count;
	struct gt_hist_output output = { at, GT_HIST_LINE_BYTES };

	*at = '\0';
	while (action < end && action->act != GRAFTRACE_HIST_SNAPSHOT)
		action++;
	if (action == end || view->snapped == 0)
		return 0;
	gt_hist_append(&output,
		       "\nSnapshot taken (see tracing/snapshot).  Details:\n\ttriggering value { "
		       "%s(%s) }: "
		       "%10llu\ttriggered by event with key: ",
		       action->handler == GRAFTRACE_HIST_ON_MAX ? "onmax" : "onchange", action->on,
		       (unsigned long long)view->snap);
	put_keys(&output, view, element_of(view, view->snapped - 1), names);
	gt_hist_append(&output, "\n");
	return (size_t)(output.at - at);
}
