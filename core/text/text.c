/* SPDX-License-Identifier: MIT */
/*
 * ftrace's text, one step at a time: the header, or one record with the lines before it. A step is
 * written straight into the caller's buffer if that has room for the longest step, else into the
 * carry. Nothing here waits or allocates (except through the merge).
 */
#include "core/text/text_parts.h"

/* ---- names and CPUs ---- */

void gt_text_set_name(struct gt_text_name *entry, const char *name)
{
	size_t length = gt_text_length(name, GT_TEXT_NAME_MAX);
	entry->name = name;
	entry->length = (uint32_t)length;
	entry->clean = true;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
			entry->clean = false;
}

void gt_text_look_up(struct gt_text *text, struct gt_text_name *entry, uint32_t number)
{
	struct gt_function function = { .name = NULL };
	entry->key = number;
	entry->address = 0;
	entry->size = 0;
	if (gt_target_function(text->target, number, &function) == 0 && function.name != NULL) {
		if (text->options.rename != NULL)
			function.name = text->options.rename(text->options.rename_data, number,
							     function.name);
		gt_text_set_name(entry, function.name);
		entry->address = function.address;
		entry->size = function.size;
	} else {
		entry->name = NULL;
		entry->length = 0;
		entry->clean = false;
	}
}

char *gt_text_put_odd_name(const struct gt_text_name *entry, char *at)
{
	if (entry->name != NULL)
		return gt_put_clean(at, entry->name, entry->length);
	at = GT_PUT_LITERAL(at, "function#");
	return gt_put_number(at, entry->key);
}

/* A marker may have several lines, as on Linux; other control characters become '?'. */
static char *put_lines(char *at, const char *from, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (from[i] == '\n' || from[i] == '\t')
			*at++ = from[i];
		else
			at = gt_put_clean(at, from + i, 1);
	}
	return at;
}

char *gt_text_put_marker(const struct gt_record *record, char *at)
{
	uint32_t identifier = 0;
	uint32_t bytes = record->text_bytes;

	if (!(record->flags & GT_RECORD_RAW))
		return put_lines(at, record->text, marker_length(record));
	if (bytes > GT_TEXT_NAME_MAX / 3)
		bytes = GT_TEXT_NAME_MAX / 3;
	if (bytes >= sizeof(identifier))
		__builtin_memcpy(&identifier, record->text, sizeof(identifier));
	at = GT_PUT_LITERAL(at, "# ");
	at = gt_put_hex(at, identifier, 1);
	at = GT_PUT_LITERAL(at, " buf:");
	for (uint32_t i = sizeof(identifier); i < bytes; i++) {
		*at++ = ' ';
		at = gt_put_hex(at, (unsigned char)record->text[i], 2);
	}
	return at;
}

char *gt_text_put_event(struct gt_text *text, const struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	struct gt_event_format format;
	char *end = NULL;

	if (gt_target_event(text->target, (uint32_t)record->value, &format) != 0) {
		at = GT_PUT_LITERAL(at, "event#");
		return gt_put_number(at, record->value);
	}
	if (text->target->tracer == GRAFTRACE_TRACER_BLK && gt_text_put_block(&format, record, &at))
		return at;
	if (text->options.event != NULL)
		end = text->options.event(&format, record, at,
					  GT_EVENT_TEXT_MAX + GT_TEXT_NAME_MAX);
	return end != NULL ? end
			   : gt_event_put_named(&format, record, false, text->target, source->pid,
						at, GT_EVENT_TEXT_MAX + GT_TEXT_NAME_MAX);
}

char *gt_text_put_arguments(struct gt_text *text, const struct gt_source *source,
			    const struct gt_record *record, uint64_t option, char *at)
{
	char *end = NULL;

	*at++ = '(';
	if (has(text, option))
		end = gt_target_put_values(text->target, source->pid, record, false, at,
					   GT_VALUES_TEXT_MAX);
	at = end != NULL ? end : at;
	*at++ = ')';
	return at;
}

