/* SPDX-License-Identifier: MIT */
/*
 * The record format: what a traced call leaves behind. The same bytes stand in a live ring
 * buffer, in a recording file and in a kernel's memory. Little endian, x86-64.
 *
 * A stream is the ring buffer of one writer (one thread of a program, one CPU of a kernel). It is
 * a sequence of sub-buffers; each is a header (struct graftrace_sub_buffer) and then 8-byte words.
 *
 *	63                33  32  31                 0
 *	+-------------------+----+--------------------+
 *	| function (31)     | R  | clock (32)         |   an entry (R = 0) or a return (R = 1)
 *	+-------------------+----+--------------------+
 *
 * Rules for readers
 *  1. A zero word was never written: a hole (a signal handler that never came back, a kill).
 *  2. Clocks are the low 32 bits of the time stamp counter; the high 32 bits are those of the
 *     sub-buffer's clock until a CLOCK word states new ones. Writers nested in each other can run
 *     backwards by a little, and one that was interrupted can stand just before the CLOCK word that
 *     it belongs behind: where a clock comes out more than 2^31 below the one before it, add 2^32,
 *     to that one alone.
 *  3. A function number at or above GRAFTRACE_SPECIAL is no function: see enum graftrace_special.
 *  4. A sub-buffer can be read alone: its header has the full clock, the context, the depth and
 *     the innermost open calls at its start, and a return whose entry came before the sub-buffer
 *     (or before the context was switched in) comes as a LONG_RETURN event with the entry's clock
 *     and the depth.
 *     Where a writer's sub-buffers follow each other without a gap, what was followed through the
 *     records is right, and the header's depth can differ by a call whose recording
 *     was interrupted; the entry's clock that a header or a LONG_RETURN tells of such a call can
 *     be 2^32 too late.
 *  5. Depth of an entry = number of calls open in its context. Calls that ended without returning
 *     (longjmp, exceptions) are taken off by an UNWOUND word, innermost first.
 *     Where the header's process is 0, the writer is a CPU of a kernel: a context whose number is
 *     below GRAFTRACE_CONTEXT_INTERRUPT is the thread of that number, which runs from there on;
 *     one at or above it is an interrupt's, in the thread that ran before. The header's tid is the
 *     thread at the opening. Threads move between CPUs in the middle of their calls.
 *  6. In a sub-buffer of the function tracer every record is two words: the entry word and the
 *     full 64-bit address that the function returns to (its caller). Special words there are
 *     followed by one filler word, and an event's total length is even.
 */
#ifndef GRAFTRACE_RECORD_H
#define GRAFTRACE_RECORD_H

#include <stdint.h>

/* A condition that holds when this is compiled: C11's and C++'s word for it differ. */
#ifdef __cplusplus
#define GRAFTRACE_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define GRAFTRACE_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#define GRAFTRACE_WORD_RETURN (1ull << 32)

/* Function numbers: 0 is reserved, 1 … GRAFTRACE_SPECIAL - 1 are functions, never reused. */
#define GRAFTRACE_SPECIAL 0x7fffff00u

static inline uint32_t graftrace_word_function(uint64_t word)
{
	return (uint32_t)(word >> 33);
}

static inline uint32_t graftrace_word_clock(uint64_t word)
{
	return (uint32_t)word;
}

static inline int graftrace_word_is_return(uint64_t word)
{
	return (word & GRAFTRACE_WORD_RETURN) != 0;
}

static inline uint64_t graftrace_word(uint32_t function, int is_return, uint32_t clock)
{
	return (uint64_t)function << 33 | (is_return ? GRAFTRACE_WORD_RETURN : 0) | clock;
}

/* Contexts of a kernel's interrupts are numbered from here (rule 5). */
#define GRAFTRACE_CONTEXT_INTERRUPT 0x40000000u

/* Special words: function = GRAFTRACE_SPECIAL + kind, R = 0, and the clock's place has an argument.
 */
