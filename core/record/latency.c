/* SPDX-License-Identifier: MIT */
/*
 * Latencies: see latency.h. Interrupts are off in all of it but preemption's edges, which switch them
 * off. An NMI may come anywhere, and changes nothing of this: where it comes, interrupts are off
 * already.
 *
 * Races: a case is told by a count that is odd while it is written (readers copy and look again); one
 * CPU at a time writes, under a lock that another one does not wait for: of two that end at the same
 * moment the second is left out.
 */
#include "core/record/latency.h"
#include "core/record/arch.h"
#include "core/record/event.h"
#include "core/record/kernel.h"
#include "core/record/port.h"

#define RELAXED __ATOMIC_RELAXED
#define CPUS	64u
#define HELD \
	64u /* sub-buffers of a case at most, and a quarter of the ring: what lies before is not kept */

/* By stream; its CPU alone writes. */
struct measured {
	uint32_t off; /* kinds that are off, as far as edges told */
	uint32_t measuring;
	uint64_t sequence; /* of the sub-buffer in which it began */
	struct graftrace_latency_edge from;
};

static struct measured measured[CPUS];
static uint32_t kinds;
static uint64_t longest, threshold;
static uint32_t lock;
static uint32_t keepers; /* who reads the case */

static uint32_t turn; /* odd: `worst` is being written */
static struct graftrace_latency worst;
/* Their states' words while they are held. */
static struct {
	uint32_t index;
	uint64_t word;
} held[HELD];
static uint32_t held_count;

/* ---- sub-buffers of the worst case ---- */

static void release_held(struct graftrace_arena *arena)
{
	struct graftrace_sub_buffer_entry *states = graftrace_arena_states(arena);
	for (uint32_t i = 0; i < held_count; i++) {
		uint64_t word = held[i].word;
		uint64_t full =
			graftrace_state_word(GRAFTRACE_SUB_BUFFER_FULL, graftrace_word_stream(word),
					     graftrace_word_sequence(word));
		__atomic_compare_exchange_n(&states[held[i].index].word, &word, full, false,
					    __ATOMIC_ACQ_REL, RELAXED);
	}
	held_count = 0;
}

static void hold(struct graftrace_arena *arena, uint32_t index, uint64_t full)
{
	struct graftrace_sub_buffer_entry *states = graftrace_arena_states(arena);
	uint64_t reading =
		graftrace_state_word(GRAFTRACE_SUB_BUFFER_READING, graftrace_word_stream(full),
				     graftrace_word_sequence(full));
	if (held_count == HELD || held_count >= arena->sub_buffer_count / 4 ||
	    !__atomic_compare_exchange_n(&states[index].word, &full, reading, false,
					 __ATOMIC_ACQ_REL, RELAXED))
		return;
	held[held_count].index = index;
	held[held_count].word = reading;
	held_count++;
}

/* The CPU's sub-buffers from `sequence` on, of which the last is `last`. */
static void hold_from(struct gt_thread *thread, uint64_t sequence, uint32_t last)
{
	struct graftrace_arena *arena = gt_port_arena();
	const struct graftrace_sub_buffer_entry *states = graftrace_arena_states(arena);
	uint32_t stream = (uint32_t)(thread->stream - graftrace_arena_streams(arena));
	uint64_t end = thread->stream->sequence;
	if (end == 0 || sequence >= end)
		return;
	hold(arena, last, graftrace_state_word(GRAFTRACE_SUB_BUFFER_FULL, stream, end - 1));
	if (sequence + 1 == end)
		return;
	for (uint32_t i = 0; i < arena->sub_buffer_count; i++) {
		uint64_t word = __atomic_load_n(&states[i].word, RELAXED);
		if (graftrace_word_state(word) == GRAFTRACE_SUB_BUFFER_FULL &&
		    graftrace_word_stream(word) == stream &&
		    graftrace_word_sequence(word) >= sequence)
			hold(arena, i, word);
	}
}

/* ---- edges ---- */

static uint64_t open_sequence(const struct gt_thread *thread)
{
	uint64_t next = thread->stream->sequence;
	return thread->sub_buffer != NULL && next != 0 ? next - 1 : next;
}

static bool is_new_worst(uint64_t ticks)
{
	return threshold != 0 ? ticks >= threshold : ticks > __atomic_load_n(&longest, RELAXED);
}

