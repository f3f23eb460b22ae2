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

/* Whether the route writes entries and returns: the tracer is function_graph. */
static inline bool gt_route_wants_calls(const struct gt_route *route)
{
	return route->want.settings.tracer == GRAFTRACE_TRACER_FUNCTION_GRAPH;
}

/* Whether the present record may be written, if it is of a call, a marker, a stack trace or a context switch. Events
 * with fields do not depend on the tracer and the lists of threads: do not ask this function for them. */
static inline bool gt_route_is_recording(const struct gt_route *route,
					 const struct gt_route_writer *writer)
{
	return !writer->silent && !writer->left_out && route->want.settings.on &&
	       route->want.settings.tracer != GRAFTRACE_TRACER_NOP;
}

/* The mark of the call at this depth of the running context; 0 if the decoder does not know the call. */
static inline uint16_t gt_route_mark_at(struct gt_decode *decode, uint32_t depth)
{
	const struct gt_decode_frame *frame = gt_decode_frame(decode, depth);

	return frame != NULL ? frame->mark : 0;
}

/* Appends a word to the open piece. gt_route_room() must have made room for it: nothing is checked. */
static inline void gt_route_put(struct gt_route_writer *writer, uint64_t word)
{
	((uint64_t *)(writer->piece + 1))[writer->used++] = word;
}

/* Whether the records of the open piece have an even number of words, as the function tracer's have. There must be an
 * open piece. */
static inline bool gt_route_is_pairs(const struct gt_route_writer *writer)
{
	return writer->piece->tracer == GRAFTRACE_TRACER_FUNCTION;
}

/* Appends a special word, and in a piece of pairs a PAD word: the room must be for two words then. */
static inline void gt_route_put_special(struct gt_route_writer *writer, enum graftrace_special kind,
					uint32_t argument)
{
	gt_route_put(writer, graftrace_special_word(kind, argument));
	if (gt_route_is_pairs(writer))
		gt_route_put(writer, graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 0));
}

/* route_wants.c */

/* Looks a function up by the settings, and keeps the result. Only for gt_route_function_of(). */
struct gt_route_function gt_route_function_of_slow(struct gt_route *route, uint32_t number);
/* Returns what the settings say of a function. Calls the source if the function is not known yet. If the number is no
 * function's, only `wanted` can be set: it is, unless the settings have a filter. Such a function is looked up each
 * time (a program may make such numbers as large as it likes), and so is one that there is no memory to keep. */
static inline struct gt_route_function gt_route_function_of(struct gt_route *route, uint32_t number)
{
	if (number < route->function_count && route->functions[number].known)
		return route->functions[number];
	return gt_route_function_of_slow(route, number);
}
/* Whether the instance wants the event, by the list of events, `marks` and `also`; `of_thread` is not asked. False if
 * the number is no event's. *mark: programs mark by it (gt_event_is_mark); of use only if the result is true. Calls the
 * source if the event is not known yet. Numbers of no event are not kept: a program may make them as large as it
 * likes. */
bool gt_route_wants_event(struct gt_route *route, uint32_t number, bool *mark);

/* route_write.c */

/* Makes room for a record of `words` words in the writer's piece, or opens another piece, and writes the records that
 * precede it: context, CPU, losses, depth, clock. words: those that the caller will put, PAD words included; a hundred
 * at most. ended: the record of the call that it ends, if it is its return; else NULL. False: no room; the record has
 * been counted as dropped and as lost. */
bool gt_route_room(struct gt_route *route, struct gt_route_writer *writer,
		   const struct gt_record *record, uint32_t words, const struct gt_record *ended);
/* Writes an event: its head, then `count` words of data, as include/graftrace/record.h has them for that type.
 * gt_route_room() must have made room for count + 1 words, in a piece of pairs for count + 2. */
void gt_route_put_event(struct gt_route_writer *writer, enum graftrace_event type,
			const uint64_t *data, uint32_t count);
/* Writes an entry, or a record of the function tracer, as a record of the function tracer; makes the room itself. Of an
 * entry the caller is the innermost traced call. False: no room, as gt_route_room() says. */
bool gt_route_put_function(struct gt_route *route, struct gt_route_writer *writer,
			   const struct gt_record *record);

/* route_commands.c */

/* The commands of the record's function, also those whose hits are used up: bit n is place n of `commands`. 0 if
 * writer->silent is set. The lists of threads do not matter. Nothing is counted. */
uint32_t gt_route_commands_at(struct gt_route *route, const struct gt_route_writer *writer,
			      const struct gt_record *record);
/* Carries out these commands, and counts their hits. Call it before the call is written (before: only traceon acts) and
 * afterwards (the others act). traceon and traceoff switch tracing_on and set `switched`; stacktrace writes the open
 * calls; others are noted in `due` and `due_cpu`. A command that would change nothing is no hit, and while tracing is
 * off only traceon acts. */
void gt_route_act(struct gt_route *route, struct gt_route_writer *writer,
		  const struct gt_record *record, uint32_t commands, bool before);

#endif
