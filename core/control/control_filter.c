/* SPDX-License-Identifier: MIT */
/*
 * Which functions and threads: the lists of functions, written a word a call, and set_ftrace_pid.
 * A word is a name, a glob, the number of a line of available_filter_functions, `!` before one to
 * take it out, `glob:mod:OBJECT`, or `glob:command[:count]`. Behaviour: kernel/trace/ftrace.c
 * (ftrace_regex_open, ftrace_process_regex, ftrace_regex_release): what is refused ends the write
 * and leaves the words before it, and a list that was opened with `>` empty otherwise.
 */
#include "core/control/control_log.h"
#include "core/control/control_row.h"
#include "core/control/control_table.h"

/* In the order of enum gt_control_action. */
static const char *const actions[GT_ACTIONS] = { "traceon",    "traceoff", "snapshot",
						 "stacktrace", "dump",	   "cpudump" };

static int open_list(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	enum gt_control_list which = (enum gt_control_list)(handle->file->argument & 0xff);
	int error;

	if (access & GT_CONTROL_WRITE) {
		if (target->ops->edit_open == NULL)
			return gt_row_not_here(message);
		return target->ops->edit_open(target, which, access & GT_CONTROL_TRUNCATE,
					      &handle->opened, message);
	}
	if (!(access & GT_CONTROL_READ))
		return 0;
	if (target->ops->list_open == NULL)
		return gt_row_not_here(message);
	error = target->ops->list_open(target, which, &handle->opened, message);
	handle->unset = error == 1;
	return error < 0 ? error : 0;
}

/* Behind the functions of set_ftrace_filter stand those with commands, the newest first. */
static bool make_command(struct gt_control_handle *handle, uint64_t index, struct gt_row_line *line)
{
	struct gt_control_target *target = handle->target;
	struct gt_control_command command;
	char name[GT_CONTROL_WORD_BYTES];
	uint64_t count = 0;

	if (handle->file->argument != GT_CONTROL_FILTER || target->ops->command_read == NULL)
		return false;
	while (target->ops->command_read(target, count, &command, name, sizeof(name)) == 0)
		count++;
	if (index >= count ||
	    target->ops->command_read(target, count - 1 - index, &command, name, sizeof(name)) !=
		    0 ||
	    command.action >= GT_ACTIONS)
		return false;
	handle->text_bytes = 0;
	append(handle, "%.*s:%s:", (int)command.function_bytes, command.function,
	       actions[command.action]);
	if (command.count == GT_ACTION_UNLIMITED)
		append(handle, "unlimited\n");
	else
		append(handle, "count=%llu\n", (unsigned long long)command.count);
	*line = (struct gt_row_line){ { handle->text } };
	return true;
}

#define WITH_ADDRESS 0x100 /* of a row's argument */

static bool make_name(struct gt_control_handle *handle, uint64_t index, struct gt_row_line *line)
{
	struct gt_control_target *target = handle->target;
	struct gt_control_name name = { .name = NULL };
	bool module;

	if (handle->opened == NULL ||
	    target->ops->list_read(target, handle->opened, index, &name) != 0)
		return false;
	module = name.module != NULL && name.module[0] != '\0';
	handle->text_bytes = 0;
	if (handle->file->argument & WITH_ADDRESS)
		append(handle, "%016llx ", (unsigned long long)name.address);
	handle->text[handle->text_bytes] = '\0';
	*line = (struct gt_row_line){ { handle->text, name.name, module ? " [" : "",
					module ? name.module : "", module ? "]" : "",
					name.note != NULL ? name.note : "" } };
	return true;
}

static int64_t read_list(struct gt_control_handle *handle, char *buffer, size_t bytes,
			 struct gt_message *message)
{
	const struct gt_row_line end = { { "\n" } };
	uint64_t first = handle->unset;
	size_t given = 0;