static void take(struct gt_thread *thread, uint32_t cpu, const struct measured *from,
		 const struct graftrace_latency_edge *to)
{
	uint64_t ticks = to->clock - from->from.clock;
	if (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		return;
	if (is_new_worst(ticks) && thread->busy == 0 && keepers == 0) {
		uint32_t last = thread->sub_index;
		gt_kernel_close(thread);
		release_held(gt_port_arena());
		hold_from(thread, from->sequence, last);
		__atomic_store_n(&turn, turn + 1, RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		worst.number++;
		worst.cpu = cpu;
		worst.tid = thread->tid;
		worst.from = from->from;
		worst.to = *to;
		__atomic_store_n(&turn, turn + 1, __ATOMIC_RELEASE);
		__atomic_store_n(&longest, ticks, RELAXED);
	}
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static void measure(struct gt_thread *thread, uint32_t kind, bool off,
		    const struct graftrace_latency_edge *edge)
{
	uint32_t cpu = (uint32_t)(thread->stream - graftrace_arena_streams(gt_port_arena()));
	if (cpu >= CPUS)
		return;
	struct measured *mine = &measured[cpu];
	uint32_t was = mine->off & kinds;
	mine->off = off ? mine->off | kind : mine->off & ~kind;
	uint32_t is = mine->off & kinds;
	if (was == 0 && is != 0) {
		mine->from = *edge;
		mine->sequence = open_sequence(thread);
		mine->measuring = 1;
	} else if (was != 0 && is == 0 && mine->measuring) {
		mine->measuring = 0;
		if (__atomic_load_n(&gt_port_arena()->tracing_on, RELAXED) != 0 &&
		    is_new_worst(edge->clock - mine->from.clock))
			take(thread, cpu, mine, edge);
	}
}

static uint64_t caller_of(const void *frame)
{
	uint64_t slot = (uint64_t)frame + 8, caller = *(const uint64_t *)slot;
	return gt_port_is_stub_return(caller) ? *(const uint64_t *)gt_kernel_mirror(slot) : caller;
}

void gt_latency_edge(const struct graftrace_kernel_event *event, uint32_t kind, bool off,
		     const void *frame, uint64_t address)
{
	uint64_t saved = gt_arch_interrupts_off();
	struct gt_thread *thread = gt_arch_block();
	struct graftrace_latency_edge edge = {
		.clock = gt_arch_clock(),
		.address = address != 0 ? address : (uint64_t)__builtin_return_address(0),
		.caller = caller_of(frame)
	};
	if (thread != NULL) {
		edge.state =
			gt_port_state() |
			(kind == GRAFTRACE_LATENCY_IRQS || !gt_arch_interrupts_were_on(saved)
				 ? GRAFTRACE_STATE_IRQS_OFF
				 : 0) |
			(thread->context->number >= GT_KERNEL_INTERRUPT ? GRAFTRACE_STATE_HARDIRQ
									: 0);
		if (event->wanted & GRAFTRACE_EVENT_MEASURED)
			measure(thread, kind, off, &edge);
	}
	gt_arch_interrupts_restore(saved);
	if (event->wanted & GRAFTRACE_EVENT_RECORDED) {
		const uint64_t values[] = { edge.address, edge.caller };
		graftrace_event_record(event, values);
	}
}

/* ---- settings ---- */

void gt_latency_measure(uint32_t wanted)
{
	release_held(gt_port_arena());
	for (uint32_t i = 0; i < CPUS; i++)
		measured[i] = (struct measured){ 0 };
	worst = (struct graftrace_latency){ 0 };
	longest = 0;
	kinds = wanted;
}

void gt_latency_set_max(uint64_t ticks)
{
	__atomic_store_n(&longest, ticks, RELAXED);
}

uint64_t gt_latency_max(void)
{
	return __atomic_load_n(&longest, RELAXED);
}

void gt_latency_set_threshold(uint64_t ticks)
{
	__atomic_store_n(&threshold, ticks, RELAXED);
}

void gt_latency_keep(bool keep)
{
	uint64_t saved = gt_arch_interrupts_off();
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		;
	keepers += keep ? 1 : -1u;
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	gt_arch_interrupts_restore(saved);
}

bool gt_latency_worst(struct graftrace_latency *out)
{
	uint32_t before, after;
	do {
		before = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
		*out = worst;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		after = __atomic_load_n(&turn, RELAXED);
	} while (before & 1 || before != after);
	return out->number != 0;
}
