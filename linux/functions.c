/* SPDX-License-Identifier: MIT */
/*
 * A kernel's functions: a hash table by address, and the functions that the sink has not been given
 * yet.
 */
#include "linux/functions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PENDING_MAX 512u

struct slot {
	uint64_t address;
	uint32_t number; /* 0: free */
};

struct gt_linux_functions {
	struct tep_handle *tep;
	const struct gt_sink *sink;
	const struct gt_linux_modules *modules;
	struct slot *slots;
	uint32_t slot_count, used;
	uint32_t next; /* number */
	struct slot
		latest; /* the address that was asked for last: a call without callees returns */
	struct gt_function pending[PENDING_MAX];
	uint32_t pending_count;
	int error;
};

int gt_linux_functions_create(struct tep_handle *tep, const struct gt_sink *sink, uint32_t first,
			      const struct gt_linux_modules *modules,
			      struct gt_linux_functions **out)
{
	struct gt_linux_functions *functions = calloc(1, sizeof(*functions));

	*out = functions;
	if (functions == NULL)
		return GT_ENOMEM;
	functions->tep = tep;
	functions->sink = sink;
	functions->next = first;
	functions->modules = modules;
	return 0;
}

static struct slot *slot_of(const struct gt_linux_functions *functions, uint64_t address)
{
	uint32_t mask = functions->slot_count - 1;
	uint32_t at = (uint32_t)(address * 0x9e3779b97f4a7c15u >> 32) & mask;

	while (functions->slots[at].number && functions->slots[at].address != address)
		at = (at + 1) & mask;
	return &functions->slots[at];
}

static int grow(struct gt_linux_functions *functions)
{
	struct slot *old = functions->slots;
	uint32_t old_count = functions->slot_count;
	uint32_t count = old_count ? old_count * 2 : 4096;
	struct slot *slots = calloc(count, sizeof(*slots));

	if (slots == NULL)
		return GT_ENOMEM;
	functions->slots = slots;
	functions->slot_count = count;
	for (uint32_t i = 0; i < old_count; i++)
		if (old[i].number)
			*slot_of(functions, old[i].address) = old[i];
	free(old);
	return 0;
}

/* Returns the slot with the address's number, or a free one for it. NULL: no memory. */
static struct slot *find(struct gt_linux_functions *functions, uint64_t address)
{
	if (functions->used * 2 >= functions->slot_count && grow(functions) != 0)
		return NULL;
	return slot_of(functions, address);
}

static uint32_t add(struct gt_linux_functions *functions, uint64_t address, const char *name,
		    unsigned long size)
{
	const char *module = gt_linux_modules_find(functions->modules, address);
	char text[24];

	const char *object = module != NULL ? module : GT_LINUX_OBJECT;

	/* the sink gets the functions of one object at a time */
	if (functions->next >= GRAFTRACE_SPECIAL ||
	    ((functions->pending_count == PENDING_MAX ||
	      (functions->pending_count && strcmp(functions->pending[0].object, object) != 0)) &&
	     gt_linux_functions_flush(functions) != 0))
		return 0;
	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	char *copy = strdup(name != NULL ? name : text);
	if (copy == NULL)
		return 0;
	functions->pending[functions->pending_count++] =
		(struct gt_function){ .name = copy,
				      .object = object,
				      .address = address,
				      .size = size < UINT32_MAX ? (uint32_t)size : 0 };
	return functions->next++;
}

/* Finds a function's number, or gives it one. */
static uint32_t look_up(struct gt_linux_functions *functions, uint64_t address)
{
	struct slot *slot = find(functions, address);
	unsigned long long start = address;
	unsigned long size = 0;
	const char *name = NULL;
	uint32_t number = 0;

	if (slot == NULL)
		return 0;
	if (slot->number)
		return slot->number;
	if (tep_find_function_info(functions->tep, address, &name, &start, &size) <= 0 ||
	    name == NULL)
		start = address;
	if (start != address) {
		struct slot *first = slot_of(functions, start);
		number = first->number;
		if (!number) {
			number = add(functions, start, name, size);
			*first = (struct slot){ start, number };
			functions->used += number != 0;
			slot = find(functions, address);
			if (slot == NULL)
				return number;
		}
	} else {
		number = add(functions, start, name, size);
	}
	*slot = (struct slot){ address, number };
	functions->used += number != 0;
	return number;
}

uint32_t gt_linux_functions_number(struct gt_linux_functions *functions, uint64_t address)
{
	if (functions->latest.address != address || !functions->latest.number)
		functions->latest = (struct slot){ address, look_up(functions, address) };
	return functions->latest.number;
}

int gt_linux_functions_flush(struct gt_linux_functions *functions)
{
	uint32_t count = functions->pending_count;

	if (count)
		functions->error = functions->sink->functions(functions->sink->data, 0,
							      functions->next - count,
							      functions->pending, count);
	for (uint32_t i = 0; i < count; i++)
		free((void *)functions->pending[i].name);
	functions->pending_count = 0;
	return functions->error;
}

void gt_linux_functions_destroy(struct gt_linux_functions *functions)
{
	if (functions == NULL)
		return;
	for (uint32_t i = 0; i < functions->pending_count; i++)
		free((void *)functions->pending[i].name);
	free(functions->slots);
	free(functions);
}
