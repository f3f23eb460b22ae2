/* SPDX-License-Identifier: MIT */
/*
 * Events with fields: see event.h. Whole numbers only, as everywhere in here: a fraction is made into
 * decimals from its bits.
 */
#include "core/trace/event.h"
#include "core/trace/event_output.h"
#include "core/trace/decode.h"
#include "core/trace/glob.h"
#include "core/trace/message.h"
#include "core/trace/rest.h"
#include "core/trace/strings.h"
#include "core/trace/target.h"

bool gt_event_word_matches(const char *word, const char *system, const char *name)
{
	char part[256];
	size_t colon = 0;

	while (word[colon] && word[colon] != ':')
		colon++;
	if (!word[colon])
		return gt_glob_match(word, system) || gt_glob_match(word, name);
	if (colon >= sizeof(part))
		return false;
	__builtin_memcpy(part, word, colon);
	part[colon] = 0;
	return (!*part || gt_glob_match(part, system)) &&
	       (!word[colon + 1] || gt_glob_match(word + colon + 1, name));
}

static bool is_same_field(const struct gt_event_field *a, const struct gt_event_field *b)
{
	return gt_string_is(a->name, b->name) && gt_string_is(a->type, b->type) &&
	       a->show == b->show && a->count == b->count;
}

bool gt_event_is_same_format(const struct gt_event_format *a, const struct gt_event_format *b)
{
	if (!gt_string_is(a->system, b->system) || !gt_string_is(a->name, b->name) ||
	    a->field_count != b->field_count)
		return false;
	for (uint32_t i = 0; i < a->field_count; i++)
		if (!is_same_field(&a->fields[i], &b->fields[i]))
			return false;
	return true;
}

static size_t length_of(const char *text)
{
	size_t bytes = 0;
	while (text[bytes])
		bytes++;
	return bytes;
}

/* Where ":mod:" begins in the word; its end if it is not there. */
static size_t place_of_object(const char *word)
{
	static const char in[] = GT_EVENT_IN;
	size_t at = 0;

	for (; word[at]; at++) {
		size_t same = 0;

		while (in[same] && word[at + same] == in[same])
			same++;
		if (!in[same])
			break;
	}
	return at;
}

static bool is_last_part(const char *path, const char *part)
{
	const size_t bytes = length_of(part), path_bytes = length_of(path);

	return bytes > 0 && bytes <= path_bytes &&
	       __builtin_memcmp(path + path_bytes - bytes, part, bytes) == 0 &&
	       (bytes == path_bytes || path[path_bytes - bytes - 1] == '/');
}

bool gt_event_word_in(const char *word, const char *object, const char *system, const char *name)
{
	const size_t at = place_of_object(word);
	char events[256];

	if (!word[at] || at >= sizeof(events) ||
	    !is_last_part(object, word + at + sizeof(GT_EVENT_IN) - 1))
		return false;
	__builtin_memcpy(events, word, at);
	events[at] = 0;
	return at == 0 || gt_event_word_matches(events, system, name);
}

bool gt_event_words_match(const char *const *words, const char *system, const char *name,
			  const char *object, bool otherwise)
{
	bool matches = otherwise;

	for (; words != NULL && *words != NULL; words++) {
		const bool excludes = **words == '!';
		const char *word = *words + excludes;

		if (gt_event_word_matches(word, system, name) ||
		    gt_event_word_in(word, object, system, name))
			matches = !excludes;
	}
	return matches;
}

static uint64_t word_of(const struct gt_record *record, uint32_t index)
{
	uint64_t word = 0;
	if (index < record->text_bytes / 8)
		__builtin_memcpy(&word, record->text + index * 8, sizeof(word));
	return word;
}

void gt_event_value(const struct gt_event_format *format, const struct gt_record *record,
		    uint32_t index, struct gt_event_value *value)
{
	*value = (struct gt_event_value){ .kind = GT_EVENT_FAULT };
	if (index >= format->field_count || index >= GRAFTRACE_PROBE_FIELDS ||
	    record->start >> index & 1)
		return;
	const struct gt_event_field *field = &format->fields[index];
	value->number = word_of(record, index);
	value->kind = field->is_float ? GT_EVENT_FRACTION : GT_EVENT_NUMBER;
	if (!field->is_string && field->count == 0)
		return;
	uint32_t offset = value->number & 0xffff, bytes = value->number >> 16 & 0xffff;
	value->kind = GT_EVENT_FAULT;
	if (bytes == 0 || offset > record->text_bytes || bytes > record->text_bytes - offset)
		return;
	value->kind = GT_EVENT_STRING;
	value->text = record->text + offset;
	if (field->count != 0) {
		value->kind = GT_EVENT_ARRAY;
		value->text_bytes = bytes;
		return;
	}
	while (value->text_bytes < bytes && value->text[value->text_bytes])
		value->text_bytes++;
}

