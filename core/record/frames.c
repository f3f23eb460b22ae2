/* SPDX-License-Identifier: MIT */
/*
 * Contexts and their frames. A context is what owns a call stack: a thread's own stack, a
 * coroutine's, a signal stack. The mirror alone decides where a return goes; what is kept here
 * tells which call it was and how deep, so a wrong guess costs a wrong line in the trace and never
 * the program.
 *
 * How a stack pointer finds its context:
 *  1. the bounds of threads' own stacks are known: inside them it is that context, and whatever
 *     lies below the stack pointer has ended without a return (longjmp, an exception);
 *  2. elsewhere an explicit switch (swapcontext) left the stack pointer by which it is found again;
 *  3. else the suspended context whose innermost call lies nearest above, less than 64 KiB away,
 *     and whose slot still holds a stub's return point;
 *  4. else it is a new context. What was kept of a coroutine that had this stack before is given
 *     back then (drop_overlaid).
 */
#include "core/record/recorder.h"
#include "core/record/arch.h"
#include "core/record/port.h"

#define NEAR_BYTES (64 * 1024ull)
/* A call farther than this below all others of a stack of unknown bounds is taken for another
 * stack's: neighbouring coroutine stacks are mostly larger, frames mostly smaller. */
#define JUMP_BYTES (8 * 1024ull)
#define GRANULE	   (64 * 1024ull)
/* What a window grows by at most, and how far from it a call may be whose mirror is joined to it. The
 * rest of a stack of the usual 8 MiB is: what nobody touches of it costs nothing. */
#define GROWN_BYTES  (64 * GRANULE)
#define JOINED_BYTES (256 * GRANULE)
#define MANY_FRAMES  (1024 * 1024u)
/* How far apart coroutines' windows may be with a mirror between them. */
#define BETWEEN_BYTES (4096 * GRANULE)
/* Of drop_overlaid(): how far below a stack's first call those of an earlier one may lie, and where that
 * may have been left. */
#define OVERLAID_BYTES 1024
#define OVERLAID_DEPTH (4 * GRANULE)
/* Calls whose entry no record tells of. */
#define UNRECORDED    (GT_FRAME_THRESHOLD | GT_FRAME_NOTRACE | GT_FRAME_SILENT)
#define BUCKETS_SHIFT 8
#define BUCKETS	      (1 << BUCKETS_SHIFT)

/* A kernel says which context runs (kernel.c), and a context's bounds and mirror are there from the start:
 * a slot is on the running one's stack, and there is no other to look for. */
#ifdef GT_KERNEL
#define IS_KERNEL true
#else
#define IS_KERNEL false
#endif

/* Suspended contexts by where their stacks stand; guarded by a lock a bucket (below). No walk takes
 * more steps than the bucket has members: a chain that a fork tore may have one member less, never
 * one more (who is put in is counted before, who is taken out after). */
static struct gt_context *suspended[BUCKETS];
static uint32_t members[BUCKETS];
/* Contexts for coroutines, for the next one. Guarded by the port's lock. */
static struct gt_context *unused;

/*
 * Threads whose coroutines switch all the time want different buckets, mostly. So each part of the
 * table has a lock, held for a look or a change of one bucket (two, for a search) and nothing else:
 * no memory is taken and nothing is written meanwhile. Who has taken a context out of the table
 * owns it, until he puts it in again; who runs it owns it, too, and it is in no bucket.
 */
static void lock_bucket(uint32_t bucket)
{
	gt_port_lock_part(bucket % GT_PORT_PARTS);
}

static void unlock_bucket(uint32_t bucket)
{
	gt_port_unlock_part(bucket % GT_PORT_PARTS);
}

/* Of two, always in the same order. */
static void lock_buckets(uint32_t one, uint32_t other)
{
	uint32_t first = one % GT_PORT_PARTS, second = other % GT_PORT_PARTS;
	gt_port_lock_part(first < second ? first : second);
	if (first != second)
		gt_port_lock_part(first < second ? second : first);
}

static void unlock_buckets(uint32_t one, uint32_t other)
{
	if (one % GT_PORT_PARTS != other % GT_PORT_PARTS)
		unlock_bucket(other);
	unlock_bucket(one);
}

