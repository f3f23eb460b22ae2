/* SPDX-License-Identifier: MIT */
/*
 * Where the variables of a place lie: DWARF's locations, as far as they are a register, or one address.
 */
#include "attach/object/variables_private.h"
#include "core/trace/message.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

int gt_variables_cannot(const struct gt_variables_work *work, const char *what)
{
	return gt_fail(work->message, GT_ENOTSUP, "'%s' cannot be had there: %s", work->expression,
		       what);
}

/* Without typedefs and qualifiers. False: there is none (void). */
bool gt_variables_plain_type(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attribute), type) != NULL &&
	       dwarf_peel_type(type, type) == 0;
}

/* DW_ATE_…, 0: it is no base type. */
Dwarf_Word gt_variables_encoding(Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Word encoding = 0;

	if (dwarf_tag(type) == DW_TAG_base_type)
		dwarf_formudata(dwarf_attr(type, DW_AT_encoding, &attribute), &encoding);
	return encoding;
}

bool gt_variables_is_named(Dwarf_Die *die, const char *name, size_t bytes)
{
	const char *own = dwarf_diename(die);

	return own != NULL && strlen(own) == bytes && memcmp(own, name, bytes) == 0;
}

/* The innermost variable of that name that is in scope, and its function. */
bool gt_variables_find(const struct gt_variables_work *work, const char *name, size_t bytes,
		       Dwarf_Die *function, bool *has_function, Dwarf_Die *variable)
{
	Dwarf_Die unit, *scopes = NULL;
	bool found = false;
	int count;

	*has_function = false;
	if (dwarf_addrdie(work->variables->dwarf, work->address, &unit) == NULL) {
		Dwarf_CU *each = NULL;
		uint8_t type;

		/* without .debug_aranges */
		while (dwarf_get_units(work->variables->dwarf, each, &each, NULL, &type, &unit,
				       NULL) == 0 &&
		       dwarf_haspc(&unit, work->address) != 1)
			;
		if (each == NULL)
			return false;
	}
	count = dwarf_getscopes(&unit, work->address, &scopes);
	for (int i = 0; i < count; i++) {
		Dwarf_Die die;

		if (!found && dwarf_child(&scopes[i], &die) == 0)
			do {
				const int tag = dwarf_tag(&die);

				if ((tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) &&
				    gt_variables_is_named(&die, name, bytes)) {
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

/* The frame's address at the place: register and offset. */
static bool find_cfa(const struct gt_variables_work *work, int *reg, int64_t *offset)
{
	for (int i = 0; i < 2; i++) {
		Dwarf_Frame *frame = NULL;
		Dwarf_Op *ops;
		size_t count;
		bool found;

		if (work->variables->frames[i] == NULL ||
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

static bool find_frame_base(const struct gt_variables_work *work, Dwarf_Die *function, int *reg,
			    int64_t *offset)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t count;

	if (dwarf_attr_integrate(function, DW_AT_frame_base, &attribute) == NULL ||
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

/* The address that the operation is, by itself (gcc) or by its number in the unit's table of addresses (clang). */
static bool address_of(Dwarf_Attribute *location, const Dwarf_Op *operation, uint64_t *address)
{
	Dwarf_Attribute entry;
	Dwarf_Addr found;

	*address = operation->number;
	if (operation->atom == DW_OP_addr)
		return true;
	if ((operation->atom != DW_OP_addrx && operation->atom != DW_OP_GNU_addr_index) ||
	    dwarf_getlocation_attr(location, operation, &entry) != 0 ||
	    dwarf_formaddr(&entry, &found) != 0)
		return false;
	*address = found;
	return true;
}

int gt_variables_locate(const struct gt_variables_work *work, Dwarf_Die *function,
			Dwarf_Die *variable, struct gt_variables_value *value)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t count;
	int64_t offset = 0;

	memset(value, 0, sizeof(*value));
	value->has_type = gt_variables_plain_type(variable, &value->type);
	if (dwarf_attr_integrate(variable, DW_AT_location, &attribute) == NULL)
		return gt_variables_cannot(work, "the compiler has kept no place for it");
	if (dwarf_getlocation_addr(&attribute, work->address, &ops, &count, 1) != 1 || count == 0)
		return gt_variables_cannot(work, "it is optimized away at that place");
	if (count != 1)
		return gt_variables_cannot(work, "its place is not a simple one");
	value->in_memory = true;
	if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
		value->reg = ops[0].atom - DW_OP_reg0;
		value->in_memory = false;
		return value->reg <= 15 ? 0
					: gt_variables_cannot(work, "it is in a vector register");
	}
	if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
		value->reg = ops[0].atom - DW_OP_breg0;
		offset = (int64_t)ops[0].number;
	} else if (ops[0].atom == DW_OP_fbreg) {
		if (function == NULL || !find_frame_base(work, function, &value->reg, &offset))
			return gt_variables_cannot(work, "the frame cannot be found");
		offset += (int64_t)ops[0].number;
	} else if (address_of(&attribute, &ops[0], &value->address)) {
		value->reg = -1;
	} else {
		return gt_variables_cannot(work, "its place is not a simple one");
	}
	value->steps[value->step_count++] = offset;
	return value->reg <= 15 ? 0 : gt_variables_cannot(work, "its place is not a simple one");
}

/* What the function returns in rax. */
int gt_variables_locate_result(const struct gt_variables_work *work, Dwarf_Die *function,
			       struct gt_variables_value *value)
{
	memset(value, 0, sizeof(*value));
	value->is_result = true;
	value->has_type = gt_variables_plain_type(function, &value->type);
	if (!value->has_type)
		return gt_variables_cannot(work, "the function returns nothing");
	return gt_variables_encoding(&value->type) == DW_ATE_float ||
			       gt_variables_encoding(&value->type) == DW_ATE_complex_float
		       ? gt_variables_cannot(work, "it is in a vector register")
		       : 0;
}
