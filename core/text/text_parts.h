/* SPDX-License-Identifier: MIT */
/*
 * What the files of the text cursor share: names that were looked up, CPUs, times. Private to the
 * files text*.c. Each put_… writes at `at` and returns where the next byte goes (`at`: nothing was
 * written); one step's calls stay within GT_TEXT_STEP_MAX bytes. Nothing here fails or takes a lock:
 * the cursor is its caller's, one thread at a time, and so are the target's operations that are called.
 * A name may have up to GT_TEXT_NAME_MAX bytes; longer ones are cut off.
 */
#ifndef GT_CORE_TEXT_TEXT_PARTS_H
#define GT_CORE_TEXT_TEXT_PARTS_H

#include "core/text/text.h"
#include "core/text/text_write.h"

static inline bool has(const struct gt_text *text, uint64_t option)
{
	return (text->options.options & option) != 0;
}

/* text.c: names */

/* Sets name, length and clean of the entry. The string is not copied: it must live as long as the entry holds it. */
void gt_text_set_name(struct gt_text_name *entry, const char *name);
/* Fills the entry with function `number`, by the name that options.rename gives it. A function that the target does not
 * know gets the name NULL. The slow half of name_of(). */
void gt_text_look_up(struct gt_text *text, struct gt_text_name *entry, uint32_t number);
/* Writes a name that is not clean, with '?' for control characters; "function#7" if it is NULL. The slow half of
 * put_name(). */
char *gt_text_put_odd_name(const struct gt_text_name *entry, char *at);
/* Makes the slot that of CPU `number`: forgets all that was printed of the CPU before. The slow half of cpu_of(). */
void gt_text_set_cpu(struct gt_text *text, struct gt_text_cpu *cpu, uint32_t number);

/* The entry of function `number`, valid until a number that shares its slot is asked for. */
static inline const struct gt_text_name *name_of(struct gt_text *text, uint32_t number)
{
	struct gt_text_name *entry = &text->functions[number % GT_TEXT_NAMES];
	if (__builtin_expect(entry->key != number, 0))
		gt_text_look_up(text, entry, number);
	return entry;
}

/* Writes the whole name (put_short_name: a part). */
static inline char *put_name(const struct gt_text_name *entry, char *at)
{
	if (__builtin_expect(!entry->clean, 0))
		return gt_text_put_odd_name(entry, at);
	__builtin_memcpy(at, entry->name, entry->length);
	return at + entry->length;
}

/* The slot of CPU `number`, valid until a CPU that shares it is asked for. UINT32_MAX (unknown): that of CPU 0. */
static inline struct gt_text_cpu *cpu_of(struct gt_text *text, uint32_t number)
{
	struct gt_text_cpu *cpu;
	if (number == UINT32_MAX)
		number = 0;
	cpu = &text->cpus[number % GT_TEXT_CPUS];
	if (__builtin_expect(!cpu->prefix_length || cpu->cpu != number, 0))
		gt_text_set_cpu(text, cpu, number);
	return cpu;
}

/* Microseconds as seconds, "    1.000002". */
static inline char *put_seconds(char *at, uint64_t microseconds)
{
	at = gt_put_right(at, microseconds / 1000000, 5);
	*at++ = '.';
	return gt_put_padded(at, microseconds % 1000000, 6);
}

/* Nanoseconds as seconds with nine decimals. */
static inline char *put_nanoseconds(char *at, uint64_t ns)
{
	at = gt_put_right(at, ns / 1000000000, 5);
	*at++ = '.';
	return gt_put_padded(at, (uint32_t)(ns % 1000000000), 9);
}

/* A tsc as a time stamp of the clock that is shown: nanoseconds, of most clocks; with options.counts the number of the
 * record instead. */
static inline uint64_t stamp_of(const struct gt_text *text, uint64_t clock)
{
	if (text->options.counts)
		return text->counter;
	return gt_clock_ns(text->options.other_clock ? &text->options.clock : &text->target->clock,
			   clock);
}

