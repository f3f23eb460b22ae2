/* SPDX-License-Identifier: MIT */
/* What the files route*.c share. One thread at a time, no locks, as route.h says. */
#ifndef GT_SERVE_ROUTE_PRIVATE_H
#define GT_SERVE_ROUTE_PRIVATE_H

#include "core/trace/decode_fast.h"
#include "serve/store/route.h"

/* A frame's mark. */
#define GT_ROUTE_KNOWN	 1u  /* decided */
#define GT_ROUTE_SHOWN	 2u  /* it is in this instance's trace */
#define GT_ROUTE_INSIDE	 4u  /* of set_graph_function, or below it */
#define GT_ROUTE_OUT	 16u /* of set_graph_notrace, or below it */
#define GT_ROUTE_WRITTEN 8u  /* its entry is in the sub-buffer with … */
#define GT_ROUTE_PIECE	 32u /* … this sequence, modulo … */
#define GT_ROUTE_PIECES	 2048u

static inline bool gt_route_wants_calls(const struct gt_route *route)
{
	return route->want.settings.tracer == GRAFTRACE_TRACER_FUNCTION_GRAPH;
}

static inline bool gt_route_is_recording(const struct gt_route *route,
					 const struct gt_route_writer *writer)
{
	return !writer->silent && !writer->left_out && route->want.settings.on &&
	       route->want.settings.tracer != GRAFTRACE_TRACER_NOP;
}

static inline uint16_t gt_route_mark_at(struct gt_decode *decode, uint32_t depth)
{
	const struct gt_decode_frame *frame = gt_decode_frame(decode, depth);

	return frame != NULL ? frame->mark : 0;
}

static inline void gt_route_put(struct gt_route_writer *writer, uint64_t word)
{
	((uint64_t *)(writer->piece + 1))[writer->used++] = word;
}

static inline bool gt_route_is_pairs(const struct gt_route_writer *writer)
{
	return writer->piece->tracer == GRAFTRACE_TRACER_FUNCTION;
}

static inline void gt_route_put_special(struct gt_route_writer *writer, enum graftrace_special kind,
					uint32_t argument)
{
	gt_route_put(writer, graftrace_special_word(kind, argument));
	if (gt_route_is_pairs(writer))
		gt_route_put(writer, graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 0));
}

/* route_wants.c */

struct gt_route_function gt_route_function_of_slow(struct gt_route *route, uint32_t number);
/* Returns what is known of a function. It is looked up each time if its number is no function's
 * (such numbers may be as large as a program likes), or if there is no memory to keep it. */
static inline struct gt_route_function gt_route_function_of(struct gt_route *route, uint32_t number)
{
	if (number < route->function_count && route->functions[number].known)
		return route->functions[number];
	return gt_route_function_of_slow(route, number);
}
/* Whether the instance wants the event, as its settings are; *mark: it is one of those that programs mark
 * (gt_event_is_mark). Numbers of no event are not kept: a program may make them as large as it likes. */
bool gt_route_wants_event(struct gt_route *route, uint32_t number, bool *mark);

/* route_write.c */

/* Makes room for a record of `words` words in the writer's piece, or opens another piece, and writes the records that
 * precede it: CPU, losses, depth. ended: the record of the call that it ends, if it is its return; else NULL. False: no
 * room. */
bool gt_route_room(struct gt_route *route, struct gt_route_writer *writer,
		   const struct gt_record *record, uint32_t words, const struct gt_record *ended);
/* Writes an event's words; gt_route_room() must have made room for them. */
void gt_route_put_event(struct gt_route_writer *writer, enum graftrace_event type,
			const uint64_t *data, uint32_t count);
/* Writes a record of the function tracer. In a stream of calls, the caller is the innermost
 * traced one. False: no room. */
bool gt_route_put_function(struct gt_route *route, struct gt_route_writer *writer,
			   const struct gt_record *record);

/* route_commands.c */

/* The commands of the record's function, a bit each; 0 if the record is left out. */
uint32_t gt_route_commands_at(struct gt_route *route, const struct gt_route_writer *writer,
			      const struct gt_record *record);
/* Carries out these commands. before: called before the call is written, when traceon acts; the others act
 * afterwards. */
void gt_route_act(struct gt_route *route, struct gt_route_writer *writer,
		  const struct gt_record *record, uint32_t commands, bool before);

#endif
