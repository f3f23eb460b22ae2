/* SPDX-License-Identifier: MIT */
/*
 * See route.h. The decoder's frames keep what was decided at a call's entry (their mark), so a
 * change of settings does not affect open calls. Records are written by the rules of
 * <graftrace/record.h>, as the agent writes them: a return whose entry is not in the same
 * sub-buffer has its entry's clock with it.
 */
#include "serve/store/route.h"

#include <stdlib.h>
#include <string.h>

#include "core/trace/decode_fast.h"
#include "port/host/memory.h"

#define WORDS	    ((GT_ROUTE_PIECE_BYTES - sizeof(struct graftrace_sub_buffer)) / 8)
#define STACK_CALLS 32 /* the most in a stack trace */
#define EVENT_WORDS 64 /* the most of an event: a program's have 32 */
#define WORDS_SYNC \
	16 /* the most that a record takes with the records that precede it; see room() */

/* What is known of an event. */
#define EVENT_UNKNOWN 0
#define EVENT_WANTED  1
#define EVENT_LEFT    2

/* A frame's mark. */
#define KNOWN	1u  /* decided */
#define SHOWN	2u  /* it is in this instance's trace */
#define INSIDE	4u  /* of set_graph_function, or below it */
#define OUT	16u /* of set_graph_notrace, or below it */
#define WRITTEN 8u  /* its entry is in the sub-buffer with … */
#define PIECE	32u /* … this sequence, modulo … */
#define PIECES	2048u

/* Settings */

void gt_route_init(struct gt_route *route)
{
	route->want = (struct gt_route_want){ .settings = { .tracer = GRAFTRACE_TRACER_NOP } };
	route->filtered = route->rooted = false;
	route->functions = NULL;
	route->function_count = 0;
	route->events = NULL;
	route->event_count = 0;
	route->commands = NULL;
	route->command_count = 0;
	route->threads[0] = route->threads[1] = NULL;
	route->thread_count[0] = route->thread_count[1] = 0;
	route->due = 0;
}

void gt_route_set(struct gt_route *route, const struct gt_route_want *want)
{
	struct gt_trace_settings old = route->want.settings;

	route->want = *want;
	route->want.settings = gt_trace_settings_copy(&want->settings);
	gt_trace_settings_fini(&old);
	route->filtered = want->settings.lists[GT_LIST_FILTER] != NULL;
	route->rooted = gt_trace_settings_has_roots(&want->settings);
	for (uint32_t i = 0; i < route->function_count; i++)
		route->functions[i].known = false;
	if (route->event_count > 0)
		memset(route->events, EVENT_UNKNOWN, route->event_count);
}

void gt_route_switch(struct gt_route *route, bool on)
{
	route->want.settings.on = on;
}

void gt_route_fini(struct gt_route *route)
{
	gt_trace_settings_fini(&route->want.settings);
	free(route->functions);
	free(route->events);
	free(route->commands);
	free(route->threads[0]);
	free(route->threads[1]);
}

static bool wants_calls(const struct gt_route *route)
{
	return route->want.settings.tracer == GRAFTRACE_TRACER_FUNCTION_GRAPH;
}

static bool is_in(const struct gt_word_list *list, const struct gt_function *named)
{
	return gt_word_list_match(list, named->name) ||
	       gt_word_list_match_module(list, named->object, named->name);
}

/* Looks a function up. False: it does not exist. */
static bool look_up(struct gt_route *route, uint32_t number, struct gt_route_function *function)
{
	struct gt_word_list *const *lists = route->want.settings.lists;
	struct gt_function named;

	*function = (struct gt_route_function){ .known = true, .wanted = !route->filtered };
	if (gt_target_function(route->source, number, &named) != 0)
		return false;
	function->address = named.address;
	function->root = route->rooted && gt_word_list_match(lists[GT_LIST_GRAPH], named.name);
	function->commands = gt_route_commands_of(route, named.name);
	function->out =
		wants_calls(route) && gt_word_list_match(lists[GT_LIST_GRAPH_NOTRACE], named.name);
	function->wanted =
		!is_in(lists[GT_LIST_NOTRACE], &named) &&
		(!route->filtered || function->root || is_in(lists[GT_LIST_FILTER], &named));
	return true;
}