/* A float's bits as a double's; one that is too small to have them all is 0. */
static uint64_t widen(uint32_t bits)
{
	uint64_t exponent = bits >> 23 & 0xff, sign = (uint64_t)(bits >> 31) << 63;
	if (exponent == 0)
		return sign;
	return sign | (exponent == 0xff ? 0x7ffull : exponent + 1023 - 127) << 52 |
	       (uint64_t)(bits & 0x7fffff) << 29;
}

/* Six decimals; what is too large or too small for that as the bits that it has. */
static void put_fraction(struct gt_output *output, uint64_t bits)
{
	__extension__ typedef unsigned __int128 u128;
	int exponent = (int)(bits >> 52 & 0x7ff) - 1023 - 52;
	uint64_t mantissa = (bits & 0xfffffffffffffull) | 1ull << 52;
	char decimals[16];
	if (exponent > 10 || exponent < -110) {
		gt_output_number(output, bits, bits << 1 ? "0x%llx" : "0.000000");
		return;
	}
	if (bits >> 63)
		gt_output_char(output, '-');
	unsigned shift = exponent < 0 ? (unsigned)-exponent : 0;
	u128 scaled = (u128)(exponent < 0 ? mantissa : mantissa << exponent);
	u128 whole = scaled >> shift;
	uint64_t rest = (uint64_t)(((scaled - (whole << shift)) * 1000000) >> shift);
	gt_output_number(output, (uint64_t)whole, "%llu");
	gt_format(decimals, sizeof(decimals), "%llu", (unsigned long long)(rest + 1000000));
	decimals[0] = '.';
	gt_output_text(output, decimals);
}

static bool is_equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

uint32_t gt_event_hidden_fields(const struct gt_event_format *format)
{
	if (format->field_count > 0 && is_equal(format->fields[0].name, GT_EVENT_PROBE_IP))
		return 1;
	return format->field_count > 1 && is_equal(format->fields[0].name, GT_EVENT_PROBE_FUNC) &&
			       is_equal(format->fields[1].name, GT_EVENT_RETURN_IP)
		       ? 2
		       : 0;
}

static bool is_hex(const struct gt_event_field *field)
{
	const char *type = field->type;
	if (field->show != GT_SHOW_AS_TYPE)
		return field->show == GT_SHOW_HEX || field->show == GT_SHOW_SYMBOL;
	if (field->is_signed || field->bytes != 8)
		return false;
	if (is_equal(type, "u64"))
		return true;
	for (; *type; type++)
		if (*type == '*')
			return true;
	return false;
}

/* FUNCTION+0x12/0x34, or the address; plain: FUNCTION alone. As seq_print_ip_sym prints them. */
static void put_symbol(struct gt_output *output, uint64_t address, bool plain)
{
	struct gt_function function;

	if (output->names == NULL || address == GT_CALLER_UNKNOWN ||
	    gt_target_function_at(output->names, output->pid, address, &function) != 0) {
		gt_output_number(output, address, "0x%llx");
		return;
	}
	gt_output_clean(output, function.name, length_of(function.name));
	if (plain)
		return;
	gt_output_number(output, address - function.address, "+0x%llx");
	gt_output_number(output, function.size, "/0x%llx");
}

static void put_field_number(struct gt_output *output, const struct gt_event_field *field,
			     uint64_t number)
{
	if (field->show == GT_SHOW_CHAR) {
		const char c = (char)number;

		gt_output_char(output, '\'');
		gt_output_clean(output, &c, 1);
		gt_output_char(output, '\'');
		return;
	}
	if (field->show == GT_SHOW_SYMBOL) {
		put_symbol(output, number, false);
		return;
	}
	gt_output_number(output, number,
			 is_hex(field)	    ? "0x%llx"
			 : field->is_signed ? "%lld"
					    : "%llu");
}

