/* SPDX-License-Identifier: MIT */
/*
 * Which module of the kernel a function is of, by the kallsyms of the recorded machine: those lines
 * have it in brackets, programs of BPF are in [bpf]. From one thread at a time.
 */
#ifndef GT_LINUX_MODULES_H
#define GT_LINUX_MODULES_H

#include <stddef.h>
#include <stdint.h>

#include <graftrace/error.h>

struct gt_linux_module_function {
	uint64_t address;
	char name[64]; /* "[md_mod]" */
};

/* All zero: no modules. */
struct gt_linux_modules {
	struct gt_linux_module_function *functions;
	size_t count, room;
};

/* Adds those of a text like /proc/kallsyms. GT_ENOMEM. */
int gt_linux_modules_add(struct gt_linux_modules *modules, const char *text);

/* "[NAME]", or NULL: it is the kernel's own. By the address at which a function begins. */
const char *gt_linux_modules_find(const struct gt_linux_modules *modules, uint64_t address);

void gt_linux_modules_fini(struct gt_linux_modules *modules);

#endif
