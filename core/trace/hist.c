/* SPDX-License-Identifier: MIT */
/* Histograms of events as text: see hist.h. */
#include "core/trace/hist.h"
#include "core/trace/message.h"

#define SUBEXPRESSIONS 3

struct parser {
	const struct gt_event_format *format;
	struct gt_hist *hist;
	struct gt_hist_error *error;
	/* What the text has of each; NULL: nothing. */
	char *keys;
	char *vals;
	char *sort;
	uint32_t subexpressions;
};

static int fail(struct parser *parser, const char *text, const char *part)
{
	parser->error->text = text;
	gt_format(parser->error->part, sizeof(parser->error->part), "%s", part);
	return GT_EINVAL;
}

/* ---- strings ---- */

static bool is_equal(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static char *find_char(char *text, char c)
{
	while (*text != '\0' && *text != c)
		text++;
	return *text != '\0' ? text : NULL;
}

static char *find_last(char *text, char c)
{
	char *found = NULL;

	for (; *text != '\0'; text++)
		if (*text == c)
			found = text;
	return found;
}

/* What is behind the prefix, NULL: it has another one. */
static char *behind(char *text, const char *prefix)
{
	while (*prefix != '\0' && *prefix == *text) {
		prefix++;
		text++;
	}
	return *prefix == '\0' ? text : NULL;
}

/* The part up to a separator, which is taken out; *text is behind it, NULL at the end. */
static char *next_part(char **text, char separator)
{
	char *part = *text, *end = part != NULL ? find_char(part, separator) : NULL;

	*text = NULL;
	if (end != NULL) {
		*end = '\0';
		*text = end + 1;
	}
	return part;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static char *strip(char *text)
{
	char *end = text;

	while (is_blank(*text))
		text++;
	for (char *at = text; *at != '\0'; at++)
		if (!is_blank(*at))
			end = at + 1;
	if (end > text)
		*end = '\0';
	return text;
}

/* As kstrtoull with base 0. */
static bool number_of(const char *text, uint64_t *number)
{
	uint64_t base = 10, digit;

	*number = 0;
	if (text[0] == '0' && text[1] != '\0') {
		base = (text[1] | 0x20) == 'x' ? 16 : 8;
		text += base == 16 ? 2 : 1;
	}
	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		const char c = *text | 0x20;

		digit = *text >= '0' && *text <= '9' ? (uint64_t)(*text - '0')
			: c >= 'a' && c <= 'f'	     ? (uint64_t)(c - 'a' + 10)
						     : 16;
		if (digit >= base || __builtin_mul_overflow(*number, base, number) ||
		    __builtin_add_overflow(*number, digit, number))
			return false;
	}
	return true;
}

/* A text that the histogram keeps; "" where there is no room, which a text of this length has. */
static char *keep(struct gt_hist *hist, const char *text)
{
	char *at = hist->text + hist->used;
	const size_t room = sizeof(hist->text) - hist->used;
	const size_t bytes = gt_format(at, room, "%s", text);

	hist->used += bytes < room - 1 ? bytes + 1 : 0;
	return at;
}

/* ---- fields ---- */

static const char *const modifiers[] = {
	[GT_HIST_HEX] = "hex",
	[GT_HIST_SYM] = "sym",
	[GT_HIST_SYM_OFFSET] = "sym-offset",
	[GT_HIST_EXECNAME] = "execname",
	[GT_HIST_SYSCALL] = "syscall",
	[GT_HIST_LOG2] = "log2",
	[GT_HIST_BUCKETS] = "buckets",
	[GT_HIST_USECS] = "usecs",
};

/* Minus signs are looked for in expressions: until then this one has another look. */
#define SYM_OFFSET_INSIDE "symXoffset"

static int take_modifier(struct parser *parser, struct gt_hist_field *field, char *modifier)
{
	char *size = behind(modifier, "bucket");

	for (uint32_t i = GT_HIST_HEX; i <= GT_HIST_USECS; i++)
		if (i != GT_HIST_BUCKETS && i != GT_HIST_SYM_OFFSET &&
		    is_equal(modifier, modifiers[i]))
			field->modifier = (enum gt_hist_modifier)i;
	if (is_equal(modifier, SYM_OFFSET_INSIDE))
		field->modifier = GT_HIST_SYM_OFFSET;
	if (size != NULL) {
		modifier = size += *size == 's';
		if (*size == '=' && number_of(modifier = size + 1, &field->number) &&
		    field->number != 0)
			field->modifier = GT_HIST_BUCKETS;
	}
	if (field->modifier == GT_HIST_PLAIN ||
	    (field->modifier == GT_HIST_EXECNAME && !is_equal(field->name, "common_pid")))
		return fail(parser, "Invalid field modifier", modifier);
	return 0;
}

/* Of the event's own. False: it has none such. */
static bool find_field(const struct gt_event_format *format, struct gt_hist_field *field)
{
	for (uint32_t i = 0; i < format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		const struct gt_event_field *own = &format->fields[i];

		if (!is_equal(own->name, field->name))
			continue;
		field->kind = GT_HIST_FIELD;
		field->field = (uint8_t)i;
		field->is_string = own->is_string;
		field->is_signed = own->is_signed;
		field->bytes = own->bytes;
		return own->count == 0 && !own->is_float;
	}
	return false;
}

/* What every event has. */
static bool find_common(const struct gt_event_format *format, struct gt_hist_field *field)
{
	static const struct {
		const char *name;
		enum gt_hist_kind kind;
		uint8_t bytes;
		bool is_signed;
	} common[] = {
		{ "common_pid", GT_HIST_THREAD, 4, true },
		{ "cpu", GT_HIST_CPU, 4, false },
		{ "CPU", GT_HIST_CPU, 4, false },
		{ "common_cpu", GT_HIST_CPU, 4, false },
		{ "common_timestamp", GT_HIST_CLOCK, 8, false },
		{ "common_type", GT_HIST_CONSTANT, 2, false },
		{ "common_flags", GT_HIST_CONSTANT, 1, false },
		{ "common_preempt_count", GT_HIST_CONSTANT, 1, false },
	};

	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
		if (!is_equal(field->name, common[i].name))
			continue;
		field->kind = common[i].kind;
		field->bytes = common[i].bytes;
		field->is_signed = common[i].is_signed;
		if (common[i].bytes == 2 && format != NULL)
			field->number = GT_EVENT_FIRST_ID + format->number;
		return true;
	}
	return false;
}

