/* SPDX-License-Identifier: MIT */
/*
 * The recorder's own structures: the thread block that the recording path works on, frames,
 * contexts.
 *
 * Writers: a thread block belongs to one thread (CPU). The straight line (arch/) and the slow half
 * (slow.c, with signals masked) write it, nested in each other only as signals nest. The host writes
 * bytes 0 and 1 of `stop`. Other threads read contexts only, under a lock of the port.
 */
#ifndef GT_CORE_RECORD_RECORDER_H
#define GT_CORE_RECORD_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/agent.h>
#include <graftrace/arena.h>
#include <graftrace/profile.h>
#include <graftrace/selected.h>
#include "core/record/layout.h"

/* An open call. Taken frames have their slot; a popped one has ~0, which also marks one that is
 * being pushed by an interrupted straight line (in flight: TOP already counts it). */
struct gt_frame {
	uint64_t slot; /* address of the return slot */
	uint64_t word; /* the entry's record: function and low half of the clock */
	uint32_t high; /* high half of the clock */
	uint32_t
		epoch; /* the thread's epoch at the entry, flags (GT_FRAME_…) in the low byte. 0, kernels:
			 * the straight line's, which notes none (hot_kernel.S, K) */
	uint64_t children; /* profile: ticks of the calls from it that have returned */
};

static inline uint64_t gt_frame_clock(const struct gt_frame *frame)
{
	return (uint64_t)frame->high << 32 | graftrace_word_clock(frame->word);
}

/* When its call began, seen from `now`. An interrupt between the reading of the clock and the
 * storing of its high half can have brought a new one: then the frame lies 2^32 too late, which
 * shows as long as that is in the future; readers know it later too (rule 4). */
static inline uint64_t gt_frame_start(const struct gt_frame *frame, uint64_t now)
{
	uint64_t clock = gt_frame_clock(frame);
	return clock > now && clock - now > 1ull << 26 ? clock - (1ull << 32) : clock;
}

static inline uint32_t gt_frame_function(const struct gt_frame *frame)
{
	return graftrace_word_function(frame->word);
}

static inline uint32_t gt_frame_flags(const struct gt_frame *frame)
{
	return frame->epoch & (GT_EPOCH_STEP - 1);
}

/* It is none of those that readers know; in flight: it is one. */
static inline bool gt_frame_is_hidden(const struct gt_frame *frame)
{
	return frame->slot != ~0ull && frame->slot != 0 &&
	       (gt_frame_flags(frame) & GT_FRAME_HIDDEN) == GT_FRAME_HIDDEN;
}

#define GT_SLOT_NONE (~0ull)
/* gt_frame.slot of one that is none, or in flight */
#define GT_FRAME_UNSET ((uint64_t)GT_SLOT_UNSET)

/* Whether stack traces show it. */
static inline bool gt_frame_is_in_stack(const struct gt_frame *frame)
{
	return frame->slot != GT_SLOT_NONE && frame->slot != 0 && !gt_frame_is_hidden(frame);
}

#define GT_SOME_FRAMES 1024u /* that fit into a context's second array */

/* Frames on either side of a program's array. A handler may go on in another coroutine, which no switch
 * tells of, between the looks of a straight line at its frame and the push or the pop of one: that is then
 * another context's. So an array's top may be outside of it, by as many as were interrupted there one
 * after the other, until the next call, which the slow half puts right. */
#define GT_MARGIN_FRAMES 8u

/* What owns a call stack: a thread's own stack, a coroutine's, a signal stack. frames[0] is a
 * sentinel whose slot is above every other. */
