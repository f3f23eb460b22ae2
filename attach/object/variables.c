/* SPDX-License-Identifier: MIT */
/* See variables.h; libdw reads DWARF (elfutils). */
#include "attach/object/variables_private.h"
#include "attach/object/fail.h"
#include "attach/object/lines.h"

#include <ctype.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCOPES_MAX 64
#define TEXT_MAX   512

/* ---- opening ---- */

static bool has_units(Dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;

	return dwarf && dwarf_get_units(dwarf, NULL, &unit, NULL, NULL, &die, NULL) == 0;
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
	if (!variables)
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
	if (!variables)
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

/* ---- places ---- */

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

	if (!name || strcmp(name, search->place->function) != 0 || !entry_of(die, &address) ||
	    (search->place->file && (!file || !gt_variables_ends_with(file, search->place->file))))
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
		       place->function, place->file ? " of " : "", place->file ? place->file : "");
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
	return !function || dwarf_haspc(function, address) == 1;
}

/* The function that has an address, as an offset of it; 0: none. */
static Dwarf_Off function_at(Dwarf_Die *unit, Dwarf_Addr address)
{
	Dwarf_Die *scopes = NULL;
	const int count = dwarf_getscopes(unit, address, &scopes);
	Dwarf_Off offset = 0;
	int i;

	for (i = 0; i < count && !offset; i++)
		if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
			offset = dwarf_dieoffset(&scopes[i]);
	if (count > 0)
		free(scopes);
	return offset;
}

static int search_unit(struct line_search *search, Dwarf_Die *unit)
{
	Dwarf_Off seen[32];
	size_t count = 0, seen_count = 0, i, k;
	Dwarf_Lines *lines;
	int result = 0;

	if (dwarf_getsrclines(unit, &lines, &count) != 0)
		return 0;
	for (i = 0; !result && i < count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		const char *file = dwarf_linesrc(line, NULL, NULL);
		Dwarf_Addr address;
		Dwarf_Off function;
		bool begins = false, ends = false;
		int number;

		if (!file || dwarf_lineno(line, &number) != 0 || number != (int)search->line ||
		    !gt_variables_ends_with(file, search->file) ||
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

/* Behind the prologue, as the compiler or the second line of the function says. */
static uint64_t behind_prologue(Dwarf_Die *function)
{
	Dwarf_Addr *places = NULL, entry = 0;
	const int count = dwarf_entry_breakpoints(function, &places);

	entry_of(function, &entry);
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

	if (place->function) {
		if (!gt_variables_find_function(variables, place, &function))
			return gt_variables_no_function(place, message);
		if (!place->has_line) {
			if (!entry_of(&function, &address))
				return gt_variables_no_function(place, message);
			return each(data, entry ? address : behind_prologue(&function));
		}
		search.within = &function;
		search.file = dwarf_decl_file(&function);
		if (!search.file || dwarf_decl_line(&function, &line) != 0)
			return gt_variables_no_function(place, message);
		search.line += (uint32_t)line;
	}
	result = each_line_address(variables, &search);
	return search.found ? result
			    : gt_fail(message, GT_ENOENT, "no code comes from line %u of %s",
				      search.line, search.file);
}

/* ---- types ---- */

/* Without typedefs and qualifiers. False: there is none (void). */
static bool plain_type(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attribute), type) &&
	       dwarf_peel_type(type, type) == 0;
}

static bool is_pointer(Dwarf_Die *type)
{
	const int tag = dwarf_tag(type);

	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
	       tag == DW_TAG_rvalue_reference_type;
}

/* As C writes it, as far as that is easy. */
static void put_type(Dwarf_Die *die, char *out, size_t size, unsigned depth)
{
	Dwarf_Attribute attribute;
	Dwarf_Die type;
	char inner[128];

	if (depth == 16 ||
	    !dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attribute), &type)) {
		snprintf(out, size, "void");
		return;
	}
	switch (dwarf_tag(&type)) {
	case DW_TAG_pointer_type:
		put_type(&type, inner, sizeof(inner), depth + 1);
		snprintf(out, size, "%.120s*", inner);
		break;
	case DW_TAG_reference_type:
		put_type(&type, inner, sizeof(inner), depth + 1);
		snprintf(out, size, "%.120s&", inner);
		break;
	case DW_TAG_const_type:
		put_type(&type, inner, sizeof(inner), depth + 1);
		snprintf(out, size, "const %.120s", inner);
		break;
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
		put_type(&type, out, size, depth + 1);
		break;
	case DW_TAG_array_type:
		put_type(&type, inner, sizeof(inner), depth + 1);
		snprintf(out, size, "%.120s[]", inner);
		break;
	case DW_TAG_subroutine_type:
		snprintf(out, size, "(function)");
		break;
	default:
		snprintf(out, size, "%s%s",
			 dwarf_tag(&type) == DW_TAG_structure_type     ? "struct "
			 : dwarf_tag(&type) == DW_TAG_union_type       ? "union "
			 : dwarf_tag(&type) == DW_TAG_enumeration_type ? "enum "
								       : "",
			 dwarf_diename(&type) ? dwarf_diename(&type) : "(unnamed)");
	}
}

