/* SPDX-License-Identifier: MIT */
/*
 * Streams: where a writer's words go. Sub-buffers come from the arena's pool, one at a time; the
 * switch from one to the next happens here, with signals masked. Lock-free towards other writers
 * and the host: the pool is a stack changed by tagged compare-and-swap, each sub-buffer's state is
 * one word.
 *
 * Orders (partners in attach/):
 *  A. header and zeroed words before state ACTIVE (release); readers load the state first (acquire).
 *  B. last words before state FULL (release); a reader that sees FULL sees every word that was stored
 *     by then. An interrupted writer's word can come later: readers wait for holes to be filled.
 *  C. the host zeroes before it pushes to the free stack (release); the pop acquires.
 */
#include "core/record/recorder.h"
#include "core/record/arch.h"
#include "core/record/port.h"

#define RELAXED __ATOMIC_RELAXED
#define ACQUIRE __ATOMIC_ACQUIRE
#define RELEASE __ATOMIC_RELEASE
#define ACQ_REL __ATOMIC_ACQ_REL

/* Unique among all writers, also beyond a fork: frames go with their stacks to other writers. */
uint32_t gt_epoch_next(void)
{
	static uint32_t epochs;
#ifdef GT_KERNEL
	/* 0 is none: the straight line's frames have it (hot_kernel.S, K) */
	uint32_t epoch = __atomic_add_fetch(&epochs, GT_EPOCH_STEP, RELAXED);
	if (epoch != 0)
		return epoch;
#endif
	return __atomic_add_fetch(&epochs, GT_EPOCH_STEP, RELAXED);
}

/* Another process that changes the head without end must not hold us up. */
#define POP_ATTEMPTS 100000
/* When a sub-buffer was opened, as its state's entry has it: enough to tell older from newer. */
#define OPENED_SHIFT 16

/* Index of the first of a free stack, or -1. */
static int64_t pop(struct graftrace_arena *arena, uint64_t *stack)
{
	struct graftrace_sub_buffer_entry *states = graftrace_arena_states(arena);
	uint64_t head = __atomic_load_n(stack, ACQUIRE);
	for (uint32_t attempt = 0; attempt < POP_ATTEMPTS; attempt++) {
		uint32_t index = (uint32_t)head;
		if (index == 0 || index > arena->sub_buffer_count + arena->small_count)
			return -1;
		/* may be stale when the head moved: then the tag differs and the swap fails */
		uint64_t next = __atomic_load_n(&states[index - 1].next, RELAXED);
		uint64_t new_head = ((head >> 32) + 1) << 32 | next;
		if (__atomic_compare_exchange_n(stack, &head, new_head, true, ACQ_REL, ACQUIRE))
			return (int64_t)index - 1;
	}
	return -1;
}

/* Index of a free sub-buffer, or -1. */
static int64_t pool_pop(struct graftrace_arena *arena)
{
	int64_t index = pop(arena, &arena->free_head);
	if (index >= 0)
		__atomic_fetch_sub(&arena->free_count, 1, RELAXED);
	return index;
}

/* The same of a small one: one that was given back, else the first that was never used. */
static int64_t small_pop(struct graftrace_arena *arena)
{
	int64_t index = pop(arena, &arena->small_free);
	uint32_t next = __atomic_load_n(&arena->small_next, RELAXED);
	while (index < 0 && next < arena->small_count)
		if (__atomic_compare_exchange_n(&arena->small_next, &next, next + 1, true, RELAXED,
						RELAXED))
			index = (int64_t)arena->sub_buffer_count + next;
	if (index >= 0)
		__atomic_fetch_add(&arena->small_used, 1, RELAXED);
	return index;
}

/* A writer of many begins with a small one: it may never need more. */
static bool begins_small(const struct graftrace_arena *arena, const struct gt_thread *thread)
{
	return arena->small_count != 0 && thread->stream->sequence == 0 &&
	       thread->generation > arena->sub_buffer_count / 4;
}

