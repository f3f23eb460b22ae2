/* SPDX-License-Identifier: MIT */
/* What the files share that make a histogram of its text: hist.c (parts, keys, expressions), hist_actions.c (variables
 * and actions), hist_put.c (the other way); and the output of text, which hist_table.c has too. */
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

/* Returns GT_EINVAL. */
int gt_hist_fail(struct gt_hist_parser *parser, const char *text, const char *part);
/* A text that the histogram keeps. */
char *gt_hist_keep(struct gt_hist *hist, const char *text);
/* These return the index of a new field, or an error. */
int gt_hist_add_field(struct gt_hist_parser *parser, const struct gt_hist_field *field);
/* Of an event's own fields; false: it has none such. */
bool gt_hist_find_field(const struct gt_event_format *format, struct gt_hist_field *field);
int gt_hist_take_atom(struct gt_hist_parser *parser, char *text);
int gt_hist_take_expression(struct gt_hist_parser *parser, char *text);
/* $NAME; system, event: NULL where it does not say of which. */
int gt_hist_take_reference(struct gt_hist_parser *parser, const char *system, const char *event,
			   const char *name);

/* The text of an action, before the fields are known. */
int gt_hist_take_action(struct gt_hist_parser *parser, char *text);
/* Variables, then (with all fields known) what actions take. */
int gt_hist_take_variables(struct gt_hist_parser *parser);
int gt_hist_finish_actions(struct gt_hist_parser *parser);

/* ".hex" without its dot, by enum gt_hist_modifier. */
const char *gt_hist_modifier_name(enum gt_hist_modifier modifier);
/* The field that is sorted by; NULL: by hits. */
const struct gt_hist_field *gt_hist_sorted_by(const struct gt_hist *hist, uint32_t what);

/* Words of a key, or of a variable. */
static inline uint32_t gt_hist_words_of(const struct gt_hist_field *field)
{
	return field->kind == GT_HIST_STACK ? GRAFTRACE_HIST_STACK_WORDS
	       : field->is_string	    ? GRAFTRACE_HIST_STRING_WORDS
					    : 1;
}

static inline bool gt_hist_is_equal(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

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

/* The part up to a separator, which is taken out; *text is behind it, NULL at the end. */
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

/* Text that is put together in the caller's memory; what has no room is left out. */
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
