/* SPDX-License-Identifier: MIT */
/*
 * Signatures out of debug information: see signatures.h. Where a value is at a function's entry follows
 * from its type (System V ABI, AMD64 supplement, "Parameter Passing"); where the compiler says otherwise
 * for the first instruction, as of a function that it has made for its callers alone, that counts.
 */
#include "attach/object/signature_private.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

static void fill(struct gt_signature_value *value, const struct gt_shape *shape,
		 struct graftrace_probe_argument place)
{
	value->kind = shape->kind;
	value->is_float = shape->is_float;
	place.is_signed = shape->is_signed;
	place.take = shape->take;
	place.step_count = (uint8_t)shape->step_count;
	/* The value that is fetched last has the type's size; a pointer before it has 8 bytes. */
	value->place = place;
}

/* Room for the next value, with its words. */
struct taker {
	struct gt_signature_value *values; /* [GRAFTRACE_PROBE_FIELDS] */
	uint32_t count;
};

static struct gt_signature_value *take(struct taker *taker)
{
	return taker->count < GRAFTRACE_PROBE_FIELDS ? &taker->values[taker->count++] : NULL;
}

static bool fits(const struct gt_signature_cursor *cursor, const struct gt_shape *shape)
{
	uint32_t vectors = 0;

	for (uint32_t i = 0; i < shape->words; i++)
		vectors += shape->vector[i];
	return cursor->vector + vectors <= GT_VECTOR_COUNT &&
	       cursor->general + shape->words - vectors <= GT_GENERAL_COUNT;
}

/* Of a value of several words: the first takes the name and the type, the others go on. */
static void fill_word(struct gt_signature_value *value, const struct gt_shape *shape,
		      struct graftrace_probe_argument place, uint32_t word, char **name,
		      char **type)
{
	fill(value, shape, place);
	value->kind = word ? GRAFTRACE_VALUE_MORE : shape->kind;
	value->name = word ? strdup("") : *name;
	value->type = word ? strdup("") : *type;
	if (word == 0)
		*name = *type = NULL;
}

/* A value of several words, in registers or on the stack. */
static void pass_words(struct taker *taker, struct gt_signature_cursor *cursor,
		       const struct gt_shape *shape, char *name, char *type)
{
	const bool in_registers = fits(cursor, shape);

	for (uint32_t i = 0; i < shape->words; i++) {
		struct gt_signature_value *value = take(taker);
		struct graftrace_probe_argument place;

		if (in_registers) {
			place = gt_signature_pass(cursor, 8, shape->vector[i]);
		} else {
			cursor->stack += 8;
			place = gt_place_on_stack(cursor->stack, 8);
		}
		if (value == NULL)
			continue;
		fill_word(value, shape, place, i, &name, &type);
	}
	free(name);
	free(type);
}

/* Its first words, of a structure. */
static void pass_on_stack(struct taker *taker, struct gt_signature_cursor *cursor,
			  const struct gt_shape *shape, char *name, char *type)
{
	const uint32_t words = shape->kind == GRAFTRACE_VALUE_STRUCTURE && shape->bytes > 8 ? 2 : 1;
	uint32_t at = cursor->stack + 8;

	if (shape->alignment == 16)
		at = ((at - 8 + 15) & ~15u) + 8;
	cursor->stack = at - 8 + shape->bytes;
	for (uint32_t i = 0; i < words; i++) {
		struct gt_signature_value *value = take(taker);

		if (value == NULL)
			break;
		fill_word(value, shape, gt_place_on_stack(at + 8 * i, 8), i, &name, &type);
	}
	free(name);
	free(type);
}

/* Offsets on the stack count from where the function's own begins, and not from a register that it has
 * yet to set. */
static bool counts_from_cfa(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *operations;
	size_t count;

	return dwarf_attr_integrate(function, DW_AT_frame_base, &attribute) != NULL &&
	       dwarf_getlocation(&attribute, &operations, &count) == 0 && count == 1 &&
	       operations[0].atom == DW_OP_call_frame_cfa;
}

/* Where a compiler says that the parameter is when the function begins. */
static bool place_by_location(Dwarf_Die *function, Dwarf_Die *parameter, uint64_t entry,
			      uint32_t bytes, struct graftrace_probe_argument *place)
{
	/* DWARF numbers registers in another order. */
	static const uint8_t by_dwarf[16] = {
		0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15
	};
	Dwarf_Attribute attribute;
	Dwarf_Op *operations;
	Dwarf_Sword constant;
	uint32_t number;
	size_t count;

	if (dwarf_formsdata(dwarf_attr(parameter, DW_AT_const_value, &attribute), &constant) == 0) {
		*place = gt_place_in_register(0, bytes);
		place->place = GRAFTRACE_PLACE_CONSTANT;
		place->value = constant;
		return true;
	}
	if (dwarf_attr(parameter, DW_AT_location, &attribute) == NULL ||
	    dwarf_getlocation_addr(&attribute, entry, &operations, &count, 1) <= 0 || count != 1)
		return false;
	if (operations[0].atom == DW_OP_fbreg && (Dwarf_Sword)operations[0].number >= 0 &&
	    counts_from_cfa(function)) {
		*place = gt_place_on_stack((int64_t)operations[0].number + 8, bytes);
		return true;
	}
	number = operations[0].atom == DW_OP_regx ? (uint32_t)operations[0].number
						  : operations[0].atom - (uint32_t)DW_OP_reg0;
	if (operations[0].atom != DW_OP_regx &&
	    (operations[0].atom < DW_OP_reg0 || operations[0].atom > DW_OP_reg31))
		return false;
	if (number < 16)
		*place = gt_place_in_register(by_dwarf[number], bytes);
	else if (number >= 17 && number < 33)
		*place = gt_place_in_vector((uint8_t)(number - 17), bytes);
	else
		return false;
	return true;
}

