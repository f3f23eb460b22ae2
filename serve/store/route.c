/* SPDX-License-Identifier: MIT */
/*
 * See route.h. The decoder's frames keep what was decided at a call's entry (their mark), so a
 * change of settings does not affect open calls. Records are written by the rules of
 * <graftrace/record.h>, as the agent writes them: a return whose entry is not in the same
 * sub-buffer has its entry's clock with it.
 */
#include "serve/store/route_private.h"

#include <stdlib.h>
#include <string.h>

#include "core/trace/word_walk.h"
#include "port/host/memory.h"

#define EVENT_WORDS 64 /* the most of an event: a program's have 32 */

/* Decides on a call: its mark, given its parent's, without the bits that say where its entry is
 * written. */
static uint16_t decide(struct gt_route *route, uint16_t parent, uint32_t number, uint64_t start)
{
	struct gt_route_function function = gt_route_function_of(route, number);
	bool inside = !route->rooted || (parent & GT_ROUTE_INSIDE) || function.root;
	bool out = (parent & GT_ROUTE_OUT) || function.out;

	return (uint16_t)(GT_ROUTE_KNOWN | (inside ? GT_ROUTE_INSIDE : 0) |
			  (out ? GT_ROUTE_OUT : 0) |
			  (inside && !out && function.wanted && number != 0 &&
					   start >= route->want.since
				   ? GT_ROUTE_SHOWN
				   : 0));
}

/* Counts the calls shown of depths 0 … depth - 1; decides on those that are known from a header
 * only. Calls further out than the header lists are unknown: they are shown if all calls are. */
static void count(struct gt_route *route, struct gt_route_writer *writer, uint32_t depth)
{
	struct gt_decode *decode = &writer->decode;
	uint32_t from = decode->low < depth ? decode->low : depth;
	uint16_t parent = route->rooted ? 0 : GT_ROUTE_INSIDE;

	writer->depth = route->filtered || route->rooted ? 0 : from;
	for (uint32_t at = from; at < depth; at++) {
		struct gt_decode_frame *frame = gt_decode_frame(decode, at);

		if (frame == NULL)
			continue;
		if (!(frame->mark & GT_ROUTE_KNOWN))
			frame->mark = decide(route, parent, frame->function, frame->clock);
		parent = frame->mark;
		writer->depth += (frame->mark & GT_ROUTE_SHOWN) != 0;
	}
	writer->counted = true;
}

/* Records */

static void take_entry(struct gt_route *route, struct gt_route_writer *writer,
		       const struct gt_record *record)
{
	struct gt_decode_frame *frame = record->kind == GT_RECORD_ENTRY
						? gt_decode_frame(&writer->decode, record->depth)
						: NULL;
	uint16_t parent =
		record->depth > 0 ? gt_route_mark_at(&writer->decode, record->depth - 1) : 0;
	uint16_t mark = decide(route, parent, record->function, record->clock);
	bool shown = mark & GT_ROUTE_SHOWN;

	if (!route->want.settings.on || route->want.settings.tracer == GRAFTRACE_TRACER_NOP ||
	    writer->left_out ||
	    (route->want.settings.max_depth != 0 && gt_route_wants_calls(route) &&
	     writer->depth >= route->want.settings.max_depth))
		shown = false;
	if (shown && writer->silent) {
		shown = gt_route_wants_calls(route); /* its callees have entries */
	} else if (shown && !gt_route_wants_calls(route)) {
		gt_route_put_function(route, writer, record);
		shown = false; /* its return is not written */
	} else if (shown && record->kind != GT_RECORD_ENTRY) {
		uint64_t word = graftrace_word(record->function, 0, (uint32_t)record->clock);

		if (gt_route_room(route, writer, record, 2, NULL))
			gt_route_put_event(writer, GRAFTRACE_EVENT_ENTRY_ONLY, &word, 1);
	} else if (shown && route->want.settings.threshold_ns == 0) {
		/* If there is no room for the entry, the call's return is written or lost by itself. */
		if (gt_route_room(route, writer, record, 1, NULL)) {
			gt_route_put(writer,
				     graftrace_word(record->function, 0, (uint32_t)record->clock));
			mark |= (uint16_t)(GT_ROUTE_WRITTEN |
					   (writer->piece->sequence % GT_ROUTE_PIECES) *
						   GT_ROUTE_PIECE);
		}
	}
	if (frame == NULL)
		return;
	frame->mark = shown ? mark : (uint16_t)(mark & ~GT_ROUTE_SHOWN);
	writer->depth += shown;
}

