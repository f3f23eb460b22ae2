/* SPDX-License-Identifier: MIT */
/*
 * What a kernel adds to the recorder: CPUs in place of threads, contexts that the kernel names
 * itself, and interrupts that nest. See kernel.h for who may call what, and when.
 *
 * What has to be said of a context that is entered (which it is, how deep) is noted in
 * gt_thread.resume, and the mode is 0 until the next record has taken the slow path and said it: an
 * interrupt that records nothing leaves no trace at all. One that recorded something when it came
 * last is taken to do so again, and told of at once: the slow path costs more than a dozen calls.
 * If it does not, that costs two words, and text shows an interrupt without calls.
 *
 * Why an interrupt may come between any two instructions of the straight line: it leaves the top
 * and the mode as it found them, and the cursor behind where it was. An interrupted straight line
 * does not look at the mode again, so what it may write next must be of the context that was said
 * last: on its way out an interrupt that said its own context says the interrupted one's at once,
 * or, where there is no room for that, closes the sub-buffer (a cursor of 0 sends the straight line
 * to the slow half). A place that was reserved before the interrupt lies before all that it said.
 */
#include "core/record/kernel.h"
#include "core/record/arch.h"
#include "core/record/port.h"

#define RELAXED __ATOMIC_RELAXED
/* As a context's writer: who reads knows more calls of it than there are. */
#define GT_WRITER_UNKNOWN (~0u)
/* As gt_thread.said: no context has this number. */
#define GT_SAID_NOTHING (~0u)
#define PAGE		4096ull

/* Slots of functions' commands: one a function that has one. */
#define TRIGGERS 1024u

/* glue.S calls them by these names, here and in a program's agent. */
int gt_agent_entry(uint64_t slot, uint32_t function, uint64_t *hole, uint32_t kind);
uint64_t gt_agent_exit(uint64_t slot, uint32_t function, uint64_t *hole);
int gt_agent_hook(void *frame);

static void busy(struct gt_thread *thread, int step)
{
	__atomic_store_n(&thread->busy, thread->busy + (uint32_t)step, RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Above the returned address the frames suffice, however little of the stack each call takes (J). */
static uint64_t lowest_with_frames(const struct gt_thread *thread)
{
	const struct gt_context *context = thread->context;
	uint64_t frames = (uint64_t)context->frames;
	uint64_t room =
		thread->limit > frames ? (thread->limit - frames) / sizeof(struct gt_frame) : 0;
	uint64_t stack = (context->high - context->low) / 8;
	return context->high - 8 * (room < stack ? room : stack);
}

/* The newest frame whose return may need more than one word, or more than to be told of (K). In an epoch
 * that goes on, only a frame with flags can have come, and it is on top: the slow half makes one. */
static uint64_t newest_unplain(const struct gt_thread *thread)
{
	uint64_t top = (uint64_t)thread->top;
	bool goes_on = thread->gate_epoch == thread->epoch && thread->gate_top < top;
	return goes_on && gt_frame_flags(thread->top) == 0 ? thread->gate_top : top;
}

/*
 * The straight line's own view of the block (hot_kernel.S, G, J and K): at the end of whatever changed the
 * stop word, the context or the epoch. Another CPU that stops this one (gt_thread_close_gate)
 * stores the stop word, then the gate; we store the gate, then look at the stop word: one of us
 * sees the other's.
 */
void gt_kernel_set_gate(struct gt_thread *thread)
{
	uint32_t graph = (uint32_t)GT_MODE_GRAPH << GT_STOP_MODE_SHIFT;
	bool open = __atomic_load_n(&thread->stop, RELAXED) == graph;
	__atomic_store_n(&thread->gate_top, open ? newest_unplain(thread) : ~0ull, RELAXED);
	__atomic_store_n(&thread->gate_epoch, open ? thread->epoch : ~0u, RELAXED);
	uint64_t lowest = lowest_with_frames(thread);
	uint64_t gate = thread->floor > lowest ? thread->floor : lowest;
	__atomic_store_n(&thread->gate, open ? gate : GT_GATE_CLOSED, RELAXED);
	if (!open)
		return;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&thread->stop, RELAXED) != graph) {
		__atomic_store_n(&thread->gate, GT_GATE_CLOSED, RELAXED);
		__atomic_store_n(&thread->gate_top, ~0ull, RELAXED);
		__atomic_store_n(&thread->gate_epoch, ~0u, RELAXED);
	}
}

