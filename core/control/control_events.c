/* SPDX-License-Identifier: MIT */
/*
 * Events besides calls: of a program there is one, sched_switch, where the target knows its
 * threads' context switches; of a kernel there is none. Names, formats and what may be written are
 * those of kernel/trace/trace_events.c and include/trace/events/sched.h, Linux 6.1.
 */
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

static int64_t read_available(struct gt_control_handle *handle, char *buffer, size_t bytes,
			      struct gt_message *message)
{
	(void)message;
	return has_events(handle->target) ? read_lines(handle, SYSTEM ":" EVENT "\n", buffer, bytes)
					  : 0;
}

/* enable */

static int open_enable(struct gt_control_handle *handle, unsigned access,
		       struct gt_message *message)
{
	uint64_t value = 0;

	(void)message;
	if (access & GT_CONTROL_READ) {
		look_up(handle->target, &value);
		say(handle, "%u\n", (unsigned)value);
	}
	return 0;
}

static int64_t write_enable(struct gt_control_handle *handle, const char *bytes, size_t count,
			    struct gt_message *message)
{
	uint64_t value = 0;
	int error = gt_row_number(bytes, count, 1, &value, message);

	if (error == 0 && !has_events(handle->target))
		error = value ? REFUSE(message, GT_EINVAL, "there are no events here but calls")
			      : 0;
	else if (error == 0)
		error = gt_row_set(handle, GT_CONTROL_SCHED_SWITCH, value, message);
	return error != 0 ? error : (int64_t)count;
}

/* set_event */

static int open_set(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	uint64_t value = 0;

	if (!has_events(handle->target))
		return 0;
	if ((access & GT_CONTROL_WRITE) && (access & GT_CONTROL_TRUNCATE))
		return gt_row_set(handle, GT_CONTROL_SCHED_SWITCH, 0, message);
	if (access & GT_CONTROL_READ) {
		look_up(handle->target, &value);
		if (value != 0)
			say(handle, SYSTEM ":" EVENT "\n");
	}
	return 0;
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
	if (!has_events(handle->target))
		return REFUSE(message, GT_EINVAL,
			      "there is no event '%.*s': only calls are traced here",
			      SHOWN(word, word_bytes));
	if (!is_event(word + off, word_bytes - off))
		return REFUSE(message, GT_EINVAL,
			      "there is no event '%.*s'; available_events lists them",
			      SHOWN(word, word_bytes));
	error = gt_row_set(handle, GT_CONTROL_SCHED_SWITCH, !off, message);
	return error != 0 ? error : taken;
}

/* filter: trace-cmd wants one, and clears it. */

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

/* The word that still waits for its end. */
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
	    .open = open_set, .read = gt_row_read_text, .write = write_set, .close = close_set,
	    .writable = GT_CONTROL_ALL),
	ROW("events/enable", "all of them: 0 or 1", GT_CONTROL_ALL, .open = open_enable,
	    .read = gt_row_read_text, .write = write_enable, .writable = GT_CONTROL_ALL),
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
