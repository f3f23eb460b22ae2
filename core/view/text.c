/* SPDX-License-Identifier: MIT */
/*
 * ftrace's text, a step at a time: the header, or one record with what goes before it. A step is
 * written straight into the caller's buffer while that has room for any step, else into the carry.
 * Nothing here waits, allocates (but through the merge) or formats with more than digits.
 */
#include "core/view/text.h"
#include "core/view/text_write.h"

#define GRAPH_INDENT 2
#define PROC_WIDTH   14 /* of "comm-tid", centred */
#define COMM_SHORT   7	/* characters of comm in it */

#define COLOR_LONG    "\033[33m" /* a call that took long */
#define COLOR_COMMENT "\033[2m"
#define COLOR_END     "\033[0m"

static bool has(const struct gt_text *text, uint32_t option)
{
	return (text->options.options & option) != 0;
}

/* ---- names ---- */

static void set_name(struct gt_text_name *entry, const char *name)
{
	size_t length = gt_text_length(name, GT_TEXT_NAME_MAX);
	entry->name = name;
	entry->length = (uint32_t)length;
	entry->clean = true;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
			entry->clean = false;
}

static void look_up(struct gt_text *text, struct gt_text_name *entry, uint32_t number)
{
	struct gt_function function = { .name = NULL };
	entry->key = number;
	entry->address = 0;
	entry->size = 0;
	if (text->target->ops->function(text->target, number, &function) == GT_OK &&
	    function.name) {
		set_name(entry, function.name);
		entry->address = function.address;
		entry->size = function.size;
	} else {
		entry->name = NULL;
		entry->length = 0;
		entry->clean = false;
	}
}

static inline const struct gt_text_name *name_of(struct gt_text *text, uint32_t number)
{
	struct gt_text_name *entry = &text->functions[number % GT_TEXT_NAMES];
	if (__builtin_expect(entry->key != number, 0))
		look_up(text, entry, number);
	return entry;
}

static char *put_name_slow(const struct gt_text_name *entry, char *at)
{
	if (entry->name)
		return gt_put_clean(at, entry->name, entry->length);
	at = GT_PUT_LITERAL(at, "function#");
	return gt_put_number(at, entry->key);
}

static inline char *put_name(const struct gt_text_name *entry, char *at)
{
	if (__builtin_expect(!entry->clean, 0))
		return put_name_slow(entry, at);
	__builtin_memcpy(at, entry->name, entry->length);
	return at + entry->length;
}

/* ---- columns ---- */

static char *put_seconds(char *at, uint64_t microseconds)
{
	at = gt_put_right(at, microseconds / 1000000, 5);
	*at++ = '.';
	return gt_put_padded(at, microseconds % 1000000, 6);
}

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

static struct gt_text_cpu *cpu_of(struct gt_text *text, uint32_t number)
{
	struct gt_text_cpu *cpu;
	if (number == UINT32_MAX)
		number = 0;
	cpu = &text->cpus[number % GT_TEXT_CPUS];
	if (__builtin_expect(!cpu->prefix_length || cpu->cpu != number, 0)) {
		char *at = cpu->prefix;
		__builtin_memset(cpu, 0, sizeof(*cpu));
		cpu->cpu = number;
		*at++ = ' ';
		at = gt_put_right(at, number, text->cpu_digits);
		*at++ = ')';
		*at++ = ' ';
		cpu->prefix_length = (uint8_t)(at - cpu->prefix);
	}
	return cpu;
}