static void begin(struct gt_thread *thread)
{
	busy(thread, 1);
}

static void end(struct gt_thread *thread)
{
	gt_kernel_set_gate(thread);
	busy(thread, -1);
}

/* ---- set_graph_function ---- */

/* How often the list has come or gone. What runs then is inside of none of its functions: contexts
 * find out by this number, each by itself, when it is taken up or takes the slow half. */
static uint32_t graph_turn;

static bool has_turned(struct gt_context *context)
{
	uint32_t turn = __atomic_load_n(&graph_turn, __ATOMIC_ACQUIRE);
	bool turned = context->graph_turn != turn;
	context->graph_turn = turn;
	return turned;
}

/* Of the context that runs. */
static void follow_graph(struct gt_thread *thread)
{
	if (!has_turned(thread->context))
		return;
	if (gt_record_has_roots())
		thread->outside |= GT_OUTSIDE_GRAPH;
	else
		thread->outside &= (uint8_t)~GT_OUTSIDE_GRAPH;
}

/* ---- the slow half's way in ---- */

int gt_agent_entry(uint64_t slot, uint32_t function, uint64_t *hole, uint32_t kind)
{
	int traced = 0;
	uint64_t saved = gt_arch_interrupts_off();
	struct gt_thread *thread = gt_arch_block();
	if (thread != NULL) {
		const struct gt_context *context = thread->context;
		begin(thread);
		follow_graph(thread);
		if (slot >= context->low && slot < context->high)
			traced = gt_record_entry(thread, slot, function, kind, hole);
		else
			__atomic_fetch_add(&thread->stream->lost[GRAFTRACE_LOST_WINDOW], 1,
					   RELAXED);
		end(thread);
	}
	gt_arch_interrupts_restore(saved);
	return traced;
}

/* Whose stack an address of this CPU is in, while it is suspended; NULL: it never was. */
static struct gt_context *(*running_context)(uint64_t address);

/* What runs on this CPU, while it is suspended. */
static struct gt_context *suspended_context(void)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0);
	return running_context != NULL ? running_context(here) : NULL;
}

/* A call that was open when its CPU was suspended is over. */
static void forget_call(uint64_t slot)
{
	struct gt_context *context = running_context != NULL ? running_context(slot) : NULL;
	if (context == NULL)
		return;
	while (context->top != context->frames &&
	       (context->top->slot <= slot || context->top->slot == GT_SLOT_NONE)) {
		if (gt_frame_flags(context->top) & GT_FRAME_ROOT)
			context->outside = gt_record_has_roots();
		context->top->slot = GT_SLOT_NONE;
		context->top--;
		context->writer = GT_WRITER_UNKNOWN;
	}
}

uint64_t gt_agent_exit(uint64_t slot, uint32_t function, uint64_t *hole)
{
	(void)function; /* a program's wants it */
	uint64_t address = *(const uint64_t *)gt_kernel_mirror(slot);
	uint64_t saved = gt_arch_interrupts_off();
	struct gt_thread *thread = gt_arch_block();
	if (thread == NULL) {
		forget_call(slot);
	} else {
		begin(thread);
		gt_record_exit(thread, slot, hole);
		end(thread);
	}
	gt_arch_interrupts_restore(saved);
	return address;
}

/* A kernel has no hooks: whatever switches stacks calls gt_kernel_switch. */
int gt_agent_hook(void *frame)
{
	(void)frame;
	return 0;
}

bool gt_kernel_in_recorder(uint64_t rip)
{
	return (rip >= (uint64_t)gt_recorder_text_start && rip < (uint64_t)gt_recorder_text_end) ||
	       gt_arch_is_stub_head(rip);
}

/* ---- the ring ---- */

struct graftrace_arena *gt_kernel_arena;

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) & ~(PAGE - 1);
}

static uint32_t sub_buffers_of(uint64_t ring_bytes, uint32_t sub_buffer_bytes)
{
	return (uint32_t)(ring_bytes / sub_buffer_bytes);
}

/* The table, and how often each of it was hit. */
static uint64_t trigger_bytes(void)
{
	return whole_pages(TRIGGERS * (sizeof(struct graftrace_trigger) + sizeof(uint64_t)));
}

