/* SPDX-License-Identifier: MIT */
/*
 * Perfetto's protobuf trace: packets of track events, one track a lane below its thread's process,
 * names interned once. Field numbers are those of protos/perfetto/trace of Perfetto's source
 * (trace_packet.proto, track_event.proto, track_descriptor.proto, interned_data.proto).
 */
#include "export/export.h"

#include <inttypes.h>
#include <stdio.h>
#include "export/proto.h"

enum { TRACE_PACKET = 1 };
enum {
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TRACK = 60,
};
enum { INCREMENTAL_STATE_CLEARED = 1, NEEDS_INCREMENTAL_STATE = 2 };
enum { EVENT_ANNOTATION = 4, ANNOTATION_TEXT = 6, ANNOTATION_NAME = 10 };
enum { EVENT_TYPE = 9, EVENT_NAME_IID = 10, EVENT_TRACK = 11, EVENT_NAME = 23 };
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { INTERNED_EVENT_NAMES = 2, NAME_IID = 1, NAME_TEXT = 2 };
#define SEQUENCE 1

struct perfetto {
	struct gt_proto packet, inner, innermost, whole;
	uint32_t first_pid; /* the process of the program that the recording is of; 0: none yet */
};

/* Writes the packet, with the number of its sequence, and empties it. */
static int put(struct gt_export *export)
{
	struct perfetto *state = export->state;

	gt_proto_number(&state->packet, PACKET_SEQUENCE, SEQUENCE);
	state->whole.used = 0;
	gt_proto_message(&state->whole, TRACE_PACKET, &state->packet);
	if (state->whole.failed)
		return GT_ENOMEM;
	gt_out_bytes(&export->out, state->whole.bytes, state->whole.used);
	return export->out.error ? GT_EIO : 0;
}

static uint64_t process_uuid(uint32_t pid)
{
	return UINT64_C(1) << 40 | pid;
}

static uint64_t lane_uuid(const struct gt_lane *lane)
{
	return UINT64_C(2) << 40 | lane->number;
}

static int begin(struct gt_export *export)
{
	struct perfetto *state = export->state;

	gt_proto_number(&state->packet, PACKET_SEQUENCE_FLAGS, INCREMENTAL_STATE_CLEARED);
	return put(export);
}

static int lane(struct gt_export *export, struct gt_lane *lane)
{
	struct perfetto *state = export->state;
	struct gt_proto *track = &state->inner, *part = &state->innermost;
	char name[80];
	int error;

	gt_proto_number(track, TRACK_UUID, process_uuid(lane->pid));
	gt_proto_number(part, PROCESS_PID, lane->pid);
	if (state->first_pid == 0)
		state->first_pid = lane->pid;
	if (lane->pid == state->first_pid)
		gt_proto_text(part, PROCESS_NAME, export->about.program);
	else if (lane->tid == lane->pid) /* after an exec the last name is the one that stays */
		gt_proto_bytes(part, PROCESS_NAME, lane->name, strnlen(lane->name, 16));
	gt_proto_message(track, TRACK_PROCESS, part);
	gt_proto_message(&state->packet, PACKET_TRACK, track);
	error = put(export);
	if (error != 0)
		return error;
	gt_export_lane_name(lane, name, sizeof(name));
	gt_proto_number(track, TRACK_UUID, lane_uuid(lane));
	gt_proto_number(track, TRACK_PARENT, process_uuid(lane->pid));
	if (lane->stack == 0) {
		gt_proto_number(part, THREAD_PID, lane->pid);
		gt_proto_number(part, THREAD_TID, lane->tid);
		gt_proto_bytes(part, THREAD_NAME, lane->name, strnlen(lane->name, 16));
		gt_proto_message(track, TRACK_THREAD, part);
	} else {
		gt_proto_text(track, TRACK_NAME, name);
	}
	gt_proto_message(&state->packet, PACKET_TRACK, track);
	return put(export);
}

