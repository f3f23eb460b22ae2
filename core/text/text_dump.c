/* SPDX-License-Identifier: MIT */
/*
 * The function tracer's records as numbers: the options raw, hex and bin. Other records are printed
 * as the number of their type alone, as on Linux. Layout: kernel/trace/trace.c (print_raw_fmt and
 * its kin) and trace_output.c.
 */
#include "core/text/text_parts.h"

/* enum trace_type of Linux */
#define TYPE_STACK    4
#define TYPE_PRINT    5
#define TYPE_RAW_DATA 16

bool gt_text_is_dumped(const struct gt_text *text)
{
	return (text->options.options & (GT_OPTION_RAW | GT_OPTION_HEX | GT_OPTION_BIN)) != 0;
}

static char *put_type(const struct gt_record *record, char *at)
{
	at = GT_PUT_LITERAL(at, "type: ");
	at = gt_put_number(at, record->kind == GT_RECORD_STACK ? TYPE_STACK
			       : record->flags & GT_RECORD_RAW ? TYPE_RAW_DATA
							       : TYPE_PRINT);
	*at++ = '\n';
	return at;
}

/* Writes the bytes of a number in the order of memory. */
static char *put_bytes(char *at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		*at++ = (char)(value >> (8 * i));
	return at;
}

static char *put_hex_field(char *at, uint64_t value, size_t bytes)
{
	at = gt_put_hex(at, value, (unsigned)(2 * bytes));
	*at++ = ' ';
	return at;
}

char *gt_text_put_dump(struct gt_text *text, const struct gt_source *source, uint64_t address,
		       char *at)
{
	const struct gt_record *record = &source->record;
	uint32_t cpu = cpu_of(text, record->cpu)->cpu;
	uint64_t stamp = stamp_of(text, record->clock);
	bool is_call = record->kind == GT_RECORD_FUNCTION;
	bool context = has(text, GT_OPTION_CONTEXT_INFO);

	if (text->options.units)
		stamp /= text->options.units;
	if (has(text, GT_OPTION_BIN)) {
		if (context) {
			at = put_bytes(at, source->tid, 4);
			at = put_bytes(at, cpu, 4);
			at = put_bytes(at, stamp, 8);
		}
		if (!is_call)
			return put_type(record, at);
		at = put_bytes(at, address, 8);
		return put_bytes(at, record->value, 8);
	}
	if (has(text, GT_OPTION_HEX)) {
		if (context) {
			at = put_hex_field(at, source->tid, 4);
			at = put_hex_field(at, cpu, 4);
			at = put_hex_field(at, stamp, 8);
		}
		if (is_call) {
			at = put_hex_field(at, address, 8);
			at = put_hex_field(at, record->value, 8);
		} else {
			at = put_type(record, at);
		}
		*at++ = '\n';
		return at;
	}
	if (context) {
		at = gt_put_number(at, source->tid);
		*at++ = ' ';
		at = gt_put_number(at, cpu);
		*at++ = ' ';
		at = gt_put_number(at, stamp);
		*at++ = ' ';
	}
	if (record->kind == GT_RECORD_STACK)
		return put_type(record, at);
	if (!is_call) {
		if (!(record->flags & GT_RECORD_RAW))
			at = GT_PUT_LITERAL(at, "# 0 ");
		at = gt_text_put_marker(record, at);
		*at++ = '\n';
		return at;
	}
	at = gt_put_hex(at, address, 1);
	*at++ = ' ';
	at = gt_put_hex(at, record->value, 1);
	*at++ = '\n';
	return at;
}