void gt_context_init(struct gt_context *context, uint32_t number)
{
	const uint32_t all = sizeof(context->small) / sizeof(context->small[0]);

	context->frames = context->small + GT_MARGIN_FRAMES;
	context->capacity = all - 2 * GT_MARGIN_FRAMES;
	context->top = context->frames;
	context->number = number;
	context->writer = 0;
	context->low = context->high = 0;
	context->known = 0;
	context->grows = 0;
	context->bounded = 0;
#ifdef GT_PROGRAM
	context->hides = 0;
#endif
	context->running = 0;
	context->saved_sp = 0;
	context->win_low = context->win_high = 0;
	context->previous = NULL;
	context->next = NULL;
	context->listed = 0;
	context->outgrown = NULL;
	for (uint32_t i = 0; i < all; i++)
		context->small[i].slot = GT_FRAME_UNSET;
	context->frames[0].slot = 0;
}

static bool is_empty(const struct gt_context *context)
{
	return context->top == context->frames;
}

/* Stacks lie at distances of powers of two. */
static uint32_t bucket_of(uint64_t address)
{
	return (address >> 16) * 0x9e3779b97f4a7c15ull >> (64 - BUCKETS_SHIFT);
}

/* Never written, popped, or being pushed. */
static bool is_unset(const struct gt_frame *frame)
{
	return frame->slot == GT_SLOT_NONE || frame->slot == 0;
}

/* By which address a suspended context is found: near the slot of the innermost call that has one, or
 * near the sentinel's. It may change while the context is listed: a push that a signal interrupted
 * stores its slot whenever it goes on. So the bucket is noted. */
static uint64_t key_of(const struct gt_context *context)
{
	const struct gt_frame *frame = context->top;

	if (context->saved_sp != 0)
		return context->saved_sp;
	while (frame != context->frames && is_unset(frame))
		frame--;
	return frame == context->frames && !is_unset(frame) ? frame->slot - 8 : frame->slot;
}

static void put_in(struct gt_context *context)
{
	uint32_t bucket = bucket_of(key_of(context));
	lock_bucket(bucket);
	context->running = 0;
	/* first: whoever finds it in the chain, also in a fork's child, finds its bucket noted */
	__atomic_store_n(&context->listed, bucket + 1, __ATOMIC_RELEASE);
	context->next = suspended[bucket];
	__atomic_store_n(&members[bucket], members[bucket] + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&suspended[bucket], context, __ATOMIC_RELEASE);
	unlock_bucket(bucket);
}

static void take_out_locked(struct gt_context *context, uint32_t bucket)
{
	struct gt_context **at = &suspended[bucket];
	for (uint32_t left = members[bucket]; left > 0 && *at != NULL; left--, at = &(*at)->next) {
		if (*at == context) {
			__atomic_store_n(at, context->next, __ATOMIC_RELEASE);
			__atomic_store_n(&members[bucket], members[bucket] - 1, __ATOMIC_RELEASE);
			break;
		}
	}
	context->next = NULL;
	__atomic_store_n(&context->listed, 0, __ATOMIC_RELEASE);
}

/* Whoever takes a context up takes it out of the table first, wherever it was found. False: it was
 * in none, or another thread has taken it up. */
static bool take_out(struct gt_context *context)
{
	for (int attempt = 0; attempt < 1000; attempt++) {
		uint32_t listed = __atomic_load_n(&context->listed, __ATOMIC_ACQUIRE);
		if (listed == 0)
			return false;
		lock_bucket(listed - 1);
		bool there = context->listed == listed;
		if (there)
			take_out_locked(context, listed - 1);
		unlock_bucket(listed - 1);
		if (there)
			return true;
	}
	return false;
}

static void give_back(struct gt_context *context)
{
	gt_port_lock();
	context->running = 0;
	context->next = unused;
	unused = context;
	gt_port_unlock();
}

static void suspend(struct gt_context *context)
{
	take_out(context);
	if (!context->known && is_empty(context)) {
		give_back(context);
		return;
	}
	if (is_empty(context) && context->saved_sp == 0)
		context->running = 0; /* a thread's own stack: found by its bounds */
	else
		put_in(context);
}

/* Its stack may be gone: the port looks. */
static bool is_live(const struct gt_frame *frame)
{
	uint64_t address;
	return !is_unset(frame) && gt_port_peek(frame->slot, &address) &&
	       gt_port_is_stub_return(address);
}

/* Does sp lie among the calls of a stack of unknown bounds that stands at another place, so that
 * going there ends those below? Its outermost call tells whether the stack is still that one: a
 * coroutine that starts on the same memory starts above it. */
