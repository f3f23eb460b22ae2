/* SPDX-License-Identifier: MIT */
/* Signatures by specification, in uftrace's words: see signatures.h. */
#include "core/trace/message.h"
#include "attach/object/signatures.h"

#include <stdlib.h>
#include <string.h>

#define RSP	   4
#define NUMBER_MAX 99

/* One word, as "arg2/i32%rdx" says it. */
struct word {
	bool is_result;
	bool is_float;
	uint32_t number; /* from 1 */
	char format;	 /* 0: none */
	uint32_t bits;
	int reg;       /* -1: as is usual */
	int64_t stack; /* words behind the return address, from 1; 0: not on the stack */
};

static bool read_number(const char **at, uint32_t *number)
{
	char *end;
	unsigned long value;

	if (**at < '0' || **at > '9')
		return false;
	value = strtoul(*at, &end, 10);
	*at = end;
	*number = (uint32_t)value;
	return value <= 4096;
}

static bool skip(const char **at, const char *text)
{
	const size_t bytes = strlen(text);

	if (strncmp(*at, text, bytes) != 0)
		return false;
	*at += bytes;
	return true;
}

static bool read_place(const char **at, struct word *word)
{
	const char *start = *at;
	uint32_t offset;

	if (skip(at, "stack")) {
		skip(at, "+");
		if (!read_number(at, &offset) || offset == 0)
			return false;
		word->stack = offset;
		return true;
	}
	while (**at && **at != ',')
		(*at)++;
	word->reg = gt_signature_register(start, (uint32_t)(*at - start));
	return word->reg >= 0 && (word->reg >= 16) == word->is_float;
}

/* Up to the comma or the end. */
static bool read_word(const char **at, struct word *word)
{
	*word = (struct word){ .reg = -1, .bits = 64 };
	if (skip(at, "retval")) {
		word->is_result = true;
	} else {
		word->is_float = **at == 'f';
		if (!skip(at, word->is_float ? "fparg" : "arg") ||
		    !read_number(at, &word->number) || word->number == 0 ||
		    word->number > NUMBER_MAX)
			return false;
	}
	if (skip(at, "/")) {
		if (**at && strchr("diuxscfSp", **at) != NULL && !word->is_float)
			word->format = *(*at)++;
		if (**at >= '0' && **at <= '9' &&
		    (!read_number(at, &word->bits) ||
		     (word->bits != 8 && word->bits != 16 && word->bits != 32 && word->bits != 64)))
			return false;
		word->is_float |= word->format == 'f';
	}
	if (skip(at, "%") && (word->is_result || !read_place(at, word)))
		return false;
	return **at == ',' || **at == 0;
}

/* The place of the number-th value of its sort. */
static struct graftrace_probe_argument usual_place(const struct word *word)
{
	struct gt_signature_cursor cursor = { 0 };
	struct graftrace_probe_argument place = { 0 };

	for (uint32_t i = 0; i < word->number; i++)
		place = gt_signature_pass(&cursor, word->bits / 8, word->is_float);
	return place;
}

static struct graftrace_probe_argument place_of(const struct word *word)
{
	struct graftrace_probe_argument place = usual_place(word);

	place.bytes = (uint8_t)(word->bits / 8);
	place.index = GRAFTRACE_NO_REGISTER;
	if (word->is_result) {
		place.place = word->is_float ? GRAFTRACE_PLACE_VECTOR : GRAFTRACE_PLACE_REGISTER;
	} else if (word->stack) {
		place.place = GRAFTRACE_PLACE_MEMORY;
		place.base = RSP;
		place.value = word->stack * 8;
	} else if (word->reg >= 0) {
		place.place = word->reg >= 16 ? GRAFTRACE_PLACE_VECTOR : GRAFTRACE_PLACE_REGISTER;
		place.base = (uint8_t)(word->reg & 15);
		place.value = 0;
	}
	return place;
}

