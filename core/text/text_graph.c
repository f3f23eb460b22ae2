/* SPDX-License-Identifier: MIT */
/*
 * function_graph's text. The layout is that of Linux's kernel/trace/trace_functions_graph.c: a
 * change here is a difference that scripts see.
 */
#include "core/text/text_parts.h"

#define GRAPH_INDENT 2
#define PROC_WIDTH   14 /* of "comm-tid", centred */
#define COMM_SHORT   7	/* characters of comm in it */

#define COLOR_LONG    "\033[33m" /* a call that took long */
#define COLOR_COMMENT "\033[2m"
#define COLOR_END     "\033[0m"

/* ---- columns ---- */

/* "comm-tid", comm cut to 7, centred in 14. */
static char *put_proc(char *at, const char *comm, uint32_t tid)
{
	size_t length = gt_text_length(comm, COMM_SHORT);
	size_t whole = length + 1 + gt_digits(tid);
	size_t blanks = whole < PROC_WIDTH ? PROC_WIDTH - whole : 0;
	at = gt_put_fill(at, ' ', blanks / 2);
	at = gt_put_clean(at, comm, length);
	*at++ = '-';
	at = gt_put_number(at, tid);
	return gt_put_fill(at, ' ', blanks - blanks / 2);
}

/* Writes the box of a task switch: another task runs on the CPU. */
static char *put_switch(struct gt_text *text, const struct gt_source *source,
			struct gt_text_cpu *cpu, char *at)
{
	if (cpu->known && !has(text, GT_OPTION_GRAPH_PROC)) {
		at = GT_PUT_LITERAL(at, " ------------------------------------------\n");
		at = gt_put_bytes(at, cpu->prefix, cpu->prefix_length);
		at = put_proc(at, cpu->comm, cpu->tid);
		at = GT_PUT_LITERAL(at, " => ");
		at = put_proc(at, comm_of(text, source), source->tid);
		at = GT_PUT_LITERAL(at, "\n ------------------------------------------\n\n");
	}
	cpu->known = true;
	cpu->tid = source->tid;
	const char *comm = comm_of(text, source);
	__builtin_memcpy(cpu->comm, comm, gt_text_length(comm, sizeof(cpu->comm) - 1));
	cpu->comm[gt_text_length(comm, sizeof(cpu->comm) - 1)] = 0;
	return at;
}

/* TRACE_GRAPH_PRINT_REL_TIME, which the latency tracers set. */
static bool has_relative_time(const struct gt_text *text)
{
	return text->options.latency != NULL && text->options.time_start;
}

static char *put_flags(struct gt_text *text, const struct gt_source *source, char *at)
{
	if (text->options.latency == NULL)
		return GT_PUT_LITERAL(at, " ..... | ");
	*at++ = ' ';
	at = gt_text_put_state(text, at, &source->record);
	return GT_PUT_LITERAL(at, " | ");
}

static inline char *put_prologue(struct gt_text *text, const struct gt_source *source,
				 uint64_t clock, uint32_t cpu_number, char *at)
{
	struct gt_text_cpu *cpu = cpu_of(text, cpu_number);
	if (__builtin_expect(cpu->tid != source->tid || !cpu->known, 0))
		at = put_switch(text, source, cpu, at);
	if (!has(text, GT_OPTION_CONTEXT_INFO))
		return at;
	if (has(text, GT_OPTION_GRAPH_ABSTIME)) {
		at = text->options.nanoseconds ? put_nanoseconds(at, stamp_of(text, clock))
					       : put_seconds(at, stamp_of(text, clock) / 1000);
		at = GT_PUT_LITERAL(at, " |  ");
	}
	if (has_relative_time(text)) {
		uint64_t start = stamp_of(text, text->options.time_start);
		uint64_t now = stamp_of(text, clock);
		at = gt_put_right(at, now > start ? (now - start) / 1000 : 0, 9);
		at = GT_PUT_LITERAL(at, " us |  ");
	}
	if (has(text, GT_OPTION_GRAPH_CPU)) {
		/* Copies more than the prefix: the excess is overwritten by what follows. */
		__builtin_memcpy(at, cpu->prefix, sizeof(cpu->prefix));
		at += cpu->prefix_length;
	}
	if (has(text, GT_OPTION_GRAPH_PROC)) {
		at = put_proc(at, comm_of(text, source), source->tid);
		at = GT_PUT_LITERAL(at, " | ");
	}
	if (has(text, GT_OPTION_LATENCY_FORMAT))
		at = put_flags(text, source, at);
	return at;
}

