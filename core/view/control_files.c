/* SPDX-License-Identifier: MIT */
/*
 * The table of control files and the functions of its rows. Guarantees: a value is read as one
 * snapshot whatever the size of the pieces; a refused value changes nothing and says why; parsing
 * looks at no byte outside the given range. Behaviour follows Linux's kernel/trace/trace.c and
 * ftrace.c; where a program is not a kernel the row's help says so.
 */
#include "core/view/control.h"
#include "core/view/message.h"

#define REFUSE(message, error, ...) (gt_message_set(message, __VA_ARGS__), (error))

/* Bytes of the writer, for a message: not too many of them. */
#define SHOWN(bytes, count) (int)((count) < 80 ? (count) : 80), (bytes)

static const struct {
	const char *name;
	uint32_t bit;
	bool graph; /* listed in trace_options only while function_graph is the tracer */
} options[] = {
	{ "print-parent", GT_OPTION_PRINT_PARENT, false },
	{ "sym-offset", GT_OPTION_SYM_OFFSET, false },
	{ "sym-addr", GT_OPTION_SYM_ADDR, false },
	{ "irq-info", GT_OPTION_IRQ_INFO, false },
	{ "context-info", GT_OPTION_CONTEXT_INFO, false },
	{ "overwrite", GT_OPTION_OVERWRITE, false },
	{ "function-fork", GT_OPTION_FUNCTION_FORK, false },
	{ "funcgraph-cpu", GT_OPTION_GRAPH_CPU, true },
	{ "funcgraph-overhead", GT_OPTION_GRAPH_OVERHEAD, true },
	{ "funcgraph-duration", GT_OPTION_GRAPH_DURATION, true },
	{ "funcgraph-proc", GT_OPTION_GRAPH_PROC, true },
	{ "funcgraph-abstime", GT_OPTION_GRAPH_ABSTIME, true },
	{ "funcgraph-tail", GT_OPTION_GRAPH_TAIL, true },
};

static const char *const tracers[] = { "nop", "function", "function_graph" };
static const char *const clocks[] = { "mono" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Bytes */

static size_t text_length(const char *text)
{
	size_t bytes = 0;

	while (text[bytes] != '\0')
		bytes++;
	return bytes;
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r' || byte == '\0';
}

static bool is_word(const char *bytes, size_t count, const char *word)
{
	if (count != text_length(word))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] != word[i])
			return false;
	}
	return true;
}

static void strip(const char **bytes, size_t *count)
{
	while (*count > 0 && is_blank(**bytes)) {
		(*bytes)++;
		(*count)--;
	}
	while (*count > 0 && is_blank((*bytes)[*count - 1]))
		(*count)--;
}

/* A whole number in decimal, as the kernel's kstrtoul reads it (a `+` may stand before it). */
static int parse_number(const char *bytes, size_t count, uint64_t highest, uint64_t *value,
			struct gt_message *message)
{
	const char *all = bytes;
	size_t all_count = count;
	uint64_t number = 0;

	if (count > 1 && bytes[0] == '+') {
		bytes++;
		count--;
	}
	if (count == 0)
		return REFUSE(message, GT_EINVAL, "a number is wanted, not '%.*s'",
			      SHOWN(all, all_count));
	for (size_t i = 0; i < count; i++) {
		uint64_t digit = (uint64_t)(unsigned char)bytes[i] - '0';

		if (digit > 9)
			return REFUSE(message, GT_EINVAL, "a number is wanted, not '%.*s'",
				      SHOWN(all, all_count));
		if (number > (highest - digit) / 10)
			return REFUSE(message, GT_EINVAL, "'%.*s' is too large",
				      SHOWN(all, all_count));
		number = number * 10 + digit;
	}
	*value = number;
	return 0;
}

static int not_here(struct gt_message *message)
{
	return REFUSE(message, GT_ENOTSUP, "this target does not offer it");
}

/* Values: a few lines at most, made when the file is opened */

/* Appends to the handle's text. */
#define say(handle, ...)                                  \
	((handle)->text_bytes +=                          \
	 gt_format((handle)->text + (handle)->text_bytes, \
		   sizeof((handle)->text) - (handle)->text_bytes, __VA_ARGS__))