/* Another task runs on the CPU: the box that says so. */
static char *put_switch(struct gt_text *text, const struct gt_source *source,
			struct gt_text_cpu *cpu, char *at)
{
	if (cpu->known && !has(text, GT_OPTION_GRAPH_PROC)) {
		at = GT_PUT_LITERAL(at, " ------------------------------------------\n");
		at = gt_put_bytes(at, cpu->prefix, cpu->prefix_length);
		at = put_proc(at, cpu->comm, cpu->tid);
		at = GT_PUT_LITERAL(at, " => ");
		at = put_proc(at, source->comm, source->tid);
		at = GT_PUT_LITERAL(at, "\n ------------------------------------------\n\n");
	}
	cpu->known = true;
	cpu->tid = source->tid;
	__builtin_memcpy(cpu->comm, source->comm, sizeof(cpu->comm));
	return at;
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
		at = put_seconds(at, gt_clock_ns(&text->target->clock, clock) / 1000);
		at = GT_PUT_LITERAL(at, " |  ");
	}
	if (has(text, GT_OPTION_GRAPH_CPU)) {
		/* Copies more than the prefix has: what follows is written over. */
		__builtin_memcpy(at, cpu->prefix, sizeof(cpu->prefix));
		at += cpu->prefix_length;
	}
	if (has(text, GT_OPTION_GRAPH_PROC)) {
		at = put_proc(at, source->comm, source->tid);
		at = GT_PUT_LITERAL(at, " | ");
	}
	return at;
}

static char mark_of(uint64_t ns)
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

/* Microseconds with as many decimals as seven digits leave room for. */
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

static char *put_duration(struct gt_text *text, uint64_t ticks, char *at)
{
	if (!has(text, GT_OPTION_GRAPH_DURATION) || !has(text, GT_OPTION_CONTEXT_INFO))
		return at;
	uint64_t ns = gt_clock_duration_ns(&text->target->clock, ticks);
	bool color = text->options.color && ns > 10000;
	if (color)
		at = GT_PUT_LITERAL(at, COLOR_LONG);
	*at++ = has(text, GT_OPTION_GRAPH_OVERHEAD) && ns > 10000 ? mark_of(ns) : ' ';
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
	/* Copies more than is wanted: what follows is written over. */
	if (__builtin_expect(count < sizeof(blanks), 1)) {
		__builtin_memcpy(at, blanks, 16);
		if (count > 16)
			__builtin_memcpy(at + 16, blanks, sizeof(blanks) - 16);
		return at + count;
	}
	__builtin_memset(at, ' ', count);
	return at + count;
}

/* ---- function_graph ---- */

static char *put_entry(struct gt_text *text, struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	const struct gt_text_name *name = name_of(text, record->function);
	uint32_t depth = record->depth;

	at = put_prologue(text, source, record->clock, record->cpu, at);
	const struct gt_record *ahead = gt_merge_ahead(&text->merge, source);
	if (ahead && ahead->kind == GT_RECORD_RETURN &&
	    ahead->function == source->record.function && ahead->start == source->record.clock &&
	    ahead->depth == depth && !(ahead->flags & GT_RECORD_START_UNKNOWN)) {
		uint64_t ticks = ahead->clock - ahead->start;
		gt_merge_skip_ahead(&text->merge, source);
		at = put_duration(text, ticks, at);
		at = put_indent(at, depth);
		at = put_name(name, at);
		return GT_PUT_LITERAL(at, "();\n");
	}
	at = put_no_duration(text, at);
	at = put_indent(at, depth);
	at = put_name(name, at);
	return GT_PUT_LITERAL(at, "() {\n");
}

static char *put_return(struct gt_text *text, const struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	at = put_prologue(text, source, record->clock, record->cpu, at);
	if (record->flags & GT_RECORD_START_UNKNOWN)
		at = put_no_duration(text, at);
	else
		at = put_duration(text, record->clock - record->start, at);
	at = put_indent(at, record->depth);
	/* Linux compares with what stands open at that depth: behind a switch of stacks that is
	 * another one's. */
	if ((record->flags & GT_RECORD_ENTRY_SEEN) && record->start >= source->switched &&
	    !has(text, GT_OPTION_GRAPH_TAIL))
		return GT_PUT_LITERAL(at, "}\n");
	at = GT_PUT_LITERAL(at, "} /* ");
	at = put_name(name_of(text, record->function), at);
	return GT_PUT_LITERAL(at, " */\n");
}

