/* SPDX-License-Identifier: MIT */
/*
 * The slow half of an entry and of a return: everything that the straight line leaves to C. Runs
 * with signals masked, on a valid thread block, and does the whole job, so that the straight line
 * never has to be resumed in its middle.
 */
#include "core/record/recorder.h"
#include "core/record/arch.h"
#include "core/record/port.h"

/* Index of the sub-buffer that has a word there; -1: none has. */
static int64_t index_of(struct graftrace_arena *arena, uint64_t address)
{
	uint64_t first = (uint64_t)graftrace_arena_sub_buffer(arena, 0);
	uint64_t index = (address - first) / arena->sub_buffer_bytes;
	if (address % 8 != 0 || address < first ||
	    index >= (uint64_t)arena->sub_buffer_count + arena->small_count)
		return -1;
	struct graftrace_sub_buffer *sub = graftrace_arena_sub_buffer(arena, (uint32_t)index);
	return address < (uint64_t)graftrace_sub_buffer_words(sub) ? -1 : (int64_t)index;
}

void gt_record_fill_hole(uint64_t *hole)
{
	uint64_t address = (uint64_t)hole & ~7ull;
	if (address == 0)
		return;
	struct graftrace_arena *arena = gt_port_arena();
	int64_t index = index_of(arena, address);
	if (index < 0)
		return;
	uint64_t first = (uint64_t)graftrace_arena_sub_buffer(arena, 0);
	uint64_t end = first + ((uint64_t)index + 1) * arena->sub_buffer_bytes;
	uint64_t left = (end - address) / 8;
	uint32_t more = (uint64_t)hole & 7;
	uint32_t skip = more < left ? more : (uint32_t)left - 1;
	__atomic_store_n((uint64_t *)address, graftrace_special_word(GRAFTRACE_SPECIAL_PAD, skip),
			 __ATOMIC_RELAXED);
}

/* Of the sub-buffer that the address lies in, if it is one of the thread's own, and the address
 * that of one of its words: where the words end that were reserved. Else 0. */
static uint64_t end_of_reserved(const struct gt_thread *thread, uint64_t address)
{
	struct graftrace_arena *arena = gt_port_arena();
	int64_t index = index_of(arena, address);
	if (index < 0)
		return 0;
	struct graftrace_sub_buffer *sub = graftrace_arena_sub_buffer(arena, (uint32_t)index);
	uint64_t words = (uint64_t)graftrace_sub_buffer_words(sub);
	uint64_t state =
		__atomic_load_n(&graftrace_arena_states(arena)[index].word, __ATOMIC_ACQUIRE);
	uint64_t stream = (uint64_t)(thread->stream - graftrace_arena_streams(arena));
	if (graftrace_word_stream(state) != stream || sub->generation != thread->generation)
		return 0;
	if (sub == thread->sub_buffer)
		return gt_stream_reserved_to(thread);
	if (graftrace_word_state(state) != GRAFTRACE_SUB_BUFFER_FULL &&
	    graftrace_word_state(state) != GRAFTRACE_SUB_BUFFER_READING)
		return 0;
	uint64_t room = graftrace_arena_bytes_of(arena, (uint32_t)index) - sizeof(*sub);
	uint64_t used = __atomic_load_n(&sub->used, __ATOMIC_RELAXED) * 8ull;
	return words + (used < room ? used : room);
}

