/* SPDX-License-Identifier: MIT */
/*
 * Filters of events: see event_filter.h. As in Linux, two passes over the text: the first one counts
 * brackets and terms, the second one makes a comparison of each term, and what follows if it holds.
 */
#include "core/trace/event_filter.h"

enum flag {
	INVERT = 1, /* what stands in the bracket is inverted */
	AND = 2,    /* `&&` stands before the term that comes */
	OR = 4,
};

#define TEXT_MAX 256 /* bytes of one string, its zero byte included */

struct parser {
	const struct gt_event_format *format;
	const char *text;
	size_t bytes;
	struct graftrace_filter *filter;
	struct graftrace_filter_op *ops;
	uint32_t room; /* comparisons */
	char *texts;   /* of the strings, until it is known how many comparisons there are */
	uint32_t texts_used;
	struct gt_event_filter_error *error;
};

static int fail(struct parser *parser, int result, const char *text, size_t at)
{
	*parser->error = (struct gt_event_filter_error){ text, (uint32_t)at };
	return result;
}

static char at(const struct parser *parser, size_t place)
{
	return place < parser->bytes ? parser->text[place] : '\0';
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || (unsigned char)c == 0xa0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t skip_spaces(const struct parser *parser, size_t place)
{
	while (is_space(at(parser, place)))
		place++;
	return place;
}

/* ---- the first pass ---- */

/* The bracket that nothing closes: the last one, seen from the end, that is still open. */
static size_t bad_open(const struct parser *parser, int open)
{
	int level = open;
	char quote = 0;

	for (size_t i = parser->bytes - 1; i > 0; i--) {
		const char c = parser->text[i];

		if (quote) {
			if (c == quote)
				quote = 0;
		} else if (c == '(') {
			if (level == open)
				return i;
			level--;
		} else if (c == ')') {
			level++;
		} else if (c == '\'' || c == '"') {
			quote = c;
		}
	}
	return 0;
}

/* 0, or an error; *terms: how many there are. */
static int count_terms(struct parser *parser, uint32_t *terms)
{
	bool in_term = false;
	size_t last_quote = 0;
	char quote = 0;
	int open = 1;

	*terms = 0;
	for (size_t i = 0; i < parser->bytes; i++) {
		const char c = parser->text[i];

		if (is_space(c))
			continue;
		if (quote) {
			if (c == quote)
				quote = 0;
			continue;
		}
		if (c == '(' || c == ')' || ((c == '|' || c == '&') && at(parser, i + 1) == c)) {
			in_term = false;
			if (c == ')' && open == 1)
				return fail(parser, GT_EPERM, "Too few '('", i);
			open += c == '(' ? 1 : c == ')' ? -1 : 0;
			continue;
		}
		if (c == '\'' || c == '"') {
			quote = c;
			last_quote = i;
		}
		*terms += !in_term;
		in_term = true;
	}
	if (quote)
		return fail(parser, GT_ESRCH, "Missing matching quote", last_quote);
	if (open != 1)
		return fail(parser, GT_ENOENT, "Too many '('", bad_open(parser, open));
	return *terms ? 0 : fail(parser, GT_EINVAL, NULL, 0);
}

/* ---- terms ---- */

static bool is_word(const char *text, size_t bytes, const char *word)
{
	size_t i = 0;

	while (i < bytes && word[i] && word[i] == text[i])
		i++;
	return i == bytes && !word[i];
}

/* What the name stands for: the comparison's kind, field and, for a constant, value. */
struct named {
	uint8_t kind; /* 0: nothing */
	uint8_t field;
	uint32_t constant;
	uint8_t bytes; /* of the number */
	bool is_signed;
	bool is_text;
};

static struct named find_name(const struct gt_event_format *format, const char *name, size_t bytes)
{
	for (uint32_t i = 0; i < format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		const struct gt_event_field *field = &format->fields[i];

		if (!is_word(name, bytes, field->name))
			continue;
		return (struct named){
			.kind = field->is_string   ? GRAFTRACE_FILTER_TEXT
				: field->is_signed ? GRAFTRACE_FILTER_SIGNED
						   : GRAFTRACE_FILTER_UNSIGNED,
			.field = (uint8_t)i,
			.bytes = field->is_float ? 0 : field->bytes,
			.is_signed = field->is_signed,
			.is_text = field->is_string,
		};
	}
	if (is_word(name, bytes, "CPU") || is_word(name, bytes, "cpu"))
		return (struct named){ GRAFTRACE_FILTER_CPU, .bytes = 4, .is_signed = true };
	if (is_word(name, bytes, "COMM") || is_word(name, bytes, "comm"))
		return (struct named){ GRAFTRACE_FILTER_COMM, .is_text = true };
	if (is_word(name, bytes, "common_pid"))
		return (struct named){ GRAFTRACE_FILTER_THREAD, .bytes = 4, .is_signed = true };
	if (is_word(name, bytes, "common_type"))
		return (struct named){ GRAFTRACE_FILTER_CONSTANT,
				       .constant = GT_EVENT_FIRST_ID + format->number, .bytes = 2 };
	if (is_word(name, bytes, "common_flags") || is_word(name, bytes, "common_preempt_count"))
		return (struct named){ GRAFTRACE_FILTER_CONSTANT, .bytes = 1 };
	return (struct named){ 0 };
}

/* Longer ones first. */
static const struct {
	char text[3];
	uint8_t compare;
} operators[] = {
	{ "~", GRAFTRACE_COMPARE_GLOB }, { "!=", GRAFTRACE_COMPARE_NE },
	{ "==", GRAFTRACE_COMPARE_EQ },	 { "<=", GRAFTRACE_COMPARE_LE },
	{ "<", GRAFTRACE_COMPARE_LT },	 { ">=", GRAFTRACE_COMPARE_GE },
	{ ">", GRAFTRACE_COMPARE_GT },	 { "&", GRAFTRACE_COMPARE_AND },
};

static size_t find_operator(const struct parser *parser, size_t place, uint8_t *compare)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		const size_t bytes = operators[i].text[1] ? 2 : 1;

		if (at(parser, place) != operators[i].text[0] ||
		    (bytes == 2 && at(parser, place + 1) != operators[i].text[1]))
			continue;
		*compare = operators[i].compare;
		return bytes;
	}
	return 0;
}

