/* SPDX-License-Identifier: MIT */
/*
 * The context switches of a program's threads as a table: what a session collects from the kernel
 * and what a recording holds, as targets answer for it (struct gt_switch_ops). From
 * the switches come the times that each thread was off the CPU, with the CPUs before and behind.
 *
 * Switches are added in order of their clocks, but for a little disorder between threads; a thread's own
 * that run back count, for its times off the CPU, as of its last one's clock. Clocks are in ticks, as struct
 * gt_switch has them. Memory is the caller's allocator's: 16 bytes a switch and 32 a time off the CPU. One
 * caller at a time, readers too: the table has no lock.
 */
#ifndef GT_CORE_TRACE_SWITCHES_H
#define GT_CORE_TRACE_SWITCHES_H

#include <stdbool.h>
#include <stdint.h>
#include "core/trace/memory.h"
#include "core/trace/target.h"

struct gt_switch_thread;

struct gt_switches {
	struct gt_memory memory;
	uint64_t start; /* since when they are known */
	uint64_t known; /* until when: later switches may not be in the table yet */
	uint64_t lost;	/* switches that there was no memory for; the owner adds those that the
			 * kernel did not tell */
	/* All, in the order in which they came: `first` is the number of all[0]. */
	struct gt_switch *all;
	uint64_t first;
	uint32_t count, room;
	/* Switches in `all`, and times of a thread, at most: then the older half of them goes. 0 = no limit */
	uint32_t most;
	/* Nobody asks for times: threads that are gone leave nothing behind, and what was read can
	 * be forgotten. Set by the owner after init (which clears it); until gt_switches_find_times. */
	bool in_order_only;
	struct gt_switch_thread *threads; /* hashed by number, open addressing */
	uint32_t thread_count, thread_room;
};

/* start: the clock from which on every switch comes. `memory` is copied. No errors: nothing is taken yet. */
void gt_switches_init(struct gt_switches *switches, const struct gt_memory *memory, uint64_t start,
		      uint32_t most);
/* Frees everything. No other call but gt_switches_init may follow. */
void gt_switches_fini(struct gt_switches *switches);

/* From `start` on every switch comes: there are times off the CPU from then on, and those before are
 * forgotten. Older switches stay, to be read; `lost` stays. Do not call it while in_order_only is set and switches
 * are there: gt_switches_find_times() could find times from before `start`. */
void gt_switches_restart(struct gt_switches *switches, uint64_t start);

/* Adds a copy. Without memory for it, or for the time off the CPU that it ends, one more is lost. */
void gt_switches_add(struct gt_switches *switches, const struct gt_switch *added);

/* Somebody asks for times from now on: they are found from the switches that are still there, and
 * `start` is the oldest one's clock if some are not. What there is no memory for counts as lost. Does
 * nothing if times are found already. */
void gt_switches_find_times(struct gt_switches *switches);

/* All readers have read what has a lower number than that: it need not stay, unless somebody asks for
 * times. It goes once it is half of the table. */
void gt_switches_forget(struct gt_switches *switches, uint64_t before);

/* As the target's operations (struct gt_switch_ops), but the caller's lock is held. off_cpu: 0 or GT_ENOENT;
 * where no time ends behind `after`, `to` is UINT64_MAX, for the owner to lower. While in_order_only is set no thread
 * is known. */
int gt_switches_off_cpu(const struct gt_switches *switches, uint32_t tid, uint64_t after,
			struct gt_off_cpu *time);
uint32_t gt_switches_read(const struct gt_switches *switches, uint64_t *cursor,
			  struct gt_switch *out, uint32_t room);

#endif