char *gt_text_put_result(struct gt_text *text, const struct gt_source *source,
			 const struct gt_record *record, char *at)
{
	char *end = NULL;

	if (has(text, GT_OPTION_GRAPH_RETVAL))
		end = gt_target_put_values(text->target, source->pid, record,
					   has(text, GT_OPTION_RETVAL_HEX),
					   GT_PUT_LITERAL(at, " ret="), GT_VALUES_TEXT_MAX);
	return end != NULL ? end : at;
}

static char *put_task(struct gt_text *text, const struct gt_source *source, uint64_t tid,
		      const char *which, char *at)
{
	char comm[16] = "<...>";
	if (source->decode.kernel) {
		gt_target_thread(text->target, (uint32_t)tid, comm);
	} else if (tid) {
		__builtin_memcpy(comm, source->comm, sizeof(comm));
	}
	at = gt_put_bytes(at, which, 4);
	at = GT_PUT_LITERAL(at, "_comm=");
	at = gt_put_clean(at, comm, gt_text_length(comm, sizeof(comm)));
	*at++ = ' ';
	at = gt_put_bytes(at, which, 4);
	at = GT_PUT_LITERAL(at, "_pid=");
	at = gt_put_number(at, tid);
	*at++ = ' ';
	at = gt_put_bytes(at, which, 4);
	return GT_PUT_LITERAL(at, "_prio=120");
}

/* Linux's letters of task states, without those that do not occur here. */
static char *put_state(uint64_t state, char *at)
{
	static const char letters[] = "SDTtXZPI";
	bool any = false;
	for (unsigned bit = 0; bit < sizeof(letters) - 1; bit++)
		if (state >> bit & 1) {
			if (any)
				*at++ = '|';
			*at++ = letters[bit];
			any = true;
		}
	if (!any)
		*at++ = 'R';
	if (state & GT_STATE_PREEMPTED)
		*at++ = '+';
	return at;
}

char *gt_text_put_switch(struct gt_text *text, const struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	at = GT_PUT_LITERAL(at, "sched_switch: ");
	at = put_task(text, source, record->previous_tid, "prev", at);
	at = GT_PUT_LITERAL(at, " prev_state=");
	at = put_state(record->state, at);
	at = GT_PUT_LITERAL(at, " ==> ");
	return put_task(text, source, record->next_tid, "next", at);
}

uint32_t gt_text_open_calls(struct gt_source *writer, uint32_t *functions)
{
	const struct gt_record *next = writer->state == GT_SOURCE_READY ? &writer->record : NULL;
	struct gt_decode *decode = &writer->decode;
	uint32_t depth = decode->depth, count = 0;

	if (next != NULL && next->kind == GT_RECORD_ENTRY)
		depth = next->depth;
	if (next != NULL && (next->kind == GT_RECORD_RETURN || next->kind == GT_RECORD_UNWOUND)) {
		depth = next->depth;
		if (next->function)
			functions[count++] = next->function;
	}
	while (depth > decode->low && count < GT_TEXT_STACK_MAX) {
		const struct gt_decode_frame *frame = gt_decode_frame(decode, --depth);
		if (frame != NULL && frame->function)
			functions[count++] = frame->function;
	}
	return count;
}

/* Of `count` calls how many have room in the step's text, of which `bytes` are used. */
static uint32_t stack_room(size_t bytes, uint32_t count)
{
	const size_t around =
		1024 + 2 * GT_TEXT_DEPTH_MAX; /* the columns, the indentation, a box before all */
	const size_t call = GT_TEXT_SHORT_MAX + 32; /* a name and its address */

	if (bytes + around > GT_TEXT_STEP_MAX)
		return 0;
	const uint32_t room = (uint32_t)((GT_TEXT_STEP_MAX - around - bytes) / call);
	return count < room ? count : room;
}

uint32_t gt_text_stack_of(struct gt_text *text, const struct gt_source *source, size_t bytes,
			  uint32_t *functions)
{
	if (!has(text, GT_OPTION_STACKTRACE) ||
	    (source->record.kind == GT_RECORD_SWITCH && !source->record.previous_tid))
		return 0;
	for (uint32_t i = text->merge.source_count; i-- > 0;) {
		struct gt_source *writer = text->merge.sources[i];
		if (writer != NULL && writer->buffer != NULL && !writer->decode.kernel &&
		    writer->tid == source->tid)
			return stack_room(bytes, gt_text_open_calls(writer, functions));
	}
	return 0;
}

