/* SPDX-License-Identifier: MIT */
/*
 * Signatures out of debug information: see signatures.h. Where a value is at a function's entry follows
 * from its type (System V ABI, AMD64 supplement, "Parameter Passing"); where the compiler says otherwise
 * for the first instruction, as of a function that it has made for its callers alone, that counts.
 */
#include "attach/object/signatures.h"
#include "attach/object/lines_dwarf.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GENERAL_COUNT 6u
#define VECTOR_COUNT  8u
#define RSP	      4u
#define TYPE_MAX      2048u /* of a type's text */
#define DEPTH_MAX     32    /* of types in types */
#define WORDS_MAX     2u    /* of a structure that are taken */
#define STRUCTURE_MAX (1u << 20)

static const uint8_t general[GENERAL_COUNT] = { 7, 6, 2, 1, 8, 9 };

/* By their numbers in instructions. */
static const char *const registers[16] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					   "r8",  "r9",	 "r10", "r11", "r12", "r13", "r14", "r15" };

int gt_signature_register(const char *name, uint32_t length)
{
	int i;

	for (i = 0; i < 16; i++)
		if (strlen(registers[i]) == length && memcmp(registers[i], name, length) == 0)
			return i;
	if ((length == 4 || length == 5) && memcmp(name, "xmm", 3) == 0) {
		int number = name[3] - '0';

		if (length == 5)
			number = number * 10 + name[4] - '0';
		if (number >= 0 && number < 16)
			return 16 + number;
	}
	return -1;
}

struct gt_signature *gt_signature_new(uint32_t arguments, uint32_t results)
{
	struct gt_signature *signature =
		calloc(1, sizeof(*signature) + (arguments + results) * sizeof(*signature->values));

	if (signature) {
		signature->argument_count = arguments;
		signature->result_count = results;
	}
	return signature;
}

void gt_signature_free(struct gt_signature *signature)
{
	uint32_t i;

	if (!signature)
		return;
	for (i = 0; i < signature->argument_count + signature->result_count; i++) {
		free(signature->values[i].name);
		free(signature->values[i].type);
	}
	free(signature);
}

static struct graftrace_probe_argument in_register(uint8_t number, uint32_t bytes)
{
	return (struct graftrace_probe_argument){
		.place = GRAFTRACE_PLACE_REGISTER,
		.bytes = (uint8_t)bytes,
		.base = number,
		.index = GRAFTRACE_NO_REGISTER,
	};
}

static struct graftrace_probe_argument in_vector(uint8_t number, uint32_t bytes)
{
	struct graftrace_probe_argument place = in_register(number, bytes);

	place.place = GRAFTRACE_PLACE_VECTOR;
	return place;
}

/* offset: from the stack pointer at the function's entry. */
static struct graftrace_probe_argument on_stack(int64_t offset, uint32_t bytes)
{
	struct graftrace_probe_argument place = in_register(RSP, bytes);

	place.place = GRAFTRACE_PLACE_MEMORY;
	place.value = offset;
	return place;
}

struct graftrace_probe_argument gt_signature_pass(struct gt_signature_cursor *cursor,
						  uint32_t bytes, bool is_float)
{
	if (is_float && cursor->vector < VECTOR_COUNT)
		return in_vector((uint8_t)cursor->vector++, bytes);
	if (!is_float && cursor->general < GENERAL_COUNT)
		return in_register(general[cursor->general++], bytes);
	cursor->stack += 8;
	return on_stack(cursor->stack, bytes);
}

/* ---- types ---- */

static bool strip(Dwarf_Die *type)
{
	int tries;

	for (tries = 0; tries < DEPTH_MAX; tries++) {
		Dwarf_Attribute attribute;

		switch (dwarf_tag(type)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			if (!dwarf_attr_integrate(type, DW_AT_type, &attribute) ||
			    !dwarf_formref_die(&attribute, type))
				return false;
			break;
		default:
			return true;
		}
	}
	return false;
}

/* What a pointer points to, a function returns, a parameter has. False: void. */
static bool type_of(Dwarf_Die *of, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(of, DW_AT_type, &attribute) &&
	       dwarf_formref_die(&attribute, type);
}