/* The index of a new field, or an error. */
static int add_field(struct parser *parser, const struct gt_hist_field *field)
{
	struct gt_hist *hist = parser->hist;

	if (hist->field_count == GT_HIST_FIELDS)
		return fail(parser, NULL, "");
	hist->fields[hist->field_count] = *field;
	return (int)hist->field_count++;
}

/* Two of them, or more. */
static bool has_dots(char *text)
{
	char *dot = find_char(text, '.');

	return dot != NULL && find_char(dot + 1, '.') != NULL;
}

static int take_atom(struct parser *parser, char *text)
{
	struct gt_hist_field field = { .name = "", .bytes = 8 };
	char *modifier = text;
	int error = 0;

	if (*text >= '0' && *text <= '9') {
		field.kind = GT_HIST_CONSTANT;
		return number_of(text, &field.number)
			       ? add_field(parser, &field)
			       : fail(parser, "Expecting numeric literal", text);
	}
	/* A variable of SYSTEM.EVENT, of which there is none: Linux looks for a field of its name then. */
	if (has_dots(text)) {
		next_part(&modifier, '.');
		next_part(&modifier, '.');
		text = modifier;
	}
	field.name = next_part(&modifier, '.');
	if (modifier != NULL)
		error = take_modifier(parser, &field, modifier);
	if (error != 0)
		return error;
	if (!find_common(parser->format, &field) &&
	    (parser->format != NULL ? !find_field(parser->format, &field)
				    : (field.kind = GT_HIST_FIELD) == GT_HIST_HITS))
		return fail(parser, "Couldn't find field", field.name);
	if (field.kind == GT_HIST_CLOCK) {
		parser->hist->has_clock = true;
		parser->hist->is_in_usecs |= field.modifier == GT_HIST_USECS;
	}
	return add_field(parser, &field);
}

