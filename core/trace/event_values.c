/* SPDX-License-Identifier: MIT */
/*
 * Arguments and results of calls as text: see event.h. The texts are those of Linux's
 * print_function_args() and print_graph_retval(), but that strings, enumerations, characters and
 * functions are shown as what they are.
 */
#include "core/trace/decode.h"
#include "core/trace/event.h"
#include "core/trace/event_output.h"
#include "core/trace/message.h"
#include "core/trace/target.h"

static size_t length_of(const char *text)
{
	size_t bytes = 0;
	while (text[bytes])
		bytes++;
	return bytes;
}

#define ERROR_MOST 4095 /* of Linux's error numbers */

static bool is_same_number(const char *text, size_t bytes, int64_t value)
{
	char number[24];
	gt_format(number, sizeof(number), "%lld", (long long)value);
	for (size_t i = 0; i < bytes; i++)
		if (number[i] != text[i] || !number[i])
			return false;
	return !number[bytes];
}

/* The name that the type has for it: "enum color {RED=0,GREEN=1}". False: none. */
static bool put_enumerator(struct gt_output *output, const char *type, int64_t value)
{
	while (*type && *type != '{')
		type++;
	while (*type && *type != '}') {
		const char *name = ++type;
		size_t bytes = 0;
		while (*type && *type != '=' && *type != '}')
			type++;
		const size_t name_bytes = (size_t)(type - name);
		if (*type != '=')
			return false;
		type++;
		while (type[bytes] && type[bytes] != ',' && type[bytes] != '}')
			bytes++;
		if (is_same_number(type, bytes, value)) {
			gt_output_clean(output, name, name_bytes);
			return true;
		}
		type += bytes;
	}
	return false;
}

/* One character of a text, or by itself: as C writes it. What is no ASCII stays in texts. */
static void put_escaped(struct gt_output *output, uint8_t c, char quote)
{
	static const char letters[] = "abtnvfr"; /* 7 … 13 */
	if (c == (uint8_t)quote || c == '\\') {
		gt_output_char(output, '\\');
		gt_output_char(output, (char)c);
	} else if ((c >= ' ' && c < 0x7f) || (c >= 0x80 && quote == '"')) {
		gt_output_char(output, (char)c);
	} else if (c >= 7 && c <= 13) {
		gt_output_char(output, '\\');
		gt_output_char(output, letters[c - 7]);
	} else if (c == 0) {
		gt_output_text(output, "\\0");
	} else {
		gt_output_text(output, "\\x");
		gt_output_char(output, "0123456789abcdef"[c >> 4]);
		gt_output_char(output, "0123456789abcdef"[c & 15]);
	}
}

static void put_character(struct gt_output *output, uint8_t c)
{
	gt_output_char(output, '\'');
	put_escaped(output, c, '\'');
	gt_output_char(output, '\'');
}

/* What was cut is said to be so. */
static void put_string(struct gt_output *output, const struct gt_event_value *value)
{
	gt_output_char(output, '"');
	for (uint32_t i = 0; i < value->text_bytes; i++)
		put_escaped(output, (uint8_t)value->text[i], '"');
	gt_output_text(output, value->text_bytes == GRAFTRACE_VALUE_TEXT_MAX ? "\"..." : "\"");
}

/* As much of the number as its type has. */
static uint64_t own_bits(const struct gt_event_field *field, uint64_t value)
{
	return field->bytes < 8 ? value & ~(~0ull << 8 * field->bytes) : value;
}

static void put_call_number(struct gt_output *output, const struct gt_event_field *field,
			    uint64_t value, const struct gt_event_names *names, bool is_result,
			    bool hex)
{
	const int64_t number = (int64_t)value;
	const char *name = NULL;

	switch (hex ? GRAFTRACE_VALUE_ADDRESS : (enum graftrace_value_kind)field->kind) {
	case GRAFTRACE_VALUE_ENUM:
		if (put_enumerator(output, field->type, number))
			return;
		gt_output_number(output, value, "%lld");
		return;
	case GRAFTRACE_VALUE_CHARACTER:
		put_character(output, (uint8_t)value);
		return;
	case GRAFTRACE_VALUE_FUNCTION:
		name = value && names != NULL ? names->at(names->data, value) : NULL;
		if (name != NULL) {
			gt_output_clean(output, name, length_of(name));
			return;
		}
		gt_output_number(output, value, "0x%llx");
		return;
	case GRAFTRACE_VALUE_DECIMAL:
		gt_output_number(output, value, field->is_signed ? "%lld" : "%llu");
		return;
	case GRAFTRACE_VALUE_PLAIN:
		/* Linux shows a result as an address, but for what is an error number. */
		if (field->is_signed && (!is_result || (number < 0 && number >= -ERROR_MOST))) {
			gt_output_number(output, value, "%lld");
			return;
		}
		gt_output_number(output, own_bits(field, value), "0x%llx");
		return;
	case GRAFTRACE_VALUE_OPAQUE:
		gt_output_char(output, '?');
		return;
	default:
		gt_output_number(output, own_bits(field, value), "0x%llx");
	}
}