/* Indexes of sub-buffers that can be in use lie below. */
static uint32_t index_limit(const struct graftrace_arena *arena)
{
	uint32_t small = __atomic_load_n(&arena->small_next, RELAXED);
	return arena->sub_buffer_count + (small < arena->small_count ? small : arena->small_count);
}

/* Words of a sub-buffer behind its header. */
static uint32_t words_of(const struct graftrace_arena *arena, uint32_t index)
{
	return (graftrace_arena_bytes_of(arena, index) -
		(uint32_t)sizeof(struct graftrace_sub_buffer)) /
	       8;
}

/* Is a word reserved and not stored? If not, *records: calls, returns and events, *calls: the calls
 * among them. The loop over thousands of words stands in the switch of sub-buffers: four that are
 * neither zero nor special at a time. */
static bool has_hole(const struct graftrace_sub_buffer *sub, uint32_t room, uint32_t *records,
		     uint32_t *calls)
{
	const uint64_t *words = (const uint64_t *)(sub + 1);
	const uint64_t special = ((uint64_t)GRAFTRACE_SPECIAL << 33) - 1;
	const bool is_pairs = sub->tracer == GRAFTRACE_TRACER_FUNCTION;
	const uint32_t said = __atomic_load_n(&sub->used, RELAXED);
	const uint32_t used = said < room ? said : room;
	uint32_t i = 0;
	while (i < used) {
		if (!is_pairs) {
			/* zero less one has all bits; special ones have nearly all of the high */
			while (i + 4 <= used &&
			       ((words[i] - 1) | (words[i + 1] - 1) | (words[i + 2] - 1) |
				(words[i + 3] - 1)) < special) {
				uint64_t returns = (words[i] & GRAFTRACE_WORD_RETURN) +
						   (words[i + 1] & GRAFTRACE_WORD_RETURN) +
						   (words[i + 2] & GRAFTRACE_WORD_RETURN) +
						   (words[i + 3] & GRAFTRACE_WORD_RETURN);
				*calls += 4 - (uint32_t)(returns >> 32);
				*records += 4;
				i += 4;
			}
			if (i == used)
				break;
		}
		if (words[i] == 0)
			return true;
		/* of an event the head comes first, and its first data word last */
		if (i + 1 < used && words[i + 1] == 0 && graftrace_word_is_event(words[i]))
			return true;
		*records += (uint32_t)graftrace_word_is_record(words[i]);
		*calls += (uint32_t)graftrace_word_is_call(words[i]);
		i += graftrace_record_words(&words[i], used - i, is_pairs);
	}
	return false;
}

/* Index of the writer's oldest FULL sub-buffer of a sequence not below `from`; -1: none. */
static int64_t oldest_from(struct graftrace_arena *arena, uint32_t stream, uint64_t from)
{
	struct graftrace_sub_buffer_entry *states = graftrace_arena_states(arena);
	uint64_t least = graftrace_state_word(GRAFTRACE_SUB_BUFFER_FULL, stream, from);
	uint64_t oldest_word = ~0ull;
	int64_t oldest = -1;
	const uint32_t limit = index_limit(arena);
	for (uint32_t i = 0; i < limit; i++) {
		uint64_t word = __atomic_load_n(&states[i].word, RELAXED);
		if ((word & 0xffffff) == (least & 0xffffff) && word >= least &&
		    word < oldest_word) {
			oldest = i;
			oldest_word = word;
		}
	}
	return oldest;
}

/* Makes sub-buffer `index`, FULL and of `sequence`, the writer's next one. False: it is not, or an
 * interrupted writer may still have to store a word there, or a consuming reader was faster. */
