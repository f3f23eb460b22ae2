/* SPDX-License-Identifier: MIT */
/* What variables.c and variables_lines.c share. */
#ifndef GT_ATTACH_VARIABLES_PRIVATE_H
#define GT_ATTACH_VARIABLES_PRIVATE_H

#include <elfutils/libdw.h>

#include "attach/object/variables.h"

struct gt_variables {
	int fd, debug_fd;
	Elf *elf, *debug_elf;
	Dwarf *dwarf;
	Dwarf_CFI *frames[2]; /* .eh_frame of the file, .debug_frame */
};

/* A path, and the end of one: whole parts of it. */
bool gt_variables_ends_with(const char *path, const char *end);
/* The function of a place, by its name. */
bool gt_variables_find_function(struct gt_variables *variables, const struct gt_source_place *place,
				Dwarf_Die *function);
/* GT_ENOENT, with that message. */
int gt_variables_no_function(const struct gt_source_place *place, struct gt_message *message);

#endif