char gt_text_mark(uint64_t ns)
{
	static const struct {
		uint64_t ns;
		char mark;
	} marks[] = { { 1000000000, '$' }, { 100000000, '@' }, { 10000000, '*' },
		      { 1000000, '#' },	   { 100000, '!' },    { 10000, '+' } };
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (ns > marks[i].ns)
			return marks[i].mark;
	return ' ';
}

/* Writes microseconds in seven digits, decimals included. */
static inline char *put_microseconds(char *at, uint64_t ns)
{
	uint64_t us = ns / 1000;
	uint32_t rest = (uint32_t)(ns % 1000);
	char *start = at;
	if (us < 10) {
		*at++ = (char)('0' + us);
	} else {
		at = gt_put_number(at, us);
	}
	size_t length = (size_t)(at - start);
	if (length < 7) {
		char decimals[4];
		gt_put_padded(decimals, rest, 3);
		size_t count = 7 - length < 3 ? 7 - length : 3;
		*at++ = '.';
		for (size_t i = 0; i < count; i++)
			*at++ = decimals[i];
		length += 1 + count;
	}
	at = GT_PUT_LITERAL(at, " us ");
	return length < 8 ? gt_put_fill(at, ' ', 8 - length) : at;
}

/* With sleep-time off, the time off the CPU is subtracted. */
static char *put_duration(struct gt_text *text, const struct gt_source *source, uint64_t from,
			  uint64_t to, char *at)
{
	if (!has(text, GT_OPTION_GRAPH_DURATION) || !has(text, GT_OPTION_CONTEXT_INFO))
		return at;
	uint64_t ticks = to - from;
	if (!has(text, GT_OPTION_SLEEP_TIME)) {
		uint64_t off = gt_target_off_cpu(text->target, source->tid, from, to);
		ticks = off < ticks ? ticks - off : 0;
	}
	uint64_t ns = gt_clock_duration_ns(&text->target->clock, ticks);
	bool color = text->options.color && ns > 10000;
	if (color)
		at = GT_PUT_LITERAL(at, COLOR_LONG);
	*at++ = has(text, GT_OPTION_GRAPH_OVERHEAD) && ns > 10000 ? gt_text_mark(ns) : ' ';
	*at++ = ' ';
	at = put_microseconds(at, ns);
	if (color)
		at = GT_PUT_LITERAL(at, COLOR_END);
	return GT_PUT_LITERAL(at, "|  ");
}

static inline char *put_no_duration(struct gt_text *text, char *at)
{
	if (!has(text, GT_OPTION_GRAPH_DURATION) || !has(text, GT_OPTION_CONTEXT_INFO))
		return at;
	return GT_PUT_LITERAL(at, "              |  ");
}

static inline char *put_indent(char *at, uint32_t depth)
{
	static const char blanks[64] =
		"                                                               ";
	if (depth > GT_TEXT_DEPTH_MAX)
		depth = GT_TEXT_DEPTH_MAX;
	uint32_t count = depth * GRAPH_INDENT;
	/* Copies more than is needed: the excess is overwritten by what follows. */
	if (__builtin_expect(count < sizeof(blanks), 1)) {
		__builtin_memcpy(at, blanks, 16);
		if (count > 16)
			__builtin_memcpy(at + 16, blanks, sizeof(blanks) - 16);
		return at + count;
	}
	__builtin_memset(at, ' ', count);
	return at + count;
}

