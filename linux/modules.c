/* SPDX-License-Identifier: MIT */
/*
 * A sorted list of the functions of modules.
 */
#include "linux/modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_address(const void *a, const void *b)
{
	const struct gt_linux_module_function *first = a, *second = b;

	return (first->address > second->address) - (first->address < second->address);
}

static int add(struct gt_linux_modules *modules, uint64_t address, const char *name, size_t bytes)
{
	if (modules->count == modules->room) {
		size_t room = modules->room * 2 + 256;
		struct gt_linux_module_function *bigger =
			realloc(modules->functions, room * sizeof(*bigger));
		if (bigger == NULL)
			return GT_ENOMEM;
		modules->functions = bigger;
		modules->room = room;
	}
	struct gt_linux_module_function *function = &modules->functions[modules->count++];
	function->address = address;
	snprintf(function->name, sizeof(function->name), "%.*s", (int)bytes, name);
	return 0;
}

int gt_linux_modules_add(struct gt_linux_modules *modules, const char *text)
{
	int error = 0;

	for (const char *line = text; *line && error == 0;) {
		size_t bytes = strcspn(line, "\n");
		const char *open = memchr(line, '[', bytes);
		const char *close =
			open != NULL ? memchr(open, ']', bytes - (size_t)(open - line)) : NULL;
		uint64_t address = strtoull(line, NULL, 16);
		if (close != NULL && address && close - open < 60)
			error = add(modules, address, open, (size_t)(close - open) + 1);
		line += bytes + (line[bytes] == '\n');
	}
	if (modules->count)
		qsort(modules->functions, modules->count, sizeof(*modules->functions), by_address);
	return error;
}

const char *gt_linux_modules_find(const struct gt_linux_modules *modules, uint64_t address)
{
	const struct gt_linux_module_function key = { .address = address };
	const struct gt_linux_module_function *found =
		modules != NULL && modules->count
			? bsearch(&key, modules->functions, modules->count, sizeof(key), by_address)
			: NULL;

	return found != NULL ? found->name : NULL;
}

void gt_linux_modules_fini(struct gt_linux_modules *modules)
{
	free(modules->functions);
	*modules = (struct gt_linux_modules){ 0 };
}
