/* SPDX-License-Identifier: MIT */
/*
 * Events besides calls: of a program sched_switch, where the target knows its threads' context
 * switches, and the events with fields that its static probes are; of a kernel its static events. Names,
 * formats and what may be written are those of kernel/trace/trace_events.c and
 * include/trace/events/sched.h, Linux 6.1.
 */
#include "core/control/control_event_rules.h"
#include "core/control/control_row.h"
#include "core/control/control_table.h"
#include "core/text/raw_page.h"

#define SYSTEM "sched"
#define EVENT  "sched_switch"

/* Prints the bits of a state as Linux does. */
#define STATES                                                                                \
	"{ 0x00000001, \"S\" }, { 0x00000002, \"D\" }, { 0x00000004, \"T\" }, { 0x00000008, " \
	"\"t\" }, { 0x00000010, \"X\" }, { 0x00000020, \"Z\" }, { 0x00000040, \"P\" }, { "    \
	"0x00000080, \"I\" }"

static const char format_text[] =
	"name: " EVENT "\nID: 316\n"
	"format:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
	"\n"
	"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:1;\n"
	"\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
	"\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
	"\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:1;\n"
	"\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
	"\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n"
	"\n"
	"print fmt: \"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s "
	"next_pid=%d next_prio=%d\", REC->prev_comm, REC->prev_pid, REC->prev_prio, "
	"(REC->prev_state & 255) ? __print_flags(REC->prev_state & 255, \"|\", " STATES
	") : \"R\", REC->prev_state & 256 ? \"+\" : \"\", REC->next_comm, REC->next_pid, "
	"REC->next_prio\n";

_Static_assert(GT_RAW_SCHED_SWITCH == 316, "as the format says");

/* 0 or 1; GT_ENOTSUP: the target has no such event. */
static int look_up(const struct gt_control_target *target, uint64_t *value)
{
	*value = 0;
	/* the operation does not change its target */
	return target->ops->get == NULL ||
			       target->ops->get((struct gt_control_target *)(uintptr_t)target,
						GT_CONTROL_SCHED_SWITCH, value) != 0
		       ? GT_ENOTSUP
		       : 0;
}

static bool has_events(const struct gt_control_target *target)
{
	uint64_t value;

	return look_up(target, &value) == 0;
}

static int64_t read_lines(struct gt_control_handle *handle, const char *text, char *buffer,
			  size_t bytes)
{
	const struct gt_row_line line = { { text } };
	size_t given = 0;

	if (handle->line == 0)
		gt_row_give_line(handle, &line, buffer, bytes, &given);
	return (int64_t)given;
}

static int64_t read_format(struct gt_control_handle *handle, char *buffer, size_t bytes,
			   struct gt_message *message)
{
	(void)message;
	return read_lines(handle, format_text, buffer, bytes);
}

static int64_t read_id(struct gt_control_handle *handle, char *buffer, size_t bytes,
		       struct gt_message *message)
{
	(void)message;
	return read_lines(handle, "316\n", buffer, bytes);
}

/* The index'th of all, sched_switch first. */
static int find_event(struct gt_control_target *target, uint64_t index,
		      struct gt_control_event *event)
{
	uint64_t value;

	if (look_up(target, &value) == 0) {
		if (index == 0) {
			event->format.system = SYSTEM;
			event->format.name = EVENT;
			event->enabled = value != 0;
			return 0;
		}
		index--;
	}
	return target->ops->event != NULL ? target->ops->event(target, index, event) : GT_ENOENT;
}

/* A line each. only_enabled: of those that are on. */
static int64_t read_events(struct gt_control_handle *handle, bool only_enabled, char *buffer,
			   size_t bytes)
{
	struct gt_control_event event;
	size_t given = 0;

	while (given < bytes && find_event(handle->target, handle->line, &event) == 0) {
		const struct gt_row_line line = { { event.format.system, ":", event.format.name,
						    "\n" } };

		if (only_enabled && !event.enabled && handle->line_given == 0)
			handle->line++;
		else if (!gt_row_give_line(handle, &line, buffer, bytes, &given))
			break;
	}
	return (int64_t)given;
}