/* Sets the CPU whose slot holds another CPU, or none yet. */
void gt_text_set_cpu(struct gt_text *text, struct gt_text_cpu *cpu, uint32_t number)
{
	char *at = cpu->prefix;
	__builtin_memset(cpu, 0, sizeof(*cpu));
	cpu->cpu = number;
	*at++ = ' ';
	at = gt_put_right(at, number, text->cpu_digits);
	*at++ = ')';
	*at++ = ' ';
	cpu->prefix_length = (uint8_t)(at - cpu->prefix);
}

/* ---- the cursor ---- */

const char *gt_text_tracer_name(unsigned tracer)
{
	static const char *const names[GRAFTRACE_TRACERS] = {
		"nop",	   "function",	 "function_graph", "blk",
		"irqsoff", "preemptoff", "preemptirqsoff"
	};
	return tracer < GRAFTRACE_TRACERS ? names[tracer] : "?";
}

static char *put_header(struct gt_text *text, char *at)
{
	unsigned tracer = text->target->tracer;
	const char *name = gt_text_tracer_name(tracer);
	at = GT_PUT_LITERAL(at, "# tracer: ");
	at = gt_put_bytes(at, name, gt_text_length(name, 32));
	at = GT_PUT_LITERAL(at, "\n#\n");
	if (!has(text, GT_OPTION_CONTEXT_INFO))
		return at;
	if (tracer == GRAFTRACE_TRACER_BLK) /* as blk_tracer_print_header */
		return at;
	if (has(text, GT_OPTION_LATENCY_FORMAT) || text->options.latency != NULL) {
		char *end = gt_text_put_latency_header(text, at);

		if (end == at)
			return at; /* an empty trace has no header */
		at = end;
	}
	return gt_text_is_graph(text) ? gt_text_put_graph_header(text, at)
				      : gt_text_put_function_header(text, at);
}

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

/* A record of a kernel while its tracer records no calls: calls and interrupts have no lines
 * then. */
static bool has_no_calls(const struct gt_text *text, const struct gt_source *source)
{
	return source->decode.kernel && (text->target->tracer == GRAFTRACE_TRACER_NOP ||
					 text->target->tracer == GRAFTRACE_TRACER_BLK);
}

static char *put_record(struct gt_text *text, struct gt_source *source, char *at)
{
	const struct gt_record *record = &source->record;
	switch (record->kind) {
	case GT_RECORD_LOST:
		return put_lost(text, source, record->value, at);
	case GT_RECORD_GAP:
		return put_lost(text, source, record->overrun, at);
	case GT_RECORD_FUNCTION:
		return gt_text_put_function(text, source, at);
	case GT_RECORD_STACK:
		return gt_text_put_function(text, source, at);
	case GT_RECORD_EVENT:
	case GT_RECORD_MARKER:
		/* in the form of the tracer's lines, even if the kernel's mark is in a
		 * sub-buffer of another one */
		if (!gt_text_is_graph(text) || source->decode.tracer == GRAFTRACE_TRACER_FUNCTION)
			return gt_text_put_function(text, source, at);
		return gt_text_put_graph(text, source, at);
	case GT_RECORD_SWITCH:
		if (source == text->merge.switches && !gt_text_is_graph(text))
			return gt_text_put_function(text, source, at);
		return has_no_calls(text, source) ? at : gt_text_put_graph(text, source, at);
	default:
		if (has_no_calls(text, source))
			return at;
		/* With the function tracer, records of other kinds have no lines of their own. */
		return source->decode.tracer == GRAFTRACE_TRACER_FUNCTION
			       ? at
			       : gt_text_put_graph(text, source, at);
	}
}

/* The first or the last line of a latency, which no record tells of. */
static int64_t step_edge(struct gt_text *text, bool first, char *buffer)
{
	const struct graftrace_latency *worst = &text->options.latency->worst;
	struct gt_source *source = NULL;
	uint64_t next = worst->to.clock;
	text->late_at = 0;
	const struct graftrace_latency_edge *edge = first ? &worst->from : &worst->to;
	char *at = gt_text_is_graph(text) ? gt_text_put_graph_edge(text, edge, buffer)
					  : gt_text_put_edge(text, edge, buffer);
	if (first && gt_merge_next(&text->merge, &source) > 0) {
		text->again = source;
		next = source->record.clock;
	}
	if (!text->late_at)
		return at - buffer;
	return (int64_t)gt_text_finish_line(text, buffer, (size_t)(at - buffer), next);
}