void gt_record_give_up_place(const struct gt_thread *thread, uint64_t place)
{
	if (thread->stream == NULL)
		return;
	uint64_t address = place & ~7ull, end = end_of_reserved(thread, address);
	if (end - address > 8 && address < end) {
		uint64_t *words = (uint64_t *)address;
		uint64_t head = __atomic_load_n(words, __ATOMIC_RELAXED);
		/* an event that was begun: its head says how long it is */
		if (graftrace_word_is_event(head) &&
		    __atomic_load_n(&words[1], __ATOMIC_RELAXED) == 0)
			__atomic_compare_exchange_n(
				words, &head,
				graftrace_special_word(GRAFTRACE_SPECIAL_PAD,
						       graftrace_word_clock(head) & 0xffff),
				false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	/* Zeros that follow were reserved by handlers that came later, and are left as well. */
	for (; address < end; address += 8) {
		uint64_t hole = 0;
		if (!__atomic_compare_exchange_n((uint64_t *)address, &hole,
						 graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 0),
						 false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return;
	}
}

/* Is there an open sub-buffer of the kind that the chosen tracer writes? Opens one if not. chosen:
 * gt_stream_choose was called since the slow half began. */
static bool right_mode(struct gt_thread *thread, bool chosen)
{
	if (thread->mode != 0 && (thread->sub_buffer != NULL || thread->mode == GT_MODE_PROFILE))
		return true;
	if (!chosen)
		gt_stream_choose(thread);
	if (thread->chosen == GT_MODE_NOP || gt_stream_fits(thread))
		return true;
	if (thread->chosen == GT_MODE_PROFILE) {
		gt_stream_close(thread);
		return true;
	}
	return gt_stream_open(thread);
}

static void lose(struct gt_thread *thread, enum graftrace_lost cause)
{
	__atomic_fetch_add(&thread->stream->lost[cause], 1, __ATOMIC_RELAXED);
}

/* Nothing can be written: entries are counted from here on, and no more. */
static void stop_for_room(struct gt_thread *thread)
{
	struct graftrace_arena *arena = gt_port_arena();
	thread->full = 1;
	/* said last: the host clears the stop byte of streams that say so */
	__atomic_store_n(&thread->stream->stopped_full, 1, __ATOMIC_RELEASE);
	gt_port_ring_doorbell(arena);
}

/* A call is lost. Always false: not traced. */
static bool no_room(struct gt_thread *thread)
{
	lose(thread, GRAFTRACE_LOST_FULL);
	stop_for_room(thread);
	return false;
}

/* The function tracer knows no calls, only who runs. */
static bool say_context(struct gt_thread *thread, bool for_return)
{
	uint32_t number = thread->context->number;
	/* A kernel's interrupt is its thread's, which may have come without a word since. */
	if (thread->pid == 0 && thread->said_tid != thread->tid && number != thread->tid) {
		if (!gt_stream_emit(thread,
				    graftrace_special_word(GRAFTRACE_SPECIAL_CONTEXT, thread->tid),
				    for_return))
			return false;
		thread->said = thread->said_tid = thread->tid;
	}
	if (!gt_stream_emit(thread, graftrace_special_word(GRAFTRACE_SPECIAL_CONTEXT, number),
			    for_return))
		return false;
	thread->said = number;
	thread->said_tid = thread->tid;
	return true;
}

/* CONTEXT of a thread and of its interrupt, PAD, RESUMED, CLOCK, and a LONG_RETURN. */
#define RESUMED_WORDS 9

/* Another context runs than was said, or returns went unrecorded: the next record stands on what
 * is still open here. */
static bool say_resumed(struct gt_thread *thread, bool for_return)
{
	if (!thread->resume)
		return true;
	/* Of a kernel's thread readers tell by the record behind these words when it came: one
	 * sub-buffer has them all. */
	if (thread->pid == 0)
		gt_stream_make_room(thread, RESUMED_WORDS);
	/* Said again where another writer ran it meanwhile: readers fetch its calls from there. */
	if (thread->said != thread->context->number || thread->resume & GT_RESUME_DEPTH) {
		if (!say_context(thread, for_return))
			return false;
	}
	/* only what stands right behind CONTEXT (an interrupt ends with one) tells of no loss */
	if (thread->resume & GT_RESUME_MISSED &&
	    !gt_stream_emit(thread, graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 0), for_return))
		return false;
	if (thread->resume & (GT_RESUME_MISSED | GT_RESUME_DEPTH) &&
	    !gt_stream_emit(thread,
			    graftrace_special_word(GRAFTRACE_SPECIAL_RESUMED,
						   gt_frames_told(thread, gt_thread_top(thread))),
			    for_return))
		return false;
	thread->resume = 0;
	return true;
}

/* The word's place is reserved before its clock is read; a CLOCK word goes before where needed. */
static bool write_call(struct gt_thread *thread, uint32_t function, bool is_return, uint64_t *clock)
{
	for (int attempt = 0; attempt < 3; attempt++) {
		uint64_t *place = gt_stream_reserve_at(thread, gt_arch_clock(), 1, is_return);
		if (place == NULL)
			return false;
		*clock = gt_arch_clock();
		if (*clock >> 32 == thread->high) {
			__atomic_store_n(place,
					 graftrace_word(function, is_return, (uint32_t)*clock),
					 __ATOMIC_RELAXED);
			return true;
		}
		__atomic_store_n(place, graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 0),
				 __ATOMIC_RELAXED);
	}
	return false;
}

static bool write_long_return(struct gt_thread *thread, const struct gt_frame *frame,
			      uint64_t clock)
{
	uint64_t *place = gt_stream_reserve_at(thread, clock, 4, true);
	if (place == NULL)
		return false;
	uint32_t type = gt_frame_flags(frame) & GT_FRAME_THRESHOLD ? GRAFTRACE_EVENT_LONG_CALL
								   : GRAFTRACE_EVENT_LONG_RETURN;
	uint64_t head = graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, type << 16 | 3);
	__atomic_store_n(&place[0], head, __ATOMIC_RELAXED);
	__atomic_store_n(&place[2], gt_frame_start(frame, clock), __ATOMIC_RELAXED);
	__atomic_store_n(&place[3], (uint64_t)gt_frames_told(thread, frame) - 1, __ATOMIC_RELAXED);
	__atomic_store_n(&place[1], graftrace_word(gt_frame_function(frame), true, (uint32_t)clock),
			 __ATOMIC_RELAXED);
	return true;
}

