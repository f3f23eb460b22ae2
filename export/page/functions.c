/* SPDX-License-Identifier: MIT */
/* The page's functions: see functions.h. */
#include "export/page/functions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "export/same_function.h"

int gt_page_functions_init(struct gt_page_functions *functions, struct gt_target *target)
{
	*functions = (struct gt_page_functions){
		.target = target,
		.table_size = 1024,
		.number_size = 1024,
	};
	functions->numbers = calloc(functions->number_size, sizeof(*functions->numbers));
	functions->table = calloc(functions->table_size, sizeof(*functions->table));
	return functions->numbers != NULL && functions->table != NULL ? 0 : GT_ENOMEM;
}

/* Notes the item of a number that is looked up for the first time. */
static int note_number(struct gt_page_functions *functions, uint32_t number, uint32_t item)
{
	if (functions->number_count * 2 >= functions->number_size) {
		struct gt_page_number *old = functions->numbers;
		uint32_t old_size = functions->number_size;

		functions->numbers = calloc(old_size * 2u, sizeof(*old));
		if (functions->numbers == NULL) {
			functions->numbers = old;
			return GT_ENOMEM;
		}
		functions->number_size = old_size * 2;
		for (uint32_t i = 0; i < old_size; i++)
			if (old[i].item != 0)
				*gt_page_number_at(functions, old[i].number) = old[i];
		free(old);
	}
	*gt_page_number_at(functions, number) = (struct gt_page_number){ number, item };
	functions->number_count++;
	return 0;
}

static uint32_t *place_of(const struct gt_page_functions *functions,
			  const struct gt_function *function)
{
	for (uint32_t at = gt_function_hash(function);; at++) {
		uint32_t *place = &functions->table[at & (functions->table_size - 1)];

		if (*place == 0 ||
		    gt_function_is_same(&functions->items[*place - 1].function, function))
			return place;
	}
}

static int grow(struct gt_page_functions *functions)
{
	if (functions->count == functions->room) {
		uint32_t room = functions->room ? functions->room * 2 : 256;
		struct gt_page_function *items = realloc(functions->items, room * sizeof(*items));

		if (items == NULL)
			return GT_ENOMEM;
		/* Names that are stored in the items have moved with them. */
		for (uint32_t i = 0; i < functions->count; i++)
			if (items[i].number[0] != '\0')
				items[i].function.name = items[i].number;
		functions->items = items;
		functions->room = room;
	}
	if (functions->count * 2 >= functions->table_size) {
		uint32_t *table = calloc(functions->table_size * 2, sizeof(*table));

		if (table == NULL)
			return GT_ENOMEM;
		free(functions->table);
		functions->table = table;
		functions->table_size *= 2;
		for (uint32_t i = 0; i < functions->count; i++)
			*place_of(functions, &functions->items[i].function) = i + 1;
	}
	return 0;
}

uint32_t gt_page_functions_add(struct gt_page_functions *functions, uint32_t number)
{
	struct gt_page_function made = { .minimum = UINT64_MAX, .target_number = number };
	uint32_t known, *place;

	if (gt_target_function(functions->target, number, &made.function) != 0 ||
	    made.function.name == NULL || made.function.name[0] == '\0') {
		snprintf(made.number, sizeof(made.number), "function#%" PRIu32, number);
		made.function = (struct gt_function){ .name = made.number };
	}
	if (made.function.object == NULL)
		made.function.object = "";
	if (grow(functions) != 0)
		return UINT32_MAX;
	place = place_of(functions, &made.function);
	if (*place == 0) {
		struct gt_page_function *item = &functions->items[functions->count];

		*item = made;
		if (item->number[0] != '\0')
			item->function.name = item->number;
		*place = ++functions->count;
	}
	known = *place;
	return note_number(functions, number, known) == 0 ? known - 1 : UINT32_MAX;
}

void gt_page_functions_fini(struct gt_page_functions *functions)
{
	for (uint32_t i = 0; i < functions->count; i++) {
		gt_histogram_fini(&functions->items[i].times);
		free(functions->items[i].cpu_self);
	}
	free(functions->items);
	free(functions->numbers);
	free(functions->table);
	*functions = (struct gt_page_functions){ 0 };
}

void gt_page_function_note_slow(struct gt_page_function *function, const struct gt_page_slow *slow)
{
	uint32_t at = function->slow_count;

	if (at == GT_PAGE_SLOWEST)
		at--;
	else
		function->slow_count++;
	for (; at > 0 && function->slow[at - 1].took < slow->took; at--)
		function->slow[at] = function->slow[at - 1];
	function->slow[at] = *slow;
}

int gt_page_function_add_cpu_slow(struct gt_page_function *function, uint32_t cpu,
				  uint64_t self_ticks)
{
	if (cpu >= GT_PAGE_CPUS)
		return 0;
	if (cpu >= function->cpu_count) {
		uint64_t *grown = realloc(function->cpu_self, (cpu + 1u) * sizeof(*grown));

		if (grown == NULL)
			return GT_ENOMEM;
		memset(grown + function->cpu_count, 0,
		       (cpu + 1u - function->cpu_count) * sizeof(*grown));
		function->cpu_self = grown;
		function->cpu_count = cpu + 1;
	}
	function->cpu_self[cpu] += self_ticks;
	return 0;
}