static int64_t read_text(struct gt_control_handle *handle, char *buffer, size_t bytes,
			 struct gt_message *message)
{
	size_t left = handle->text_bytes - handle->line_given;

	(void)message;
	if (bytes > left)
		bytes = left;
	for (size_t i = 0; i < bytes; i++)
		buffer[i] = handle->text[handle->line_given + i];
	handle->line_given += bytes;
	return (int64_t)bytes;
}

static int get_value(struct gt_control_handle *handle, enum gt_control_value which, uint64_t *value,
		     struct gt_message *message)
{
	struct gt_control_target *target = handle->target;

	if (target->ops->get == NULL)
		return not_here(message);
	if (target->ops->get(target, which, value) != 0)
		return REFUSE(message, GT_EGONE, "the target does not answer");
	return 0;
}

static int set_value(struct gt_control_handle *handle, enum gt_control_value which, uint64_t value,
		     struct gt_message *message)
{
	struct gt_control_target *target = handle->target;

	message->text[0] = '\0';
	return target->ops->set != NULL ? target->ops->set(target, which, value, message)
					: not_here(message);
}

static int open_value(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	uint64_t value = 0;
	int error;

	if (!(access & GT_CONTROL_READ))
		return 0;
	error = get_value(handle, (enum gt_control_value)handle->file->argument, &value, message);
	if (error != 0)
		return error;
	switch (handle->file->argument) {
	case GT_CONTROL_TRACER:
		say(handle, "%s", gt_control_tracer_name((uint32_t)value));
		break;
	case GT_CONTROL_CLOCK_ID:
		for (uint32_t i = 0; i < COUNT(clocks); i++) {
			say(handle, "%s", i > 0 ? " " : "");
			say(handle, "%s", i == value ? "[" : "");
			say(handle, "%s", clocks[i]);
			say(handle, "%s", i == value ? "]" : "");
		}
		break;
	case GT_CONTROL_THRESHOLD_NS:
		say(handle, "%llu", (unsigned long long)(value / 1000));
		break;
	case GT_CONTROL_BUFFER_BYTES:
	case GT_CONTROL_TOTAL_BYTES:
		say(handle, "%llu", (unsigned long long)(value / 1024));
		break;
	default:
		say(handle, "%llu", (unsigned long long)value);
	}
	say(handle, "\n");
	return 0;
}

static int64_t write_value(struct gt_control_handle *handle, const char *bytes, size_t count,
			   struct gt_message *message)
{
	int64_t taken = (int64_t)count;
	enum gt_control_value which = (enum gt_control_value)handle->file->argument;
	uint64_t value = 0;
	int error = 0;

	strip(&bytes, &count);
	switch (which) {
	case GT_CONTROL_TRACER: {
		int tracer = gt_control_tracer(bytes, count);

		if (tracer < 0)
			return REFUSE(message, GT_EINVAL,
				      "no tracer '%.*s'; available_tracers lists them",
				      SHOWN(bytes, count));
		value = (uint64_t)tracer;
		break;
	}
	case GT_CONTROL_CLOCK_ID:
		while (value < COUNT(clocks) && !is_word(bytes, count, clocks[value]))
			value++;
		if (value == COUNT(clocks))
			return REFUSE(message, GT_EINVAL, "no clock '%.*s'; trace_clock lists them",
				      SHOWN(bytes, count));
		break;
	case GT_CONTROL_TRACING_ON:
		error = parse_number(bytes, count, UINT64_MAX, &value, message);
		value = value != 0;
		break;
	case GT_CONTROL_THRESHOLD_NS:
		error = parse_number(bytes, count, UINT64_MAX / 1000, &value, message);
		value *= 1000;
		break;
	case GT_CONTROL_BUFFER_BYTES:
		error = parse_number(bytes, count, UINT64_MAX / 1024, &value, message);
		if (error == 0 && value == 0)
			return REFUSE(message, GT_EINVAL, "a size above zero is wanted");
		value *= 1024;
		break;
	case GT_CONTROL_MAX_DEPTH:
		error = parse_number(bytes, count, UINT32_MAX, &value, message);
		break;
	default:
		return REFUSE(message, GT_EINVAL, "cannot be written");
	}
	if (error == 0)
		error = set_value(handle, which, value, message);
	return error != 0 ? error : taken;
}

static int open_available_tracers(struct gt_control_handle *handle, unsigned access,
				  struct gt_message *message)
{

