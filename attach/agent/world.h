/* SPDX-License-Identifier: MIT */
/*
 * Changes that need all threads of a process to stand still: the world is stopped, threads are
 * moved out of what is replaced, the bytes are written, the world goes on. What is long (planning,
 * stubs) has been done before.
 */
#ifndef GT_ATTACH_WORLD_H
#define GT_ATTACH_WORLD_H

#include "attach/process/threads.h"
#include "attach/agent/tracee.h"

/*
 * Stops all threads as gt_threads_stop does; while one of them sleeps in the kernel where no stop
 * reaches it, lets all go and tries again, for limit_ms at most. Then: GT_EBUSY, with none stopped.
 */
int gt_world_stop(struct gt_process *process, struct gt_stopped_threads *threads, int limit_ms,
		  struct gt_message *message);

/* GT_ENOTSUP: this base of %gs, of one of the process's threads before it has the agent's, is the
 * program's own. */
int gt_world_check_gs(struct gt_process *process, uint64_t gs_base, struct gt_message *message);

/* A mapping whose words are looked at: those of [low, end) where signal frames and return addresses
 * can stand. */
struct gt_frame_place {
	uint64_t rip_at; /* address of the saved instruction pointer */
	uint64_t rip;	 /* … and what it is */
};

/*
 * Calls back for each signal frame on the stack that `sp` lies on, upwards from there, and on those
 * stacks that such frames go back to. maps: of now. Returns what the callback returns if it is not
 * 0; GT_ENOMEM.
 */
int gt_world_signal_frames(const struct gt_process *process, const struct gt_maps *maps,
			   uint64_t sp, bool (*wants)(const void *data, uint64_t rip),
			   int (*each)(void *data, const struct gt_frame_place *place), void *data);
/*
 * The same for a stopped thread, from its stack pointer on. One that is in the C library's way back from a handler (to
 * which a killed host's remote call leads, too) has its frame a word lower: the handler's `ret` has taken the first
 * word.
 */
int gt_world_thread_frames(const struct gt_process *process, const struct gt_maps *maps,
			   const struct user_regs_struct *registers,
			   bool (*wants)(const void *data, uint64_t rip),
			   int (*each)(void *data, const struct gt_frame_place *place), void *data);

#endif