/* As an expression names its parts. */
static void put_operand(const struct gt_hist *hist, uint32_t index, char *at, size_t room)
{
	const struct gt_hist_field *field = &hist->fields[index];

	if (field->kind == GT_HIST_CONSTANT && *field->name == '\0')
		gt_format(at, room, "%llu", (unsigned long long)field->number);
	else
		gt_format(at, room, "%s%s%s", field->name,
			  field->modifier != GT_HIST_PLAIN ? "." : "",
			  field->modifier != GT_HIST_PLAIN ? modifiers[field->modifier] : "");
}

static int take_expression(struct parser *parser, char *text);

/* -(EXPRESSION) */
static int take_minus(struct parser *parser, char *text)
{
	struct gt_hist_field field = { .kind = GT_HIST_EXPRESSION, .operator= '~' };
	char operand[GT_HIST_BYTES], name[GT_HIST_BYTES];
	char *end;
	int inner;

	if (++parser->subexpressions > SUBEXPRESSIONS)
		return fail(parser, "Too many subexpressions (3 max)", text);
	text++;
	if (find_char(text, '(') == NULL)
		return fail(parser, NULL, "");
	text++;
	end = find_last(text, ')');
	if (end == NULL)
		return fail(parser, NULL, "");
	if (end[1] != '\0')
		return fail(parser, "Unary minus not supported in sub-expressions", text);
	*end = '\0';
	inner = take_expression(parser, text);
	if (inner < 0)
		return inner;
	if (parser->hist->fields[inner].is_string)
		return fail(parser, "String type can not be an operand in expression", text);
	field.left = field.right = (uint8_t)inner;
	field.bytes = parser->hist->fields[inner].bytes;
	field.is_signed = parser->hist->fields[inner].is_signed;
	put_operand(parser->hist, (uint32_t)inner, operand, sizeof(operand));
	gt_format(name, sizeof(name), "-(%s)", operand);
	field.name = keep(parser->hist, name);
	return add_field(parser, &field);
}

/* The operator that is worked out last: of the weakest ones the one on the right. */
static char *find_operator(char *text)
{
	char *minus = find_last(text, '-'), *plus = find_last(text, '+');
	char *division = find_last(text, '/'), *times = find_last(text, '*');

	if (minus == text)
		return minus;
	if (minus != NULL || plus != NULL)
		return minus == NULL || (plus != NULL && plus > minus) ? plus : minus;
	return division == NULL || (times != NULL && times > division) ? times : division;
}

static bool is_in_usecs(const struct gt_hist *hist, uint32_t index)
{
	return hist->fields[index].modifier == GT_HIST_USECS;
}

static int combine(struct parser *parser, char operator, uint32_t left, uint32_t right,
		   const char *right_text)
{
	struct gt_hist *hist = parser->hist;
	struct gt_hist_field field = {
		.kind = GT_HIST_EXPRESSION,
		.operator= operator,
		.left =(uint8_t) left,
		.right = (uint8_t)right,
		.bytes = hist->fields[left].bytes,
		.is_signed = hist->fields[left].is_signed,
	};
	char first[GT_HIST_BYTES / 2], second[GT_HIST_BYTES / 2], name[GT_HIST_BYTES];

	if (is_in_usecs(hist, left) != is_in_usecs(hist, right))
		return fail(parser, "Timestamp units in expression don't match", "");
	if (operator== '/' && hist->fields[right]
		    .kind == GT_HIST_CONSTANT && hist->fields[right]
		    .number == 0) {
		fail(parser, "Division by zero", right_text);
		return GT_EDOM;
	}
	put_operand(hist, left, first, sizeof(first));
	put_operand(hist, right, second, sizeof(second));
	gt_format(name, sizeof(name), "%s%c%s", first, operator, second);
	field.name = keep(hist, name);
	return add_field(parser, &field);
}

