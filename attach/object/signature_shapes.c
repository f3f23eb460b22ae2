/* SPDX-License-Identifier: MIT */
/*
 * How a value of a type is passed and shown: in which kind of register, in how many words, and what is
 * fetched of it.
 */
#include "attach/object/signature_private.h"

#include <dwarf.h>

#define STRUCTURE_MAX (1u << 20)

static void shape_number(Dwarf_Die *type, struct gt_shape *shape)
{
	const uint32_t encoding = gt_type_encoding(type);
	const uint64_t bytes = gt_type_bytes(type);

	shape->pass = GT_SHAPE_GENERAL;
	shape->bytes = bytes == 1 || bytes == 2 || bytes == 4 ? (uint32_t)bytes : 8;
	shape->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	if (gt_type_is_character(type))
		shape->kind = GRAFTRACE_VALUE_CHARACTER;
	if (encoding == DW_ATE_float) {
		shape->is_float = true;
		shape->pass = bytes <= 8 ? GT_SHAPE_VECTOR : GT_SHAPE_STACK;
		if (bytes > 8) { /* long double: ten bytes of sixteen, which nothing here shows */
			shape->bytes = 16;
			shape->alignment = 16;
			shape->kind = GRAFTRACE_VALUE_OPAQUE;
			shape->is_float = false;
		}
	} else if (encoding == DW_ATE_complex_float) {
		shape->pass = bytes <= 16 ? GT_SHAPE_VECTOR : GT_SHAPE_STACK;
		shape->words = bytes == 16 ? 2 : 1;
		shape->vector[0] = shape->vector[1] = true;
		shape->kind = GRAFTRACE_VALUE_STRUCTURE;
	} else if (bytes == 16) {
		shape->words = 2;
		shape->kind = GRAFTRACE_VALUE_STRUCTURE;
	}
}

static void shape_pointer(Dwarf_Die *type, struct gt_shape *shape)
{
	const bool is_reference = dwarf_tag(type) == DW_TAG_reference_type ||
				  dwarf_tag(type) == DW_TAG_rvalue_reference_type;
	Dwarf_Die to;

	shape->pass = GT_SHAPE_GENERAL;
	shape->bytes = 8;
	shape->kind = GRAFTRACE_VALUE_ADDRESS;
	if (!gt_type_of(type, &to) || !gt_type_strip(&to))
		return;
	if (dwarf_tag(&to) == DW_TAG_subroutine_type) {
		shape->kind = GRAFTRACE_VALUE_FUNCTION;
	} else if (gt_type_is_string_class(&to)) {
		shape->take = GRAFTRACE_TAKE_STRING;
		shape->step_count = 2;
	} else if (!is_reference && gt_type_is_character(&to)) {
		shape->take = GRAFTRACE_TAKE_STRING;
	} else if (is_reference &&
		   (dwarf_tag(&to) == DW_TAG_base_type ||
		    dwarf_tag(&to) == DW_TAG_enumeration_type) &&
		   gt_type_bytes(&to) <= 8 && gt_type_bytes(&to) != 0) {
		/* what it refers to */
		shape->kind = GRAFTRACE_VALUE_PLAIN;
		shape_number(&to, shape);
		if (dwarf_tag(&to) == DW_TAG_enumeration_type)
			shape->kind = GRAFTRACE_VALUE_ENUM;
		shape->pass = GT_SHAPE_GENERAL;
		shape->step_count = 1;
	}
}

/* Marks the words of a structure that hold anything but floating-point numbers. False: it is of a kind
 * that is passed in memory. */