static void put_call_value(struct gt_output *output, const struct gt_event_field *field,
			   const struct gt_event_value *value, const struct gt_event_names *names,
			   bool is_result, bool hex, bool faulted)
{
	if (value->kind == GT_EVENT_STRING)
		put_string(output, value);
	else if (value->kind == GT_EVENT_FAULT && field->is_string && !faulted)
		gt_output_text(output, "NULL");
	else if (value->kind == GT_EVENT_NUMBER)
		put_call_number(output, field, value->number, names, is_result, hex);
	else if (hex && value->kind == GT_EVENT_FRACTION)
		gt_output_number(output, value->number, "0x%llx");
	else
		output->at = gt_event_put_value(field, value, output->at,
						(size_t)(output->end - output->at));
}

/* Of a register no more counts than the type has. */
static uint64_t typed(const struct gt_event_field *field, uint64_t value)
{
	const unsigned unused = field->bytes && field->bytes < 8 ? 64 - 8u * field->bytes : 0;
	return field->is_signed ? (uint64_t)((int64_t)(value << unused) >> unused)
				: value << unused >> unused;
}

char *gt_event_put_values(const struct gt_event_format *format, const struct gt_record *record,
			  const struct gt_event_names *names, bool hex, char *at, size_t room)
{
	const bool is_result = format->number & GRAFTRACE_VALUES_RESULT;
	struct gt_output output = { at, at + room, NULL, 0 };
	bool structure = false;

	for (uint32_t i = 0; i < format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		const struct gt_event_field *field = &format->fields[i];
		const bool more = field->kind == GRAFTRACE_VALUE_MORE;
		struct gt_event_value value;

		gt_event_value(format, record, i, &value);
		if (value.kind == GT_EVENT_NUMBER)
			value.number = typed(field, value.number);
		if (more) {
			gt_output_char(&output, ':');
		} else if (i) {
			gt_output_text(&output, structure ? "], " : ", ");
		}
		if (!more && *field->name) {
			gt_output_clean(&output, field->name, length_of(field->name));
			gt_output_char(&output, '=');
		}
		if (!more)
			structure = field->kind == GRAFTRACE_VALUE_STRUCTURE;
		if (structure && !more) {
			gt_output_char(&output, '(');
			gt_output_clean(&output, field->type, length_of(field->type));
			gt_output_text(&output, ")[");
		}
		put_call_value(&output, field, &value, names, is_result, hex,
			       record->start >> i & 1);
	}
	if (structure)
		gt_output_char(&output, ']');
	return output.at;
}

/* Functions that values are the addresses of. */
struct pointed {
	const struct gt_target *target;
	uint32_t pid;
	struct gt_function function;
};

static const char *pointed_at(void *data, uint64_t address)
{
	struct pointed *pointed = data;

	return gt_target_function_at(pointed->target, pointed->pid, address, &pointed->function) ==
				       0 &&
			       pointed->function.address == address
		       ? pointed->function.name
		       : NULL;
}

char *gt_target_put_values(struct gt_target *target, uint32_t pid, const struct gt_record *record,
			   bool hex, char *at, size_t room)
{
	struct pointed pointed = { .target = target, .pid = pid };
	const struct gt_event_names names = { pointed_at, &pointed };
	struct gt_event_format format;
	struct gt_record values;

	if (!gt_record_values(record, &values) ||
	    gt_target_event(target, (uint32_t)values.value, &format) != 0)
		return NULL;
	return gt_event_put_values(&format, &values, &names, hex, at, room);
}