static uint64_t head_bytes(uint32_t sub_buffers, uint32_t cpus)
{
	return whole_pages(sizeof(struct graftrace_arena)) +
	       whole_pages(cpus * sizeof(struct graftrace_stream) +
			   sub_buffers * sizeof(struct graftrace_sub_buffer_entry)) +
	       trigger_bytes() + whole_pages(sizeof(struct graftrace_selected));
}

uint64_t gt_kernel_arena_bytes(uint64_t ring_bytes, uint32_t sub_buffer_bytes, uint32_t cpus)
{
	uint32_t sub_buffers = sub_buffers_of(ring_bytes, sub_buffer_bytes);
	/* sub-buffers lie at multiples of their size */
	return whole_pages(head_bytes(sub_buffers, cpus) +
			   (uint64_t)(sub_buffers + 1) * sub_buffer_bytes);
}

void gt_kernel_arena_init(struct graftrace_arena *arena, uint64_t ring_bytes,
			  uint32_t sub_buffer_bytes, uint32_t cpus)
{
	uint32_t sub_buffers = sub_buffers_of(ring_bytes, sub_buffer_bytes);
	arena->bytes = gt_kernel_arena_bytes(ring_bytes, sub_buffer_bytes, cpus);
	arena->sub_buffer_bytes = sub_buffer_bytes;
	arena->sub_buffer_count = sub_buffers;
	arena->stream_count = cpus;
	arena->mail_count = 0;
	arena->streams_offset = whole_pages(sizeof(*arena));
	arena->states_offset = arena->streams_offset + cpus * sizeof(struct graftrace_stream);
	arena->mail_offset = arena->states_offset;
	arena->trigger_count = TRIGGERS;
	arena->triggers_offset = whole_pages(
		arena->states_offset + sub_buffers * sizeof(struct graftrace_sub_buffer_entry));
	arena->trigger_hits_offset =
		arena->triggers_offset + TRIGGERS * sizeof(struct graftrace_trigger);
	arena->selected_offset = arena->triggers_offset + trigger_bytes();
	uint64_t first = (uint64_t)arena + head_bytes(sub_buffers, cpus);
	first = (first + sub_buffer_bytes - 1) / sub_buffer_bytes * sub_buffer_bytes;
	arena->sub_buffers_offset = first - (uint64_t)arena;
	arena->tracing_on = 0;
	arena->tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	arena->mode = GRAFTRACE_MODE_RING;
	struct graftrace_sub_buffer_entry *states = graftrace_arena_states(arena);
	for (uint32_t i = 0; i < sub_buffers; i++)
		states[i].next = i + 1 < sub_buffers ? i + 2 : 0;
	arena->free_head = sub_buffers != 0;
	arena->free_count = sub_buffers;
	__atomic_store_n(&arena->magic, GRAFTRACE_ARENA_MAGIC, __ATOMIC_RELEASE);
	gt_kernel_arena = arena;
}

/* ---- rules of events ---- */

/* What rules count in, and the pool that they stand in. */
#define RULE_WORDS 512u
#define RULE_BYTES (136u << 10) /* also where each later event has a rule */

static uint64_t event_table_bytes(uint32_t events)
{
	return whole_pages((events + 1 + GT_KERNEL_LATER_EVENTS) * sizeof(uint32_t));
}

uint64_t gt_kernel_rules_bytes(uint32_t events, uint64_t hists_bytes)
{
	return whole_pages(RULE_WORDS * sizeof(uint64_t)) + event_table_bytes(events) + RULE_BYTES +
	       whole_pages(hists_bytes);
}

void gt_kernel_rules_init(struct graftrace_arena *arena, void *memory, uint32_t events,
			  uint64_t hists_bytes)
{
	arena->rule_words_offset = (uint64_t)memory - (uint64_t)arena;
	arena->rule_word_count = RULE_WORDS;
	arena->event_table_offset =
		arena->rule_words_offset + whole_pages(RULE_WORDS * sizeof(uint64_t));
	arena->event_count = events + 1 + GT_KERNEL_LATER_EVENTS;
	arena->rules_offset = arena->event_table_offset + event_table_bytes(events);
	arena->rules_bytes = RULE_BYTES;
	arena->hists_offset = arena->rules_offset + RULE_BYTES;
	arena->hists_bytes = whole_pages(hists_bytes);
}

/* ---- threads by number ---- */

static bool is_listed(const uint32_t *numbers, uint32_t number)
{
	for (uint32_t i = 0; i < GRAFTRACE_SELECTED_SLOTS; i++) {
		uint32_t listed = __atomic_load_n(&numbers[i], RELAXED);
		if (listed == 0 || listed == number)
			return listed == number && number != 0;
	}
	return false;
}