enum graftrace_special {
	GRAFTRACE_SPECIAL_CLOCK = 1,   /* argument: tsc >> 32 (rule 2) */
	GRAFTRACE_SPECIAL_UNWOUND = 2, /* argument: open calls that ended without a return */
	GRAFTRACE_SPECIAL_CONTEXT = 3, /* argument: number of the context that runs from here on */
	GRAFTRACE_SPECIAL_CPU = 4,     /* argument: number of the CPU that runs from here on */
	GRAFTRACE_SPECIAL_PAD = 5,     /* argument: words to skip after this one */
	GRAFTRACE_SPECIAL_EVENT = 6,   /* argument: type << 16 | data words that follow */
	GRAFTRACE_SPECIAL_LOST = 7,    /* argument: records lost just before (saturates) */
	/* The writer stopped (tracing_on = 0, ring full) and goes on from here: calls that were
	 * open may have returned meanwhile. Argument: depth that is left of the context's open
	 * calls; what is above it is taken off without a return. Right behind a CONTEXT word
	 * it only tells the depth there: nothing was missed. */
	GRAFTRACE_SPECIAL_RESUMED = 8,
};

static inline uint64_t graftrace_special_word(enum graftrace_special kind, uint32_t argument)
{
	return (uint64_t)(GRAFTRACE_SPECIAL + (uint32_t)kind) << 33 | argument;
}

/* Types of EVENT. The first data word is stored last: zero, the writer was interrupted or cut off in it, and
 * there is no record. The others may have any value. Where
 * an event ends a sub-buffer, its last words may be missing if they are zero: they look the same as
 * words that were never written, which are cut off. */
enum graftrace_event {
	/* 3 words: the return word, the entry's full clock (tsc), the depth (calls that stay open).
	 */
	GRAFTRACE_EVENT_LONG_RETURN = 1,
	/* 1 word: an entry word of a function whose return is not recorded. */
	GRAFTRACE_EVENT_ENTRY_ONLY = 2,
	/* 1 + n words: full clock, then text padded with zero bytes (trace_marker). */
	GRAFTRACE_EVENT_MARKER = 3,
	/* As LONG_RETURN, of a call whose entry was not recorded (tracing_thresh): it is the call's
	 * only record. */
	GRAFTRACE_EVENT_LONG_CALL = 5,
	/* 1 + n words: full clock, then the calls that are open around the moment, innermost first,
	 * as their entry words (their low clocks too). */
	GRAFTRACE_EVENT_STACK = 6,
	/* 2 + n words: full clock, number of bytes, the bytes (trace_marker_raw). */
	GRAFTRACE_EVENT_MARKER_RAW = 7,
	/* 4 words: full clock, previous thread's number, next thread's number, previous state. */
	GRAFTRACE_EVENT_SWITCH = 4,
	/* As MARKER: a line of an event of another tracer, "name: what it says". */
	GRAFTRACE_EVENT_TEXT = 16,
	/*
	 * 2 + n words: full clock, number of a described event | its fields that could not be read
	 * << 32 (bit i: field i) | in a kernel the CPU's state << 48, then the fields, a word each, and behind them the bytes of those
	 * that are strings: such a word is the string's offset from the first field | its bytes,
	 * with a zero byte at the end, << 16.
	 */
	GRAFTRACE_EVENT_PROBE = 8,
	/*
	 * 1 + n words: function | its values that could not be read << 32 (bits as above), then the
	 * values, as PROBE has fields (of a number its type's bytes count). They are the arguments of the next entry of that function in the
	 * context, or what its next return there returns. A signal's handler may have recorded in
	 * between; a call that was not recorded after all leaves its arguments without an entry.
	 */
	GRAFTRACE_EVENT_ARGUMENTS = 9,
	GRAFTRACE_EVENT_RESULT = 10,
};

/* Numbers of described events (PROBE) lie below GRAFTRACE_VALUES. A description with a number from
 * there on is of what ARGUMENTS or, with the next bit, RESULT of a function has; the low bits are the
 * function's number. Functions with greater ones have no description. */
#define GRAFTRACE_VALUES	  0x80000000u
#define GRAFTRACE_VALUES_RESULT	  0x40000000u
#define GRAFTRACE_VALUES_FUNCTION 0x3fffffffu

