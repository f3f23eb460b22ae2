/* SPDX-License-Identifier: MIT */
/*
 * What the page knows of each function: sums, how its calls' times are distributed, the slowest of
 * them. A function is that of a file, in however many processes (same_function.h). Times in
 * nanoseconds but where it says ticks. One thread at a time.
 */
#ifndef GT_EXPORT_PAGE_FUNCTIONS_H
#define GT_EXPORT_PAGE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/target.h"
#include "export/histogram.h"

#define GT_PAGE_SLOWEST 12u
#define GT_PAGE_CPUS	256u /* those with higher numbers are left out */

struct gt_page_slow {
	uint64_t start, took;
	uint32_t lane, depth;
};

struct gt_page_function {
	struct gt_function function; /* its strings are the target's or `number`'s */
	char number[24];	     /* the name of one that has none */
	uint32_t target_number; /* the target's number of it, or of one of those that are one */
	uint64_t calls, returned, entries_only;
	uint64_t total, self, self_off; /* ticks, of those that returned; recursion counts once */
	uint64_t sum;			/* ticks of all that returned, each whole */
	uint64_t minimum, maximum;	/* ticks */
	uint64_t self_upper;		/* calls in which records are missing */
	uint64_t *cpu_self;		/* ticks by CPU; cpu_count of them */
	uint32_t cpu_count;
	uint32_t slow_count;
	struct gt_page_slow slow[GT_PAGE_SLOWEST]; /* the slowest first */
	struct gt_histogram times;		   /* how long its calls took */
};

/* A function's number in the target, and its item. */
struct gt_page_number {
	uint32_t number;
	uint32_t item; /* + 1; 0: empty */
};

struct gt_page_functions {
	struct gt_target *target;
	struct gt_page_function *items;
	uint32_t count, room;
	struct gt_page_number *numbers; /* items by the target's numbers, hashed */
	uint32_t number_count, number_size;
	uint32_t *table; /* number + 1 of an item by its name; 0 empty */
	uint32_t table_size;
};

/* Makes an empty one; the target must outlive it. GT_ENOMEM: call gt_page_functions_fini all the same. */
int gt_page_functions_init(struct gt_page_functions *functions, struct gt_target *target);

/* The slot of a number, or a free one. */
static inline struct gt_page_number *gt_page_number_at(const struct gt_page_functions *functions,
						       uint32_t number)
{
	for (uint32_t at = number * 0x9e3779b1u;; at++) {
		struct gt_page_number *found =
			&functions->numbers[at & (functions->number_size - 1)];

		if (found->item == 0 || found->number == number)
			return found;
	}
}

/* The item of the target's function; UINT32_MAX: it is not known yet. */
static inline uint32_t gt_page_functions_known(const struct gt_page_functions *functions,
					       uint32_t number)
{
	return gt_page_number_at(functions, number)->item - 1;
}

/* The same for a function that was not known: makes the item if there is none. That may move all items.
 * UINT32_MAX: no memory. */
uint32_t gt_page_functions_add(struct gt_page_functions *functions, uint32_t number);
void gt_page_functions_fini(struct gt_page_functions *functions);

/* Whether a call that took so long belongs to the slowest. */
static inline bool gt_page_function_is_slow(const struct gt_page_function *function, uint64_t took)
{
	return function->slow_count < GT_PAGE_SLOWEST ||
	       took > function->slow[GT_PAGE_SLOWEST - 1].took;
}

/* Adds such a call to them, in its place; the fastest goes if there is no room. */
void gt_page_function_note_slow(struct gt_page_function *function, const struct gt_page_slow *slow);

/* The cold half of gt_page_function_add_cpu(): makes room for that CPU. */
int gt_page_function_add_cpu_slow(struct gt_page_function *function, uint32_t cpu,
				  uint64_t self_ticks);

/* Adds the own ticks of a call on a CPU; nothing for a CPU from GT_PAGE_CPUS on. GT_ENOMEM. */
static inline int gt_page_function_add_cpu(struct gt_page_function *function, uint32_t cpu,
					   uint64_t self_ticks)
{
	if (cpu >= function->cpu_count)
		return gt_page_function_add_cpu_slow(function, cpu, self_ticks);
	function->cpu_self[cpu] += self_ticks;
	return GT_OK;
}

#endif