static uint64_t element_of(const struct gt_event_field *field, const char *at)
{
	const uint32_t unused = 64 - 8u * field->bytes;
	uint64_t number = 0;

	__builtin_memcpy(&number, at, field->bytes);
	return field->is_signed ? (uint64_t)((int64_t)(number << unused) >> unused) : number;
}

/* {1,2}, {"a","b"} */
static void put_array(struct gt_output *output, const struct gt_event_field *field,
		      const struct gt_event_value *value)
{
	uint32_t at = 0;

	gt_output_char(output, '{');
	for (uint32_t i = 0; i < field->count && at < value->text_bytes; i++) {
		uint32_t bytes = 0;

		gt_output_text(output, i ? "," : "");
		if (!field->is_string) {
			if (value->text_bytes - at < field->bytes)
				break;
			put_field_number(output, field, element_of(field, value->text + at));
			at += field->bytes;
			continue;
		}
		while (at + bytes < value->text_bytes && value->text[at + bytes])
			bytes++;
		gt_output_char(output, '"');
		gt_output_clean(output, value->text + at, bytes);
		gt_output_char(output, '"');
		at += bytes + 1;
	}
	gt_output_char(output, '}');
}

static bool is_synthetic(const struct gt_event_format *format)
{
	return is_equal(format->system, GT_EVENT_SYNTHETIC);
}

static void put_value(struct gt_output *output, const struct gt_event_field *field,
		      const struct gt_event_value *value)
{
	switch (value->kind) {
	case GT_EVENT_FAULT:
		gt_output_text(output, "(fault)");
		break;
	case GT_EVENT_STRING:
		gt_output_char(output, '"');
		gt_output_clean(output, value->text, value->text_bytes);
		gt_output_char(output, '"');
		break;
	case GT_EVENT_FRACTION:
		put_fraction(output,
			     field->bytes == 4 ? widen((uint32_t)value->number) : value->number);
		break;
	case GT_EVENT_ARRAY:
		put_array(output, field, value);
		break;
	default:
		put_field_number(output, field, value->number);
	}
}

static bool is_kernels(const struct gt_event_format *format)
{
	return format->object != NULL && is_equal(format->object, GT_EVENT_KERNEL);
}

/* (0x401136), (0x401200 <- 0x401136): as kernel/trace/trace_uprobe.c prints them; of a kernel (read+0x0/0x80),
 * (serve+0x12/0x200 <- read): trace_kprobe.c. */
static void put_place(struct gt_output *output, const struct gt_event_format *format,
		      const struct gt_record *record, uint32_t hidden)
{
	struct gt_event_value value;

	if (hidden == 0)
		return;
	gt_output_char(output, '(');
	for (uint32_t i = hidden; i-- > 0;) {
		gt_event_value(format, record, i, &value);
		if (is_kernels(format))
			put_symbol(output, value.number, hidden == 2 && i == 0);
		else
			gt_output_number(output, value.number, "0x%llx");
		gt_output_text(output, i ? " <- " : ")");
	}
}

static void put_fields(struct gt_output *output, const struct gt_event_format *format,
		       const struct gt_record *record)
{
	const uint32_t hidden = gt_event_hidden_fields(format);
	struct gt_rest rest;
	if (gt_rest_read(format, record, &rest)) {
		gt_event_put_rest(output, &rest);
		return;
	}
	if (format->print != NULL) {
		output->at = gt_event_put_printed(format, record, output->at,
						  (size_t)(output->end - output->at));
		return;
	}
	put_place(output, format, record, hidden);
	for (uint32_t i = hidden; i < format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		struct gt_event_value value;
		const char *name = format->fields[i].name;
		if (i)
			gt_output_char(output, ' ');
		gt_output_clean(output, name, length_of(name));
		gt_output_char(output, '=');
		gt_event_value(format, record, i, &value);
		if (value.kind == GT_EVENT_STRING && is_synthetic(format))
			gt_output_clean(output, value.text, value.text_bytes);
		else
			put_value(output, &format->fields[i], &value);
	}
}

char *gt_event_put_fields(const struct gt_event_format *format, const struct gt_record *record,
			  char *at, size_t room)
{
	struct gt_output output = { at, at + room, NULL, 0 };

	put_fields(&output, format, record);
	return output.at;
}

bool gt_event_is_mark(const char *system, const char *name)
{
	return is_equal(system, "graftrace") && is_equal(name, "mark");
}