/* The same argument, as far as more is known of it. */
static const struct gt_signature_value *known_value(const struct gt_signature *known,
						    const struct word *word)
{
	uint32_t seen = 0;

	if (known != NULL && word->is_result)
		return known->result_count == 1 ? &known->values[known->argument_count] : NULL;
	for (uint32_t i = 0; known != NULL && i < known->argument_count; i++)
		if (known->values[i].kind != GRAFTRACE_VALUE_MORE &&
		    known->values[i].is_float == word->is_float && ++seen == word->number)
			return &known->values[i];
	return NULL;
}

static bool fill(struct gt_signature_value *value, const struct word *word,
		 const struct gt_signature *known)
{
	const struct gt_signature_value *more = known_value(known, word);
	const char *type = word->is_float ? "double" : "long";

	/* Where the word says nothing of it, it is what it is known to be. */
	if (more != NULL && !word->format && word->bits == 64 && word->reg < 0 && !word->stack) {
		*value = *more;
		value->type = strdup(more->type);
		value->name = strdup(more->name);
		return value->type != NULL && value->name != NULL;
	}
	value->is_float = word->is_float;
	value->place = place_of(word);
	switch (word->format) {
	case 'x':
		value->kind = GRAFTRACE_VALUE_PLAIN;
		type = "unsigned long";
		break;
	case 'u':
		value->kind = GRAFTRACE_VALUE_DECIMAL;
		type = "unsigned long";
		break;
	case 's':
		value->place.take = GRAFTRACE_TAKE_STRING;
		type = "const char *";
		break;
	case 'S':
		value->place.take = GRAFTRACE_TAKE_STRING;
		value->place.step_count = 2;
		type = "std::string";
		break;
	case 'c':
		value->kind = GRAFTRACE_VALUE_CHARACTER;
		value->place.bytes = 1;
		type = "char";
		break;
	case 'p':
		value->kind = GRAFTRACE_VALUE_FUNCTION;
		type = "function *";
		break;
	default:
		value->kind = word->is_float ? GRAFTRACE_VALUE_PLAIN : GRAFTRACE_VALUE_DECIMAL;
		value->place.is_signed = !word->is_float;
		break;
	}
	value->type = strdup(type);
	value->name = strdup(more != NULL ? more->name : "");
	return value->type != NULL && value->name != NULL;
}

/* Counts what the text has. False: one of its words is none; *at is there. */
static bool count_words(const char **at, uint32_t *arguments, uint32_t *results)
{
	struct word word;
	const char *start;

	*arguments = *results = 0;
	for (;;) {
		start = *at;
		if (!read_word(at, &word)) {
			*at = start;
			return false;
		}
		if (word.is_result)
			(*results)++;
		else
			(*arguments)++;
		if (**at == 0)
			return true;
		(*at)++;
	}
}

int gt_signature_of_spec(const char *spec, const struct gt_signature *known,
			 struct gt_signature **out, struct gt_message *message)
{
	const char *at = spec;
	struct gt_signature *signature;
	uint32_t arguments, results, argument = 0;
	bool filled = true;

	*out = NULL;
	if (!count_words(&at, &arguments, &results))
		return gt_fail(message, GT_EINVAL,
			       "'%s' is no argument: it is arg1, arg2/s, fparg1, "
			       "retval/i32 …",
			       at);
	if (arguments > GRAFTRACE_PROBE_FIELDS || results > 1)
		return gt_fail(message, GT_EINVAL, "'%s' has more than %u arguments or one result",
			       spec, GRAFTRACE_PROBE_FIELDS);
	signature = gt_signature_new(arguments, results);
	for (at = spec; signature != NULL && filled && *at; at += *at == ',') {
		struct word word;

		read_word(&at, &word);
		filled = fill(&signature->values[word.is_result ? arguments : argument++], &word,
			      known);
	}
	if (!filled || signature == NULL) {
		gt_signature_free(signature);
		return gt_fail(message, GT_ENOMEM, "no memory for arguments");
	}
	*out = signature;
	return 0;
}