/* Ends a call. Returns whether it is shown. */
static bool take_off(struct gt_route *route, struct gt_route_writer *writer,
		     const struct gt_record *record, bool was_counted)
{
	uint16_t mark = record->mark;

	if (!(mark & GT_ROUTE_KNOWN)) {
		uint16_t parent = record->depth > 0
					  ? gt_route_mark_at(&writer->decode, record->depth - 1)
					  : 0;

		count(route, writer, record->depth);
		return decide(route, route->rooted ? parent : parent | GT_ROUTE_INSIDE,
			      record->function, record->start) &
		       GT_ROUTE_SHOWN;
	}
	if ((mark & GT_ROUTE_SHOWN) && was_counted && writer->depth > 0)
		writer->depth--;
	return mark & GT_ROUTE_SHOWN;
}

static void take_return(struct gt_route *route, struct gt_route_writer *writer,
			const struct gt_record *record, bool was_counted)
{
	bool shown = take_off(route, writer, record, was_counted);
	uint64_t data[3] = { graftrace_word(record->function, 1, (uint32_t)record->clock),
			     record->start != 0 ? record->start : 1, writer->depth };
	bool long_call =
		route->want.settings.threshold_ns != 0 || (record->flags & GT_RECORD_ALONE);

	if (!shown || !gt_route_wants_calls(route))
		return;
	if (!gt_route_is_recording(route, writer)) {
		writer->resume = true;
		return;
	}
	if (route->want.settings.max_depth != 0 && writer->depth >= route->want.settings.max_depth)
		return;
	if (route->want.settings.threshold_ns != 0 &&
	    gt_clock_duration_ns(&route->source->clock, record->clock - record->start) <=
		    route->want.settings.threshold_ns)
		return;
	if (!gt_route_room(route, writer, record, 4, long_call ? NULL : record))
		return;
	if (!long_call && (record->flags & GT_RECORD_START_UNKNOWN))
		gt_route_put(writer, data[0]);
	else if (!long_call && (record->mark & GT_ROUTE_WRITTEN) &&
		 record->mark / GT_ROUTE_PIECE == writer->piece->sequence % GT_ROUTE_PIECES &&
		 record->start >= writer->piece->clock)
		gt_route_put(writer, data[0]);
	else
		gt_route_put_event(
			writer, long_call ? GRAFTRACE_EVENT_LONG_CALL : GRAFTRACE_EVENT_LONG_RETURN,
			data, 3);
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
	if (!take_off(route, writer, record, was_counted) || !gt_route_wants_calls(route))
		return;
	if (!gt_route_is_recording(route, writer) || (record->flags & GT_RECORD_UNSEEN) ||
	    route->want.settings.threshold_ns != 0)
		writer->resume = true;
	else if (writer->piece != NULL && gt_route_room(route, writer, record, 1, record))
		gt_route_put_special(writer, GRAFTRACE_SPECIAL_UNWOUND, 1);
}

static bool wants_events_of(struct gt_route *route, struct gt_route_writer *writer)
{
	if (route->want.of_thread == NULL)
		return true;
	if (writer->events == GT_ROUTE_EVENTS_UNKNOWN)
		writer->events =
			route->want.of_thread(route->want.of_thread_data, writer->copy->tid)
				? GT_ROUTE_EVENTS_WANTED
				: GT_ROUTE_EVENTS_LEFT;
	return writer->events == GT_ROUTE_EVENTS_WANTED;
}

/* Takes an event with fields. Threads that are not traced have theirs, too. */
static void take_fields(struct gt_route *route, struct gt_route_writer *writer,
			const struct gt_record *record)
{
	uint64_t data[EVENT_WORDS] = { record->clock, record->state << GRAFTRACE_PROBE_STATE |
							      record->start << 32 | record->value };
	uint32_t words = record->text_bytes / 8;
	bool mark;

	if (writer->silent || !route->want.settings.on ||
	    !gt_route_wants_event(route, (uint32_t)record->value, &mark) ||
	    !(mark || wants_events_of(route, writer)))
		return;
	words = words < EVENT_WORDS - 2 ? words : EVENT_WORDS - 2;
	memcpy(&data[2], record->text, words * 8);
	if (gt_route_room(route, writer, record, words + 4, NULL))
		gt_route_put_event(writer, GRAFTRACE_EVENT_PROBE, data, words + 2);
}

