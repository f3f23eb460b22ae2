/* SPDX-License-Identifier: MIT */
/*
 * error_log, as kernel/trace/trace.c shows it:
 *
 *	[    5.270468] set_ftrace_filter: error: no function matches 'nosuch'
 *	  Command: alpha nosuch
 *	                 ^
 *
 * Linux logs the errors of filters, histograms and probes only; here every refused write is logged.
 * Guarantees: a reader sees whole errors, as they are when it reads each of them.
 */
#include "core/control/control_log.h"
#include "core/control/control_row.h"

/* Held for a copy of 500 bytes. */
static void lock(struct gt_control_log *log)
{
	while (__atomic_exchange_n(&log->lock, 1, __ATOMIC_ACQUIRE) != 0)
		__builtin_ia32_pause();
}

static void unlock(struct gt_control_log *log)
{
	__atomic_store_n(&log->lock, 0, __ATOMIC_RELEASE);
}

void gt_control_log_error(struct gt_control_handle *handle, const char *bytes, size_t count,
			  const struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	struct gt_control_log *log = target->log;
	uint64_t now = 0;
	struct gt_control_log_line *line;
	size_t kept = 0;

	if (log == NULL || message == NULL)
		return;
	if (target->ops->get != NULL)
		target->ops->get(target, GT_CONTROL_NOW_NS, &now);
	lock(log);
	line = &log->line[log->next++ % GT_CONTROL_LOG_LINES];
	if (log->next - log->first > GT_CONTROL_LOG_LINES)
		log->first = log->next - GT_CONTROL_LOG_LINES;
	line->ns = now;
	gt_format(line->place, sizeof(line->place), "%s",
		  handle->bad_in != NULL ? handle->bad_in : handle->file->path);
	gt_format(line->error, sizeof(line->error), "%s", message->text);
	bytes += handle->bad_from < count ? handle->bad_from : count;
	count -= handle->bad_from < count ? handle->bad_from : count;
	while (count > 0 && gt_row_is_blank(bytes[count - 1]))
		count--;
	for (; kept < count && kept < sizeof(line->command) - 1; kept++) {
		unsigned char byte = (unsigned char)bytes[kept];

		line->command[kept] = (char)(byte < ' ' || byte == 0x7f ? ' ' : byte);
	}
	line->command[kept] = '\0';
	/* A place that was set may be behind the end of the command: something is missing there. */
	line->bad_at =
		(uint32_t)(handle->bad_at < kept || handle->bad_in != NULL ? handle->bad_at : kept);
	if (line->bad_at > sizeof(line->command))
		line->bad_at = sizeof(line->command);
	unlock(log);
}

static bool has_log(const struct gt_control_target *target)
{
	return target->log != NULL;
}

static int open_log(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_control_log *log = handle->target->log;

	(void)message;
	lock(log);
	if ((access & GT_CONTROL_WRITE) && (access & GT_CONTROL_TRUNCATE))
		log->first = log->next;
	handle->line = log->first;
	unlock(log);
	return 0;
}

/* The error `number` as text into the handle; false: there is none. */
static bool make_error(struct gt_control_handle *handle, uint32_t number)
{
	struct gt_control_log *log = handle->target->log;
	struct gt_control_log_line line;

	lock(log);
	if (number - log->first >= log->next - log->first) {
		unlock(log);
		return false;
	}
	line = log->line[number % GT_CONTROL_LOG_LINES];
	unlock(log);
	handle->text_bytes = 0;
	handle->line_given = 0;
	append(handle, "[%5llu.%06llu] %s: error: %s\n  Command: %s\n%*s^\n",
	       (unsigned long long)(line.ns / 1000000000),
	       (unsigned long long)(line.ns / 1000 % 1000000), line.place, line.error, line.command,
	       (int)line.bad_at + 11, "");
	return true;
}

static int64_t read_log(struct gt_control_handle *handle, char *buffer, size_t bytes,
			struct gt_message *message)
{
	struct gt_control_log *log = handle->target->log;
	int64_t given = 0;

	while ((size_t)given < bytes) {
		if (handle->line_given == handle->text_bytes) {
			lock(log);
			if ((uint32_t)handle->line - log->first > log->next - log->first)
				handle->line = log->first; /* forgotten meanwhile */
			unlock(log);
			if (!make_error(handle, (uint32_t)handle->line))
				break;
			handle->line++;
		}
		given += gt_row_read_text(handle, buffer + given, bytes - (size_t)given, message);
	}
	return given;
}

static const struct gt_control_file files[] = {
	ROW("error_log", "the last errors of writes, with a caret under the place; emptied by >",
	    GT_CONTROL_LIVE, .exists = has_log, .open = open_log, .read = read_log,
	    .write = gt_row_write_nothing),
};

const struct gt_control_group gt_control_log_files = { files, COUNT(files) };
