/* SPDX-License-Identifier: MIT */
/* What lines.c knows of a function beyond its line, for who reads debug information, too. */
#ifndef GT_ATTACH_LINES_DWARF_H
#define GT_ATTACH_LINES_DWARF_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

struct gt_lines;

/* The description of the function that begins at an address (the object's own). */
bool gt_lines_function(struct gt_lines *lines, uint64_t address, Dwarf_Die *function);

#endif