/* Linux indents comments by the calls open around them, but not at depth 1. */
static char *begin_comment(struct gt_text *text, const struct gt_source *source, uint32_t depth,
			   char *at)
{
	at = put_prologue(text, source, source->record.clock, source->record.cpu, at);
	at = put_no_duration(text, at);
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

/* The first record of a group says how many there are and names the innermost; the others of it
 * write nothing. */
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
	at = GT_PUT_LITERAL(at, "() entered, return not recorded");
	return end_comment(text, at);
}

static char *put_marker(struct gt_text *text, const struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	size_t length = gt_text_length(record->text, record->text_bytes);
	if (length > GT_TEXT_NAME_MAX)
		length = GT_TEXT_NAME_MAX;
	while (length && record->text[length - 1] == '\n')
		length--;
	at = begin_comment(text, source, record->depth, at);
	at = gt_put_clean(at, record->text, length);
	return end_comment(text, at);
}

/* Another stack of the same thread runs (a coroutine, a signal's). */
static char *put_context_switch(struct gt_text *text, struct gt_source *source, char *at)
{
	source->switched = source->record.clock + 1;
	at = begin_comment(text, source, source->record.depth, at);
	at = GT_PUT_LITERAL(at, "stack ");
	at = gt_put_number(at, source->record.value);
	return end_comment(text, at);
}

static char *put_task_switch(struct gt_text *text, const struct gt_source *source, char *at)
{
	at = begin_comment(text, source, source->record.depth, at);
	at = GT_PUT_LITERAL(at, "switch: ");
	at = gt_put_number(at, source->record.start);
	at = GT_PUT_LITERAL(at, " ==> ");
	at = gt_put_number(at, source->record.value);
	return end_comment(text, at);
}

/* ---- function ---- */

static const struct gt_text_name *caller_of(struct gt_text *text, uint32_t pid, uint64_t address)
{
	uint64_t place = (address * 0x9e3779b97f4a7c15ull) >> 54;
	struct gt_text_name *entry = &text->callers[place % GT_TEXT_NAMES];
	struct gt_function function = { .name = NULL };
	if (entry->key == address && entry->pid == pid)
		return entry;
	entry->key = address;
	entry->pid = pid;
	entry->name = NULL;
	entry->clean = false;
	if (text->target->ops->function_at &&
	    text->target->ops->function_at(text->target, pid, address, &function) == GT_OK &&
	    function.name) {
		set_name(entry, function.name);
		entry->address = function.address;
		entry->size = function.size;
	}
	return entry;
}

/* A symbol as the options want it: name+0xoffset/0xsize <address>. */
static char *put_symbol(struct gt_text *text, const struct gt_text_name *entry, uint64_t address,
			char *at)
{
	if (entry->name || entry->key != address) {
		at = put_name(entry, at);
		if (has(text, GT_OPTION_SYM_OFFSET)) {
			at = GT_PUT_LITERAL(at, "+0x");
			at = gt_put_hex(at, address - entry->address, 1);
			at = GT_PUT_LITERAL(at, "/0x");
			at = gt_put_hex(at, entry->size, 1);
		}
	} else {
		at = GT_PUT_LITERAL(at, "0x");
		at = gt_put_hex(at, address, 1);
	}
	if (has(text, GT_OPTION_SYM_ADDR)) {
		at = GT_PUT_LITERAL(at, " <");
		at = gt_put_hex(at, address, 16);
		*at++ = '>';
	}
	return at;
}