/* ---- records ---- */

/* The number of open calls around a record. In an interrupt it includes those of the interrupted
 * code, as on Linux, where interrupts use the same stack. */
static inline uint32_t depth_of(const struct gt_source *source)
{
	return source->record.depth + source->around;
}

/* May another thread of the target have recorded on that CPU before that clock? */
static bool others_come(const struct gt_merge *merge, uint32_t cpu, uint64_t clock)
{
	for (uint32_t i = 0; i < merge->heap_count; i++) {
		const struct gt_source *other = merge->heap[i];
		if (other->key < clock &&
		    (other->state == GT_SOURCE_UNOPENED || other->record.cpu == cpu))
			return true;
	}
	return false;
}

/* The end of a leaf's line: " /" + "* ret=0x1 *" + "/". */
static char *put_leaf_result(struct gt_text *text, const struct gt_source *source,
			     const struct gt_record *record, char *at)
{
	char *const start = GT_PUT_LITERAL(at, " /*");
	char *const end = gt_text_put_result(text, source, record, start);

	return end == start ? at : GT_PUT_LITERAL(end, " */");
}

/* Writes the end of an entry's line, with the function's object. */
static char *put_note(struct gt_text *text, uint32_t function, char *at)
{
	const char *note = text->options.note != NULL
				   ? text->options.note(text->options.note_data, function)
				   : NULL;

	if (note == NULL) {
		*at++ = '\n';
		return at;
	}
	at = GT_PUT_LITERAL(at, " /* ");
	at = gt_put_clean(at, note, gt_text_length(note, GT_TEXT_NOTE_MAX));
	return GT_PUT_LITERAL(at, " */\n");
}

static char *put_entry(struct gt_text *text, struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	const struct gt_text_name *name = name_of(text, record->function);
	uint64_t off_cpu = source->off_cpu.time.before;
	uint32_t depth = record->depth;
	char arguments[GT_VALUES_TEXT_MAX + 8];
	size_t bytes = (size_t)(gt_text_put_arguments(text, source, record, GT_OPTION_GRAPH_ARGS,
						      arguments) -
				arguments);

	at = put_prologue(text, source, record->clock, record->cpu, at);
	const struct gt_record *ahead = gt_merge_ahead(&text->merge, source);
	/* As on Linux, where a leaf is two adjacent records of one CPU's buffer: a call during
	 * which the thread left the CPU is not a leaf. */
	if (ahead != NULL && source->off_cpu.time.before != off_cpu &&
	    others_come(&text->merge, record->cpu, ahead->clock))
		ahead = NULL;
	if (ahead != NULL && ahead->kind == GT_RECORD_RETURN &&
	    ahead->function == source->record.function && ahead->start == source->record.clock &&
	    ahead->depth == depth && !(ahead->flags & GT_RECORD_START_UNKNOWN)) {
		uint64_t from = ahead->start, to = ahead->clock;
		char result[GT_VALUES_TEXT_MAX + 16];
		size_t result_bytes =
			(size_t)(put_leaf_result(text, source, ahead, result) - result);

		gt_merge_skip_ahead(source);
		at = put_duration(text, source, from, to, at);
		at = put_indent(at, depth + source->around);
		at = gt_put_bytes(put_name(name, at), arguments, bytes);
		*at++ = ';';
		return put_note(text, record->function, gt_put_bytes(at, result, result_bytes));
	}
	at = put_no_duration(text, at);
	at = put_indent(at, depth + source->around);
	at = gt_put_bytes(put_name(name, at), arguments, bytes);
	return put_note(text, record->function, GT_PUT_LITERAL(at, " {"));
}

/* Calls too deep to be recorded are counted as lost events here, so a return's overrun is always
 * 0. */
