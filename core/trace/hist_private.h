/* SPDX-License-Identifier: MIT */
/* What the files share that make a histogram of its text: hist.c (parts, keys, expressions), hist_actions.c (variables
 * and actions), hist_put.c (the other way); and the output of text, which hist_table.c has too.
 *
 * No locks, nothing is allocated: parser and histogram are the caller's alone while a function runs. Functions with a
 * parser that return int give 0 (or the index that their comment names) or a negative error, which
 * parser->error describes; the histogram is of no use then. A `text` that is not const is cut up: the histogram points
 * into it, so it must be a part of hist->text (gt_hist_keep). */
#ifndef GT_CORE_TRACE_HIST_PRIVATE_H
#define GT_CORE_TRACE_HIST_PRIVATE_H

#include "core/trace/hist.h"
#include "core/trace/message.h"

struct gt_hist_parser {
	const struct gt_event_format *format;
	const struct gt_hist_world *world;
	struct gt_hist *hist;
	struct gt_hist_error *error;
	/* What the text has of each; NULL: nothing. */
	char *keys;
	char *vals;
	char *sort;
	char *assignments[GRAFTRACE_HIST_VARIABLES];
	uint32_t assignment_count;
	uint32_t subexpressions;
};

/* Sets parser->error: `text`, a constant or NULL, and a copy of `part`, cut to GT_HIST_BYTES. Returns GT_EINVAL. */
int gt_hist_fail(struct gt_hist_parser *parser, const char *text, const char *part);
/* Copies a text into hist->text, and returns the copy. Without room it is cut off and hist->is_full is set, which
 * gt_hist_parse() refuses at its end. */
char *gt_hist_keep(struct gt_hist *hist, const char *text);
/* Copies a field behind the others. Returns its index; GT_EINVAL: there are GT_HIST_FIELDS. */
int gt_hist_add_field(struct gt_hist_parser *parser, const struct gt_hist_field *field);
/* Finds field->name among an event's own fields, and sets kind, field and type of *field from it. False: there is none
 * (*field stays), or it is an array or a fraction, which no histogram takes. */
bool gt_hist_find_field(const struct gt_event_format *format, struct gt_hist_field *field);
/* Makes a field of a text without operators: a number, a field's name with its modifier, or a reference
 * [SYSTEM.EVENT.]$NAME. Returns its index or GT_EINVAL. */
int gt_hist_take_atom(struct gt_hist_parser *parser, char *text);
/* The same of an expression with at most three operators (parser->subexpressions counts them: set it to 0 before).
 * GT_EINVAL; GT_EDOM: it divides by the constant 0. */
int gt_hist_take_expression(struct gt_hist_parser *parser, char *text);
/* The same of a reference; `name` without its '$', not changed. system, event: NULL where it does not say of which. Asks
 * parser->world for the variable, if there is one. GT_EINVAL. */
int gt_hist_take_reference(struct gt_hist_parser *parser, const char *system, const char *event,
			   const char *name);

/* Adds the action of a text like "onmatch(SYSTEM.EVENT).NAME(PARAMETERS)", before the fields are known. GT_EINVAL. */
int gt_hist_take_action(struct gt_hist_parser *parser, char *text);
/* Makes the variables of parser->assignments, before the keys. GT_EINVAL, GT_EDOM. Then, with all fields known, what the
 * actions take. GT_EINVAL; GT_EEXIST: there are two actions save(). */
int gt_hist_take_variables(struct gt_hist_parser *parser);
int gt_hist_finish_actions(struct gt_hist_parser *parser);

/* ".hex" without its dot: a constant; NULL of GT_HIST_PLAIN. */
const char *gt_hist_modifier_name(enum gt_hist_modifier modifier);
/* The field that is sorted by; NULL: by hits. what: of hist->sorts: 0 hits, then the sums from 1 on, then the keys. */
const struct gt_hist_field *gt_hist_sorted_by(const struct gt_hist *hist, uint32_t what);

/* How many words a key or a variable of that field takes. */
static inline uint32_t gt_hist_words_of(const struct gt_hist_field *field)
{
	return field->kind == GT_HIST_STACK ? GRAFTRACE_HIST_STACK_WORDS
	       : field->is_string	    ? GRAFTRACE_HIST_STRING_WORDS
					    : 1;
}

/* Strings that end with a zero byte, here and below. */
static inline bool gt_hist_is_equal(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* Where the first such character stands; NULL: there is none. */
static inline char *gt_hist_find_char(char *text, char c)
{
	while (*text != '\0' && *text != c)
		text++;
	return *text != '\0' ? text : NULL;
}

/* What is behind the prefix, NULL: it has another one. */
static inline char *gt_hist_behind(char *text, const char *prefix)
{
	while (*prefix != '\0' && *prefix == *text) {
		prefix++;
		text++;
	}
	return *prefix == '\0' ? text : NULL;
}

/* The part up to a separator, which becomes a zero byte; *text is behind it, NULL at the end. NULL if *text is NULL. */
static inline char *gt_hist_next_part(char **text, char separator)
{
	char *part = *text, *end = part != NULL ? gt_hist_find_char(part, separator) : NULL;

	*text = NULL;
	if (end != NULL) {
		*end = '\0';
		*text = end + 1;
	}
	return part;
}

static inline bool gt_hist_is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The text without blanks at its ends; a zero byte is written behind its last character. */
static inline char *gt_hist_strip(char *text)
{
	char *end = text;

	while (gt_hist_is_blank(*text))
		text++;
	for (char *at = text; *at != '\0'; at++)
		if (!gt_hist_is_blank(*at))
			end = at + 1;
	if (end > text)
		*end = '\0';
	return text;
}

/* Text that is put together in the caller's memory, with a zero byte at its end (if there is room for one); what has no
 * room is left out. */
struct gt_hist_output {
	char *at;
	size_t room;
};

/* Appends what gt_format() makes of the other arguments. */
#define gt_hist_append(output, ...)                                                       \
	do {                                                                              \
		const size_t put_ = gt_format((output)->at, (output)->room, __VA_ARGS__); \
		(output)->at += put_;                                                     \
		(output)->room -= put_;                                                   \
	} while (0)

#endif