static char *put_context(struct gt_text *text, const struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	struct gt_text_cpu *cpu = cpu_of(text, record->cpu);
	size_t length = gt_text_length(source->comm, sizeof(source->comm));

	if (!cpu->started && text->annotate && text->any) {
		at = GT_PUT_LITERAL(at, "##### CPU ");
		at = gt_put_number(at, cpu->cpu);
		at = GT_PUT_LITERAL(at, " buffer started ####\n");
	}
	cpu->started = true;
	if (!has(text, GT_OPTION_CONTEXT_INFO))
		return at;
	if (length) {
		at = gt_put_fill(at, ' ', 16 - length);
		at = gt_put_clean(at, source->comm, length);
	} else {
		at = GT_PUT_LITERAL(at, "           <...>");
	}
	*at++ = '-';
	char *start = at;
	at = gt_put_number(at, source->tid);
	if (at - start < 7)
		at = gt_put_fill(at, ' ', (size_t)(7 - (at - start)));
	at = GT_PUT_LITERAL(at, " [");
	at = gt_put_padded(at, cpu->cpu, cpu->cpu > 999 ? gt_digits(cpu->cpu) : 3);
	at = GT_PUT_LITERAL(at, "] ");
	if (has(text, GT_OPTION_IRQ_INFO))
		at = GT_PUT_LITERAL(at, ".....");
	*at++ = ' ';
	at = put_seconds(at, (gt_clock_ns(&text->target->clock, record->clock) + 500) / 1000);
	return GT_PUT_LITERAL(at, ": ");
}

static char *put_function(struct gt_text *text, const struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	const struct gt_text_name *name = name_of(text, record->function);
	at = put_context(text, source, at);
	at = put_symbol(text, name, name->address, at);
	if (has(text, GT_OPTION_PRINT_PARENT)) {
		at = GT_PUT_LITERAL(at, " <-");
		at = put_symbol(text, caller_of(text, source->pid, record->value), record->value,
				at);
	}
	*at++ = '\n';
	return at;
}

/* A marker among the function tracer's lines. */
static char *put_event(struct gt_text *text, const struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	size_t length = gt_text_length(record->text, record->text_bytes);
	if (length > GT_TEXT_NAME_MAX)
		length = GT_TEXT_NAME_MAX;
	while (length && record->text[length - 1] == '\n')
		length--;
	at = put_context(text, source, at);
	at = GT_PUT_LITERAL(at, "tracing_mark_write: ");
	at = gt_put_clean(at, record->text, length);
	*at++ = '\n';
	return at;
}

/* ---- headers ---- */

/* Records of the function tracer in the target now. */
static uint64_t count_entries(struct gt_text *text, uint64_t *lost)
{
	struct gt_target *target = text->target;
	void *buffer = gt_memory_get(&text->merge.memory, target->sub_buffer_bytes);
	uint64_t entries = 0;
	*lost = 0;
	if (!buffer)
		return 0;
	for (uint32_t i = 0; i < text->merge.source_count; i++) {
		struct gt_writer writer;
		uint64_t missing = 0;
		if (!text->merge.sources[i] || target->ops->writer(target, i, &writer) != GT_OK)
			continue;
		*lost += writer.lost[GRAFTRACE_LOST_FULL] + writer.lost[GRAFTRACE_LOST_OVERRUN];
		for (uint64_t s = writer.first; s < writer.next && missing < 1000;) {
			const struct graftrace_sub_buffer *bytes = NULL;
			int64_t words = target->ops->sub_buffer(target, i, s, buffer, &bytes);
			if (words < 0) {
				missing++;
				s = gt_target_next_sequence(target, i, s + 1);
				continue;
			}
			s++;
			const uint64_t *word = (const uint64_t *)(bytes + 1);
			for (int64_t w = 0; w + 1 < words; w += 2)
				entries += graftrace_word_function(word[w]) - 1u <
					   GRAFTRACE_SPECIAL - 1u;
		}
	}
	gt_memory_put(&text->merge.memory, buffer, target->sub_buffer_bytes);
	return entries;
}

