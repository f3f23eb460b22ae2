/* SPDX-License-Identifier: MIT */
/*
 * Addresses of functions and lines, by libdw.
 */
#include "attach/object/variables_private.h"
#include "core/trace/message.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define SCOPES_MAX 64

bool gt_variables_ends_with(const char *path, const char *end)
{
	const size_t bytes = strlen(path), wanted = strlen(end);

	return bytes >= wanted && strcmp(path + bytes - wanted, end) == 0 &&
	       (bytes == wanted || path[bytes - wanted - 1] == '/' || *end == '/');
}

/* The first instruction: of a function in several parts, in the first one that is told. */
static bool entry_of(Dwarf_Die *function, Dwarf_Addr *address)
{
	Dwarf_Addr base, end;

	return (dwarf_hasattr(function, DW_AT_entry_pc) || dwarf_hasattr(function, DW_AT_low_pc))
		       ? dwarf_entrypc(function, address) == 0
		       : dwarf_ranges(function, 0, &base, address, &end) > 0;
}

struct function_search {
	const struct gt_source_place *place;
	Dwarf_Die found;
	bool is_found;
};

static int is_function(Dwarf_Die *die, void *data)
{
	struct function_search *search = data;
	const char *name = dwarf_diename(die), *file = dwarf_decl_file(die);
	Dwarf_Addr address;

	if (name == NULL || strcmp(name, search->place->function) != 0 ||
	    !entry_of(die, &address) ||
	    (search->place->file != NULL &&
	     (file == NULL || !gt_variables_ends_with(file, search->place->file))))
		return DWARF_CB_OK;
	search->found = *die;
	search->is_found = true;
	return DWARF_CB_ABORT;
}

/* Also those below namespaces and types, by their own name. */
static bool search_below(Dwarf_Die *parent, struct function_search *search, unsigned depth)
{
	Dwarf_Die die;

	if (depth == SCOPES_MAX || dwarf_child(parent, &die) != 0)
		return false;
	do {
		const int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram && is_function(&die, search) == DWARF_CB_ABORT)
			return true;
		if ((tag == DW_TAG_namespace || tag == DW_TAG_structure_type ||
		     tag == DW_TAG_class_type || tag == DW_TAG_module) &&
		    search_below(&die, search, depth + 1))
			return true;
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

bool gt_variables_find_function(struct gt_variables *variables, const struct gt_source_place *place,
				Dwarf_Die *function)
{
	struct function_search search = { .place = place };
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	uint8_t type;

	while (!search.is_found &&
	       dwarf_get_units(variables->dwarf, unit, &unit, NULL, &type, &die, NULL) == 0)
		if (type == DW_UT_compile)
			search_below(&die, &search, 0);
	*function = search.found;
	return search.is_found;
}

int gt_variables_no_function(const struct gt_source_place *place, struct gt_message *message)
{
	return gt_fail(message, GT_ENOENT, "no function '%s'%s%s in the debug information",
		       place->function, place->file != NULL ? " of " : "",
		       place->file != NULL ? place->file : "");
}

/* Addresses of one line, the lowest of each function. */
struct line_search {
	const char *file;
	uint32_t line;
	Dwarf_Die *within; /* NULL: anywhere */
	int (*each)(void *data, uint64_t address);
	void *data;
	uint32_t found;
};

static bool is_in(Dwarf_Die *function, Dwarf_Addr address)
{
	return function == NULL || dwarf_haspc(function, address) == 1;
}

/* The function that has an address, as an offset of it; 0: none. */
static Dwarf_Off function_at(Dwarf_Die *unit, Dwarf_Addr address)
{
	Dwarf_Die *scopes = NULL;
	const int count = dwarf_getscopes(unit, address, &scopes);
	Dwarf_Off offset = 0;

	for (int i = 0; i < count && !offset; i++)
		if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
			offset = dwarf_dieoffset(&scopes[i]);
	if (count > 0)
		free(scopes);
	return offset;
}

static int search_unit(struct line_search *search, Dwarf_Die *unit)
{
	Dwarf_Off seen[32];
	size_t count = 0, seen_count = 0, k;
	Dwarf_Lines *lines;
	int result = 0;

	if (dwarf_getsrclines(unit, &lines, &count) != 0)
		return 0;
	for (size_t i = 0; !result && i < count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		const char *file = dwarf_linesrc(line, NULL, NULL);
		Dwarf_Addr address;
		Dwarf_Off function;
		bool begins = false, ends = false;
		int number;

		if (file == NULL || dwarf_lineno(line, &number) != 0 ||
		    number != (int)search->line || !gt_variables_ends_with(file, search->file) ||
		    dwarf_lineaddr(line, &address) != 0 ||
		    dwarf_linebeginstatement(line, &begins) != 0 || !begins ||
		    dwarf_lineendsequence(line, &ends) != 0 || ends ||
		    !is_in(search->within, address))
			continue;
		function = function_at(unit, address);
		for (k = 0; k < seen_count && seen[k] != function; k++)
			;
		if (k < seen_count)
			continue;
		if (seen_count < sizeof(seen) / sizeof(seen[0]))
			seen[seen_count++] = function;
		search->found++;
		result = search->each(search->data, address);
	}
	return result;
}

static int each_line_address(struct gt_variables *variables, struct line_search *search)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	uint8_t type;
	int result = 0;

	while (!result &&
	       dwarf_get_units(variables->dwarf, unit, &unit, NULL, &type, &die, NULL) == 0)
		if (type == DW_UT_compile)
			result = search_unit(search, &die);
	return result;
}

