/* SPDX-License-Identifier: MIT */
/*
 * Histograms of events: see hist.h. Races, between threads, processes and a handler that interrupts:
 *  A. an element is taken (from the stack of returned ones, else the next one that was never used) before it
 *     is in a slot: nobody else knows it, and it is filled at leisure.
 *  B. it comes into a free slot by compare and exchange (release; partner: the load of a slot, acquire). Who
 *     comes second finds the other one's element there: if that has the same key it is used, else the
 *     search goes on; in the end the element that was filled in vain goes back onto the stack.
 *  C. an interrupted writer that never comes back leaves an element that is in no slot: it is not used again.
 *     The stack's tag makes a pop fail whose first element was taken and returned meanwhile.
 *  D. a variable is stored, then its bit is set (release; partner: the load of the word with the bits,
 *     acquire). Who reads it once takes the bit away: of two, one has the value. A string that is stored
 *     while it is read may be of two values; it ends where it has to.
 *  E. of two that find a new largest value, the smaller one may save its values last.
 */
#include "core/record/hist.h"
#include "core/record/event.h"
#include "core/record/port.h"

#define RELAXED __ATOMIC_RELAXED
#define NONE	~0u

/* How the CPU was in a kernel when the event happened stands above the fields that could not be read: so it was for one
 * that is made of it. */
#ifdef GT_PROGRAM
#define STATE_OF(event) 0
#else
#define STATE_OF(event) ((event)->faults >> STATE_BIT << STATE_BIT)
#define STATE_BIT	(GRAFTRACE_PROBE_STATE - 32)
#endif

/* Slots that are looked at for a key: half of them are free at least, so a key is found much sooner, unless
 * somebody has written over the table. */
#define PROBES 1024u

/* What stands behind a description. */
struct parts {
	const struct graftrace_hist_value *values;
	const struct graftrace_hist_reference *references;
	const struct graftrace_hist_variable *variables;
	const struct graftrace_hist_action *actions;
	const uint8_t *items;
};

struct search {
	struct graftrace_hist hist; /* a copy: others may write there when it is taken away */
	struct parts parts;	    /* of which single ones are copied before they are looked at */
	struct graftrace_hist_shape shape;
	struct graftrace_hist_table *table;
	const struct gt_hist_event *counted;
	uint64_t key[GRAFTRACE_HIST_KEY_WORDS];
	uint64_t values[GRAFTRACE_HIST_VALUES];
	uint64_t *
		read; /* of references, of strings the address of the first word; NULL: none are looked at */
	uint32_t texts; /* bit i: reference i is a string */
	uint32_t hash;	/* never 0 */
	uint32_t spare; /* an element that was filled, NONE */
};

/* An element of a table. */
struct element {
	struct graftrace_hist_shape shape;
	uint64_t *words;
};

/* ---- values ---- */

static uint64_t nanoseconds(const struct graftrace_hist *hist, uint64_t clock)
{
	__extension__ typedef unsigned __int128 u128;

	if (clock < hist->tsc_base)
		return hist->ns_base - (uint64_t)((u128)(hist->tsc_base - clock) * hist->mult >>
						  (hist->shift & 63));
	return hist->ns_base +
	       (uint64_t)((u128)(clock - hist->tsc_base) * hist->mult >> (hist->shift & 63));
}

/* Of 0 as of 1, as Linux 6.1 has it. */
static uint64_t exponent(uint64_t number)
{
	return number <= 1 ? 0 : 64u - (unsigned)__builtin_clzll(number - 1);
}

/* Of the first `known` values. */
static uint64_t combine(const struct search *search, const struct graftrace_hist_value *value,
			uint32_t known)
{
	const uint64_t left = value->field < known ? search->values[value->field] : 0;
	const uint64_t right = value->right < known ? search->values[value->right] : 0;

	switch (value->source) {
	case GRAFTRACE_HIST_PLUS:
		return left + right;
	case GRAFTRACE_HIST_MINUS:
		return left - right;
	case GRAFTRACE_HIST_TIMES:
		return left * right;
	case GRAFTRACE_HIST_DIVIDED:
		return right != 0 ? left / right : ~0ull;
	case GRAFTRACE_HIST_NEGATIVE:
		return -left;
	default:
		return 0;
	}
}