/* A declaration's size is that of the definition, which may be in another unit: 0, unknown. */
static uint64_t size_of(Dwarf_Die *type)
{
	Dwarf_Word bytes;

	return dwarf_aggregate_size(type, &bytes) == 0 ? bytes : 0;
}

static uint32_t encoding_of(Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	return dwarf_tag(type) == DW_TAG_base_type &&
			       dwarf_formudata(dwarf_attr(type, DW_AT_encoding, &attribute),
					       &value) == 0
		       ? (uint32_t)value
		       : 0;
}

static bool is_structure(Dwarf_Die *type)
{
	const int tag = dwarf_tag(type);

	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* char, and not an int8_t. */
static bool is_character(Dwarf_Die *type)
{
	const char *name = dwarf_tag(type) == DW_TAG_base_type ? dwarf_diename(type) : NULL;

	return name && strcmp(name, "char") == 0;
}

/* std::string, whose first word is where its text is, in libstdc++ and in its older form. */
static bool is_string_class(Dwarf_Die *type)
{
	static const char start[] = "basic_string<char,";
	const char *name = is_structure(type) ? dwarf_diename(type) : NULL;

	return name && strncmp(name, start, sizeof(start) - 1) == 0;
}

/* Passed by an invisible reference, whatever its size. */
static bool is_passed_by_reference(Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (is_string_class(type))
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

		if (dwarf_tag(&die) != DW_TAG_enumerator || !name ||
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

	if (depth == DEPTH_MAX)
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
	if (name) {
		put(words, name);
		return;
	}
	if (dwarf_tag(type) == DW_TAG_subroutine_type) {
		put(words, "function");
		return;
	}
	if (type_of(type, &inner))
		put_type(words, &inner, depth + 1);
	else if (!is_structure(type) && dwarf_tag(type) != DW_TAG_enumeration_type)
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

static char *text_of(Dwarf_Die *type, bool with_enumerators)
{
	char text[TYPE_MAX];
	struct words words = { text, text + sizeof(text) - 1 };

	if (type)
		put_type(&words, type, 0);
	if (type && with_enumerators) {
		Dwarf_Die stripped = *type;

		if (strip(&stripped) && dwarf_tag(&stripped) == DW_TAG_enumeration_type)
			put_enumerators(&words, &stripped);
	}
	*words.at = 0;
	return strdup(text);
}

/* ---- values ---- */

/* How a type's value is passed and shown. */
struct shape {
	enum { SHAPE_NONE, SHAPE_GENERAL, SHAPE_VECTOR, SHAPE_STACK } pass;
	uint32_t bytes; /* of the value; of one on the stack all that it takes there */
	uint32_t alignment;
	uint8_t kind;
	uint8_t take;
	bool is_signed;
	bool is_float;
	uint32_t step_count;
	uint32_t words; /* of a structure in registers: by each whether it is a vector register */
	bool vector[WORDS_MAX];
};

static void shape_number(Dwarf_Die *type, struct shape *shape)
{
	const uint32_t encoding = encoding_of(type);
	const uint64_t bytes = size_of(type);

	shape->pass = SHAPE_GENERAL;
	shape->bytes = bytes == 1 || bytes == 2 || bytes == 4 ? (uint32_t)bytes : 8;
	shape->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	if (is_character(type))
		shape->kind = GRAFTRACE_VALUE_CHARACTER;
	if (encoding == DW_ATE_float) {
		shape->is_float = true;
		shape->pass = bytes <= 8 ? SHAPE_VECTOR : SHAPE_STACK;
		if (bytes > 8) { /* long double: ten bytes of sixteen, which nothing here shows */
			shape->bytes = 16;
			shape->alignment = 16;
			shape->kind = GRAFTRACE_VALUE_OPAQUE;
			shape->is_float = false;
		}
	} else if (encoding == DW_ATE_complex_float) {
		shape->pass = bytes <= 16 ? SHAPE_VECTOR : SHAPE_STACK;
		shape->words = bytes == 16 ? 2 : 1;
		shape->vector[0] = shape->vector[1] = true;
		shape->kind = GRAFTRACE_VALUE_STRUCTURE;
	} else if (bytes == 16) {
		shape->words = 2;
		shape->kind = GRAFTRACE_VALUE_STRUCTURE;
	}
}

static void shape_pointer(Dwarf_Die *type, struct shape *shape)
{
	const bool is_reference = dwarf_tag(type) == DW_TAG_reference_type ||
				  dwarf_tag(type) == DW_TAG_rvalue_reference_type;
	Dwarf_Die to;

	shape->pass = SHAPE_GENERAL;
	shape->bytes = 8;
	shape->kind = GRAFTRACE_VALUE_ADDRESS;
	if (!type_of(type, &to) || !strip(&to))
		return;
	if (dwarf_tag(&to) == DW_TAG_subroutine_type) {
		shape->kind = GRAFTRACE_VALUE_FUNCTION;
	} else if (is_string_class(&to)) {
		shape->take = GRAFTRACE_TAKE_STRING;
		shape->step_count = 2;
	} else if (!is_reference && is_character(&to)) {
		shape->take = GRAFTRACE_TAKE_STRING;
	} else if (is_reference &&
		   (dwarf_tag(&to) == DW_TAG_base_type ||
		    dwarf_tag(&to) == DW_TAG_enumeration_type) &&
		   size_of(&to) <= 8 && size_of(&to) != 0) {
		/* what it refers to */
		shape->kind = GRAFTRACE_VALUE_PLAIN;
		shape_number(&to, shape);
		if (dwarf_tag(&to) == DW_TAG_enumeration_type)
			shape->kind = GRAFTRACE_VALUE_ENUM;
		shape->pass = SHAPE_GENERAL;
		shape->step_count = 1;
	}
}

/* Marks the words of a structure that hold anything but floating-point numbers. False: it is of a kind
 * that is passed in memory. */
static bool find_words(Dwarf_Die *type, uint64_t offset, bool general_words[WORDS_MAX], int depth)
{
	Dwarf_Die member, inner;

	if (depth == DEPTH_MAX)
		return false;
	if (!is_structure(type)) {
		const uint64_t bytes = size_of(type);
		const bool is_float = encoding_of(type) == DW_ATE_float;

		if (dwarf_tag(type) == DW_TAG_array_type) {
			if (!type_of(type, &inner) || !strip(&inner))
				return false;
			if (encoding_of(&inner) == DW_ATE_float && size_of(&inner) <= 8)
				return true;
		}
		if (is_float)
			return bytes <= 8;
		for (uint64_t at = offset; at < offset + (bytes ? bytes : 1); at++)
			if (at / 8 < WORDS_MAX)
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
		if (dwarf_attr(&member, DW_AT_data_member_location, &attribute))
			dwarf_formudata(&attribute, &at);
		else if (dwarf_attr(&member, DW_AT_data_bit_offset, &attribute) &&
			 dwarf_formudata(&attribute, &at) == 0)
			at /= 8;
		if (!type_of(&member, &inner) || !strip(&inner) ||
		    !find_words(&inner, offset + at, general_words, depth + 1))
			return false;
	} while (dwarf_siblingof(&member, &member) == 0);
	return true;
}

static void shape_structure(Dwarf_Die *type, struct shape *shape)
{
	const uint64_t bytes = size_of(type);
	bool general_words[WORDS_MAX] = { false, false };
	uint32_t i;

	if (is_passed_by_reference(type)) {
		shape->pass = SHAPE_GENERAL;
		shape->bytes = 8;
		shape->kind = GRAFTRACE_VALUE_ADDRESS;
		if (is_string_class(type)) {
			shape->take = GRAFTRACE_TAKE_STRING;
			shape->step_count = 2;
		}
		return;
	}
	shape->kind = GRAFTRACE_VALUE_STRUCTURE;
	if (bytes > 16 || bytes == 0 || !find_words(type, 0, general_words, 0)) {
		shape->pass = bytes ? SHAPE_STACK : SHAPE_NONE;
		shape->bytes = bytes < STRUCTURE_MAX ? (uint32_t)((bytes + 7) & ~7ull) : 0;
		return;
	}
	shape->pass = SHAPE_GENERAL;
	shape->bytes = 8;
	shape->words = (uint32_t)((bytes + 7) / 8);
	for (i = 0; i < shape->words; i++)
		shape->vector[i] = !general_words[i];
}

/* type: stripped. */
static struct shape shape_of(Dwarf_Die *type)
{
	struct shape shape = { .pass = SHAPE_GENERAL, .bytes = 8, .alignment = 8 };
	Dwarf_Die under;

	switch (dwarf_tag(type)) {
	case DW_TAG_base_type:
		shape_number(type, &shape);
		break;
	case DW_TAG_enumeration_type:
		shape_number(type, &shape);
		shape.kind = GRAFTRACE_VALUE_ENUM;
		shape.is_signed = true;
		if (type_of(type, &under) && strip(&under))
			shape.is_signed = encoding_of(&under) == DW_ATE_signed ||
					  encoding_of(&under) == DW_ATE_signed_char;
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

static void fill(struct gt_signature_value *value, const struct shape *shape,
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

static bool fits(const struct gt_signature_cursor *cursor, const struct shape *shape)
{
	uint32_t i, vectors = 0;

	for (i = 0; i < shape->words; i++)
		vectors += shape->vector[i];
	return cursor->vector + vectors <= VECTOR_COUNT &&
	       cursor->general + shape->words - vectors <= GENERAL_COUNT;
}

/* A value of several words: the first has the name, the others go on. */
static void pass_words(struct taker *taker, struct gt_signature_cursor *cursor,
		       const struct shape *shape, char *name, char *type)
{
	const bool in_registers = fits(cursor, shape);
	uint32_t i;

	for (i = 0; i < shape->words; i++) {
		struct gt_signature_value *value = take(taker);
		struct graftrace_probe_argument place;

		if (in_registers) {
			place = gt_signature_pass(cursor, 8, shape->vector[i]);
		} else {
			cursor->stack += 8;
			place = on_stack(cursor->stack, 8);
		}
		if (!value)
			continue;
		fill(value, shape, place);
		value->kind = i ? GRAFTRACE_VALUE_MORE : shape->kind;
		value->name = i ? strdup("") : name;
		value->type = i ? strdup("") : type;
		name = i ? name : NULL;
		type = i ? type : NULL;
	}
	free(name);
	free(type);
}

/* Its first words, of a structure. */
static void pass_on_stack(struct taker *taker, struct gt_signature_cursor *cursor,
			  const struct shape *shape, char *name, char *type)
{
	const uint32_t words = shape->kind == GRAFTRACE_VALUE_STRUCTURE && shape->bytes > 8 ? 2 : 1;
	uint32_t i, at = cursor->stack + 8;

	if (shape->alignment == 16)
		at = ((at - 8 + 15) & ~15u) + 8;
	cursor->stack = at - 8 + shape->bytes;
	for (i = 0; i < words; i++) {
		struct gt_signature_value *value = take(taker);

		if (!value)
			break;
		fill(value, shape, on_stack(at + 8 * i, 8));
		value->kind = i ? GRAFTRACE_VALUE_MORE : shape->kind;
		value->name = i ? strdup("") : name;
		value->type = i ? strdup("") : type;
		name = i ? name : NULL;
		type = i ? type : NULL;
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

	return dwarf_attr_integrate(function, DW_AT_frame_base, &attribute) &&
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
		*place = in_register(0, bytes);
		place->place = GRAFTRACE_PLACE_CONSTANT;
		place->value = constant;
		return true;
	}
	if (!dwarf_attr(parameter, DW_AT_location, &attribute) ||
	    dwarf_getlocation_addr(&attribute, entry, &operations, &count, 1) <= 0 || count != 1)
		return false;
	if (operations[0].atom == DW_OP_fbreg && (Dwarf_Sword)operations[0].number >= 0 &&
	    counts_from_cfa(function)) {
		*place = on_stack((int64_t)operations[0].number + 8, bytes);
		return true;
	}
	number = operations[0].atom == DW_OP_regx ? (uint32_t)operations[0].number
						  : operations[0].atom - (uint32_t)DW_OP_reg0;
	if (operations[0].atom != DW_OP_regx &&
	    (operations[0].atom < DW_OP_reg0 || operations[0].atom > DW_OP_reg31))
		return false;
	if (number < 16)
		*place = in_register(by_dwarf[number], bytes);
	else if (number >= 17 && number < 33)
		*place = in_vector((uint8_t)(number - 17), bytes);
	else
		return false;
	return true;
}

/* A compiler's own version of a function: which arguments it still has is its own affair. */
static bool is_clone(const char *name)
{
	return strstr(name, ".constprop.") || strstr(name, ".isra.") || strstr(name, ".part.");
}

static void pass(struct taker *taker, struct gt_signature_cursor *cursor, Dwarf_Die *function,
		 Dwarf_Die *parameter, uint64_t entry, bool clone)
{
	struct graftrace_probe_argument place, told;
	struct gt_signature_value *value;
	const char *name = dwarf_diename(parameter);
	char *words, *type_text;
	struct shape shape;
	Dwarf_Attribute artificial;
	Dwarf_Die type, whole;
	bool by_location;

	if (!type_of(parameter, &type))
		return;
	whole = type;
	if (!strip(&type))
		return;
	shape = shape_of(&type);
	if (shape.pass == SHAPE_NONE)
		return;
	/* A constructor's object is none yet. */
	if (dwarf_attr_integrate(parameter, DW_AT_artificial, &artificial))
		shape = (struct shape){ .pass = SHAPE_GENERAL,
					.bytes = 8,
					.kind = GRAFTRACE_VALUE_ADDRESS };
	words = strdup(name ? name : "");
	type_text = text_of(&whole, shape.kind == GRAFTRACE_VALUE_ENUM);
	if (shape.words && !clone) {
		pass_words(taker, cursor, &shape, words, type_text);
		return;
	}
	if (shape.pass == SHAPE_STACK && !clone) {
		pass_on_stack(taker, cursor, &shape, words, type_text);
		return;
	}
	place = gt_signature_pass(cursor, shape.bytes, shape.pass == SHAPE_VECTOR);
	by_location = place_by_location(function, parameter, entry, shape.bytes, &told);
	if (by_location)
		place = told;
	value = by_location || !clone ? take(taker) : NULL;
	if (!value) {
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
	if (type_of(function, &result) && strip(&result) && is_structure(&result)) {
		const struct shape shape = shape_of(&result);

		if (shape.kind != GRAFTRACE_VALUE_STRUCTURE || shape.pass == SHAPE_STACK)
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
	uint32_t i, vectors = 0, generals = 0;
	struct shape shape;

	if (!type_of(function, &type))
		return;
	whole = type;
	if (!strip(&type))
		return;
	shape = shape_of(&type);
	if (shape.pass == SHAPE_NONE)
		return;
	if (shape.pass == SHAPE_STACK && !is_structure(&type))
		return; /* a long double: on the x87's stack */
	if (shape.pass == SHAPE_STACK)
		shape = (struct shape){ .pass = SHAPE_GENERAL,
					.bytes = 8,
					.kind = GRAFTRACE_VALUE_ADDRESS };
	if (shape.words == 0)
		shape.words = 1;
	if (shape.words == 1 && !shape.vector[0])
		shape.vector[0] = shape.pass == SHAPE_VECTOR;
	for (i = 0; i < shape.words && (value = take(taker)); i++) {
		if (shape.vector[i])
			fill(value, &shape, in_vector((uint8_t)vectors++, shape.bytes));
		else
			fill(value, &shape, in_register(generals++ ? 2 : 0, shape.bytes));
		value->kind = i ? GRAFTRACE_VALUE_MORE : shape.kind;
		value->name = strdup("");
		value->type = i ? strdup("") : text_of(&whole, shape.kind == GRAFTRACE_VALUE_ENUM);
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
	uint32_t i;

	if (!gt_lines_function(lines, address, &function))
		return NULL;
	pass_all(&taker, &function, address, is_clone(name));
	return_value(&returned, &function);
	signature = gt_signature_new(taker.count, returned.count);
	for (i = 0; i < taker.count; i++) {
		if (signature) {
			signature->values[i] = arguments[i];
		} else {
			free(arguments[i].name);
			free(arguments[i].type);
		}
	}
	for (i = 0; i < returned.count; i++) {
		if (signature) {
			signature->values[taker.count + i] = results[i];
		} else {
			free(results[i].name);
			free(results[i].type);
		}
	}
	return signature;
}