/* Of an interrupt the thread decides that it interrupted. */
static bool is_left_out(uint32_t number)
{
	struct graftrace_arena *arena = gt_port_arena();
	uint32_t only = __atomic_load_n(&arena->selected, RELAXED);
	uint32_t except = __atomic_load_n(&arena->left_out, RELAXED);
	if ((only | except) == 0)
		return false;
	const struct graftrace_selected *selected = graftrace_arena_selected(arena);
	return (only && !is_listed(selected->only, number)) ||
	       (except && is_listed(selected->except, number));
}

/* As on Linux, the profiler counts the calls of every thread. Beside a tracer, whose records would be of all
 * threads then, it counts those that are traced. */
static bool counts_all(void)
{
	const struct graftrace_arena *arena = gt_port_arena();
	return __atomic_load_n(&arena->profile, RELAXED) != 0 &&
	       __atomic_load_n(&arena->tracer, RELAXED) == GRAFTRACE_TRACER_NOP;
}

/* A new thread comes into the tables that its creator stands in (function-fork). */
static void follow(struct graftrace_arena *arena, uint32_t number)
{
	struct graftrace_selected *selected = graftrace_arena_selected(arena);
	const struct gt_thread *thread = gt_arch_block();
	const struct gt_context *context = thread == NULL ? suspended_context() : NULL;
	if ((thread == NULL && context == NULL) || number >= GT_KERNEL_INTERRUPT)
		return;
	uint32_t creator = thread != NULL ? thread->tid : context->number;
	if (is_listed(selected->only, creator))
		graftrace_selected_add(selected->only, number);
	if (is_listed(selected->except, creator))
		graftrace_selected_add(selected->except, number);
}

/* ---- contexts ---- */

void gt_kernel_context_init(struct gt_context *context, uint32_t number, uint64_t low,
			    uint64_t high, struct gt_frame *frames, uint32_t frame_count)
{
	for (uint32_t i = 0; i < frame_count; i++)
		frames[i].slot = GT_SLOT_NONE;
	context->number = number;
	context->grows = 0;
	context->running = 0;
	context->writer = 0;
	context->saved_sp = 0;
	context->previous = context->next = NULL;
	context->frames = context->top = frames;
	context->capacity = frame_count;
	context->low = context->win_low = low;
	context->high = context->win_high = high;
	context->known = 1;
	context->interrupted = NULL;
	context->sequence = 0;
	context->said_at = 0;
	context->records = 0;
	context->epoch = 0;
	context->paused = 0;
	context->in_engine = 0;
	context->resume = 0;
	frames[0].slot = high;
	struct graftrace_arena *arena = gt_port_arena();
	context->outside = arena != NULL && arena->graph_only != 0;
	context->graph_turn = __atomic_load_n(&graph_turn, __ATOMIC_ACQUIRE);
	if (arena != NULL && __atomic_load_n(&arena->children_follow, RELAXED) != 0)
		follow(arena, number);
}

/* Notes in a context what the CPU's block has of it. */
static void put_away(struct gt_thread *thread, struct gt_context *context)
{
	context->top = thread->top;
	context->outside = thread->outside & GT_OUTSIDE_GRAPH;
	context->epoch = thread->epoch;
	context->sequence = thread->stream->sequence;
	context->gate_top = thread->gate_top;
	context->running = 0;
}

/* A context goes away, and what was to be said of it was not: whoever takes it up says it. */
static void note_unsaid(struct gt_context *context, uint64_t resume)
{
	if (resume & (GT_RESUME_MISSED | GT_RESUME_DEPTH))
		context->writer = GT_WRITER_UNKNOWN;
}

static inline __attribute__((always_inline)) void take_up(struct gt_thread *thread,
							  struct gt_context *context)
{
	thread->base = context;
	gt_frames_load(thread, context);
	thread->mirror = gt_kernel_mirror(context->low) - context->low;
	if (has_turned(context))
		context->outside = 1;
	thread->unlisted = is_left_out(thread->tid);
	/* of an interrupt its own count decides, whatever it interrupts */
	thread->outside =
		(uint8_t)((context->outside && gt_record_has_roots() ? GT_OUTSIDE_GRAPH : 0) |
			  (context->paused != 0 ? GT_OUTSIDE_PAUSED : 0) |
			  (thread->unlisted && !counts_all() ? GT_OUTSIDE_UNLISTED : 0));
}

