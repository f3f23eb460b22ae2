/* SPDX-License-Identifier: MIT */
/*
 * System calls' events as Linux's `trace` writes them (print_syscall_enter() and print_syscall_exit() of
 * kernel/trace/trace_syscalls.c, 6.18, with texts as from 6.19 on), and the `print fmt` of their format
 * files:
 *	sys_openat(dfd: 0xffffff9c, filename: 0x7f14a36c5000 "/etc/passwd", flags: 0x80000, mode: 0)
 *	sys_openat -> 0x3
 *	sys_enter: NR 257 (ffffff9c, 7f14a36c5000, 80000, 0, 0, 0)
 *	sys_exit: NR 257 = 3
 */
#include "core/trace/decode.h"
#include "core/trace/event.h"
#include "core/trace/event_output.h"

static bool begins(const char *text, const char *with)
{
	while (*with && *text == *with) {
		text++;
		with++;
	}
	return !*with;
}

static bool is_argument(const struct gt_event_field *field)
{
	return !begins(field->name, "__") && !field->is_string && !field->count;
}

enum gt_event_call gt_event_call_of(const struct gt_event_format *format)
{
	if (!format->field_count || format->print != NULL)
		return GT_EVENT_NO_CALL;
	if (begins(format->system, "raw_syscalls") && begins(format->fields[0].name, "id"))
		return begins(format->name, "sys_exit") ? GT_EVENT_RAW_EXIT
		       : format->field_count == 1 + 6	? GT_EVENT_RAW_ENTER
							: GT_EVENT_NO_CALL;
	if (begins(format->system, "syscalls") && begins(format->fields[0].name, "__syscall_nr"))
		return begins(format->name, "sys_enter_") ? GT_EVENT_ENTER
		       : begins(format->name, "sys_exit_") && format->field_count > 1
			       ? GT_EVENT_EXIT
			       : GT_EVENT_NO_CALL;
	return GT_EVENT_NO_CALL;
}

/* Whether the field is called "__ARGUMENT_val". */
static bool is_behind(const char *field, const char *argument)
{
	if (!begins(field, "__") || !begins(field + 2, argument))
		return false;
	for (field += 2; *argument; argument++)
		field++;
	return begins(field, "_val") && !field[sizeof("_val") - 1];
}

uint32_t gt_event_field_behind(const struct gt_event_format *format, const char *argument)
{
	for (uint32_t i = 1; i < format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++)
		if (is_behind(format->fields[i].name, argument))
			return i;
	return 0;
}

static uint64_t number_of(const struct gt_event_format *format, const struct gt_record *record,
			  uint32_t index)
{
	struct gt_event_value value;

	gt_event_value(format, record, index, &value);
	return value.kind == GT_EVENT_NUMBER ? value.number : 0;
}

/* The same as gt_event_field_behind, of texts alone. */
static uint32_t text_of(const struct gt_event_format *format, const char *argument)
{
	const uint32_t index = gt_event_field_behind(format, argument);

	return format->fields[index].is_string ? index : 0;
}

/* " \"…\"", if it could be read. */
static void put_text_of(struct gt_output *output, const struct gt_event_format *format,
			const struct gt_record *record, const char *name)
{
	const uint32_t index = text_of(format, name);
	struct gt_event_value value;

	if (!index)
		return;
	gt_event_value(format, record, index, &value);
	if (value.kind == GT_EVENT_STRING) {
		gt_output_text(output, " \"");
		gt_output_clean(output, value.text, value.text_bytes);
		gt_output_text(output, "\"");
	}
}

static void put_enter(struct gt_output *output, const struct gt_event_format *format,
		      const struct gt_record *record)
{
	bool any = false;

	gt_output_text(output, "sys_");
	gt_output_text(output, format->name + sizeof("sys_enter_") - 1);
	gt_output_text(output, "(");
	for (uint32_t i = 1; i < format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		const struct gt_event_field *field = &format->fields[i];
		const uint64_t number = number_of(format, record, i);

		if (!is_argument(field))
			continue;
		gt_output_text(output, any ? ", " : "");
		gt_output_text(output, field->name);
		gt_output_number(output, number, number <= 9 ? ": %llu" : ": 0x%llx");
		put_text_of(output, format, record, field->name);
		any = true;
	}
	gt_output_text(output, ")");
}

void gt_event_put_call(struct gt_output *output, enum gt_event_call call,
		       const struct gt_event_format *format, const struct gt_record *record)
{
	switch (call) {
	case GT_EVENT_ENTER:
		put_enter(output, format, record);
		break;
	case GT_EVENT_EXIT:
		gt_output_text(output, "sys_");
		gt_output_text(output, format->name + sizeof("sys_exit_") - 1);
		gt_output_number(output, number_of(format, record, 1), " -> 0x%llx");
		break;
	case GT_EVENT_RAW_ENTER:
		gt_output_number(output, number_of(format, record, 0), "sys_enter: NR %lld");
		for (uint32_t i = 1; i < 1 + 6; i++)
			gt_output_number(output, number_of(format, record, i),
					 i == 1 ? " (%llx" : ", %llx");
		gt_output_text(output, ")");
		break;
	case GT_EVENT_RAW_EXIT:
		gt_output_number(output, number_of(format, record, 0), "sys_exit: NR %lld");
		gt_output_number(output, number_of(format, record, 1), " = %lld");
		break;
	default:
		break;
	}
}

/* first: what stands in quotes; else the arguments behind it. */
static void put_enter_part(struct gt_output *output, const struct gt_event_format *format,
			   bool first)
{
	bool any = !first;

	for (uint32_t i = 1; i < format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		const char *name = format->fields[i].name;
		const uint32_t text = text_of(format, name);

		if (!is_argument(&format->fields[i]))
			continue;
		gt_output_text(output, any ? ", " : "");
		gt_output_text(output, first ? name : "((unsigned long)(REC->");
		gt_output_text(output, first ? ": 0x%08lx" : name);
		gt_output_text(output, first ? "" : "))");
		if (text) {
			gt_output_text(output, first ? " \\\"%s\\\"" : ", __get_str(");
			gt_output_text(output, first ? "" : format->fields[text].name);
			gt_output_text(output, first ? "" : ")");
		}
		any = true;
	}
}

void gt_event_put_call_format(struct gt_output *output, enum gt_event_call call,
			      const struct gt_event_format *format)
{
	switch (call) {
	case GT_EVENT_ENTER:
		gt_output_char(output, '"');
		put_enter_part(output, format, true);
		gt_output_char(output, '"');
		put_enter_part(output, format, false);
		break;
	case GT_EVENT_EXIT:
		gt_output_text(output, "\"0x%lx\", REC->ret");
		break;
	case GT_EVENT_RAW_ENTER:
		gt_output_text(
			output,
			"\"NR %ld (%lx, %lx, %lx, %lx, %lx, %lx)\", REC->id, REC->args[0], "
			"REC->args[1], REC->args[2], REC->args[3], REC->args[4], REC->args[5]");
		break;
	case GT_EVENT_RAW_EXIT:
		gt_output_text(output, "\"NR %ld = %ld\", REC->id, REC->ret");
		break;
	default:
		break;
	}
}