static int64_t read_available(struct gt_control_handle *handle, char *buffer, size_t bytes,
			      struct gt_message *message)
{
	(void)message;
	return read_events(handle, false, buffer, bytes);
}

/* Behind the events come the words that wait for an object: their lines have numbers from here on. */
#define WAITING (UINT64_C(1) << 62)

static int64_t read_set(struct gt_control_handle *handle, char *buffer, size_t bytes,
			struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	struct gt_control_event event;
	char word[GT_CONTROL_WORD_BYTES];
	size_t given = 0;

	(void)message;
	if (handle->line < WAITING)
		given = (size_t)read_events(handle, true, buffer, bytes);
	if (handle->line < WAITING && find_event(handle->target, handle->line, &event) != 0)
		handle->line = WAITING;
	while (handle->line >= WAITING && ops->event_waiting != NULL &&
	       ops->event_waiting(handle->target, handle->line - WAITING, word, sizeof(word)) ==
		       0) {
		const struct gt_row_line line = { { word, "\n" } };

		if (!gt_row_give_line(handle, &line, buffer, bytes, &given))
			break;
	}
	return (int64_t)given;
}

/* enable: 0, 1, or X where some are on. */

static void append_enabled(struct gt_control_handle *handle, const char *system)
{
	struct gt_control_event event;
	bool on = false, off = false;

	for (uint64_t i = 0; find_event(handle->target, i, &event) == 0; i++) {
		if (system != NULL &&
		    !gt_row_is_word(system, gt_row_length(system), event.format.system))
			continue;
		on |= event.enabled;
		off |= !event.enabled;
	}
	append(handle, "%c\n", on && off ? 'X' : on ? '1' : '0');
}

static int open_enable_all(struct gt_control_handle *handle, unsigned access,
			   struct gt_message *message)
{
	(void)message;
	if (access & GT_CONTROL_READ)
		append_enabled(handle, NULL);
	return 0;
}

static int open_enable(struct gt_control_handle *handle, unsigned access,
		       struct gt_message *message)
{
	uint64_t value = 0;

	(void)message;
	if (access & GT_CONTROL_READ) {
		look_up(handle->target, &value);
		append(handle, "%u\n", (unsigned)value);
	}
	return 0;
}

static int64_t write_enable(struct gt_control_handle *handle, const char *bytes, size_t count,
			    struct gt_message *message)
{
	uint64_t value = 0;
	int error = gt_row_number(bytes, count, 1, &value, message);

	if (error == 0)
		error = gt_row_set(handle, GT_CONTROL_SCHED_SWITCH, value, message);
	return error != 0 ? error : (int64_t)count;
}

static int64_t write_enable_all(struct gt_control_handle *handle, const char *bytes, size_t count,
				struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	struct gt_control_event event;
	uint64_t value = 0;
	int error = gt_row_number(bytes, count, 1, &value, message);
	const bool any = find_event(handle->target, 0, &event) == 0;

	if (error == 0 && !any && value != 0)
		error = REFUSE(message, GT_EINVAL, "there are no events here but calls");
	if (error == 0 && ops->event_set != NULL && ops->event(handle->target, 0, &event) == 0)
		error = ops->event_set(handle->target, NULL, 0, value != 0, message);
	if (error == 0 && has_events(handle->target))
		error = gt_row_set(handle, GT_CONTROL_SCHED_SWITCH, value, message);
	return error != 0 ? error : (int64_t)count;
}

/* set_event */

static int open_set(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	int error = 0;

	if (!(access & GT_CONTROL_WRITE) || !(access & GT_CONTROL_TRUNCATE))
		return 0;
	if (has_events(handle->target))
		error = gt_row_set(handle, GT_CONTROL_SCHED_SWITCH, 0, message);
	if (error == 0 && ops->event_set != NULL)
		error = ops->event_set(handle->target, NULL, 0, false, message);
	return error;
}