static void put_mark(struct gt_output *output, const struct gt_event_format *format,
		     const struct gt_record *record)
{
	for (uint32_t i = 0; i < format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		struct gt_event_value value;

		gt_event_value(format, record, i, &value);
		gt_output_text(output, i ? ": " : "");
		if (value.kind == GT_EVENT_STRING)
			gt_output_clean(output, value.text, value.text_bytes);
		else
			put_value(output, &format->fields[i], &value);
	}
}

char *gt_event_put_named(const struct gt_event_format *format, const struct gt_record *record,
			 bool with_system, struct gt_target *target, uint32_t pid, char *at,
			 size_t room)
{
	const enum gt_event_call call = gt_event_call_of(format);
	struct gt_output output = { at, at + room, target, pid };

	if (gt_event_is_mark(format->system, format->name)) {
		put_mark(&output, format, record);
		return output.at;
	}
	if (with_system) {
		gt_output_clean(&output, format->system, length_of(format->system));
		gt_output_char(&output, ':');
	}
	if (call != GT_EVENT_NO_CALL) {
		gt_event_put_call(&output, call, format, record);
		return output.at;
	}
	if (format->print == NULL || format->print[0] != '!') {
		gt_output_clean(&output, format->name, length_of(format->name));
		if (format->field_count || !with_system)
			gt_output_char(&output, ':');
		if (!format->field_count)
			return output.at;
		gt_output_char(&output, ' ');
	}
	put_fields(&output, format, record);
	return output.at;
}

char *gt_event_put(const struct gt_event_format *format, const struct gt_record *record,
		   bool with_system, char *at, size_t room)
{
	return gt_event_put_named(format, record, with_system, NULL, 0, at, room);
}

/* libtraceevent knows no %f and leaves its argument to the next: a fraction is shown by its bits. */
static void put_field_format(struct gt_output *output, const struct gt_event_field *field)
{
	gt_output_text(output, field->count != 0  ? "=%s"
			       : field->is_string ? "=\\\"%s\\\""
			       : field->is_float  ? field->bytes < 8 ? "=0x%x" : "=0x%llx"
			       : field->show == GT_SHOW_CHAR ? "='%c'"
			       : is_hex(field)	  ? field->bytes < 8 ? "=0x%x" : "=0x%llx"
			       : field->bytes < 8 ? field->is_signed ? "=%d" : "=%u"
			       : field->is_signed ? "=%lld"
						  : "=%llu");
}

char *gt_event_put_print_format(const struct gt_event_format *format, char *at, size_t room)
{
	const uint32_t hidden = gt_event_hidden_fields(format);
	const enum gt_event_call call = gt_event_call_of(format);
	struct gt_output output = { at, at + room, NULL, 0 };
	if (call != GT_EVENT_NO_CALL) {
		gt_event_put_call_format(&output, call, format);
		return output.at;
	}
	if (format->print != NULL)
		return gt_event_put_printed_format(format, at, room);
	gt_output_text(&output, hidden == 0 ? "\"" : hidden == 1 ? "\"(%lx)" : "\"(%lx <- %lx)");
	for (uint32_t i = hidden; i < format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		const struct gt_event_field *field = &format->fields[i];
		gt_output_text(&output, !i ? "" : is_synthetic(format) ? ", " : " ");
		gt_output_text(&output, field->name);
		if (field->is_string && is_synthetic(format))
			gt_output_text(&output, "=%s");
		else
			put_field_format(&output, field);
	}
	gt_output_char(&output, '"');
	for (uint32_t i = 0; i < format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		const struct gt_event_field *field = &format->fields[i];
		const bool array = field->count != 0 && !field->is_string;
		gt_output_text(&output, array		   ? ", __print_array(__get_dynamic_array("
					: field->is_string ? ", __get_str("
							   : ", REC->");
		gt_output_text(&output, field->name);
		if (array) {
			gt_output_number(&output, field->count, "), %llu");
			gt_output_number(&output, field->bytes, ", %llu)");
		} else {
			gt_output_text(&output, field->is_string ? ")" : "");
		}
	}
	return output.at;
}

char *gt_event_put_value(const struct gt_event_field *field, const struct gt_event_value *value,
			 char *at, size_t room)
{
	struct gt_output output = { at, at + room, NULL, 0 };
	put_value(&output, field, value);
	return output.at;
}
