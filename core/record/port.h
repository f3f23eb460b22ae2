/* SPDX-License-Identifier: MIT */
/*
 * What the recorder needs of the program or kernel that it works in. Bound at link time: one
 * recorder a target. All are called from the slow half only, with signals (interrupts) masked by
 * the port's own glue before it; none may call a traced function, block for long, or use more than
 * 200 bytes of stack.
 */
#ifndef GT_CORE_RECORD_PORT_H
#define GT_CORE_RECORD_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/arena.h>

struct gt_context;
struct gt_thread;

#ifdef GT_KERNEL
/* A kernel's: what gt_kernel_arena_init was given last; NULL before. Not a call, for the slow half
 * asks at each step. */
extern struct graftrace_arena *gt_kernel_arena __attribute__((visibility("hidden")));

static inline struct graftrace_arena *gt_port_arena(void)
{
	return gt_kernel_arena;
}
#else
/* The arena that this recorder writes to. Example: port/program takes it from the agent's state. */
struct graftrace_arena *gt_port_arena(void);
#endif

/* Zeroed memory, at least 8-byte aligned, or NULL. Never moves. Example: mmap. */
void *gt_port_allocate(size_t bytes);
/* Gives back what gt_port_allocate gave, with the same size. */
void gt_port_release(void *memory, size_t bytes);

/* Makes [low, high) of the stack have its mirror (both multiples of 64 KiB). False: cannot be had.
 */
bool gt_port_mirror_open(uint64_t low, uint64_t high);

/* Waits at most milliseconds until arena->free_futex is no longer `seen`. May return early. */
void gt_port_wait(struct graftrace_arena *arena, uint32_t seen, uint32_t milliseconds);
/* Tells the reading side that there is work (wake-up). Never blocks. */
void gt_port_ring_doorbell(struct graftrace_arena *arena);

/* The block of the index-th thread of this process, running or not, or NULL behind the last: for
 * those who stop recording everywhere. Blocks are never unmapped. */
struct gt_thread *gt_port_thread(uint32_t index);
/* A trigger has acted: what is left of it to do is the reading side's (enum
 * graftrace_trigger_action). Waits for it where the ring must not change meanwhile (SNAPSHOT,
 * DUMP), half a second at most. Example: a letter to the host. */
void gt_port_trigger(uint32_t action, uint32_t function, uint64_t clock, uint64_t took);

/* The CPU that runs this, ~0 unknown. */
uint32_t gt_port_cpu(void);

/* Guards the table of contexts and the port's own tables. Held for microseconds. */
void gt_port_lock(void);
void gt_port_unlock(void);

/* Reads the word at an address that may not be mapped. False: it cannot be read. */
bool gt_port_peek(uint64_t address, uint64_t *value);

/* Does a return slot hold a stub's return point? Example: compares with the regions. */
bool gt_port_is_stub_return(uint64_t address);

/*
 * For kernels (sites.c). From one CPU at a time, interrupts on, on a thread that may wait.
 */

/* All other CPUs stand still with interrupts off, and this one has its interrupts off. Example: an
 * interrupt between processors that answers and then waits. */
void gt_port_cpus_stop(void);
/* They go on, each after an instruction that serializes (x86: cpuid). */
void gt_port_cpus_start(void);
/* Writes to the kernel's text, which may be mapped read-only: through another mapping of it. */
void gt_port_text_write(uint64_t address, const void *bytes, size_t count);

/* An unused number for a context. */
uint32_t gt_port_context_number(void);

#endif