static uint64_t number_of(const struct search *search, const struct graftrace_hist_value *value,
			  uint32_t known)
{
	const struct graftrace_filter_event *event = search->counted->event;
	uint64_t number = 0;

	switch (value->source) {
	case GRAFTRACE_HIST_FIELD:
		if (value->field < event->count && !(event->faults >> (value->field & 31) & 1))
			__builtin_memcpy(&number, event->values + value->field, sizeof(number));
		break;
	case GRAFTRACE_HIST_THREAD:
		number = event->thread;
		break;
	case GRAFTRACE_HIST_CPU:
		number = event->cpu;
		break;
	case GRAFTRACE_HIST_CLOCK:
		number = nanoseconds(&search->hist, search->counted->clock);
		break;
	case GRAFTRACE_HIST_REFERENCE:
		return search->read != NULL && value->field < search->hist.reference_count
			       ? search->read[value->field]
			       : 0;
	case GRAFTRACE_HIST_CONSTANT:
		return value->number;
	default:
		return combine(search, value, known);
	}
	if (value->change == GRAFTRACE_HIST_LOG2)
		return exponent(number);
	if (value->change == GRAFTRACE_HIST_USECS)
		return number / 1000;
	return value->change == GRAFTRACE_HIST_BUCKETS && value->number != 0
		       ? number - number % value->number
		       : number;
}

/* The string at `words`, zeros behind it. */
static void put_string(const struct search *search, uint32_t field, uint64_t *words)
{
	uint32_t bytes = 0;
	const char *text = graftrace_filter_string(search->counted->event, field, &bytes);

	if (text == 0) {
		text = "(fault)";
		bytes = 7;
	}
	if (bytes >= GRAFTRACE_HIST_STRING_WORDS * 8)
		bytes = GRAFTRACE_HIST_STRING_WORDS * 8 - 1;
	for (uint32_t i = 0; i < GRAFTRACE_HIST_STRING_WORDS; i++)
		words[i] = 0;
	for (uint32_t i = 0; i < bytes; i++)
		words[i / 8] |= (uint64_t)(uint8_t)text[i] << i % 8 * 8;
}

/* How many frames are open, the first of which goes to *first. A handler that comes in between may have moved all
 * of them to a larger array (twice at most); in a fork's child the block is wiped. */
static uint64_t open_frames(const struct gt_thread *thread, const struct gt_frame **first)
{
	for (uint32_t i = 0; i < 4; i++) {
		const struct gt_context *context = __atomic_load_n(&thread->context, RELAXED);

		if (context == NULL)
			return 0;
		*first = __atomic_load_n(&context->frames, RELAXED);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		const struct gt_frame *top = gt_thread_top(thread);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (*first == NULL || __atomic_load_n(&thread->context, RELAXED) != context ||
		    __atomic_load_n(&context->frames, RELAXED) != *first)
			continue;
		const uint64_t bytes = (uint64_t)top - (uint64_t)*first;

		return bytes / sizeof(*top) < context->capacity ? bytes / sizeof(*top) : 0;
	}
	return 0;
}

/* The calls that are open, zeros behind them. */
static void put_stack(const struct search *search, uint64_t *words)
{
	const struct gt_thread *thread = search->counted->thread;
	const struct gt_frame *first = NULL;
	uint64_t left = thread != NULL ? open_frames(thread, &first) : 0;
	uint32_t count = 0;

	for (; left > 0 && count < GRAFTRACE_HIST_STACK_WORDS; left--)
		if (gt_frame_is_in_stack(&first[left]))
			words[count++] = gt_frame_function(&first[left]);
	for (; count < GRAFTRACE_HIST_STACK_WORDS; count++)
		words[count] = 0;
}

static uint32_t words_of(const struct graftrace_hist_value *value)
{
	return value->source == GRAFTRACE_HIST_STRING  ? GRAFTRACE_HIST_STRING_WORDS
	       : value->source == GRAFTRACE_HIST_STACK ? GRAFTRACE_HIST_STACK_WORDS
						       : 1;
}

static void put_key(const struct search *search, const struct graftrace_hist_value *value,
		    uint32_t index, uint64_t *words)
{
	if (value->source == GRAFTRACE_HIST_STRING)
		put_string(search, value->field, words);
	else if (value->source == GRAFTRACE_HIST_STACK)
		put_stack(search, words);
	else
		*words = search->values[index];
}

static void work_out(struct search *search)
{
	for (uint32_t i = 0; i < search->hist.value_count; i++) {
		const struct graftrace_hist_value value = search->parts.values[i];

		search->values[i] = number_of(search, &value, i);
	}
}