static bool take_back(struct graftrace_arena *arena, struct gt_thread *thread, uint32_t index,
		      uint64_t sequence)
{
	struct graftrace_sub_buffer_entry *entry = &graftrace_arena_states(arena)[index];
	struct graftrace_sub_buffer *sub = graftrace_arena_sub_buffer(arena, index);
	struct graftrace_stream *stream = thread->stream;
	uint32_t number = (uint32_t)(stream - graftrace_arena_streams(arena));
	uint64_t full = graftrace_state_word(GRAFTRACE_SUB_BUFFER_FULL, number, sequence);
	uint64_t active =
		graftrace_state_word(GRAFTRACE_SUB_BUFFER_ACTIVE, number, stream->sequence);
	uint32_t records = 0, calls = 0;
	if (__atomic_load_n(&entry->word, ACQUIRE) != full ||
	    has_hole(sub, words_of(arena, index), &records, &calls))
		return false;
	if (!__atomic_compare_exchange_n(&entry->word, &full, active, false, ACQ_REL, RELAXED))
		return false;
	thread->oldest = entry->successor <= arena->sub_buffer_count + arena->small_count
				 ? entry->successor
				 : 0;
	thread->oldest_sequence = sequence + 1;
	__atomic_fetch_add(&stream->lost[GRAFTRACE_LOST_OVERRUN], records, RELAXED);
	__atomic_fetch_add(&stream->lost[GRAFTRACE_LOST_OVERRUN_CALLS], calls, RELAXED);
	gt_arch_clear_words(graftrace_sub_buffer_words(sub), words_of(arena, index));
	return true;
}

/* Overwrite mode: the writer's own oldest FULL sub-buffer becomes its newest. -1: there is none.
 * Mostly it is the one that was opened after the last that was taken. */
static int64_t recycle(struct graftrace_arena *arena, struct gt_thread *thread)
{
	struct graftrace_sub_buffer_entry *states = graftrace_arena_states(arena);
	uint32_t number = (uint32_t)(thread->stream - graftrace_arena_streams(arena));
	uint32_t noted = thread->oldest;
	if (noted != 0 && take_back(arena, thread, noted - 1, thread->oldest_sequence))
		return (int64_t)noted - 1;
	uint64_t from = 0;
	for (int attempt = 0; attempt < 8; attempt++) {
		int64_t index = oldest_from(arena, number, from);
		if (index < 0)
			return -1;
		from = graftrace_word_sequence(__atomic_load_n(&states[index].word, RELAXED));
		if (take_back(arena, thread, (uint32_t)index, from))
			return index;
		from++;
	}
	return -1;
}

/* Overwrite mode, and nothing of the writer's own: the FULL sub-buffer that was opened first goes,
 * whosesoever it is. Where many threads hold one each, that keeps the newest of all, however late
 * the host is. -1: there is none. */
static int64_t take_oldest(struct graftrace_arena *arena, struct gt_thread *thread)
{
	struct graftrace_sub_buffer_entry *states = graftrace_arena_states(arena);
	uint32_t number = (uint32_t)(thread->stream - graftrace_arena_streams(arena));
	uint32_t now = (uint32_t)(gt_arch_clock() >> OPENED_SHIFT), past = ~0u;
	for (int attempt = 0; attempt < 4; attempt++) {
		uint32_t best = 0;
		int64_t index = -1;
		const uint32_t limit = index_limit(arena);
		for (uint32_t i = 0; i < limit; i++) {
			uint64_t word = __atomic_load_n(&states[i].word, RELAXED);
			uint32_t age = now - __atomic_load_n(&states[i].next, RELAXED);
			if (graftrace_word_state(word) == GRAFTRACE_SUB_BUFFER_FULL &&
			    age >= best && age < past) {
				best = age;
				index = i;
			}
		}
		if (index < 0)
			return -1;
		uint64_t full = __atomic_load_n(&states[index].word, ACQUIRE);
		uint64_t active = graftrace_state_word(GRAFTRACE_SUB_BUFFER_ACTIVE, number,
						       thread->stream->sequence);
		struct graftrace_sub_buffer *sub =
			graftrace_arena_sub_buffer(arena, (uint32_t)index);
		uint32_t records = 0, calls = 0;
		past = best;
		if (graftrace_word_state(full) != GRAFTRACE_SUB_BUFFER_FULL ||
		    has_hole(sub, words_of(arena, (uint32_t)index), &records, &calls) ||
		    !__atomic_compare_exchange_n(&states[index].word, &full, active, false, ACQ_REL,
						 RELAXED))
			continue;
		/* its writer's stream may be another's by now */
		__atomic_fetch_add(&arena->lost[GRAFTRACE_LOST_OVERRUN], records, RELAXED);
		__atomic_fetch_add(&arena->lost[GRAFTRACE_LOST_OVERRUN_CALLS], calls, RELAXED);
		gt_arch_clear_words(graftrace_sub_buffer_words(sub),
				    words_of(arena, (uint32_t)index));
		thread->stream->owned++;
		return index;
	}
	return -1;
}