/* Writes arguments and other properties of a call as debug annotations. */
static void annotate(struct perfetto *state, const char *name, const char *text)
{
	if (text == NULL)
		return;
	gt_proto_text(&state->innermost, ANNOTATION_NAME, name);
	gt_proto_text(&state->innermost, ANNOTATION_TEXT, text);
	gt_proto_message(&state->inner, EVENT_ANNOTATION, &state->innermost);
}

/* How a call ended that did not return; NULL: it returned. */
static const char *end_of(const struct gt_stack_call *call)
{
	return call->flags & GT_STACK_OPEN	  ? "still open"
	       : call->flags & GT_STACK_NO_RETURN ? "without a return"
						  : NULL;
}

static int event(struct gt_export *export, const struct gt_lane *lane, unsigned type,
		 uint64_t ticks, uint32_t function, const char *name,
		 const struct gt_stack_call *call)
{
	struct perfetto *state = export->state;
	struct gt_proto *inner = &state->inner;

	gt_proto_number(&state->packet, PACKET_TIMESTAMP, gt_export_ns(export, ticks));
	if (function != 0 && function <= export->function_end) {
		if (!export->function_seen[function]) {
			char number[24];

			export->function_seen[function] = 1;
			gt_proto_number(&state->innermost, NAME_IID, function);
			gt_proto_text(&state->innermost, NAME_TEXT,
				      gt_export_name(export, function, number, NULL));
			gt_proto_message(inner, INTERNED_EVENT_NAMES, &state->innermost);
			gt_proto_message(&state->packet, PACKET_INTERNED, inner);
		}
		gt_proto_number(&state->packet, PACKET_SEQUENCE_FLAGS, NEEDS_INCREMENTAL_STATE);
		gt_proto_number(inner, EVENT_NAME_IID, function);
	}
	if (name != NULL)
		gt_proto_text(inner, EVENT_NAME, name);
	if (call != NULL)
		annotate(state, type == SLICE_BEGIN ? "arguments" : "returns",
			 type == SLICE_BEGIN ? call->arguments : call->result);
	if (call != NULL && type == SLICE_END)
		annotate(state, "end", end_of(call));
	gt_proto_number(inner, EVENT_TYPE, type);
	gt_proto_number(inner, EVENT_TRACK, lane_uuid(lane));
	gt_proto_message(&state->packet, PACKET_TRACK_EVENT, inner);
	return put(export);
}

static int enter(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call)
{
	return event(export, lane, SLICE_BEGIN, call->start, call->function, NULL, call);
}

static int leave(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		 uint64_t end)
{
	return event(export, lane, SLICE_END, end, 0, NULL, call);
}

static int moment(struct gt_export *export, struct gt_lane *lane, const struct gt_moment *moment)
{
	char text[512];

	if (moment->kind == GT_MOMENT_CALL)
		return event(export, lane, INSTANT, moment->clock, moment->function, NULL, NULL);
	if (moment->kind == GT_MOMENT_LOST)
		gt_export_lost(moment, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%.*s",
			 (int)(moment->text_bytes < 500 ? moment->text_bytes : 500), moment->text);
	return event(export, lane, INSTANT, moment->clock, 0, text, NULL);
}

static void fini(struct gt_export *export)
{
	struct perfetto *state = export->state;

	gt_proto_fini(&state->packet);
	gt_proto_fini(&state->inner);
	gt_proto_fini(&state->innermost);
	gt_proto_fini(&state->whole);
}

const struct gt_export_format gt_format_perfetto = {
	.name = "perfetto",
	.help = "Perfetto's protobuf: ui.perfetto.dev, trace_processor",
	.file = "trace.perfetto",
	.state_bytes = sizeof(struct perfetto),
	.begin = begin,
	.lane = lane,
	.enter = enter,
	.leave = leave,
	.moment = moment,
	.fini = fini,
};