/* Returns what is known of a function. It is looked up each time if its number is no function's
 * (such numbers may be as large as a program likes), or if there is no memory to keep it. */
static struct gt_route_function function_of(struct gt_route *route, uint32_t number)
{
	struct gt_route_function function;

	if (number < route->function_count && route->functions[number].known)
		return route->functions[number];
	if (!look_up(route, number, &function))
		return function;
	if (number >= route->function_count) {
		uint32_t count = (number | 1023) + 1;
		struct gt_route_function *grown = realloc(route->functions, count * sizeof(*grown));

		if (grown == NULL)
			return function;
		memset(grown + route->function_count, 0,
		       (count - route->function_count) * sizeof(*grown));
		route->functions = grown;
		route->function_count = count;
	}
	route->functions[number] = function;
	return function;
}

/* Whether the instance wants the event, as its settings are. Numbers of no event are not kept: a program
 * may make them as large as it likes. */
static bool wants_event(struct gt_route *route, uint32_t number)
{
	const struct gt_route_want *want = &route->want;
	struct gt_event_format format;
	bool wanted;

	if (number < route->event_count && route->events[number] != EVENT_UNKNOWN)
		return route->events[number] == EVENT_WANTED;
	if (gt_target_event(route->source, number, &format) != 0)
		return false;
	wanted = gt_event_words_match(gt_word_list_words(want->settings.lists[GT_LIST_EVENTS]),
				      format.system, format.name,
				      want->marks && gt_event_is_mark(format.system, format.name));
	if (!wanted && want->also != NULL)
		wanted = want->also(want->also_data, format.system, format.name);
	if (number >= route->event_count) {
		uint32_t count = (number | 63) + 1;
		uint8_t *grown = realloc(route->events, count);

		if (grown == NULL)
			return wanted;
		memset(grown + route->event_count, EVENT_UNKNOWN, count - route->event_count);
		route->events = grown;
		route->event_count = count;
	}
	route->events[number] = wanted ? EVENT_WANTED : EVENT_LEFT;
	return wanted;
}

static bool is_recording(const struct gt_route *route, const struct gt_route_writer *writer)
{
	return !writer->silent && !writer->left_out && route->want.settings.on &&
	       route->want.settings.tracer != GRAFTRACE_TRACER_NOP;
}

/* Decides on a call: its mark, given its parent's, without the bits that say where its entry is
 * written. */
static uint16_t decide(struct gt_route *route, uint16_t parent, uint32_t number, uint64_t start)
{
	struct gt_route_function function = function_of(route, number);
	bool inside = !route->rooted || (parent & INSIDE) || function.root;
	bool out = (parent & OUT) || function.out;

	return (uint16_t)(KNOWN | (inside ? INSIDE : 0) | (out ? OUT : 0) |
			  (inside && !out && function.wanted && number != 0 &&
					   start >= route->want.since
				   ? SHOWN
				   : 0));
}

static uint16_t mark_at(struct gt_decode *decode, uint32_t depth)
{
	const struct gt_decode_frame *frame = gt_decode_frame(decode, depth);

	return frame != NULL ? frame->mark : 0;
}

/* Counts the calls shown of depths 0 … depth - 1; decides on those that are known from a header
 * only. Calls further out than the header lists are unknown: they are shown if all calls are. */
static void count(struct gt_route *route, struct gt_route_writer *writer, uint32_t depth)
{
	struct gt_decode *decode = &writer->decode;
	uint32_t from = decode->low < depth ? decode->low : depth;
	uint16_t parent = route->rooted ? 0 : INSIDE;

	writer->depth = route->filtered || route->rooted ? 0 : from;
	for (uint32_t at = from; at < depth; at++) {
		struct gt_decode_frame *frame = gt_decode_frame(decode, at);

		if (frame == NULL)
			continue;
		if (!(frame->mark & KNOWN))
			frame->mark = decide(route, parent, frame->function, frame->clock);
		parent = frame->mark;
		writer->depth += (frame->mark & SHOWN) != 0;
	}
	writer->counted = true;
}