struct gt_context {
	struct gt_frame *frames;
	struct gt_frame *top; /* while it does not run; the running thread's block has it else */
	uint32_t capacity;    /* frames that fit, sentinel included */
	uint32_t number;      /* in records; unique in the recording's process */
	uint64_t low, high;   /* the stack's bounds where known (known != 0), else what was seen */
	uint8_t known;	      /* 1: a thread's own stack, by its bounds; 2: by a guess at them */
	uint8_t grows;	  /* 1: the initial thread's stack, of which `low` is only today's limit */
	uint16_t bounded; /* 1: its bounds are known, though it is no thread's own stack */
	union {
		uint32_t listed;     /* programs: suspended ones' bucket + 1; 0 = it is in none */
		uint32_t graph_turn; /* kernels: of kernel.c, when `outside` was noted */
	};
	uint32_t running;  /* 1: some thread is on it */
	uint32_t writer;   /* generation of the writer that ran it last; 0 = none yet */
	uint64_t saved_sp; /* where an explicit switch left it; 0 = by no explicit switch */
	uint64_t win_low, win_high;  /* mirror that is mapped for it */
	struct gt_context *previous; /* what ran when a nested context (signal stack) began */
	struct gt_context *next;     /* in the hash chain of suspended contexts, or a free list */
	union {
		/* Programs: the second array, where it has a third; an interrupted push may still
		 * store to it. */
		struct gt_frame *outgrown;
		struct gt_context *interrupted; /* kernels, an interrupt's: what ran before it */
	};
	/* Kernels only (kernel.c), while it does not run: */
	uint64_t sequence; /* the writer's sub-buffers so far */
	uint32_t epoch;	   /* the writer's */
	uint32_t paused;   /* how often it is paused; 0 = it records */
	uint8_t outside;   /* outside the graph functions */
	union {
		uint8_t in_engine; /* an interrupt stopped it in the recording path */
		uint8_t hides;	   /* programs: a frame of it was or is hidden (GT_FRAME_HIDDEN) */
	};
	uint8_t resume;	  /* the writer's, when the interrupt came */
	uint8_t records;  /* an interrupt recorded something when it came last */
	uint32_t said_at; /* it was told of when it came: the cursor behind that, low half */
	union {
		/* programs: frames until it needs more */
		struct gt_frame small[GT_MARGIN_FRAMES + 24 + GT_MARGIN_FRAMES];
		uint64_t gate_top; /* kernels: the block's, while an interrupt's context runs */
	};
};
_Static_assert(offsetof(struct gt_context, small) % 64 == 0, "no frame lies on two cache lines");

