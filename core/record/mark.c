/* SPDX-License-Identifier: MIT */
/*
 * Marks in a kernel's trace (trace_marker): an event of the CPU's own stream, written with
 * interrupts off, as the slow half works (gt_kernel_mark in kernel.c). An NMI may come between any
 * two instructions.
 */
#include "core/record/arch.h"
#include "core/record/kernel.h"

#define RELAXED __ATOMIC_RELAXED

/* A sub-buffer of the kind that the tracer writes; whichever is open where it writes none. */
static bool is_ready(struct gt_thread *thread)
{
	gt_stream_choose(thread);
	if (thread->chosen == GT_MODE_NOP || thread->chosen == GT_MODE_PROFILE)
		return thread->sub_buffer != NULL || gt_stream_open(thread);
	return gt_stream_fits(thread) || gt_stream_open(thread);
}

/* Eight bytes of the text, zeros behind its end. */
static uint64_t word_at(const uint8_t *bytes, uint32_t count, uint32_t at)
{
	uint64_t word = 0;
	for (uint32_t i = 0; i < 8 && at + i < count; i++)
		word |= (uint64_t)bytes[at + i] << 8 * i;
	return word;
}

bool gt_record_mark(struct gt_thread *thread, const uint8_t *bytes, uint32_t count, bool raw)
{
	/* the head, the clock, of bytes their number, and at least one zero behind them: an even
	 * number of words, for the function tracer's */
	uint32_t words = (2 + raw + (count + 8) / 8 + 1) & ~1u;
	uint32_t type = raw ? GRAFTRACE_EVENT_MARKER_RAW : GRAFTRACE_EVENT_MARKER;
	if (!is_ready(thread) || !gt_record_announce(thread))
		return false;
	uint64_t *place = gt_stream_reserve(thread, words, false);
	if (place == NULL)
		return false;
	__atomic_store_n(&place[1], gt_arch_clock(), RELAXED);
	if (raw)
		__atomic_store_n(&place[2], count, RELAXED);
	for (uint32_t i = 2 + raw; i < words; i++)
		__atomic_store_n(&place[i], word_at(bytes, count, (i - 2 - raw) * 8), RELAXED);
	/* last: readers stop at the first word that is zero */
	__atomic_store_n(&place[0],
			 graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, type << 16 | (words - 1)),
			 __ATOMIC_RELEASE);
	return true;
}