	(void)access;
	(void)message;
	for (size_t i = COUNT(tracers); i > 0; i--) {
		say(handle, "%s", tracers[i - 1]);
		say(handle, "%c", i > 1 ? ' ' : '\n');
	}
	return 0;
}

/* tracing_enable/on and off act when they are read too: that is all that Nanos's users can do. */
static int switch_tracing(struct gt_control_handle *handle, struct gt_message *message)
{
	return set_value(handle, GT_CONTROL_TRACING_ON, handle->file->argument, message);
}

static int open_switch(struct gt_control_handle *handle, unsigned access,
		       struct gt_message *message)
{

	if (!(access & GT_CONTROL_READ))
		return 0;
	say(handle, "%llu", (unsigned long long)handle->file->argument);
	say(handle, "\n");
	return switch_tracing(handle, message);
}

static int64_t write_switch(struct gt_control_handle *handle, const char *bytes, size_t count,
			    struct gt_message *message)
{
	int error = switch_tracing(handle, message);

	(void)bytes;
	return error != 0 ? error : (int64_t)count;
}

/* Options */

static int open_option(struct gt_control_handle *handle, unsigned access,
		       struct gt_message *message)
{
	uint64_t set = 0;
	int error;

	if (!(access & GT_CONTROL_READ))
		return 0;
	error = get_value(handle, GT_CONTROL_OPTIONS, &set, message);
	if (error != 0)
		return error;
	handle->text[0] = set & handle->file->argument ? '1' : '0';
	handle->text[1] = '\n';
	handle->text_bytes = 2;
	return 0;
}

static int change_option(struct gt_control_handle *handle, uint32_t bit, bool on,
			 struct gt_message *message)
{
	uint64_t set = 0;
	int error = get_value(handle, GT_CONTROL_OPTIONS, &set, message);

	if (error != 0)
		return error;
	return set_value(handle, GT_CONTROL_OPTIONS, on ? set | bit : set & ~(uint64_t)bit,
			 message);
}

static int64_t write_option(struct gt_control_handle *handle, const char *bytes, size_t count,
			    struct gt_message *message)
{
	int64_t taken = (int64_t)count;
	uint64_t value = 0;
	int error;

	strip(&bytes, &count);
	error = parse_number(bytes, count, UINT64_MAX, &value, message);
	if (error != 0)
		return error;
	if (value > 1)
		return REFUSE(message, GT_EINVAL, "0 or 1 is wanted, not '%.*s'",
			      SHOWN(bytes, count));
	error = change_option(handle, handle->file->argument, value == 1, message);
	return error != 0 ? error : taken;
}

static int open_options(struct gt_control_handle *handle, unsigned access,
			struct gt_message *message)
{
	uint64_t set = 0;
	uint64_t tracer = 0;
	int error;

	if (!(access & GT_CONTROL_READ))
		return 0;
	error = get_value(handle, GT_CONTROL_OPTIONS, &set, message);
	if (error == 0)
		error = get_value(handle, GT_CONTROL_TRACER, &tracer, message);
	if (error != 0)
		return error;
	for (size_t i = 0; i < COUNT(options); i++) {
		if (options[i].graph && tracer != GRAFTRACE_TRACER_FUNCTION_GRAPH)
			continue;
		say(handle, "%s", set & options[i].bit ? "" : "no");
		say(handle, "%s", options[i].name);
		say(handle, "\n");
	}
	return 0;
}

static int64_t write_options(struct gt_control_handle *handle, const char *bytes, size_t count,
			     struct gt_message *message)
{
	int64_t taken = (int64_t)count;
	bool on = true;
	uint32_t bit;
	int error;

	strip(&bytes, &count);
	bit = gt_control_option(bytes, count);
	if (bit == 0 && count > 2 && bytes[0] == 'n' && bytes[1] == 'o') {
		on = false;
		bit = gt_control_option(bytes + 2, count - 2);
	}
	if (bit == 0)
		return REFUSE(message, GT_EINVAL,
			      "no option '%.*s'; reading trace_options lists them",
			      SHOWN(bytes, count));
	error = change_option(handle, bit, on, message);
	return error != 0 ? error : taken;
}

/* Lists: a line each, made again for every piece that is asked for */

