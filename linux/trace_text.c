/* SPDX-License-Identifier: MIT */
/*
 * Reads the text twice: first for the tasks that run at its beginning, which only the first switch
 * of a CPU names, and for the kinds of lines in it; then line by line into linux/tasks.h.
 */
#define _GNU_SOURCE
#include "linux/trace_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/trace/message.h"
#include "linux/tasks.h"
#include "linux/text_names.h"
#include "read/text_line.h"
#include "read/writer.h"

#define SUB_BUFFER_BYTES (64u << 10)
#define LOOK_LINES	 64
#define DEPTH_MAX	 1024
#define CPUS_MAX	 (GT_TEXT_CPU_MAX + 1)
#define BEGIN_NS	 1000000000u /* first time of a text without times */
#define SLACK_NS	 1000000u
#define INDENT_FIRST	 2 /* blanks before an outermost call, and more for each level */

/* An open call. */
struct call {
	uint64_t start;
	uint32_t function;
};

/* The open calls of one thread. */
struct thread {
	uint32_t tid; /* 0: a free slot */
	uint64_t clock;
	struct call *calls;
	uint32_t depth, room;
};

struct text {
	struct gt_tasks *tasks;
	struct gt_text_names *names;
	struct thread *threads;
	uint32_t thread_count, thread_used;
	int64_t *running; /* by CPU: task, -1 not known */
	uint64_t *clocks; /* by CPU: the clock of its last line */
	uint64_t lines, understood, other;
	uint64_t lost_marks;
	bool has_graph, has_begins, has_functions;
	int error;
};

/* ---- threads ---- */

static struct thread *place_of(const struct text *text, uint32_t tid)
{
	uint32_t mask = text->thread_count - 1, at = tid * 0x9e3779b9u & mask;

	while (text->threads[at].tid && text->threads[at].tid != tid)
		at = (at + 1) & mask;
	return &text->threads[at];
}

static int grow_threads(struct text *text)
{
	struct thread *old = text->threads;
	uint32_t old_count = text->thread_count;

	text->thread_count = old_count ? old_count * 2 : 256;
	text->threads = calloc(text->thread_count, sizeof(*text->threads));
	if (text->threads == NULL) {
		text->threads = old;
		text->thread_count = old_count;
		return GT_ENOMEM;
	}
	for (uint32_t i = 0; i < old_count; i++)
		if (old[i].tid)
			*place_of(text, old[i].tid) = old[i];
	free(old);
	return 0;
}

static struct thread *find_thread(struct text *text, uint32_t tid)
{
	if (text->thread_used * 2 >= text->thread_count && grow_threads(text) != 0)
		return NULL;
	struct thread *thread = place_of(text, tid);
	if (!thread->tid) {
		thread->tid = tid;
		text->thread_used++;
	}
	return thread;
}

static uint32_t cpu_of(const struct gt_text_line *line)
{
	return line->cpu >= 0 && line->cpu < CPUS_MAX ? (uint32_t)line->cpu : 0;
}

/* Returns the task of a line; a CPU's idle task and its unnamed task have a number each. */
static uint32_t tid_of(struct text *text, const struct gt_text_line *line)
{
	uint32_t cpu = cpu_of(line);

	if (line->pid >= 0)
		text->running[cpu] = line->pid;
	int64_t pid = text->running[cpu];
	return pid > 0 && pid < INT32_MAX ? (uint32_t)pid : pid == 0 ? INT32_MAX - cpu : cpu + 1;
}

/* Returns the time of a line: its own, else the end of that CPU's line before; not before the
 * task's last record. */
static struct thread *begin(struct text *text, const struct gt_text_line *line,
			    struct gt_tasks_moment *moment)
{
	uint32_t cpu = cpu_of(line);
	struct thread *thread = find_thread(text, tid_of(text, line));

	if (thread == NULL) {
		text->error = GT_ENOMEM;
		return NULL;
	}
	if (!text->clocks[cpu])
		text->clocks[cpu] = BEGIN_NS;
	if (line->time_ns != GT_TEXT_NO_TIME)
		text->clocks[cpu] = line->time_ns ? line->time_ns : 1;
	if (thread->clock < text->clocks[cpu])
		thread->clock = text->clocks[cpu];
	*moment = (struct gt_tasks_moment){
		.clock = thread->clock,
		.cpu = cpu,
		.tid = thread->tid,
		.is_user = text->has_begins, /* else only ends of whole calls: tracing_thresh */
	};
	return thread;
}

