/* SPDX-License-Identifier: MIT */
/*
 * Following one thread's records and its times off the CPU side by side, for readers that go
 * through the records in order. What costs something is done once for each time off the CPU; a
 * record costs one comparison.
 *
 *	if (record->clock >= follow.until)
 *		ticks = gt_off_cpu_move(&follow, target, tid, record->clock);
 *
 * `ticks` were spent off the CPU between the record before and this one: in the call that was the
 * innermost then, for a thread records nothing while it is off.
 */
#ifndef GT_CORE_TRACE_OFF_CPU_H
#define GT_CORE_TRACE_OFF_CPU_H

#include <stdbool.h>
#include "core/trace/decode.h"
#include "core/trace/target.h"

/* All zero to begin with. */
struct gt_off_cpu_follow {
	uint64_t until;		/* clock from which on gt_off_cpu_move is to be called */
	struct gt_off_cpu time; /* the next one */
	bool known;		/* time is set; records before `until` were made on time.cpu */
};

/* Nothing known, or nothing yet: it is asked again after so many ticks (a millisecond or so). */
#define GT_OFF_CPU_AGAIN (1ull << 21)

static __attribute__((noinline, unused)) uint64_t gt_off_cpu_move(struct gt_off_cpu_follow *follow,
								  struct gt_target *target,
								  uint32_t tid, uint64_t clock)
{
	uint64_t before = follow->time.before;
	bool knew = follow->known;
	int error = gt_target_find_off_cpu(target, tid, clock, &follow->time);
	follow->known = error == GT_OK;
	if (!follow->known) {
		follow->until = target->switches != NULL ? clock + GT_OFF_CPU_AGAIN : UINT64_MAX;
		return 0;
	}
	/* One that has no end yet is asked for again once it has begun. */
	follow->until = follow->time.to < UINT64_MAX ? follow->time.to : follow->time.from;
	if (follow->until <= clock)
		follow->until = clock + 1;
	return knew ? follow->time.before - before : 0;
}

/* Makes the ticks the time of a callee of that call: its self time is what is left, on the CPU.
 * Right behind gt_decode_next, which gave the record. */
static inline void gt_off_cpu_take_out(struct gt_decode *decode, struct gt_record *record,
				       uint64_t ticks)
{
	struct gt_decode_frame *frame;

	if (record->kind == GT_RECORD_RETURN) {
		record->children += ticks;
		return;
	}
	if (record->kind == GT_RECORD_CONTEXT || !record->depth)
		return;
	frame = gt_decode_frame(decode, record->depth - 1);
	if (frame != NULL)
		frame->children += ticks;
}

/*
 * The same for a kernel, whose threads' records come from all CPUs, with those of interrupts
 * between. All zero but `memory` to begin with; without memory nothing is known of some threads.
 */
struct gt_off_cpu_threads {
	struct gt_memory memory;
	struct gt_off_cpu_thread *slots; /* hashed by number, open addressing */
	uint32_t count, room;
};

/* Ticks that the record's thread was off the CPU before it. Records come in their order. */
uint64_t gt_off_cpu_take(struct gt_off_cpu_threads *threads, struct gt_target *target,
			 const struct gt_record *record);
void gt_off_cpu_threads_fini(struct gt_off_cpu_threads *threads);

#endif
