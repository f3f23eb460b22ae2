/* SPDX-License-Identifier: MIT */
/* See syscall_events.h. */
#include "attach/agent/syscall_events.h"

static const char *const argument_names[] = { "arg0", "arg1", "arg2", "arg3", "arg4", "arg5" };

uint32_t gt_syscall_event_count(void)
{
	return 2 * gt_syscall_count + 2;
}

const struct gt_syscall *gt_syscall_of_event(uint32_t index)
{
	return index / 2 < gt_syscall_count ? &gt_syscall_table[index / 2] : NULL;
}

const char *gt_syscall_event_name(uint32_t index, const char **system)
{
	const struct gt_syscall *call = gt_syscall_of_event(index);

	*system = call != NULL ? "syscalls" : "raw_syscalls";
	if (call == NULL)
		return gt_syscall_event_is_exit(index) ? "sys_exit" : "sys_enter";
	return gt_syscall_event_is_exit(index) ? call->exit : call->enter;
}

uint32_t gt_syscall_events_first(struct gt_catalog *catalog)
{
	if (!catalog->syscall_events) {
		catalog->syscall_events = catalog->next_event;
		catalog->next_event += gt_syscall_event_count();
	}
	return catalog->syscall_events;
}

static void add(struct gt_event_format *event, const char *type, const char *name, uint8_t bytes,
		bool is_signed)
{
	event->fields[event->field_count++] = (struct gt_event_field){
		.name = name,
		.type = type,
		.bytes = bytes,
		.is_signed = is_signed,
		.show = is_signed ? GT_SHOW_DECIMAL : GT_SHOW_HEX,
	};
}

static void add_behind(struct gt_event_format *event, const char *name, bool is_text)
{
	event->fields[event->field_count++] = (struct gt_event_field){
		.name = name,
		.type = is_text ? "char *" : "u8",
		.bytes = is_text ? 8 : 1,
		.is_string = is_text,
		.count = is_text ? 0 : GT_SYSCALL_BYTES_MOST,
		.show = GT_SHOW_HEX,
	};
}

static void describe_enter(const struct gt_syscall *call, struct gt_event_format *event)
{
	const struct gt_syscall_data *data = gt_syscall_data_of(call);
	uint32_t k = 0;

	add(event, "int", "__syscall_nr", 4, true);
	for (uint32_t i = 0; i < call->argument_count; i++)
		add(event, call->arguments[i].type, call->arguments[i].name, 8, false);
	for (uint32_t i = 0; i < 2; i++)
		if (call->text[i])
			add_behind(event, call->behind[k++], true);
	if (data != NULL && data->in.argument)
		add_behind(event, data->in.name, false);
}

static void describe_raw(bool exit, struct gt_event_format *event)
{
	add(event, "long", "id", 8, true);
	if (exit)
		add(event, "long", "ret", 8, true);
	for (uint32_t i = 0; !exit && i < 6; i++)
		add(event, "unsigned long", argument_names[i], 8, false);
}

void gt_syscall_event_describe(const struct gt_catalog *catalog, uint32_t index,
			       struct gt_event_format *event)
{
	const struct gt_syscall *call = gt_syscall_of_event(index);
	const struct gt_syscall_data *data = call != NULL ? gt_syscall_data_of(call) : NULL;

	*event =
		(struct gt_event_format){ .number = catalog->syscall_events + index, .object = "" };
	event->name = gt_syscall_event_name(index, &event->system);
	if (call == NULL) {
		describe_raw(gt_syscall_event_is_exit(index), event);
	} else if (gt_syscall_event_is_exit(index)) {
		add(event, "int", "__syscall_nr", 4, true);
		add(event, "long", "ret", 8, true);
		if (data != NULL && data->out.argument)
			add_behind(event, data->out.name, false);
	} else {
		describe_enter(call, event);
	}
}