static bool find_words(Dwarf_Die *type, uint64_t offset, bool general_words[GT_SHAPE_WORDS_MAX],
		       int depth)
{
	Dwarf_Die member, inner;

	if (depth == GT_TYPE_DEPTH_MAX)
		return false;
	if (!gt_type_is_structure(type)) {
		const uint64_t bytes = gt_type_bytes(type);
		const bool is_float = gt_type_encoding(type) == DW_ATE_float;

		if (dwarf_tag(type) == DW_TAG_array_type) {
			if (!gt_type_of(type, &inner) || !gt_type_strip(&inner))
				return false;
			if (gt_type_encoding(&inner) == DW_ATE_float && gt_type_bytes(&inner) <= 8)
				return true;
		}
		if (is_float)
			return bytes <= 8;
		for (uint64_t at = offset; at < offset + (bytes ? bytes : 1); at++)
			if (at / 8 < GT_SHAPE_WORDS_MAX)
				general_words[at / 8] = true;
		return true;
	}
	if (dwarf_child(type, &member) != 0)
		return true;
	do {
		Dwarf_Attribute attribute;
		Dwarf_Word at = 0;

		if (dwarf_tag(&member) != DW_TAG_member && dwarf_tag(&member) != DW_TAG_inheritance)
			continue;
		if (dwarf_hasattr(&member, DW_AT_external) ||
		    dwarf_hasattr(&member, DW_AT_declaration))
			continue; /* static */
		if (dwarf_attr(&member, DW_AT_data_member_location, &attribute) != NULL)
			dwarf_formudata(&attribute, &at);
		else if (dwarf_attr(&member, DW_AT_data_bit_offset, &attribute) != NULL &&
			 dwarf_formudata(&attribute, &at) == 0)
			at /= 8;
		if (!gt_type_of(&member, &inner) || !gt_type_strip(&inner) ||
		    !find_words(&inner, offset + at, general_words, depth + 1))
			return false;
	} while (dwarf_siblingof(&member, &member) == 0);
	return true;
}

static void shape_structure(Dwarf_Die *type, struct gt_shape *shape)
{
	const uint64_t bytes = gt_type_bytes(type);
	bool general_words[GT_SHAPE_WORDS_MAX] = { false, false };

	if (gt_type_is_passed_by_reference(type)) {
		shape->pass = GT_SHAPE_GENERAL;
		shape->bytes = 8;
		shape->kind = GRAFTRACE_VALUE_ADDRESS;
		if (gt_type_is_string_class(type)) {
			shape->take = GRAFTRACE_TAKE_STRING;
			shape->step_count = 2;
		}
		return;
	}
	shape->kind = GRAFTRACE_VALUE_STRUCTURE;
	if (bytes > 16 || bytes == 0 || !find_words(type, 0, general_words, 0)) {
		shape->pass = bytes ? GT_SHAPE_STACK : GT_SHAPE_NONE;
		shape->bytes = bytes < STRUCTURE_MAX ? (uint32_t)((bytes + 7) & ~7ull) : 0;
		return;
	}
	shape->pass = GT_SHAPE_GENERAL;
	shape->bytes = 8;
	shape->words = (uint32_t)((bytes + 7) / 8);
	for (uint32_t i = 0; i < shape->words; i++)
		shape->vector[i] = !general_words[i];
}

struct gt_shape gt_shape_of(Dwarf_Die *type)
{
	struct gt_shape shape = { .pass = GT_SHAPE_GENERAL, .bytes = 8, .alignment = 8 };
	Dwarf_Die under;

	switch (dwarf_tag(type)) {
	case DW_TAG_base_type:
		shape_number(type, &shape);
		break;
	case DW_TAG_enumeration_type:
		shape_number(type, &shape);
		shape.kind = GRAFTRACE_VALUE_ENUM;
		shape.is_signed = true;
		if (gt_type_of(type, &under) && gt_type_strip(&under))
			shape.is_signed = gt_type_encoding(&under) == DW_ATE_signed ||
					  gt_type_encoding(&under) == DW_ATE_signed_char;
		break;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		shape_pointer(type, &shape);
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		shape_structure(type, &shape);
		break;
	default:
		shape.kind = GRAFTRACE_VALUE_ADDRESS;
		break;
	}
	return shape;
}
