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
 */
#include "core/record/hist.h"

#define RELAXED __ATOMIC_RELAXED
#define NONE	~0u

/* Slots that are looked at for a key: half of them are free at least, so a key is found much sooner, unless
 * somebody has written over the table. */
#define PROBES 1024u

struct search {
	struct graftrace_hist hist; /* a copy: others may write there when it is taken away */
	struct graftrace_hist_shape shape;
	struct graftrace_hist_table *table;
	const struct graftrace_filter_event *event;
	uint64_t key[GRAFTRACE_HIST_KEY_WORDS];
	uint64_t values[GRAFTRACE_HIST_VALUES];
	uint32_t hash;	/* never 0 */
	uint32_t spare; /* an element that was filled, NONE */
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
			  uint32_t known, uint64_t clock)
{
	const struct graftrace_filter_event *event = search->event;
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
		number = nanoseconds(&search->hist, clock);
		break;
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
	const char *text = graftrace_filter_string(search->event, field, &bytes);

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

/* False: the description is none (any more). */
static int gather(struct search *search, const struct graftrace_hist_value *values, uint64_t clock)
{
	const struct graftrace_hist *hist = &search->hist;
	uint64_t hash = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < hist->value_count; i++) {
		const struct graftrace_hist_value value = values[i];

		search->values[i] = number_of(search, &value, i, clock);
	}
	for (uint32_t i = 0; i < hist->key_count; i++) {
		if (hist->keys[i] >= hist->value_count)
			return 0;
		const struct graftrace_hist_value value = values[hist->keys[i]];
		const int is_string = value.source == GRAFTRACE_HIST_STRING;

		if (at + (is_string ? GRAFTRACE_HIST_STRING_WORDS : 1) > hist->key_words)
			return 0;
		if (is_string)
			put_string(search, value.field, &search->key[at]);
		else
			search->key[at] = search->values[hist->keys[i]];
		at += is_string ? GRAFTRACE_HIST_STRING_WORDS : 1;
	}
	if (at != hist->key_words)
		return 0;
	for (uint32_t i = 0; i < hist->sum_count; i++)
		if (hist->sums[i] >= hist->value_count)
			return 0;
	for (uint32_t i = 0; i < at; i++) {
		hash = (hash ^ search->key[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 32;
	}
	search->hash = (uint32_t)hash != 0 ? (uint32_t)hash : 1;
	return 1;
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
		__builtin_memcpy(name, search->event->comm, sizeof(name));
		__atomic_store_n(&words[search->shape.comm], name[0], RELAXED);
		__atomic_store_n(&words[search->shape.comm + 1], name[1], RELAXED);
	}
}

static int has_key(const struct search *search, uint32_t element)
{
	const uint64_t *words = element_of(search, element);

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

	return word >> 32 == search->hash && element < limit_of(search) && has_key(search, element)
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

void gt_hist_count(const struct graftrace_arena *arena, const struct graftrace_hist *description,
		   uint64_t room, const struct graftrace_filter_event *event, uint64_t clock)
{
	struct search search;
	uint64_t *words;

	if (room < sizeof(search.hist))
		return;
	search.hist = *description;
	search.event = event;
	const uint64_t table = search.hist.table * 64ull;
	if (!graftrace_hist_shape_of(&search.hist, &search.shape) ||
	    search.hist.value_count >
		    (room - sizeof(search.hist)) / sizeof(struct graftrace_hist_value) ||
	    search.shape.bytes > arena->hists_bytes ||
	    table > arena->hists_bytes - search.shape.bytes)
		return;
	search.table = (struct graftrace_hist_table *)((char *)arena + arena->hists_offset + table);
	if (!gather(&search, (const struct graftrace_hist_value *)(description + 1), clock))
		return;
	const uint32_t element = find(&search);
	if (element == NONE) {
		__atomic_fetch_add(&search.table->drops, 1, RELAXED);
		return;
	}
	words = element_of(&search, element) + search.shape.hits;
	__atomic_fetch_add(&search.table->hits, 1, RELAXED);
	__atomic_fetch_add(words, 1, RELAXED);
	for (uint32_t i = 0; i < search.hist.sum_count; i++)
		__atomic_fetch_add(words + 1 + i, search.values[search.hist.sums[i]], RELAXED);
}
