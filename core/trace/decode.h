/* SPDX-License-Identifier: MIT */
/*
 * One writer's sub-buffers, decoded: words in, typed records out, with full clocks, and with the
 * frames of each context rebuilt, so that a return knows its entry. The rules are those of
 * <graftrace/record.h>.
 *
 * Use: gt_decode_init; for each sub-buffer in order (some may be missing) gt_decode_feed, then
 * gt_decode_next (decode_fast.h) until it gives GT_RECORD_NONE; at last gt_decode_end and
 * gt_decode_next again for the calls still open; gt_decode_fini.
 *
 * Words are hostile: lengths are checked, what makes no sense is skipped and counted, and no input
 * makes it read outside the words it was given, loop for ever or take more memory than a frame for
 * each entry. Memory comes from the caller's allocator; where it gives none, the innermost frames
 * are kept, and returns of the others are told without their entry. Not thread-safe: one decoder is
 * one caller's.
 */
#ifndef GT_CORE_TRACE_DECODE_H
#define GT_CORE_TRACE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>
#include <graftrace/record.h>
#include "core/trace/memory.h"

enum gt_record_kind {
	GT_RECORD_NONE = 0,   /* no more records in the words that were fed */
	GT_RECORD_ENTRY = 1,  /* a call began */
	GT_RECORD_RETURN = 2, /* a call returned: start, children */
	GT_RECORD_ENTRY_ONLY =
		3,		/* a call whose return is not recorded; it does not count as open */
	GT_RECORD_FUNCTION = 4, /* the function tracer's: caller */
	GT_RECORD_UNWOUND =
		5, /* a call ended without a return (longjmp, exception), one record each,
		    * innermost first: start, depth; value = how many follow in this group,
		    * itself included. With UNSEEN: its end was not recorded.
		    * function 0: one record for `value` calls whose functions are unknown */
	GT_RECORD_CONTEXT = 6, /* value = the context that runs from here on; open_before */
	GT_RECORD_CPU = 7,     /* the CPU has changed, to record.cpu */
	GT_RECORD_LOST = 8,    /* value = records lost here; 0: an unknown number */
	GT_RECORD_GAP = 9,     /* value = sub-buffers missing here; overrun */
	GT_RECORD_MARKER = 10, /* text, text_bytes; clock as the marker has it */
	GT_RECORD_SWITCH = 11, /* previous_tid, its state, next_tid */
	GT_RECORD_STACK = 13,  /* text: text_bytes / 8 entry words of the calls open around it,
				* innermost first; clock as it says */
	GT_RECORD_EVENT = 14, /* an event with fields: value = its number, start = fields that could
				* not be read (bit i: field i); text: text_bytes / 8 words of them,
				* as GRAFTRACE_EVENT_PROBE has them */
	GT_RECORD_OPEN = 12,  /* after gt_decode_end: a call that is still open, as UNWOUND */
};

enum gt_record_flags {
	GT_RECORD_START_UNKNOWN = 1,	/* RETURN: when it began is not known (start = clock) */
	GT_RECORD_CHILDREN_UNKNOWN = 2, /* RETURN: records are missing since it began: children is a
					 * lower bound */
	GT_RECORD_ENTRY_SEEN = 4,	/* RETURN, UNWOUND, OPEN: this decoder gave out its ENTRY */
	GT_RECORD_UNSEEN = 8, /* UNWOUND: it may have returned while nothing was recorded */
	GT_RECORD_FIRST = 16, /* UNWOUND: first of its group */
	GT_RECORD_RAW = 64,   /* MARKER: `text` is bytes, of trace_marker_raw */
	GT_RECORD_VALUES =
		64, /* ENTRY, ENTRY_ONLY, FUNCTION: its arguments, RETURN: what it returns:
				* gt_record_values() */
	GT_RECORD_TEXT = 128, /* MARKER: a line of an event, with its name */
	GT_RECORD_ALONE = 32, /* RETURN: its entry was not recorded (tracing_thresh) */
};