/* Moves the task's time forward, and the CPU's if lines have no times. */
static void advance(struct text *text, struct thread *thread, const struct gt_text_line *line,
		    uint64_t clock)
{
	if (thread->clock < clock)
		thread->clock = clock;
	if (line->time_ns == GT_TEXT_NO_TIME && text->clocks[cpu_of(line)] < clock)
		text->clocks[cpu_of(line)] = clock;
}

/* ---- calls ---- */

static uint32_t depth_of(const struct gt_text_line *line, uint32_t otherwise)
{
	if (line->indent < INDENT_FIRST)
		return otherwise;
	uint32_t depth = (uint32_t)(line->indent - INDENT_FIRST) / 2;
	return depth < DEPTH_MAX ? depth : DEPTH_MAX - 1;
}

static bool set_depth(struct thread *thread, uint32_t depth)
{
	if (depth >= thread->room) {
		uint32_t room = depth + 32;
		struct call *calls = realloc(thread->calls, room * sizeof(*calls));
		if (calls == NULL)
			return false;
		thread->calls = calls;
		thread->room = room;
	}
	for (; thread->depth < depth; thread->depth++)
		thread->calls[thread->depth] = (struct call){ 0, 0 };
	thread->depth = depth;
	return true;
}

static void enter(struct text *text, const struct gt_text_line *line)
{
	struct gt_tasks_moment moment;
	struct thread *thread = begin(text, line, &moment);
	uint32_t function = gt_text_names_number(text->names, line->name, line->name_len);
	uint32_t depth = thread != NULL ? depth_of(line, thread->depth) : 0;

	if (thread == NULL || !function || depth + 1 >= DEPTH_MAX ||
	    !set_depth(thread, depth + 1)) {
		text->error = depth + 1 >= DEPTH_MAX ? text->error : GT_ENOMEM;
		return;
	}
	thread->calls[depth] = (struct call){ moment.clock, function };
	text->error = gt_tasks_enter(text->tasks, &moment, function, depth);
}

static void leave(struct text *text, const struct gt_text_line *line)
{
	struct gt_tasks_moment moment;
	struct thread *thread = begin(text, line, &moment);
	uint32_t depth = thread != NULL && thread->depth ? depth_of(line, thread->depth - 1) : 0;
	uint32_t function = 0;

	if (thread == NULL)
		return;
	if (!thread->depth)
		depth = depth_of(line, 0);
	const struct call *call = depth < thread->depth && thread->calls[depth].function
					  ? &thread->calls[depth]
					  : NULL;
	if (line->name != NULL)
		function = gt_text_names_number(text->names, line->name, line->name_len);
	if (call != NULL && (!function || function == call->function))
		function = call->function;
	else
		call = NULL;
	if (!function) /* the end of a call without a name */
		return;
	moment.clock = call != NULL ? call->start + line->duration_ns : moment.clock;
	if (call == NULL && moment.clock <= line->duration_ns)
		moment.clock = line->duration_ns + 1;
	if (moment.clock < thread->clock)
		moment.clock = thread->clock;
	struct gt_tasks_return end = {
		.function = function,
		.depth = depth,
		.start = call != NULL ? call->start : moment.clock - line->duration_ns,
		.duration = line->duration_ns,
	};
	advance(text, thread, line, moment.clock);
	if (!set_depth(thread, depth)) {
		text->error = GT_ENOMEM;
		return;
	}
	text->error = gt_tasks_leave(text->tasks, &moment, &end);
}

static void take_leaf(struct text *text, const struct gt_text_line *line)
{
	struct gt_text_line end = *line;

	enter(text, line);
	if (text->error != 0)
		return;
	end.time_ns = GT_TEXT_NO_TIME;
	leave(text, &end);
	/* the next line has its own time */
	if (line->time_ns != GT_TEXT_NO_TIME)
		text->clocks[cpu_of(line)] = line->time_ns;
}

/* ---- events, and lines of the function tracer ---- */

/* "f <-g", trace-cmd's "function:    f <-- g". */
static bool take_function(struct text *text, struct gt_tasks_moment *moment, const char *at,
			  const char *end)
{
	static const char prefix[] = "function:";
	const char *arrow, *name;

	if ((size_t)(end - at) > sizeof(prefix) && memcmp(at, prefix, sizeof(prefix) - 1) == 0)
		for (at += sizeof(prefix) - 1; at < end && *at == ' ';)
			at++;
	arrow = memmem(at, (size_t)(end - at), " <-", 3);
	if (arrow == NULL || memchr(at, ':', (size_t)(arrow - at)) != NULL)
		return false;
	for (name = arrow + 3; name < end && (*name == '-' || *name == ' ');)
		name++;
	uint32_t function = gt_text_names_number(text->names, at, (size_t)(arrow - at));
	uint32_t caller = gt_text_names_number(text->names, name, (size_t)(end - name));
	text->error = function && caller ? gt_tasks_function(text->tasks, moment, function,
							     gt_text_names_address(caller))
					 : GT_ENOMEM;
	return true;
}