static bool is_among_calls(const struct gt_context *context, uint64_t sp)
{
	const struct gt_frame *outermost = context->frames + 1;
	return !context->known && sp + 512 >= context->low && sp < outermost->slot &&
	       is_live(outermost);
}

/* Left at sp by an explicit switch: what coroutines do all the time. */
static struct gt_context *find_left_at(uint64_t sp)
{
	uint32_t bucket = bucket_of(sp);
	lock_bucket(bucket);
	struct gt_context *context = suspended[bucket];
	uint32_t left = members[bucket];
	while (context != NULL && left > 0 && context->saved_sp != sp) {
		context = context->next;
		left--;
	}
	if (left == 0)
		context = NULL;
	if (context != NULL)
		take_out_locked(context, bucket);
	unlock_bucket(bucket);
	return context;
}

/* The suspended context that a stack pointer belongs to, taken out of the table, or NULL. */
static struct gt_context *find_suspended(uint64_t sp, bool exact_return, bool explicitly)
{
	const uint32_t buckets[2] = { bucket_of(sp), bucket_of(sp + NEAR_BYTES) };
	struct gt_context *best = find_left_at(sp);
	uint64_t best_distance = NEAR_BYTES;
	if (best != NULL)
		return best;
	lock_buckets(buckets[0], buckets[1]);
	for (int step = 0; step < 2; step++) {
		struct gt_context *context = suspended[buckets[step]];
		uint32_t left = members[buckets[step]];
		for (; context != NULL && left > 0; context = context->next, left--) {
			if (context->saved_sp == sp) {
				best = context;
				goto found;
			}
			if (is_empty(context))
				continue;
			/* An explicit switch to somewhere else is no switch to it, but to another
			 * place of its stack. */
			if (explicitly && context->saved_sp != 0) {
				if (best == NULL && is_among_calls(context, sp))
					best = context;
				continue;
			}
			uint64_t slot = context->top->slot;
			if (exact_return ? slot != sp : slot < sp || slot - sp >= best_distance)
				continue;
			if (!exact_return && !context->known && sp + JUMP_BYTES < context->low)
				continue;
			/* a return has already popped the stub's address off its slot */
			if (!exact_return && !is_live(context->top))
				continue;
			best = context;
			best_distance = slot - sp;
		}
	}
found:
	if (best != NULL)
		take_out_locked(best, best->listed - 1);
	unlock_buckets(buckets[0], buckets[1]);
	return best;
}

/*
 * Most coroutines never return from their first function: they leave their stack by a last switch, and
 * it becomes the next one's. What was kept of them would be kept for ever. So where a call begins at sp
 * in a context of its own, a suspended one all of whose calls have their slots at sp, or a little below,
 * is given back: that memory is somebody else's now, and whatever was interrupted there, be it in the
 * midst of our straight line, never goes on. Nothing less tells it. A slot that has no stub's return point
 * may be that of a call on its way in or out. Calls farther below may be another stack's: switches that
 * nobody sees lead from one to another that lies near, in one context. No two stacks lie so near each
 * other as OVERLAID_BYTES: this very call's slow half needs more. Nor would a signal's frame have room
 * above the place where an explicit switch left it: no handler has interrupted it.
 */
static bool is_overlaid(const struct gt_context *context, uint64_t sp)
{
	return !context->known && !is_empty(context) && !is_unset(context->frames + 1) &&
	       !is_unset(context->top) && sp - context->top->slot < OVERLAID_BYTES &&
	       sp - context->frames[1].slot < OVERLAID_BYTES &&
	       (context->saved_sp == 0 || sp + 8 - context->saved_sp < OVERLAID_BYTES);
}

static void drop_overlaid(uint32_t bucket, uint64_t sp)
{
	struct gt_context *dropped = NULL;
	lock_bucket(bucket);
	struct gt_context *context = suspended[bucket];
	for (uint32_t left = members[bucket]; context != NULL && left > 0; left--) {
		struct gt_context *next = context->next;
		if (is_overlaid(context, sp)) {
			take_out_locked(context, bucket);
			context->next = dropped;
			dropped = context;
		}
		context = next;
	}
	unlock_bucket(bucket);
	while (dropped != NULL) {
		context = dropped;
		dropped = context->next;
		for (; !is_empty(context); context->top--)
			context->top->slot = GT_FRAME_UNSET;
		give_back(context);
	}
}