/* A straight line that its CPU's suspension interrupted went on with the block's frames, not with
 * the context's: what it popped is marked alone. Not for what may be in a straight line now. */
static inline void drop_popped(struct gt_context *context)
{
	while (context->top != context->frames && context->top->slot == GT_SLOT_NONE)
		context->top--;
}

/* The next record has something to say first. */
static void say_first(struct gt_thread *thread, uint64_t what)
{
	thread->resume |= what;
	thread->mode = 0;
}

/* ---- CPUs ---- */

bool gt_kernel_cpu_start(struct gt_thread *block, uint32_t cpu, struct gt_context *context,
			 const char *name)
{
	struct graftrace_arena *arena = gt_port_arena();
	struct graftrace_stream *stream = gt_stream_claim(arena, 0, cpu);
	if (stream == NULL)
		return false;
	uint32_t i = 0;
	for (; i < sizeof(stream->comm) - 1 && name[i] != 0; i++)
		stream->comm[i] = name[i];
	for (; i < sizeof(stream->comm); i++)
		stream->comm[i] = 0;
	block->stream = stream;
	block->generation = stream->generation;
	block->lost_while_full = 0;
	block->pid = 0;
	block->tid = context->number;
	block->sub_buffer = NULL;
	block->resume = 0;
	block->epoch = gt_epoch_next();
	take_up(block, context);
	context->writer = block->generation;
	__atomic_store_n(&stream->block, (uint64_t)block, __ATOMIC_SEQ_CST);
	block->host = __atomic_load_n(&arena->tracing_on, __ATOMIC_SEQ_CST) == 0;
	gt_kernel_set_gate(block);
	/* said last: from here on the slow half knows the block */
	__atomic_store_n(&block->self, block, __ATOMIC_RELEASE);
	return true;
}

/* ---- switches ---- */

/* Is the context recorded, and does the open sub-buffer take what is said of it? */
static bool can_tell(const struct gt_thread *thread)
{
	return !thread->host && !thread->outside && !thread->unlisted && !thread->full &&
	       thread->sub_buffer != NULL && gt_stream_fits(thread);
}

/* Told where it costs nobody the room for a return; what readers need is said by CONTEXT. */
static bool tell_switch(struct gt_thread *thread, uint32_t from, uint32_t to, uint32_t state)
{
	if (!can_tell(thread))
		return false;
	uint64_t clock = gt_arch_clock();
	/* behind a CLOCK word where one is due: readers take this for the CPU's clock, too */
	uint32_t clock_words = thread->high != clock >> 32 ? 1 + gt_stream_is_function(thread) : 0;
	uint64_t *place = gt_stream_reserve(thread, 5 + clock_words, false);
	if (place == NULL)
		return false;
	if (clock_words != 0) {
		thread->high = (uint32_t)(clock >> 32);
		__atomic_store_n(place,
				 graftrace_special_word(GRAFTRACE_SPECIAL_CLOCK, thread->high),
				 RELAXED);
		place += clock_words;
	}
	uint64_t head =
		graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, GRAFTRACE_EVENT_SWITCH << 16 | 4);
	__atomic_store_n(&place[0], head, RELAXED);
	__atomic_store_n(&place[2], from, RELAXED);
	__atomic_store_n(&place[3], to, RELAXED);
	__atomic_store_n(&place[4], state, RELAXED);
	__atomic_store_n(&place[1], clock, __ATOMIC_RELEASE);
	return true;
}

/* The thread that was switched to. False: it has to be said again. */
static bool say_thread(struct gt_thread *thread, bool known)
{
	if (thread->outside || thread->unlisted || !gt_stream_is_graph(thread))
		return false;
	uint64_t *place = gt_stream_reserve(thread, known ? 1 : 2, false);
	if (place == NULL)
		return false;
	uint64_t depth = gt_frames_depth(thread);
	__atomic_store_n(&place[0], graftrace_special_word(GRAFTRACE_SPECIAL_CONTEXT, thread->tid),
			 RELAXED);
	if (!known)
		__atomic_store_n(&place[1],
				 graftrace_special_word(GRAFTRACE_SPECIAL_RESUMED, (uint32_t)depth),
				 RELAXED);
	thread->said = thread->said_tid = thread->tid;
	return true;
}