static int take_expression(struct parser *parser, char *text)
{
	static const char string[] = "String type can not be an operand in expression";
	char *at = find_operator(text), operator;
	int left, right;

	if (parser->subexpressions > SUBEXPRESSIONS)
		return fail(parser, "Too many subexpressions (3 max)", text);
	if (at == NULL)
		return take_atom(parser, text);
	if (at == text && *at == '-')
		return take_minus(parser, text);
	parser->subexpressions++;
	operator= * at;
	*at = '\0';
	if (*text == '\0' || at[1] == '\0')
		return fail(parser, NULL, "");
	left = take_expression(parser, text);
	if (left < 0)
		return left;
	if (parser->hist->fields[left].is_string)
		return fail(parser, string, text);
	right = take_expression(parser, at + 1);
	if (right < 0)
		return right;
	if (parser->hist->fields[right].is_string)
		return fail(parser, string, at + 1);
	return combine(parser, operator,(uint32_t) left, (uint32_t)right, at + 1);
}

static int take_vals(struct parser *parser)
{
	struct gt_hist *hist = parser->hist;
	char *rest = parser->vals, *part;

	for (uint32_t i = 0; i <= GRAFTRACE_HIST_SUMS && hist->sum_count < GRAFTRACE_HIST_SUMS;
	     i++) {
		int made;

		part = next_part(&rest, ',');
		if (part == NULL)
			break;
		if (is_equal(part, "hitcount"))
			continue;
		parser->subexpressions = 0;
		made = take_expression(parser, part);
		if (made < 0)
			return made;
		hist->sums[hist->sum_count++] = (uint8_t)made;
	}
	return rest == NULL || is_equal(rest, "hitcount") ? 0 : fail(parser, NULL, "");
}

static int take_keys(struct parser *parser)
{
	struct gt_hist *hist = parser->hist;
	char *rest = parser->keys, *part;
	int made;

	while (hist->key_count < GRAFTRACE_HIST_KEYS) {
		part = next_part(&rest, ',');
		if (part == NULL)
			break;
		parser->subexpressions = 0;
		made = take_expression(parser, part);
		if (made < 0)
			return made;
		hist->keys[hist->key_count++] = (uint8_t)made;
	}
	return rest == NULL ? 0 : fail(parser, NULL, "");
}

/* The field that is sorted by; NULL: by hits. */
static const struct gt_hist_field *field_of(const struct gt_hist *hist, uint32_t what)
{
	return what == 0 ? NULL
			 : &hist->fields[what <= hist->sum_count
						 ? hist->sums[what - 1]
						 : hist->keys[what - 1 - hist->sum_count]];
}

static int take_direction(struct parser *parser, const char *word, bool *descending)
{
	*descending = word != NULL && is_equal(word, "descending");
	return word == NULL || *descending || is_equal(word, "ascending")
		       ? 0
		       : fail(parser, "Invalid sort modifier", word);
}

static int take_sort(struct parser *parser)
{
	struct gt_hist *hist = parser->hist;
	char *rest = parser->sort, *part;
	uint32_t i;

	for (i = 0; i < GT_HIST_SORTS; i++) {
		char *name;
		uint32_t what = 0;
		const uint32_t end = 1u + hist->sum_count + hist->key_count;

		part = next_part(&rest, ',');
		if (part == NULL)
			break;
		if (*part == '\0')
			return fail(parser, "Empty sort field", "sort=");
		if (i == GT_HIST_SORTS - 1 && rest != NULL)
			return fail(parser, "Too many sort fields (Max = 2)", "sort=");
		name = next_part(&part, '.');
		if (*name == '\0')
			return fail(parser, "Empty sort field", "sort=");
		if (!is_equal(name, "hitcount"))
			for (what = 1; what < end && !is_equal(field_of(hist, what)->name, name);)
				what++;
		if (what == end)
			return fail(parser, "Sort field must be a key or a val", name);
		hist->sorts[i].what = (uint8_t)what;
		if (take_direction(parser, part, &hist->sorts[i].descending) != 0)
			return GT_EINVAL;
	}
	hist->sort_count = (uint8_t)(i != 0 ? i : 1);
	return 0;
}