/* Takes an event whose data are copied: `clock` and the words after it. */
static void take_event(struct gt_route *route, struct gt_route_writer *writer,
		       const struct gt_record *record)
{
	uint64_t data[EVENT_WORDS] = { record->clock };
	uint32_t words = 1 + (record->text_bytes + 7) / 8;

	if (!gt_route_is_recording(route, writer) ||
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
	if (gt_route_room(route, writer, record, words + 2, NULL))
		gt_route_put_event(writer,
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
		commands = gt_route_commands_at(route, writer, record);
		gt_route_act(route, writer, record, commands, true);
		take_entry(route, writer, record);
		gt_route_act(route, writer, record, commands, false);
		break;
	case GT_RECORD_FUNCTION:
		commands = gt_route_commands_at(route, writer, record);
		gt_route_act(route, writer, record, commands, true);
		writer->unshown = gt_route_wants_calls(route) ||
				  !gt_route_is_recording(route, writer) ||
				  !gt_route_function_of(route, record->function).wanted;
		if (!writer->unshown)
			gt_route_put_function(route, writer, record);
		gt_route_act(route, writer, record, commands, false);
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
		writer->lost += gt_route_is_recording(route, writer) ? record->value : 0;
		writer->resume = true;
		break;
	case GT_RECORD_GAP:
		writer->lost += gt_route_is_recording(route, writer) ? record->overrun : 0;
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

/* Writes as lost the records of sub-buffers that are missing between two. (A sub-buffer's header has only the records
 * that were overwritten before it was opened.) */
static void note_overrun(struct gt_route_writer *writer, uint64_t overrun, bool first)
{
	if (!first && !writer->decode.gap)
		return;
	if (!first)
		gt_decode_miss(&writer->decode,
			       overrun > writer->overrun ? overrun - writer->overrun : 0);
	writer->overrun = overrun;
}

/* Counts the records of a damaged sub-buffer as lost: nothing else does. */
static void miss(struct gt_route *route, struct gt_route_writer *writer,
		 const struct graftrace_sub_buffer *bytes, uint32_t words)
{
	uint64_t records = gt_words_records(bytes, 0, words);

	if (!gt_route_is_recording(route, writer))
		return;
	writer->dropped += records;
	writer->lost += records;
	writer->resume = true;
	writer->counted = false;
}

int gt_route_feed(struct gt_route *route, struct gt_route_writer *writer,
		  const struct graftrace_sub_buffer *bytes, uint32_t words, bool growing,
		  uint64_t overrun)
{
	struct gt_decode *decode = &writer->decode;
	bool again = writer->copy != NULL && writer->copy->sequence == bytes->sequence;
	struct graftrace_sub_buffer *copy = malloc(sizeof(*copy) + words * 8ull);
	uint32_t context = decode->context;
	struct gt_record record = { 0 };
	bool first = !decode->fed;
	int error = 0;

	if (copy == NULL)
		return GT_ENOMEM;
	memcpy(copy, bytes, sizeof(*copy) + words * 8ull);
	if (again)
		gt_decode_extend(decode, copy, words, growing);
	else
		error = gt_decode_feed(decode, copy, words, growing, NULL);
	if (error != 0) {
		free(copy);
		if (error == GT_EFORMAT && !growing)
			miss(route, writer, bytes, words);
		return error;
	}
	free(writer->copy);
	writer->copy = copy;
	if (!again)
		note_overrun(writer, overrun, first);
	if (!again && (decode->unfollowed || decode->context != context))
		writer->counted = false;
	writer->left_out = gt_route_leaves_out(route, bytes->tid);
	writer->events = GT_ROUTE_EVENTS_UNKNOWN;
	while (route->due == 0 && gt_decode_next(decode, &record) != GT_RECORD_NONE) {
		/* what is missing before the first word is no word to be skipped */
		writer->silent =
			(writer->skip != 0 && decode->word <= decode->base + writer->skip) ||
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
