/* SPDX-License-Identifier: MIT */
/*
 * Contexts that nobody runs now: a signal interrupted a coroutine, its handler switched to another
 * one (swapcontext, preemptive schedulers, assembly of the program's own), and where it will go on stands in
 * memory that is no stack of a thread. Where that is within bytes that become a jump, it has to be moved as
 * threads are.
 *
 * All of a process's memory has to be looked through for them, which takes too long with the world stopped.
 * So that is done while the process runs, for the places where such registers stand or once stood; with the
 * world stopped these are looked at anew. Found so is all that was suspended before the look began: who is
 * resumed meanwhile and suspended anew is it on the same stack. Who was suspended for the first time since, on
 * a stack that no signal had come to before, is found by a second look in the stop, through less memory.
 */
#ifndef GT_ATTACH_SUSPENDED_H
#define GT_ATTACH_SUSPENDED_H

#include "attach/agent/world.h"

/* A piece of memory. frame: where a signal's frame was seen in it, 0: nowhere. */
struct gt_suspended_place {
	uint64_t at;
	uint64_t frame;
};

/* By address. All zero: none. */
struct gt_suspended_places {
	struct gt_suspended_place *all;
	size_t count;
	size_t room;
};

/* Whether the process is known for such contexts: one of its objects switches contexts by the C library. Symbols are
 * looked up once for each file. Before the process is stopped. */
bool gt_suspended_known(const struct gt_tracee *tracee);

/*
 * Looks through the process's own writable memory for registers that the kernel has saved, while the process
 * runs: small mappings first, 1 GB at most (some 0.3 s). *places gets where they are, instead of what was
 * there; gt_suspended_free frees. GT_ENOMEM, GT_EGONE.
 */
int gt_suspended_look(const struct gt_process *process, struct gt_suspended_places *places);
void gt_suspended_free(struct gt_suspended_places *places);

/*
 * Calls back for registers in these places whose instruction pointer is wanted and whose stack pointer lies in
 * writable memory, if they are a signal's frame on that stack; copies: wherever they stand (what is no frame
 * may be a note of a profiler's). What was left over from a handler that has returned is found as well.
 * Where a program has such contexts (copies, or a frame was seen where none of the threads runs), the rest
 * of its memory is looked through as well: what is resident, small mappings first, 128 MB at most (some 30 ms).
 * threads: all of the process; NULL: only the places. It may call back twice for one place.
 * With the world stopped; maps: of now. Returns what the callback returns if it is not 0; GT_ENOMEM.
 */
int gt_suspended_each(const struct gt_process *process, const struct gt_maps *maps,
		      const struct gt_suspended_places *places,
		      const struct gt_stopped_threads *threads, bool copies,
		      bool (*wants)(const void *data, uint64_t rip),
		      int (*each)(void *data, const struct gt_frame_place *place), void *data);

/* Whether the place is within a signal's frame on the stack that it leads to. */
bool gt_suspended_is_frame(const struct gt_maps *maps, const struct gt_frame_place *place);

#endif