/* ---- the parts of the text ---- */

static int take_size(struct parser *parser, const char *text)
{
	uint64_t size;
	uint8_t bits = 0;

	if (!number_of(text, &size))
		return fail(parser, NULL, "");
	while (bits < 64 && 1ull << bits < size)
		bits++;
	if (bits < GRAFTRACE_HIST_BITS_LEAST || bits > GRAFTRACE_HIST_BITS_MOST)
		return fail(parser, NULL, "");
	parser->hist->bits = bits;
	return 0;
}

static bool is_clock(const char *name)
{
	static const char *const clocks[] = { "local",	  "global", "perf", "mono",
					      "mono_raw", "boot",   "tai",  "x86-tsc" };

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
		if (is_equal(name, clocks[i]))
			return true;
	return false;
}

/* NAME=… */
static int take_assignment(struct parser *parser, char *part)
{
	struct gt_hist *hist = parser->hist;
	char *text;

	if ((text = behind(part, "key=")) != NULL || (text = behind(part, "keys=")) != NULL)
		parser->keys = text;
	else if ((text = behind(part, "val=")) != NULL || (text = behind(part, "vals=")) != NULL ||
		 (text = behind(part, "values=")) != NULL)
		parser->vals = text;
	else if ((text = behind(part, "sort=")) != NULL)
		parser->sort = text;
	else if (behind(part, "name=") != NULL)
		hist->name = part;
	else if ((text = behind(part, "clock=")) != NULL)
		hist->clock = strip(text);
	else if ((text = behind(part, "size=")) != NULL)
		return take_size(parser, text);
	else
		return fail(parser, "graftrace's histograms have no variables", part);
	return 0;
}

static int take_part(struct parser *parser, char *part)
{
	struct gt_hist *hist = parser->hist;
	const char *value = find_char(part, '=');

	if (value != NULL)
		return value[1] != '\0' ? take_assignment(parser, part)
					: fail(parser, "Empty assignment", part);
	if (is_equal(part, "pause"))
		hist->is_paused = true;
	else if (is_equal(part, "cont") || is_equal(part, "continue"))
		hist->is_continued = true;
	else if (is_equal(part, "clear"))
		hist->is_cleared = true;
	else
		return fail(parser, NULL, "");
	return 0;
}

static void hide_offsets(char *text)
{
	char *found;

	for (; *text != '\0'; text++) {
		found = behind(text, ".sym-offset");
		if (found != NULL)
			text[4] = 'X';
	}
}

int gt_hist_parse(const char *text, size_t bytes, const struct gt_event_format *format,
		  struct gt_hist *hist, struct gt_hist_error *error)
{
	struct parser parser = { .format = format, .hist = hist, .error = error };
	char *rest;
	int failed = 0;

	*error = (struct gt_hist_error){ 0 };
	*hist = (struct gt_hist){ .bits = GRAFTRACE_HIST_BITS, .clock = "global" };
	if (bytes == 0 || bytes >= GT_HIST_BYTES)
		return fail(&parser, bytes ? "A histogram's text is too long" : NULL, "");
	__builtin_memcpy(hist->text, text, bytes);
	hist->used = bytes + 1;
	rest = strip(hist->text);
	hide_offsets(rest);
	while (failed == 0 && rest != NULL)
		failed = take_part(&parser, next_part(&rest, ':'));
	if (failed == 0 && parser.keys == NULL)
		failed = fail(&parser, NULL, "");
	if (failed == 0)
		failed = take_vals(&parser);
	if (failed == 0)
		failed = take_keys(&parser);
	if (failed == 0)
		failed = take_sort(&parser);
	if (failed == 0 && hist->has_clock && !is_clock(hist->clock))
		failed = fail(&parser, "Couldn't set trace_clock", hist->clock);
	return failed;
}