static const char *trim(const char *begin, const char *end)
{
	while (end > begin && (unsigned char)end[-1] <= ' ')
		end--;
	return end;
}

static void take_event(struct text *text, const struct gt_text_line *line, const char *bytes,
		       size_t count)
{
	const char *end = trim(bytes, bytes + count), *at = memmem(bytes, count, "/* ", 3);
	struct gt_tasks_moment moment;
	struct thread *thread = begin(text, line, &moment);

	if (thread == NULL)
		return;
	if (at != NULL && line->event < 0) { /* a comment in function_graph's text */
		at += 3;
		if (end - at >= 2 && end[-1] == '/' && end[-2] == '*')
			end = trim(at, end - 2);
	} else if (line->event >= 0) {
		for (at = bytes + line->event; at < end && *at == ' ';)
			at++;
		if (take_function(text, &moment, at, end))
			return;
	} else {
		return; /* interrupts' arrows, overruns */
	}
	if (at < end)
		text->error = gt_tasks_text(text->tasks, &moment, at, (size_t)(end - at), false);
}

static void take_loss(struct text *text, const struct gt_text_line *line)
{
	struct gt_tasks_moment moment;
	struct thread *thread = begin(text, line, &moment);

	text->lost_marks += line->lost == 0;
	if (thread != NULL)
		text->error = gt_tasks_lost(text->tasks, &moment, line->lost);
}

/* ---- lines ---- */

static void take_line(struct text *text, const char *bytes, size_t count)
{
	struct gt_text_line line;

	gt_text_line_parse(bytes, count, &line);
	text->lines++;
	gt_text_names_of_tasks(text->names, bytes, count, &line);
	switch (line.kind) {
	case GT_TEXT_ENTRY:
		enter(text, &line);
		break;
	case GT_TEXT_LEAF:
		take_leaf(text, &line);
		break;
	case GT_TEXT_EXIT:
		leave(text, &line);
		break;
	case GT_TEXT_SWITCH:
		text->running[cpu_of(&line)] = line.next_pid;
		break;
	case GT_TEXT_LOST:
		take_loss(text, &line);
		break;
	case GT_TEXT_EVENT:
		take_event(text, &line, bytes, count);
		break;
	case GT_TEXT_OTHER:
	case GT_TEXT_UNTIMED:
		text->other++;
		break;
	default:
		break;
	}
}

/* Notes what kinds of lines the text has, before anything is made of it. */
static void look_at_line(struct text *text, const char *bytes, size_t count)
{
	struct gt_text_line line;

	gt_text_line_parse(bytes, count, &line);
	text->understood += line.kind != GT_TEXT_OTHER && line.kind != GT_TEXT_BLANK &&
			    line.kind != GT_TEXT_HEADER;
	text->has_begins |= line.kind == GT_TEXT_ENTRY || line.kind == GT_TEXT_LEAF;
	text->has_graph |= line.kind == GT_TEXT_ENTRY || line.kind == GT_TEXT_LEAF ||
			   line.kind == GT_TEXT_EXIT;
	text->has_functions |= line.kind == GT_TEXT_EVENT && line.event >= 0 &&
			       memmem(bytes, count, " <-", 3) != NULL;
	if (line.kind == GT_TEXT_SWITCH && text->running[cpu_of(&line)] == -1)
		text->running[cpu_of(&line)] = line.pid;
}

static int each_line(struct text *text, FILE *file,
		     void (*take)(struct text *text, const char *bytes, size_t count))
{
	char *line = NULL;
	size_t room = 0;
	ssize_t bytes;

	while (text->error == 0 && (bytes = getline(&line, &room, file)) >= 0)
		take(text, line, (size_t)bytes - (bytes && line[bytes - 1] == '\n'));
	free(line);
	return text->error != 0 ? text->error : ferror(file) ? GT_EIO : 0;
}

/* ---- the recording ---- */

static const char *name_of_task(void *data, uint32_t tid)
{
	const struct text *text = data;

	return tid > INT32_MAX - CPUS_MAX ? "<idle>" : gt_text_names_task(text->names, tid);
}

static int flush_names(void *data)
{
	struct text *text = data;

	return gt_text_names_flush(text->names);
}

