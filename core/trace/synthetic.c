/* SPDX-License-Identifier: MIT */
/* Synthetic events as text: see synthetic.h. */
#include "core/trace/synthetic.h"
#include "core/trace/message.h"

static const char bad_command[] = "Command must be of the form: <name> field[;field] ...";

struct word {
	const char *at;
	size_t bytes;
};

struct parser {
	const char *text;
	const char *end;
	struct gt_synthetic *made;
	struct gt_probe_error *error;
};

static int fail(struct parser *parser, const char *text, const char *at)
{
	*parser->error = (struct gt_probe_error){ text, (uint32_t)(at - parser->text) };
	return GT_EINVAL;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next word before `end`; false: there is none. */
static bool next_word(const char **at, const char *end, struct word *word)
{
	while (*at < end && is_blank(**at))
		++*at;
	word->at = *at;
	while (*at < end && !is_blank(**at))
		++*at;
	word->bytes = (size_t)(*at - word->at);
	return word->bytes != 0;
}

static bool is_word(const struct word *word, const char *text)
{
	size_t i = 0;

	while (i < word->bytes && text[i] != '\0' && text[i] == word->at[i])
		i++;
	return i == word->bytes && text[i] == '\0';
}

static bool is_good_name(const struct word *word)
{
	for (size_t i = 0; i < word->bytes; i++) {
		const char c = word->at[i];
		const bool letter = ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';

		if (!letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return word->bytes != 0 && word->bytes < 64;
}

static const char *keep(struct gt_synthetic *made, const char *before, const struct word *word,
			const struct word *behind)
{
	char *at = made->text + made->used;
	const size_t room = sizeof(made->text) - made->used;

	made->used += gt_format(at, room, "%s%.*s%.*s", before, (int)word->bytes, word->at,
				(int)behind->bytes, behind->at) +
		      1;
	return at;
}

/* Bytes of an array of characters, 0: it says none ("[]"); false: that is no array. */
static bool array_bytes(const struct word *array, uint32_t *bytes)
{
	*bytes = 0;
	if (array->bytes < 2 || array->at[0] != '[' || array->at[array->bytes - 1] != ']')
		return false;
	for (size_t i = 1; i + 1 < array->bytes; i++) {
		if (array->at[i] < '0' || array->at[i] > '9' || *bytes > 1000)
			return false;
		*bytes = *bytes * 10 + (uint32_t)(array->at[i] - '0');
	}
	return *bytes != 0 || array->bytes == 2;
}

static bool find_type(const struct word *type, bool is_unsigned, struct gt_event_field *field)
{
	static const struct {
		const char *name;
		uint8_t bytes;
		bool is_signed, may_be_unsigned;
	} types[] = {
		{ "s64", 8, true, false },   { "u64", 8, false, false },
		{ "s32", 4, true, false },   { "u32", 4, false, false },
		{ "s16", 2, true, false },   { "u16", 2, false, false },
		{ "s8", 1, true, false },    { "u8", 1, false, false },
		{ "char", 1, true, true },   { "int", 4, true, true },
		{ "long", 8, true, true },   { "bool", 1, true, false },
		{ "pid_t", 4, true, false }, { "gfp_t", 4, false, false },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (!is_word(type, types[i].name) || (is_unsigned && !types[i].may_be_unsigned))
			continue;
		field->bytes = types[i].bytes;
		field->is_signed = types[i].is_signed && !is_unsigned;
		field->show = is_word(type, "gfp_t") ? GT_SHOW_HEX : GT_SHOW_DECIMAL;
		return true;
	}
	return false;
}

/* [unsigned] TYPE NAME[[N]] */
static int take_field(struct parser *parser, const char **at, const char *end)
{
	struct gt_event_format *format = &parser->made->format;
	struct gt_event_field field = { 0 };
	struct word type, name, array = { "", 0 };
	bool is_unsigned;
	uint32_t bytes;

	next_word(at, end, &type);
	is_unsigned = is_word(&type, "unsigned");
	if (is_unsigned) {
		const struct word first = type;

		if (!next_word(at, end, &type) || !next_word(at, end, &name))
			return fail(parser, "Incomplete type", first.at);
	} else if (!next_word(at, end, &name)) {
		return fail(parser, "Invalid field", type.at);
	}
	for (size_t i = 0; i < name.bytes; i++)
		if (name.at[i] == '[') {
			array = (struct word){ name.at + i, name.bytes - i };
			name.bytes = i;
		}
	if (!is_good_name(&name))
		return fail(parser, "Illegal name", name.at);
	if (array.bytes == 0 ? !find_type(&type, is_unsigned, &field)
			     : !is_word(&type, "char") || is_unsigned)
		return fail(parser, "Invalid type", type.at);
	if (array.bytes != 0) {
		if (!array_bytes(&array, &bytes) || bytes > 256)
			return fail(parser, "Invalid array specification", name.at);
		field.is_string = true;
		field.bytes = 8;
	}
	if (format->field_count == GRAFTRACE_PROBE_FIELDS)
		return fail(parser, "Too many fields", parser->text);
	field.type = keep(parser->made, is_unsigned ? "unsigned " : "", &type, &array);
	field.name = keep(parser->made, "", &name, &(struct word){ "", 0 });
	format->fields[format->field_count++] = field;
	return 0;
}

/* Several fields may stand between semicolons, as Linux once had them. */
static int take_fields(struct parser *parser, const char *at, const char *end)
{
	struct word word;
	int error = 0;

	for (const char *look = at; error == 0 && next_word(&look, end, &word); look = at)
		error = take_field(parser, &at, end);
	return error;
}

int gt_synthetic_parse(const char *text, size_t bytes, struct gt_synthetic *made,
		       struct gt_probe_error *error)
{
	struct parser parser = { text, text + bytes, made, error };
	const char *at = text, *end = text, *look;
	struct word name, word;
	int result = 0, words = 0;

	*error = (struct gt_probe_error){ "", 0 };
	*made = (struct gt_synthetic){ .format = { .system = GT_EVENT_SYNTHETIC, .object = "" } };
	if (bytes >= GT_SYNTHETIC_BYTES)
		return fail(&parser, bad_command, text);
	while (end < parser.end && *end != ';')
		end++;
	for (look = text; next_word(&look, end, &word);)
		words++;
	if (words < 3)
		return fail(&parser, bad_command, text);
	next_word(&at, end, &name);
	if (!is_good_name(&name))
		return fail(&parser, "Illegal name", name.at);
	made->format.name = keep(made, "", &name, &(struct word){ "", 0 });
	for (;;) {
		result = take_fields(&parser, at, end);
		if (result != 0 || end == parser.end)
			break;
		for (at = ++end; end < parser.end && *end != ';';)
			end++;
	}
	return result;
}

void gt_synthetic_put(const struct gt_event_format *event, char *at, size_t room)
{
	size_t used = gt_format(at, room, "%s\t", event->name);

	for (uint32_t i = 0; i < event->field_count; i++)
		used += gt_format(at + used, room - used, "%s%s %s", i != 0 ? "; " : "",
				  event->fields[i].type, event->fields[i].name);
}