static char *put_overrun(struct gt_text *text, char *at)
{
	return has(text, GT_OPTION_GRAPH_OVERRUN) ? GT_PUT_LITERAL(at, " (Overruns: 0)\n") : at;
}

static char *put_return(struct gt_text *text, const struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	at = put_prologue(text, source, record->clock, record->cpu, at);
	if (record->flags & GT_RECORD_START_UNKNOWN)
		at = put_no_duration(text, at);
	else
		at = put_duration(text, source, record->start, record->clock, at);
	at = put_indent(at, depth_of(source));
	/* Linux compares with the function that is stored at that depth: after a switch of
	 * stacks it is another stack's. */
	char result[GT_VALUES_TEXT_MAX + 16];
	size_t bytes = (size_t)(gt_text_put_result(text, source, record, result) - result);

	if ((record->flags & GT_RECORD_ENTRY_SEEN) && record->start >= source->switched &&
	    !has(text, GT_OPTION_GRAPH_TAIL) && !bytes)
		return put_overrun(text, GT_PUT_LITERAL(at, "}\n"));
	at = GT_PUT_LITERAL(at, "} /* ");
	at = put_name(name_of(text, record->function), at);
	at = gt_put_bytes(at, result, bytes);
	return put_overrun(text, GT_PUT_LITERAL(at, " */\n"));
}

/* Linux indents comments by the number of open calls, except at depth 1. */
static char *begin_comment(struct gt_text *text, const struct gt_source *source, uint32_t depth,
			   char *at)
{
	at = put_prologue(text, source, source->record.clock, source->record.cpu, at);
	at = put_no_duration(text, at);
	depth += source->around;
	at = put_indent(at, depth > 1 ? depth : 0);
	if (text->options.color)
		at = GT_PUT_LITERAL(at, COLOR_COMMENT);
	return GT_PUT_LITERAL(at, "/* ");
}

static char *end_comment(struct gt_text *text, char *at)
{
	at = GT_PUT_LITERAL(at, " */");
	if (text->options.color)
		at = GT_PUT_LITERAL(at, COLOR_END);
	*at++ = '\n';
	return at;
}

/* The first record of a group has its size and names the innermost function; the group's other
 * records print nothing. */
static char *put_unwound(struct gt_text *text, const struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	uint64_t count = record->value;
	uint32_t left = record->depth + 1 > count ? (uint32_t)(record->depth + 1 - count) : 0;
	if (!(record->flags & GT_RECORD_FIRST))
		return at;
	at = begin_comment(text, source, left, at);
	if (record->flags & GT_RECORD_UNSEEN) {
		at = gt_put_number(at, count);
		at = count == 1 ? GT_PUT_LITERAL(at, " call") : GT_PUT_LITERAL(at, " calls");
		at = GT_PUT_LITERAL(at, " ended unseen");
	} else {
		at = GT_PUT_LITERAL(at, "unwound ");
		at = gt_put_number(at, count);
		at = count == 1 ? GT_PUT_LITERAL(at, " call") : GT_PUT_LITERAL(at, " calls");
	}
	if (record->function) {
		at = GT_PUT_LITERAL(at, ": ");
		at = put_name(name_of(text, record->function), at);
		if (count > 1)
			at = GT_PUT_LITERAL(at, " ...");
	}
	return end_comment(text, at);
}

static char *put_entry_only(struct gt_text *text, const struct gt_source *source, char *at)
{
	at = begin_comment(text, source, source->record.depth, at);
	at = put_name(name_of(text, source->record.function), at);
	at = gt_text_put_arguments(text, source, &source->record, GT_OPTION_GRAPH_ARGS, at);
	at = GT_PUT_LITERAL(at, " entered, return not recorded");
	return end_comment(text, at);
}

static char *put_marker(struct gt_text *text, const struct gt_source *source, char *at)
{
	at = begin_comment(text, source, source->record.depth, at);
	at = gt_text_put_marker(&source->record, at);
	return end_comment(text, at);
}