/* False: the description is none (any more). */
static bool gather(struct search *search)
{
	const struct graftrace_hist *hist = &search->hist;
	uint64_t hash = 0;
	uint32_t at = 0;

	work_out(search);
	for (uint32_t i = 0; i < hist->key_count; i++) {
		if (hist->keys[i] >= hist->value_count)
			return false;
		const struct graftrace_hist_value value = search->parts.values[hist->keys[i]];

		if (at + words_of(&value) > hist->key_words)
			return false;
		put_key(search, &value, hist->keys[i], &search->key[at]);
		at += words_of(&value);
	}
	if (at != hist->key_words)
		return false;
	for (uint32_t i = 0; i < hist->sum_count; i++)
		if (hist->sums[i] >= hist->value_count)
			return false;
	for (uint32_t i = 0; i < at; i++) {
		hash = (hash ^ search->key[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 32;
	}
	search->hash = (uint32_t)hash != 0 ? (uint32_t)hash : 1;
	return true;
}

/* ---- elements ---- */

static uint64_t *element_of(const struct search *search, uint32_t element)
{
	return graftrace_hist_element(search->table, &search->shape, element);
}

static uint32_t limit_of(const struct search *search)
{
	return 1u << search->hist.bits;
}

/* A. */
static uint32_t take_element(const struct search *search)
{
	struct graftrace_hist_table *table = search->table;
	uint64_t head = __atomic_load_n(&table->free, __ATOMIC_ACQUIRE);
	uint32_t next;

	for (uint32_t i = 0; i < PROBES && (uint32_t)head != 0; i++) {
		const uint32_t element = (uint32_t)head - 1;

		if (element >= limit_of(search))
			return NONE;
		next = (uint32_t)__atomic_load_n(element_of(search, element), RELAXED);
		if (__atomic_compare_exchange_n(&table->free, &head,
						((head >> 32) + 1) << 32 | next, 0,
						__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
			return element;
	}
	next = __atomic_load_n(&table->next, RELAXED);
	for (uint32_t i = 0; i < PROBES && next < limit_of(search); i++)
		if (__atomic_compare_exchange_n(&table->next, &next, next + 1, 0, RELAXED, RELAXED))
			return next;
	return NONE;
}

static void give_back(const struct search *search)
{
	struct graftrace_hist_table *table = search->table;
	uint64_t head = __atomic_load_n(&table->free, RELAXED);

	if (search->spare == NONE)
		return;
	for (uint32_t i = 0; i < PROBES; i++) {
		__atomic_store_n(element_of(search, search->spare), (uint32_t)head, RELAXED);
		if (__atomic_compare_exchange_n(&table->free, &head,
						((head >> 32) + 1) << 32 | (search->spare + 1), 0,
						__ATOMIC_RELEASE, RELAXED))
			return;
	}
}

static void fill(const struct search *search, uint32_t element)
{
	uint64_t *words = element_of(search, element), name[2];

	for (uint32_t i = 0; i < search->hist.key_words; i++)
		__atomic_store_n(&words[i], search->key[i], RELAXED);
	if (search->hist.flags & GRAFTRACE_HIST_COMM) {
		__builtin_memcpy(name, search->counted->event->comm, sizeof(name));
		__atomic_store_n(&words[search->shape.comm], name[0], RELAXED);
		__atomic_store_n(&words[search->shape.comm + 1], name[1], RELAXED);
	}
}

static int has_key(const struct search *search, const uint64_t *words)
{
	for (uint32_t i = 0; i < search->hist.key_words; i++)
		if (__atomic_load_n(&words[i], RELAXED) != search->key[i])
			return 0;
	return 1;
}

/* The element that is in the slot, or that comes into it; NONE: it is another key's. *full: there is
 * no element left. */
static uint32_t try_slot(struct search *search, uint64_t *slot, int *full)
{
	uint64_t word = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

	if (word == 0) {
		if (search->spare == NONE) {
			search->spare = take_element(search);
			*full = search->spare == NONE;
			if (*full)
				return NONE;
			fill(search, search->spare);
		}
		const uint32_t mine = search->spare;

		if (__atomic_compare_exchange_n(slot, &word,
						(uint64_t)search->hash << 32 | (mine + 1), 0,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) { /* B */
			search->spare = NONE;
			return mine;
		}
	}
	const uint32_t element = (uint32_t)word - 1;

	return word >> 32 == search->hash && element < limit_of(search) &&
			       has_key(search, element_of(search, element))
		       ? element
		       : NONE;
}

static uint32_t find(struct search *search)
{
	uint64_t *slots = graftrace_hist_slots(search->table);
	const uint32_t mask = search->shape.slots - 1;
	uint32_t element = NONE;
	int full = 0;

	search->spare = NONE;
	for (uint32_t i = 0; i < PROBES && element == NONE && !full; i++)
		element = try_slot(search, &slots[(search->hash + i) & mask], &full);
	give_back(search);
	return element;
}

/* ---- variables of other tables ---- */

/* NULL: it would not lie in the pool. */
static struct graftrace_hist_table *table_at(const struct graftrace_arena *arena, uint32_t place,
					     const struct graftrace_hist_shape *shape)
{
	const uint64_t at = place * 64ull;

	if (shape->bytes > arena->hists_bytes || at > arena->hists_bytes - shape->bytes)
		return NULL;
	return (struct graftrace_hist_table *)((char *)arena + arena->hists_offset + at);
}

/* False: there is no element with this key. */
static bool look_up(const struct search *search, struct graftrace_hist_table *table, uint32_t limit,
		    struct element *found)
{
	const uint64_t *slots = graftrace_hist_slots(table);
	const uint32_t mask = found->shape.slots - 1;

	for (uint32_t i = 0; i < PROBES; i++) {
		const uint64_t word = __atomic_load_n(&slots[(search->hash + i) & mask],
						      __ATOMIC_ACQUIRE); /* B */
		const uint32_t element = (uint32_t)word - 1;

		if (word == 0)
			return false;
		if (word >> 32 != search->hash || element >= limit)
			continue;
		found->words = graftrace_hist_element(table, &found->shape, element);
		if (has_key(search, found->words))
			return true;
	}
	return false;
}

static bool is_inside(uint32_t at, uint32_t words, uint32_t all)
{
	return (words == 1 || words == GRAFTRACE_HIST_STRING_WORDS) && at + words <= all;
}

/* False: there is no such variable, or it is not set. */
static bool read_one(struct search *search, const struct graftrace_arena *arena, uint32_t index)
{
	const struct graftrace_hist_reference reference = search->parts.references[index];
	const struct graftrace_hist other = {
		.bits = reference.bits,
		.key_count = 1,
		.sum_count = reference.sum_count,
		.key_words = reference.key_words,
		.flags = reference.flags,
		.variable_count = reference.variable_count,
		.variable_words = reference.variable_words,
	};
	struct graftrace_hist_table *table;
	struct element element;

	if (reference.key_words != search->hist.key_words ||
	    reference.variable >= reference.variable_count ||
	    !is_inside(reference.at, reference.words, reference.variable_words) ||
	    !graftrace_hist_shape_of(&other, &element.shape))
		return false;
	table = table_at(arena, reference.table, &element.shape);
	if (table == NULL || !look_up(search, table, 1u << reference.bits, &element))
		return false;
	uint64_t *const set = &element.words[element.shape.set], *const value =
									 set + 1 + reference.at;
	const uint64_t bit = 1ull << reference.variable;

	if (!((reference.once ? __atomic_fetch_and(set, ~bit, __ATOMIC_ACQUIRE)
			      : __atomic_load_n(set, __ATOMIC_ACQUIRE)) &
	      bit)) /* D */
		return false;
	search->read[index] =
		reference.words == 1 ? __atomic_load_n(value, RELAXED) : (uint64_t)value;
	if (reference.words != 1)
		search->texts |= 1u << index;
	return true;
}

static bool read_all(struct search *search, const struct graftrace_arena *arena)
{
	for (uint32_t i = 0; i < search->hist.reference_count; i++)
		if (!read_one(search, arena, i))
			return false;
	if (search->hist.reference_count != 0)
		work_out(search);
	return true;
}

/* ---- its own variables ---- */

/* Whether value `index` is a string, which comes to `words`. */
static bool take_text(const struct search *search, uint32_t index, uint64_t *words)
{
	const struct graftrace_hist_value value = search->parts.values[index];

	if (value.source == GRAFTRACE_HIST_STRING) {
		put_string(search, value.field, words);
		return true;
	}
	if (value.source != GRAFTRACE_HIST_REFERENCE ||
	    value.field >= search->hist.reference_count || !(search->texts >> value.field & 1))
		return false;
	const uint64_t *const from = (const uint64_t *)search->read[value.field];

	for (uint32_t i = 0; i < GRAFTRACE_HIST_STRING_WORDS; i++)
		words[i] = __atomic_load_n(&from[i], RELAXED);
	words[GRAFTRACE_HIST_STRING_WORDS - 1] &= ~0ull >> 8;
	return true;
}

/* D. */
static void set_variable(struct search *search, uint64_t *words, uint32_t index)
{
	uint64_t *const text = search->key; /* which is in the table by now */

	if (index >= search->hist.variable_count)
		return;
	const struct graftrace_hist_variable variable = search->parts.variables[index];
	uint64_t *const set = &words[search->shape.set], *const at = set + 1 + variable.at;

	if (variable.value >= search->hist.value_count ||
	    !is_inside(variable.at, variable.words, search->hist.variable_words))
		return;
	if (variable.words == 1)
		__atomic_store_n(at, search->values[variable.value], RELAXED);
	else if (take_text(search, variable.value, text))
		for (uint32_t i = 0; i < variable.words; i++)
			__atomic_store_n(&at[i], text[i], RELAXED);
	__atomic_fetch_or(set, 1ull << index, __ATOMIC_RELEASE);
}

static void set_variables(struct search *search, uint64_t *words)
{
	for (uint32_t i = 0; i < search->hist.variable_count; i++)
		if (!search->parts.variables[i].saved)
			set_variable(search, words, i);
}

/* ---- actions ---- */

/* Whether the number is new in the sense of the action, whose last one stands at `kept`. */
static bool is_new(uint32_t handler, uint64_t *kept, uint64_t number)
{
	uint64_t last = __atomic_load_n(kept, RELAXED);

	for (uint32_t i = 0; i < PROBES; i++) {
		if (handler == GRAFTRACE_HIST_ON_MAX ? number <= last : number == last)
			return false;
		if (__atomic_compare_exchange_n(kept, &last, number, 0, RELAXED, RELAXED))
			return true;
	}
	return false;
}

static bool is_tracked(const struct search *search, const struct graftrace_hist_action *action,
		       uint64_t *words)
{
	if (action->handler == GRAFTRACE_HIST_ON_MATCH)
		return true;
	if (action->value >= search->hist.value_count ||
	    action->track >= search->hist.variable_count)
		return false;
	const struct graftrace_hist_variable variable = search->parts.variables[action->track];
	uint64_t *const set = &words[search->shape.set];

	if (!is_inside(variable.at, 1, search->hist.variable_words) ||
	    !is_new(action->handler, set + 1 + variable.at, search->values[action->value]))
		return false;
	__atomic_fetch_or(set, 1ull << action->track, __ATOMIC_RELEASE);
	return true;
}

/* The string becomes one of the event, as far as there is room. */
static void put_behind(struct gt_event *event, uint32_t field, const uint64_t *words)
{
	const char *const text = (const char *)words;
	uint32_t bytes = 0, used;

	while (bytes < GRAFTRACE_HIST_STRING_WORDS * 8 - 1 && text[bytes] != '\0')
		bytes++;
	used = bytes / 8 + 1;
	if (event->count + used > GT_EVENT_VALUES) {
		event->faults |= 1u << field;
		return;
	}
	event->values[field] = event->count * 8 | (uint64_t)(bytes + 1) << 16;
	for (uint32_t i = 0; i < used; i++)
		event->values[event->count++] = words[i];
}

/* The index of a value, or of a variable. */
static uint32_t item_of(const struct search *search, const struct graftrace_hist_action *action,
			uint32_t item)
{
	const uint32_t at = action->first + item;

	return at < search->hist.item_count ? search->parts.items[at] : NONE;
}

static void __attribute__((noinline))
make_event(const struct search *search, const struct graftrace_hist_action *action)
{
	uint64_t text[GRAFTRACE_HIST_STRING_WORDS];
	struct gt_event event;

	if (action->count > GRAFTRACE_PROBE_FIELDS || search->counted->depth >= GT_HIST_DEPTH)
		return;
	event.number = action->event;
	event.depth = search->counted->depth + 1;
	event.faults = STATE_OF(search->counted->event);
	event.count = action->count;
	for (uint32_t i = 0; i < action->count; i++) {
		const uint32_t index = item_of(search, action, i);

		if (index >= search->hist.value_count)
			return;
		event.values[i] = 0;
		if (take_text(search, index, text))
			put_behind(&event, i, text);
		else
			event.values[i] = search->values[index];
	}
	gt_port_event(&event);
}

/* Whether a snapshot is to be taken. */
static bool snap(const struct search *search, const struct graftrace_hist_action *action,
		 uint32_t element)
{
	struct graftrace_hist_table *const table = search->table;

	if (action->handler == GRAFTRACE_HIST_ON_MATCH ||
	    !is_new(action->handler, &table->snap, search->values[action->value]))
		return false;
	__atomic_store_n(&table->snapped, element + 1, RELAXED);
	return true;
}

static bool act(struct search *search, uint32_t element, uint64_t *words)
{
	bool snapshot = false;

	for (uint32_t i = 0; i < search->hist.action_count && i < GRAFTRACE_HIST_ACTIONS; i++) {
		const struct graftrace_hist_action action = search->parts.actions[i];

		if (!is_tracked(search, &action, words))
			continue;
		if (action.act == GRAFTRACE_HIST_TRACE)
			make_event(search, &action);
		else if (action.act == GRAFTRACE_HIST_SNAPSHOT)
			snapshot |= snap(search, &action, element);
		for (uint32_t k = 0; action.act == GRAFTRACE_HIST_SAVE && k < action.count; k++)
			set_variable(search, words, item_of(search, &action, k));
	}
	return snapshot;
}

/* ---- counting ---- */

/* False: the room is not enough for what the description says. */
static bool find_parts(struct search *search, const struct graftrace_hist *description,
		       uint64_t room)
{
	const struct graftrace_hist *hist = &search->hist;
	struct parts *parts = &search->parts;

	parts->values = (const struct graftrace_hist_value *)(description + 1);
	parts->references =
		(const struct graftrace_hist_reference *)(parts->values + hist->value_count);
	parts->variables =
		(const struct graftrace_hist_variable *)(parts->references + hist->reference_count);
	parts->actions =
		(const struct graftrace_hist_action *)(parts->variables + hist->variable_count);
	parts->items = (const uint8_t *)(parts->actions + hist->action_count);
	return hist->reference_count <= GRAFTRACE_HIST_REFERENCES &&
	       (uint64_t)(parts->items + hist->item_count - (const uint8_t *)description) <= room;
}

/* The element that the event is counted in; NONE: it is in none. *search is filled in. */
static uint32_t count(struct search *search)
{
	const uint32_t element = find(search);

	if (element == NONE) {
		__atomic_fetch_add(&search->table->drops, 1, RELAXED);
		return NONE;
	}
	uint64_t *const words = element_of(search, element);

	__atomic_fetch_add(&search->table->hits, 1, RELAXED);
	__atomic_fetch_add(&words[search->shape.hits], 1, RELAXED);
	for (uint32_t i = 0; i < search->hist.sum_count; i++)
		__atomic_fetch_add(&words[search->shape.hits + 1 + i],
				   search->values[search->hist.sums[i]], RELAXED);
	set_variables(search, words);
	return element;
}

/* False: the description is none (any more). */
static bool begin(struct search *search, const struct graftrace_arena *arena,
		  const struct graftrace_hist *description, uint64_t room,
		  const struct gt_hist_event *counted)
{
	if (room < sizeof(search->hist))
		return false;
	search->hist = *description;
	search->counted = counted;
	search->texts = 0;
	if (!graftrace_hist_shape_of(&search->hist, &search->shape) ||
	    !find_parts(search, description, room))
		return false;
	search->table = table_at(arena, search->hist.table, &search->shape);
	return search->table != NULL && gather(search);
}

void gt_hist_count(const struct graftrace_arena *arena, const struct graftrace_hist *description,
		   uint64_t room, const struct gt_hist_event *counted)
{
	struct search search;

	search.read = NULL;
	if (begin(&search, arena, description, room, counted) && search.hist.reference_count == 0)
		count(&search);
}

bool gt_hist_follow(const struct graftrace_arena *arena, const struct graftrace_hist *description,
		    uint64_t room, const struct gt_hist_event *counted)
{
	uint64_t read[GRAFTRACE_HIST_REFERENCES];
	struct search search;
	uint32_t element;

	for (uint32_t i = 0; i < GRAFTRACE_HIST_REFERENCES; i++)
		read[i] = 0;
	search.read = read;
	if (!begin(&search, arena, description, room, counted) || !read_all(&search, arena))
		return false;
	element = count(&search);
	return element != NONE && act(&search, element, element_of(&search, element));
}