/* Writing */

static void put(struct gt_route_writer *writer, uint64_t word)
{
	((uint64_t *)(writer->piece + 1))[writer->used++] = word;
}

static bool is_pairs(const struct gt_route_writer *writer)
{
	return writer->piece->tracer == GRAFTRACE_TRACER_FUNCTION;
}

static void put_special(struct gt_route_writer *writer, enum graftrace_special kind,
			uint32_t argument)
{
	put(writer, graftrace_special_word(kind, argument));
	if (is_pairs(writer))
		put(writer, graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 0));
}

/* Lists the innermost calls shown in the header. ended: an additional one, which ends with the
 * record that opens this sub-buffer. */
static void list_open(struct gt_route_writer *writer, const struct gt_record *ended)
{
	struct graftrace_sub_buffer *piece = writer->piece;
	struct graftrace_open_call found[GRAFTRACE_OPEN_CALLS];
	struct gt_decode *decode = &writer->decode;
	uint32_t depth = writer->depth, at, n = 0;

	at = decode->depth;
	if (ended != NULL) {
		found[n++] = (struct graftrace_open_call){ ended->start, ended->function, depth };
		at = ended->depth < at ? ended->depth : at;
	} else if (at > 0 && !(mark_at(decode, at - 1) & KNOWN)) {
		at--; /* this entry is being decided on */
	}
	while (at > decode->low && depth > 0 && n < GRAFTRACE_OPEN_CALLS) {
		const struct gt_decode_frame *frame = gt_decode_frame(decode, --at);

		if (frame != NULL && frame->mark & SHOWN)
			found[n++] = (struct graftrace_open_call){ frame->clock, frame->function,
								   --depth };
	}
	piece->depth = writer->depth + (ended != NULL);
	piece->open_calls = (uint16_t)n;
	for (uint32_t i = 0; i < n; i++)
		piece->open[i] = found[n - 1 - i];
}

/* Whose words a sub-buffer has. Without calls it is as one of function_graph, as the agent's are. */
static uint16_t tracer_of(const struct gt_route *route)
{
	return route->want.settings.tracer == GRAFTRACE_TRACER_FUNCTION
		       ? GRAFTRACE_TRACER_FUNCTION
		       : GRAFTRACE_TRACER_FUNCTION_GRAPH;
}

static bool open_piece(struct gt_route *route, struct gt_route_writer *writer,
		       const struct gt_record *record, const struct gt_record *ended)
{
	const struct graftrace_sub_buffer *from = writer->copy;
	struct graftrace_sub_buffer *piece = route->open(route->data, writer);

	writer->piece = piece;
	writer->used = 0;
	if (piece == NULL)
		return false;
	piece->magic = GRAFTRACE_SUB_BUFFER_MAGIC;
	piece->bytes = GT_ROUTE_PIECE_BYTES;
	piece->stream = from->stream;
	piece->generation = from->generation;
	piece->pid = from->pid;
	piece->tid = from->tid;
	piece->cpu = writer->cpu = record->cpu;
	piece->context = writer->context = writer->decode.context;
	piece->sequence = writer->sequence++;
	piece->clock = writer->clock = record->clock > writer->last ? record->clock : writer->last;
	piece->tracer = tracer_of(route);
	if (wants_calls(route))
		list_open(writer, ended);
	writer->resume = false;
	return true;
}

/* Makes room for a record and writes the records that precede it: which CPU, what was lost,
 * which depth. False: no room. */