/* A number as C writes it, of 64 bits, as kstrtoll and kstrtoull read it. */
static bool read_number(const char *text, size_t bytes, bool is_signed, uint64_t *value)
{
	const bool negative = bytes > 0 && text[0] == '-';
	uint64_t base = 10, sum = 0;
	size_t i = negative;

	if (negative && !is_signed)
		return false;
	if (bytes > i + 1 && text[i] == '0') {
		const bool hex = text[i + 1] == 'x' || text[i + 1] == 'X';

		base = hex ? 16 : 8;
		i += hex ? 2 : 1;
	}
	if (i == bytes)
		return false;
	for (; i < bytes; i++) {
		const char c = text[i] | 0x20;
		const uint64_t digit = is_digit(text[i])      ? (uint64_t)(text[i] - '0')
				       : c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a' + 10)
							      : 16;

		if (digit >= base || __builtin_mul_overflow(sum, base, &sum) ||
		    __builtin_add_overflow(sum, digit, &sum))
			return false;
	}
	if (is_signed && sum > (uint64_t)INT64_MAX + negative)
		return false;
	*value = negative ? -sum : sum;
	return true;
}

static uint64_t narrow(uint64_t value, unsigned bytes, bool is_signed)
{
	const unsigned unused = bytes < 8 ? 64 - 8 * bytes : 0;

	return is_signed ? (uint64_t)((int64_t)(value << unused) >> unused)
			 : value << unused >> unused;
}

/* The string whose quote stands at `place`; where it goes on, or an error. */
static int64_t take_text(struct parser *parser, size_t place, size_t shift,
			 const struct named *named, struct graftrace_filter_op *op)
{
	const char quote = at(parser, place);
	size_t from = place + 1, end = from;

	if (op->compare != GRAFTRACE_COMPARE_NE && op->compare != GRAFTRACE_COMPARE_EQ &&
	    op->compare != GRAFTRACE_COMPARE_GLOB)
		return fail(parser, GT_EINVAL, "Illegal operation for field type", shift + place);
	if (!named->is_text)
		return fail(parser, GT_EINVAL, "Expecting numeric field", shift + place);
	while (end < parser->bytes && parser->text[end] != quote)
		end++;
	if (end == parser->bytes)
		return fail(parser, GT_EINVAL, "Missing matching quote", shift + end);
	if (end - from >= TEXT_MAX)
		return fail(parser, GT_EINVAL, "Operand too long", shift + end);
	if (op->compare == GRAFTRACE_COMPARE_GLOB && at(parser, from) == '!') {
		op->compare = GRAFTRACE_COMPARE_NOT_GLOB;
		from++;
	}
	op->text = parser->texts_used;
	op->bytes = (uint16_t)(end - from);
	if (parser->filter != NULL)
		__builtin_memcpy(parser->texts + parser->texts_used, parser->text + from,
				 end - from);
	parser->texts_used += (uint32_t)(end - from);
	return (int64_t)end + 1;
}