static int64_t take_sub_buffer(struct graftrace_arena *arena, struct gt_thread *thread)
{
	uint32_t mode = __atomic_load_n(&arena->mode, RELAXED);
	if (begins_small(arena, thread)) {
		int64_t index = small_pop(arena);
		if (index >= 0) {
			thread->stream->owned++;
			return index;
		}
	}
	if (mode == GRAFTRACE_MODE_OVERWRITE && thread->stream->owned >= 2 &&
	    __atomic_load_n(&arena->free_count, RELAXED) <=
		    GRAFTRACE_LOW_POOL(arena->sub_buffer_count) / 2) {
		int64_t index = recycle(arena, thread);
		if (index >= 0)
			return index;
	}
	int64_t index = pool_pop(arena);
	if (index >= 0) {
		thread->stream->owned++;
		return index;
	}
	if (mode == GRAFTRACE_MODE_OVERWRITE) {
		index = recycle(arena, thread);
		/* a kernel's CPUs are few, and each has its share */
		return index < 0 && thread->pid != 0 ? take_oldest(arena, thread) : index;
	}
	/* The documented bounded wait: a recording to a file rather waits for the host than loses.
	 */
	uint32_t wait_ms = gt_port_listens(arena) ? __atomic_load_n(&arena->wait_ms, RELAXED) : 0;
	for (uint32_t waited = 0; mode == GRAFTRACE_MODE_DRAIN && waited < wait_ms; waited += 10) {
		if (!gt_port_listens(arena))
			break;
		uint32_t seen = __atomic_load_n(&arena->free_futex, ACQUIRE);
		__atomic_fetch_add(&arena->waiters, 1, ACQ_REL);
		index = pool_pop(arena);
		if (index < 0) {
			gt_port_ring_doorbell(arena);
			gt_port_wait(arena, seen, 10);
		}
		__atomic_fetch_sub(&arena->waiters, 1, ACQ_REL);
		if (index < 0)
			index = pool_pop(arena);
		if (index >= 0) {
			thread->stream->owned++;
			return index;
		}
	}
	return -1;
}

static bool is_function(const struct gt_thread *thread)
{
	return thread->sub_buffer != NULL && thread->is_pairs;
}

/* The cursor of the open sub-buffer; the straight line of the other tracer finds 0. */
static uint64_t *cursor(struct gt_thread *thread)
{
	return is_function(thread) ? &thread->cur_pair : &thread->cur;
}

bool gt_stream_fits(const struct gt_thread *thread)
{
	return thread->sub_buffer != NULL &&
	       (is_function(thread) ? gt_stream_is_function(thread) : gt_stream_is_graph(thread));
}

/* The straight line has nothing to do here, or may not: it writes without asking for room. */
static bool needs_slow_half(const struct gt_thread *thread)
{
	if (thread->chosen == GT_MODE_NOP)
		return false;
	/* calls that no record tells of: what is open is closed first, a later header tells */
	if (thread->chosen == GT_MODE_PROFILE)
		return thread->sub_buffer != NULL;
	if (!gt_stream_fits(thread))
		return true;
	/* the function tracer says which context runs, and no depth */
	uint64_t resume =
		gt_stream_is_function(thread) ? thread->resume & GT_RESUME_CONTEXT : thread->resume;
	return thread->chosen != GT_MODE_THRESHOLD && (thread->tight || resume != 0);
}

/* The arena's settings that choose a mode. */
struct settings {
	uint32_t tracer;
	uint32_t max_depth;
	uint64_t threshold;
	bool profile;
	bool func_stack;
};