static bool write_entry_only(struct gt_thread *thread, uint32_t function)
{
	uint64_t clock = gt_arch_clock();
	uint64_t *place = gt_stream_reserve_at(thread, clock, 2, false);
	if (place == NULL)
		return false;
	uint64_t head = graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
					       GRAFTRACE_EVENT_ENTRY_ONLY << 16 | 1);
	__atomic_store_n(&place[0], head, __ATOMIC_RELAXED);
	__atomic_store_n(&place[1], graftrace_word(function, false, (uint32_t)clock),
			 __ATOMIC_RELAXED);
	return true;
}

static bool write_function(struct gt_thread *thread, uint32_t function, uint64_t parent)
{
	uint64_t clock = gt_arch_clock();
	uint64_t *place = gt_stream_reserve_at(thread, clock, 2, false);
	if (place == NULL)
		return false;
	__atomic_store_n(&place[1], parent, __ATOMIC_RELAXED);
	__atomic_store_n(&place[0], graftrace_word(function, false, (uint32_t)clock),
			 __ATOMIC_RELAXED);
	return true;
}

/* A return that cannot be written: its call is recorded all the same, but for one that its return
 * alone would have told of. */
static void lose_long(struct gt_thread *thread, const struct gt_frame *frame, uint64_t clock)
{
	if (gt_frame_flags(frame) & GT_FRAME_THRESHOLD &&
	    clock - gt_frame_start(frame, clock) > thread->threshold)
		lose(thread, GRAFTRACE_LOST_FULL);
}