static const char *moved(const struct gt_hist *from, const struct gt_hist *to, const char *text)
{
	return text >= from->text && text < from->text + sizeof(from->text)
		       ? to->text + (text - from->text)
		       : text;
}

void gt_hist_duplicate(const struct gt_hist *hist, struct gt_hist *copy)
{
	*copy = *hist;
	for (uint32_t i = 0; i < copy->field_count; i++)
		copy->fields[i].name = moved(hist, copy, hist->fields[i].name);
	copy->clock = moved(hist, copy, hist->clock);
	copy->name = hist->name != NULL ? moved(hist, copy, hist->name) : NULL;
}

int64_t gt_hist_find_filter(const char *text, size_t bytes)
{
	for (size_t i = 0; i + 1 < bytes; i++) {
		if (text[i] != 'i' || text[i + 1] != 'f')
			continue;
		if (i == 0)
			return GT_EINVAL;
		if (text[i - 1] != ' ' && text[i - 1] != '\t')
			continue;
		if (i + 3 >= bytes)
			return GT_EINVAL;
		if (text[i + 2] == ' ' || text[i + 2] == '\t')
			return (int64_t)i;
	}
	return (int64_t)bytes;
}

/* ---- comparing and printing ---- */

static bool is_same_field(const struct gt_hist *a, uint32_t in_a, const struct gt_hist *b,
			  uint32_t in_b)
{
	const struct gt_hist_field *one = &a->fields[in_a], *other = &b->fields[in_b];

	/* Linux compares neither the sizes of buckets nor what expressions are made of. */
	return one->kind == other->kind && one->modifier == other->modifier &&
	       (one->kind == GT_HIST_EXPRESSION || is_equal(one->name, other->name));
}

bool gt_hist_is_same(const struct gt_hist *a, const struct gt_hist *b)
{
	if (a->key_count != b->key_count || a->sum_count != b->sum_count ||
	    a->sort_count != b->sort_count)
		return false;
	for (uint32_t i = 0; i < a->key_count; i++)
		if (!is_same_field(a, a->keys[i], b, b->keys[i]))
			return false;
	for (uint32_t i = 0; i < a->sum_count; i++)
		if (!is_same_field(a, a->sums[i], b, b->sums[i]))
			return false;
	for (uint32_t i = 0; i < a->sort_count; i++)
		if (a->sorts[i].what != b->sorts[i].what ||
		    a->sorts[i].descending != b->sorts[i].descending)
			return false;
	return true;
}

struct output {
	char *at;
	size_t room;
};

#define put(output, ...)                                                                  \
	do {                                                                              \
		const size_t put_ = gt_format((output)->at, (output)->room, __VA_ARGS__); \
		(output)->at += put_;                                                     \
		(output)->room -= put_;                                                   \
	} while (0)

static void put_field(struct output *output, const struct gt_hist_field *field)
{
	if (field->kind == GT_HIST_CPU)
		put(output, "common_cpu");
	else if (field->kind == GT_HIST_CONSTANT && *field->name == '\0')
		put(output, "%llu", (unsigned long long)field->number);
	else
		put(output, "%s", field->name);
	if (field->modifier != GT_HIST_PLAIN)
		put(output, ".%s", modifiers[field->modifier]);
	if (field->modifier == GT_HIST_BUCKETS)
		put(output, "=%llu", (unsigned long long)field->number);
}