/* The name of the source's thread; "<...>" without record-cmd, and if it was forgotten for newer ones. At most 16
 * bytes, which may lack a zero byte. */
static inline const char *comm_of(const struct gt_text *text, const struct gt_source *source)
{
	bool forgotten =
		text->options.names_kept != 0 && !source->decode.kernel &&
		(uint64_t)source->index + text->options.names_kept < text->merge.source_count;
	return source->comm[0] && !forgotten && has(text, GT_OPTION_RECORD_CMD) ? source->comm
										: "<...>";
}

/* Length of a marker's text as it is printed: without newlines at its end. */
static inline size_t marker_length(const struct gt_record *record)
{
	size_t length = gt_text_length(record->text, record->text_bytes);
	if (length > GT_TEXT_NAME_MAX)
		length = GT_TEXT_NAME_MAX;
	while (length && record->text[length - 1] == '\n')
		length--;
	return length;
}

/* A marker's text, without newlines at its end, cut at GT_TEXT_NAME_MAX bytes; of trace_marker_raw `# 1 buf: 61 62`. */
char *gt_text_put_marker(const struct gt_record *record, char *at);

/* `name: field=value …` of the source's EVENT record, without a newline; as options.event wants it, and with the tracer
 * blk as blktrace shows it. "event#7": the target does not know it. */
char *gt_text_put_event(struct gt_text *text, const struct gt_source *source, char *at);

/* The five letters of the CPU's state (irqs-off … migrate-disable); dots where it is not known. Of a
 * latency's records without a state what holds in all of it. */
char *gt_text_put_state(const struct gt_text *text, char *at, const struct gt_record *record);

/* The function that an address is in, as the options sym-offset and sym-addr want it; "0x…": there is none. */
char *gt_text_put_caller(struct gt_text *text, uint64_t address, char *at);

/* A source that no merge has, for the line of a latency's edge: its record, and tid and comm of the latency's
 * thread; all else is zero. Call it where options.latency is not NULL. */
struct gt_source gt_text_edge_source(const struct gt_text *text,
				     const struct graftrace_latency_edge *edge);
/* Whether lines have function_graph's layout; else they have the function tracer's. */
static inline bool gt_text_is_graph(const struct gt_text *text)
{
	return text->options.latency != NULL
		       ? text->options.latency->graph
		       : text->target->tracer == GRAFTRACE_TRACER_FUNCTION_GRAPH;
}

/* The first or last line of a latency, with its newline: `columns function();` of function_graph, `context function
 * <-caller` of the others. Call them where options.latency is not NULL. */
char *gt_text_put_graph_edge(struct gt_text *text, const struct graftrace_latency_edge *edge,
			     char *at);
char *gt_text_put_edge(struct gt_text *text, const struct graftrace_latency_edge *edge, char *at);

/* Writes a request to a block device as blktrace shows it, without a newline (text_blk.c), and moves *at behind it.
 * False: it is no such event, or lacks a field; *at stays. */
bool gt_text_put_block(const struct gt_event_format *format, const struct gt_record *record,
		       char **at);

/* A tracer's name (enum graftrace_tracer), "?" of an unknown one. A constant. */
const char *gt_text_tracer_name(unsigned tracer);

/* "(a=1, b=0x2)": what the call was made with, at most GT_VALUES_TEXT_MAX bytes and the brackets; "()" where that is not
 * known, or `option` (a bit of enum gt_control_option) is off. `record` is the source's, or the one ahead of it. */
char *gt_text_put_arguments(struct gt_text *text, const struct gt_source *source,
			    const struct gt_record *record, uint64_t option, char *at);
/* " ret=0x1": what a return returns; nothing where that is not known, or funcgraph-retval is off. */
char *gt_text_put_result(struct gt_text *text, const struct gt_source *source,
			 const struct gt_record *record, char *at);