	(void)message;
	if (handle->access & GT_CONTROL_WRITE)
		return 0; /* the list changes when the file is closed */
	while (given < bytes) {
		struct gt_row_line line;

		/* A name and the end of its line are two pieces of `line`, so that no name is too
		 * long: even numbers are names, odd ones ends. */
		if (handle->unset && handle->line == 0) {
			line = (struct gt_row_line){
				{ handle->file->argument == GT_CONTROL_NOTRACE ||
						  handle->file->argument == GT_CONTROL_GRAPH_NOTRACE
					  ? "#### no functions disabled ####\n"
					  : "#### all functions enabled ####\n" }
			};
		} else if (handle->given) {
			if (!make_command(handle, handle->line - handle->bad_at, &line))
				break;
		} else if ((handle->line - first) % 2 == 1) {
			line = end;
		} else if (!make_name(handle, (handle->line - first) / 2, &line)) {
			handle->given = true; /* all names; `bad_at` is the first command's line */
			handle->bad_at = (size_t)handle->line;
			continue;
		}
		if (!gt_row_give_line(handle, &line, buffer, bytes, &given))
			break;
	}
	return (int64_t)given;
}

/* A word, taken apart */

struct word {
	bool remove;
	const char *function; /* before the first lone colon */
	size_t function_bytes;
	const char *command; /* NULL: none */
	size_t command_bytes;
	const char *rest; /* behind the second colon; NULL: there is none */
	size_t rest_bytes;
};

/* The offset of the next separator, a single colon: `::` is part of a C++ name. */
static size_t next_colon(const char *text, size_t bytes)
{
	size_t i = 0;

	while (i < bytes) {
		if (text[i] != ':')
			i++;
		else if (i + 1 < bytes && text[i + 1] == ':')
			i += 2;
		else
			break;
	}
	return i;
}

static struct word take_apart(const char *text, size_t bytes)
{
	struct word word = { .remove = bytes > 0 && text[0] == '!' };
	size_t colon;

	if (word.remove) {
		text++;
		bytes--;
	}
	colon = next_colon(text, bytes);
	word.function = text;
	word.function_bytes = colon;
	if (colon == bytes)
		return word;
	text += colon + 1;
	bytes -= colon + 1;
	colon = 0; /* what follows a command has no names */
	while (colon < bytes && text[colon] != ':')
		colon++;
	word.command = text;
	word.command_bytes = colon;
	if (colon < bytes) {
		word.rest = text + colon + 1;
		word.rest_bytes = bytes - colon - 1;
	}
	return word;
}

/* Adds the function of a bare number: that line of available_filter_functions. */
static int add_by_line(struct gt_control_handle *handle, const struct word *word,
		       struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	struct gt_control_name name = { .name = NULL };
	uint64_t line = 0;
	void *list = NULL;
	int error = gt_row_number(word->function, word->function_bytes, UINT32_MAX, &line, message);

	if (error == 0 && target->ops->list_open == NULL)
		return gt_row_not_here(message);
	if (error == 0)
		error = target->ops->list_open(target, GT_CONTROL_AVAILABLE, &list, message);
	if (error != 0)
		return error < 0 ? error : GT_EINVAL;
	if (line == 0 || target->ops->list_read(target, list, line - 1, &name) != 0)
		error = REFUSE(message, GT_EINVAL, "available_filter_functions has no line '%.*s'",
			       SHOWN(word->function, word->function_bytes));
	else if (word->remove)
		error = target->ops->edit_remove(target, handle->opened, name.name,
						 gt_row_length(name.name), NULL, 0, message);
	else
		error = target->ops->edit_add(target, handle->opened, name.name,
					      gt_row_length(name.name), NULL, 0, true, message);
	target->ops->list_close(target, list);
	return error;
}

static bool is_unlimited(const struct word *word)
{
	return word->rest == NULL || gt_row_is_word(word->rest, word->rest_bytes, "unlimited");
}