/* A compiler's own version of a function: which arguments it still has is its own affair. */
static bool is_clone(const char *name)
{
	return strstr(name, ".constprop.") != NULL || strstr(name, ".isra.") != NULL ||
	       strstr(name, ".part.") != NULL;
}

static void pass(struct taker *taker, struct gt_signature_cursor *cursor, Dwarf_Die *function,
		 Dwarf_Die *parameter, uint64_t entry, bool clone)
{
	struct graftrace_probe_argument place, told;
	struct gt_signature_value *value;
	const char *name = dwarf_diename(parameter);
	char *words, *type_text;
	struct gt_shape shape;
	Dwarf_Attribute artificial;
	Dwarf_Die type, whole;
	bool by_location;

	if (!gt_type_of(parameter, &type))
		return;
	whole = type;
	if (!gt_type_strip(&type))
		return;
	shape = gt_shape_of(&type);
	if (shape.pass == GT_SHAPE_NONE)
		return;
	/* A constructor's object is none yet. */
	if (dwarf_attr_integrate(parameter, DW_AT_artificial, &artificial) != NULL)
		shape = (struct gt_shape){ .pass = GT_SHAPE_GENERAL,
					   .bytes = 8,
					   .kind = GRAFTRACE_VALUE_ADDRESS };
	words = strdup(name != NULL ? name : "");
	type_text = gt_type_text(&whole, shape.kind == GRAFTRACE_VALUE_ENUM);
	if (shape.words && !clone) {
		pass_words(taker, cursor, &shape, words, type_text);
		return;
	}
	if (shape.pass == GT_SHAPE_STACK && !clone) {
		pass_on_stack(taker, cursor, &shape, words, type_text);
		return;
	}
	place = gt_signature_pass(cursor, shape.bytes, shape.pass == GT_SHAPE_VECTOR);
	by_location = place_by_location(function, parameter, entry, shape.bytes, &told);
	if (by_location)
		place = told;
	value = by_location || !clone ? take(taker) : NULL;
	if (value == NULL) {
		free(words);
		free(type_text);
		return;
	}
	fill(value, &shape, place);
	value->name = words;
	value->type = type_text;
}

static void pass_all(struct taker *taker, Dwarf_Die *function, uint64_t entry, bool clone)
{
	struct gt_signature_cursor cursor = { 0 };
	Dwarf_Die child, result;

	/* Where a structure is returned in memory, its address is passed first. */
	if (gt_type_of(function, &result) && gt_type_strip(&result) &&
	    gt_type_is_structure(&result)) {
		const struct gt_shape shape = gt_shape_of(&result);

		if (shape.kind != GRAFTRACE_VALUE_STRUCTURE || shape.pass == GT_SHAPE_STACK)
			cursor.general = 1;
	}
	if (dwarf_child(function, &child) != 0)
		return;
	do {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter)
			pass(taker, &cursor, function, &child, entry, clone);
	} while (dwarf_siblingof(&child, &child) == 0);
}

static void return_value(struct taker *taker, Dwarf_Die *function)
{
	Dwarf_Die type, whole;
	struct gt_signature_value *value;
	uint32_t vectors = 0, generals = 0;
	struct gt_shape shape;

	if (!gt_type_of(function, &type))
		return;
	whole = type;
	if (!gt_type_strip(&type))
		return;
	shape = gt_shape_of(&type);
	if (shape.pass == GT_SHAPE_NONE)
		return;
	if (shape.pass == GT_SHAPE_STACK && !gt_type_is_structure(&type))
		return; /* a long double: on the x87's stack */
	if (shape.pass == GT_SHAPE_STACK)
		shape = (struct gt_shape){ .pass = GT_SHAPE_GENERAL,
					   .bytes = 8,
					   .kind = GRAFTRACE_VALUE_ADDRESS };
	if (shape.words == 0)
		shape.words = 1;
	if (shape.words == 1 && !shape.vector[0])
		shape.vector[0] = shape.pass == GT_SHAPE_VECTOR;
	for (uint32_t i = 0; i < shape.words && (value = take(taker)) != NULL; i++) {
		if (shape.vector[i])
			fill(value, &shape, gt_place_in_vector((uint8_t)vectors++, shape.bytes));
		else
			fill(value, &shape, gt_place_in_register(generals++ ? 2 : 0, shape.bytes));
		value->kind = i ? GRAFTRACE_VALUE_MORE : shape.kind;
		value->name = strdup("");
		value->type =
			i ? strdup("") : gt_type_text(&whole, shape.kind == GRAFTRACE_VALUE_ENUM);
	}
}

struct gt_signature *gt_signature_of_lines(struct gt_lines *lines, uint64_t address,
					   const char *name)
{
	struct gt_signature_value arguments[GRAFTRACE_PROBE_FIELDS] = { 0 };
	struct gt_signature_value results[GRAFTRACE_PROBE_FIELDS] = { 0 };
	struct taker taker = { arguments, 0 }, returned = { results, 0 };
	struct gt_signature *signature;
	Dwarf_Die function;

	if (!gt_lines_function(lines, address, &function))
		return NULL;
	pass_all(&taker, &function, address, is_clone(name));
	return_value(&returned, &function);
	signature = gt_signature_new(taker.count, returned.count);
	for (uint32_t i = 0; i < taker.count; i++) {
		if (signature != NULL) {
			signature->values[i] = arguments[i];
		} else {
			free(arguments[i].name);
			free(arguments[i].type);
		}
	}
	for (uint32_t i = 0; i < returned.count; i++) {
		if (signature != NULL) {
			signature->values[taker.count + i] = results[i];
		} else {
			free(results[i].name);
			free(results[i].type);
		}
	}
	return signature;
}