/* `sched_switch: prev_comm=…` of the source's SWITCH record, without a newline. */
char *gt_text_put_switch(struct gt_text *text, const struct gt_source *source, char *at);

/* The functions of the calls that were open in a thread before its next record, innermost first. Returns how many, at most
 * GT_TEXT_STACK_MAX, for which `functions` has room; 0 in a trace without calls. */
uint32_t gt_text_open_calls(struct gt_source *writer, uint32_t *functions);

/* options/stacktrace: the same of the thread that leaves its CPU by the source's record, or whose event that is, as many
 * as have room in the step's text, of which `bytes` are used. 0: there are none to be shown, or the option is off. */
uint32_t gt_text_stack_of(struct gt_text *text, const struct gt_source *source, size_t bytes,
			  uint32_t *functions);

/* `<stack trace>` and a line a call, as Linux prints it, each with its newline. */
char *gt_text_put_stack(struct gt_text *text, const uint32_t *functions, uint32_t count, char *at);

/* The index-th function of a stack trace, innermost first; 0: there are no more to be shown. */
static inline uint32_t stack_function(const struct gt_record *record, uint32_t index)
{
	uint64_t word;
	if (index >= GT_TEXT_STACK_MAX || index >= record->text_bytes / 8)
		return 0;
	__builtin_memcpy(&word, record->text + (uint64_t)index * 8, 8);
	return graftrace_word_function(word);
}

/* Writes at most GT_TEXT_SHORT_MAX bytes of a name that shares its step with others. Needs room for the whole name. */
static inline char *put_short_name(const struct gt_text_name *name, char *at)
{
	char *end = put_name(name, at);
	return end - at > GT_TEXT_SHORT_MAX ? at + GT_TEXT_SHORT_MAX : end;
}

/* The source's record as function_graph shows it, with its newline; a record of a kind without lines: nothing. A call
 * that returns at once takes the record of its return, too (gt_merge_skip_ahead). */
char *gt_text_put_graph(struct gt_text *text, struct gt_source *source, char *at);
/* The lines with the columns' names. */
char *gt_text_put_graph_header(struct gt_text *text, char *at);

/* The source's record as the function tracer shows it, with its newline: a call, a stack trace, a marker, an event or a
 * switch. Nothing: a repeated call that is only counted, and events and switches as raw, hex or bin. May leave the
 * record for the next step (text->again). */
char *gt_text_put_function(struct gt_text *text, struct gt_source *source, char *at);
/* The line with the number of entries, and those with the columns' names; nothing with latency-format or verbose. */
char *gt_text_put_function_header(struct gt_text *text, char *at);
/* The number of records that are in the target now and that this reader neither was given nor leaves out. *lost: records
 * that its writers lost, full or overrun. Reads all sub-buffers. Without memory for one both are 0. */
uint64_t gt_text_count_entries(struct gt_text *text, uint64_t *lost);

/* text_latency.c: latency-format. */

/* The header of the latency tracers; nothing of an empty trace. */
char *gt_text_put_latency_header(struct gt_text *text, char *at);
/* What stands before a function's name, but for the time. Notes where the time belongs: text->late_at is its distance
 * from `line`, the beginning of the step's text. */
char *gt_text_put_latency_context(struct gt_text *text, const struct gt_source *source, char *line,
				  char *at);
/* Puts the time there once the next record's clock is known (at most 128 bytes), and returns the text's new length. */
size_t gt_text_finish_line(struct gt_text *text, char *line, size_t length, uint64_t next_clock);

/* text_dump.c. Whether one of the options raw, hex and bin is on. */
bool gt_text_is_dumped(const struct gt_text *text);
/* The source's record as they show it, a call, a marker or a stack trace. address: of the call's function, 0: unknown, or
 * it is no call. */
char *gt_text_put_dump(struct gt_text *text, const struct gt_source *source, uint64_t address,
		       char *at);

/* A mark beside a duration as Linux has them; ' ': it is 10 us or less. */
char gt_text_mark(uint64_t ns);

#endif