/* Whether the same command is set. As on Linux, a command with a count and one without are two commands. */
static bool has_command(struct gt_control_target *target, const struct word *word,
			enum gt_control_action action)
{
	struct gt_control_command command;
	char name[GT_CONTROL_WORD_BYTES];

	for (uint64_t i = 0;
	     target->ops->command_read(target, i, &command, name, sizeof(name)) == 0; i++) {
		if (command.action == action && command.function_bytes == word->function_bytes &&
		    (command.count == GT_ACTION_UNLIMITED) == is_unlimited(word) &&
		    __builtin_memcmp(command.function, word->function, word->function_bytes) == 0)
			return true;
	}
	return false;
}

static int parse_count(struct gt_control_handle *handle, const struct word *word, uint64_t *count,
		       struct gt_message *message)
{
	*count = GT_ACTION_UNLIMITED;
	if (is_unlimited(word))
		return 0;
	if (word->rest_bytes > 6 && gt_row_is_word(word->rest, 6, "count="))
		return gt_row_number(word->rest + 6, word->rest_bytes - 6, UINT32_MAX, count,
				     message); /* as it is listed */
	handle->bad_at += (size_t)(word->rest - word->function);
	return gt_row_number(word->rest, word->rest_bytes, UINT32_MAX, count, message);
}

static int change_command(struct gt_control_handle *handle, const struct word *word,
			  struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	struct gt_control_command command = { .function = word->function,
					      .function_bytes = word->function_bytes };
	uint32_t action = 0;

	while (action < GT_ACTIONS &&
	       !gt_row_is_word(word->command, word->command_bytes, actions[action]))
		action++;
	if (action == GT_ACTIONS || handle->file->argument != GT_CONTROL_FILTER) {
		handle->bad_at += (size_t)(word->command - word->function);
		return REFUSE(message, GT_EINVAL, "no such command here: '%.*s'",
			      SHOWN(word->command, word->command_bytes));
	}
	command.action = (enum gt_control_action)action;
	if (word->remove) {
		if (target->ops->command_remove == NULL || target->ops->command_read == NULL)
			return gt_row_not_here(message);
		if (!has_command(target, word, command.action))
			return REFUSE(message, GT_ENODEV,
				      "'%.*s' has no such command; one with a count is taken away "
				      "as !FUNCTION:COMMAND:0",
				      SHOWN(word->function, word->function_bytes));
		command.count = is_unlimited(word) ? GT_ACTION_UNLIMITED : 1;
		return target->ops->command_remove(target, &command, message);
	}
	if (target->ops->command_set == NULL)
		return gt_row_not_here(message);
	if (parse_count(handle, word, &command.count, message) != 0)
		return GT_EINVAL;
	if (target->ops->command_read != NULL && has_command(target, word, command.action))
		return REFUSE(message, GT_EINVAL, "'%.*s' has this command",
			      SHOWN(word->function, word->function_bytes));
	return target->ops->command_set(target, &command, message);
}

static int change_list(struct gt_control_handle *handle, const char *text, size_t bytes,
		       struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	struct word word = take_apart(text, bytes);
	const char *module = NULL;
	size_t module_bytes = 0;
	size_t digits = 0;

	if (word.command != NULL && gt_row_is_word(word.command, word.command_bytes, "mod")) {
		/* without the name of an object: functions of any */
		module = word.rest_bytes != 0 ? word.rest : NULL;
		module_bytes = word.rest_bytes;
		if (word.function_bytes == 0 && module != NULL) {
			word.function = "*";
			word.function_bytes = 1;
		}
	} else if (word.command != NULL) {
		return change_command(handle, &word, message);
	}
	while (digits < word.function_bytes && word.function[digits] >= '0' &&
	       word.function[digits] <= '9')
		digits++;
	if (digits > 0 && digits == word.function_bytes && module == NULL)
		return add_by_line(handle, &word, message);
	if (word.function_bytes == 0)
		return REFUSE(message, GT_EINVAL, "the name of a function is wanted");
	if (word.remove)
		return ops->edit_remove(handle->target, handle->opened, word.function,
					word.function_bytes, module, module_bytes, message);
	return ops->edit_add(handle->target, handle->opened, word.function, word.function_bytes,
			     module, module_bytes, false, message);
}

