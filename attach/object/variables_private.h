/* SPDX-License-Identifier: MIT */
/* What the files variables*.c share: variables_places.c finds places, variables_locate.c finds values. */
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

/* Where a value is: `steps` dereferences, the first of the register plus steps[0], and so on. */
struct gt_variables_value {
	int reg;	  /* DWARF's; -1: a fixed address */
	uint64_t address; /* the object's, of that */
	bool in_memory;	  /* else the register holds it */
	bool is_result;	  /* … of a function that returns */
	int64_t steps[12];
	uint32_t step_count; /* the last one leads to the value itself */
	Dwarf_Die type;	     /* peeled */
	bool has_type;
	uint8_t bit_count, bit_first; /* of a bit-field */
};

struct gt_variables_work {
	struct gt_variables *variables;
	uint64_t address;
	struct gt_message *message;
	const char *expression;
};

/* Says in work->message why the expression cannot be had. Returns GT_ENOTSUP. */
int gt_variables_cannot(const struct gt_variables_work *work, const char *what);
/* Of anything that has a type: without typedefs and qualifiers. False: there is none (void). */
bool gt_variables_plain_type(Dwarf_Die *die, Dwarf_Die *type);
/* DW_ATE_… of a type; 0: it is no base type. */
Dwarf_Word gt_variables_encoding(Dwarf_Die *type);
/* Whether its name is these bytes. */
bool gt_variables_is_named(Dwarf_Die *die, const char *name, size_t bytes);
/* The innermost variable of that name that is in scope at work->address. False: there is none. In both
 * cases *has_function says whether that address is in a function, and *function in which. */
bool gt_variables_find(const struct gt_variables_work *work, const char *name, size_t bytes,
		       Dwarf_Die *function, bool *has_function, Dwarf_Die *variable);
/* Where the variable lies at work->address, and its type. function: that has the address; NULL: none.
 * GT_ENOTSUP: see gt_variables_cannot(). */
int gt_variables_locate(const struct gt_variables_work *work, Dwarf_Die *function,
			Dwarf_Die *variable, struct gt_variables_value *value);
/* The same of what the function returns. */
int gt_variables_locate_result(const struct gt_variables_work *work, Dwarf_Die *function,
			       struct gt_variables_value *value);

#endif
