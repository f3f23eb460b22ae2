/* SPDX-License-Identifier: MIT */
/*
 * Expressions over variables as fetch arguments of Linux's uprobe_events: members, elements and
 * pointers become steps around the register or the address where the variable lies.
 */
#include "attach/object/variables_private.h"
#include "core/trace/message.h"

#include <ctype.h>
#include <dwarf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 512

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
	    dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attribute), &type) == NULL) {
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

static int no_room_for_steps(const struct gt_variables_work *work)
{
	return gt_variables_cannot(work, "it is too deeply nested");
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
		if (dwarf_attr(&die, DW_AT_data_member_location, &attribute) != NULL)
			dwarf_formudata(&attribute, &at);
		below += (int64_t)at;
		if (tag == DW_TAG_member && gt_variables_is_named(&die, name, bytes)) {
			*member = die;
			*offset = below;
			return true;
		}
		if ((tag == DW_TAG_inheritance || dwarf_diename(&die) == NULL) &&
		    gt_variables_plain_type(&die, &inner) &&
		    find_member(&inner, name, bytes, member, &below, depth + 1)) {
			*offset = below;
			return true;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

/* What a pointer leads to. */
static int dereference(const struct gt_variables_work *work, struct gt_variables_value *value)
{
	if (!value->has_type || !is_pointer(&value->type))
		return gt_variables_cannot(work, "'->' wants a pointer before it");
	if (value->step_count == sizeof(value->steps) / sizeof(value->steps[0]))
		return no_room_for_steps(work);
	value->has_type = gt_variables_plain_type(&value->type, &value->type);
	value->steps[value->step_count++] = 0;
	value->in_memory = true;
	return 0;
}

static int64_t *last_step(struct gt_variables_value *value)
{
	return &value->steps[value->step_count - 1];
}

static void take_bits(struct gt_variables_value *value, Dwarf_Die *member)
{
	Dwarf_Attribute attribute;
	Dwarf_Word bits, at, bytes = 4;

	if (dwarf_attr(member, DW_AT_bit_size, &attribute) == NULL ||
	    dwarf_formudata(&attribute, &bits) != 0 || bits == 0 || bits > 63)
		return;
	if (dwarf_attr(member, DW_AT_data_bit_offset, &attribute) == NULL ||
	    dwarf_formudata(&attribute, &at) != 0)
		return;
	if (value->has_type && dwarf_aggregate_size(&value->type, &bytes) != 0)
		bytes = 4;
	*last_step(value) += (int64_t)(at / (bytes * 8) * bytes);
	value->bit_first = (uint8_t)(at % (bytes * 8));
	value->bit_count = (uint8_t)bits;
}

static int take_member(const struct gt_variables_work *work, struct gt_variables_value *value,
		       const char *name, size_t bytes)
{
	Dwarf_Die member;
	int64_t offset = 0;

	if (!value->has_type || !value->in_memory)
		return gt_variables_cannot(work, "it is no structure in memory");
	if (!find_member(&value->type, name, bytes, &member, &offset, 0))
		return gt_fail(work->message, GT_ENOENT, "'%s': there is no member '%.*s'",
			       work->expression, (int)bytes, name);
	*last_step(value) += offset;
	value->has_type = gt_variables_plain_type(&member, &value->type);
	take_bits(value, &member);
	return 0;
}

static int take_element(const struct gt_variables_work *work, struct gt_variables_value *value,
			uint64_t index)
{
	Dwarf_Word bytes;
	int error = 0;

	if (!value->has_type)
		return gt_variables_cannot(work, "it is no array");
	if (is_pointer(&value->type))
		error = dereference(work, value);
	else if (dwarf_tag(&value->type) == DW_TAG_array_type)
		value->has_type = gt_variables_plain_type(&value->type, &value->type);
	else
		return gt_variables_cannot(work, "it is no array");
	if (error)
		return error;
	if (!value->has_type || dwarf_aggregate_size(&value->type, &bytes) != 0)
		return gt_variables_cannot(work, "the size of its elements is not known");
	*last_step(value) += (int64_t)(index * bytes);
	return 0;
}

static size_t name_bytes(const char *text)
{
	size_t bytes = 0;

	while (isalnum((unsigned char)text[bytes]) || text[bytes] == '_')
		bytes++;
	return bytes;
}

static int take_path(const struct gt_variables_work *work, const char *at,
		     struct gt_variables_value *value)
{
	int error = 0;

	while (!error && *at) {
		char *end;

		if (*at == '[') {
			const unsigned long long index = strtoull(at + 1, &end, 0);

			if (end == at + 1 || *end != ']')
				return gt_variables_cannot(work,
							   "an index is a number in brackets");
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
			return gt_variables_cannot(
				work, "only ->, . and [N] may stand behind a variable");
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
static uint64_t text_base(const struct gt_variables_work *work)
{
	size_t count = 0;

	if (elf_getphdrnum(work->variables->elf, &count) != 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr segment;

		if (gelf_getphdr(work->variables->elf, (int)i, &segment) != NULL &&
		    segment.p_type == PT_LOAD && work->address - segment.p_vaddr < segment.p_filesz)
			return segment.p_vaddr - segment.p_offset;
	}
	return 0;
}

static void put_base(const struct gt_variables_work *work, const struct gt_variables_value *value,
		     char *out, size_t size)
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
static bool put_fetch(const struct gt_variables_work *work, const struct gt_variables_value *value,
		      char *out, size_t size)
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

static bool is_char(Dwarf_Die *type)
{
	const Dwarf_Word encoding = gt_variables_encoding(type);

	return encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char;
}

/* The type that its C type asks for; NULL: it has none. */
static const char *type_of(struct gt_variables_value *value)
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
static int make_text(const struct gt_variables_work *work, struct gt_variables_value *value)
{
	Dwarf_Die element;

	if (value->has_type && dwarf_tag(&value->type) == DW_TAG_array_type && value->in_memory)
		return 0;
	if (value->has_type && is_pointer(&value->type)) {
		if (gt_variables_plain_type(&value->type, &element) && !is_char(&element))
			return gt_variables_cannot(work, "it is no text");
		return dereference(work, value);
	}
	return gt_variables_cannot(work, "it is no text");
}

int gt_variables_fetch(struct gt_variables *variables, uint64_t address, const char *expression,
		       const char *type, char *out, size_t size, struct gt_message *message)
{
	struct gt_variables_work work = { variables, address, message, expression };
	const bool result =
		strncmp(expression, GT_VARIABLES_RESULT, strlen(GT_VARIABLES_RESULT)) == 0;
	const size_t bytes = result ? strlen(GT_VARIABLES_RESULT) : name_bytes(expression);
	Dwarf_Die function, variable;
	struct gt_variables_value value;
	char fetch[TEXT_MAX], bits[32];
	bool has_function;
	int error;

	if (!gt_variables_find(&work, expression, bytes, &function, &has_function, &variable) &&
	    !(result && has_function))
		return gt_fail(message, GT_ENOENT, "there is no variable '%.*s' at that place",
			       (int)bytes, expression);
	error = result ? gt_variables_locate_result(&work, &function, &value)
		       : gt_variables_locate(&work, has_function ? &function : NULL, &variable,
					     &value);
	if (!error)
		error = take_path(&work, expression + bytes, &value);
	if (!error && type != NULL && (strcmp(type, "string") == 0 || strcmp(type, "ustring") == 0))
		error = make_text(&work, &value);
	if (error)
		return error;
	if (type == NULL && value.bit_count) {
		Dwarf_Word container = 4;

		dwarf_aggregate_size(&value.type, &container);
		snprintf(bits, sizeof(bits), "b%u@%u/%u", value.bit_count, value.bit_first,
			 (unsigned)container * 8);
		type = bits;
	}
	if (type == NULL)
		type = type_of(&value);
	if (type == NULL)
		return gt_variables_cannot(
			&work, "it is a structure or an array: name a member, or an element");
	if (!put_fetch(&work, &value, fetch, sizeof(fetch)) ||
	    (size_t)snprintf(out, size, "%s:%s", fetch, type) >= size)
		return no_room_for_steps(&work);
	return 0;
}

int gt_variables_each(struct gt_variables *variables, uint64_t address, bool parameters,
		      int (*each)(void *data, const char *type, const char *name), void *data,
		      struct gt_message *message)
{
	struct gt_variables_work work = { variables, address, message, "" };
	Dwarf_Die function, variable, *scopes = NULL, unit;
	bool has_function;
	int result = 0, count;

	gt_variables_find(&work, "", 0, &function, &has_function, &variable);
	if (!has_function)
		return gt_fail(message, GT_ENOENT, "no function is known there");
	if (dwarf_diecu(&function, &unit, NULL, NULL) == NULL)
		return gt_fail(message, GT_ENOENT, "no function is known there");
	count = dwarf_getscopes(&unit, address, &scopes);
	for (int i = 0; i < count && !result; i++) {
		Dwarf_Die die;

		if (dwarf_tag(&scopes[i]) == DW_TAG_compile_unit ||
		    dwarf_child(&scopes[i], &die) != 0)
			continue;
		do {
			const int tag = dwarf_tag(&die);
			const char *name = dwarf_diename(&die);
			struct gt_variables_value value;
			char type[160];

			if (name == NULL || (tag != DW_TAG_formal_parameter &&
					     (parameters || tag != DW_TAG_variable)))
				continue;
			work.expression = name;
			work.message = NULL;
			if (gt_variables_locate(&work, &function, &die, &value) != 0)
				continue;
			put_type(&die, type, sizeof(type), 0);
			result = each(data, type, name);
		} while (!result && dwarf_siblingof(&die, &die) == 0);
	}
	if (count > 0)
		free(scopes);
	return result;
}