static bool is_event(const char *word, size_t bytes)
{
	static const char *const names[] = {
		EVENT,	SYSTEM ":" EVENT, SYSTEM ":*", SYSTEM ":",
		SYSTEM, ":" EVENT,	  "*:*",       "*:" EVENT,
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		if (gt_row_is_word(word, bytes, names[i]))
			return true;
	}
	return false;
}

/* One word names sched_switch, events with fields, or both. */
static int set_word(struct gt_control_handle *handle, const char *word, size_t bytes, bool on,
		    struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	const bool is_switch = has_events(handle->target) && is_event(word, bytes);
	int error = GT_EINVAL;

	if (is_switch)
		error = gt_row_set(handle, GT_CONTROL_SCHED_SWITCH, on, message);
	if (ops->event_set != NULL && bytes > 0 && (error == 0 || !is_switch)) {
		int more = ops->event_set(handle->target, word, bytes, on, message);

		error = more == GT_EINVAL && is_switch ? error : more;
	}
	if (error != GT_EINVAL)
		return error;
	return REFUSE(message, GT_EINVAL,
		      ops->event_set == NULL && !has_events(handle->target)
			      ? "there is no event '%.*s': only calls are traced here"
			      : "there is no event '%.*s'; available_events lists them",
		      SHOWN(word, bytes));
}

static int64_t write_set(struct gt_control_handle *handle, const char *bytes, size_t count,
			 struct gt_message *message)
{
	const char *word;
	size_t word_bytes;
	int64_t taken = gt_row_next_word(handle, bytes, count, &word, &word_bytes, message);
	bool off;
	int error;

	if (taken < 0 || word_bytes == 0)
		return taken;
	off = word[0] == '!';
	error = set_word(handle, word + off, word_bytes - off, !off, message);
	return error != 0 ? error : taken;
}

/* The rows of one event with fields. */

static int event_of(const struct gt_control_handle *handle, struct gt_control_event *event,
		    struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;

	return ops->event != NULL && ops->event(handle->target, handle->file->argument, event) == 0
		       ? 0
		       : REFUSE(message, GT_ENOENT, "there is no such event any more");
}

static int open_event(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_control_event event;
	int error = event_of(handle, &event, message);

	if (error == 0 && access & GT_CONTROL_READ)
		append(handle, "%u%s\n", (unsigned)event.enabled, event.soft ? "*" : "");
	return error;
}

static int open_system(struct gt_control_handle *handle, unsigned access,
		       struct gt_message *message)
{
	struct gt_control_event event;
	int error = event_of(handle, &event, message);

	if (error == 0 && access & GT_CONTROL_READ)
		append_enabled(handle, event.format.system);
	return error;
}

static int64_t write_named(struct gt_control_handle *handle, bool system, const char *bytes,
			   size_t count, struct gt_message *message)
{
	struct gt_control_event event;
	uint64_t value = 0;
	char word[512];
	int error = gt_row_number(bytes, count, 1, &value, message);

	if (error == 0)
		error = event_of(handle, &event, message);
	if (error == 0) {
		const size_t length = gt_format(word, sizeof(word), "%s:%s", event.format.system,
						system ? "*" : event.format.name);

		error = handle->target->ops->event_set(handle->target, word, length, value != 0,
						       message);
	}
	return error != 0 ? error : (int64_t)count;
}

static int64_t write_event(struct gt_control_handle *handle, const char *bytes, size_t count,
			   struct gt_message *message)
{
	return write_named(handle, false, bytes, count, message);
}

static int64_t write_system(struct gt_control_handle *handle, const char *bytes, size_t count,
			    struct gt_message *message)
{
	return write_named(handle, true, bytes, count, message);
}

static int open_id(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_control_event event;
	int error = event_of(handle, &event, message);

	(void)access;
	if (error == 0)
		append(handle, "%u\n", GT_EVENT_FIRST_ID + event.format.number);
	return error;
}