/* Records that the call of `frame` (the top) returned at this moment. */
static void record_return(struct gt_thread *thread, struct gt_frame *frame)
{
	gt_profile_leave(thread, frame);
	if (gt_frame_flags(frame) & GT_FRAME_NOTRACE)
		thread->mode = 0;
	/* what the profiler counts beneath it is its caller's */
	if (gt_frame_is_hidden(frame))
		(frame - 1)->children += frame->children;
	if (gt_frame_flags(frame) & GT_FRAME_NOTRACE || gt_frame_is_hidden(frame))
		return;
	bool wanted = !thread->host && gt_stream_is_graph(thread);
	/* a header may have told of a silent one as open */
	if (!wanted || thread->sub_buffer == NULL || gt_frame_flags(frame) & GT_FRAME_SILENT) {
		thread->resume |= GT_RESUME_MISSED;
		if (wanted)
			lose_long(thread, frame, gt_arch_clock());
		return;
	}
	bool written = say_resumed(thread, true);
	uint64_t clock = gt_arch_clock();
	if (!written)
		;
	else if (gt_frame_flags(frame) & GT_FRAME_THRESHOLD)
		written = clock - gt_frame_start(frame, clock) <= thread->threshold ||
			  write_long_return(thread, frame, clock);
	else if ((frame->epoch & ~(GT_EPOCH_STEP - 1u)) != thread->epoch)
		written = write_long_return(thread, frame, clock);
	else
		written = write_call(thread, gt_frame_function(frame), true, &clock);
	if (written)
		return;
	thread->resume |= GT_RESUME_MISSED;
	lose_long(thread, frame, clock);
	stop_for_room(thread);
}

static struct gt_frame *push(struct gt_thread *thread, uint64_t slot, uint32_t function,
			     uint64_t clock, uint32_t flags)
{
	struct gt_frame *frame = gt_thread_top(thread) + 1;
	gt_thread_set_top(thread, frame);
	frame->word = graftrace_word(function, false, (uint32_t)clock);
	frame->high = (uint32_t)(clock >> 32);
	frame->epoch = thread->epoch | flags;
	frame->children = 0;
	frame->slot = slot;
	return frame;
}

/* A call whose return nobody will see. False: it is lost, and counted. */
static bool enter_only(struct gt_thread *thread, uint32_t function)
{
	if (gt_profile_is_on(thread))
		gt_profile_hit(thread, function);
	if (thread->chosen == GT_MODE_PROFILE ||
	    (say_resumed(thread, false) && write_entry_only(thread, function)))
		return true;
	return no_room(thread);
}

static uint64_t *mirror_of(uint64_t slot)
{
#ifdef GT_KERNEL
	return (uint64_t *)gt_kernel_mirror(slot);
#else
	return (uint64_t *)gt_program_mirror(slot);
#endif
}

/* So many calls may follow one another by jumps, each with a return that is waited for. */
#define CHAINED_MAX 64

/* Room for a frame at slot: whoever jumps in turns for ever does not take all of them. */
static bool has_room(struct gt_thread *thread, uint64_t slot)
{
	const struct gt_frame *top = gt_thread_top(thread);

	if (gt_frames_depth(thread) > CHAINED_MAX && top->slot == slot &&
	    (top - CHAINED_MAX)->slot == slot)
		return false;
	return gt_frames_room(thread);
}

/*
 * Makes the stack what it is for a call at slot. stub: the return address there is a stub's: a tail
 * call, whose old frame and mirror become the new one's. Returns the flags that it hands on. An old frame
 * whose return is waited for stays beneath the new one, at the same slot: when that returns, so does it
 * (gt_record_is_chained).
 */
static uint32_t make_way(struct gt_thread *thread, uint64_t slot, bool stub)
{
	struct gt_frame *old = stub ? gt_frames_find(thread, slot) : NULL;
	if (old == NULL) {
		gt_frames_resolve(thread, slot, true);
		return 0;
	}
	uint32_t flags = gt_frame_flags(old);
	if (flags & GT_FRAME_PROBED)
		return GT_FRAME_PROBED;
	record_return(thread, old);
	if (flags & GT_FRAME_TRIGGER)
		gt_trigger_returned(thread, old);
	old->slot = GT_FRAME_UNSET;
	gt_thread_set_top(thread, old - 1);
	return flags & (GT_FRAME_ROOT | GT_FRAME_BOTTOM);
}

static bool has_mirror(const struct gt_thread *thread, uint64_t slot)
{
	return slot >= thread->context->win_low && slot < thread->context->win_high;
}

/* Flags of a frame that is about to be pushed. */
static uint32_t bottom_flag(const struct gt_thread *thread)
{
	return !thread->context->known && gt_thread_top(thread) == thread->context->frames
		       ? GT_FRAME_BOTTOM
		       : 0;
}