static char *put_function_header(struct gt_text *text, char *at)
{
	uint64_t lost;
	uint64_t entries = count_entries(text, &lost);
	at = GT_PUT_LITERAL(at, "# entries-in-buffer/entries-written: ");
	at = gt_put_number(at, entries);
	*at++ = '/';
	at = gt_put_number(at, entries + lost);
	at = GT_PUT_LITERAL(at, "   #P:");
	at = gt_put_number(at, text->target->cpu_count);
	if (has(text, GT_OPTION_IRQ_INFO))
		return GT_PUT_LITERAL(
			at, "\n#\n"
			    "#                                _-----=> irqs-off/BH-disabled\n"
			    "#                               / _----=> need-resched\n"
			    "#                              | / _---=> hardirq/softirq\n"
			    "#                              || / _--=> preempt-depth\n"
			    "#                              ||| / _-=> migrate-disable\n"
			    "#                              |||| /     delay\n"
			    "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
			    "#              | |         |   |||||     |         |\n");
	return GT_PUT_LITERAL(at, "\n#\n"
				  "#           TASK-PID   CPU#     TIMESTAMP  FUNCTION\n"
				  "#              | |       |         |         |\n");
}

static char *put_graph_header(struct gt_text *text, char *at)
{
	*at++ = '#';
	if (has(text, GT_OPTION_GRAPH_ABSTIME))
		at = GT_PUT_LITERAL(at, "     TIME       ");
	if (has(text, GT_OPTION_GRAPH_CPU))
		at = GT_PUT_LITERAL(at, " CPU");
	if (has(text, GT_OPTION_GRAPH_PROC))
		at = GT_PUT_LITERAL(at, "  TASK/PID       ");
	if (has(text, GT_OPTION_GRAPH_DURATION))
		at = GT_PUT_LITERAL(at, "  DURATION   ");
	at = GT_PUT_LITERAL(at, "               FUNCTION CALLS\n#");
	if (has(text, GT_OPTION_GRAPH_ABSTIME))
		at = GT_PUT_LITERAL(at, "      |         ");
	if (has(text, GT_OPTION_GRAPH_CPU))
		at = GT_PUT_LITERAL(at, " |  ");
	if (has(text, GT_OPTION_GRAPH_PROC))
		at = GT_PUT_LITERAL(at, "   |    |        ");
	if (has(text, GT_OPTION_GRAPH_DURATION))
		at = GT_PUT_LITERAL(at, "   |   |      ");
	return GT_PUT_LITERAL(at, "               |   |   |   |\n");
}

static char *put_header(struct gt_text *text, char *at)
{
	static const char *const names[] = { "nop", "function", "function_graph" };
	unsigned tracer = text->target->tracer;
	const char *name = tracer < 3 ? names[tracer] : "?";
	at = GT_PUT_LITERAL(at, "# tracer: ");
	at = gt_put_bytes(at, name, gt_text_length(name, 32));
	at = GT_PUT_LITERAL(at, "\n#\n");
	if (!has(text, GT_OPTION_CONTEXT_INFO))
		return at;
	return tracer == GRAFTRACE_TRACER_FUNCTION_GRAPH ? put_graph_header(text, at)
							 : put_function_header(text, at);
}

/* ---- the cursor ---- */

static char *put_lost(struct gt_text *text, const struct gt_source *source, uint64_t count,
		      char *at)
{
	at = GT_PUT_LITERAL(at, "CPU:");
	at = gt_put_number(at, cpu_of(text, source->record.cpu)->cpu);
	if (!count)
		return GT_PUT_LITERAL(at, " [LOST EVENTS]\n");
	at = GT_PUT_LITERAL(at, " [LOST ");
	at = gt_put_number(at, count);
	return GT_PUT_LITERAL(at, " EVENTS]\n");
}

/* What cannot be reached without memory for it: a step is at most a box, the columns, the
 * indentation and two names. */
