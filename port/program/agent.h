/* SPDX-License-Identifier: MIT */
/*
 * The agent's own seams: process-wide state and what its files offer each other. Everything here
 * runs inside the traced program, with no libc, and (but for hooks) with signals masked.
 */
#ifndef GT_PORT_PROGRAM_AGENT_H
#define GT_PORT_PROGRAM_AGENT_H

#include "core/record/recorder.h"

/* What the host fills (agent.c places it in the image). */
extern struct graftrace_agent_state gt_agent_state __attribute__((visibility("hidden")));

/* Registers of a hooked function's caller, as gt_glue_hook lays them out. */
struct gt_hook_frame {
	uint64_t rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11, rbx, rbp;
	uint64_t stub;
	uint64_t site;
	uint64_t return_address; /* its address + 8 is the stack pointer after the return */
};

/* What the slow half needs of the program's stack at most, with signals masked
 * (tests/checks/test_stack.py adds it up). */
#define GT_SLOW_STACK_BYTES 1280

/* Masks every signal of this thread; the old mask goes to *saved. Where the stack has no room for
 * what follows, the page fault comes here. */
void gt_signals_mask(uint64_t *saved);
void gt_signals_restore(const uint64_t *saved);

extern struct gt_thread gt_null_block __attribute__((visibility("hidden")));

/* threads.c */
/* The valid block of the running thread, made if it has none. NULL: none can be had. */
struct gt_thread *gt_threads_current(void);
/* The block that %gs leads to, if it is the running thread's, or says that the thread is left out
 * (gt_thread.host); NULL: the other two have to look for one. Signals need not be masked. */
struct gt_thread *gt_threads_at_hand(void);
/* The same, but never makes one. */
struct gt_thread *gt_threads_try_current(void);
uint64_t gt_threads_pointer(void); /* %fs:0 */
/* The running thread makes another one. Signals masked. What the new one inherits must not be the
 * block of a thread that may have ended: by its creator's stack it could have that one's thread
 * pointer, too, and would be taken for it. */
void gt_threads_before_new(void);
/* A block for a child that runs beside the running thread with its thread pointer, or NULL: the
 * thread has none itself, then nobody is taken for it. Whoever has it is not traced; any number
 * may, since nobody writes to it. Signals masked. */
struct gt_thread *gt_threads_left_out_block(void);
/* In that child. */
void gt_threads_leave_out(struct gt_thread *block);
/* Before the lock of port.h is taken by who may not have a block: a fork's child that nobody has
 * told of takes its locks back. Signals masked. */
void gt_threads_tell_of_fork(void);
/* Whether this is a child that runs in its parent's memory (vfork, posix_spawn). */
bool gt_threads_is_vfork_child(void);

/* memory.c: for compilers, which emit calls of them on their own */
void *memset(void *memory, int value, size_t bytes);
void *memcpy(void *restrict to, const void *restrict from, size_t bytes);

/* memory.c: the end of the agent's mapping that holds `address`, 0: it is in none. Takes no lock. */
uint64_t gt_memory_end(uint64_t address);

/* mirror.c */
/* Reads bytes that may not be mapped. False: not all of them can be read. */
bool gt_peek_bytes(uint64_t address, void *bytes, uint64_t count);
void gt_mirror_close(uint64_t low, uint64_t high);

/* locked.c: mlockall(flags), about to be called. True: it is done; false: call it with *flags. */
#define GT_MCL_CURRENT 1
#define GT_MCL_FUTURE  2
#define GT_MCL_ONFAULT 4
bool gt_locked_all(uint64_t *flags);
/* Whether what is mapped from now on is locked in RAM, and may be unlocked by the agent. */
bool gt_locks_later(void);
/* Memory that nobody may touch yet need not be in RAM, whatever mlockall has said. */
void gt_locked_give_free(void *memory, uint64_t bytes);

/* lock.c: with signals masked. A lock of zeroes is free. */
struct gt_lock {
	/* Its owner's thread number; beside it the kernel's bit: somebody lends a priority. 0: free. */
	uint32_t word;
	uint32_t sleepers; /* 1: others may sleep on `wakes` */
	uint32_t wakes;	   /* changes whenever one of them is to look again */
};

void gt_lock(struct gt_lock *lock);
void gt_unlock(struct gt_lock *lock);
/* In a fork's child, whose owner is not here. */
void gt_lock_reset(struct gt_lock *lock);
/* memory.c: all of them but claim_child's, which fork wipes. */
void gt_locks_forked(void);

/* A page that fork wipes in the child: enum graftrace_fork_mark, then locks that the child finds free (agent.ld). */
extern uint64_t gt_image_fork[] __attribute__((visibility("hidden")));

/* Whether the process has entered a sandbox that may not bear the agent's system calls: it makes
 * none from then on, and what needs one is not recorded. */
static inline bool gt_agent_sandboxed(void)
{
	return __atomic_load_n(&gt_agent_state.sandboxed, __ATOMIC_RELAXED) != 0;
}

/* mail.c: posts; with wait_ms > 0 waits that long at most for the answer, and returns it (0: none).
 */
uint64_t gt_mail_send(uint32_t kind, uint64_t argument, uint32_t wait_ms);
/* The child of a fork, process pid: letters of threads that are not here were their own process's. */
void gt_mail_forked(uint32_t pid);

#endif