static int write_recording(struct text *text, FILE *file, struct gt_file_writer *writer,
			   struct gt_linux_notes *notes, struct gt_message *message)
{
	struct gt_tasks_options options = {
		.sink = gt_file_writer_sink(writer),
		.tracer = text->has_graph ? GRAFTRACE_TRACER_FUNCTION_GRAPH
					  : GRAFTRACE_TRACER_FUNCTION,
		.slack = SLACK_NS,
		.name = name_of_task,
		.before = flush_names,
		.data = text,
	};
	struct gt_tasks_totals totals = { 0 };
	int error = gt_text_names_create(options.sink, &text->names);

	if (error == 0)
		error = gt_tasks_create(&options, &text->tasks);
	if (error == 0)
		error = each_line(text, file, take_line);
	if (error == 0)
		error = gt_text_names_flush(text->names);
	if (error == 0)
		error = gt_tasks_finish(text->tasks, &totals);
	if (error != 0)
		return gt_fail(message, error, "%s",
			       error == GT_EIO ? strerror(errno) : gt_file_writer_error(writer));
	struct gt_file_writer_totals end = {
		.words = totals.words,
		.calls = totals.calls,
		.ns = totals.last_clock - totals.first_clock,
		.threads = totals.tasks,
	};
	*notes = (struct gt_linux_notes){
		.lost = totals.lost,
		.unknown_losses = text->lost_marks,
		.lines = text->other,
	};
	return gt_file_writer_finish(writer, &end, message);
}

static void close_text(struct text *text)
{
	for (uint32_t i = 0; i < text->thread_count; i++)
		free(text->threads[i].calls);
	free(text->threads);
	free(text->running);
	free(text->clocks);
	gt_tasks_destroy(text->tasks);
	gt_text_names_destroy(text->names);
}

static int convert_file(struct text *text, FILE *file, const char *to, struct gt_linux_notes *notes,
			struct gt_message *message)
{
	struct gt_recording_info about = { .made_by = "a text of trace" };
	struct gt_file_writer_options options = {
		.size = sizeof(options),
		.path = to,
		.clock = { .mult = 1 },
		.sub_buffer_bytes = SUB_BUFFER_BYTES,
		.like = &about,
	};
	struct gt_file_writer *writer = NULL;
	int error;

	text->running = malloc(CPUS_MAX * sizeof(*text->running));
	text->clocks = calloc(CPUS_MAX, sizeof(*text->clocks));
	if (text->running == NULL || text->clocks == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < CPUS_MAX; i++)
		text->running[i] = -1;
	error = each_line(text, file, look_at_line);
	if (error == 0 && !text->understood) {
		gt_message_set(message, "no line of it is one of a trace");
		error = GT_EFORMAT;
	}
	if (error != 0)
		return error;
	rewind(file);
	options.tracer = text->has_graph       ? GRAFTRACE_TRACER_FUNCTION_GRAPH
			 : text->has_functions ? GRAFTRACE_TRACER_FUNCTION
					       : GRAFTRACE_TRACER_NOP;
	error = gt_file_writer_create(&options, &writer, message);
	if (error == 0)
		error = write_recording(text, file, writer, notes, message);
	gt_file_writer_destroy(writer);
	return error;
}

static int convert(const char *path, const char *to, struct gt_linux_notes *notes,
		   struct gt_message *message)
{
	FILE *file = fopen(path, "re");
	struct text text = { .error = 0 };

	if (file == NULL)
		return gt_fail(message, GT_EIO, "cannot open '%s': %s", path, strerror(errno));
	int error = convert_file(&text, file, to, notes, message);
	close_text(&text);
	fclose(file);
	return error;
}

bool gt_is_trace_text_path(const char *path)
{
	struct stat status;
	/* opening a pipe without a writer would wait */
	FILE *file = stat(path, &status) == 0 && S_ISREG(status.st_mode) ? fopen(path, "re") : NULL;
	char bytes[512];
	bool found = false;

	for (int i = 0;
	     file != NULL && !found && i < LOOK_LINES && fgets(bytes, sizeof(bytes), file) != NULL;
	     i++) {
		struct gt_text_line line;
		size_t count = strcspn(bytes, "\n");
		if (memchr(bytes, '\0', count) != NULL || (i == 0 && !count && bytes[0] != '\n'))
			break;
		gt_text_line_parse(bytes, count, &line);
		found = line.kind != GT_TEXT_OTHER && line.kind != GT_TEXT_BLANK &&
			line.kind != GT_TEXT_HEADER;
	}
	if (file != NULL)
		fclose(file);
	return found;
}

int gt_trace_text_open(const char *path, struct gt_recording **recording,
		       struct gt_linux_notes *notes, struct gt_message *message)
{
	return gt_linux_convert(path, convert, recording, notes, message);
}