/* For a stack on which a call is about to begin at sp. */
static struct gt_context *new_context(uint64_t sp)
{
	for (uint64_t below = 0; below < OVERLAID_DEPTH && below <= sp; below += GRANULE)
		drop_overlaid(bucket_of(sp - below), sp);
	gt_port_lock();
	struct gt_context *context = unused;
	uint32_t number = gt_port_context_number();
	if (context != NULL)
		unused = context->next;
	gt_port_unlock();
	if (context == NULL) {
		context = gt_port_allocate(sizeof(*context));
		if (context == NULL)
			return NULL;
		gt_context_init(context, number);
		return context;
	}
	/* what it has grown to stays with it: no frame there is taken */
	struct gt_frame *frames = context->frames, *outgrown = context->outgrown;
	uint32_t capacity = context->capacity;
	bool small = gt_frames_are_small(context);
	gt_context_init(context, number);
	if (!small) {
		context->frames = context->top = frames;
		context->capacity = capacity;
		context->outgrown = outgrown;
		frames[0].slot = 0;
	}
	return context;
}

/*
 * The lowest slot of the straight line: where the mirror ends, and on a stack of unknown bounds
 * also where a call lies so far below all others that it may be another stack's. Everything from
 * there up to the sentinel has a mirror, since the straight line asks for no more than the top's
 * slot. Where the window does not reach so far up (it was replaced), there is no straight line: the
 * slow half looks at each call, until the window is one further up again. The sentinel stays where it
 * is. Frames may stand there, or a call that a handler interrupted before it pushed its own.
 */
static void set_floor(struct gt_thread *thread)
{
	const struct gt_context *context = thread->context;
	thread->floor = context->win_low;
	if (!context->known && context->low > JUMP_BYTES &&
	    thread->floor < context->low - JUMP_BYTES)
		thread->floor = context->low - JUMP_BYTES;
	if (context->bounded && thread->floor < context->low)
		thread->floor = context->low;
	if (context->win_low == context->win_high || context->frames[0].slot > context->win_high)
		thread->floor = GT_SLOT_NONE;
}

void gt_frames_limits(struct gt_thread *thread, uint32_t max_depth)
{
	struct gt_context *context = thread->context;
	thread->max_depth = max_depth;
	thread->limit = gt_thread_hold(thread, context->frames + context->capacity - 1);
	thread->depth_limit = GT_SLOT_NONE;
	if (max_depth != 0) {
		thread->depth_limit = gt_thread_hold(thread, context->frames + max_depth);
		if (max_depth < context->capacity - 1)
			thread->limit = thread->depth_limit;
	}
	if (thread->verify)
		thread->limit = 0; /* the slow half looks first */
}

uint32_t gt_frames_told(const struct gt_thread *thread, const struct gt_frame *top)
{
	const struct gt_context *context = thread->context;
	uint32_t count = (uint32_t)(top - context->frames);

#ifdef GT_PROGRAM
	for (const struct gt_frame *frame = top; context->hides && frame != context->frames;
	     frame--)
		count -= gt_frame_is_hidden(frame);
#endif
	return count;
}

bool gt_frames_below_notrace(const struct gt_thread *thread)
{
	const struct gt_frame *top = gt_frames_settled(thread);
	return top != thread->context->frames && gt_frame_flags(top) & GT_FRAME_NOTRACE;
}

void gt_frames_load(struct gt_thread *thread, struct gt_context *context)
{
	thread->context = context;
	if (thread->running != NULL)
		*thread->running = context;
	context->running = 1;
	context->saved_sp = 0;
	if (context->writer == 0)
		context->writer = thread->generation;
	gt_thread_set_top(thread, context->top);
	gt_frames_limits(thread, thread->max_depth);
	set_floor(thread);
	/* below set_graph_notrace or not: chosen anew */
	if (thread->mode == GT_MODE_NOTRACE || gt_frames_below_notrace(thread))
		thread->mode = 0;
}

static bool recording(const struct gt_thread *thread)
{
	return !thread->host && thread->sub_buffer != NULL && gt_stream_is_graph(thread) &&
	       !thread->resume;
}

