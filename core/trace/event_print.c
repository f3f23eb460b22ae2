/* SPDX-License-Identifier: MIT */
/*
 * The text of an event that says by itself how it is printed (graftrace/event_kernel.h has the
 * grammar), and the same as the `print fmt` of Linux's format files, for libtraceevent. The text comes
 * from a recording, too: whatever it does not understand stands in the output as it is.
 */
#include <graftrace/event_kernel.h>
#include "core/trace/decode.h"
#include "core/trace/event.h"
#include "core/trace/event_output.h"
#include "core/trace/message.h"

/* %(name:spec) */
struct part {
	uint32_t field;
	const char *spec;
	size_t spec_bytes;
};

/* A word that belongs to a value: NUMBER=TEXT. */
struct word {
	uint64_t value;
	const char *text;
	size_t bytes;
};

static void put_number(struct gt_output *output, uint64_t value, unsigned base, unsigned width)
{
	char digits[32];
	unsigned count = 0;
	do {
		digits[count++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	while (width > count && width < 32) {
		gt_output_char(output, '0');
		width--;
	}
	while (count)
		gt_output_char(output, digits[--count]);
}

static void put_decimal(struct gt_output *output, const struct gt_event_field *field,
			uint64_t value, unsigned width)
{
	if (field->is_signed && (int64_t)value < 0) {
		gt_output_char(output, '-');
		value = -value;
	}
	put_number(output, value, 10, width);
}

static bool is_name(const char *name, const char *text, size_t bytes)
{
	size_t i = 0;
	while (i < bytes && name[i] && name[i] == text[i])
		i++;
	return i == bytes && !name[i];
}

/* The part that begins at `text` ("%("): what is behind it, or NULL if it is none. */
static const char *take_part(const struct gt_event_format *format, const char *text,
			     struct part *part)
{
	const char *name = text + 2, *end = name;
	while (*end && *end != ')' && *end != ':')
		end++;
	const size_t bytes = (size_t)(end - name);
	part->spec = *end == ':' ? end + 1 : end;
	for (end = part->spec; *end && *end != ')'; end++)
		;
	if (!*end)
		return NULL;
	part->spec_bytes = (size_t)(end - part->spec);
	for (part->field = 0; part->field < format->field_count; part->field++)
		if (part->field < GRAFTRACE_PROBE_FIELDS &&
		    is_name(format->fields[part->field].name, name, bytes))
			return end + 1;
	return NULL;
}

/* The next NUMBER=TEXT of a list, up to a comma, the end or `?`. False: there is none. */
static bool next_word(const char **at, const char *end, struct word *word)
{
	const char *text = *at;
	word->value = 0;
	if (text < end && *text == ',')
		text++;
	if (text == end || *text < '0' || *text > '9')
		return false;
	while (text < end && *text >= '0' && *text <= '9')
		word->value = word->value * 10 + (uint64_t)(*text++ - '0');
	if (text == end || *text != '=')
		return false;
	word->text = ++text;
	while (text < end && *text != ',' && *text != '?')
		text++;
	word->bytes = (size_t)(text - word->text);
	*at = text;
	return true;
}

enum spec {
	SPEC_PLAIN,
	SPEC_HEX,
	SPEC_MAJOR,
	SPEC_MINOR,
	SPEC_WORDS,
	SPEC_FLAGS,
};

static enum spec look_at(const struct part *part, unsigned *width)
{
	const char *at = part->spec, *end = at + part->spec_bytes;
	*width = 0;
	if (at == end)
		return SPEC_PLAIN;
	if (*at == '|')
		return SPEC_FLAGS;
	if (*at == '/')
		return end - at > 1 && at[1] == 'M' ? SPEC_MAJOR : SPEC_MINOR;
	for (const char *look = at; look < end; look++)
		if (*look == '=')
			return SPEC_WORDS;
	while (at < end && *at >= '0' && *at <= '9' && *width < 32)
		*width = *width * 10 + (unsigned)(*at++ - '0');
	return at < end && *at == 'x' ? SPEC_HEX : SPEC_PLAIN;
}

static void put_flags(struct gt_output *output, const struct part *part, uint64_t value)
{
	const char *at = part->spec + 1, *end = part->spec + part->spec_bytes;
	struct word word;
	bool any = false;
	while (next_word(&at, end, &word)) {
		if (!word.value || (value & word.value) != word.value)
			continue;
		if (any)
			gt_output_char(output, '|');
		gt_output_clean(output, word.text, word.bytes);
		value &= ~word.value;
		any = true;
	}
	if (value) {
		gt_output_text(output, any ? "|0x" : "0x");
		put_number(output, value, 16, 0);
	} else if (!any && at < end && *at == '?') {
		gt_output_clean(output, at + 1, (size_t)(end - at - 1));
	}
}

static void put_word(struct gt_output *output, const struct part *part,
		     const struct gt_event_field *field, uint64_t value)
{
	const char *at = part->spec, *end = at + part->spec_bytes;
	struct word word;
	while (next_word(&at, end, &word))
		if (word.value == value) {
			gt_output_clean(output, word.text, word.bytes);
			return;
		}
	put_decimal(output, field, value, 0);
}

static bool is_address(const struct gt_event_field *field)
{
	const char *type = field->type;
	while (*type && *type != '*')
		type++;
	return *type == '*' && !field->is_string;
}

static void put_part(struct gt_output *output, const struct gt_event_format *format,
		     const struct gt_record *record, const struct part *part)
{
	const struct gt_event_field *field = &format->fields[part->field];
	struct gt_event_value value;
	unsigned width;
	const enum spec spec = look_at(part, &width);

	gt_event_value(format, record, part->field, &value);
	if (value.kind == GT_EVENT_FAULT) {
		gt_output_text(output, "(fault)");
		return;
	}
	if (value.kind == GT_EVENT_STRING) {
		gt_output_clean(output, value.text, value.text_bytes);
		return;
	}
	switch (spec) {
	case SPEC_HEX:
		put_number(output,
			   field->bytes < 8 ? value.number & ((1ull << 8 * field->bytes) - 1)
					    : value.number,
			   16, width);
		break;
	case SPEC_MAJOR:
		put_number(output, (uint32_t)value.number >> 20, 10, 0);
		break;
	case SPEC_MINOR:
		put_number(output, value.number & 0xfffff, 10, 0);
		break;
	case SPEC_FLAGS:
		put_flags(output, part, value.number);
		break;
	case SPEC_WORDS:
		put_word(output, part, field, value.number);
		break;
	default:
		if (is_address(field)) {
			gt_output_text(output, "0x");
			put_number(output, value.number, 16, 0);
		} else {
			put_decimal(output, field, value.number, width);
		}
	}
}

char *gt_event_put_printed(const struct gt_event_format *format, const struct gt_record *record,
			   char *at, size_t room)
{
	struct gt_output output = { at, at + room, NULL, 0 };
	for (const char *text = format->print + (format->print[0] == '!'); *text;) {
		struct part part;
		const char *behind =
			text[0] == '%' && text[1] == '(' ? take_part(format, text, &part) : NULL;
		if (behind != NULL) {
			put_part(&output, format, record, &part);
			text = behind;
		} else {
			if (text[0] == '%' && text[1] == '%')
				text++;
			gt_output_clean(&output, text++, 1);
		}
	}
	return output.at;
}

/* ---- Linux's print fmt ---- */

static void put_conversion(struct gt_output *output, const struct gt_event_field *field,
			   const struct part *part)
{
	unsigned width;
	const enum spec spec = look_at(part, &width);
	if (field->is_string || spec == SPEC_FLAGS || spec == SPEC_WORDS) {
		gt_output_text(output, "%s");
		return;
	}
	if (spec == SPEC_PLAIN && is_address(field))
		gt_output_text(output, "0x");
	gt_output_char(output, '%');
	if (width) {
		gt_output_char(output, '0');
		put_number(output, width, 10, 0);
	}
	if (field->bytes == 8 && spec != SPEC_MAJOR && spec != SPEC_MINOR)
		gt_output_text(output, "ll");
	gt_output_char(output, spec == SPEC_HEX || (spec == SPEC_PLAIN && is_address(field)) ? 'x'
			       : field->is_signed || spec != SPEC_PLAIN			     ? 'd'
											     : 'u');
}

static void put_list(struct gt_output *output, const char *at, const char *end)
{
	struct word word;
	while (next_word(&at, end, &word)) {
		gt_output_text(output, ", { ");
		put_number(output, word.value, 10, 0);
		gt_output_text(output, ", \"");
		gt_output_clean(output, word.text, word.bytes);
		gt_output_text(output, "\" }");
	}
	gt_output_char(output, ')');
}

static void put_argument(struct gt_output *output, const struct gt_event_field *field,
			 const struct part *part)
{
	const char *at = part->spec, *end = at + part->spec_bytes, *none = at;
	unsigned width;
	const enum spec spec = look_at(part, &width);
	gt_output_text(output, ", ");
	if (field->is_string) {
		gt_output_text(output, "__get_str(");
		gt_output_text(output, field->name);
		gt_output_char(output, ')');
		return;
	}
	while (none < end && *none != '?')
		none++;
	if (spec == SPEC_FLAGS && none < end) {
		gt_output_text(output, "REC->");
		gt_output_text(output, field->name);
		gt_output_text(output, " ? ");
	}
	if (spec == SPEC_FLAGS)
		gt_output_text(output, "__print_flags(");
	else if (spec == SPEC_WORDS)
		gt_output_text(output, "__print_symbolic(");
	else if (spec == SPEC_MAJOR)
		gt_output_text(output, "((unsigned int) ((");
	else if (spec == SPEC_MINOR)
		gt_output_text(output, "((unsigned int) ((");
	gt_output_text(output, "REC->");
	gt_output_text(output, field->name);
	if (spec == SPEC_MAJOR) {
		gt_output_text(output, ") >> 20))");
	} else if (spec == SPEC_MINOR) {
		gt_output_text(output, ") & ((1U << 20) - 1)))");
	} else if (spec == SPEC_FLAGS) {
		gt_output_text(output, ", \"|\"");
		put_list(output, at + 1, end);
		if (none < end) {
			gt_output_text(output, " : \"");
			gt_output_clean(output, none + 1, (size_t)(end - none - 1));
			gt_output_char(output, '"');
		}
	} else if (spec == SPEC_WORDS) {
		put_list(output, at, end);
	}
}

char *gt_event_put_printed_format(const struct gt_event_format *format, char *at, size_t room)
{
	struct gt_output output = { at, at + room, NULL, 0 };
	struct part part;
	gt_output_char(&output, '"');
	for (int pass = 0; pass < 2; pass++) {
		for (const char *text = format->print + (format->print[0] == '!'); *text;) {
			const char *behind = text[0] == '%' && text[1] == '('
						     ? take_part(format, text, &part)
						     : NULL;
			if (behind != NULL && pass)
				put_argument(&output, &format->fields[part.field], &part);
			else if (behind != NULL)
				put_conversion(&output, &format->fields[part.field], &part);
			else if (!pass)
				gt_output_clean(&output, text, 1);
			text = behind != NULL ? behind : text + 1;
		}
		if (!pass)
			gt_output_char(&output, '"');
	}
	return output.at;
}

void gt_event_of_kernel(const struct graftrace_kernel_event *event, struct gt_event_format *format)
{
	*format = (struct gt_event_format){
		.number = event->number,
		.field_count = event->field_count < GRAFTRACE_PROBE_FIELDS ? event->field_count
									   : GRAFTRACE_PROBE_FIELDS,
		.system = event->system,
		.name = event->name,
		.object = "kernel",
		.print = event->print,
	};
	for (uint32_t i = 0; i < format->field_count; i++) {
		const struct graftrace_event_field *field = &event->fields[i];
		format->fields[i] = (struct gt_event_field){
			.name = field->name,
			.type = field->type,
			.bytes = (uint8_t)field->bytes,
			.is_signed = field->flags & GRAFTRACE_FIELD_SIGNED,
			.is_string = field->flags & GRAFTRACE_FIELD_STRING,
		};
	}
}