/* An interrupt, where readers know its thread. False: its first record has to say it. */
static bool tell_interrupt(struct gt_thread *thread)
{
	if (!can_tell(thread) || !gt_stream_is_graph(thread) || thread->resume != 0 ||
	    thread->said_tid != thread->tid || thread->tight || thread->cur + 8 > thread->hard_end)
		return false;
	uint64_t *place = (uint64_t *)thread->cur;
	thread->cur += 8;
	thread->said = thread->context->number;
	__atomic_store_n(place, graftrace_special_word(GRAFTRACE_SPECIAL_CONTEXT, thread->said),
			 RELAXED);
	return true;
}

void gt_kernel_switch(struct gt_context *next, uint32_t state)
{
	struct gt_thread *thread = gt_arch_block();
	if (thread == NULL || thread->context == next)
		return;
	begin(thread);
	bool told = tell_switch(thread, thread->context->number, next->number, state);
	put_away(thread, thread->context);
	note_unsaid(thread->context, thread->resume);
	bool known = next->writer == thread->generation || next->writer == 0;
	thread->tid = next->number;
	drop_popped(next);
	take_up(thread, next);
	thread->epoch = gt_epoch_next();
	next->writer = thread->generation;
	/* Said at once where the switch was, or the next call has to take the slow half for it. */
	if (told && !thread->resume && say_thread(thread, known))
		gt_stream_settle(thread);
	else
		say_first(thread, GT_RESUME_CONTEXT | (known ? 0 : GT_RESUME_DEPTH));
	end(thread);
}

void gt_kernel_enter(struct gt_context *context, uint64_t rip)
{
	struct gt_thread *thread = gt_arch_block();
	if (thread == NULL)
		return;
	begin(thread);
	struct gt_context *interrupted = thread->context;
	put_away(thread, interrupted);
	context->interrupted = interrupted;
	context->in_engine = gt_kernel_in_recorder(rip);
	context->resume = (uint8_t)thread->resume;
	/* calls that were thrown away are known to readers as open */
	bool known = context->writer == thread->generation;
	drop_popped(context);
	take_up(thread, context);
	thread->epoch = gt_epoch_next();
	context->writer = thread->generation;
	thread->resume &= GT_RESUME_MISSED;
	context->said_at = 0;
	if (context->records && known && tell_interrupt(thread)) {
		context->said_at = (uint32_t)thread->cur;
		gt_stream_settle(thread);
	} else {
		say_first(thread, GT_RESUME_CONTEXT | (known ? 0 : GT_RESUME_DEPTH));
	}
	end(thread);
}

void gt_kernel_leave(void)
{
	struct gt_thread *thread = gt_arch_block();
	if (thread == NULL || thread->context->interrupted == NULL)
		return;
	begin(thread);
	struct gt_context *left = thread->context;
	struct gt_context *interrupted = left->interrupted;
	left->records = thread->said == left->number && (uint32_t)thread->cur != left->said_at;
	/* what did not return (it was thrown away with its stack) is over */
	while (thread->top != left->frames) {
		thread->top->slot = GT_SLOT_NONE;
		thread->top--;
		left->writer = 0;
	}
	put_away(thread, left);
	left->interrupted = NULL;
	take_up(thread, interrupted);
	bool same = interrupted->sequence == thread->stream->sequence;
	/* The epoch says that calls began in this sub-buffer: the interrupt may have opened one. */
	thread->epoch = same ? interrupted->epoch : gt_epoch_next();
	thread->gate_epoch = same ? thread->epoch : ~0u;
	thread->gate_top = interrupted->gate_top;
	note_unsaid(left, thread->resume);
	uint64_t missed = thread->resume & GT_RESUME_MISSED;
	thread->resume = left->resume | missed;
	if (thread->said == left->number) {
		uint64_t word =
			graftrace_special_word(GRAFTRACE_SPECIAL_CONTEXT, interrupted->number);
		/* A push that was interrupted is known to readers, and not yet to the frames: then
		 * its depth is left unsaid. */
		if (!same && !left->in_engine)
			thread->resume |= GT_RESUME_DEPTH;
		if (thread->sub_buffer != NULL && gt_stream_emit(thread, word, true)) {
			thread->said = interrupted->number;
		} else {
			gt_stream_close(thread);
			thread->resume |= GT_RESUME_CONTEXT;
		}
	}
	gt_stream_settle(thread);
	end(thread);
}