/* How a value of a call is shown. */
enum graftrace_value_kind {
	GRAFTRACE_VALUE_PLAIN = 0, /* with a sign as a decimal number, else as a hexadecimal one */
	GRAFTRACE_VALUE_ADDRESS = 1,
	GRAFTRACE_VALUE_FUNCTION = 2, /* the address of one: by its name */
	GRAFTRACE_VALUE_CHARACTER = 3,
	GRAFTRACE_VALUE_ENUM = 4, /* by the name that the type has for it */
	GRAFTRACE_VALUE_DECIMAL = 5,
	GRAFTRACE_VALUE_STRUCTURE = 6, /* the first word of one */
	GRAFTRACE_VALUE_MORE = 7,      /* the next word of what stands before */
	GRAFTRACE_VALUE_OPAQUE = 8,    /* nothing is known but that it is there */
};

#define GRAFTRACE_VALUE_TEXT_MAX \
	63 /* bytes of a text, its zero byte not counted: longer ones are cut */

#define GRAFTRACE_PROBE_FIELDS 16 /* of a described event, at most */

/* What a field of a described event is; 0: an unsigned number. */
#define GRAFTRACE_FIELD_SIGNED 1u
#define GRAFTRACE_FIELD_STRING 2u
#define GRAFTRACE_FIELD_FLOAT  4u

/* State of a kernel's CPU when an event happened, as Linux' common_flags and
 * common_preempt_count have it: bits of a PROBE's word, from GRAFTRACE_PROBE_STATE on. */
#define GRAFTRACE_PROBE_STATE	     48
#define GRAFTRACE_STATE_IRQS_OFF     0x01u
#define GRAFTRACE_STATE_NEED_RESCHED 0x04u
#define GRAFTRACE_STATE_HARDIRQ	     0x08u
#define GRAFTRACE_STATE_NMI	     0x40u
#define GRAFTRACE_STATE_PREEMPT	     8 /* the depth is behind the flags */

static inline int graftrace_word_is_event(uint64_t word)
{
	return graftrace_word_function(word) == GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_EVENT;
}

/* Words that the record at `word` takes, data and filler included; `left` are there, 1 or more.
 * is_pairs: a sub-buffer of the function tracer (rule 6). */
static inline uint32_t graftrace_record_words(const uint64_t *word, uint32_t left, int is_pairs)
{
	uint32_t function = graftrace_word_function(*word);
	uint32_t words = 1;
	if (graftrace_word_is_event(*word))
		words += graftrace_word_clock(*word) & 0xffff;
	else if (function == GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_PAD)
		words += graftrace_word_clock(*word) < left ? graftrace_word_clock(*word) : left;
	if (is_pairs)
		words += words & 1;
	return words < left ? words : left;
}

/* Is the word, the first of what graftrace_record_words steps over, of a record (a call, a return,
 * an event)? And of one that tells of a call by itself: an entry, or a call without an entry. */
static inline int graftrace_word_is_record(uint64_t word)
{
	uint32_t function = graftrace_word_function(word);
	return word != 0 && (function < GRAFTRACE_SPECIAL || graftrace_word_is_event(word));
}

static inline int graftrace_word_is_call(uint64_t word)
{
	uint32_t type = graftrace_word_clock(word) >> 16;
	if (graftrace_word_is_event(word))
		return type == GRAFTRACE_EVENT_ENTRY_ONLY || type == GRAFTRACE_EVENT_LONG_CALL;
	return word != 0 && graftrace_word_function(word) < GRAFTRACE_SPECIAL &&
	       !graftrace_word_is_return(word);
}

enum graftrace_tracer {
	GRAFTRACE_TRACER_NOP = 0,
	GRAFTRACE_TRACER_FUNCTION = 1,
	GRAFTRACE_TRACER_FUNCTION_GRAPH = 2,
	/* Of a kernel's control files; not in records, which are NOP's: requests to block devices */
	GRAFTRACE_TRACER_BLK = 3,
	/* … and latencies (graftrace/latency.h); records are FUNCTION's */
	GRAFTRACE_TRACER_IRQSOFF = 4,
	GRAFTRACE_TRACER_PREEMPTOFF = 5,
	GRAFTRACE_TRACER_PREEMPTIRQSOFF = 6,
	GRAFTRACE_TRACERS = 7,
};