/* Puts the thread on another context, which it owns; the one that it leaves stays behind. */
static void switch_to(struct gt_thread *thread, struct gt_context *to, uint64_t left)
{
	struct gt_context *from = thread->context;
	from->top = gt_thread_top(thread);
	from->saved_sp = left;
	to->previous = from;
	/* an empty coroutine's memory may be given to the next one: nobody's previous then */
	if (!from->known && is_empty(from))
		to->previous = thread->base;
	/* known to who reads this writer's records: see below */
	bool known = to->writer == thread->generation || (to->writer == 0 && is_empty(to));
	suspend(from);
	gt_frames_load(thread, to);
	to->writer = thread->generation;
	thread->epoch = gt_epoch_next();
	/*
	 * Whoever reads this writer's records knows the context's open calls, better than we do
	 * here: a signal may have interrupted a push between its record and its frame. Only what
	 * another writer did is news.
	 */
	if (!recording(thread) ||
	    !gt_stream_emit(thread, graftrace_special_word(GRAFTRACE_SPECIAL_CONTEXT, to->number),
			    true) ||
	    (!known &&
	     !gt_stream_emit(thread,
			     graftrace_special_word(GRAFTRACE_SPECIAL_RESUMED,
						    gt_frames_told(thread, gt_thread_top(thread))),
			     true))) {
		thread->resume |= GT_RESUME_MISSED;
		return;
	}
	thread->said = to->number;
}

/* Has the entry of a frame that is in flight a record, as every other that counts? The straight
 * lines push frames of no other kind. */
static bool in_flight_is_recorded(const struct gt_thread *thread)
{
	return thread->chosen == GT_MODE_GRAPH || thread->chosen == GT_MODE_PROFILE_GRAPH;
}

/* Takes off the frames above `to`: their calls have ended without a return. */
static void take_off(struct gt_thread *thread, struct gt_frame *to)
{
	uint32_t count = 0;
	uint32_t flags = 0;
	uint64_t *place = NULL;
	for (struct gt_frame *frame = gt_thread_top(thread); frame != to; frame--) {
		if (is_unset(frame)) {
			count += in_flight_is_recorded(thread);
			continue;
		}
		if (gt_frame_is_hidden(frame)) {
			flags |= gt_frame_flags(frame) & (GT_FRAME_ROOT | GT_FRAME_NOTRACE);
			continue;
		}
		flags |= gt_frame_flags(frame);
		if (!(gt_frame_flags(frame) & UNRECORDED))
			count++;
	}
	/* The word's place comes first: if that opens a sub-buffer, its header must still have the
	 * calls that the word takes off. */
	if (count != 0 && recording(thread))
		place = gt_stream_reserve(thread, 1, true);
	for (struct gt_frame *frame = gt_thread_top(thread); frame != to; frame--) {
		if (!is_unset(frame)) {
			if (gt_frame_flags(frame) & GT_FRAME_TRIGGER)
				gt_trigger_returned(thread, frame);
			gt_profile_leave(thread, frame); /* as a return at this moment */
			frame->slot = GT_FRAME_UNSET;
		}
		gt_thread_set_top(thread, frame - 1);
	}
	if (flags & GT_FRAME_ROOT)
		thread->outside |= gt_record_has_roots();
	if (flags & GT_FRAME_NOTRACE)
		thread->mode = 0;
	if (flags & GT_FRAME_SILENT) /* a header may have told of it */
		thread->resume |= GT_RESUME_MISSED;
	if (place != NULL) {
		__atomic_store_n(place, graftrace_special_word(GRAFTRACE_SPECIAL_UNWOUND, count),
				 __ATOMIC_RELAXED);
	} else if (count != 0) {
		thread->resume |= GT_RESUME_MISSED;
	}
}

/* Takes off the frames that lie below `sp` (and at it, when a call is about to be pushed there). A
 * frame in flight has no slot yet: it lies below the settled one beneath it, and ends with that. */
static void unwind(struct gt_thread *thread, uint64_t sp, bool entering)
{
	struct gt_frame *bottom = thread->context->frames;
	struct gt_frame *to = gt_thread_top(thread);
	for (struct gt_frame *frame = to; frame != bottom; frame--) {
		if (is_unset(frame))
			continue;
		if (frame->slot > sp || (frame->slot == sp && !entering))
			break;
		to = frame - 1;
	}
	if (to != gt_thread_top(thread))
		take_off(thread, to);
}

void gt_frames_drop_in_flight(struct gt_thread *thread)
{
	struct gt_frame *to = gt_frames_settled(thread);
	if (to != gt_thread_top(thread))
		take_off(thread, to);
}