void gt_hist_put(const struct gt_hist *hist, char *at, size_t room)
{
	struct output output = { at, room };

	if (hist->name != NULL)
		put(&output, "%s:", hist->name);
	put(&output, "keys=");
	for (uint32_t i = 0; i < hist->key_count; i++) {
		put(&output, "%s", i != 0 ? "," : "");
		put_field(&output, &hist->fields[hist->keys[i]]);
	}
	put(&output, ":vals=hitcount");
	for (uint32_t i = 0; i < hist->sum_count; i++) {
		put(&output, ",");
		put_field(&output, &hist->fields[hist->sums[i]]);
	}
	put(&output, ":sort=");
	for (uint32_t i = 0; i < hist->sort_count; i++) {
		const struct gt_hist_field *field = field_of(hist, hist->sorts[i].what);

		put(&output, "%s", i != 0 ? "," : "");
		if (field != NULL)
			put_field(&output, field);
		else
			put(&output, "hitcount");
		put(&output, "%s", hist->sorts[i].descending ? ".descending" : "");
	}
	put(&output, ":size=%u", 1u << hist->bits);
	if (hist->has_clock)
		put(&output, ":clock=%s", hist->clock);
}

/* ---- the description ---- */

static struct graftrace_hist_value value_of(const struct gt_hist *hist,
					    const struct gt_hist_field *field)
{
	struct graftrace_hist_value value = { .field = field->field, .number = field->number };

	switch (field->kind) {
	case GT_HIST_FIELD:
		value.source = field->is_string ? GRAFTRACE_HIST_STRING : GRAFTRACE_HIST_FIELD;
		break;
	case GT_HIST_THREAD:
		value.source = GRAFTRACE_HIST_THREAD;
		break;
	case GT_HIST_CPU:
		value.source = GRAFTRACE_HIST_CPU;
		break;
	case GT_HIST_CLOCK:
		value.source = GRAFTRACE_HIST_CLOCK;
		break;
	case GT_HIST_CONSTANT:
		value.source = GRAFTRACE_HIST_CONSTANT;
		break;
	default:
		value.source = field->operator== '+'   ? GRAFTRACE_HIST_PLUS
			       : field->operator== '-' ? GRAFTRACE_HIST_MINUS
			       : field->operator== '*' ? GRAFTRACE_HIST_TIMES
			       : field->operator== '/' ? GRAFTRACE_HIST_DIVIDED
						       : GRAFTRACE_HIST_NEGATIVE;
		value.field = field->left;
		value.right = field->right;
	}
	if (field->modifier == GT_HIST_LOG2)
		value.change = GRAFTRACE_HIST_LOG2;
	else if (field->modifier == GT_HIST_BUCKETS)
		value.change = GRAFTRACE_HIST_BUCKETS;
	/* One .usecs makes them of all. */
	if (field->kind == GT_HIST_CLOCK && hist->is_in_usecs && !is_equal(hist->clock, "x86-tsc"))
		value.change = GRAFTRACE_HIST_USECS;
	return value;
}

uint32_t gt_hist_describe(const struct gt_hist *hist, const struct gt_clock *clock, uint32_t table,
			  struct graftrace_hist *description)
{
	struct graftrace_hist_value *values = (struct graftrace_hist_value *)(description + 1);

	*description = (struct graftrace_hist){
		.table = table,
		.bits = hist->bits,
		.value_count = (uint8_t)hist->field_count,
		.key_count = hist->key_count,
		.sum_count = hist->sum_count,
		.mult = 1,
	};
	if (!is_equal(hist->clock, "x86-tsc")) {
		description->tsc_base = clock->tsc_base;
		description->ns_base = clock->ns_base;
		description->mult = clock->mult;
		description->shift = clock->shift;
	}
	for (uint32_t i = 0; i < hist->field_count; i++) {
		values[i] = value_of(hist, &hist->fields[i]);
		if (hist->fields[i].modifier == GT_HIST_EXECNAME)
			description->flags |= GRAFTRACE_HIST_COMM;
	}
	for (uint32_t i = 0; i < hist->key_count; i++) {
		description->keys[i] = hist->keys[i];
		description->key_words +=
			hist->fields[hist->keys[i]].is_string ? GRAFTRACE_HIST_STRING_WORDS : 1;
	}
	for (uint32_t i = 0; i < hist->sum_count; i++)
		description->sums[i] = hist->sums[i];
	return (uint32_t)(sizeof(*description) + hist->field_count * sizeof(*values));
}