/* Up to four texts in a row make a line. */
struct line {
	const char *part[4];
};

/* Copies what is left of the line. true: the line is given to its end. */
static bool give_line(struct gt_control_handle *handle, const struct line *line, char *buffer,
		      size_t bytes, size_t *given)
{
	size_t at = 0;

	for (size_t i = 0; i < COUNT(line->part) && line->part[i] != NULL; i++) {
		for (const char *from = line->part[i]; *from != '\0'; from++, at++) {
			if (at < handle->line_given)
				continue;
			if (*given == bytes)
				return false;
			buffer[(*given)++] = *from;
			handle->line_given++;
		}
	}
	handle->line_given = 0;
	handle->line++;
	return true;
}

static int open_list(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	enum gt_control_list which = (enum gt_control_list)handle->file->argument;
	int error;

	if (access & GT_CONTROL_WRITE) {
		if (target->ops->edit_open == NULL)
			return not_here(message);
		return target->ops->edit_open(target, which, access & GT_CONTROL_TRUNCATE,
					      &handle->opened, message);
	}
	if (target->ops->list_open == NULL)
		return not_here(message);
	error = target->ops->list_open(target, which, &handle->opened, message);
	handle->unset = error == 1;
	return error < 0 ? error : 0;
}

static int64_t read_list(struct gt_control_handle *handle, char *buffer, size_t bytes,
			 struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	size_t given = 0;

	(void)message;
	if (handle->unset) {
		struct line line = { { handle->file->argument == GT_CONTROL_NOTRACE
					       ? "#### no functions disabled ####\n"
					       : "#### all functions enabled ####\n" } };

		if (handle->line == 0)
			give_line(handle, &line, buffer, bytes, &given);
		return (int64_t)given;
	}
	while (given < bytes) {
		struct gt_control_name name = { NULL, NULL };
		struct line line;

		if (target->ops->list_read(target, handle->opened, handle->line, &name) != 0)
			break;
		if (name.module != NULL && name.module[0] != '\0')
			line = (struct line){ { name.name, " [", name.module, "]\n" } };
		else
			line = (struct line){ { name.name, "\n" } };
		if (!give_line(handle, &line, buffer, bytes, &given))
			break;
	}
	return (int64_t)given;
}

/* A bare number names that line of available_filter_functions. */
static int add_by_line(struct gt_control_handle *handle, const char *word, size_t count,
		       struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	struct gt_control_name name = { NULL, NULL };
	uint64_t line = 0;
	void *list = NULL;
	int error = parse_number(word, count, UINT32_MAX, &line, message);

	if (error == 0 && target->ops->list_open == NULL)
		return not_here(message);
	if (error == 0)
		error = target->ops->list_open(target, GT_CONTROL_AVAILABLE, &list, message);
	if (error != 0)
		return error < 0 ? error : GT_EINVAL;
	if (line == 0 || target->ops->list_read(target, list, line - 1, &name) != 0)
		error = REFUSE(message, GT_EINVAL, "available_filter_functions has no line '%.*s'",
			       SHOWN(word, count));
	else
		error = target->ops->edit_add(target, handle->opened, name.name,
					      text_length(name.name), true, message);
	target->ops->list_close(target, list);
	return error;
}

static int64_t write_list(struct gt_control_handle *handle, const char *bytes, size_t count,
			  struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	size_t start = 0;
	size_t end;
	size_t digits = 0;
	bool dotted = false;
	const char *word;
	int error;

	while (start < count && is_blank(bytes[start]))
		start++;
	end = start;
	while (end < count && !is_blank(bytes[end]))
		end++;
	if (start == end)
		return (int64_t)count;
	word = bytes + start;
	for (size_t i = start; i < end; i++) {
		/* `::` is C++'s; one colon alone divides a function from a command. */
		bool colon = bytes[i] == ':' && (i + 1 == end || bytes[i + 1] != ':') &&
			     (i == start || bytes[i - 1] != ':');

		if (colon)
			return REFUSE(message, GT_EINVAL,
				      "no such command: '%.*s' (only functions can be listed here)",
				      SHOWN(word, end - start));
		digits += bytes[i] >= '0' && bytes[i] <= '9';
		dotted |= bytes[i] == '.';
	}
	if (word[0] == '#')
		return (int64_t)count; /* what reading an unset list gives may be written back */
	if (word[0] == '[' && bytes[end - 1] == ']' && dotted) {
		error = 0; /* the object behind a name, as available_filter_functions lists it */
	} else if (digits == end - start) {
		error = add_by_line(handle, word, digits, message);
	} else if (word[0] == '!') {
		error = target->ops->edit_remove(target, handle->opened, word + 1, end - start - 1,
						 message);
	} else {
		error = target->ops->edit_add(target, handle->opened, word, end - start, false,
					      message);
	}
	if (error != 0)
		return error;
	return (int64_t)(end < count ? end + 1 : end); /* with the blank behind it, as Linux */
}