/* Whether the prologue writes the function's parameters, as it does in code that is not optimized: each is at the same
 * place in the frame all the time. */
static bool are_in_the_frame(Dwarf_Die *function)
{
	bool some = false;
	Dwarf_Die die;

	if (dwarf_child(function, &die) != 0)
		return false;
	do {
		Dwarf_Attribute location;
		Dwarf_Op *operations;
		size_t count;

		if (dwarf_tag(&die) != DW_TAG_formal_parameter ||
		    dwarf_attr(&die, DW_AT_location, &location) == NULL)
			continue;
		if (dwarf_getlocation(&location, &operations, &count) != 0 || count == 0 ||
		    operations[0].atom != DW_OP_fbreg)
			return false;
		some = true;
	} while (dwarf_siblingof(&die, &die) == 0);
	return some;
}

/* Where a function's variables are first. Parameters that the prologue writes are there behind it, as the compiler or the
 * second line of the function says. Optimized code has them at its entry, and need not keep them until the second line;
 * without parameters there is nothing to wait for either, and no probe can be so near behind an entry as that often is. */
static uint64_t first_place(Dwarf_Die *function)
{
	Dwarf_Addr *places = NULL, entry = 0;
	int count;

	entry_of(function, &entry);
	if (!are_in_the_frame(function))
		return entry;
	count = dwarf_entry_breakpoints(function, &places);
	if (count > 0) {
		entry = places[0];
		free(places);
	}
	return entry;
}

int gt_variables_each_address(struct gt_variables *variables, const struct gt_source_place *place,
			      bool entry, int (*each)(void *data, uint64_t address), void *data,
			      struct gt_message *message)
{
	struct line_search search = {
		.file = place->file, .line = place->line, .each = each, .data = data
	};
	Dwarf_Die function;
	Dwarf_Addr address;
	int line, result;

	if (place->function != NULL) {
		if (!gt_variables_find_function(variables, place, &function))
			return gt_variables_no_function(place, message);
		if (!place->has_line) {
			if (!entry_of(&function, &address))
				return gt_variables_no_function(place, message);
			return each(data, entry ? address : first_place(&function));
		}
		search.within = &function;
		search.file = dwarf_decl_file(&function);
		if (search.file == NULL || dwarf_decl_line(&function, &line) != 0)
			return gt_variables_no_function(place, message);
		search.line += (uint32_t)line;
	}
	result = each_line_address(variables, &search);
	return search.found ? result
			    : gt_fail(message, GT_ENOENT, "no code comes from line %u of %s",
				      search.line, search.file);
}