_Static_assert(GT_TEXT_STEP_MAX > 400 + GRAPH_INDENT * GT_TEXT_DEPTH_MAX + 2 * GT_TEXT_NAME_MAX,
	       "a step fits");

static char *put_record(struct gt_text *text, struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	switch (record->kind) {
	case GT_RECORD_ENTRY:
		return put_entry(text, source, at);
	case GT_RECORD_RETURN:
		return put_return(text, source, at);
	case GT_RECORD_FUNCTION:
		return put_function(text, source, at);
	case GT_RECORD_ENTRY_ONLY:
		return put_entry_only(text, source, at);
	case GT_RECORD_UNWOUND:
		return put_unwound(text, source, at);
	case GT_RECORD_MARKER:
		return source->decode.tracer == GRAFTRACE_TRACER_FUNCTION
			       ? put_event(text, source, at)
			       : put_marker(text, source, at);
	case GT_RECORD_CONTEXT:
		return put_context_switch(text, source, at);
	case GT_RECORD_SWITCH:
		return put_task_switch(text, source, at);
	case GT_RECORD_LOST:
		return put_lost(text, source, record->value, at);
	case GT_RECORD_GAP:
		return put_lost(text, source, record->start, at);
	default:
		return at;
	}
}

/* One step. The bytes written, 0: the end, GT_EAGAIN. */
static int64_t step(struct gt_text *text, char *buffer)
{
	if (!text->begun) {
		text->begun = true;
		if (text->options.header)
			return put_header(text, buffer) - buffer;
	}
	for (;;) {
		struct gt_source *source;
		int found = gt_merge_next(&text->merge, &source);
		if (found <= 0)
			return found;
		char *at = put_record(text, source, buffer);
		if (at != buffer) {
			text->any = true;
			return at - buffer;
		}
	}
}

int64_t gt_text_read(struct gt_text *text, char *buffer, size_t bytes)
{
	size_t done = 0;
	int64_t wrote = 0;

	if (!bytes)
		return 0;
	if (text->given == text->held) {
		text->given = text->held = 0;
		gt_merge_poll(&text->merge);
		while (bytes - done >= GT_TEXT_STEP_MAX) {
			wrote = step(text, buffer + done);
			if (wrote <= 0)
				return done ? (int64_t)done : wrote;
			done += (size_t)wrote;
		}
		if (done)
			return (int64_t)done;
		wrote = step(text, text->carry);
		if (wrote <= 0)
			return wrote;
		text->held = (uint32_t)wrote;
	}
	done = text->held - text->given < bytes ? text->held - text->given : bytes;
	__builtin_memcpy(buffer, text->carry + text->given, done);
	text->given += (uint32_t)done;
	return (int64_t)done;
}

int gt_text_init(struct gt_text *text, struct gt_target *target, const struct gt_memory *memory,
		 const struct gt_text_options *options)
{
	__builtin_memset(text, 0, sizeof(*text));
	text->target = target;
	text->options = *options;
	text->cpu_digits = (uint8_t)gt_digits(target->cpu_count > 1 ? target->cpu_count - 1 : 0);
	int error = gt_merge_init(&text->merge, target, memory, options->mode, options->filter);
	if (error != GT_OK)
		return error;
	for (uint32_t i = 0; i < text->merge.source_count; i++) {
		struct gt_writer writer;
		if (target->ops->writer(target, i, &writer) == GT_OK &&
		    writer.lost[GRAFTRACE_LOST_OVERRUN])
			text->annotate = true;
	}
	return GT_OK;
}

void gt_text_finish(struct gt_text *text)
{
	gt_merge_finish(&text->merge);
}

void gt_text_forget_names(struct gt_text *text)
{
	__builtin_memset(text->functions, 0, sizeof(text->functions));
	__builtin_memset(text->callers, 0, sizeof(text->callers));
}

void gt_text_fini(struct gt_text *text)
{
	gt_merge_fini(&text->merge);
}