struct gt_record {
	uint64_t clock; /* full tsc */
	union {
		uint64_t start;	       /* RETURN, UNWOUND, OPEN: tsc of the entry */
		uint64_t previous_tid; /* SWITCH */
		uint64_t open_before;  /* CONTEXT: calls that are open in the one before */
		uint64_t overrun; /* GAP: records lost by overrun in what is missing, 0 unknown */
	};
	union {
		uint64_t children; /* RETURN: ticks spent in direct children */
		uint64_t state; /* SWITCH: what the previous thread is left in; EVENT of a kernel:
				    * the CPU's (GRAFTRACE_STATE_…) */
	};
	union {
		uint64_t value;	   /* as the kind says */
		uint64_t caller;   /* FUNCTION: the address that it returns to */
		uint64_t next_tid; /* SWITCH */
	};
	uint32_t function; /* 0: none */
	uint32_t depth;	   /* calls of the context that are open around it */
	uint32_t context;
	uint32_t cpu;  /* ~0 unknown */
	uint8_t kind;  /* enum gt_record_kind */
	uint8_t flags; /* enum gt_record_flags */
	uint16_t mark; /* RETURN, UNWOUND, OPEN: what the reader put into the frame */
	uint32_t text_bytes;
	uint32_t tid; /* a kernel's: the thread that ran; else 0, and it is the writer's */
	/* MARKER, STACK: in the sub-buffer's memory, not NUL-terminated. With VALUES in the decoder's:
	 * until GT_DECODE_VALUES more calls with values have been decoded. */
	const char *text;
};

/* The values of a call that come with its record, as an EVENT record with a number of GRAFTRACE_VALUES.
 * False: there are none. */
static inline bool gt_record_values(const struct gt_record *record, struct gt_record *values)
{
	uint64_t head;
	if (!(record->flags & GT_RECORD_VALUES) ||
	    (record->kind != GT_RECORD_ENTRY && record->kind != GT_RECORD_RETURN &&
	     record->kind != GT_RECORD_ENTRY_ONLY && record->kind != GT_RECORD_FUNCTION) ||
	    record->text_bytes < sizeof(head))
		return false;
	__builtin_memcpy(&head, record->text, sizeof(head));
	*values = *record;
	values->kind = GT_RECORD_EVENT;
	values->flags = 0;
	values->value = GRAFTRACE_VALUES | record->function |
			(record->kind == GT_RECORD_RETURN ? GRAFTRACE_VALUES_RESULT : 0);
	values->start = head >> 32;
	values->text = record->text + sizeof(head);
	values->text_bytes = record->text_bytes - (uint32_t)sizeof(head);
	return true;
}

/* An open call. */
struct gt_decode_frame {
	uint64_t clock;
	uint64_t children; /* ticks of direct children that have returned */
	uint32_t function;
	uint16_t flags; /* GT_RECORD_ENTRY_SEEN, GT_RECORD_CHILDREN_UNKNOWN */
	uint16_t mark;	/* the reader's own, 0 at the entry */
};

/* Calls that have returned to a caller that is unknown, since it was entered before the first record; it
 * may return later. */
struct gt_decode_outer {
	uint64_t ticks; /* sum of those in a row at this depth */
	uint32_t depth; /* ~0: none */
};

struct gt_decode_context {
	uint32_t number;
	uint32_t depth;			/* calls open */
	uint32_t low;			/* frames of depths low … depth - 1 are known */
	uint32_t mask;			/* frames' size - 1 */
	struct gt_decode_frame *frames; /* depth d is at frames[d & mask]; NULL: none yet */
	struct gt_decode_outer outer;
	uint64_t used; /* when it last ran: the oldest is forgotten first */
	uint64_t gaps; /* `gaps` of its decoder when its calls were last known */
};

/* Values of a call that has not been decoded yet. */
#define GT_DECODE_VALUES      4
#define GT_DECODE_VALUE_WORDS 32
struct gt_decode_values {
	uint32_t type; /* of the event; 0: none */
	uint32_t function;
	uint32_t count;	  /* words */
	uint32_t records; /* that came since: after many its call is taken for lost */
	uint32_t noted;	  /* values_next as it was then: which came first; 0: never */
	uint64_t words[GT_DECODE_VALUE_WORDS];
};

#define GT_DECODE_CONTEXTS  256	       /* one decoder remembers so many */
#define GT_DECODE_DEPTH_MAX (1u << 30) /* a greater depth is damage */

struct gt_decode {
	/* The straight line's part (decode_fast.h). */
	const uint64_t *word; /* next word */
	const uint64_t
		*fast_end; /* the straight line may go up to here; <= word: the slow half first */
	uint64_t clock;	   /* full, of the last record */
	struct gt_decode_frame *frames; /* the running context's, as in struct gt_decode_context */
	uint32_t mask;
	uint32_t depth;
	uint32_t low;
	uint32_t cpu;
	uint32_t context;
	uint32_t slot; /* of the running context in contexts */
	uint32_t tid;  /* a kernel's CPU: the thread that runs */
	struct gt_decode_outer outer;
	uint64_t
		lost_clock; /* records are missing before this: calls begun earlier miss children */