struct gt_frame *gt_frames_settled(const struct gt_thread *thread)
{
	struct gt_frame *frame = gt_thread_top(thread);
	while (frame > thread->context->frames && is_unset(frame))
		frame--;
	return frame < thread->context->frames ? thread->context->frames : frame;
}

void gt_frames_keep_within(struct gt_thread *thread)
{
	const struct gt_context *context = thread->context;
	struct gt_frame *top = gt_thread_top(thread);

	if (IS_KERNEL || (uint64_t)(top - context->frames) < context->capacity)
		return;
	gt_thread_set_top(thread, top < context->frames ? context->frames
							: context->frames + context->capacity - 1);
	for (uint32_t i = 1; i <= GT_MARGIN_FRAMES; i++) /* pushed there meanwhile */
		(context->frames - i)->slot = GT_FRAME_UNSET;
	thread->resume |= GT_RESUME_MISSED;
}

/* Frames in flight have no slot: each is one of a straight line that a signal interrupted, with its handler's
 * calls above it. There are no more of them in a row than handlers in one another. */
#define IN_FLIGHT_MOST 64u

struct gt_frame *gt_frames_recover(const struct gt_context *context)
{
	struct gt_frame *frame = context->frames;
	for (uint32_t i = 1, unset = 0; i < context->capacity && unset < IN_FLIGHT_MOST; i++) {
		unset = is_unset(&context->frames[i]) ? unset + 1 : 0;
		if (unset == 0)
			frame = &context->frames[i];
	}
	return frame;
}

void gt_context_forget(struct gt_context *context)
{
	take_out(context);
}

/* Opens [low, high), or less of it where not all is to be had: from slot's granule up, or that one
 * alone. */
static bool open_some(uint64_t slot, uint64_t *low, uint64_t *high)
{
	const uint64_t own = slot & ~(GRANULE - 1);

	if (gt_port_mirror_open(*low, *high))
		return true;
	if (*low < own && gt_port_mirror_open(own, *high)) {
		*low = own;
		return true;
	}
	if (*high == own + GRANULE)
		return false;
	*low = own;
	*high = own + GRANULE;
	return gt_port_mirror_open(*low, *high);
}

/*
 * A coroutine that a handler takes away in its straight line may go on with another context's floor, or push
 * its call on those of a stack further down: then whatever lies between that floor and a slot further up
 * seems to have a mirror. So between coroutines' windows there is one, too, unless they lie far apart. An
 * alternate signal stack is none of theirs.
 */
static void open_between(const struct gt_context *context, uint64_t slot)
{
	static uint64_t all_low, all_high; /* of the windows so far; guarded by the port's lock */
	const uint64_t low = context->win_low, high = context->win_high;
	uint64_t gap_low = 0, gap_high = 0, signal_low, signal_high;

	if (context->known || context->bounded || slot < low || slot >= high ||
	    (gt_port_alternate_stack(&signal_low, &signal_high) && slot >= signal_low &&
	     slot < signal_high))
		return;
	gt_port_lock();
	if (low > all_high) {
		gap_low = all_high;
		gap_high = low;
	} else if (high < all_low) {
		gap_low = high;
		gap_high = all_low;
	}
	if (gap_high - gap_low > BETWEEN_BYTES) {
		all_low = low;
		all_high = high;
		gap_low = gap_high;
	}
	all_low = low < all_low ? low : all_low;
	all_high = high > all_high ? high : all_high;
	gt_port_unlock();
	if (gap_low != gap_high)
		gt_port_mirror_open(gap_low, gap_high);
}

/* Makes [.., slot] of the running context's stack have a mirror. Windows grow by doubling, and have
 * no holes: one that cannot be joined to the old one replaces it (see set_floor). */
static void open_window(struct gt_thread *thread, uint64_t slot)
{
	struct gt_context *context = thread->context;
	uint64_t low = slot & ~(GRANULE - 1);
	uint64_t high = low + GRANULE;
	uint64_t size = context->win_high - context->win_low;
	bool near = size != 0 && slot + JOINED_BYTES >= context->win_low &&
		    slot < context->win_high + JOINED_BYTES;
	if (near && low < context->win_low) {
		uint64_t grown = context->win_low - (size < GROWN_BYTES ? size : GROWN_BYTES);
		uint64_t floor = context->known ? context->low & ~(GRANULE - 1) : low;
		if (grown < low)
			low = grown < floor ? floor : grown;
		high = context->win_low;
	} else if (near) {
		low = context->win_high;
	}
	if (!open_some(slot, &low, &high))
		return;
	if (near && high == context->win_low) {
		context->win_low = low;
	} else if (near && low == context->win_high) {
		context->win_high = high;
	} else {
		context->win_low = low;
		context->win_high = high;
	}
}