/* Makes one step. Returns the bytes written, 0 at the end, or GT_EAGAIN. */
static int64_t step(struct gt_text *text, char *buffer)
{
	if (!text->begun) {
		text->begun = true;
		if (text->options.header)
			return put_header(text, buffer) - buffer;
	}
	if (text->options.latency != NULL && !text->options.latency->worst.number)
		return 0;
	if (text->options.latency != NULL && !text->edges) {
		text->edges++;
		return step_edge(text, true, buffer);
	}
	for (;;) {
		struct gt_source *source = text->again;
		int found = source != NULL ? 1 : gt_merge_next(&text->merge, &source);
		if (found == 0 && text->options.latency != NULL && text->edges == 1) {
			text->edges++;
			return step_edge(text, false, buffer);
		}
		if (found <= 0)
			return found;
		text->again = NULL;
		text->late_at = 0;
		text->counter++;
		char *at = put_record(text, source, buffer);
		if (at == buffer)
			continue;
		text->any = true;
		if (!text->late_at)
			return at - buffer;
		if (text->again == NULL && gt_merge_next(&text->merge, &source) > 0)
			text->again = source;
		return (int64_t)gt_text_finish_line(text, buffer, (size_t)(at - buffer),
						    text->again != NULL ? text->again->record.clock
						    : text->options.latency != NULL
							    ? text->options.latency->worst.to.clock
							    : text->late_clock);
	}
}

/* Copies as much of the carry as the buffer has room for. */
static size_t give_carry(struct gt_text *text, char *buffer, size_t bytes)
{
	size_t count = text->held - text->given;
	if (count > bytes)
		count = bytes;
	__builtin_memcpy(buffer, text->carry + text->given, count);
	text->given += (uint32_t)count;
	return count;
}

int64_t gt_text_read(struct gt_text *text, char *buffer, size_t bytes)
{
	size_t done = give_carry(text, buffer, bytes);
	int64_t wrote;

	if (done == bytes)
		return (int64_t)done;
	gt_merge_poll(&text->merge);
	while (bytes - done >= GT_TEXT_STEP_MAX) {
		wrote = step(text, buffer + done);
		if (wrote <= 0)
			return done ? (int64_t)done : wrote;
		done += (size_t)wrote;
	}
	/* A large buffer ends with a whole line; a small one is filled. */
	if (done && bytes >= GT_TEXT_STEP_MAX)
		return (int64_t)done;
	while (done < bytes) {
		wrote = step(text, text->carry);
		if (wrote <= 0)
			return done ? (int64_t)done : wrote;
		text->held = (uint32_t)wrote;
		text->given = 0;
		done += give_carry(text, buffer + done, bytes - done);
	}
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
	if (error == 0 && options->switches)
		error = gt_merge_add_switches(&text->merge, options->switch_windows,
					      options->switch_window_count);
	if (error != 0) {
		gt_merge_fini(&text->merge);
		return error;
	}
	for (uint32_t i = 0; i < text->merge.source_count; i++) {
		struct gt_writer writer;
		if (target->ring->writer(target, i, &writer) == 0 &&
		    writer.lost[GRAFTRACE_LOST_OVERRUN])
			text->annotate = true;
	}
	return 0;
}

void gt_text_set_switches(struct gt_text *text, bool on, const struct gt_merge_window *windows,
			  uint32_t count)
{
	static const struct gt_merge_window never = { 0, 0 };
	if (on)
		gt_merge_add_switches(&text->merge, windows, count);
	else if (text->options.switches)
		gt_merge_add_switches(&text->merge, &never, 1);
	text->options.switches |= on;
}

void gt_text_finish(struct gt_text *text)
{
	gt_merge_finish(&text->merge);
}

void gt_text_fini(struct gt_text *text)
{
	gt_merge_fini(&text->merge);
}