	/* The slow half's. */
	const uint64_t *base, *end;
	const struct graftrace_sub_buffer *header;
	uint64_t sequence; /* of the sub-buffer in work */
	uint64_t overrun;  /* lost[OVERRUN] of its header */
	uint64_t switches;
	uint64_t gaps;	       /* so many times sub-buffers were missing */
	uint64_t context_gaps; /* the running context's, as in struct gt_decode_context */
	struct gt_decode_context *contexts;
	uint32_t context_count, context_capacity;
	uint16_t tracer;
	bool fed;
	bool growing; /* a zero word ends what there is for now */
	bool gap, reconcile, fill, open_pending;
	bool kernel;	    /* the writer is a kernel's CPU: contexts are threads */
	bool unfollowed;    /* the sub-buffer in work is the first, or some are missing before it */
	bool enter_pending; /* the header's context is to be told and entered */
	bool adopt_pending; /* a thread came, perhaps from another CPU, and was told */
	uint32_t unwind_to; /* depth to unwind to; ~0: no unwinding in work */
	uint8_t unwind_kind, unwind_flags;
	uint64_t gap_sub_buffers, gap_records;
	uint32_t end_slot;
	size_t switched_at; /* number of the word behind the last CONTEXT word; 0: none yet */
	struct gt_memory memory;
	uint32_t values_pending; /* of `values`: the straight line does not look for them */
	uint32_t values_next;
	struct gt_decode_values values[GT_DECODE_VALUES];
	/*
	 * Called when a kernel's thread comes to this CPU, after all earlier records of other CPUs
	 * were given: the caller that has their decoders moves the thread's calls here
	 * (gt_decode_move_context). NULL: they stay where they are.
	 */
	void (*adopt)(void *data, struct gt_decode *decode);
	void *adopt_data;

	/* Counts of what was skipped, for the reader. */
	uint64_t holes;	  /* words never written, between written ones */
	uint64_t damaged; /* words and events that make no sense */
	uint64_t unknown; /* special words and events of kinds that this version does not know */
};

/* Starts without a sub-buffer. `memory` is copied; nothing is allocated yet. */
void gt_decode_init(struct gt_decode *decode, const struct gt_memory *memory);

/*
 * Takes the next sub-buffer: its header and the `words` words after it, which belong to the caller and
 * must stay valid until the next feed (or the end). If its sequence does not follow the last one's, a
 * GAP record comes first (not at the very first sub-buffer). growing: its writer may add words, and
 * gt_decode_extend may follow; then the first zero word is the end for now, else zero words are holes.
 * GT_EFORMAT: the header is invalid; the message says why, and nothing was taken. GT_ENOMEM, with a message, too: no memory
 * for the first context; the sub-buffer was not taken. message: NULL: none is wanted.
 */
int gt_decode_feed(struct gt_decode *decode, const struct graftrace_sub_buffer *sub_buffer,
		   uint32_t words, bool growing, struct gt_message *message);

/* Takes the present sub-buffer again, with more words and maybe at another address. */
void gt_decode_extend(struct gt_decode *decode, const struct graftrace_sub_buffer *sub_buffer,
		      uint32_t words, bool growing);

/* Gives up the rest of the present sub-buffer: a gap precedes the next one. */
void gt_decode_lose(struct gt_decode *decode);

/* Tells that so many records were lost before the sub-buffer that was just fed, whatever its header
 * says: a GAP record is given for them. */
void gt_decode_miss(struct gt_decode *decode, uint64_t records);

/* After it gt_decode_next gives OPEN records for the open calls of each context, innermost first. */
void gt_decode_end(struct gt_decode *decode);

/* Notes the time of a call at `depth` that has returned to an unknown caller. */
static inline void gt_decode_add_outer(struct gt_decode *decode, uint32_t depth, uint64_t ticks)
{
	if (decode->outer.depth != depth)
		decode->outer = (struct gt_decode_outer){ .depth = depth };
	decode->outer.ticks += ticks;
}

/* The frame at that depth of the running context, or NULL: unknown. */
static inline struct gt_decode_frame *gt_decode_frame(struct gt_decode *decode, uint32_t depth)
{
	if (depth >= decode->depth || depth < decode->low)
		return NULL;
	return &decode->frames[depth & decode->mask];
}

/* Moves the open calls of the context that runs in `to` from the decoder of another CPU; both have the
 * same `memory`. False: that decoder does not know the context. */
bool gt_decode_move_context(struct gt_decode *to, struct gt_decode *from);

/* Forgets everything, and keeps its memory: ready for another writer. */
void gt_decode_reset(struct gt_decode *decode);

/* Frees its memory. */
void gt_decode_fini(struct gt_decode *decode);

#endif