/*
 * Below a call of set_graph_notrace nothing is recorded; whether that one still runs is told by the
 * slot: it may have ended by a longjmp, or another stack have taken over.
 */
static bool is_below_notrace(struct gt_thread *thread, uint64_t slot)
{
	if (!gt_frames_below_notrace(thread))
		return false;
	if (!gt_port_is_stub_return(*(uint64_t *)slot))
		gt_frames_resolve(thread, slot, true);
	else if (gt_frames_settled(thread)->slot != slot) /* else its own tail call */
		gt_frames_find(thread, slot);
	return gt_frames_below_notrace(thread);
}

/* A call of set_graph_notrace: a frame of its own, of which nothing is written. */
static bool enter_notrace(struct gt_thread *thread, uint64_t slot, uint32_t function,
			  uint32_t flags)
{
	bool stub = gt_port_is_stub_return(*(uint64_t *)slot);

	flags |= make_way(thread, slot, stub) | GT_FRAME_NOTRACE;
	if (gt_frames_below_notrace(thread) || (thread->held_top >= thread->depth_limit && !stub) ||
	    !has_room(thread, slot) || !has_mirror(thread, slot))
		return false;
	flags |= bottom_flag(thread);
	if (gt_profile_is_on(thread) && gt_profile_hit(thread, function))
		flags |= GT_FRAME_PROFILE;
	push(thread, slot, function, gt_arch_clock(), flags);
	if (!stub)
		*mirror_of(slot) = *(uint64_t *)slot;
	thread->mode = 0;
	return true;
}

/* The function tracer with stack traces: frames are kept for those alone. */
static bool enter_stack(struct gt_thread *thread, uint64_t slot, uint32_t function, uint32_t kind,
			uint32_t flags)
{
	bool stub = gt_port_is_stub_return(*(uint64_t *)slot);
	uint64_t parent = stub ? *mirror_of(slot) : *(uint64_t *)slot;
	bool written = true;

	if (kind != GT_ENTRY_ONLY)
		flags |= make_way(thread, slot, stub) | GT_FRAME_SILENT;
	else if (!stub)
		gt_frames_resolve(thread, slot, true);
	if (kind != GT_ENTRY_SILENT)
		written = write_function(thread, function, parent);
	bool pushed = kind != GT_ENTRY_ONLY && has_room(thread, slot) && has_mirror(thread, slot);
	if (pushed) {
		push(thread, slot, function, gt_arch_clock(), flags | bottom_flag(thread));
		if (!stub)
			*mirror_of(slot) = *(uint64_t *)slot;
	}
	if (!written)
		no_room(thread);
	else if (kind != GT_ENTRY_SILENT)
		gt_record_stack(thread, gt_arch_clock());
	return pushed;
}

static bool enter_graph(struct gt_thread *thread, uint64_t slot, uint32_t function, uint32_t flags)
{
	bool stub = gt_port_is_stub_return(*(uint64_t *)slot);

	flags |= make_way(thread, slot, stub);
	if (gt_frames_below_notrace(thread)) /* of the stack that was switched to */
		return false;
	if (thread->held_top >= thread->depth_limit) {
		if (!stub)
			return false;
		/* the mirror is in use: it has to be a traced call */
	}
	if (!has_room(thread, slot)) {
		lose(thread, GRAFTRACE_LOST_DEPTH);
		return false;
	}
	if (!has_mirror(thread, slot)) {
		if (enter_only(thread, function))
			lose(thread, GRAFTRACE_LOST_WINDOW);
		return false;
	}
	uint64_t clock;
	if (thread->chosen == GT_MODE_PROFILE) {
		clock = gt_arch_clock();
	} else if (!say_resumed(thread, false)) {
		return no_room(thread);
	} else if (thread->chosen == GT_MODE_THRESHOLD) {
		clock = gt_arch_clock();
		flags |= GT_FRAME_THRESHOLD;
	} else if (!write_call(thread, function, false, &clock)) {
		return no_room(thread);
	}
	flags |= bottom_flag(thread);
	if (gt_profile_is_on(thread) && gt_profile_hit(thread, function))
		flags |= GT_FRAME_PROFILE;
	push(thread, slot, function, clock, flags);
	if (!stub)
		*mirror_of(slot) = *(uint64_t *)slot;
	return true;
}