/* Does the running context's stack reach to sp? */
static bool stays(const struct gt_thread *thread, uint64_t sp, bool entering)
{
	const struct gt_context *context = thread->context;
	const struct gt_frame *top = gt_frames_settled(thread);
	if (context->bounded)
		return sp >= context->low && sp < context->high;
	if (context->known && sp < context->low)
		/* the program may have raised its limit since */
		return context->grows && top != context->frames && top->slot - sp < NEAR_BYTES;
	if (context->known)
		return sp < context->high;
	if (sp >= thread->base->low && sp < thread->base->high)
		return false;
	if (top == context->frames)
		return context->high == 0 ||
		       (sp < context->high + 4096 && sp + NEAR_BYTES > context->high);
	if (sp < top->slot)
		return sp + JUMP_BYTES >= context->low;
	/* Above the innermost call: an unwinding if outer calls are still above it … */
	if (is_unset(context->frames + 1) || sp <= context->frames[1].slot)
		return true;
	/* … or if the stack is a little less deep than ever before. */
	return entering && sp < context->high + 512;
}

static struct gt_context *find_or_make(struct gt_thread *thread, uint64_t sp)
{
	if (sp >= thread->base->low && sp < thread->base->high && thread->base != thread->context) {
		take_out(thread->base);
		return thread->base;
	}
	struct gt_context *context = find_suspended(sp, false, false);
	return context != NULL ? context : new_context(sp);
}

/* Puts the thread on a context of its own for [low, high), a stack that lies within another one:
 * in a variable of one of its functions. False: there is no memory for one. */
static bool enter_bounded(struct gt_thread *thread, uint64_t sp, uint64_t low, uint64_t high,
			  uint64_t left)
{
	struct gt_context *to = new_context(sp);
	if (to == NULL)
		return false;
	to->bounded = 1;
	to->low = low;
	to->high = high;
	switch_to(thread, to, left);
	return true;
}

/*
 * Calls that lie below a new one have ended, unless that one is a handler's whose alternate stack
 * is a variable of an outer function. The kernel knows the stack, and is asked only where calls
 * would be given up.
 */
static void look_for_alternate_stack(struct gt_thread *thread, uint64_t slot)
{
	const struct gt_frame *top = gt_frames_settled(thread);
	uint64_t low, high;
	if (thread->context->bounded || top == thread->context->frames || top->slot >= slot ||
	    !gt_port_alternate_stack(&low, &high) || slot < low || slot >= high ||
	    (top->slot >= low && top->slot < high))
		return;
	enter_bounded(thread, slot, low, high, 0);
}

static void check_slots(struct gt_thread *thread)
{
	struct gt_frame *top = gt_thread_top(thread);
	thread->verify = 0;
	gt_frames_limits(thread, thread->max_depth);
	while (top != thread->context->frames && !is_unset(top) && !is_live(top))
		top--;
	if (top != gt_thread_top(thread))
		unwind(thread, top == thread->context->frames ? GT_SLOT_NONE : top->slot, false);
}

void gt_frames_resolve(struct gt_thread *thread, uint64_t slot, bool entering)
{
	if (IS_KERNEL) {
		unwind(thread, slot, entering);
		return;
	}
	gt_frames_keep_within(thread);
	if (thread->verify)
		check_slots(thread);
	if (!stays(thread, slot, entering)) {
		struct gt_context *to = find_or_make(thread, slot);
		if (to != NULL)
			switch_to(thread, to, 0);
	} else if (entering) {
		look_for_alternate_stack(thread, slot);
	}
	unwind(thread, slot, entering);
	if (!entering)
		return;
	struct gt_context *context = thread->context;
	if (context->known && slot < context->low)
		context->low = slot & ~(GRANULE - 1);
	if (!context->known && !context->bounded) {
		if (context->low == 0 || slot < context->low)
			context->low = slot;
		if (slot >= context->high)
			context->high = slot + 8;
	}
	if (slot < context->win_low || slot >= context->win_high) {
		open_window(thread, slot);
		open_between(context, slot);
	}
	/* the sentinel lets the next outermost call at about this depth take the straight line */
	if (context->frames[0].slot <= slot && slot < context->win_high) {
		context->frames[0].slot = slot + 8;
		if (context->known)
			context->frames[0].slot = context->win_high;
	}
	set_floor(thread);
}