/* ---- values ---- */

/* Where a value is: `steps` dereferences, the first of the register plus steps[0], and so on. */
struct value {
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

struct work {
	struct gt_variables *variables;
	uint64_t address;
	struct gt_message *message;
	const char *expression;
};

static int cannot(const struct work *work, const char *what)
{
	return gt_fail(work->message, GT_ENOTSUP, "'%s' cannot be had there: %s", work->expression,
		       what);
}

static int no_room_for_steps(const struct work *work)
{
	return cannot(work, "it is too deeply nested");
}

/* The frame's address at the place: register and offset. */
static bool find_cfa(const struct work *work, int *reg, int64_t *offset)
{
	int i;

	for (i = 0; i < 2; i++) {
		Dwarf_Frame *frame = NULL;
		Dwarf_Op *ops;
		size_t count;
		bool found;

		if (!work->variables->frames[i] ||
		    dwarf_cfi_addrframe(work->variables->frames[i], work->address, &frame) != 0)
			continue;
		found = dwarf_frame_cfa(frame, &ops, &count) == 0 && count == 1 &&
			ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31;
		if (!found && count == 1 && ops[0].atom == DW_OP_bregx) {
			*reg = (int)ops[0].number;
			*offset = (int64_t)ops[0].number2;
			found = true;
		} else if (found) {
			*reg = ops[0].atom - DW_OP_breg0;
			*offset = (int64_t)ops[0].number;
		}
		free(frame);
		if (found)
			return true;
	}
	return false;
}

static bool find_frame_base(const struct work *work, Dwarf_Die *function, int *reg, int64_t *offset)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t count;

	if (!dwarf_attr_integrate(function, DW_AT_frame_base, &attribute) ||
	    dwarf_getlocation_addr(&attribute, work->address, &ops, &count, 1) != 1 || count != 1)
		return false;
	if (ops[0].atom == DW_OP_call_frame_cfa)
		return find_cfa(work, reg, offset);
	if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
		*reg = ops[0].atom - DW_OP_breg0;
		*offset = (int64_t)ops[0].number;
		return true;
	}
	if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
		*reg = ops[0].atom - DW_OP_reg0;
		*offset = 0;
		return true;
	}
	return false;
}

static int locate(const struct work *work, Dwarf_Die *function, Dwarf_Die *variable,
		  struct value *value)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t count;
	int64_t offset = 0;

	memset(value, 0, sizeof(*value));
	value->has_type = plain_type(variable, &value->type);
	if (!dwarf_attr_integrate(variable, DW_AT_location, &attribute))
		return cannot(work, "the compiler has kept no place for it");
	if (dwarf_getlocation_addr(&attribute, work->address, &ops, &count, 1) != 1 || count == 0)
		return cannot(work, "it is optimized away at that place");
	if (count != 1)
		return cannot(work, "its place is not a simple one");
	value->in_memory = true;
	if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
		value->reg = ops[0].atom - DW_OP_reg0;
		value->in_memory = false;
		return value->reg <= 15 ? 0 : cannot(work, "it is in a vector register");
	}
	if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
		value->reg = ops[0].atom - DW_OP_breg0;
		offset = (int64_t)ops[0].number;
	} else if (ops[0].atom == DW_OP_fbreg) {
		if (!function || !find_frame_base(work, function, &value->reg, &offset))
			return cannot(work, "the frame cannot be found");
		offset += (int64_t)ops[0].number;
	} else if (ops[0].atom == DW_OP_addr) {
		value->reg = -1;
		value->address = ops[0].number;
	} else {
		return cannot(work, "its place is not a simple one");
	}
	value->steps[value->step_count++] = offset;
	return value->reg <= 15 ? 0 : cannot(work, "its place is not a simple one");
}

static bool is_named(Dwarf_Die *die, const char *name, size_t bytes)
{
	const char *own = dwarf_diename(die);

	return own && strlen(own) == bytes && memcmp(own, name, bytes) == 0;
}

