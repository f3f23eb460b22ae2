/* SPDX-License-Identifier: MIT */
/*
 * What the files share that read signatures out of debug information: types (signature_types.c), how
 * their values are passed (signature_shapes.c), and places.
 */
#ifndef GT_ATTACH_SIGNATURE_PRIVATE_H
#define GT_ATTACH_SIGNATURE_PRIVATE_H

#include "attach/object/signatures.h"
#include "attach/object/lines_dwarf.h"

#define GT_GENERAL_COUNT   6u /* registers that pass values */
#define GT_VECTOR_COUNT	   8u
#define GT_TYPE_DEPTH_MAX  32 /* of types in types */
#define GT_SHAPE_WORDS_MAX 2u /* of a structure that are taken */

/* ---- places ---- */

static inline struct graftrace_probe_argument gt_place_in_register(uint8_t number, uint32_t bytes)
{
	return (struct graftrace_probe_argument){
		.place = GRAFTRACE_PLACE_REGISTER,
		.bytes = (uint8_t)bytes,
		.base = number,
		.index = GRAFTRACE_NO_REGISTER,
	};
}

static inline struct graftrace_probe_argument gt_place_in_vector(uint8_t number, uint32_t bytes)
{
	struct graftrace_probe_argument place = gt_place_in_register(number, bytes);

	place.place = GRAFTRACE_PLACE_VECTOR;
	return place;
}

/* offset: from the stack pointer at the function's entry. */
static inline struct graftrace_probe_argument gt_place_on_stack(int64_t offset, uint32_t bytes)
{
	struct graftrace_probe_argument place = gt_place_in_register(4 /* rsp */, bytes);

	place.place = GRAFTRACE_PLACE_MEMORY;
	place.value = offset;
	return place;
}

/* ---- types ---- */

/* Leaves out typedefs and qualifiers. False: there is nothing behind them (void), or no end of them. */
bool gt_type_strip(Dwarf_Die *type);
/* What a pointer points to, a function returns, a parameter has. False: void. */
bool gt_type_of(Dwarf_Die *of, Dwarf_Die *type);
/* 0: unknown. */
uint64_t gt_type_bytes(Dwarf_Die *type);
/* DW_ATE_… of a base type; 0: it is none. */
uint32_t gt_type_encoding(Dwarf_Die *type);
bool gt_type_is_structure(Dwarf_Die *type);
/* char, and not an int8_t. */
bool gt_type_is_character(Dwarf_Die *type);
/* std::string, whose first word is where its text is, in libstdc++ and in its older form. */
bool gt_type_is_string_class(Dwarf_Die *type);
/* Passed by an invisible reference, whatever its size. */
bool gt_type_is_passed_by_reference(Dwarf_Die *type);
/* As C has it, for the caller to free; NULL: no memory. type: NULL is an empty text. */
char *gt_type_text(Dwarf_Die *type, bool with_enumerators);

/* ---- shapes ---- */

/* How a type's value is passed and shown. */
struct gt_shape {
	enum { GT_SHAPE_NONE, GT_SHAPE_GENERAL, GT_SHAPE_VECTOR, GT_SHAPE_STACK } pass;
	uint32_t bytes; /* of the value; of one on the stack all that it takes there */
	uint32_t alignment;
	uint8_t kind;
	uint8_t take;
	bool is_signed;
	bool is_float;
	uint32_t step_count;
	uint32_t words; /* of a structure in registers: by each whether it is a vector register */
	bool vector[GT_SHAPE_WORDS_MAX];
};

/* type: stripped. */
struct gt_shape gt_shape_of(Dwarf_Die *type);

#endif