static int close_list(struct gt_control_handle *handle, bool apply, struct gt_message *message)
{
	struct gt_control_target *target = handle->target;

	if (handle->access & GT_CONTROL_WRITE)
		return target->ops->edit_close(target, handle->opened, apply, message);
	if (!handle->unset)
		target->ops->list_close(target, handle->opened);
	return 0;
}

/* The trace */

static int open_trace(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_control_target *target = handle->target;

	if (access & GT_CONTROL_WRITE) {
		if (!(access & GT_CONTROL_TRUNCATE))
			return 0; /* as in Linux: only opening it with `>` clears it */
		message->text[0] = '\0';
		return target->ops->clear != NULL ? target->ops->clear(target, message)
						  : not_here(message);
	}
	if (target->ops->text_open == NULL)
		return not_here(message);
	return target->ops->text_open(target, handle->file->waits, &handle->opened, message);
}

static int64_t read_trace(struct gt_control_handle *handle, char *buffer, size_t bytes,
			  struct gt_message *message)
{
	return handle->target->ops->text_read(handle->target, handle->opened, buffer, bytes,
					      message);
}

static int64_t write_trace(struct gt_control_handle *handle, const char *bytes, size_t count,
			   struct gt_message *message)
{
	(void)handle;
	(void)bytes;
	(void)message;
	return (int64_t)count;
}

static int close_trace(struct gt_control_handle *handle, bool apply, struct gt_message *message)
{
	(void)apply;
	(void)message;
	if (handle->access & GT_CONTROL_READ)
		handle->target->ops->text_close(handle->target, handle->opened);
	return 0;
}

/* What was lost, and where the writers stand */

static void say_count(struct gt_control_handle *handle, const char *name, uint64_t count)
{
	say(handle, "%s: %llu\n", name, (unsigned long long)count);
}

static void say_lost(struct gt_control_handle *handle, const uint64_t *lost)
{
	say_count(handle, "dropped events", lost[GRAFTRACE_LOST_FULL]);
	say_count(handle, "overrun", lost[GRAFTRACE_LOST_OVERRUN]);
	say_count(handle, "entries without return", lost[GRAFTRACE_LOST_WINDOW]);
	say_count(handle, "too deep", lost[GRAFTRACE_LOST_DEPTH]);
	say_count(handle, "no stream", lost[GRAFTRACE_LOST_STREAM]);
}