static struct settings read_settings(struct graftrace_arena *arena)
{
	struct settings settings = {
		.tracer = __atomic_load_n(&arena->tracer, __ATOMIC_SEQ_CST),
		.max_depth = __atomic_load_n(&arena->max_depth, __ATOMIC_SEQ_CST),
		.threshold = __atomic_load_n(&arena->threshold_ticks, __ATOMIC_SEQ_CST),
		.profile = __atomic_load_n(&arena->profile, __ATOMIC_SEQ_CST) != 0,
		.func_stack = __atomic_load_n(&arena->func_stack, __ATOMIC_SEQ_CST) != 0,
	};
	/* The profile goes on while tracing is off: then the stop byte is not used for that. */
	if (settings.profile && __atomic_load_n(&arena->tracing_on, __ATOMIC_SEQ_CST) == 0)
		settings.tracer = GRAFTRACE_TRACER_NOP;
	return settings;
}

static uint8_t mode_of(const struct settings *settings)
{
	switch (settings->tracer) {
	case GRAFTRACE_TRACER_FUNCTION:
		return settings->func_stack ? GT_MODE_STACK : GT_MODE_FUNCTION;
	case GRAFTRACE_TRACER_FUNCTION_GRAPH:
		if (settings->threshold != 0)
			return GT_MODE_THRESHOLD;
		return settings->profile ? GT_MODE_PROFILE_GRAPH : GT_MODE_GRAPH;
	default:
		return settings->profile ? GT_MODE_PROFILE : GT_MODE_NOP;
	}
}

static uint8_t mode_now(const struct gt_thread *thread)
{
	if (needs_slow_half(thread))
		return 0;
	return gt_stream_is_graph(thread) && gt_frames_below_notrace(thread) ? GT_MODE_NOTRACE
									     : thread->chosen;
}

void gt_stream_choose(struct gt_thread *thread)
{
	struct graftrace_arena *arena = gt_port_arena();
	struct settings settings, again;
	/* The host changes the settings first, then writes mode 0. A mode that we store behind its
	 * 0 is one of settings that we read behind the change: they are looked at again. */
	again = read_settings(arena);
	do {
		settings = again;
		thread->chosen = mode_of(&settings);
		thread->threshold = settings.threshold;
		gt_frames_limits(thread, settings.max_depth);
		__atomic_store_n(&thread->mode, mode_now(thread), __ATOMIC_SEQ_CST);
		again = read_settings(arena);
	} while (again.tracer != settings.tracer || again.max_depth != settings.max_depth ||
		 again.threshold != settings.threshold || again.profile != settings.profile ||
		 again.func_stack != settings.func_stack);
}

void gt_stream_settle(struct gt_thread *thread)
{
	/* what straight lines that came too late have added */
	if (!is_function(thread))
		thread->cur_pair = 0;
	if (is_function(thread) || thread->sub_buffer == NULL)
		thread->cur = 0;
	if (needs_slow_half(thread))
		thread->mode = 0;
	else if (thread->mode == 0)
		gt_stream_choose(thread);
}

/* Of small sub-buffers, one of which was taken: the host is to free those of ended writers. */
static bool small_are_short(const struct graftrace_arena *arena, int64_t index)
{
	return index >= arena->sub_buffer_count &&
	       __atomic_load_n(&arena->small_used, RELAXED) > arena->small_count / 2;
}

