/* SPDX-License-Identifier: MIT */
/*
 * The function tracer's text, and the header that Linux prints for every tracer but function_graph.
 * The layout is that of kernel/trace/trace_output.c and trace.c.
 */
#include "core/text/text_parts.h"
#include "core/trace/word_walk.h"

#define REPEATS_MOST 65535 /* Linux counts in 16 bits */

/* ---- records ---- */

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
	if (gt_target_function_at(text->target, pid, address, &function) == 0 &&
	    function.name != NULL) {
		gt_text_set_name(entry, function.name);
		entry->address = function.address;
		entry->size = function.size;
	}
	return entry;
}

/* Writes a symbol in the form that the options ask for: name+0xoffset/0xsize <address>. */
static char *put_symbol(struct gt_text *text, const struct gt_text_name *entry, uint64_t address,
			char *at)
{
	if (entry->name != NULL || entry->key != address) {
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

static char *put_time(const struct gt_text *text, uint64_t clock, char *at)
{
	*at++ = ' ';
	if (text->options.units)
		return gt_put_right(at, stamp_of(text, clock) / text->options.units, 12);
	if (text->options.nanoseconds)
		return put_nanoseconds(at, stamp_of(text, clock));
	return put_seconds(at, (stamp_of(text, clock) + 500) / 1000);
}

/* Of a record that has no state: what holds in all of the latency that it lies in. Between the edges of
 * preemptoff interrupts are switched, and no record says when. */
static uint64_t state_within(const struct gt_text *text, const struct gt_record *record)
{
	if (text->options.latency == NULL)
		return 0;
	uint64_t kept = text->options.latency->worst.from.state;
	if (text->target->tracer != GRAFTRACE_TRACER_IRQSOFF)
		kept &= ~(uint64_t)GRAFTRACE_STATE_IRQS_OFF;
	return record->context >= GRAFTRACE_CONTEXT_INTERRUPT ? kept | GRAFTRACE_STATE_HARDIRQ
							      : kept;
}

/* Letters as in kernel/trace/trace_output.c (trace_print_lat_fmt), Linux 6.1. */
char *gt_text_put_state(const struct gt_text *text, char *at, const struct gt_record *record)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t state =
		record->kind == GT_RECORD_EVENT ? record->state : state_within(text, record);
	bool hard = state & GRAFTRACE_STATE_HARDIRQ;
	uint64_t depth = state >> GRAFTRACE_STATE_PREEMPT & 0xf;

	*at++ = state & GRAFTRACE_STATE_IRQS_OFF ? 'd' : '.';
	*at++ = state & GRAFTRACE_STATE_NEED_RESCHED ? 'N' : '.';
	*at++ = state & GRAFTRACE_STATE_NMI ? hard ? 'Z' : 'z' : hard ? 'h' : '.';
	*at++ = depth ? digits[depth] : '.';
	*at++ = '.';
	return at;
}

static char *put_context(struct gt_text *text, const struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	struct gt_text_cpu *cpu = cpu_of(text, record->cpu);
	const char *comm = comm_of(text, source);
	size_t length = gt_text_length(comm, sizeof(source->comm));
	char *line = at;

	if (!cpu->started && text->annotate && text->any && has(text, GT_OPTION_ANNOTATE)) {
		at = GT_PUT_LITERAL(at, "##### CPU ");
		at = gt_put_number(at, cpu->cpu);
		at = GT_PUT_LITERAL(at, " buffer started ####\n");
	}
	cpu->started = true;
	text->shown++;
	if (!has(text, GT_OPTION_CONTEXT_INFO))
		return at;
	if (has(text, GT_OPTION_LATENCY_FORMAT))
		return gt_text_put_latency_context(text, source, line, at);
	at = gt_put_fill(at, ' ', 16 - length);
	at = gt_put_clean(at, comm, length);
	*at++ = '-';
	char *start = at;
	at = gt_put_number(at, source->tid);
	if (at - start < 7)
		at = gt_put_fill(at, ' ', (size_t)(7 - (at - start)));
	if (has(text, GT_OPTION_RECORD_TGID)) {
		at = GT_PUT_LITERAL(at, " (");
		at = gt_put_right(at, source->pid, 7);
		*at++ = ')';
	}
	at = GT_PUT_LITERAL(at, " [");
	at = gt_put_padded(at, cpu->cpu, cpu->cpu > 999 ? gt_digits(cpu->cpu) : 3);
	at = GT_PUT_LITERAL(at, "] ");
	if (has(text, GT_OPTION_IRQ_INFO))
		at = gt_text_put_state(text, at, record);
	at = put_time(text, record->clock, at);
	return GT_PUT_LITERAL(at, ": ");
}

char *gt_text_put_caller(struct gt_text *text, uint64_t address, char *at)
{
	return put_symbol(text, caller_of(text, 0, address), address, at);
}

struct gt_source gt_text_edge_source(const struct gt_text *text,
				     const struct graftrace_latency_edge *edge)
{
	const struct gt_text_latency *latency = text->options.latency;
	struct gt_source source = { .tid = latency->worst.tid };
	source.record = (struct gt_record){ .kind = GT_RECORD_EVENT,
					    .state = edge->state,
					    .clock = edge->clock,
					    .cpu = latency->worst.cpu };
	__builtin_memcpy(source.comm, latency->comm, sizeof(source.comm));
	return source;
}

char *gt_text_put_edge(struct gt_text *text, const struct graftrace_latency_edge *edge, char *at)
{
	struct gt_source source = gt_text_edge_source(text, edge);
	at = put_context(text, &source, at);
	at = gt_text_put_caller(text, edge->address, at);
	if (has(text, GT_OPTION_PRINT_PARENT)) {
		at = GT_PUT_LITERAL(at, " <-");
		at = gt_text_put_caller(text, edge->caller, at);
	}
	*at++ = '\n';
	return at;
}

static char *put_call(struct gt_text *text, const struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	const struct gt_text_name *name = name_of(text, record->function);
	at = put_context(text, source, at);
	at = put_symbol(text, name, name->address, at);
	if (has(text, GT_OPTION_FUNC_ARGS) && record->flags & GT_RECORD_VALUES)
		at = gt_text_put_arguments(text, source, record, GT_OPTION_FUNC_ARGS, at);
	if (has(text, GT_OPTION_PRINT_PARENT)) {
		at = GT_PUT_LITERAL(at, " <-");
		at = put_symbol(text, caller_of(text, source->pid, record->caller), record->caller,
				at);
	}
	return at;
}

/* A repeated call is counted; its line is written when another call comes, as on Linux. */
static bool is_repeat(struct gt_source *source)
{
	struct gt_record *record = &source->record;
	if (record->function != source->last_function || record->caller != source->last_caller ||
	    source->repeats == REPEATS_MOST)
		return false;
	source->repeats++;
	source->repeated_at = record->clock;
	return true;
}

static char *put_repeats(struct gt_text *text, struct gt_source *source, char *at)
{
	struct gt_record record = source->record;
	source->record.function = source->last_function;
	source->record.caller = source->last_caller;
	at = put_call(text, source, at);
	source->record = record;
	at = GT_PUT_LITERAL(at, " (repeats: ");
	at = gt_put_number(at, source->repeats);
	at = GT_PUT_LITERAL(at, ", last_ts:");
	at = put_time(text, source->repeated_at, at);
	source->repeats = 0;
	source->last_function = 0;
	text->counter--;
	text->again = source; /* the other call becomes the next line */
	return GT_PUT_LITERAL(at, ")\n");
}

static char *put_function(struct gt_text *text, struct gt_source *source, char *at)
{
	if (has(text, GT_OPTION_FUNC_NO_REPEATS)) {
		if (is_repeat(source))
			return at;
		if (source->repeats)
			return put_repeats(text, source, at);
		source->last_function = source->record.function;
		source->last_caller = source->record.caller;
	}
	if (gt_text_is_dumped(text))
		return gt_text_put_dump(text, source,
					name_of(text, source->record.function)->address, at);
	at = put_call(text, source, at);
	*at++ = '\n';
	return at;
}

static bool is_message_only(const struct gt_text *text)
{
	return has(text, GT_OPTION_PRINTK_MSG_ONLY) && has(text, GT_OPTION_TRACE_PRINTK);
}

/* A marker among the function tracer's lines. */
static char *put_event(struct gt_text *text, const struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	if (gt_text_is_dumped(text) && !is_message_only(text))
		return gt_text_put_dump(text, source, 0, at);
	if (!is_message_only(text)) {
		at = put_context(text, source, at);
		if (!(record->flags & (GT_RECORD_RAW | GT_RECORD_TEXT)))
			at = GT_PUT_LITERAL(at, "tracing_mark_write: ");
	}
	at = gt_text_put_marker(record, at);
	*at++ = '\n';
	return at;
}

/* The caller's offset within its function is unknown: 0 is printed. */
static char *put_stack_name(struct gt_text *text, const struct gt_text_name *name, char *at)
{
	at = put_short_name(name, at);
	if (!has(text, GT_OPTION_SYM_ADDR))
		return at;
	at = GT_PUT_LITERAL(at, " <");
	at = gt_put_hex(at, name->address, 16);
	*at++ = '>';
	return at;
}

char *gt_text_put_stack(struct gt_text *text, const uint32_t *functions, uint32_t count, char *at)
{
	at = GT_PUT_LITERAL(at, "<stack trace>\n");
	for (uint32_t i = 0; i < count; i++) {
		at = GT_PUT_LITERAL(at, " => ");
		at = put_stack_name(text, name_of(text, functions[i]), at);
		*at++ = '\n';
	}
	return at;
}

static char *put_stack(struct gt_text *text, const struct gt_source *source, char *at)
{
	uint32_t functions[GT_TEXT_STACK_MAX], count = 0;
	if (has(text, GT_OPTION_FUNC_NO_REPEATS) && source->repeats)
		return at; /* its call is not shown */
	if (gt_text_is_dumped(text))
		return gt_text_put_dump(text, source, 0, at);
	while (count < GT_TEXT_STACK_MAX &&
	       (functions[count] = stack_function(&source->record, count)) != 0)
		count++;
	return gt_text_put_stack(text, functions, count, put_context(text, source, at));
}

/* options/stacktrace, behind an event whose line began at `start`. */
static char *put_open_calls(struct gt_text *text, const struct gt_source *source, const char *start,
			    char *at)
{
	uint32_t functions[GT_TEXT_STACK_MAX];
	const uint32_t count = gt_text_stack_of(text, source, (size_t)(at - start), functions);

	if (!count)
		return at;
	/* a step has room for one time that is filled in later */
	if (!has(text, GT_OPTION_LATENCY_FORMAT))
		at = put_context(text, source, at);
	return gt_text_put_stack(text, functions, count, at);
}

/* As on Linux, the line belongs to the thread that leaves the CPU. */
static char *put_switch(struct gt_text *text, const struct gt_source *source, char *at)
{
	const char *const start = at;
	if (gt_text_is_dumped(text))
		return at;
	struct gt_source leaving = { .record = source->record, .comm = "<...>" };
	at = put_context(text, source->record.previous_tid ? source : &leaving, at);
	at = gt_text_put_switch(text, source, at);
	*at++ = '\n';
	return put_open_calls(text, source, start, at);
}

/* Writes an event with fields. As raw numbers it is left out: it has no event number that
 * Linux's tools know. */
static char *put_fields(struct gt_text *text, const struct gt_source *source, char *at)
{
	if (gt_text_is_dumped(text))
		return at;
	const char *const start = at;
	at = put_context(text, source, at);
	at = gt_text_put_event(text, source, at);
	*at++ = '\n';
	return put_open_calls(text, source, start, at);
}

char *gt_text_put_function(struct gt_text *text, struct gt_source *source, char *at)
{
	if (source->record.kind == GT_RECORD_EVENT)
		return put_fields(text, source, at);
	if (source->record.kind == GT_RECORD_SWITCH)
		return put_switch(text, source, at);
	if (source->record.kind == GT_RECORD_STACK)
		return put_stack(text, source, at);

	if (source->record.kind == GT_RECORD_MARKER)
		return put_event(text, source, at);
	return put_function(text, source, at);
}

/* ---- header ---- */

static uint64_t words_before(const struct gt_merge_given *given, uint64_t sequence, uint64_t words)
{
	if (given->sequence < sequence)
		return 0;
	return given->sequence > sequence || given->words > words ? words : given->words;
}

/* Words at the beginning of a sub-buffer that this reader has read or cleared. As in stats, a
 * sub-buffer belongs to one CPU. */
static uint64_t words_given(const struct gt_merge *merge, uint32_t writer,
			    const struct graftrace_sub_buffer *bytes, uint64_t sequence,
			    uint64_t words)
{
	uint64_t all = writer < merge->given_count
			       ? words_before(&merge->given[writer], sequence, words)
			       : 0;
	uint64_t of_cpu = 0;
	if (merge->cpus != NULL && bytes->cpu < merge->cpu_count &&
	    writer < merge->cpus[bytes->cpu].count)
		of_cpu = words_before(&merge->cpus[bytes->cpu].given[writer], sequence, words);
	return all > of_cpu ? all : of_cpu;
}

/* The number of records in the target now, as this reader sees it. */
uint64_t gt_text_count_entries(struct gt_text *text, uint64_t *lost)
{
	struct gt_target *target = text->target;
	void *buffer = gt_memory_get(&text->merge.memory, target->sub_buffer_bytes);
	uint64_t entries = gt_merge_count_switches(&text->merge);
	*lost = 0;
	if (buffer == NULL)
		return 0;
	for (uint32_t i = 0; i < text->merge.source_count; i++) {
		struct gt_writer writer;
		uint64_t missing = 0;
		if (text->merge.sources[i] == NULL || target->ring->writer(target, i, &writer) != 0)
			continue;
		*lost += writer.lost[GRAFTRACE_LOST_FULL] + writer.lost[GRAFTRACE_LOST_OVERRUN];
		for (uint64_t s = writer.first; s < writer.next && missing < 1000;) {
			const struct graftrace_sub_buffer *bytes = NULL;
			int64_t words = target->ring->sub_buffer(target, i, s, buffer, &bytes);
			if (words < 0) {
				missing++;
				s = gt_target_next_sequence(target, i, s + 1);
				continue;
			}
			uint64_t given = words_given(&text->merge, i, bytes, s++, (uint64_t)words);
			entries += gt_words_records(bytes, (uint32_t)given, (uint32_t)words);
		}
	}
	gt_memory_put(&text->merge.memory, buffer, target->sub_buffer_bytes);
	return entries;
}

/* Writes a line of the header of the flags' column, which moves by ten columns where processes
 * are shown. */
#define PUT_FLAGS(at, tgid, flags)                                   \
	((at) = GT_PUT_LITERAL(at, "#                            "), \
	 (at) = gt_put_fill(at, ' ', (tgid) ? 12 : 2), (at) = GT_PUT_LITERAL(at, flags "\n"))

static char *put_columns(struct gt_text *text, char *at)
{
	bool tgid = has(text, GT_OPTION_RECORD_TGID);
	bool flags = has(text, GT_OPTION_IRQ_INFO);

	if (flags) {
		PUT_FLAGS(at, tgid, "  _-----=> irqs-off/BH-disabled");
		PUT_FLAGS(at, tgid, " / _----=> need-resched");
		PUT_FLAGS(at, tgid, "| / _---=> hardirq/softirq");
		PUT_FLAGS(at, tgid, "|| / _--=> preempt-depth");
		PUT_FLAGS(at, tgid, "||| / _-=> migrate-disable");
		PUT_FLAGS(at, tgid, "|||| /     delay");
	}
	at = GT_PUT_LITERAL(at, "#           TASK-PID  ");
	at = tgid ? GT_PUT_LITERAL(at, "     TGID   ") : GT_PUT_LITERAL(at, "  ");
	at = GT_PUT_LITERAL(at, " CPU#  ");
	at = flags ? GT_PUT_LITERAL(at, "|||||  ") : GT_PUT_LITERAL(at, "   ");
	at = GT_PUT_LITERAL(at, "TIMESTAMP  FUNCTION\n#              | |    ");
	at = tgid ? GT_PUT_LITERAL(at, "       |    ") : GT_PUT_LITERAL(at, "  ");
	at = GT_PUT_LITERAL(at, "   |   ");
	at = flags ? GT_PUT_LITERAL(at, "|||||  ") : GT_PUT_LITERAL(at, "   ");
	return GT_PUT_LITERAL(at, "   |         |\n");
}

char *gt_text_put_function_header(struct gt_text *text, char *at)
{
	uint64_t lost;
	uint64_t entries;

	if (has(text, GT_OPTION_LATENCY_FORMAT) || has(text, GT_OPTION_VERBOSE))
		return at;
	entries = gt_text_count_entries(text, &lost);
	at = GT_PUT_LITERAL(at, "# entries-in-buffer/entries-written: ");
	at = gt_put_number(at, entries);
	*at++ = '/';
	at = gt_put_number(at, entries + lost);
	at = GT_PUT_LITERAL(at, "   #P:");
	at = gt_put_number(at, text->target->cpu_count);
	return put_columns(text, GT_PUT_LITERAL(at, "\n#\n"));
}
