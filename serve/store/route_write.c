/* SPDX-License-Identifier: MIT */
/* Writing the records of an instance into its sub-buffers: see route.h. */
#include "serve/store/route_private.h"

#define WORDS ((GT_ROUTE_PIECE_BYTES - sizeof(struct graftrace_sub_buffer)) / 8)
/* The most that a record takes with the records that precede it; see gt_route_room. */
#define WORDS_SYNC 16

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
	} else if (at > 0 && !(gt_route_mark_at(decode, at - 1) & GT_ROUTE_KNOWN)) {
		at--; /* this entry is being decided on */
	}
	while (at > decode->low && depth > 0 && n < GRAFTRACE_OPEN_CALLS) {
		const struct gt_decode_frame *frame = gt_decode_frame(decode, --at);

		if (frame != NULL && frame->mark & GT_ROUTE_SHOWN)
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
	if (gt_route_wants_calls(route))
		list_open(writer, ended);
	writer->resume = false;
	return true;
}

bool gt_route_room(struct gt_route *route, struct gt_route_writer *writer,
		   const struct gt_record *record, uint32_t words, const struct gt_record *ended)
{
	bool calls = gt_route_wants_calls(route);

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
		gt_route_put_special(writer, GRAFTRACE_SPECIAL_CONTEXT, writer->context);
		gt_route_put_special(writer, GRAFTRACE_SPECIAL_RESUMED,
				     writer->depth + (ended != NULL));
		writer->resume = false;
	}
	if (writer->cpu != record->cpu) {
		writer->cpu = record->cpu;
		gt_route_put_special(writer, GRAFTRACE_SPECIAL_CPU, writer->cpu);
	}
	if (writer->lost != 0) {
		gt_route_put_special(writer, GRAFTRACE_SPECIAL_LOST,
				     writer->lost < UINT32_MAX ? (uint32_t)writer->lost
							       : UINT32_MAX);
		writer->lost = 0;
	}
	if (calls && writer->resume)
		gt_route_put_special(writer, GRAFTRACE_SPECIAL_RESUMED,
				     writer->depth + (ended != NULL));
	writer->resume = false;
	if (writer->clock >> 32 != record->clock >> 32)
		gt_route_put_special(writer, GRAFTRACE_SPECIAL_CLOCK,
				     (uint32_t)(record->clock >> 32));
	writer->clock = record->clock;
	if (writer->last < record->clock)
		writer->last = record->clock;
	return true;
}

void gt_route_put_event(struct gt_route_writer *writer, enum graftrace_event type,
			const uint64_t *data, uint32_t count)
{
	gt_route_put(writer,
		     graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, (uint32_t)type << 16 | count));
	for (uint32_t i = 0; i < count; i++)
		gt_route_put(writer, data[i]);
	if (gt_route_is_pairs(writer) && !(count & 1))
		gt_route_put(writer, graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 0));
}

bool gt_route_put_function(struct gt_route *route, struct gt_route_writer *writer,
			   const struct gt_record *record)
{
	uint64_t parent = record->caller;

	if (record->kind != GT_RECORD_FUNCTION) {
		const struct gt_decode_frame *frame =
			record->depth > 0 ? gt_decode_frame(&writer->decode, record->depth - 1)
					  : NULL;

		parent = frame != NULL ? gt_route_function_of(route, frame->function).address : 0;
	}
	if (!gt_route_room(route, writer, record, 2, NULL))
		return false;
	gt_route_put(writer, graftrace_word(record->function, 0, (uint32_t)record->clock));
	gt_route_put(writer, parent != 0 ? parent : GT_CALLER_UNKNOWN); /* zero would be a hole */
	return true;
}

void gt_route_close(struct gt_route_writer *writer)
{
	if (writer->piece != NULL)
		writer->piece->used = writer->used;
	writer->piece = NULL;
}
