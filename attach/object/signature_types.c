/* SPDX-License-Identifier: MIT */
/* Types of debug information: what is behind them, and what they are called. */
#include "attach/object/signature_private.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#define TYPE_MAX 2048u /* of a type's text */

bool gt_type_strip(Dwarf_Die *type)
{
	for (int tries = 0; tries < GT_TYPE_DEPTH_MAX; tries++) {
		Dwarf_Attribute attribute;

		switch (dwarf_tag(type)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			if (dwarf_attr_integrate(type, DW_AT_type, &attribute) == NULL ||
			    dwarf_formref_die(&attribute, type) == NULL)
				return false;
			break;
		default:
			return true;
		}
	}
	return false;
}

bool gt_type_of(Dwarf_Die *of, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(of, DW_AT_type, &attribute) != NULL &&
	       dwarf_formref_die(&attribute, type) != NULL;
}

/* A declaration's size is that of the definition, which may be in another unit: 0, unknown. */
uint64_t gt_type_bytes(Dwarf_Die *type)
{
	Dwarf_Word bytes;

	return dwarf_aggregate_size(type, &bytes) == 0 ? bytes : 0;
}

uint32_t gt_type_encoding(Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	return dwarf_tag(type) == DW_TAG_base_type &&
			       dwarf_formudata(dwarf_attr(type, DW_AT_encoding, &attribute),
					       &value) == 0
		       ? (uint32_t)value
		       : 0;
}

bool gt_type_is_structure(Dwarf_Die *type)
{
	const int tag = dwarf_tag(type);

	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

bool gt_type_is_character(Dwarf_Die *type)
{
	const char *name = dwarf_tag(type) == DW_TAG_base_type ? dwarf_diename(type) : NULL;

	return name != NULL && strcmp(name, "char") == 0;
}

bool gt_type_is_string_class(Dwarf_Die *type)
{
	static const char start[] = "basic_string<char,";
	const char *name = gt_type_is_structure(type) ? dwarf_diename(type) : NULL;

	return name != NULL && strncmp(name, start, sizeof(start) - 1) == 0;
}

bool gt_type_is_passed_by_reference(Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (gt_type_is_string_class(type))
		return true;
	return dwarf_formudata(dwarf_attr_integrate(type, DW_AT_calling_convention, &attribute),
			       &value) == 0 &&
	       value == DW_CC_pass_by_reference;
}

/* ---- the text of a type ---- */

struct words {
	char *at;
	char *end;
};

static void put(struct words *words, const char *text)
{
	while (*text && words->at < words->end)
		*words->at++ = *text++;
}

/* "{RED=0,GREEN=1}", as many as there is room for. */
static void put_enumerators(struct words *words, Dwarf_Die *type)
{
	Dwarf_Die die;
	bool first = true;

	put(words, " {");
	if (dwarf_child(type, &die) != 0) {
		put(words, "}");
		return;
	}
	do {
		Dwarf_Attribute attribute;
		const char *name = dwarf_diename(&die);
		Dwarf_Sword value;
		char number[32];

		if (dwarf_tag(&die) != DW_TAG_enumerator || name == NULL ||
		    dwarf_formsdata(dwarf_attr(&die, DW_AT_const_value, &attribute), &value) != 0)
			continue;
		if (strlen(name) + sizeof(number) > (size_t)(words->end - words->at))
			break;
		snprintf(number, sizeof(number), "=%lld", (long long)value);
		put(words, first ? "" : ",");
		put(words, name);
		put(words, number);
		first = false;
	} while (dwarf_siblingof(&die, &die) == 0);
	put(words, "}");
}

static void put_type(struct words *words, Dwarf_Die *type, int depth)
{
	const char *name = dwarf_diename(type);
	Dwarf_Die inner;

	if (depth == GT_TYPE_DEPTH_MAX)
		return;
	switch (dwarf_tag(type)) {
	case DW_TAG_const_type:
		put(words, "const ");
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		put(words, "struct ");
		break;
	case DW_TAG_union_type:
		put(words, "union ");
		break;
	case DW_TAG_enumeration_type:
		put(words, "enum ");
		break;
	default:
		break;
	}
	if (name != NULL) {
		put(words, name);
		return;
	}
	if (dwarf_tag(type) == DW_TAG_subroutine_type) {
		put(words, "function");
		return;
	}
	if (gt_type_of(type, &inner))
		put_type(words, &inner, depth + 1);
	else if (!gt_type_is_structure(type) && dwarf_tag(type) != DW_TAG_enumeration_type)
		put(words, "void");
	switch (dwarf_tag(type)) {
	case DW_TAG_pointer_type:
		put(words, " *");
		break;
	case DW_TAG_reference_type:
		put(words, " &");
		break;
	case DW_TAG_rvalue_reference_type:
		put(words, " &&");
		break;
	default:
		break;
	}
}

char *gt_type_text(Dwarf_Die *type, bool with_enumerators)
{
	char text[TYPE_MAX];
	struct words words = { text, text + sizeof(text) - 1 };

	if (type != NULL)
		put_type(&words, type, 0);
	if (type != NULL && with_enumerators) {
		Dwarf_Die stripped = *type;

		if (gt_type_strip(&stripped) && dwarf_tag(&stripped) == DW_TAG_enumeration_type)
			put_enumerators(&words, &stripped);
	}
	*words.at = 0;
	return strdup(text);
}