bool gt_stream_open(struct gt_thread *thread)
{
	struct graftrace_arena *arena = gt_port_arena();
	struct graftrace_stream *stream = thread->stream;
	struct graftrace_sub_buffer_entry *states = graftrace_arena_states(arena);

	gt_stream_close(thread);
	int64_t index = take_sub_buffer(arena, thread);
	if (index < 0)
		return false;

	struct graftrace_sub_buffer *sub = graftrace_arena_sub_buffer(arena, (uint32_t)index);
	uint32_t stream_index = (uint32_t)(stream - graftrace_arena_streams(arena));
	uint32_t tracer = gt_stream_is_function(thread) ? GRAFTRACE_TRACER_FUNCTION
							: GRAFTRACE_TRACER_FUNCTION_GRAPH;
	/* no record tells of a call of set_graph_notrace */
	const struct gt_frame *top = gt_thread_top(thread) - gt_frames_below_notrace(thread);
	uint64_t now = gt_arch_clock();

	sub->magic = GRAFTRACE_SUB_BUFFER_MAGIC;
	sub->bytes = graftrace_arena_bytes_of(arena, (uint32_t)index);
	sub->stream = stream_index;
	sub->generation = thread->generation;
	sub->pid = thread->pid;
	sub->tid = thread->tid;
	sub->cpu = thread->last_cpu = gt_port_cpu();
	sub->context = thread->said = thread->context->number;
	thread->said_tid = thread->tid;
	sub->sequence = stream->sequence;
	sub->clock = now;
	const uint32_t depth = gt_frames_told(thread, top);
	sub->depth = depth;
	sub->tracer = (uint16_t)tracer;
	sub->used = 0;
	sub->reserved = 0;
	for (int i = 0; i < GRAFTRACE_LOST_CAUSES; i++)
		sub->lost[i] = stream->lost[i];
	uint32_t count = depth < GRAFTRACE_OPEN_CALLS ? depth : GRAFTRACE_OPEN_CALLS;
	sub->open_calls = (uint16_t)count;
	const struct gt_frame *frame = top;
	for (uint32_t i = count; i-- > 0; frame--) {
		while (gt_frame_is_hidden(frame))
			frame--;
		/* one that an interrupted writer is pushing: not known yet */
		bool in_flight = frame->slot == GT_SLOT_NONE || frame->slot == 0;
		sub->open[i].clock = in_flight ? 0 : gt_frame_start(frame, now);
		sub->open[i].function = in_flight ? 0 : gt_frame_function(frame);
		sub->open[i].depth = depth - count + i;
	}

	thread->sub_buffer = sub;
	thread->is_pairs = tracer == GRAFTRACE_TRACER_FUNCTION;
	/* for who takes back the one before: noted before that can be reused, by us alone */
	if (stream->sequence != 0)
		states[thread->sub_index].successor = (uint32_t)index + 1;
	thread->sub_index = (uint32_t)index;
	__atomic_store_n(&states[index].next, (uint32_t)(now >> OPENED_SHIFT), RELAXED);
	thread->hard_end = (uint64_t)sub + sub->bytes;
	/* The header's first 256 bytes: places that are not inside, more than signals can nest at
	 * the end of one sub-buffer. */
	thread->inside = (arena->sub_buffer_bytes - 1) & ~255ull;
	*cursor(thread) = (uint64_t)graftrace_sub_buffer_words(sub);
	thread->high = (uint32_t)(now >> 32);
	thread->epoch = gt_epoch_next();
	thread->full = 0;

	__atomic_store_n(
		&states[index].word,
		graftrace_state_word(GRAFTRACE_SUB_BUFFER_ACTIVE, stream_index, stream->sequence),
		RELEASE); /* A */
	__atomic_store_n(&stream->current, (uint32_t)index + 1, RELEASE);
	__atomic_store_n(&stream->sequence, stream->sequence + 1, RELEASE);
	__atomic_store_n(&stream->stopped_full, 0, RELAXED);
	uint32_t low = __atomic_load_n(&arena->mode, RELAXED) == GRAFTRACE_MODE_OVERWRITE
			       ? GRAFTRACE_LOW_POOL(arena->sub_buffer_count)
			       : arena->sub_buffer_count / 2;
	if (__atomic_load_n(&arena->free_count, RELAXED) <= low || small_are_short(arena, index))
		gt_port_ring_doorbell(arena);
	return true;
}

static void close_sub_buffer(struct graftrace_arena *arena, struct graftrace_stream *stream,
			     uint32_t index, uint32_t used)
{
	struct graftrace_sub_buffer_entry *states = graftrace_arena_states(arena);
	struct graftrace_sub_buffer *sub = graftrace_arena_sub_buffer(arena, index);
	__atomic_store_n(&sub->used, used, RELAXED);
	__atomic_store_n(&stream->current, 0, RELAXED);
	uint64_t word = graftrace_state_word(GRAFTRACE_SUB_BUFFER_FULL, sub->stream, sub->sequence);
	__atomic_store_n(&states[index].word, word, RELEASE); /* B */
}