static bool room(struct gt_route *route, struct gt_route_writer *writer,
		 const struct gt_record *record, uint32_t words, const struct gt_record *ended)
{
	bool calls = wants_calls(route);

	if (writer->piece != NULL && (writer->used + words + WORDS_SYNC > WORDS ||
				      writer->piece->tracer != tracer_of(route)))
		gt_route_close(writer);
	if (writer->piece == NULL && !open_piece(route, writer, record, ended)) {
		writer->dropped++;
		writer->lost++;
		writer->resume = true;
		return false;
	}
	if (calls && writer->context != writer->decode.context) {
		writer->context = writer->decode.context;
		put_special(writer, GRAFTRACE_SPECIAL_CONTEXT, writer->context);
		put_special(writer, GRAFTRACE_SPECIAL_RESUMED, writer->depth + (ended != NULL));
		writer->resume = false;
	}
	if (writer->cpu != record->cpu) {
		writer->cpu = record->cpu;
		put_special(writer, GRAFTRACE_SPECIAL_CPU, writer->cpu);
	}
	if (writer->lost != 0) {
		put_special(writer, GRAFTRACE_SPECIAL_LOST,
			    writer->lost < UINT32_MAX ? (uint32_t)writer->lost : UINT32_MAX);
		writer->lost = 0;
	}
	if (calls && writer->resume)
		put_special(writer, GRAFTRACE_SPECIAL_RESUMED, writer->depth + (ended != NULL));
	writer->resume = false;
	if (writer->clock >> 32 != record->clock >> 32)
		put_special(writer, GRAFTRACE_SPECIAL_CLOCK, (uint32_t)(record->clock >> 32));
	writer->clock = record->clock;
	if (writer->last < record->clock)
		writer->last = record->clock;
	return true;
}

static void put_event(struct gt_route_writer *writer, enum graftrace_event type,
		      const uint64_t *data, uint32_t count)
{
	put(writer, graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, (uint32_t)type << 16 | count));
	for (uint32_t i = 0; i < count; i++)
		put(writer, data[i]);
	if (is_pairs(writer) && !(count & 1))
		put(writer, graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 0));
}

/* Writes a record of the function tracer. In a stream of calls, the caller is the innermost
 * traced one. */
static bool put_function(struct gt_route *route, struct gt_route_writer *writer,
			 const struct gt_record *record)
{
	uint64_t parent = record->caller;

	if (record->kind != GT_RECORD_FUNCTION) {
		const struct gt_decode_frame *frame =
			record->depth > 0 ? gt_decode_frame(&writer->decode, record->depth - 1)
					  : NULL;

		parent = frame != NULL ? function_of(route, frame->function).address : 0;
	}
	if (!room(route, writer, record, 2, NULL))
		return false;
	put(writer, graftrace_word(record->function, 0, (uint32_t)record->clock));
	put(writer, parent != 0 ? parent : GT_CALLER_UNKNOWN); /* zero would be a hole */
	return true;
}

/* Commands */

/* Writes the open calls, as a trigger does. */
static void put_stack(struct gt_route *route, struct gt_route_writer *writer,
		      const struct gt_record *record)
{
	uint64_t data[1 + STACK_CALLS] = { record->clock };
	struct gt_decode *decode = &writer->decode;
	uint32_t count = 1;

	for (uint32_t at = decode->depth; at > decode->low && count <= STACK_CALLS;) {
		const struct gt_decode_frame *frame = gt_decode_frame(decode, --at);

		if (frame != NULL && frame->function != 0)
			data[count++] = graftrace_word(frame->function, 0, (uint32_t)frame->clock);
	}
	if (is_recording(route, writer) && room(route, writer, record, count + 2, NULL))
		put_event(writer, GRAFTRACE_EVENT_STACK, data, count);
}

