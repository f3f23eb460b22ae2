/* SPDX-License-Identifier: MIT */
/*
 * What the files of the text cursor share: names that were looked up, CPUs, times. Private to
 * text.c, text_graph.c and text_function.c; each put_… writes at `at` and returns where the next
 * byte goes, within the GT_TEXT_STEP_MAX bytes of a step.
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
void gt_text_set_name(struct gt_text_name *entry, const char *name);
void gt_text_look_up(struct gt_text *text, struct gt_text_name *entry, uint32_t number);
char *gt_text_put_odd_name(const struct gt_text_name *entry, char *at);
void gt_text_set_cpu(struct gt_text *text, struct gt_text_cpu *cpu, uint32_t number);

static inline const struct gt_text_name *name_of(struct gt_text *text, uint32_t number)
{
	struct gt_text_name *entry = &text->functions[number % GT_TEXT_NAMES];
	if (__builtin_expect(entry->key != number, 0))
		gt_text_look_up(text, entry, number);
	return entry;
}

static inline char *put_name(const struct gt_text_name *entry, char *at)
{
	if (__builtin_expect(!entry->clean, 0))
		return gt_text_put_odd_name(entry, at);
	__builtin_memcpy(at, entry->name, entry->length);
	return at + entry->length;
}

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

static inline char *put_seconds(char *at, uint64_t microseconds)
{
	at = gt_put_right(at, microseconds / 1000000, 5);
	*at++ = '.';
	return gt_put_padded(at, microseconds % 1000000, 6);
}

static inline char *put_nanoseconds(char *at, uint64_t ns)
{
	at = gt_put_right(at, ns / 1000000000, 5);
	*at++ = '.';
	return gt_put_padded(at, (uint32_t)(ns % 1000000000), 9);
}

/* A time stamp in the units of the clock that is shown, nanoseconds of most. */
static inline uint64_t stamp_of(const struct gt_text *text, uint64_t clock)
{
	if (text->options.counts)
		return text->counter;
	return gt_clock_ns(text->options.other_clock ? &text->options.clock : &text->target->clock,
			   clock);
}

/* The name of a thread as it is known: with record-cmd, and not forgotten for newer ones. */
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

/* A marker's text, or of trace_marker_raw `# 1 buf: 61 62`. */
char *gt_text_put_marker(const struct gt_record *record, char *at);

/* `name: field=value …` of an event, without a newline. */
char *gt_text_put_event(struct gt_text *text, const struct gt_source *source, char *at);

/* The five letters of the CPU's state (irqs-off … migrate-disable); dots where it is not known. Of a
 * latency's records without a state what holds in all of it. */
char *gt_text_put_state(const struct gt_text *text, char *at, const struct gt_record *record);

/* The function that an address is in, as the options want it. */
char *gt_text_put_caller(struct gt_text *text, uint64_t address, char *at);

/* Who was there when a latency began, or ended. */
struct gt_source gt_text_edge_source(const struct gt_text *text,
				     const struct graftrace_latency_edge *edge);
static inline bool gt_text_is_graph(const struct gt_text *text)
{
	return text->options.latency != NULL
		       ? text->options.latency->graph
		       : text->target->tracer == GRAFTRACE_TRACER_FUNCTION_GRAPH;
}

/* The first or last line of a latency: `context function <-caller`. */
char *gt_text_put_graph_edge(struct gt_text *text, const struct graftrace_latency_edge *edge,
			     char *at);
char *gt_text_put_edge(struct gt_text *text, const struct graftrace_latency_edge *edge, char *at);

/* Requests to block devices as blktrace shows them (text_blk.c). False: it is no such event. */
bool gt_text_put_block(const struct gt_event_format *format, const struct gt_record *record,
		       char **at);

/* A tracer's name, "?" of an unknown one. */
const char *gt_text_tracer_name(unsigned tracer);

/* "(a=1, b=0x2)": what the call was made with; "()" where that is not known, or not to be shown. */
char *gt_text_put_arguments(struct gt_text *text, const struct gt_source *source,
			    const struct gt_record *record, uint64_t option, char *at);
/* " ret=0x1": what a return returns, or nothing. */
char *gt_text_put_result(struct gt_text *text, const struct gt_source *source,
			 const struct gt_record *record, char *at);

/* `sched_switch: prev_comm=…`, without a newline. */
char *gt_text_put_switch(struct gt_text *text, const struct gt_source *source, char *at);

/* The calls that were open in a thread before its next record, innermost first; 0 in a trace without calls.
 * functions: GT_TEXT_STACK_MAX. */
uint32_t gt_text_open_calls(struct gt_source *writer, uint32_t *functions);

/* options/stacktrace: those that were open in the thread that leaves its CPU by that record, or at that event, as many
 * as have room in the step's text, of which `bytes` are used; 0: there are none to be shown. */
uint32_t gt_text_stack_of(struct gt_text *text, const struct gt_source *source, size_t bytes,
			  uint32_t *functions);

/* `<stack trace>` and a line a call, as Linux prints it. */
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

/* A name that shares its line or step with others. */
static inline char *put_short_name(const struct gt_text_name *name, char *at)
{
	char *end = put_name(name, at);
	return end - at > GT_TEXT_SHORT_MAX ? at + GT_TEXT_SHORT_MAX : end;
}

/* One record as function_graph shows it, or nothing. */
char *gt_text_put_graph(struct gt_text *text, struct gt_source *source, char *at);
char *gt_text_put_graph_header(struct gt_text *text, char *at);

/* A record of the function tracer, or a marker among them. */
char *gt_text_put_function(struct gt_text *text, struct gt_source *source, char *at);
char *gt_text_put_function_header(struct gt_text *text, char *at);
/* Records in the target now, and those that were lost. */
uint64_t gt_text_count_entries(struct gt_text *text, uint64_t *lost);

/* text_latency.c: latency-format. What stands before a function's name, but for the time, whose
 * place is noted: gt_text_finish_line puts it there once the next record's clock is known, and
 * returns the new length. */
char *gt_text_put_latency_header(struct gt_text *text, char *at);
char *gt_text_put_latency_context(struct gt_text *text, const struct gt_source *source, char *line,
				  char *at);
size_t gt_text_finish_line(struct gt_text *text, char *line, size_t length, uint64_t next_clock);

/* text_dump.c: raw, hex and bin. The address of the function, 0 unknown. */
bool gt_text_is_dumped(const struct gt_text *text);
char *gt_text_put_dump(struct gt_text *text, const struct gt_source *source, uint64_t address,
		       char *at);

/* A mark beside a duration as Linux has them; ' ': it is short. */
char gt_text_mark(uint64_t ns);

#endif