bool gt_stream_has_words(struct gt_thread *thread)
{
	return thread->sub_buffer != NULL &&
	       *cursor(thread) > (uint64_t)graftrace_sub_buffer_words(thread->sub_buffer);
}

uint64_t gt_stream_reserved_to(const struct gt_thread *thread)
{
	uint64_t last = is_function(thread) ? thread->cur_pair : thread->cur;
	return last < thread->hard_end ? last : thread->hard_end;
}

/* Of the open sub-buffer: what was reserved. */
static uint32_t words_used(const struct gt_thread *thread)
{
	uint64_t words = (uint64_t)graftrace_sub_buffer_words(thread->sub_buffer);
	return (uint32_t)((gt_stream_reserved_to(thread) - words) / 8);
}

void gt_stream_close(struct gt_thread *thread)
{
	if (thread->sub_buffer == NULL)
		return;
	struct graftrace_arena *arena = gt_port_arena();
	close_sub_buffer(arena, thread->stream, thread->sub_index, words_used(thread));
	thread->sub_buffer = NULL;
	thread->cur = thread->cur_pair = thread->hard_end = 0;
}

void gt_stream_end(struct graftrace_arena *arena, struct graftrace_stream *stream,
		   uint32_t generation, const struct gt_thread *thread)
{
	/* State and generation at once: the host may have found the end first and freed the stream,
	 * and the writer that has it now lives. */
	uint64_t live = (uint64_t)generation << 32 | GRAFTRACE_STREAM_LIVE;
	uint64_t ended = (uint64_t)generation << 32 | GRAFTRACE_STREAM_ENDED;
	if (!__atomic_compare_exchange_n((uint64_t *)&stream->state, &live, ended, false, ACQ_REL,
					 RELAXED))
		return;
	uint32_t current = __atomic_load_n(&stream->current, ACQUIRE);
	if (current == 0 || current > arena->sub_buffer_count + arena->small_count)
		return;
	if (thread->stream == stream && thread->generation == generation &&
	    thread->sub_buffer == graftrace_arena_sub_buffer(arena, current - 1)) {
		close_sub_buffer(arena, stream, current - 1, words_used(thread));
		return;
	}
	/* nobody knows (fork wiped the block): everything up to the last word that is there */
	struct graftrace_sub_buffer *sub = graftrace_arena_sub_buffer(arena, current - 1);
	uint64_t *words = graftrace_sub_buffer_words(sub);
	uint32_t used = words_of(arena, current - 1);
	uint32_t all = used;
	while (used > 0 && words[used - 1] == 0)
		used--;
	/* an event's last words may be zero */
	used = used + 3 < all ? used + 3 : all;
	close_sub_buffer(arena, stream, current - 1, used);
}

/* Index of a stream that is free: one that was given back, else the first that was never used. -1:
 * there is none. */
static int64_t take_stream(struct graftrace_arena *arena)
{
	struct graftrace_stream *streams = graftrace_arena_streams(arena);
	uint64_t head = __atomic_load_n(&arena->stream_free, ACQUIRE);
	for (uint32_t attempt = 0;
	     attempt < POP_ATTEMPTS && (uint32_t)head != 0 && (uint32_t)head <= arena->stream_count;
	     attempt++) {
		/* may be stale when the head moved: then the tag differs and the swap fails */
		uint64_t next = __atomic_load_n(&streams[(uint32_t)head - 1].next, RELAXED);
		uint64_t new_head = ((head >> 32) + 1) << 32 | next;
		if (__atomic_compare_exchange_n(&arena->stream_free, &head, new_head, true, ACQ_REL,
						ACQUIRE))
			return (int64_t)(uint32_t)head - 1;
	}
	uint32_t next = __atomic_load_n(&arena->stream_next, RELAXED);
	while (next < arena->stream_count)
		if (__atomic_compare_exchange_n(&arena->stream_next, &next, next + 1, true, ACQ_REL,
						RELAXED))
			return next;
	return -1;
}

