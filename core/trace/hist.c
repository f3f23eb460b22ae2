/* SPDX-License-Identifier: MIT */
/* Histograms of events as text: see hist.h. */
#include "core/trace/hist.h"
#include "core/trace/hist_private.h"
#include "core/trace/message.h"

#define SUBEXPRESSIONS 3

int gt_hist_fail(struct gt_hist_parser *parser, const char *text, const char *part)
{
	parser->error->text = text;
	gt_format(parser->error->part, sizeof(parser->error->part), "%s", part);
	return GT_EINVAL;
}

/* ---- strings ---- */

static char *find_last(char *text, char c)
{
	char *found = NULL;

	for (; *text != '\0'; text++)
		if (*text == c)
			found = text;
	return found;
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

/* A text that the histogram keeps; cut off where there is no room, which gt_hist_parse() refuses at last. */
char *gt_hist_keep(struct gt_hist *hist, const char *text)
{
	char *at = hist->text + hist->used;
	const size_t room = sizeof(hist->text) - hist->used;
	const size_t bytes = gt_format(at, room, "%s", text);

	hist->is_full |= bytes >= room - 1;
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

const char *gt_hist_modifier_name(enum gt_hist_modifier modifier)
{
	return modifiers[modifier];
}

/* Minus signs are looked for in expressions: until then this one has another look. */
#define SYM_OFFSET_INSIDE "symXoffset"

static int take_modifier(struct gt_hist_parser *parser, struct gt_hist_field *field, char *modifier)
{
	char *size = gt_hist_behind(modifier, "bucket");

	for (uint32_t i = GT_HIST_HEX; i <= GT_HIST_USECS; i++)
		if (i != GT_HIST_BUCKETS && i != GT_HIST_SYM_OFFSET &&
		    gt_hist_is_equal(modifier, modifiers[i]))
			field->modifier = (enum gt_hist_modifier)i;
	if (gt_hist_is_equal(modifier, SYM_OFFSET_INSIDE))
		field->modifier = GT_HIST_SYM_OFFSET;
	if (size != NULL) {
		modifier = size += *size == 's';
		if (*size == '=' && number_of(modifier = size + 1, &field->number) &&
		    field->number != 0)
			field->modifier = GT_HIST_BUCKETS;
	}
	if (field->modifier == GT_HIST_PLAIN ||
	    (field->modifier == GT_HIST_EXECNAME && !gt_hist_is_equal(field->name, "common_pid")))
		return gt_hist_fail(parser, "Invalid field modifier", modifier);
	return 0;
}

/* Of the event's own. False: it has none such. */
bool gt_hist_find_field(const struct gt_event_format *format, struct gt_hist_field *field)
{
	for (uint32_t i = 0; i < format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		const struct gt_event_field *own = &format->fields[i];

		if (!gt_hist_is_equal(own->name, field->name))
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
		if (!gt_hist_is_equal(field->name, common[i].name))
			continue;
		field->kind = common[i].kind;
		if (field->kind == GT_HIST_CPU) /* Linux calls it so, however it was written */
			field->name = "common_cpu";
		field->bytes = common[i].bytes;
		field->is_signed = common[i].is_signed;
		if (common[i].bytes == 2 && format != NULL)
			field->number = GT_EVENT_FIRST_ID + format->number;
		return true;
	}
	return false;
}

/* The index of a new field, or an error. */
int gt_hist_add_field(struct gt_hist_parser *parser, const struct gt_hist_field *field)
{
	struct gt_hist *hist = parser->hist;

	if (hist->field_count == GT_HIST_FIELDS)
		return gt_hist_fail(parser, NULL, "");
	hist->fields[hist->field_count] = *field;
	return (int)hist->field_count++;
}

/* Two of them, or more. */
static bool has_dots(char *text)
{
	char *dot = gt_hist_find_char(text, '.');

	return dot != NULL && gt_hist_find_char(dot + 1, '.') != NULL;
}

int gt_hist_take_atom(struct gt_hist_parser *parser, char *text)
{
	struct gt_hist_field field = { .name = "", .bytes = 8 };
	char *modifier = text, *system = NULL, *event = NULL;
	int error = 0;

	if (*text >= '0' && *text <= '9') {
		field.kind = GT_HIST_CONSTANT;
		return number_of(text, &field.number)
			       ? gt_hist_add_field(parser, &field)
			       : gt_hist_fail(parser, "Expecting numeric literal", text);
	}
	/* A variable of SYSTEM.EVENT; where it is none, Linux looks for a field of its name. */
	if (has_dots(text)) {
		system = gt_hist_next_part(&modifier, '.');
		event = gt_hist_next_part(&modifier, '.');
		text = modifier;
	}
	if (text[0] == '$' && text[1] != '\0')
		return gt_hist_take_reference(parser, system, event, text + 1);
	field.name = gt_hist_next_part(&modifier, '.');
	if (modifier != NULL)
		error = take_modifier(parser, &field, modifier);
	if (error != 0)
		return error;
	if (!find_common(parser->format, &field) &&
	    (parser->format != NULL ? !gt_hist_find_field(parser->format, &field)
				    : (field.kind = GT_HIST_FIELD) == GT_HIST_HITS))
		return gt_hist_fail(parser, "Couldn't find field", field.name);
	if (field.kind == GT_HIST_CLOCK) {
		parser->hist->has_clock = true;
		field.is_in_usecs = field.modifier == GT_HIST_USECS;
		parser->hist->is_in_usecs |= field.is_in_usecs;
	}
	return gt_hist_add_field(parser, &field);
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

/* What stands in an expression is read once. */
static void read_once(struct gt_hist *hist, uint32_t index)
{
	if (hist->fields[index].kind == GT_HIST_REFERENCE)
		hist->references[hist->fields[index].field].once = 1;
}

/* -(EXPRESSION) */
static int take_minus(struct gt_hist_parser *parser, char *text)
{
	struct gt_hist_field field = { .kind = GT_HIST_EXPRESSION, .operator= '~' };
	char operand[GT_HIST_BYTES], name[GT_HIST_BYTES];
	char *end;
	int inner;

	if (++parser->subexpressions > SUBEXPRESSIONS)
		return gt_hist_fail(parser, "Too many subexpressions (3 max)", text);
	text++;
	if (gt_hist_find_char(text, '(') == NULL)
		return gt_hist_fail(parser, NULL, "");
	text++;
	end = find_last(text, ')');
	if (end == NULL)
		return gt_hist_fail(parser, NULL, "");
	if (end[1] != '\0')
		return gt_hist_fail(parser, "Unary minus not supported in sub-expressions", text);
	*end = '\0';
	inner = gt_hist_take_expression(parser, text);
	if (inner < 0)
		return inner;
	if (parser->hist->fields[inner].is_string)
		return gt_hist_fail(parser, "String type can not be an operand in expression",
				    text);
	read_once(parser->hist, (uint32_t)inner);
	field.left = field.right = (uint8_t)inner;
	field.bytes = parser->hist->fields[inner].bytes;
	field.is_signed = parser->hist->fields[inner].is_signed;
	put_operand(parser->hist, (uint32_t)inner, operand, sizeof(operand));
	gt_format(name, sizeof(name), "-(%s)", operand);
	field.name = gt_hist_keep(parser->hist, name);
	return gt_hist_add_field(parser, &field);
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

/* A variable whose histogram is not looked at may be anything. */
static bool has_other_units(const struct gt_hist_parser *parser, uint32_t left, uint32_t right)
{
	const struct gt_hist_field *a = &parser->hist->fields[left];
	const struct gt_hist_field *b = &parser->hist->fields[right];

	return a->is_in_usecs != b->is_in_usecs &&
	       !(parser->world == NULL &&
		 (a->kind == GT_HIST_REFERENCE || b->kind == GT_HIST_REFERENCE));
}

static int combine(struct gt_hist_parser *parser, char operator, uint32_t left, uint32_t right,
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

	read_once(hist, left);
	read_once(hist, right);
	if (has_other_units(parser, left, right))
		return gt_hist_fail(parser, "Timestamp units in expression don't match", "");
	if (operator== '/' && hist->fields[right]
		    .kind == GT_HIST_CONSTANT && hist->fields[right]
		    .number == 0) {
		gt_hist_fail(parser, "Division by zero", right_text);
		return GT_EDOM;
	}
	put_operand(hist, left, first, sizeof(first));
	put_operand(hist, right, second, sizeof(second));
	gt_format(name, sizeof(name), "%s%c%s", first, operator, second);
	field.name = gt_hist_keep(hist, name);
	return gt_hist_add_field(parser, &field);
}

int gt_hist_take_expression(struct gt_hist_parser *parser, char *text)
{
	static const char string[] = "String type can not be an operand in expression";
	char *at = find_operator(text), operator;
	int left, right;

	if (parser->subexpressions > SUBEXPRESSIONS)
		return gt_hist_fail(parser, "Too many subexpressions (3 max)", text);
	if (at == NULL)
		return gt_hist_take_atom(parser, text);
	if (at == text && *at == '-')
		return take_minus(parser, text);
	parser->subexpressions++;
	operator= * at;
	*at = '\0';
	if (*text == '\0' || at[1] == '\0')
		return gt_hist_fail(parser, NULL, "");
	left = gt_hist_take_expression(parser, text);
	if (left < 0)
		return left;
	if (parser->hist->fields[left].is_string)
		return gt_hist_fail(parser, string, text);
	right = gt_hist_take_expression(parser, at + 1);
	if (right < 0)
		return right;
	if (parser->hist->fields[right].is_string)
		return gt_hist_fail(parser, string, at + 1);
	return combine(parser, operator,(uint32_t) left, (uint32_t)right, at + 1);
}

static int take_vals(struct gt_hist_parser *parser)
{
	struct gt_hist *hist = parser->hist;
	char *rest = parser->vals, *part;

	for (uint32_t i = 0; i <= GRAFTRACE_HIST_SUMS && hist->sum_count < GRAFTRACE_HIST_SUMS;
	     i++) {
		int made;

		part = gt_hist_next_part(&rest, ',');
		if (part == NULL)
			break;
		if (gt_hist_is_equal(part, "hitcount"))
			continue;
		parser->subexpressions = 0;
		made = gt_hist_take_expression(parser, part);
		if (made < 0)
			return made;
		hist->sums[hist->sum_count++] = (uint8_t)made;
	}
	return rest == NULL || gt_hist_is_equal(rest, "hitcount") ? 0
								  : gt_hist_fail(parser, NULL, "");
}

static int take_key(struct gt_hist_parser *parser, char *text)
{
	const struct gt_hist_field stack = { .name = "stacktrace", .kind = GT_HIST_STACK };
	const uint32_t first = parser->hist->field_count;
	int made;

	if (gt_hist_is_equal(text, stack.name))
		return gt_hist_add_field(parser, &stack);
	parser->subexpressions = 0;
	made = gt_hist_take_expression(parser, text);
	for (uint32_t i = first; made >= 0 && i < parser->hist->field_count; i++)
		if (parser->hist->fields[i].kind == GT_HIST_REFERENCE)
			return gt_hist_fail(
				parser, "Using variable references in keys not supported", text);
	return made;
}

static int take_keys(struct gt_hist_parser *parser)
{
	struct gt_hist *hist = parser->hist;
	char *rest = parser->keys, *part;
	int made;

	while (hist->key_count < GRAFTRACE_HIST_KEYS) {
		part = gt_hist_next_part(&rest, ',');
		if (part == NULL)
			break;
		made = take_key(parser, part);
		if (made < 0)
			return made;
		hist->keys[hist->key_count++] = (uint8_t)made;
	}
	return rest == NULL ? 0 : gt_hist_fail(parser, NULL, "");
}

const struct gt_hist_field *gt_hist_sorted_by(const struct gt_hist *hist, uint32_t what)
{
	return what == 0 ? NULL
			 : &hist->fields[what <= hist->sum_count
						 ? hist->sums[what - 1]
						 : hist->keys[what - 1 - hist->sum_count]];
}

static int take_direction(struct gt_hist_parser *parser, const char *word, bool *descending)
{
	*descending = word != NULL && gt_hist_is_equal(word, "descending");
	return word == NULL || *descending || gt_hist_is_equal(word, "ascending")
		       ? 0
		       : gt_hist_fail(parser, "Invalid sort modifier", word);
}

static int take_sort(struct gt_hist_parser *parser)
{
	struct gt_hist *hist = parser->hist;
	char *rest = parser->sort, *part;
	uint32_t i;

	for (i = 0; i < GT_HIST_SORTS; i++) {
		char *name;
		uint32_t what = 0;
		const uint32_t end = 1u + hist->sum_count + hist->key_count;

		part = gt_hist_next_part(&rest, ',');
		if (part == NULL)
			break;
		if (*part == '\0')
			return gt_hist_fail(parser, "Empty sort field", "sort=");
		if (i == GT_HIST_SORTS - 1 && rest != NULL)
			return gt_hist_fail(parser, "Too many sort fields (Max = 2)", "sort=");
		name = gt_hist_next_part(&part, '.');
		if (*name == '\0')
			return gt_hist_fail(parser, "Empty sort field", "sort=");
		if (!gt_hist_is_equal(name, "hitcount"))
			for (what = 1;
			     what < end &&
			     !gt_hist_is_equal(gt_hist_sorted_by(hist, what)->name, name);)
				what++;
		if (what == end)
			return gt_hist_fail(parser, "Sort field must be a key or a val", name);
		hist->sorts[i].what = (uint8_t)what;
		if (take_direction(parser, part, &hist->sorts[i].descending) != 0)
			return GT_EINVAL;
	}
	hist->sort_count = (uint8_t)(i != 0 ? i : 1);
	return 0;
}

/* ---- the parts of the text ---- */

static int take_size(struct gt_hist_parser *parser, const char *text)
{
	uint64_t size;
	uint8_t bits = 0;

	if (!number_of(text, &size))
		return gt_hist_fail(parser, NULL, "");
	while (bits < 64 && 1ull << bits < size)
		bits++;
	if (bits < GRAFTRACE_HIST_BITS_LEAST || bits > GRAFTRACE_HIST_BITS_MOST)
		return gt_hist_fail(parser, NULL, "");
	parser->hist->bits = bits;
	return 0;
}

static bool is_clock(const char *name)
{
	static const char *const clocks[] = { "local",	  "global", "perf", "mono",
					      "mono_raw", "boot",   "tai",  "x86-tsc" };

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
		if (gt_hist_is_equal(name, clocks[i]))
			return true;
	return false;
}

/* NAME=… */
static int take_assignment(struct gt_hist_parser *parser, char *part)
{
	struct gt_hist *hist = parser->hist;
	char *text;

	if ((text = gt_hist_behind(part, "key=")) != NULL ||
	    (text = gt_hist_behind(part, "keys=")) != NULL)
		parser->keys = text;
	else if ((text = gt_hist_behind(part, "val=")) != NULL ||
		 (text = gt_hist_behind(part, "vals=")) != NULL ||
		 (text = gt_hist_behind(part, "values=")) != NULL)
		parser->vals = text;
	else if ((text = gt_hist_behind(part, "sort=")) != NULL)
		parser->sort = text;
	else if (gt_hist_behind(part, "name=") != NULL)
		hist->name = part;
	else if ((text = gt_hist_behind(part, "clock=")) != NULL)
		hist->clock = gt_hist_strip(text);
	else if ((text = gt_hist_behind(part, "size=")) != NULL)
		return take_size(parser, text);
	else if (parser->assignment_count == GRAFTRACE_HIST_VARIABLES)
		return gt_hist_fail(parser, "Too many variables defined", part);
	else
		parser->assignments[parser->assignment_count++] = part;
	return 0;
}

static int take_part(struct gt_hist_parser *parser, char *part)
{
	struct gt_hist *hist = parser->hist;
	const char *value = gt_hist_find_char(part, '=');

	if (value != NULL)
		return value[1] != '\0' ? take_assignment(parser, part)
					: gt_hist_fail(parser, "Empty assignment", part);
	if (gt_hist_is_equal(part, "pause"))
		hist->is_paused = true;
	else if (gt_hist_is_equal(part, "cont") || gt_hist_is_equal(part, "continue"))
		hist->is_continued = true;
	else if (gt_hist_is_equal(part, "clear"))
		hist->is_cleared = true;
	else
		return gt_hist_take_action(parser, part);
	return 0;
}

static void hide_offsets(char *text)
{
	char *found;

	for (; *text != '\0'; text++) {
		found = gt_hist_behind(text, ".sym-offset");
		if (found != NULL)
			text[4] = 'X';
	}
}

int gt_hist_parse(const char *text, size_t bytes, const struct gt_event_format *format,
		  const struct gt_hist_world *world, struct gt_hist *hist,
		  struct gt_hist_error *error)
{
	struct gt_hist_parser parser = {
		.format = format, .world = world, .hist = hist, .error = error
	};
	char *rest;
	int failed = 0;

	*error = (struct gt_hist_error){ 0 };
	*hist = (struct gt_hist){ .bits = GRAFTRACE_HIST_BITS, .clock = "global" };
	if (bytes == 0 || bytes >= GT_HIST_BYTES)
		return gt_hist_fail(&parser, bytes ? "A histogram's text is too long" : NULL, "");
	__builtin_memcpy(hist->text, text, bytes);
	hist->used = bytes + 1;
	rest = gt_hist_strip(hist->text);
	hide_offsets(rest);
	while (failed == 0 && rest != NULL)
		failed = take_part(&parser, gt_hist_next_part(&rest, ':'));
	if (failed == 0 && parser.keys == NULL)
		failed = gt_hist_fail(&parser, NULL, "");
	if (failed == 0)
		failed = take_vals(&parser);
	if (failed == 0)
		failed = gt_hist_take_variables(&parser);
	if (failed == 0)
		failed = take_keys(&parser);
	if (failed == 0)
		failed = take_sort(&parser);
	if (failed == 0 && hist->has_clock && !is_clock(hist->clock))
		failed = gt_hist_fail(&parser, "Couldn't set trace_clock", hist->clock);
	if (failed == 0)
		failed = gt_hist_finish_actions(&parser);
	return failed == 0 && hist->is_full
		       ? gt_hist_fail(&parser, "A histogram's text is too long", "")
		       : failed;
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