bool gt_kernel_enter_nmi(struct gt_context *context, uint64_t rip)
{
	struct gt_thread *thread = gt_arch_block();
	if (thread != NULL && thread->busy != 0)
		return false;
	gt_kernel_enter(context, rip);
	return true;
}

void gt_kernel_pause(void)
{
	uint64_t saved = gt_arch_interrupts_off();
	struct gt_thread *thread = gt_arch_block();
	struct gt_context *context = thread != NULL ? thread->context : suspended_context();
	if (context != NULL)
		context->paused++;
	if (thread != NULL) {
		begin(thread);
		thread->outside |= GT_OUTSIDE_PAUSED;
		end(thread);
	}
	gt_arch_interrupts_restore(saved);
}

void gt_kernel_resume(void)
{
	uint64_t saved = gt_arch_interrupts_off();
	struct gt_thread *thread = gt_arch_block();
	struct gt_context *context = thread != NULL ? thread->context : suspended_context();
	bool over = context != NULL && context->paused != 0 && --context->paused == 0;
	if (thread != NULL && over) {
		begin(thread);
		thread->outside &= (uint8_t)~GT_OUTSIDE_PAUSED;
		end(thread);
	}
	gt_arch_interrupts_restore(saved);
}

bool gt_kernel_mark(const void *bytes, uint32_t count, bool raw)
{
	bool marked = false;
	uint64_t saved = gt_arch_interrupts_off();
	struct gt_thread *thread = gt_arch_block();
	if (thread != NULL && count <= GT_KERNEL_MARK_BYTES &&
	    __atomic_load_n(&gt_port_arena()->tracing_on, RELAXED) != 0) {
		begin(thread);
		marked = gt_record_mark(thread, bytes, count, raw);
		if (!marked)
			__atomic_fetch_add(&thread->stream->lost[GRAFTRACE_LOST_FULL], 1, RELAXED);
		gt_stream_settle(thread);
		end(thread);
	}
	gt_arch_interrupts_restore(saved);
	return marked;
}

/* ---- suspended: no entry is patched, and nobody tells the recorder what runs ---- */

/* So many interrupts may be in a straight line, which looked for room in their own arrays and takes a frame of
 * this one (hot_kernel.S, L): where it is full, one that is taken. The context keeps its own top. */
static void keep_room(struct gt_thread *block, uint32_t interrupts)
{
	const struct gt_context *context = block->context;
	const uint32_t last = context->capacity - 1;
	struct gt_frame *const highest =
		context->frames + (last > interrupts ? last - interrupts : 0);

	if (block->top > highest)
		block->top = highest;
}

void gt_kernel_suspend(struct gt_thread *block, struct gt_context *(*running)(uint64_t address))
{
	struct gt_context *context = block->context;
	running_context = running;
	put_away(block, context);
	uint64_t resume = block->resume;
	uint32_t interrupts = 0;
	for (; context->interrupted != NULL; interrupts++) {
		struct gt_context *interrupted = context->interrupted;
		resume |= context->resume;
		context->interrupted = NULL;
		context = interrupted;
	}
	note_unsaid(context, resume);
	/* A straight line that was interrupted goes on with the frames that it began with. */
	take_up(block, context);
	keep_room(block, interrupts);
	block->mode = 0;
	gt_thread_close_gate(block);
	__atomic_store_n(&block->self, NULL, __ATOMIC_RELEASE);
}

static void wake_context(struct gt_thread *block, struct gt_context *context)
{
	drop_popped(context);
	take_up(block, context);
	context->writer = block->generation;
	block->epoch = gt_epoch_next();
	say_first(block, GT_RESUME_CONTEXT | GT_RESUME_DEPTH);
}

void gt_kernel_wake(struct gt_thread *block, struct gt_context *thread,
		    struct gt_context *interrupt)
{
	block->tid = thread->number;
	block->resume = 0;
	/* whatever was said last: the stop that ends here has no last word */
	block->said = GT_SAID_NOTHING;
	wake_context(block, thread);
	if (interrupt != NULL) {
		put_away(block, thread);
		interrupt->interrupted = thread;
		interrupt->in_engine = 0;
		interrupt->resume = (uint8_t)block->resume;
		wake_context(block, interrupt);
	}
	__atomic_store_n(&block->self, block, __ATOMIC_RELEASE);
	gt_kernel_set_gate(block);
}

/* ---- sub-buffers that end early ---- */

