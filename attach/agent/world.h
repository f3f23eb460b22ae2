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
 * reaches it, or is traced by a debugger, lets all go and tries again, for limit_ms at most. Then: GT_EBUSY or
 * GT_EPERM, with none stopped.
 */
int gt_world_stop(struct gt_process *process, struct gt_stopped_threads *threads, int limit_ms,
		  struct gt_message *message);

/* GT_ENOTSUP: this base of %gs, of one of the process's threads before it has the agent's, is the
 * program's own. */
int gt_world_check_gs(struct gt_process *process, uint64_t gs_base, struct gt_message *message);

/*
 * Whether a thread runs on its own stack, which nobody else uses, and the address is on it: the first
 * thread's, or one that ends where the C library has put the thread's block (what lies behind that in the
 * same mapping is something else; below it is a guard page). maps: of now.
 */
bool gt_world_is_own_stack(const struct gt_process *process, const struct gt_maps *maps, pid_t tid,
			   const struct user_regs_struct *registers, uint64_t address);

/* Whether the code there is the C library's way back from a handler. */
bool gt_world_is_restorer(const struct gt_process *process, const struct gt_maps *maps,
			  uint64_t address);

/* eflags of a program: reserved bit 1 is set, and interrupts are on; above bit 21 nothing is. */
#define GT_WORLD_FLAGS_ALWAYS 0x202u
#define GT_WORLD_FLAGS_BITS   22
/* cs, gs and fs, ss: those of every 64-bit program; kernels before 4.6 leave ss out. */
#define GT_WORLD_SEGMENTS	0x002b000000000033ull
#define GT_WORLD_SEGMENTS_NO_SS 0x33ull

/* Whether these can be eflags and segments of a program as the kernel saves them, one behind the other, behind rip. */
static inline bool gt_world_is_state(uint64_t flags, uint64_t segments)
{
	return (segments == GT_WORLD_SEGMENTS || segments == GT_WORLD_SEGMENTS_NO_SS) &&
	       (flags & GT_WORLD_FLAGS_ALWAYS) == GT_WORLD_FLAGS_ALWAYS &&
	       flags >> GT_WORLD_FLAGS_BITS == 0;
}

/* What the kernel has saved for a handler. */
struct gt_frame_place {
	uint64_t rip_at; /* address of the saved instruction pointer */
	uint64_t rip;	 /* … and what it is */
	uint64_t rsp;	 /* the stack pointer beside it */
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