/* The object behind a name, as available_filter_functions lists it. */
static bool is_object(const char *word, size_t bytes)
{
	if (bytes < 3 || word[0] != '[' || word[bytes - 1] != ']')
		return false;
	for (size_t i = 0; i < bytes; i++) {
		if (word[i] == '.')
			return true;
	}
	return false;
}

static int64_t write_list(struct gt_control_handle *handle, const char *bytes, size_t count,
			  struct gt_message *message)
{
	const char *word = NULL;
	size_t word_bytes;
	int64_t taken = gt_row_next_word(handle, bytes, count, &word, &word_bytes, message);
	int error;

	if (taken < 0 || word_bytes == 0)
		return taken;
	/* What reading gives may be written back: "#### all functions enabled ####" too. */
	if (word[0] == '#') {
		const char *end = bytes + taken;

		while (end < bytes + count && end[-1] != '\n')
			end++;
		return end - bytes;
	}
	if (is_object(word, word_bytes))
		return taken;
	error = change_list(handle, word, word_bytes, message);
	return error != 0 ? error : taken;
}

static int close_list(struct gt_control_handle *handle, struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	struct gt_message why;
	int error = 0;
	int closed = 0;

	if (handle->opened == NULL)
		return 0;
	if (!(handle->access & GT_CONTROL_WRITE)) {
		target->ops->list_close(target, handle->opened);
		return 0;
	}
	if (handle->text_bytes > 0) {
		size_t bytes = handle->text_bytes;

		handle->text_bytes = 0;
		handle->text[bytes] = ' ';
		handle->bad_at = 0;
		error = (int)write_list(handle, handle->text, bytes + 1, &why);
		error = error < 0 ? error : 0;
		if (error != 0) /* no write is told of it */
			gt_control_log_error(handle, handle->text, bytes, &why);
	}
	closed = target->ops->edit_close(target, handle->opened, message);
	if (error != 0)
		*message = why;
	return error != 0 ? error : closed;
}

/* Threads */

#define THREADS_MOST (sizeof(((struct gt_control_handle *)0)->text) / sizeof(uint32_t))

static int open_threads(struct gt_control_handle *handle, unsigned access,
			struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;

	if (ops->thread == NULL || ops->threads_set == NULL)
		return gt_row_not_here(message);
	if ((access & GT_CONTROL_WRITE) && (access & GT_CONTROL_TRUNCATE))
		return ops->threads_set(handle->target,
					(enum gt_control_threads)handle->file->argument, NULL, 0,
					message);
	return 0;
}

static int64_t read_threads(struct gt_control_handle *handle, char *buffer, size_t bytes,
			    struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	size_t given = 0;

	(void)message;
	while (given < bytes) {
		struct gt_row_line line = { { handle->text } };
		uint32_t tid;

		handle->text_bytes = 0;
		if (ops->thread(handle->target, (enum gt_control_threads)handle->file->argument,
				(uint32_t)handle->line, &tid) == 0)
			append(handle, "%u\n", tid);
		else if (handle->line == 0)
			append(handle, "no pid\n");
		else
			break;
		if (!gt_row_give_line(handle, &line, buffer, bytes, &given))
			break;
		handle->given = true;
	}
	return (int64_t)given;
}