/* As where an interrupt's last word has no room (gt_kernel_leave): a straight line that was
 * interrupted behind its tests finds no place, and takes the slow half. */
void gt_kernel_close(struct gt_thread *block)
{
	if (block->busy != 0)
		return;
	begin(block);
	if (gt_stream_has_words(block)) {
		gt_stream_close(block);
		block->mode = 0;
	}
	end(block);
}

/* ---- settings ---- */

struct gt_thread *gt_port_thread(uint32_t index)
{
	struct graftrace_arena *arena = gt_port_arena();
	if (index >= arena->stream_count)
		return NULL;
	return (struct gt_thread *)__atomic_load_n(&graftrace_arena_streams(arena)[index].block,
						   __ATOMIC_ACQUIRE);
}

/* Writes a byte of every CPU's stop word, after the arena has the new setting. */
static void write_stops(enum graftrace_stop_byte byte, uint8_t value)
{
	struct graftrace_arena *arena = gt_port_arena();
	struct graftrace_stream *streams = graftrace_arena_streams(arena);
	for (uint32_t i = 0; i < arena->stream_count; i++) {
		uint64_t block = __atomic_load_n(&streams[i].block, __ATOMIC_SEQ_CST);
		if (block == 0)
			continue;
		__atomic_store_n((uint8_t *)block + GT_THREAD_STOP + byte, value, __ATOMIC_SEQ_CST);
		/* opened again by its own CPU, whichever setting it was */
		gt_thread_close_gate((struct gt_thread *)block);
	}
}

void gt_kernel_set_tracing_on(bool on)
{
	struct graftrace_arena *arena = gt_port_arena();
	__atomic_store_n(&arena->tracing_on, on, __ATOMIC_SEQ_CST);
	/* a profile goes on: the CPUs read in the arena that tracing is off */
	write_stops(GRAFTRACE_STOP_BYTE_HOST, !on && !arena->profile);
	if (arena->profile)
		write_stops(GRAFTRACE_STOP_BYTE_MODE, 0);
}

void gt_kernel_set_tracer(enum graftrace_tracer tracer)
{
	__atomic_store_n(&gt_port_arena()->tracer, tracer, __ATOMIC_SEQ_CST);
	write_stops(GRAFTRACE_STOP_BYTE_MODE, 0);
}

void gt_kernel_set_max_depth(uint32_t depth)
{
	__atomic_store_n(&gt_port_arena()->max_depth, depth, __ATOMIC_SEQ_CST);
	write_stops(GRAFTRACE_STOP_BYTE_MODE, 0);
}

void gt_kernel_set_threshold(uint64_t ticks)
{
	__atomic_store_n(&gt_port_arena()->threshold_ticks, ticks, __ATOMIC_SEQ_CST);
	write_stops(GRAFTRACE_STOP_BYTE_MODE, 0);
}

void gt_kernel_set_graph_only(bool graph_only)
{
	if (__atomic_exchange_n(&gt_port_arena()->graph_only, graph_only, __ATOMIC_SEQ_CST) ==
	    graph_only)
		return;
	__atomic_fetch_add(&graph_turn, 1, __ATOMIC_SEQ_CST);
	write_stops(GRAFTRACE_STOP_BYTE_MODE, 0);
}

void gt_kernel_set_func_stack(bool on)
{
	__atomic_store_n(&gt_port_arena()->func_stack, on, __ATOMIC_SEQ_CST);
	write_stops(GRAFTRACE_STOP_BYTE_MODE, 0);
}

void gt_kernel_profile_table(uint32_t cpu, struct graftrace_profile_entry **table, uint32_t pages)
{
	struct gt_thread *thread = gt_port_thread(cpu);
	if (thread == NULL)
		return;
	thread->profile = table;
	/* last: the straight line looks at `profile` if this is larger than its index */
	__atomic_store_n(&thread->profile_pages, pages, __ATOMIC_RELEASE);
}

void gt_kernel_set_profile(bool on)
{
	struct graftrace_arena *arena = gt_port_arena();
	__atomic_store_n(&arena->profile, on, __ATOMIC_SEQ_CST);
	write_stops(GRAFTRACE_STOP_BYTE_HOST, !on && arena->tracing_on == 0);
	if (on)
		write_stops(GRAFTRACE_STOP_BYTE_FULL, 0);
	write_stops(GRAFTRACE_STOP_BYTE_MODE, 0);
}