/* before: called before the call is written. */
static void act(struct gt_route *route, struct gt_route_writer *writer,
		const struct gt_record *record, uint32_t commands, bool before)
{
	for (; commands != 0; commands &= commands - 1) {
		struct gt_route_command *command = &route->commands[__builtin_ctz(commands)];
		bool turns_on = command->action == GT_ACTION_TRACEON;

		/* As on Linux, a hit that changes nothing does not count. */
		if (turns_on != before || command->left == 0 || route->want.settings.on == turns_on)
			continue;
		if (command->left != GT_ACTION_UNLIMITED)
			command->left--;
		if (command->action == GT_ACTION_TRACEON || command->action == GT_ACTION_TRACEOFF) {
			route->want.settings.on = turns_on;
			route->switched = record->clock;
		} else if (command->action == GT_ACTION_STACKTRACE) {
			put_stack(route, writer, record);
		} else {
			route->due |= 1u << command->action;
			route->due_cpu = record->cpu;
		}
	}
}

static uint32_t commands_at(struct gt_route *route, const struct gt_route_writer *writer,
			    const struct gt_record *record)
{
	return route->command_count > 0 && !writer->silent
		       ? function_of(route, record->function).commands
		       : 0;
}

/* Records */

static void take_entry(struct gt_route *route, struct gt_route_writer *writer,
		       const struct gt_record *record)
{
	struct gt_decode_frame *frame = record->kind == GT_RECORD_ENTRY
						? gt_decode_frame(&writer->decode, record->depth)
						: NULL;
	uint16_t parent = record->depth > 0 ? mark_at(&writer->decode, record->depth - 1) : 0;
	uint16_t mark = decide(route, parent, record->function, record->clock);
	bool shown = mark & SHOWN;

	if (!route->want.settings.on || route->want.settings.tracer == GRAFTRACE_TRACER_NOP ||
	    writer->left_out ||
	    (route->want.settings.max_depth != 0 && wants_calls(route) &&
	     writer->depth >= route->want.settings.max_depth))
		shown = false;
	if (shown && writer->silent) {
		shown = wants_calls(route); /* its callees have entries */
	} else if (shown && !wants_calls(route)) {
		put_function(route, writer, record);
		shown = false; /* its return is not written */
	} else if (shown && record->kind != GT_RECORD_ENTRY) {
		uint64_t word = graftrace_word(record->function, 0, (uint32_t)record->clock);

		if (room(route, writer, record, 2, NULL))
			put_event(writer, GRAFTRACE_EVENT_ENTRY_ONLY, &word, 1);
	} else if (shown && route->want.settings.threshold_ns == 0) {
		/* Without room for it, its return is there or is lost, as others. */
		if (room(route, writer, record, 1, NULL)) {
			put(writer, graftrace_word(record->function, 0, (uint32_t)record->clock));
			mark |= (uint16_t)(WRITTEN | (writer->piece->sequence % PIECES) * PIECE);
		}
	}
	if (frame == NULL)
		return;
	frame->mark = shown ? mark : (uint16_t)(mark & ~SHOWN);
	writer->depth += shown;
}

/* Ends a call. Returns whether it is shown. */
static bool take_off(struct gt_route *route, struct gt_route_writer *writer,
		     const struct gt_record *record, bool was_counted)
{
	uint16_t mark = record->mark;

	if (!(mark & KNOWN)) {
		uint16_t parent =
			record->depth > 0 ? mark_at(&writer->decode, record->depth - 1) : 0;

		count(route, writer, record->depth);
		return decide(route, route->rooted ? parent : parent | INSIDE, record->function,
			      record->start) &
		       SHOWN;
	}
	if ((mark & SHOWN) && was_counted && writer->depth > 0)
		writer->depth--;
	return mark & SHOWN;
}