struct graftrace_stream *gt_stream_claim(struct graftrace_arena *arena, uint32_t pid, uint32_t tid)
{
	for (int attempt = 0; attempt < 1000; attempt++) {
		int64_t index = take_stream(arena);
		if (index < 0)
			break;
		struct graftrace_stream *stream = &graftrace_arena_streams(arena)[index];
		uint32_t unused = GRAFTRACE_STREAM_FREE;
		/* the host looks at a stream only once its generation is set */
		if (!__atomic_compare_exchange_n(&stream->state, &unused, GRAFTRACE_STREAM_LIVE,
						 false, ACQ_REL, RELAXED))
			continue;
		stream->pid = pid;
		stream->tid = tid;
		stream->start = gt_arch_clock();
		stream->sequence = 0;
		stream->current = 0;
		stream->stopped_full = 0;
		stream->owned = 0;
		for (int cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
			stream->lost[cause] = 0;
		stream->lost_events = 0;
		uint32_t generation = __atomic_add_fetch(&arena->generations, 1, ACQ_REL);
		__atomic_store_n(&stream->generation, generation, RELEASE);
		return stream;
	}
	__atomic_fetch_add(&arena->lost[GRAFTRACE_LOST_STREAM], 1, RELAXED);
	return NULL;
}

/*
 * Behind the last sub-buffer of a ring that keeps the oldest there is no next one, so entries stop
 * while the returns of all open calls still fit: a call opened before this sub-buffer returns in
 * four words.
 */
static bool keeps_for_returns(const struct gt_thread *thread, uint64_t left, uint32_t words)
{
	return left < words + 4ull * (gt_frames_depth(thread) + 1) + 8;
}

static void look_for_room(struct gt_thread *thread)
{
	struct graftrace_arena *arena = gt_port_arena();
	thread->tight = __atomic_load_n(&arena->mode, RELAXED) == GRAFTRACE_MODE_RING &&
			__atomic_load_n(&arena->free_count, RELAXED) == 0;
}

uint64_t *gt_stream_reserve(struct gt_thread *thread, uint32_t words, bool for_return)
{
	if (is_function(thread))
		words = (words + 1) & ~1u;
	if (thread->sub_buffer == NULL || *cursor(thread) + words * 8ull > thread->hard_end) {
		if (!gt_stream_open(thread))
			return NULL;
	}
	look_for_room(thread);
	uint64_t *cur = cursor(thread);
	if (thread->tight && !for_return &&
	    keeps_for_returns(thread, (thread->hard_end - *cur) / 8, words))
		return NULL;
	uint64_t *place = (uint64_t *)*cur;
	*cur += words * 8ull;
	return place;
}

void gt_stream_make_room(struct gt_thread *thread, uint32_t words)
{
	uint64_t free = __atomic_load_n(&gt_port_arena()->free_count, RELAXED);
	if (free != 0 && thread->sub_buffer != NULL &&
	    *cursor(thread) + words * 8ull > thread->hard_end)
		gt_stream_open(thread);
}

bool gt_stream_emit(struct gt_thread *thread, uint64_t word, bool for_return)
{
	uint64_t *place = gt_stream_reserve(thread, 1, for_return);
	if (place == NULL)
		return false;
	__atomic_store_n(place, word, RELAXED);
	return true;
}

uint64_t *gt_stream_reserve_at(struct gt_thread *thread, uint64_t tsc, uint32_t words,
			       bool for_return)
{
	const uint32_t high = (uint32_t)(tsc >> 32);
	/* CLOCK, a place that opens a sub-buffer whose header has the next half already, and again
	 */
	for (int attempt = 0; attempt < 6; attempt++) {
		bool told = thread->sub_buffer != NULL && thread->high == high;
		uint64_t *place = gt_stream_reserve(thread, told ? words : 1, for_return);
		if (place == NULL || (told && thread->high == high))
			return place;
		uint64_t word = told ? graftrace_special_word(GRAFTRACE_SPECIAL_PAD, words - 1)
				     : graftrace_special_word(GRAFTRACE_SPECIAL_CLOCK, high);
		__atomic_store_n(place, word, RELAXED);
		thread->high = told ? thread->high : high;
	}
	return NULL;
}