void gt_frames_switch(struct gt_thread *thread, uint64_t left, uint64_t sp, uint64_t low,
		      uint64_t high)
{
	bool elsewhere = true; /* where no call of the stack was left */
	gt_frames_keep_within(thread);
	bool within = sp >= low && sp <= high && !(left >= low && left <= high) &&
		      low >= thread->base->low && high < thread->base->high;
	struct gt_context *to = find_suspended(sp, false, true);
	if (to == NULL && within && enter_bounded(thread, sp, low, high, left))
		return;
	if (to == NULL && sp >= thread->base->low && sp < thread->base->high) {
		to = thread->base;
		if (to == thread->context)
			to = NULL; /* another place of the same stack: setcontext as a longjmp */
		else
			take_out(to);
	} else if (to == NULL) {
		to = new_context(sp);
	}
	if (to != NULL) {
		elsewhere = to->saved_sp != sp;
		switch_to(thread, to, left);
	}
	if (elsewhere)
		unwind(thread, sp, false);
}

bool gt_frames_room(struct gt_thread *thread)
{
	struct gt_context *context = thread->context;
	if (gt_thread_top(thread) < context->frames + context->capacity - 1)
		return true;
	/* a kernel's stacks have all their frames from the start */
	if (!gt_frames_are_small(context) &&
	    (thread->pid == 0 || context->capacity > GT_SOME_FRAMES))
		return false;
	/* Twice at most: to an array for what most threads need, then to a place that grows by
	 * being touched. */
	bool first = gt_frames_are_small(context);
	uint32_t capacity = first ? GT_SOME_FRAMES : MANY_FRAMES;
	struct gt_frame *grown = NULL;
	while (grown == NULL && capacity > context->capacity) {
		grown = gt_port_allocate(gt_frames_bytes(capacity));
		if (grown == NULL)
			capacity /= 2;
	}
	if (grown == NULL)
		return false;
	grown += GT_MARGIN_FRAMES;
	for (uint32_t i = 0; i < context->capacity; i++)
		grown[i] = context->frames[i];
	uint64_t depth = gt_frames_depth(thread);
	/* The old array stays: an interrupted push may still store to it. */
	if (!first)
		context->outgrown = context->frames;
	context->frames = grown;
	context->capacity = capacity;
	context->top = grown + depth;
	gt_frames_load(thread, context);
	return true;
}

void gt_frames_pop(struct gt_thread *thread)
{
	struct gt_frame *top = gt_thread_top(thread);
	uint32_t flags = gt_frame_flags(top);
	top->slot = GT_FRAME_UNSET;
	gt_thread_set_top(thread, --top);
	struct gt_context *previous = thread->context->previous;
	if (!(flags & GT_FRAME_BOTTOM) || top != thread->context->frames || previous == NULL)
		return;
	/* The outermost call of a signal stack is over: back to what it interrupted, unless another
	 * thread has taken that up meanwhile. */
	bool ours = previous->known ? previous == thread->base && !previous->running
				    : !is_empty(previous) && take_out(previous);
	if (!ours)
		return;
	take_out(previous);
	switch_to(thread, previous, 0);
}

struct gt_frame *gt_frames_find(struct gt_thread *thread, uint64_t slot)
{
	struct gt_frame *top = gt_thread_top(thread);
	if (top->slot == slot && top != thread->context->frames)
		return top;
	for (struct gt_frame *frame = top; frame != thread->context->frames; frame--) {
		if (frame->slot == slot) {
			/* those above ended without a return (or their pushes were lost) */
			take_off(thread, frame);
			return frame;
		}
		if (!is_unset(frame) && frame->slot > slot)
			break;
	}
	if (IS_KERNEL)
		return NULL;
	struct gt_context *context = NULL;
	if (thread->base != thread->context && !is_empty(thread->base) &&
	    slot >= thread->base->low && slot < thread->base->high) {
		context = thread->base;
		take_out(context);
	} else {
		context = find_suspended(slot, true, false);
	}
	if (context != NULL)
		switch_to(thread, context, 0);
	if (context == NULL)
		return NULL;
	unwind(thread, slot, false);
	top = gt_thread_top(thread);
	return top != thread->context->frames && top->slot == slot ? top : NULL;
}