/* A member of the type, below unnamed ones and base classes too; *offset grows. */
static bool find_member(Dwarf_Die *type, const char *name, size_t bytes, Dwarf_Die *member,
			int64_t *offset, unsigned depth)
{
	Dwarf_Die die;

	if (depth == 16 || dwarf_child(type, &die) != 0)
		return false;
	do {
		const int tag = dwarf_tag(&die);
		Dwarf_Attribute attribute;
		Dwarf_Word at = 0;
		Dwarf_Die inner;
		int64_t below = *offset;

		if (tag != DW_TAG_member && tag != DW_TAG_inheritance)
			continue;
		if (dwarf_attr(&die, DW_AT_data_member_location, &attribute))
			dwarf_formudata(&attribute, &at);
		below += (int64_t)at;
		if (tag == DW_TAG_member && is_named(&die, name, bytes)) {
			*member = die;
			*offset = below;
			return true;
		}
		if ((tag == DW_TAG_inheritance || !dwarf_diename(&die)) &&
		    plain_type(&die, &inner) &&
		    find_member(&inner, name, bytes, member, &below, depth + 1)) {
			*offset = below;
			return true;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

/* What a pointer leads to. */
static int dereference(const struct work *work, struct value *value)
{
	if (!value->has_type || !is_pointer(&value->type))
		return cannot(work, "'->' wants a pointer before it");
	if (value->step_count == sizeof(value->steps) / sizeof(value->steps[0]))
		return no_room_for_steps(work);
	value->has_type = plain_type(&value->type, &value->type);
	value->steps[value->step_count++] = 0;
	value->in_memory = true;
	return 0;
}

static int64_t *last_step(struct value *value)
{
	return &value->steps[value->step_count - 1];
}

static void take_bits(struct value *value, Dwarf_Die *member)
{
	Dwarf_Attribute attribute;
	Dwarf_Word bits, at, bytes = 4;

	if (!dwarf_attr(member, DW_AT_bit_size, &attribute) ||
	    dwarf_formudata(&attribute, &bits) != 0 || bits == 0 || bits > 63)
		return;
	if (!dwarf_attr(member, DW_AT_data_bit_offset, &attribute) ||
	    dwarf_formudata(&attribute, &at) != 0)
		return;
	if (value->has_type && dwarf_aggregate_size(&value->type, &bytes) != 0)
		bytes = 4;
	*last_step(value) += (int64_t)(at / (bytes * 8) * bytes);
	value->bit_first = (uint8_t)(at % (bytes * 8));
	value->bit_count = (uint8_t)bits;
}

static int take_member(const struct work *work, struct value *value, const char *name, size_t bytes)
{
	Dwarf_Die member;
	int64_t offset = 0;

	if (!value->has_type || !value->in_memory)
		return cannot(work, "it is no structure in memory");
	if (!find_member(&value->type, name, bytes, &member, &offset, 0))
		return gt_fail(work->message, GT_ENOENT, "'%s': there is no member '%.*s'",
			       work->expression, (int)bytes, name);
	*last_step(value) += offset;
	value->has_type = plain_type(&member, &value->type);
	take_bits(value, &member);
	return 0;
}

static int take_element(const struct work *work, struct value *value, uint64_t index)
{
	Dwarf_Word bytes;
	int error = 0;

	if (!value->has_type)
		return cannot(work, "it is no array");
	if (is_pointer(&value->type))
		error = dereference(work, value);
	else if (dwarf_tag(&value->type) == DW_TAG_array_type)
		value->has_type = plain_type(&value->type, &value->type);
	else
		return cannot(work, "it is no array");
	if (error)
		return error;
	if (!value->has_type || dwarf_aggregate_size(&value->type, &bytes) != 0)
		return cannot(work, "the size of its elements is not known");
	*last_step(value) += (int64_t)(index * bytes);
	return 0;
}

/* The innermost variable of that name that is in scope, and its function. */
static bool find_variable(const struct work *work, const char *name, size_t bytes,
			  Dwarf_Die *function, bool *has_function, Dwarf_Die *variable)
{
	Dwarf_Die unit, *scopes = NULL;
	bool found = false;
	int count, i;

	*has_function = false;
	if (!dwarf_addrdie(work->variables->dwarf, work->address, &unit)) {
		Dwarf_CU *each = NULL;
		uint8_t type;

		/* without .debug_aranges */
		while (dwarf_get_units(work->variables->dwarf, each, &each, NULL, &type, &unit,
				       NULL) == 0 &&
		       dwarf_haspc(&unit, work->address) != 1)
			;
		if (!each)
			return false;
	}
	count = dwarf_getscopes(&unit, work->address, &scopes);
	for (i = 0; i < count; i++) {
		Dwarf_Die die;

		if (!found && dwarf_child(&scopes[i], &die) == 0)
			do {
				const int tag = dwarf_tag(&die);

				if ((tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) &&
				    is_named(&die, name, bytes)) {
					*variable = die;
					found = true;
				}
			} while (!found && dwarf_siblingof(&die, &die) == 0);
		if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram && !*has_function) {
			*function = scopes[i];
			*has_function = true;
		}
	}
	if (count > 0)
		free(scopes);
	return found;
}

static size_t name_bytes(const char *text)
{
	size_t bytes = 0;

	while (isalnum((unsigned char)text[bytes]) || text[bytes] == '_')
		bytes++;
	return bytes;
}

static int take_path(const struct work *work, const char *at, struct value *value)
{
	int error = 0;

	while (!error && *at) {
		char *end;

		if (*at == '[') {
			const unsigned long long index = strtoull(at + 1, &end, 0);

			if (end == at + 1 || *end != ']')
				return cannot(work, "an index is a number in brackets");
			error = take_element(work, value, index);
			at = end + 1;
			continue;
		}
		if (at[0] == '-' && at[1] == '>') {
			error = dereference(work, value);
			at += 2;
		} else if (*at == '.') {
			at++;
		} else {
			return cannot(work, "only ->, . and [N] may stand behind a variable");
		}
		if (!error)
			error = take_member(work, value, at, name_bytes(at));
		at += name_bytes(at);
	}
	return error;
}

/* DWARF's numbers as struct pt_regs has names. */
static const char *const register_names[16] = {
	"ax", "dx", "cx",  "bx",  "si",	 "di",	"bp",  "sp",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"
};

/* What is to be taken off an address to get at the offset that uprobe_events wants: the code's mapping
 * counts. */
static uint64_t text_base(const struct work *work)
{
	size_t count = 0, i;

	if (elf_getphdrnum(work->variables->elf, &count) != 0)
		return 0;
	for (i = 0; i < count; i++) {
		GElf_Phdr segment;

		if (gelf_getphdr(work->variables->elf, (int)i, &segment) &&
		    segment.p_type == PT_LOAD && work->address - segment.p_vaddr < segment.p_filesz)
			return segment.p_vaddr - segment.p_offset;
	}
	return 0;
}

static void put_base(const struct work *work, const struct value *value, char *out, size_t size)
{
	if (value->is_result)
		snprintf(out, size, "$retval");
	else if (value->reg >= 0)
		snprintf(out, size, "%%%s", register_names[value->reg]);
	else
		snprintf(out, size, "@+0x%llx",
			 (unsigned long long)(value->address - text_base(work) +
					      (uint64_t)value->steps[0]));
}

/* The steps around the register. A fixed address is a step by itself. */
static bool put_fetch(const struct work *work, const struct value *value, char *out, size_t size)
{
	char inner[TEXT_MAX];
	uint32_t i = value->reg < 0 ? 1 : 0;

	put_base(work, value, out, size);
	for (; i < value->step_count; i++) {
		const int64_t step = value->steps[i];

		snprintf(inner, sizeof(inner), "%s", out);
		if ((size_t)snprintf(out, size, "%c%llu(%s)", step < 0 ? '-' : '+',
				     (unsigned long long)(step < 0 ? -step : step), inner) >= size)
			return false;
	}
	return true;
}

/* DW_ATE_…, 0: it is no base type. */
static Dwarf_Word encoding_of(Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Word encoding = 0;

	if (dwarf_tag(type) == DW_TAG_base_type)
		dwarf_formudata(dwarf_attr(type, DW_AT_encoding, &attribute), &encoding);
	return encoding;
}

/* What the function returns in rax. */
static int locate_result(const struct work *work, Dwarf_Die *function, struct value *value)
{
	memset(value, 0, sizeof(*value));
	value->is_result = true;
	value->has_type = plain_type(function, &value->type);
	if (!value->has_type)
		return cannot(work, "the function returns nothing");
	return encoding_of(&value->type) == DW_ATE_float ||
			       encoding_of(&value->type) == DW_ATE_complex_float
		       ? cannot(work, "it is in a vector register")
		       : 0;
}

static bool is_char(Dwarf_Die *type)
{
	const Dwarf_Word encoding = encoding_of(type);

	return encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char;
}

/* The type that its C type asks for; NULL: it has none. */
static const char *type_of(struct value *value)
{
	static const char *const names[3][4] = { { "u8", "u16", "u32", "u64" },
						 { "s8", "s16", "s32", "s64" },
						 { "x8", "x16", "x32", "x64" } };
	Dwarf_Attribute attribute;
	Dwarf_Word bytes, encoding = DW_ATE_unsigned;
	int kind, log;

	if (!value->has_type)
		return "x64";
	if (is_pointer(&value->type))
		return "x64";
	if (dwarf_aggregate_size(&value->type, &bytes) != 0)
		return NULL;
	log = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : -1;
	if (log < 0 || (dwarf_tag(&value->type) != DW_TAG_base_type &&
			dwarf_tag(&value->type) != DW_TAG_enumeration_type))
		return NULL;
	dwarf_formudata(dwarf_attr(&value->type, DW_AT_encoding, &attribute), &encoding);
	kind = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char ? 1
	       : encoding == DW_ATE_float				   ? 2
									   : 0;
	return names[kind][log];
}

/* Ends a fetch that is to be read as a text: a char array lies there, a char * leads to it. */
static int make_text(const struct work *work, struct value *value)
{
	Dwarf_Die element;

	if (value->has_type && dwarf_tag(&value->type) == DW_TAG_array_type && value->in_memory)
		return 0;
	if (value->has_type && is_pointer(&value->type)) {
		if (plain_type(&value->type, &element) && !is_char(&element))
			return cannot(work, "it is no text");
		return dereference(work, value);
	}
	return cannot(work, "it is no text");
}

int gt_variables_fetch(struct gt_variables *variables, uint64_t address, const char *expression,
		       const char *type, char *out, size_t size, struct gt_message *message)
{
	struct work work = { variables, address, message, expression };
	const bool result =
		strncmp(expression, GT_VARIABLES_RESULT, strlen(GT_VARIABLES_RESULT)) == 0;
	const size_t bytes = result ? strlen(GT_VARIABLES_RESULT) : name_bytes(expression);
	Dwarf_Die function, variable;
	struct value value;
	char fetch[TEXT_MAX], bits[32];
	bool has_function;
	int error;

	if (!find_variable(&work, expression, bytes, &function, &has_function, &variable) &&
	    !(result && has_function))
		return gt_fail(message, GT_ENOENT, "there is no variable '%.*s' at that place",
			       (int)bytes, expression);
	error = result ? locate_result(&work, &function, &value)
		       : locate(&work, has_function ? &function : NULL, &variable, &value);
	if (!error)
		error = take_path(&work, expression + bytes, &value);
	if (!error && type && (strcmp(type, "string") == 0 || strcmp(type, "ustring") == 0))
		error = make_text(&work, &value);
	if (error)
		return error;
	if (!type && value.bit_count) {
		Dwarf_Word container = 4;

		dwarf_aggregate_size(&value.type, &container);
		snprintf(bits, sizeof(bits), "b%u@%u/%u", value.bit_count, value.bit_first,
			 (unsigned)container * 8);
		type = bits;
	}
	if (!type)
		type = type_of(&value);
	if (!type)
		return cannot(&work, "it is a structure or an array: name a member, or an element");
	if (!put_fetch(&work, &value, fetch, sizeof(fetch)) ||
	    (size_t)snprintf(out, size, "%s:%s", fetch, type) >= size)
		return no_room_for_steps(&work);
	return 0;
}

int gt_variables_each(struct gt_variables *variables, uint64_t address, bool parameters,
		      int (*each)(void *data, const char *type, const char *name), void *data,
		      struct gt_message *message)
{
	struct work work = { variables, address, message, "" };
	Dwarf_Die function, variable, *scopes = NULL, unit;
	bool has_function;
	int result = 0, count, i;

	find_variable(&work, "", 0, &function, &has_function, &variable);
	if (!has_function)
		return gt_fail(message, GT_ENOENT, "no function is known there");
	if (!dwarf_diecu(&function, &unit, NULL, NULL))
		return gt_fail(message, GT_ENOENT, "no function is known there");
	count = dwarf_getscopes(&unit, address, &scopes);
	for (i = 0; i < count && !result; i++) {
		Dwarf_Die die;

		if (dwarf_tag(&scopes[i]) == DW_TAG_compile_unit ||
		    dwarf_child(&scopes[i], &die) != 0)
			continue;
		do {
			const int tag = dwarf_tag(&die);
			const char *name = dwarf_diename(&die);
			struct value value;
			char type[160];

			if (!name || (tag != DW_TAG_formal_parameter &&
				      (parameters || tag != DW_TAG_variable)))
				continue;
			work.expression = name;
			work.message = NULL;
			if (locate(&work, &function, &die, &value) != 0)
				continue;
			put_type(&die, type, sizeof(type), 0);
			result = each(data, type, name);
		} while (!result && dwarf_siblingof(&die, &die) == 0);
	}
	if (count > 0)
		free(scopes);
	return result;
}
