/* SPDX-License-Identifier: MIT */
/*
 * What probe.c and probe_arguments.c share: the parser, and the pieces of text that it takes apart. A
 * function take_… says false, or the error, where the text is not that.
 */
#ifndef GT_CORE_TRACE_PROBE_PRIVATE_H
#define GT_CORE_TRACE_PROBE_PRIVATE_H

#include "core/trace/probe.h"

struct gt_probe_parser {
	const char *text; /* all of it */
	size_t bytes;
	enum gt_probe_kinds kinds;
	struct gt_probe_definition *probe;
	struct gt_probe_error *error;
};

/* A piece of the text. */
struct gt_span {
	const char *at;
	size_t bytes;
};

/* Notes the error, which stands at that place of the text. Returns GT_EINVAL. */
static inline int fail(struct gt_probe_parser *parser, const char *at, const char *text)
{
	parser->error->text = text;
	parser->error->at = (size_t)(at - parser->text);
	return GT_EINVAL;
}

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* What is left without the first bytes, of which there are so many. */
static inline struct gt_span skip(struct gt_span span, size_t bytes)
{
	return (struct gt_span){ span.at + bytes, span.bytes - bytes };
}

/* The whole piece says that. */
static inline bool is_text(struct gt_span span, const char *text)
{
	size_t i = 0;

	for (; i < span.bytes && text[i] == span.at[i] && text[i]; i++)
		;
	return i == span.bytes && !text[i];
}

/* The offset of the first such byte; span.bytes: there is none. */
static inline size_t find(struct gt_span span, char c)
{
	size_t i = 0;

	while (i < span.bytes && span.at[i] != c)
		i++;
	return i;
}

/* … of the last one. */
static inline size_t find_last(struct gt_span span, char c)
{
	size_t i = span.bytes;

	while (i > 0 && span.at[i - 1] != c)
		i--;
	return i > 0 ? i - 1 : span.bytes;
}

static inline int digit_value(char c)
{
	return is_digit(c)	      ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : 16;
}

/* As kstrtoul with base 0: 0x… and 0… too. */
static inline bool take_number(struct gt_span span, uint64_t *value)
{
	uint64_t base = 10;
	size_t i = 0;

	*value = 0;
	if (span.bytes > 1 && span.at[0] == '0') {
		base = span.bytes > 2 && (span.at[1] | 0x20) == 'x' ? 16 : 8;
		i = base == 16 ? 2 : 1;
	}
	if (i == span.bytes)
		return false;
	for (; i < span.bytes; i++) {
		const uint64_t digit = (uint64_t)digit_value(span.at[i]);

		if (digit >= base || *value > (UINT64_MAX - digit) / base)
			return false;
		*value = *value * base + digit;
	}
	return true;
}

/* … with a sign or without. */
static inline bool take_signed(struct gt_span span, int64_t *value)
{
	const bool minus = span.bytes > 0 && span.at[0] == '-';
	uint64_t number;

	if (span.bytes > 0 && (minus || span.at[0] == '+'))
		span = skip(span, 1);
	if (!take_number(span, &number) || number > (uint64_t)INT64_MAX + minus)
		return false;
	*value = (int64_t)(minus ? 0 - number : number);
	return true;
}

/* As of C identifiers. */
static inline bool is_name(struct gt_span span)
{
	size_t i;

	for (i = 0; i < span.bytes; i++)
		if (!is_letter(span.at[i]) && (i == 0 || !is_digit(span.at[i])))
			return false;
	return span.bytes > 0;
}

/* Cut to GT_PROBE_NAME_MAX bytes. */
static inline void copy_name(char *name, struct gt_span span)
{
	size_t i;

	for (i = 0; i < span.bytes && i < GT_PROBE_NAME_MAX; i++)
		name[i] = span.at[i];
	name[i] = 0;
}

/* probe_arguments.c: takes [NAME=]FETCHARG[:TYPE] as the definition's next argument. GT_EINVAL. */
int gt_probe_take_argument(struct gt_probe_parser *parser, struct gt_span word);
/* Whether what is recorded of all arguments has room in a record. GT_EINVAL. */
int gt_probe_check_room(struct gt_probe_parser *parser);

#endif