#ifndef GT_KERNEL
/* A call that only a return probe waits for: its frame is there for that alone. */
static bool enter_hidden(struct gt_thread *thread, uint64_t slot, uint32_t function)
{
	bool stub = gt_port_is_stub_return(*(uint64_t *)slot);
	uint32_t flags = make_way(thread, slot, stub) | GT_FRAME_HIDDEN | GT_FRAME_PROBED;

	if (!has_room(thread, slot) || !has_mirror(thread, slot)) {
		lose(thread,
		     has_mirror(thread, slot) ? GRAFTRACE_LOST_DEPTH : GRAFTRACE_LOST_WINDOW);
		return false;
	}
	if (gt_frames_below_notrace(thread))
		flags |= GT_FRAME_NOTRACE;
	thread->context->hides = 1;
	push(thread, slot, function, gt_arch_clock(), flags | bottom_flag(thread));
	if (!stub)
		*mirror_of(slot) = *(uint64_t *)slot;
	return true;
}
#endif

static bool record_entry(struct gt_thread *thread, uint64_t slot, uint32_t function, uint32_t kind,
			 uint32_t flags)
{
	if (thread->host)
		return false;
	bool chosen = thread->mode == 0;
	if (chosen)
		gt_stream_choose(thread);
	if (gt_stream_is_graph(thread)) {
		if (is_below_notrace(thread, slot))
			return false;
		if (kind == GT_ENTRY_NOTRACE && thread->outside <= GT_OUTSIDE_GRAPH)
			return enter_notrace(thread, slot, function, flags);
	}
	bool enters = kind == GT_ENTRY_ROOT && thread->outside == GT_OUTSIDE_GRAPH;
	if (thread->outside && !enters)
		return false;
	if (!right_mode(thread, chosen))
		return no_room(thread);

	if (thread->chosen == GT_MODE_NOP)
		return false;
	if (thread->chosen == GT_MODE_STACK) {
		if (thread->said != thread->context->number && !say_context(thread, false))
			return no_room(thread);
		thread->resume &= ~(uint64_t)GT_RESUME_CONTEXT;
		return enter_stack(thread, slot, function, kind, flags);
	}
	if (kind == GT_ENTRY_SILENT)
		return false;
	if (thread->chosen == GT_MODE_FUNCTION) {
		if (thread->said != thread->context->number && !say_context(thread, false))
			return no_room(thread);
		thread->resume &= ~(uint64_t)GT_RESUME_CONTEXT;
		if (write_function(thread, function, *(uint64_t *)slot))
			return false;
		return no_room(thread);
	}
	if (kind == GT_ENTRY_ONLY) {
		if (thread->verify && !gt_port_is_stub_return(*(uint64_t *)slot))
			gt_frames_resolve(thread, slot, true);
		enter_only(thread, function);
		return false;
	}
	if (enters)
		thread->outside &= ~GT_OUTSIDE_GRAPH;
	if (enter_graph(thread, slot, function, flags | (enters ? GT_FRAME_ROOT : 0)))
		return true;
	if (enters)
		thread->outside |= GT_OUTSIDE_GRAPH;
	return false;
}

uint8_t gt_record_has_roots(void)
{
	const struct graftrace_arena *arena = gt_port_arena();

	return arena != NULL && __atomic_load_n(&arena->graph_only, __ATOMIC_RELAXED) != 0;
}

bool gt_record_announce(struct gt_thread *thread)
{
	if (!thread->is_pairs)
		return say_resumed(thread, false);
	return thread->said == thread->context->number || say_context(thread, false);
}

/*
 * A traced function may go on, by a jump through a pointer or to another object, in one that takes
 * its arguments off the stack (`ret $16`). The stack pointer then lies so many bytes above the slot
 * of the call that returns: there is no frame for that place, but the innermost call is one of this
 * function, a little below. A call on another stack cannot be meant: the slow half needs more room
 * below each slot than the bytes that are allowed for.
 */
