/* SPDX-License-Identifier: MIT */
/*
 * What the recorder needs of the program or kernel that it works in. Bound at link time: one
 * recorder a target.
 *
 * Unless it says otherwise, each is called from the slow half only: on whichever CPU and stack made
 * a traced call or returned from one (or on the CPU's slow_stack), with interrupts off (in a
 * program: signals masked) by the port's own glue before it, and never from an NMI that found the
 * slow half at work. None may call a traced function, wait, take a lock that is held where
 * something traced is called, or use more than 200 bytes of stack.
 *
 * A kernel defines those for which it has something to do: core/record/port_defaults.c has weak ones
 * of the others.
 */
#ifndef GT_CORE_RECORD_PORT_H
#define GT_CORE_RECORD_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/arena.h>

struct gt_context;
struct gt_thread;

#ifdef GT_PROGRAM /* port/program */
/* The arena that this recorder writes to. From anywhere. */
struct graftrace_arena *gt_port_arena(void);
/* Whether a signal handler runs on this thread's alternate stack, and that stack's bounds (high:
 * behind it). Example: gt_port_alternate_stack in port/program/threads.c, by sigaltstack. */
bool gt_port_alternate_stack(uint64_t *low, uint64_t *high);
/* Whether the host is there to be waited for. Example: gt_port_listens in port/program/mail.c. */
bool gt_port_listens(struct graftrace_arena *arena);
#else
/* A kernel's, and not its to supply: what gt_kernel_arena_init was given last; NULL before. Not a
 * call, for the slow half asks at each step. From anywhere. */
extern struct graftrace_arena *gt_kernel_arena __attribute__((visibility("hidden")));

static inline struct graftrace_arena *gt_port_arena(void)
{
	return gt_kernel_arena;
}

/* Kernels name their stacks. */
static inline bool gt_port_alternate_stack(uint64_t *low, uint64_t *high)
{
	*low = *high = 0;
	return false;
}

static inline bool gt_port_listens(struct graftrace_arena *arena)
{
	return __atomic_load_n(&arena->host_alive, __ATOMIC_RELAXED) != 0;
}
#endif

/* Zeroed memory, at least 8-byte aligned, or NULL. Never moves. In a kernel the library answers NULL:
 * contexts and frames are the kernel's own. Example: gt_port_allocate in port/program/memory.c, by mmap. */
void *gt_port_allocate(size_t bytes);
/* Gives back what gt_port_allocate gave, with the same size. Not in kernels. Example:
 * gt_port_release in port/program/memory.c. */
void gt_port_release(void *memory, size_t bytes);

/* Makes [low, high) of the stack have its mirror (both multiples of 64 KiB). False: cannot be had,
 * which the library answers in a kernel, where each stack has its own from the start. Example:
 * gt_port_mirror_open in core/record/port_defaults.c. */
bool gt_port_mirror_open(uint64_t low, uint64_t high);

/* Waits at most milliseconds until arena->free_futex is no longer `seen`. May return early. Not in
 * kernels: only a recording by another process (GRAFTRACE_MODE_DRAIN) waits. Example: gt_port_wait
 * in port/program/mail.c, by futex. */
void gt_port_wait(struct graftrace_arena *arena, uint32_t seen, uint32_t milliseconds);
/* Tells the reading side that there is work: a sub-buffer was closed or is wanted, and half of the
 * ring is used. Never blocks; nothing is lost where it does nothing. Example: gt_port_ring_doorbell
 * in port/unikernel/trace_live.c leaves a note for the next interrupt. */
void gt_port_ring_doorbell(struct graftrace_arena *arena);

/* The block of the index-th thread of this process, running or not, or NULL behind the last: for
 * those who stop recording everywhere. Blocks are never unmapped. A kernel's is in the library, and
 * gives the CPUs' that have started. From anywhere. Example: gt_port_thread in
 * core/record/kernel.c. */
struct gt_thread *gt_port_thread(uint32_t index);
/* A trigger (a command in set_ftrace_filter) has acted: what is left of it to do is the reading
 * side's (enum graftrace_trigger_action). A program waits for it where the ring must not change
 * meanwhile (SNAPSHOT, DUMP), half a second at most; a kernel only notes it
 * (gt_arena_control_note): its thread does the rest. Example: gt_port_trigger in
 * port/unikernel/trace.c. */