/* options/stacktrace, behind an event whose line began at `start`. */
static char *put_open_calls(struct gt_text *text, const struct gt_source *source, const char *start,
			    char *at)
{
	uint32_t functions[GT_TEXT_STACK_MAX];
	const uint32_t count = gt_text_stack_of(text, source, (size_t)(at - start), functions);

	if (!count)
		return at;
	at = begin_comment(text, source, source->record.depth, at);
	return end_comment(text, gt_text_put_stack(text, functions, count, at) - 1);
}

static char *put_event(struct gt_text *text, const struct gt_source *source, char *at)
{
	const char *const start = at;
	at = begin_comment(text, source, source->record.depth, at);
	at = end_comment(text, gt_text_put_event(text, source, at));
	return put_open_calls(text, source, start, at);
}

/* A kernel's CPU continues on another stack. Threads get the box of a task switch; interrupts
 * are printed as Linux prints them. */
static char *put_interrupt(struct gt_text *text, struct gt_source *source, uint64_t number,
			   char *at)
{
	bool inside = number >= GRAFTRACE_CONTEXT_INTERRUPT;
	/* A new interrupt has no open call yet; an ending one has none left. */
	uint64_t open = (uint64_t)source->around + source->record.open_before;
	source->around =
		inside && open > source->record.depth ? (uint32_t)(open - source->record.depth) : 0;
	if (inside == source->in_interrupt || !has(text, GT_OPTION_GRAPH_IRQS)) {
		source->in_interrupt = inside;
		return at;
	}
	source->in_interrupt = inside;
	at = put_prologue(text, source, source->record.clock, source->record.cpu, at);
	at = GT_PUT_LITERAL(at, "  ");
	at = inside ? GT_PUT_LITERAL(at, "==========>") : GT_PUT_LITERAL(at, "<==========");
	return GT_PUT_LITERAL(at, " |\n");
}

/* The thread continues on another stack of its own (a coroutine's, a signal's). */
static char *put_context_switch(struct gt_text *text, struct gt_source *source, char *at)
{
	uint64_t number = source->record.value;
	source->switched = source->record.clock + 1;
	if (source->decode.kernel)
		return put_interrupt(text, source, number, at);
	at = begin_comment(text, source, source->record.depth, at);
	at = GT_PUT_LITERAL(at, "stack ");
	at = gt_put_number(at, source->record.value);
	return end_comment(text, at);
}

/* Prints a line only if the event is enabled; otherwise the next record's box shows the switch. */
static char *put_task_switch(struct gt_text *text, const struct gt_source *source, char *at)
{
	if (!text->options.switches)
		return at;
	const char *const start = at;
	at = begin_comment(text, source, source->record.depth, at);
	at = end_comment(text, gt_text_put_switch(text, source, at));
	return put_open_calls(text, source, start, at);
}

char *gt_text_put_graph_edge(struct gt_text *text, const struct graftrace_latency_edge *edge,
			     char *at)
{
	struct gt_source source = gt_text_edge_source(text, edge);
	at = put_prologue(text, &source, edge->clock, source.record.cpu, at);
	at = put_duration(text, &source, edge->clock, edge->clock, at);
	at = gt_text_put_caller(text, edge->address, at);
	return GT_PUT_LITERAL(at, "();\n");
}

char *gt_text_put_graph(struct gt_text *text, struct gt_source *source, char *at)
{
	/* Calls made in a kernel's interrupts can be left out. */
	if (source->decode.kernel && source->record.context >= GRAFTRACE_CONTEXT_INTERRUPT &&
	    !has(text, GT_OPTION_GRAPH_IRQS) && source->record.kind != GT_RECORD_CONTEXT)
		return at;
	switch (source->record.kind) {
	case GT_RECORD_ENTRY:
		return put_entry(text, source, at);
	case GT_RECORD_RETURN:
		return put_return(text, source, at);
	case GT_RECORD_ENTRY_ONLY:
		return put_entry_only(text, source, at);
	case GT_RECORD_UNWOUND:
		return put_unwound(text, source, at);
	case GT_RECORD_EVENT:
		return put_event(text, source, at);
	case GT_RECORD_MARKER:
		return put_marker(text, source, at);
	case GT_RECORD_CONTEXT:
		return put_context_switch(text, source, at);
	case GT_RECORD_SWITCH:
		return put_task_switch(text, source, at);
	default:
		return at;
	}
}