/* The number of fields that are shown: the six arguments of a raw system call are one array on Linux. */
static uint32_t shown_fields(const struct gt_event_format *format)
{
	return gt_event_call_of(format) == GT_EVENT_RAW_ENTER && format->field_count > 2
		       ? 2
		       : format->field_count;
}

static void put_field(const struct gt_event_format *format, uint32_t i, char *line, size_t room)
{
	const struct gt_event_field *field = &format->fields[i];

	if (i == 1 && gt_event_call_of(format) == GT_EVENT_RAW_ENTER)
		gt_format(line, room,
			  "\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n");
	else if (field->is_string || field->count)
		gt_format(line, room,
			  "\tfield:__data_loc %s[] %s;\toffset:%u;\tsize:4;\tsigned:%u;\n",
			  field->is_string ? "char" : field->type, field->name, 8 + 8 * i,
			  field->is_string || field->is_signed);
	else
		gt_format(line, room, "\tfield:%s %s;\toffset:%u;\tsize:%u;\tsigned:%u;\n",
			  field->type, field->name, 8 + 8 * i, field->bytes, field->is_signed);
}

/* Writes a part of an event's format: the lines before the fields, a line for each field, then the rest. Each field has a
 * word of 8 bytes behind the common fields; a number uses as many of them as it has. False: there is no such part. */
static bool put_format_part(const struct gt_event_format *format, uint64_t part, char *line,
			    size_t room)
{
	static const char print[] = "\nprint fmt: ";
	const uint32_t fields = shown_fields(format);
	char *end;

	if (part == 0) {
		gt_format(line, room,
			  "name: %s\nID: %u\nformat:\n"
			  "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			  "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
			  "\tfield:unsigned char "
			  "common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
			  "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
			  format->name, GT_EVENT_FIRST_ID + format->number);
	} else if (part <= fields) {
		put_field(format, (uint32_t)part - 1, line, room);
	} else if (part == fields + 1) {
		__builtin_memcpy(line, print, sizeof(print));
		end = gt_event_put_print_format(format, line + sizeof(print) - 1,
						room - sizeof(print) - 1);
		*end++ = '\n';
		*end = '\0';
	}
	return part <= fields + 1;
}

/* Room for 16 fields with long names. */
#define FORMAT_PART_BYTES 4096

static int64_t read_event_format(struct gt_control_handle *handle, char *buffer, size_t bytes,
				 struct gt_message *message)
{
	struct gt_control_event event;
	char text[FORMAT_PART_BYTES];
	const int error = event_of(handle, &event, message);
	size_t given = 0;

	while (error == 0 && given < bytes &&
	       put_format_part(&event.format, handle->line, text, sizeof(text))) {
		const struct gt_row_line line = { { text } };

		if (!gt_row_give_line(handle, &line, buffer, bytes, &given))
			break;
	}
	return error != 0 ? error : (int64_t)given;
}

#define LIVE (GT_CONTROL_PROGRAM | GT_CONTROL_KERNEL)

static const struct gt_control_file event_files[] = {
	[GT_EVENT_ENABLE] = ROW(NULL, "a line where it happens: 0 or 1", GT_CONTROL_ALL,
				.open = open_event, .read = gt_row_read_text, .write = write_event),
	[GT_EVENT_FORMAT] = ROW(NULL, "what is in it", GT_CONTROL_ALL, .read = read_event_format),
	[GT_EVENT_ID] =
		ROW(NULL, "its number", GT_CONTROL_ALL, .open = open_id, .read = gt_row_read_text),
	[GT_EVENT_FILTER] =
		ROW(NULL, "which of them are recorded: an expression", LIVE,
		    .read = gt_event_rules_read_filter, .write = gt_event_rules_write_filter),
	[GT_EVENT_TRIGGER] =
		ROW(NULL, "what is done where it happens: traceoff, stacktrace, …", LIVE,
		    .open = gt_event_rules_open_trigger, .read = gt_event_rules_read_trigger,
		    .write = gt_event_rules_write_trigger),
	[GT_EVENT_HIST] = ROW(NULL, "what its histograms have counted", LIVE,
			      .open = gt_event_rules_open_hist, .read = gt_event_rules_read_hist,
			      .close = gt_event_rules_close_hist),
	[GT_EVENT_SYSTEM_FILTER] =
		ROW(NULL, "the same of those of the system that have its fields", LIVE,
		    .open = gt_event_rules_open_system, .read = gt_row_read_text,
		    .write = gt_event_rules_write_system),
	[GT_EVENT_SYSTEM_ENABLE] =
		ROW(NULL, "all of the system: 0 or 1", GT_CONTROL_ALL, .open = open_system,
		    .read = gt_row_read_text, .write = write_system),
};