void gt_port_trigger(uint32_t action, uint32_t function, uint64_t clock, uint64_t took);

/* An event happens that a histogram's action has made: all that its rules say is done. From where events
 * are recorded, as things stand. A kernel's is in the library. Example: gt_port_event in
 * core/record/kernel_event.c. */
struct gt_event;
void gt_port_event(const struct gt_event *event);

/* The name of the thread that runs this (of the one that an interrupt has interrupted), 16 bytes: what filters and
 * histograms of a kernel's events take for COMM. Not in a program. Example: gt_port_comm in
 * port/unikernel/trace.c. */
const char *gt_port_comm(void);

/* The CPU that runs this, ~0 unknown. Example: gt_port_cpu in port/unikernel/trace.c. */
uint32_t gt_port_cpu(void);

/* Kernels: of this CPU, GRAFTRACE_STATE_NEED_RESCHED if the running thread is to be taken off it, and
 * its preempt count << GRAFTRACE_STATE_PREEMPT. From where events are recorded, interrupts off.
 * Example: gt_port_state in port/unikernel/trace.c. */
uint32_t gt_port_state(void);

/* Guards the table of contexts and the port's own tables, on all CPUs. Held for microseconds, never
 * twice at once by one CPU. Example: gt_port_lock in port/unikernel/trace.c, a word that is spun
 * on. */
void gt_port_lock(void);
void gt_port_unlock(void);
#ifdef GT_PROGRAM
/* Guards a part of the table of contexts: threads that switch contexts do not wait for each other.
 * Within one no other lock is taken, but for one of a higher number. Example: gt_port_lock_part in
 * port/program/memory.c. */
#define GT_PORT_PARTS 64
void gt_port_lock_part(uint32_t part);
void gt_port_unlock_part(uint32_t part);
#else
/* Kernels name their stacks: the table is hardly ever looked at. */
#define GT_PORT_PARTS 1

static inline void gt_port_lock_part(uint32_t part)
{
	(void)part;
	gt_port_lock();
}

static inline void gt_port_unlock_part(uint32_t part)
{
	(void)part;
	gt_port_unlock();
}
#endif

/* Reads the word at an address that may not be mapped. False: it cannot be read. Must not fault.
 * Example: gt_port_peek in port/unikernel/trace.c asks whether it is a stack's. */
bool gt_port_peek(uint64_t address, uint64_t *value);

/* Kernels: copies bytes that may not be mapped, whatever address a probe was given; false: not all of them can be read.
 * From anywhere, interrupts off, an NMI too. The library's reads by gt_port_peek. Example: gt_port_peek_bytes in
 * port/unikernel/trace.c asks the page tables. */
bool gt_port_peek_bytes(uint64_t address, void *bytes, uint64_t count);

/* Does a return slot hold a stub's return point? Any value may be asked about, from anywhere.
 * Example: gt_port_is_stub_return in port/unikernel/trace.c, by the table of sites. */
bool gt_port_is_stub_return(uint64_t address);

/*
 * For kernels (sites.c): what gt_sites_apply calls, from one CPU at a time. It may be called
 *  - on a thread that may wait, interrupts on: then these two stop the others and let them go; or
 *  - where all others stand still already and interrupts are off on this CPU, as a kernel wants
 * that also suspends and wakes its CPUs in that moment: then these two do nothing. What they call
 * may be traced where the thread is paused (gt_kernel_pause).
 */

/* On return all other CPUs stand still with interrupts off, and this one has its interrupts off,
 * but not while it waits for the others: two CPUs that stop each other would never meet. Example:
 * smp_stopped in port/unikernel/smp.c, an interrupt between processors that answers and then
 * waits. */
void gt_port_cpus_stop(void);
/* They go on, each after an instruction that serializes (x86: cpuid). Example: stand_still in
 * port/unikernel/smp.c. */
void gt_port_cpus_start(void);
/* Writes to the kernel's text, which may be mapped read-only: through another mapping of it. While
 * all other CPUs stand still, or (gt_sites_init) have not started; interrupts off. Example:
 * paging_write_text in port/unikernel/paging.c. */
void gt_port_text_write(uint64_t address, const void *bytes, size_t count);

/* An unused number for a context that the recorder found itself, with gt_port_lock held. It finds
 * none in a kernel. Example: gt_port_context_number in core/record/port_defaults.c. */
uint32_t gt_port_context_number(void);

#endif