static void take_return(struct gt_route *route, struct gt_route_writer *writer,
			const struct gt_record *record, bool was_counted)
{
	bool shown = take_off(route, writer, record, was_counted);
	uint64_t data[3] = { graftrace_word(record->function, 1, (uint32_t)record->clock),
			     record->start != 0 ? record->start : 1, writer->depth };
	bool long_call =
		route->want.settings.threshold_ns != 0 || (record->flags & GT_RECORD_ALONE);

	if (!shown || !wants_calls(route))
		return;
	if (!is_recording(route, writer)) {
		writer->resume = true;
		return;
	}
	if (route->want.settings.max_depth != 0 && writer->depth >= route->want.settings.max_depth)
		return;
	if (route->want.settings.threshold_ns != 0 &&
	    gt_clock_duration_ns(&route->source->clock, record->clock - record->start) <=
		    route->want.settings.threshold_ns)
		return;
	if (!room(route, writer, record, 4, long_call ? NULL : record))
		return;
	if (!long_call && (record->flags & GT_RECORD_START_UNKNOWN))
		put(writer, data[0]);
	else if (!long_call && (record->mark & WRITTEN) &&
		 record->mark / PIECE == writer->piece->sequence % PIECES &&
		 record->start >= writer->piece->clock)
		put(writer, data[0]);
	else
		put_event(writer,
			  long_call ? GRAFTRACE_EVENT_LONG_CALL : GRAFTRACE_EVENT_LONG_RETURN, data,
			  3);
}

static void take_unwound(struct gt_route *route, struct gt_route_writer *writer,
			 const struct gt_record *record, bool was_counted)
{
	if (record->function == 0) { /* a number of unknown calls */
		count(route, writer, writer->decode.depth);
		writer->resume = true;
		return;
	}
	if (record->flags & GT_RECORD_UNSEEN)
		writer->counted = false; /* the next header may list others */
	if (!take_off(route, writer, record, was_counted) || !wants_calls(route))
		return;
	if (!is_recording(route, writer) || (record->flags & GT_RECORD_UNSEEN) ||
	    route->want.settings.threshold_ns != 0)
		writer->resume = true;
	else if (writer->piece != NULL && room(route, writer, record, 1, record))
		put_special(writer, GRAFTRACE_SPECIAL_UNWOUND, 1);
}

/* Takes an event with fields. Threads that are not traced have theirs, too. */
static void take_fields(struct gt_route *route, struct gt_route_writer *writer,
			const struct gt_record *record)
{
	uint64_t data[EVENT_WORDS] = { record->clock, record->state << GRAFTRACE_PROBE_STATE |
							      record->start << 32 | record->value };
	uint32_t words = record->text_bytes / 8;

	if (writer->silent || !route->want.settings.on ||
	    !wants_event(route, (uint32_t)record->value))
		return;
	words = words < EVENT_WORDS - 2 ? words : EVENT_WORDS - 2;
	memcpy(&data[2], record->text, words * 8);
	if (room(route, writer, record, words + 4, NULL))
		put_event(writer, GRAFTRACE_EVENT_PROBE, data, words + 2);
}

/* Takes an event whose data are copied: `clock` and the words after it. */
static void take_event(struct gt_route *route, struct gt_route_writer *writer,
		       const struct gt_record *record)
{
	uint64_t data[EVENT_WORDS] = { record->clock };
	uint32_t words = 1 + (record->text_bytes + 7) / 8;

	if (!is_recording(route, writer) ||
	    (record->kind == GT_RECORD_STACK && !route->want.stacks))
		return;
	if (record->kind == GT_RECORD_SWITCH) {
		data[1] = record->previous_tid;
		data[2] = record->next_tid;
		data[3] = record->state;
		words = 4;
	} else {
		uint32_t most = (uint32_t)(sizeof(data) - 8);
		uint32_t bytes = record->text_bytes < most ? record->text_bytes : most;

		if (record->kind == GT_RECORD_MARKER && (record->flags & GT_RECORD_RAW))
			return; /* programs do not write these */
		memcpy(&data[1], record->text, bytes);
		words = 1 + (bytes + 7) / 8;
	}
	if (room(route, writer, record, words + 2, NULL))
		put_event(writer,
			  record->kind == GT_RECORD_STACK    ? GRAFTRACE_EVENT_STACK
			  : record->kind == GT_RECORD_SWITCH ? GRAFTRACE_EVENT_SWITCH
							     : GRAFTRACE_EVENT_MARKER,
			  data, words);
}