struct gt_control_file gt_control_event_file(enum gt_control_event_file which, const char *path,
					     uint64_t index)
{
	struct gt_control_file file = event_files[which];

	file.path = path;
	file.argument = index;
	return file;
}

/* The file filter of a system: trace-cmd wants one, and clears it. */

static int64_t read_filter(struct gt_control_handle *handle, char *buffer, size_t bytes,
			   struct gt_message *message)
{
	(void)message;
	return read_lines(handle, "none\n", buffer, bytes);
}

static int64_t write_filter(struct gt_control_handle *handle, const char *bytes, size_t count,
			    struct gt_message *message)
{
	int64_t taken = (int64_t)count;

	(void)handle;
	gt_row_strip(&bytes, &count);
	if (count > 0 && !gt_row_is_word(bytes, count, "0"))
		return REFUSE(message, GT_EINVAL,
			      "events are not filtered here: all of the program's are shown");
	return taken;
}

/* Takes the last word, if no line end followed it. */
static int close_set(struct gt_control_handle *handle, struct gt_message *message)
{
	size_t bytes = handle->text_bytes;
	int64_t taken;

	if (!(handle->access & GT_CONTROL_WRITE) || bytes == 0)
		return 0;
	handle->text_bytes = 0;
	handle->text[bytes] = ' ';
	taken = write_set(handle, handle->text, bytes + 1, message);
	return taken < 0 ? (int)taken : 0;
}

#define HOSTED (GT_CONTROL_PROGRAM | GT_CONTROL_RECORDING)

static const struct gt_control_file files[] = {
	ROW("available_events", "events besides calls", GT_CONTROL_ALL, .flags = GT_CONTROL_TOP,
	    .read = read_available),
	ROW("set_event", "events that are switched on: words SYSTEM:EVENT, !EVENT", GT_CONTROL_ALL,
	    .open = open_set, .read = read_set, .write = write_set, .close = close_set,
	    .writable = GT_CONTROL_ALL),
	ROW("events/enable", "all of them: 0 or 1", GT_CONTROL_ALL, .open = open_enable_all,
	    .read = gt_row_read_text, .write = write_enable_all, .writable = GT_CONTROL_ALL),
	ROW("events/sched/enable", "the same", HOSTED, .exists = has_events, .open = open_enable,
	    .read = gt_row_read_text, .write = write_enable, .writable = GT_CONTROL_ALL),
	ROW("events/sched/sched_switch/enable",
	    "a line where a thread leaves its CPU or comes back: 0 or 1", HOSTED,
	    .exists = has_events, .open = open_enable, .read = gt_row_read_text,
	    .write = write_enable, .writable = GT_CONTROL_ALL),
	ROW("events/sched/sched_switch/format", "what is in it", HOSTED, .exists = has_events,
	    .read = read_format),
	ROW("events/sched/sched_switch/filter", "none: it cannot be set", HOSTED,
	    .exists = has_events, .read = read_filter, .write = write_filter,
	    .writable = GT_CONTROL_ALL),
	ROW("events/sched/sched_switch/id", "its number in trace_pipe_raw", HOSTED,
	    .exists = has_events, .read = read_id),
};

const struct gt_control_group gt_control_events_files = { files, COUNT(files) };