static int open_stats(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_target *view = handle->target->view;
	uint64_t lost[GRAFTRACE_LOST_CAUSES] = { 0 };
	uint64_t sub_buffers = 0;
	uint64_t live = 0;
	uint32_t count;

	(void)access;
	if (view == NULL)
		return not_here(message);
	count = view->ops->writer_count(view);
	for (uint32_t i = 0; i < count; i++) {
		struct gt_writer writer;

		if (view->ops->writer(view, i, &writer) != 0)
			continue;
		for (uint32_t cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
			lost[cause] += writer.lost[cause];
		sub_buffers += writer.next - writer.first;
		live += writer.end == 0;
	}
	say_count(handle, "threads", count);
	say_count(handle, "not ended", live);
	say_count(handle, "sub-buffers", sub_buffers);
	say_lost(handle, lost);
	return 0;
}

static int open_thread_stats(struct gt_control_handle *handle, unsigned access,
			     struct gt_message *message)
{
	struct gt_target *view = handle->target->view;
	struct gt_writer writer;
	uint32_t i = view->ops->writer_count(view);

	(void)access;
	/* The kernel gives a thread's number again: the newest of that number is meant. */
	while (i > 0 &&
	       (view->ops->writer(view, i - 1, &writer) != 0 || writer.tid != handle->number))
		i--;
	if (i == 0)
		return REFUSE(message, GT_ENOENT, "no such thread");
	say(handle, "%s", "name: ");
	for (size_t at = 0; at < sizeof(writer.comm) && writer.comm[at] != '\0'; at++)
		say(handle, "%c", writer.comm[at] >= ' ' ? writer.comm[at] : '?');
	say(handle, "\n");
	say_count(handle, "process", writer.pid);
	say_count(handle, "thread", writer.tid);
	say_count(handle, "ended", writer.end != 0);
	say_count(handle, "sub-buffers", writer.next - writer.first);
	say_count(handle, "oldest sub-buffer", writer.first);
	say_count(handle, "started ns", gt_clock_ns(&view->clock, writer.start));
	say_lost(handle, writer.lost);
	return 0;
}

static int64_t read_index(struct gt_control_handle *handle, char *buffer, size_t bytes,
			  struct gt_message *message)
{
	size_t given = 0;

	(void)message;
	while (given < bytes) {
		struct line line = {
			{ "graftrace: control files, named and behaving as ftrace's.\n"
			  "Read with cat or GET, write with echo, PUT (>) or POST (>>).\n\n" }
		};

		if (handle->line > 0) {
			const struct gt_control_file *file;

			if (handle->line > gt_control_file_count)
				break;
			file = &gt_control_files[handle->line - 1];
			if (!(file->kinds & handle->target->kind)) {
				handle->line++;
				continue;
			}
			line = (struct line){ { file->path, "\n\t", file->help, "\n" } };
		}
		if (!give_line(handle, &line, buffer, bytes, &given))
			break;
	}
	return (int64_t)given;
}

#define LIVE (GT_CONTROL_PROGRAM | GT_CONTROL_KERNEL)
#define ALL  (GT_CONTROL_PROGRAM | GT_CONTROL_KERNEL | GT_CONTROL_RECORDING)

#define OPTION(name, bit, help)                                                             \
	{                                                                                   \
		"options/" name, help, ALL, ALL, ALL, false, false, bit, NULL, open_option, \
			read_text, write_option, NULL                                       \
	}

const struct gt_control_file gt_control_files[] = {
	{ "README", "this text: the control files and what they are for", ALL, ALL, 0, false, false,
	  0, NULL, NULL, read_index, NULL, NULL },
	{ "available_tracers", "the tracers that current_tracer takes", ALL, ALL, 0, false, false,
	  0, NULL, open_available_tracers, read_text, NULL, NULL },
	{ "current_tracer", "what is recorded: nop, function or function_graph", ALL, ALL, LIVE,
	  false, false, GT_CONTROL_TRACER, NULL, open_value, read_text, write_value, NULL },
	{ "tracing_on", "1 while calls are recorded; write 0 to pause, 1 to go on", ALL, ALL, LIVE,
	  false, false, GT_CONTROL_TRACING_ON, NULL, open_value, read_text, write_value, NULL },
	{ "tracing_enable/on", "reading or writing it switches tracing on", LIVE, LIVE, LIVE, true,
	  false, 1, NULL, open_switch, read_text, write_switch, NULL },
	{ "tracing_enable/off", "reading or writing it switches tracing off", LIVE, LIVE, LIVE,
	  true, false, 0, NULL, open_switch, read_text, write_switch, NULL },
	{ "trace", "the ring as text, which stays in it; emptied by writing (>) anything", ALL, ALL,
	  LIVE, false, false, 0, NULL, open_trace, read_trace, write_trace, close_trace },
	{ "trace_pipe", "the ring as text, taken out of it; waits for more; one reader at a time",
	  LIVE, LIVE, 0, false, true, 0, NULL, open_trace, read_trace, NULL, close_trace },
	{ "available_filter_functions", "every function that can be traced", ALL, ALL, 0, false,
	  false, GT_CONTROL_AVAILABLE, NULL, open_list, read_list, NULL, close_list },
	{ "set_ftrace_filter", "only these functions: names and globs; !name takes one out", LIVE,
	  LIVE, LIVE, false, false, GT_CONTROL_FILTER, NULL, open_list, read_list, write_list,
	  close_list },
	{ "set_ftrace_notrace", "not these functions", LIVE, LIVE, LIVE, false, false,
	  GT_CONTROL_NOTRACE, NULL, open_list, read_list, write_list, close_list },
	{ "set_graph_function", "only what is called below these functions", LIVE, LIVE, LIVE,
	  false, false, GT_CONTROL_GRAPH, NULL, open_list, read_list, write_list, close_list },
	{ "max_graph_depth", "calls deeper than this are not recorded; 0: no limit", LIVE, LIVE,
	  LIVE, false, false, GT_CONTROL_MAX_DEPTH, NULL, open_value, read_text, write_value,
	  NULL },
	{ "tracing_thresh", "only calls that took longer, in microseconds; 0: all", LIVE, LIVE,
	  LIVE, false, false, GT_CONTROL_THRESHOLD_NS, NULL, open_value, read_text, write_value,
	  NULL },
	{ "trace_clock", "the clock of the time stamps, in brackets", ALL, ALL, LIVE, false, false,
	  GT_CONTROL_CLOCK_ID, NULL, open_value, read_text, write_value, NULL },
	{ "buffer_size_kb", "kilobytes that one thread (or CPU) may fill", LIVE, LIVE,
	  GT_CONTROL_KERNEL, false, false, GT_CONTROL_BUFFER_BYTES,
	  "the ring of a program has its size from the start: graftrace record --buffer-size",
	  open_value, read_text, write_value, NULL },
	{ "buffer_total_size_kb", "kilobytes of the ring in all", LIVE, LIVE, 0, false, false,
	  GT_CONTROL_TOTAL_BYTES, NULL, open_value, read_text, NULL, NULL },
	{ "stats", "threads, and records lost by cause", ALL, ALL, 0, false, false, 0, NULL,
	  open_stats, read_text, NULL, NULL },
	{ "per_thread/#/stats", "one thread: where it stands and what it lost by cause", ALL, ALL,
	  0, false, false, 0, NULL, open_thread_stats, read_text, NULL, NULL },
	{ "trace_options", "options by name; noname switches one off", ALL, ALL, ALL, false, false,
	  0, NULL, open_options, read_text, write_options, NULL },
	OPTION("print-parent", GT_OPTION_PRINT_PARENT, "function: show the caller"),
	OPTION("sym-offset", GT_OPTION_SYM_OFFSET, "function: name+0xoffset/0xsize"),
	OPTION("sym-addr", GT_OPTION_SYM_ADDR, "function: addresses beside names"),
	OPTION("irq-info", GT_OPTION_IRQ_INFO, "function: the column of flags"),
	OPTION("context-info", GT_OPTION_CONTEXT_INFO, "function: task, CPU and time stamp"),
	OPTION("overwrite", GT_OPTION_OVERWRITE, "a full ring drops the oldest, not the newest"),
	OPTION("function-fork", GT_OPTION_FUNCTION_FORK, "children of the program are traced too"),
	OPTION("funcgraph-cpu", GT_OPTION_GRAPH_CPU, "function_graph: the CPU column"),
	OPTION("funcgraph-overhead", GT_OPTION_GRAPH_OVERHEAD, "function_graph: + ! # * @ $ marks"),
	OPTION("funcgraph-duration", GT_OPTION_GRAPH_DURATION, "function_graph: durations"),
	OPTION("funcgraph-proc", GT_OPTION_GRAPH_PROC, "function_graph: the task of each line"),
	OPTION("funcgraph-abstime", GT_OPTION_GRAPH_ABSTIME, "function_graph: time stamps"),
	OPTION("funcgraph-tail", GT_OPTION_GRAPH_TAIL, "function_graph: names behind every }"),
};

const uint32_t gt_control_file_count = COUNT(gt_control_files);

uint32_t gt_control_option(const char *name, size_t bytes)
{
	for (size_t i = 0; i < COUNT(options); i++) {
		if (is_word(name, bytes, options[i].name))
			return options[i].bit;
	}
	return 0;
}

int gt_control_tracer(const char *name, size_t bytes)
{
	for (size_t i = 0; i < COUNT(tracers); i++) {
		if (is_word(name, bytes, tracers[i]))
			return (int)i;
	}
	return -1;
}

const char *gt_control_tracer_name(uint32_t tracer)
{
	return tracer < COUNT(tracers) ? tracers[tracer] : "unknown";
}