/* The thread block. The first 128 bytes are layout.h's. */
struct gt_thread {
	union {
		uint64_t owner;	 /* thread pointer of its thread; 0 = free, or wiped by fork */
		uint64_t mirror; /* kernels: what leads from a slot of the context to its mirror */
	};
	/* One compare tells "record, in this mode". Written byte by byte: both sides write. */
	union {
		uint32_t stop; /* GT_STOP_…, mode in byte 3 */
		struct {
			uint8_t full;	 /* the recorder sets it, the host clears it */
			uint8_t host;	 /* tracing_on = 0: the host's */
			uint8_t outside; /* the recorder's: 1 outside the graph functions; kernels:
					  * 2 paused, 4 calls of a thread that is not traced */
			uint8_t mode; /* GT_MODE_…; 0 (also set by the host): all calls take the
				       * slow path, which reads the arena's settings */
		};
	};
	uint8_t chosen;	 /* GT_MODE_… by the arena's settings; `mode` is it, or 0 (see
			   gt_stream_choose) */
	bool tight;	 /* the last sub-buffer of a full ring: what is left is kept for returns */
	bool is_pairs;	 /* the open sub-buffer is of the function tracer; what its header says, any
			 * process of the recording can change */
	bool unlisted;	 /* kernels: the thread is not traced (set_ftrace_pid): no event of it */
	uint64_t cur;	 /* address of the next word; 0: none may be written there */
	uint64_t inside; /* place & inside == 0: no place of a sub-buffer (a header, or 0) */
	uint32_t high;	 /* tsc >> 32 of the last record */
	uint32_t epoch; /* changes with the sub-buffer and the context: calls of an older one return
			 * by LONG_RETURN. Low byte zero */
	uint64_t
		floor; /* slots from here to the top frame's have a mirror and are this context's */
	/* The innermost frame. Programs hold it, and the two limits below, relative to the block
	 * (gt_thread_hold): 0, which fork leaves there, is a place in the block itself. */
	union {
		struct gt_frame *top; /* kernels */
		uint64_t held_top;
	};
	uint64_t limit;	   /* top at or behind it takes the slow path */
	uint64_t cur_pair; /* `cur` of the function tracer, whose records have two words */
	union {
		uint64_t *lost_full;	  /* counter of entries dropped while full */
		uint64_t lost_while_full; /* kernels: the count itself (GRAFTRACE_BLOCK_LOST) */
	};
	uint64_t depth_limit; /* max_graph_depth: top at or behind it is not traced */
	uint64_t threshold;   /* tracing_thresh in ticks */
	uint64_t resume;      /* GT_RESUME_…: what has to be said before the next record */
	/* cold */
	struct graftrace_sub_buffer *sub_buffer; /* the open one, NULL = none */
	struct graftrace_stream *stream;
	struct gt_thread *self;
	struct graftrace_profile_entry *
		*profile;	/* its pages by function number >> 4; NULL: none */
	uint64_t profile_pages; /* elements of `profile`; 0 = none yet */
	struct gt_context *context;
	struct gt_context *base; /* the thread's own stack */
	uint32_t sub_index;
	uint32_t generation;
	uint32_t pid;
	uint32_t tid;
	uint32_t last_cpu;
	uint32_t verify;   /* 1: frames may be stale (a vfork child ran here): check their slots */
	uint64_t hard_end; /* end of the open sub-buffer */
	struct gt_context **running; /* where the running context is noted beyond a fork; or NULL */
	uint32_t max_depth;	     /* max_graph_depth, 0 = none */
	uint32_t said; /* the context that the stream's last words are of, as readers know it */
	union {
		/* Programs: where `profile` is noted, to be freed. */
		struct graftrace_profile_entry ***profile_home;
		/* Kernels: the newest frame whose return may not go straight (hot_kernel.S, K);
		 * ~0: none may. */
		uint64_t gate_top;
	};
	uint32_t busy;	   /* kernels: > 0 while the slow half works; an NMI may not record then */
	uint32_t said_tid; /* kernels: the thread of the last words, as readers know it */
	uint64_t oldest_sequence; /* overwrite mode: of `oldest` */
	uint32_t
		oldest; /* index + 1 of what should be the writer's oldest sub-buffer; 0: unknown */
	/* Kernels, set by set_gate in kernel.c. */
	uint32_t gate_epoch; /* `epoch` when the gate was opened last; ~0: it is closed */
	union {
		uint64_t gate; /* lowest stack pointer that may go straight, GT_GATE_CLOSED: none */
		/* Programs: the place of an event that is being stored while signals may come, 0 =
		 * of none; a handler that leaves by a jump gives it up. */
		uint64_t storing;
	};
	union {
		uint64_t slow_stack; /* kernels: top of the stack that the slow half runs on; 0 =
					none */
		uint32_t trap;	     /* programs: GRAFTRACE_TRAP_…, see struct graftrace_traps */
	};
};

/* A frame's address as the block has it: relative to its middle in programs. */
static inline uint64_t gt_thread_hold(const struct gt_thread *thread, const struct gt_frame *frame)
{
#ifdef GT_PROGRAM
	return (uint64_t)frame - ((uint64_t)thread + GT_THREAD_SCRAP);
#else
	(void)thread;
	return (uint64_t)frame;
#endif
}

static inline struct gt_frame *gt_thread_top(const struct gt_thread *thread)
{
#ifdef GT_PROGRAM
	return (struct gt_frame *)(thread->held_top + (uint64_t)thread + GT_THREAD_SCRAP);
#else
	return thread->top;
#endif
}

static inline void gt_thread_set_top(struct gt_thread *thread, const struct gt_frame *top)
{
	thread->held_top = gt_thread_hold(thread, top);
}

/* Kernels: call it after a change of another CPU's stop word, which its straight line does not read. That
 * CPU opens its gate again by itself. */