static void take(struct gt_route *route, struct gt_route_writer *writer,
		 const struct gt_record *record)
{
	bool was_counted = writer->counted;
	uint32_t commands;

	if (!was_counted)
		count(route, writer, record->depth);
	switch (record->kind) {
	case GT_RECORD_ENTRY:
	case GT_RECORD_ENTRY_ONLY:
		commands = commands_at(route, writer, record);
		act(route, writer, record, commands, true);
		take_entry(route, writer, record);
		act(route, writer, record, commands, false);
		break;
	case GT_RECORD_FUNCTION:
		commands = commands_at(route, writer, record);
		act(route, writer, record, commands, true);
		writer->unshown = wants_calls(route) || !is_recording(route, writer) ||
				  !function_of(route, record->function).wanted;
		if (!writer->unshown)
			put_function(route, writer, record);
		act(route, writer, record, commands, false);
		break;
	case GT_RECORD_RETURN:
		take_return(route, writer, record, was_counted);
		break;
	case GT_RECORD_UNWOUND:
		take_unwound(route, writer, record, was_counted);
		break;
	case GT_RECORD_CONTEXT:
		writer->counted = false;
		break;
	case GT_RECORD_LOST:
		/* the instance of the lost records is unknown: the loss is written for each */
		writer->lost += is_recording(route, writer) ? record->value : 0;
		writer->resume = true;
		break;
	case GT_RECORD_GAP:
		writer->lost += is_recording(route, writer) ? record->overrun : 0;
		writer->resume = true;
		writer->counted = false;
		break;
	case GT_RECORD_MARKER:
	case GT_RECORD_STACK:
	case GT_RECORD_SWITCH:
		take_event(route, writer, record);
		break;
	case GT_RECORD_EVENT:
		take_fields(route, writer, record);
		break;
	default:
		break;
	}
}

/* Life of a writer */

void gt_route_writer_init(struct gt_route_writer *writer)
{
	memset(writer, 0, sizeof(*writer));
	gt_decode_init(&writer->decode, &gt_host_memory);
}

void gt_route_writer_fini(struct gt_route_writer *writer)
{
	gt_decode_fini(&writer->decode);
	free(writer->copy);
	writer->copy = NULL;
}

void gt_route_close(struct gt_route_writer *writer)
{
	if (writer->piece != NULL)
		writer->piece->used = writer->used;
	writer->piece = NULL;
}

int gt_route_feed(struct gt_route *route, struct gt_route_writer *writer,
		  const struct graftrace_sub_buffer *bytes, uint32_t words, bool growing)
{
	struct gt_decode *decode = &writer->decode;
	bool again = writer->copy != NULL && writer->copy->sequence == bytes->sequence;
	struct graftrace_sub_buffer *copy = malloc(sizeof(*copy) + words * 8ull);
	uint32_t context = decode->context;
	struct gt_record record = { 0 };
	int error = 0;

	if (copy == NULL)
		return GT_ENOMEM; /* tried again with the next record */
	memcpy(copy, bytes, sizeof(*copy) + words * 8ull);
	if (again)
		gt_decode_extend(decode, copy, words, growing);
	else
		error = gt_decode_feed(decode, copy, words, growing, NULL);
	if (error != 0) {
		free(copy);
		return error;
	}
	free(writer->copy);
	writer->copy = copy;
	if (!again && (decode->unfollowed || decode->context != context))
		writer->counted = false;
	writer->left_out = gt_route_leaves_out(route, bytes->tid);
	while (route->due == 0 && gt_decode_next(decode, &record) != GT_RECORD_NONE) {
		writer->silent = decode->word <= decode->base + writer->skip ||
				 record.clock < route->want.since;
		take(route, writer, &record);
	}
	if (route->due != 0)
		return GT_EAGAIN;
	if (!growing) {
		writer->skip = 0;
		free(writer->copy);
		writer->copy = NULL;
	}
	return 0;
}
