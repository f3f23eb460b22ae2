/* SPDX-License-Identifier: MIT */
/*
 * What the recorder needs of the processor. Bound at link time: arch/<name>/. Each may be called in
 * any context, interrupts on or off, from NMIs too, and waits for nothing; what makes bytes writes
 * nothing else. doc/porting.md names an example of each.
 */
#ifndef GT_CORE_RECORD_ARCH_H
#define GT_CORE_RECORD_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <graftrace/arena.h>
#include "core/record/layout.h"

struct gt_thread;

/* Where these five are short, as x86's are, the recorder of a kernel has them inline: its build includes
 * arch/<name>/kernel.h first. The library has them as functions, too. */
#ifndef GT_ARCH_INLINE
/* The time stamp counter: monotonic in a thread, at least 32 bits worth of seconds. x86: rdtsc. */
uint64_t gt_arch_clock(void);

/* The next four are for kernels. */

/* This CPU's block, or NULL while it has not started (struct gt_thread.self). x86: %gs. With
 * interrupts off, or on a thread that stays where it is: else it is another CPU's by then. */
struct gt_thread *gt_arch_block(void);

/* Interrupts off on this CPU; what they were. x86: pushf, cli. And back. */
uint64_t gt_arch_interrupts_off(void);
void gt_arch_interrupts_restore(uint64_t saved);
/* Were they on, by what gt_arch_interrupts_off has said? */
bool gt_arch_interrupts_were_on(uint64_t saved);
#endif

/* Zeroes words, fast. x86: rep stosq. */
void gt_arch_clear_words(uint64_t *words, uint64_t count);

/*
 * The rest is for kernels.
 */

/* Where the recorder's own text begins and ends: hot.S, glue.S and the rest of the library. The
 * linker script says it. */
extern const char gt_recorder_text_start[] __attribute__((visibility("hidden"))),
	gt_recorder_text_end[] __attribute__((visibility("hidden")));

/*
 * From here on each CPU adds the 8 bytes at its %gs:GT_KERNEL_CLOCK_ADD to its clock wherever it is
 * read (gt_arch_clock, and the stubs that are written later: gt_sites_rewrite). At boot, if ever;
 * never undone. The byte gt_arch_is_apart is 1 then, for arch/<name>/kernel.h.
 */
void gt_arch_clocks_apart(void);

/* Bytes of an entry that the compiler left room in. Of a stub: layout.h. */
#define GT_SITE_BYTES 5

/*
 * What the sites of latency.h call in files compiled with GT_KERNEL; no function of C. In %rdi the event, in %esi its kind, and 0x100 if it
 * has been switched off, in %rbp the frame of the function that the site is in. Calls gt_latency_edge, and
 * keeps all registers but the flags.
 */
extern const char gt_arch_latency_edge[];

/* Makes what begins the page of stubs at `at`: its stubs share it. */
void gt_arch_stub_head_write(uint8_t bytes[GT_STUB_HEAD], uint64_t at);
/* Whether that is there: a part of the recorder, as what lies between gt_recorder_text_start and
 * _end. */
bool gt_arch_is_stub_head(uint64_t address);
/* Makes the stub that will stand at `at`, of function `number`, which goes on at `body`. */
void gt_arch_stub_write(uint8_t bytes[GT_STUB_BYTES], uint64_t at, uint32_t number,
			enum graftrace_entry kind, uint64_t body);
/* Where the first page of stubs stands, and how far all reach. Comes before the others. */
void gt_arch_stubs_at(uint64_t first, uint64_t bytes);

/* Makes the stub that will stand at `at`, of a function's probes (core/record/kernel_probe.h); it goes on at `next`. */
void gt_arch_probe_stub_write(uint8_t bytes[GT_PROBE_STUB_BYTES], uint64_t at, uint64_t next);

/* Where a call returns to that a probe waits for, and where that goes on behind its call of gt_agent_event. x86: glue.S. */
extern const char gt_arch_probe_return[] __attribute__((visibility("hidden"))),
	gt_arch_probe_returned[] __attribute__((visibility("hidden")));

/* What must be readable to decode an instruction: more than the longest one. */
#define GT_ARCH_CODE_BYTES 16
/* What the first byte of an instruction becomes that a probe takes (core/record/kernel_place.h). x86: int3. */
#define GT_ARCH_TRAP 0xcc
/* How many bytes the instruction at `code` has, which stands at `address`. 0: it is not known. */
uint32_t gt_arch_instruction_bytes(const uint8_t code[GT_ARCH_CODE_BYTES], uint64_t address);
/* Makes the cell that will stand at `at`, of a place with that instruction. False: the instruction does not work
 * elsewhere. */
bool gt_arch_place_write(uint8_t bytes[GT_PLACE_BYTES], uint64_t at,
			 const uint8_t code[GT_ARCH_CODE_BYTES], uint64_t address);

/* What stands at an entry that is traced (goes to its stub), and at one that is not. */
void gt_arch_site_jump(uint8_t bytes[GT_SITE_BYTES], uint64_t site, uint64_t stub);
void gt_arch_site_nop(uint8_t bytes[GT_SITE_BYTES]);
/* Are these bytes the room that a compiler leaves (five nops, or one)? */
bool gt_arch_site_is_room(const uint8_t bytes[GT_SITE_BYTES]);

#endif