static inline void gt_thread_close_gate(struct gt_thread *thread)
{
	__atomic_store_n(&thread->gate, GT_GATE_CLOSED, __ATOMIC_SEQ_CST);
	__atomic_store_n(&thread->gate_epoch, ~0u, __ATOMIC_SEQ_CST);
#ifndef GT_PROGRAM
	__atomic_store_n(&thread->gate_top, ~0ull, __ATOMIC_SEQ_CST);
#endif
}

#define GT_ASSERT_AT(type, field, offset) \
	_Static_assert(offsetof(type, field) == (offset), #field " stands where layout.h says")
GT_ASSERT_AT(struct gt_thread, owner, GT_THREAD_OWNER);
GT_ASSERT_AT(struct gt_thread, mirror, GT_THREAD_MIRROR);
GT_ASSERT_AT(struct gt_thread, gate, GT_THREAD_GATE);
GT_ASSERT_AT(struct gt_thread, gate_top, GT_THREAD_GATE_TOP);
GT_ASSERT_AT(struct gt_thread, stop, GT_THREAD_STOP);
GT_ASSERT_AT(struct gt_thread, stop, GRAFTRACE_BLOCK_STOP);
GT_ASSERT_AT(struct gt_thread, cur, GT_THREAD_CUR);
GT_ASSERT_AT(struct gt_thread, inside, GT_THREAD_INSIDE);
GT_ASSERT_AT(struct gt_thread, high, GT_THREAD_HIGH);
GT_ASSERT_AT(struct gt_thread, epoch, GT_THREAD_EPOCH);
GT_ASSERT_AT(struct gt_thread, floor, GT_THREAD_FLOOR);
GT_ASSERT_AT(struct gt_thread, top, GT_THREAD_TOP);
GT_ASSERT_AT(struct gt_thread, limit, GT_THREAD_LIMIT);
GT_ASSERT_AT(struct gt_thread, cur_pair, GT_THREAD_CUR_PAIR);
GT_ASSERT_AT(struct gt_thread, lost_full, GT_THREAD_LOST_FULL);
GT_ASSERT_AT(struct gt_thread, lost_while_full, GRAFTRACE_BLOCK_LOST);
GT_ASSERT_AT(struct gt_thread, depth_limit, GT_THREAD_DEPTH_LIMIT);
GT_ASSERT_AT(struct gt_thread, threshold, GT_THREAD_THRESHOLD);
GT_ASSERT_AT(struct gt_thread, resume, GT_THREAD_RESUME);
#define GT_ASSERT_STOP(mask, byte, bits) \
	_Static_assert((mask) == (bits) << 8 * GRAFTRACE_STOP_BYTE_##byte, "in byte " #byte)
GT_ASSERT_STOP(GT_STOP_FULL, FULL, 1);
GT_ASSERT_STOP(GT_STOP_HOST, HOST, GRAFTRACE_STOP_OFF);
GT_ASSERT_STOP(GT_STOP_LEFT_OUT, HOST, GRAFTRACE_STOP_LEFT_OUT);
GT_ASSERT_STOP(GT_STOP_OUTSIDE, OUTSIDE, GT_OUTSIDE_GRAPH);
GT_ASSERT_STOP(1 << GT_STOP_MODE_SHIFT, MODE, 1);
_Static_assert(GT_ENTRY_ON == GRAFTRACE_ENTRY_ON && GT_ENTRY_ROOT == GRAFTRACE_ENTRY_ROOT &&
		       GT_ENTRY_ONLY == GRAFTRACE_ENTRY_ONLY &&
		       GT_ENTRY_NOTRACE == GRAFTRACE_ENTRY_NOTRACE &&
		       GT_ENTRY_SILENT == GRAFTRACE_ENTRY_SILENT &&
		       GT_ENTRY_TRIGGER == GRAFTRACE_ENTRY_TRIGGER &&
		       GT_ENTRY_NOTHING == GRAFTRACE_ENTRY_NOTHING,
	       "layout.h has the kinds of entries for assembly");
GT_ASSERT_AT(struct gt_thread, profile, GT_THREAD_PROFILE);
GT_ASSERT_AT(struct gt_thread, profile_pages, GT_THREAD_PROFILE_PAGES);
GT_ASSERT_AT(struct gt_thread, self, GT_THREAD_SELF);
GT_ASSERT_AT(struct gt_thread, busy, GT_THREAD_BUSY);
GT_ASSERT_AT(struct gt_thread, slow_stack, GT_THREAD_SLOW_STACK);
GT_ASSERT_AT(struct gt_thread, trap, GRAFTRACE_BLOCK_TRAP);
GT_ASSERT_AT(struct gt_thread, verify, GRAFTRACE_BLOCK_VERIFY);
GT_ASSERT_AT(struct gt_thread, stream, GRAFTRACE_BLOCK_STREAM);
GT_ASSERT_AT(struct gt_thread, generation, GRAFTRACE_BLOCK_GENERATION);
_Static_assert(sizeof(struct gt_thread) == GT_THREAD_BYTES, "layout.h has the block's size");
GT_ASSERT_AT(struct gt_thread, context, GT_THREAD_CONTEXT);
GT_ASSERT_AT(struct gt_context, frames, GT_CONTEXT_FRAMES);
GT_ASSERT_AT(struct gt_context, hides, GT_CONTEXT_HIDES);
_Static_assert(((uint64_t)(GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_EVENT) << 33 |
		GRAFTRACE_EVENT_LONG_RETURN << 16 | 3ull) == GT_LONG_RETURN_WORD,
	       "layout.h has the event's head");
GT_ASSERT_AT(struct gt_thread, tight, GT_THREAD_TIGHT);
GT_ASSERT_AT(struct graftrace_event_line, bytes, GT_LINE_BYTES);
GT_ASSERT_AT(struct graftrace_event_line, head, GT_LINE_HEAD);
GT_ASSERT_AT(struct graftrace_event_line, number, GT_LINE_NUMBER);
GT_ASSERT_AT(struct graftrace_event_line, slow, GT_LINE_SLOW);
_Static_assert(sizeof(struct graftrace_event_line) + GRAFTRACE_LINE_RETURN == GT_LINE_RETURN,
	       "layout.h has what the line's first call returns to");
GT_ASSERT_AT(struct graftrace_arena, has_rules, GT_ARENA_HAS_RULES);
GT_ASSERT_AT(struct graftrace_agent_state, arena, GT_STATE_ARENA);
GT_ASSERT_AT(struct gt_frame, slot, GT_FRAME_SLOT);
GT_ASSERT_AT(struct gt_frame, word, GT_FRAME_WORD);
GT_ASSERT_AT(struct gt_frame, high, GT_FRAME_HIGH);
GT_ASSERT_AT(struct gt_frame, epoch, GT_FRAME_EPOCH);
GT_ASSERT_AT(struct gt_frame, children, GT_FRAME_CHILDREN);
_Static_assert(1 << GT_FRAME_SHIFT == GT_FRAME_BYTES, "frames are counted by a shift");
_Static_assert(sizeof(struct gt_frame) == GT_FRAME_BYTES, "layout.h has the frame's size");
GT_ASSERT_AT(struct graftrace_profile_entry, hits, GT_PROFILE_HITS);
GT_ASSERT_AT(struct graftrace_profile_entry, ticks, GT_PROFILE_TICKS);
GT_ASSERT_AT(struct graftrace_profile_entry, self_ticks, GT_PROFILE_SELF);
GT_ASSERT_AT(struct graftrace_profile_entry, squares, GT_PROFILE_SQUARES);
GT_ASSERT_AT(struct graftrace_profile_entry, self_squares, GT_PROFILE_SELF_SQUARES);
GT_ASSERT_AT(struct graftrace_profile_entry, last, GT_PROFILE_LAST);
GT_ASSERT_AT(struct graftrace_profile_entry, buckets, GT_PROFILE_BUCKETS);
GT_ASSERT_AT(struct graftrace_profile_entry, long_buckets, GT_PROFILE_LONG_BUCKETS);
_Static_assert(sizeof(struct graftrace_profile_entry) == 1 << GT_PROFILE_BYTES_SHIFT,
	       "layout.h has the entry's size");
_Static_assert(GT_PROFILE_LEAST == GRAFTRACE_PROFILE_LEAST &&
		       GT_PROFILE_LONG == GRAFTRACE_PROFILE_LONG &&
		       GT_PROFILE_MOST == GRAFTRACE_PROFILE_MOST,
	       "layout.h has the buckets' bounds");
_Static_assert((1ull << GT_MIRROR_BIT | GT_MIRROR_TURN) == GRAFTRACE_MIRROR,
	       "the host looks where the straight lines write");
_Static_assert(1 << GT_PROFILE_SHIFT == GRAFTRACE_PROFILE_FUNCTIONS,
	       "layout.h has the page's size");
GT_ASSERT_AT(struct graftrace_region, bias, GT_REGION_BIAS);
GT_ASSERT_AT(struct graftrace_region, entry_slow, GT_REGION_ENTRY_SLOW);
GT_ASSERT_AT(struct graftrace_region, exit_slow, GT_REGION_EXIT_SLOW);
GT_ASSERT_AT(struct graftrace_region, hook_slow, GT_REGION_HOOK_SLOW);
GT_ASSERT_AT(struct graftrace_region, state, GT_REGION_STATE);
GT_ASSERT_AT(struct graftrace_region, event_slow, GT_REGION_EVENT_SLOW);
GT_ASSERT_AT(struct graftrace_agent_state, region_count, GT_STATE_REGION_COUNT);
GT_ASSERT_AT(struct graftrace_agent_state, regions, GT_STATE_REGIONS);

/* stream.c: the open sub-buffer of a thread. All with signals masked, from the slow half. */

/* Writes one word, opening sub-buffers as needed. for_return: may use the room that is kept for
 * returns. False: no room (counted by the caller). */
bool gt_stream_emit(struct gt_thread *thread, uint64_t word, bool for_return);
/* Reserves `words` consecutive words (≤ 64) or NULL. */
uint64_t *gt_stream_reserve(struct gt_thread *thread, uint32_t words, bool for_return);
/* The same for a record with a word that is stamped `tsc` (read a moment ago): readers take the
 * high half from the header or the last CLOCK word, so one goes before it where that is another. */
uint64_t *gt_stream_reserve_at(struct gt_thread *thread, uint64_t tsc, uint32_t words,
			       bool for_return);
/* Opens the next sub-buffer, if there is one, where fewer words are left than that. */
void gt_stream_make_room(struct gt_thread *thread, uint32_t words);
/* Reads the arena's settings into the block and lets the straight line do what they say, unless
 * the slow half has to look in at the next call (no sub-buffer of the kind, little room, RESUMED to
 * be said). */
void gt_stream_choose(struct gt_thread *thread);
/* At the end of whatever the slow half did: as gt_stream_choose, where something changed. */
void gt_stream_settle(struct gt_thread *thread);
static inline bool gt_stream_is_graph(const struct gt_thread *thread)
{
	return thread->chosen == GT_MODE_GRAPH || thread->chosen == GT_MODE_THRESHOLD ||
	       thread->chosen == GT_MODE_PROFILE_GRAPH;
}
static inline bool gt_stream_is_function(const struct gt_thread *thread)
{
	return thread->chosen == GT_MODE_FUNCTION || thread->chosen == GT_MODE_STACK;
}
/* Is the open sub-buffer one of the chosen tracer? */
bool gt_stream_fits(const struct gt_thread *thread);
/* An epoch that no frame has (gt_thread.epoch). */
uint32_t gt_epoch_next(void);
/* Opens a sub-buffer for the chosen tracer, closing the one before. False: none to be had. */
bool gt_stream_open(struct gt_thread *thread);
/* Of the open sub-buffer: the address behind the last word that is reserved. */
uint64_t gt_stream_reserved_to(const struct gt_thread *thread);
/* Is anything in the open sub-buffer? */
bool gt_stream_has_words(struct gt_thread *thread);
/* Closes the open sub-buffer, if any. */
void gt_stream_close(struct gt_thread *thread);
/* Closes the last sub-buffer of a writer that has ended and gives its stream to the host. thread: the
 * block that it had. */
void gt_stream_end(struct graftrace_arena *arena, struct graftrace_stream *stream,
		   uint32_t generation, const struct gt_thread *thread);
/* Claims a stream for a new writer; NULL: none free (counted). */
struct graftrace_stream *gt_stream_claim(struct graftrace_arena *arena, uint32_t pid, uint32_t tid);

/* frames.c: contexts and their frames. With signals masked, from the slow half. */

/* The frame that counts as the top for slot compares: in-flight frames are passed over. */
struct gt_frame *gt_frames_settled(const struct gt_thread *thread);
/* The straight line that was pushing the top frames has been left by a jump: they go. */
void gt_frames_drop_in_flight(struct gt_thread *thread);
/* Makes the thread's context the one that `slot` belongs to, and takes off what ended without a
 * return. Records it. entering: a call is about to be pushed at slot; else `slot` is a stack
 * pointer that is about to be (everything below it is dead). */
void gt_frames_resolve(struct gt_thread *thread, uint64_t slot, bool entering);
/* Explicit switch: the stack of this thread goes on at stack pointer `sp`; the present one stays
 * behind with its stack pointer at `left`. [low, high): the new one's bounds as the program has
 * them, or anything that does not contain sp. */
void gt_frames_switch(struct gt_thread *thread, uint64_t left, uint64_t sp, uint64_t low,
		      uint64_t high);
/* Is the innermost call one of set_graph_notrace? */
bool gt_frames_below_notrace(const struct gt_thread *thread);
/* The top is one of the running context's frames again (GT_MARGIN_FRAMES). Whatever looks at frames begins
 * with it. */
void gt_frames_keep_within(struct gt_thread *thread);
/* Where the memory of an array of frames begins, and how much it is. */
static inline void *gt_frames_memory(struct gt_frame *frames)
{
	return frames - GT_MARGIN_FRAMES;
}
static inline uint64_t gt_frames_bytes(uint32_t capacity)
{
	return (2 * GT_MARGIN_FRAMES + (uint64_t)capacity) * sizeof(struct gt_frame);
}
static inline bool gt_frames_are_small(const struct gt_context *context)
{
	return context->frames == context->small + GT_MARGIN_FRAMES;
}
/* Room for one more frame: true, or false at the limit. */
bool gt_frames_room(struct gt_thread *thread);
/* Finds the frame of `slot` for a return, switching context where it is not the running one's;
 * frames above it are taken off. NULL: no context has such a frame. */
struct gt_frame *gt_frames_find(struct gt_thread *thread, uint64_t slot);
void gt_frames_pop(struct gt_thread *thread);
/* Loads a context's frames and windows into the block. */
void gt_frames_load(struct gt_thread *thread, struct gt_context *context);
/* Where the frame array or max_graph_depth (0 = none) ends for the straight line. */
void gt_frames_limits(struct gt_thread *thread, uint32_t max_depth);
/* Frames of a block that fork wiped: the top is where the taken slots end. */
struct gt_frame *gt_frames_recover(const struct gt_context *context);
void gt_context_init(struct gt_context *context, uint32_t number);
/* Removes a context from the table of suspended ones, before its memory is freed. */
void gt_context_forget(struct gt_context *context);
/* Calls open in the running context (the sentinel is not counted). */
static inline uint32_t gt_frames_depth(const struct gt_thread *thread)
{
	return (uint32_t)(gt_thread_top(thread) - thread->context->frames);
}

/* Those of them that readers know, up to the frame `top`. */
uint32_t gt_frames_told(const struct gt_thread *thread, const struct gt_frame *top);

/* trigger.c: what happens at a call of a function with triggers. With signals masked, from the slow
 * half. */

/* Looks the function up: how it is recorded (GT_ENTRY_…; silent: not), and which flags its frame
 * gets. What switches tracing on does so here, before the entry is recorded. */
struct gt_trigger_call {
	uint32_t kind;
	uint32_t flags;
};
struct gt_trigger_call gt_trigger_begin(struct gt_thread *thread, uint32_t function);
/* The entry is recorded: all else that happens at an entry. */
void gt_trigger_entered(struct gt_thread *thread, uint32_t function);
/* tracing_on, for all threads of the process. False: it was so before. */
bool gt_record_switch(struct gt_thread *thread, bool on);
/* Writes the calls that are open as a stack trace, if there are any and anything is recorded. */
void gt_record_stack(struct gt_thread *thread, uint64_t clock);
/* Call it when a call returns whose frame has GT_FRAME_TRIGGER. */
void gt_trigger_returned(struct gt_thread *thread, const struct gt_frame *frame);

/* profile.c: the thread's table of hits and times. With signals masked, from the slow half. */

static inline bool gt_profile_is_on(const struct gt_thread *thread)
{
	return thread->chosen == GT_MODE_PROFILE || thread->chosen == GT_MODE_PROFILE_GRAPH;
}
/* Counts a call. False: there is no room for the function's page (counted as lost). */
bool gt_profile_hit(struct gt_thread *thread, uint32_t function);
/* Adds the time of a call that ends now to its function, and to its caller's children; of frames
 * that were counted at their entry (GT_FRAME_PROFILE), while the profile is on. */
void gt_profile_leave(struct gt_thread *thread, struct gt_frame *frame);
/* Gives back the table's directory of a thread that has ended, or that went through fork. */
void gt_profile_release(struct graftrace_profile_entry ***home);

/* slow.c: the whole of an entry and of a return, in C. The thread is registered and valid. */

/* 1 while only calls below the functions of set_graph_function are recorded: a thread that leaves the
 * last of them is outside. */
uint8_t gt_record_has_roots(void);

/* mark.c: an event of text (raw: bytes). False: there is no room. */
bool gt_record_mark(struct gt_thread *thread, const uint8_t *bytes, uint32_t count, bool raw);

/* Writes the special words that must precede a record other than a call: its context. False: there is no
 * room. */
bool gt_record_announce(struct gt_thread *thread);

/* A program's mirror: where the twin of a return slot lies. */
static inline uint64_t gt_program_mirror(uint64_t slot)
{
	return slot ^ GRAFTRACE_MIRROR;
}

/* A kernel's mirror: where the twin of a stack's word lies. One distance for a whole stack. */
static inline uint64_t gt_kernel_mirror(uint64_t slot)
{
	return (slot ^ 1ull << GT_MIRROR_BIT) + GT_KERNEL_MIRROR_SKEW;
}

/* A place that the straight line reserved and will not use becomes padding: the low bits of the
 * address say how many more words than one it was. 0: there is none. */
void gt_record_fill_hole(uint64_t *hole);
/* What a straight line had in a register when a signal came whose handler has left by a jump, so
 * that it never goes on: a place of the thread's that is a hole, or an event that was begun, becomes
 * padding, whatever else the number is. As above, its low bits do not count. Else the sub-buffer would
 * wait for its word. */
void gt_record_give_up_place(const struct gt_thread *thread, uint64_t place);

/* True: traced, the mirror has the real return address. `hole`: a word that the straight line
 * reserved and did not use, or NULL. */
bool gt_record_entry(struct gt_thread *thread, uint64_t slot, uint32_t function, uint32_t kind,
		     uint64_t *hole);
/* The slot of the call that returns, where a return is seen at `slot`: nearly always the same. */
uint64_t gt_record_slot_of(const struct gt_thread *thread, uint64_t slot, uint32_t function);
/* Records the return from the call at slot; the caller takes the address from the mirror. `hole` as above. */
void gt_record_exit(struct gt_thread *thread, uint64_t slot, uint64_t *hole);
/* The call that has just returned was the last thing that another one, whose return a probe waits for, did:
 * that one returns at the same slot now, by its own stub. *function: its number. */
bool gt_record_is_chained(const struct gt_thread *thread, uint64_t slot, uint32_t *function);

#endif