static int64_t take_number(struct parser *parser, size_t place, size_t shift,
			   const struct named *named, struct graftrace_filter_op *op)
{
	size_t end = place;

	if (named->is_text)
		return fail(parser, GT_EINVAL, "Expecting string field", shift + place);
	if (op->compare == GRAFTRACE_COMPARE_GLOB || named->bytes == 0)
		return fail(parser, GT_EINVAL, "Illegal operation for field type", shift + place);
	if (at(parser, end) == '-')
		end++;
	while (is_name(at(parser, end)) && at(parser, end) != '_')
		end++;
	if (end - place >= 24)
		return fail(parser, GT_EINVAL, "Operand too long", shift + end);
	if (!read_number(parser->text + place, end - place, named->is_signed, &op->value))
		return fail(parser, GT_EINVAL, "Illegal integer value", shift + place);
	op->value = narrow(op->value, named->bytes, named->is_signed);
	if (named->kind == GRAFTRACE_FILTER_CONSTANT)
		op->text = named->constant;
	return (int64_t)end;
}

/* The term that begins at `place`: where it goes on, or an error. */
static int64_t take_term(struct parser *parser, size_t place, struct graftrace_filter_op *op)
{
	const size_t name = skip_spaces(parser, place), shift = 1;
	size_t i = name, bytes;
	struct named named;

	while (is_name(at(parser, i)))
		i++;
	if (i == name)
		return fail(parser, GT_EPERM, NULL, 0);
	named = find_name(parser->format, parser->text + name, i - name);
	if (!named.kind)
		return fail(parser, GT_EINVAL, "Field not found", shift + i);
	op->kind = named.kind;
	op->field = named.field;
	i = skip_spaces(parser, i);
	bytes = find_operator(parser, i, &op->compare);
	if (!bytes)
		return fail(parser, GT_EINVAL, "Invalid operator", shift + i);
	i = skip_spaces(parser, i + bytes);
	if (at(parser, i) == '\'' || at(parser, i) == '"')
		return take_text(parser, i, shift, &named, op);
	if (is_digit(at(parser, i)) || at(parser, i) == '-')
		return take_number(parser, i, shift, &named, op);
	return fail(parser, GT_EINVAL, "Invalid value (did you forget quotes)?", shift + i);
}

/* ---- the second pass ---- */

/* While it is made, an operation's target is the term before the place where it goes on; that of the
 * last one of a row is the row's first one's (Linux' "update_preds"). */
static void update(struct graftrace_filter_op *ops, uint32_t last, bool invert)
{
	if (ops == NULL)
		return;
	const uint16_t first = ops[last].target, before = ops[first].target;

	ops[first].when = invert;
	ops[first].target = (uint16_t)last;
	ops[last].target = before;
}

/* What follows a term, up to the next one: 1 there is one, 0 the end, or an error. */
static int take_rest(struct parser *parser, size_t *place, uint8_t *stack, size_t *top,
		     uint32_t count)
{
	for (;;) {
		const size_t here = (*place)++;
		const char c = at(parser, here);
		const bool twice = (c == '&' || c == '|') && at(parser, here + 1) == c;

		if (is_space(c))
			continue;
		if (c && c != ')' && !twice)
			return fail(parser, GT_EPERM, "Too many terms in predicate expression",
				    here);
		*place += twice;
		const bool invert = stack[*top] & INVERT;

		if (stack[*top] & AND) {
			update(parser->ops, count - 1, invert);
			stack[*top] &= (uint8_t)~AND;
		}
		if (c == '&') {
			stack[*top] |= AND;
			return 1;
		}
		if (stack[*top] & OR) {
			update(parser->ops, count - 1, !invert);
			stack[*top] &= (uint8_t)~OR;
		}
		if (c == '|') {
			stack[*top] |= OR;
			return 1;
		}
		if (!c)
			return 0;
		if (*top == 0)
			return fail(parser, GT_EPERM, "Too few '('", *place);
		--*top;
	}
}

