/* SPDX-License-Identifier: MIT */
/*
 * Histograms of events: an event is counted where it happens. Rules of the kind GRAFTRACE_RULE_HIST
 * (graftrace/filter.h) lead to a description, which is the host's alone; it says what the keys and sums
 * are, and where the table lies. Tables lie in a pool that all processes write:
 *
 *	struct graftrace_hist_table | slots[2 << bits] | elements[1 << bits]
 *
 * A slot is 0 (free) or hash << 32 | element + 1. An element is some words: the key; with
 * GRAFTRACE_HIST_COMM the thread's name; hits; sums; with variables their values and which of them are
 * set. An element is filled first and then put into a slot by one compare and exchange, so a reader sees
 * whole keys; counts are added by atomics. Nothing is ever taken out of a table: to clear it, the host
 * describes a fresh one.
 *
 * Trust: the writer takes sizes and places from the description, and keeps to the pool; the reader (the
 * host) believes nothing in the table: it compares indexes with the description.
 */
#ifndef GRAFTRACE_HIST_H
#define GRAFTRACE_HIST_H

#include <stdint.h>
#include <graftrace/record.h>

#define GRAFTRACE_HIST_KEYS	    3
#define GRAFTRACE_HIST_SUMS	    3
#define GRAFTRACE_HIST_VARIABLES    16
#define GRAFTRACE_HIST_VALUES	    48
#define GRAFTRACE_HIST_STRING_WORDS 8
#define GRAFTRACE_HIST_KEY_WORDS    (GRAFTRACE_HIST_KEYS * GRAFTRACE_HIST_STRING_WORDS)
#define GRAFTRACE_HIST_BITS_LEAST   7
#define GRAFTRACE_HIST_BITS_MOST    17
#define GRAFTRACE_HIST_BITS	    11 /* unless another size is asked for */

enum graftrace_hist_source {
	GRAFTRACE_HIST_FIELD = 1,  /* the number of a field; 0 where it could not be read */
	GRAFTRACE_HIST_STRING = 2, /* the string of a field: a key alone */
	GRAFTRACE_HIST_THREAD = 3,
	GRAFTRACE_HIST_CPU = 4,
	GRAFTRACE_HIST_CLOCK = 5, /* nanoseconds */
	GRAFTRACE_HIST_CONSTANT = 6,
	/* Of values before this one: those of the indexes `field` and, where there are two, `right`. */
	GRAFTRACE_HIST_PLUS = 7,
	GRAFTRACE_HIST_MINUS = 8,
	GRAFTRACE_HIST_TIMES = 9,
	GRAFTRACE_HIST_DIVIDED = 10, /* all bits are set where the right one is 0 */
	GRAFTRACE_HIST_NEGATIVE = 11,
};

/* What becomes of a number. */
enum graftrace_hist_change {
	GRAFTRACE_HIST_AS_IS = 0,
	GRAFTRACE_HIST_LOG2 = 1,    /* the exponent of the power of two that is not less */
	GRAFTRACE_HIST_BUCKETS = 2, /* rounded down to a multiple of `number` */
	GRAFTRACE_HIST_USECS = 3,   /* divided by 1000 */
};

struct graftrace_hist_value {
	uint8_t source; /* enum graftrace_hist_source */
	uint8_t field;
	uint8_t change; /* enum graftrace_hist_change */
	uint8_t right;
	uint8_t reserved[4];
	uint64_t number; /* the constant; of buckets their size, never 0 */
};

#define GRAFTRACE_HIST_COMM 1u /* elements have the name of the thread that made them */

struct graftrace_hist {
	uint32_t table; /* where it begins in the pool, in units of 64 bytes */
	uint8_t bits;
	uint8_t value_count;
	uint8_t key_count;
	uint8_t sum_count;
	uint32_t key_words;
	uint32_t flags;
	/* ns = ns_base + ((tsc - tsc_base) * mult >> shift) */
	uint64_t tsc_base;
	uint64_t ns_base;
	uint64_t mult;
	uint32_t shift;
	uint8_t keys[4]; /* indexes of values */
	uint8_t sums[4];
	uint8_t reserved[12];
	/* struct graftrace_hist_value[value_count] follow */
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_hist_value) == 16, "a value is 16 bytes");
GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_hist) == 64, "a description is 64 bytes");

struct graftrace_hist_table {
	uint64_t hits;
	uint64_t drops; /* hits for which there was no room */
	uint64_t free;	/* elements that were filled in vain: a stack, tag << 32 | element + 1; its
			 * next one stands in the first word of an element */
	uint32_t next;	/* elements from this one on were never used */
	uint32_t pad;
	uint64_t more[4];
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_hist_table) == 64, "a table begins with 64 bytes");

/* Where things are in an element, and how large a table is. */
struct graftrace_hist_shape {
	uint32_t comm; /* words from the element's start */
	uint32_t hits; /* … of the hits; the sums follow */
	uint32_t words;
	uint32_t slots;
	uint64_t elements; /* bytes from the table's start */
	uint64_t bytes;
};

/* 0: the description is none. */
static inline int graftrace_hist_shape_of(const struct graftrace_hist *hist,
					  struct graftrace_hist_shape *shape)
{
	if (hist->bits < GRAFTRACE_HIST_BITS_LEAST || hist->bits > GRAFTRACE_HIST_BITS_MOST ||
	    hist->key_count == 0 || hist->key_count > GRAFTRACE_HIST_KEYS ||
	    hist->sum_count > GRAFTRACE_HIST_SUMS || hist->value_count > GRAFTRACE_HIST_VALUES ||
	    hist->key_words == 0 || hist->key_words > GRAFTRACE_HIST_KEY_WORDS)
		return 0;
	shape->comm = hist->key_words;
	shape->hits = shape->comm + (hist->flags & GRAFTRACE_HIST_COMM ? 2 : 0);
	shape->words = shape->hits + 1 + hist->sum_count;
	shape->slots = 2u << hist->bits;
	shape->elements = sizeof(struct graftrace_hist_table) + 8ull * shape->slots;
	shape->bytes = shape->elements + ((8ull * shape->words) << hist->bits);
	return 1;
}

static inline uint64_t *graftrace_hist_slots(struct graftrace_hist_table *table)
{
	return (uint64_t *)(table + 1);
}

static inline uint64_t *graftrace_hist_element(struct graftrace_hist_table *table,
					       const struct graftrace_hist_shape *shape,
					       uint32_t element)
{
	return (uint64_t *)((char *)table + shape->elements) + (uint64_t)element * shape->words;
}

#endif