#define TAKEN_BYTES_MAX 512u

uint64_t gt_record_slot_of(const struct gt_thread *thread, uint64_t slot, uint32_t function)
{
	const struct gt_frame *const bottom = thread->context->frames;
	const struct gt_frame *const top = gt_frames_settled(thread);

	if (top == bottom || top->slot >= slot || slot - top->slot > TAKEN_BYTES_MAX ||
	    gt_frame_function(top) != function)
		return slot;
	for (const struct gt_frame *frame = top; frame != bottom; frame--) {
		if (frame->slot == slot)
			return slot;
		if (frame->slot != GT_FRAME_UNSET && frame->slot > slot)
			break;
	}
	return top->slot;
}

void gt_record_exit(struct gt_thread *thread, uint64_t slot, uint64_t *hole)
{
	gt_frames_keep_within(thread);
	gt_record_fill_hole(hole);
	if (thread->mode == 0 && !thread->host)
		right_mode(thread, false);
	struct gt_frame *frame = gt_frames_find(thread, slot);
	if (frame != NULL) {
		uint32_t flags = gt_frame_flags(frame);
		record_return(thread, frame);
		if (flags & GT_FRAME_TRIGGER)
			gt_trigger_returned(thread, frame);
		gt_frames_pop(thread);
		if (flags & GT_FRAME_ROOT)
			thread->outside |= gt_record_has_roots();
	}
	gt_stream_settle(thread);
}

bool gt_record_is_chained(const struct gt_thread *thread, uint64_t slot, uint32_t *function)
{
	const struct gt_frame *top = gt_thread_top(thread);

	*function = gt_frame_function(top);
	return top->slot == slot && top != thread->context->frames;
}

/*
 * The function that is entered needs its real return address: it asks who called it, or returns
 * there twice. If it was reached by a jump at the end of a traced function (through a pointer, or
 * from another object, or the caller would be known to do so), a stub's return point is there
 * instead. That call ends here, and the address is put back.
 */
static void end_tail_caller(struct gt_thread *thread, uint64_t slot)
{
	uint64_t *const place = (uint64_t *)slot;
	uint32_t function;

	if (!gt_port_is_stub_return(*place))
		return;
	const uint64_t address = *mirror_of(slot);
	do
		gt_record_exit(thread, slot, NULL);
	while (gt_record_is_chained(thread, slot, &function));
	*place = address;
}

bool gt_record_entry(struct gt_thread *thread, uint64_t slot, uint32_t function, uint32_t kind,
		     uint64_t *hole)
{
	const uint32_t flags = kind & GT_ENTRY_PROBED ? GT_FRAME_PROBED : 0;

	gt_frames_keep_within(thread);
	gt_record_fill_hole(hole);
	kind &= ~(uint32_t)GT_ENTRY_PROBED;
	if (kind == GT_ENTRY_ONLY || kind == GT_ENTRY_NOTHING)
		end_tail_caller(thread, slot);
	bool traced;
	if (kind == GT_ENTRY_NOTHING ||
	    thread->outside & (GT_OUTSIDE_PAUSED | GT_OUTSIDE_UNLISTED)) {
		/* nothing happens at calls that nobody is to see */
		traced = false;
	} else if (kind != GT_ENTRY_TRIGGER) {
		traced = record_entry(thread, slot, function, kind, flags);
	} else {
		struct gt_trigger_call call = gt_trigger_begin(thread, function);
		if (call.kind == GT_ENTRY_ONLY || call.kind == GT_ENTRY_NOTHING)
			end_tail_caller(thread, slot);
		traced = call.kind != GT_ENTRY_NOTHING &&
			 record_entry(thread, slot, function, call.kind, call.flags | flags);
		gt_trigger_entered(thread, function);
	}
#ifndef GT_KERNEL
	if (flags != 0 && !traced)
		traced = enter_hidden(thread, slot, function);
#endif
	gt_stream_settle(thread);
	return traced;
}