/* Jumps go on as far as they can, then get their final sense. False: one leads back. */
static bool finish(struct parser *parser, uint32_t count)
{
	struct graftrace_filter_op *ops = parser->ops;

	if (ops == NULL)
		return true;
	ops[count - 1].target = (uint16_t)count;
	ops[count - 1].when = 0;
	for (uint32_t i = count - 1; i-- > 0;) {
		const uint32_t target = ops[i].target;

		if (target < count && ops[i].when == ops[target].when)
			ops[i].target = ops[target].target;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (ops[i].target < i || ops[i].target > count)
			return false;
		ops[i].when ^= (uint8_t)ops[i].scratch;
		ops[i].target++;
		ops[i].scratch = 0;
	}
	return true;
}

/* How many comparisons, or an error. */
static int64_t make(struct parser *parser, uint32_t terms)
{
	uint8_t stack[GRAFTRACE_FILTER_BYTES];
	struct graftrace_filter_op one, *op;
	size_t place = 0, top = 0;
	uint32_t count = 0;
	uint8_t invert = 0;
	int more = 0;

	stack[0] = 0;
	while (place < parser->bytes) {
		const size_t here = place++;
		const char c = parser->text[here], after = at(parser, here + 1);
		int64_t end;

		if (is_space(c))
			continue;
		if (c == '(') {
			stack[++top] = invert;
			continue;
		}
		if (c == '!' && after != '=' && after != '~') {
			invert = !invert;
			continue;
		}
		if (count >= terms)
			return fail(parser, GT_EINVAL, "Too many terms in predicate expression",
				    here);
		op = parser->ops != NULL ? &parser->ops[count] : &one;
		*op = (struct graftrace_filter_op){
			.target = (uint16_t)(count - 1),
			.scratch = invert,
		};
		end = take_term(parser, here, op);
		if (end < 0)
			return end;
		place = (size_t)end;
		more = take_rest(parser, &place, stack, &top, ++count);
		if (more < 0)
			return more;
		if (more == 0)
			break;
		invert = stack[top] & INVERT;
	}
	if (top != 0)
		return fail(parser, GT_EPERM, "Too many '('", place);
	if (more) /* an operator, and nothing behind it */
		return fail(parser, GT_EINVAL, "Meaningless filter expression", place);
	if (count == 0)
		return fail(parser, GT_EINVAL, "No filter found", place);
	return finish(parser, count)
		       ? (int64_t)count
		       : fail(parser, GT_EINVAL, "Meaningless filter expression", place);
}

int64_t gt_event_filter_make(const struct gt_event_format *format, const char *expression,
			     size_t bytes, struct graftrace_filter *filter, uint64_t room,
			     struct gt_event_filter_error *error)
{
	struct parser parser = { format,
				 expression,
				 bytes,
				 filter,
				 .ops = filter != NULL ? (struct graftrace_filter_op *)(filter + 1)
						       : NULL,
				 .error = error };
	uint32_t terms;
	int64_t count;
	int failed;

	*error = (struct gt_event_filter_error){ 0 };
	for (size_t i = 0; i < bytes; i++)
		if (!expression[i])
			parser.bytes = bytes = i;
	if (bytes >= GRAFTRACE_FILTER_BYTES)
		return GT_EINVAL;
	failed = count_terms(&parser, &terms);
	if (failed)
		return failed;
	if (filter != NULL && room < sizeof(*filter) + (terms + 2) * sizeof(*parser.ops) + bytes)
		return GT_ENOSPC;
	/* Behind the room of all terms that there can be. */
	parser.texts = filter != NULL ? (char *)(parser.ops + terms) : NULL;
	count = make(&parser, terms);
	if (count < 0 || filter == NULL)
		return count;
	filter->count = (uint32_t)count;
	filter->text_bytes = parser.texts_used;
	for (uint32_t i = 0; i < parser.texts_used && count < terms; i++)
		((char *)(parser.ops + count))[i] = parser.texts[i];
	return (int64_t)(sizeof(*filter) + (uint64_t)count * sizeof(*parser.ops)) +
	       parser.texts_used;
}
