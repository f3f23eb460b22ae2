/* SPDX-License-Identifier: MIT */
/*
 * Histograms of events: an event is counted where it happens. Rules of the kind GRAFTRACE_RULE_HIST
 * (graftrace/filter.h) lead to a description, which is the host's alone; it says what the keys and sums
 * are, and where the table lies. Tables lie in a pool that all processes write:
 *
 *	struct graftrace_hist_table | slots[2 << bits] | elements[1 << bits]
 *
 * A slot is 0 (free) or hash << 32 | element + 1. An element is some words: the key; with
 * GRAFTRACE_HIST_COMM the thread's name; hits; sums; with variables a word that says which of them are set,
 * and their values. An element is filled first and then put into a slot by one compare and exchange, so a reader sees
 * whole keys; counts are added by atomics. Nothing is ever taken out of a table: to clear it, the host
 * describes a fresh one.
 *
 * Variables: histograms of other events read those of the element that has the same key (references); an
 * event for whose key one of them is not set is not counted. Actions follow the counting: another event is
 * made of values (GRAFTRACE_HIST_TRACE), or values are saved in variables.
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
#define GRAFTRACE_HIST_REFERENCES   16
#define GRAFTRACE_HIST_ACTIONS	    8
#define GRAFTRACE_HIST_ITEMS	    64 /* of all actions */
#define GRAFTRACE_HIST_VALUES	    48
#define GRAFTRACE_HIST_STRING_WORDS 8
#define GRAFTRACE_HIST_STACK_WORDS  16
#define GRAFTRACE_HIST_KEY_WORDS    (GRAFTRACE_HIST_STACK_WORDS + 2 * GRAFTRACE_HIST_STRING_WORDS)
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
	/* A variable of another histogram, number or string: that of reference `field`. */
	GRAFTRACE_HIST_REFERENCE = 12,
	/* The calls that are open, the innermost first, by their functions' numbers; 0 behind the last: a key
	 * alone. */
	GRAFTRACE_HIST_STACK = 13,
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
	uint8_t reference_count;
	uint8_t variable_count;
	uint8_t action_count;
	uint8_t item_count;
	uint32_t variable_words; /* of all variables */
	uint32_t reserved;
	/* struct graftrace_hist_value[value_count], _reference[reference_count], _variable[variable_count],
	 * _action[action_count] and uint8_t[item_count] follow */
};

/* A variable of another table, of which this is the shape. */
struct graftrace_hist_reference {
	uint32_t table;
	uint32_t flags;
	uint8_t bits;
	uint8_t key_words; /* its key is as long as this one's, or it is never found */
	uint8_t sum_count;
	uint8_t variable_count;
	uint8_t variable_words;
	uint8_t variable; /* its number, … */
	uint8_t at;	  /* … and its first word */
	uint8_t words;	  /* 1: a number; else a string */
	uint8_t once;	  /* it is not set any more once it was read */
	uint8_t reserved[7];
};

struct graftrace_hist_variable {
	uint8_t value; /* what it becomes: the index of a value */
	uint8_t at;    /* its first word */
	uint8_t words; /* 1, of a string GRAFTRACE_HIST_STRING_WORDS */
	uint8_t saved; /* 1: it is set by an action, not by each event */
	uint8_t reserved[4];
};

enum graftrace_hist_handler {
	GRAFTRACE_HIST_ON_MATCH = 1,  /* each event */
	GRAFTRACE_HIST_ON_MAX = 2,    /* the value is larger than all before with this key */
	GRAFTRACE_HIST_ON_CHANGE = 3, /* … is another one than the last with this key */
};

enum graftrace_hist_act {
	GRAFTRACE_HIST_TRACE = 1,    /* event `event` happens; its items are the fields' values */
	GRAFTRACE_HIST_SAVE = 2,     /* its items are variables, which are set */
	GRAFTRACE_HIST_SNAPSHOT = 3, /* if it holds among all keys, too */
};

struct graftrace_hist_action {
	uint8_t handler; /* enum graftrace_hist_handler */
	uint8_t act;	 /* enum graftrace_hist_act */
	uint8_t value;	 /* that is compared, … */
	uint8_t track;	 /* … and the variable that keeps it */
	uint8_t first;	 /* of the items, … */
	uint8_t count;	 /* … and how many */
	uint8_t reserved[2];
	uint32_t event;
	uint32_t more;
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_hist_reference) == 24, "a reference is 24 bytes");
GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_hist_variable) == 8, "a variable is 8 bytes");
GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_hist_action) == 16, "an action is 16 bytes");

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_hist_value) == 16, "a value is 16 bytes");
GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_hist) == 64, "a description is 64 bytes");

struct graftrace_hist_table {
	uint64_t hits;
	uint64_t drops; /* hits for which there was no room */
	uint64_t free;	/* elements that were filled in vain: a stack, tag << 32 | element + 1; its
			 * next one stands in the first word of an element */
	uint32_t next;	/* elements from this one on were never used */
	uint32_t snapped; /* of GRAFTRACE_HIST_SNAPSHOT: the element + 1 that was the reason, … */
	uint64_t snap;	  /* … and its value */
	uint64_t more[3];
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_hist_table) == 64, "a table begins with 64 bytes");

/* Where things are in an element, and how large a table is. */
struct graftrace_hist_shape {
	uint32_t comm; /* words from the element's start */
	uint32_t hits; /* … of the hits; the sums follow */
	uint32_t set;  /* … of the word whose bits say which variables are set; these follow */
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
	    hist->key_words == 0 || hist->key_words > GRAFTRACE_HIST_KEY_WORDS ||
	    hist->variable_count > GRAFTRACE_HIST_VARIABLES ||
	    hist->variable_words > GRAFTRACE_HIST_VARIABLES * GRAFTRACE_HIST_STRING_WORDS)
		return 0;
	shape->comm = hist->key_words;
	shape->hits = shape->comm + (hist->flags & GRAFTRACE_HIST_COMM ? 2 : 0);
	shape->set = shape->hits + 1 + hist->sum_count;
	shape->words = shape->set + (hist->variable_count ? 1 + hist->variable_words : 0);
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