/* Takes all words of one write at once: if any of them is no number, none is taken. */
static int64_t write_threads(struct gt_control_handle *handle, const char *bytes, size_t count,
			     struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	enum gt_control_threads which = (enum gt_control_threads)handle->file->argument;
	uint32_t tids[THREADS_MOST];
	uint32_t listed = 0;
	size_t at = 0;
	int error;

	while (listed < THREADS_MOST &&
	       ops->thread(handle->target, which, listed, &tids[listed]) == 0)
		listed++;
	while (at < count) {
		uint64_t number = 0;
		uint32_t known = 0;
		size_t start;

		while (at < count && gt_row_is_blank(bytes[at]))
			at++;
		for (start = at; at < count && !gt_row_is_blank(bytes[at]); at++)
			continue;
		if (start == at)
			break;
		handle->bad_at = start;
		if (gt_row_number(bytes + start, at - start, INT32_MAX, &number, message) != 0)
			return GT_EINVAL;
		while (known < listed && tids[known] != number)
			known++;
		if (known == THREADS_MOST)
			return REFUSE(message, GT_ENOSPC, "at most %d threads can be listed",
				      (int)THREADS_MOST);
		tids[known] = (uint32_t)number;
		listed += known == listed;
	}
	error = ops->threads_set(handle->target, which, tids, listed, message);
	return error != 0 ? error : (int64_t)count;
}

static bool has_threads(const struct gt_control_target *target)
{
	return target->ops->threads_set != NULL;
}

/* A row of a list of threads whose events are recorded; only programs have them. */
#define EVENT_THREADS(path, help, which)                                                \
	ROW(path, help, GT_CONTROL_PROGRAM, .argument = (which), .exists = has_threads, \
	    .open = open_threads, .read = read_threads, .write = write_threads)

#define READ_LIST(path, help, kinds, which)                                                     \
	ROW(path, help, kinds, .flags = GT_CONTROL_TOP, .argument = (which), .open = open_list, \
	    .read = read_list, .close = close_list)

#define WRITE_LIST(path, help, which, ...)                                       \
	ROW(path, help, GT_CONTROL_LIVE, .argument = (which), .open = open_list, \
	    .read = read_list, .write = write_list, .close = close_list, ##__VA_ARGS__)

#define THREADS(path, help, which)                                                   \
	ROW(path, help, GT_CONTROL_LIVE, .argument = (which), .exists = has_threads, \
	    .open = open_threads, .read = read_threads, .write = write_threads)

static const struct gt_control_file files[] = {
	READ_LIST("available_filter_functions", "every function that can be traced", GT_CONTROL_ALL,
		  GT_CONTROL_AVAILABLE),
	READ_LIST("available_filter_functions_addrs", "the same with their addresses",
		  GT_CONTROL_ALL, GT_CONTROL_AVAILABLE | WITH_ADDRESS),
	READ_LIST("enabled_functions", "the functions that are traced now", GT_CONTROL_LIVE,
		  GT_CONTROL_ENABLED),
	READ_LIST("touched_functions", "the functions that were traced at any time",
		  GT_CONTROL_LIVE, GT_CONTROL_TOUCHED),
	WRITE_LIST("set_ftrace_filter",
		   "only these functions: names, globs, glob:mod:object; !name takes one out; "
		   "function:command:count",
		   GT_CONTROL_FILTER),
	WRITE_LIST("set_ftrace_notrace", "not these functions", GT_CONTROL_NOTRACE),
	WRITE_LIST("set_graph_function", "only what is called below these functions",
		   GT_CONTROL_GRAPH),
	WRITE_LIST("set_graph_notrace", "not what is called below these functions",
		   GT_CONTROL_GRAPH_NOTRACE),
	THREADS("set_ftrace_pid", "only these threads; with function-fork what they start too",
		GT_CONTROL_PIDS),
	THREADS("set_ftrace_notrace_pid", "not these threads", GT_CONTROL_NOTRACE_PIDS),
	EVENT_THREADS("set_event_pid", "only these threads' events", GT_CONTROL_EVENT_PIDS),
	EVENT_THREADS("set_event_notrace_pid", "not these threads' events",
		      GT_CONTROL_EVENT_NOTRACE_PIDS),
};

const struct gt_control_group gt_control_filter_files = { files, COUNT(files) };