/* ---- header ---- */

/* The number of columns by which a time stamp is wider than Linux's. */
static size_t more_digits(const struct gt_text *text)
{
	return text->options.nanoseconds ? 3 : 0;
}

/* Writes the header of the flags' column, after the columns on its left. */
static char *put_flags_header(const struct gt_text *text, char *at)
{
	static const char *const lines[] = { "  _-----=> irqs-off        \n",
					     " / _----=> need-resched    \n",
					     "| / _---=> hardirq/softirq \n",
					     "|| / _--=> preempt-depth   \n",
					     "||| /                      \n" };
	size_t before = (has(text, GT_OPTION_GRAPH_ABSTIME) ? 16 + more_digits(text) : 0) +
			(has_relative_time(text) ? 16 : 0) +
			(has(text, GT_OPTION_GRAPH_CPU) ? 4 : 0) +
			(has(text, GT_OPTION_GRAPH_PROC) ? 17 : 0);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		*at++ = '#';
		at = gt_put_fill(at, ' ', before);
		at = gt_put_bytes(at, lines[i], gt_text_length(lines[i], 64));
	}
	return at;
}

char *gt_text_put_graph_header(struct gt_text *text, char *at)
{
	bool latency = has(text, GT_OPTION_LATENCY_FORMAT);

	if (latency)
		at = put_flags_header(text, at);
	*at++ = '#';
	if (has(text, GT_OPTION_GRAPH_ABSTIME))
		at = gt_put_fill(GT_PUT_LITERAL(at, "     TIME       "), ' ', more_digits(text));
	if (has_relative_time(text))
		at = GT_PUT_LITERAL(at, "   REL TIME     ");
	if (has(text, GT_OPTION_GRAPH_CPU))
		at = GT_PUT_LITERAL(at, " CPU");
	if (has(text, GT_OPTION_GRAPH_PROC))
		at = GT_PUT_LITERAL(at, "  TASK/PID       ");
	if (latency)
		at = GT_PUT_LITERAL(at, "||||   ");
	if (has(text, GT_OPTION_GRAPH_DURATION))
		at = GT_PUT_LITERAL(at, "  DURATION   ");
	at = GT_PUT_LITERAL(at, "               FUNCTION CALLS\n#");
	if (has(text, GT_OPTION_GRAPH_ABSTIME))
		at = gt_put_fill(GT_PUT_LITERAL(at, "      |         "), ' ', more_digits(text));
	if (has_relative_time(text))
		at = GT_PUT_LITERAL(at, "      |         ");
	if (has(text, GT_OPTION_GRAPH_CPU))
		at = GT_PUT_LITERAL(at, " |  ");
	if (has(text, GT_OPTION_GRAPH_PROC))
		at = GT_PUT_LITERAL(at, "   |    |        ");
	if (latency)
		at = GT_PUT_LITERAL(at, "||||   ");
	if (has(text, GT_OPTION_GRAPH_DURATION))
		at = GT_PUT_LITERAL(at, "   |   |      ");
	return GT_PUT_LITERAL(at, "               |   |   |   |\n");
}

/* The longest step is a box, the columns, the indentation and two names. */
_Static_assert(GT_TEXT_STEP_MAX > 400 + GT_TEXT_NOTE_MAX + 2 * GT_VALUES_TEXT_MAX +
					  GRAPH_INDENT * GT_TEXT_DEPTH_MAX + 2 * GT_TEXT_NAME_MAX,
	       "a step fits");
