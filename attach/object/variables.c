/* SPDX-License-Identifier: MIT */
/*
 * Opening what variables.h asks of: the file, and its debug information, in it or in a file of its own.
 */
#include "attach/object/variables_private.h"
#include "core/trace/message.h"
#include "attach/object/lines.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static bool has_units(Dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;

	return dwarf != NULL && dwarf_get_units(dwarf, NULL, &unit, NULL, NULL, &die, NULL) == 0;
}

static void open_debug(struct gt_variables *variables)
{
	const void *id;
	const ssize_t bytes = dwelf_elf_gnu_build_id(variables->elf, &id);
	char path[4096];

	if (bytes <= 0 || gt_debug_path(id, (uint32_t)bytes, path, sizeof(path)) != 0)
		return;
	variables->debug_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (variables->debug_fd < 0)
		return;
	variables->debug_elf = elf_begin(variables->debug_fd, ELF_C_READ, NULL);
	variables->dwarf = dwarf_begin_elf(variables->debug_elf, DWARF_C_READ, NULL);
}

int gt_variables_open(const char *path, struct gt_variables **out, struct gt_message *message)
{
	struct gt_variables *variables = calloc(1, sizeof(*variables));

	*out = NULL;
	if (variables == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory");
	elf_version(EV_CURRENT);
	variables->debug_fd = -1;
	variables->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (variables->fd < 0) {
		gt_variables_close(variables);
		return gt_fail(message, GT_EIO, "cannot open '%s'", path);
	}
	variables->elf = elf_begin(variables->fd, ELF_C_READ, NULL);
	variables->dwarf = dwarf_begin_elf(variables->elf, DWARF_C_READ, NULL);
	if (!has_units(variables->dwarf)) {
		dwarf_end(variables->dwarf);
		variables->dwarf = NULL;
		open_debug(variables);
	}
	if (!has_units(variables->dwarf)) {
		gt_variables_close(variables);
		return gt_fail(message, GT_ENOENT,
			       "'%s' has no debug information: compile it with -g, or install its "
			       "debug file",
			       path);
	}
	variables->frames[0] = dwarf_getcfi_elf(variables->elf);
	variables->frames[1] = dwarf_getcfi(variables->dwarf);
	*out = variables;
	return 0;
}

void gt_variables_close(struct gt_variables *variables)
{
	if (variables == NULL)
		return;
	dwarf_cfi_end(variables->frames[0]);
	dwarf_end(variables->dwarf);
	elf_end(variables->debug_elf);
	elf_end(variables->elf);
	if (variables->debug_fd >= 0)
		close(variables->debug_fd);
	if (variables->fd >= 0)
		close(variables->fd);
	free(variables);
}