/*
 * Why something is lost. Indexes of lost counters everywhere. All but two count calls of which
 * nothing is recorded, each once, so that calls made = calls recorded + graftrace_lost_calls(). A
 * return that is missing behind a recorded entry is no call.
 */
enum graftrace_lost {
	GRAFTRACE_LOST_FULL = 0,   /* no free sub-buffer: entries not recorded (newest dropped) */
	GRAFTRACE_LOST_WINDOW = 1, /* not lost: no mirror, recorded without their returns */
	GRAFTRACE_LOST_DEPTH = 2,  /* deeper than the frame array can grow: not recorded */
	GRAFTRACE_LOST_OVERRUN =
		3,		   /* records, not calls: overwritten by newer ones (--overwrite) */
	GRAFTRACE_LOST_STREAM = 4, /* no stream for a new thread */
	GRAFTRACE_LOST_PROFILE =
		5,		 /* no page of the function profiler's table: calls not counted */
	GRAFTRACE_LOST_LATE = 6, /* a signal's handler ran for so long that the record it had
				  * interrupted was stored behind its sub-buffer's reading */
	GRAFTRACE_LOST_OVERRUN_CALLS = 7, /* the calls whose entries are among OVERRUN */
	GRAFTRACE_LOST_CAUSES = 8,
};

/* Calls made of which nothing is recorded, all causes together. */
static inline uint64_t graftrace_lost_calls(const uint64_t *lost)
{
	uint64_t calls = 0;
	for (int cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
		if (cause != GRAFTRACE_LOST_WINDOW && cause != GRAFTRACE_LOST_OVERRUN)
			calls += lost[cause];
	return calls;
}

/* An open call, outermost of the listed first. Function 0: a signal came while its entry was being
 * recorded, and its handler opened the sub-buffer. */
struct graftrace_open_call {
	uint64_t clock; /* entry, full tsc */
	uint32_t function;
	uint32_t depth;
};

#define GRAFTRACE_SUB_BUFFER_MAGIC 0x42535447u /* "GTSB" */
#define GRAFTRACE_OPEN_CALLS	   16

/* Header of a sub-buffer; words follow at once. Written by the writer when it opens the sub-buffer,
 * but for `used`, written once when it closes it. */
struct graftrace_sub_buffer {
	uint32_t magic;	     /* GRAFTRACE_SUB_BUFFER_MAGIC */
	uint32_t bytes;	     /* of the whole sub-buffer, header included */
	uint32_t stream;     /* index of the stream (reused by later threads: see generation) */
	uint32_t generation; /* number of the writer in this recording: unique, from 1 */
	uint32_t pid;
	uint32_t tid;
	uint32_t cpu;	     /* CPU at opening; ~0 unknown */
	uint32_t context;    /* running context at opening */
	uint64_t sequence;   /* of this sub-buffer in its writer, from 0 */
	uint64_t clock;	     /* full tsc at opening; its high half holds until a CLOCK word
			      */
	uint32_t depth;	     /* calls open in the context at opening */
	uint16_t tracer;     /* enum graftrace_tracer */
	uint16_t open_calls; /* entries of `open` in use: the innermost ones */
	uint32_t used;	     /* words in use; 0 while it is being written */
	uint32_t reserved;
	uint64_t lost[GRAFTRACE_LOST_CAUSES]; /* by the writer since its start, at opening */
	struct graftrace_open_call open[GRAFTRACE_OPEN_CALLS];
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_sub_buffer) == 128 + GRAFTRACE_OPEN_CALLS * 16,
			"the header is 384 bytes");

static inline uint64_t *graftrace_sub_buffer_words(struct graftrace_sub_buffer *sub_buffer)
{
	return (uint64_t *)(sub_buffer + 1);
}

#endif
