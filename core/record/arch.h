/* SPDX-License-Identifier: MIT */
/* What the recorder needs of the processor. Bound at link time: arch/<name>/. Any context. */
#ifndef GT_CORE_RECORD_ARCH_H
#define GT_CORE_RECORD_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include "core/record/layout.h"

struct gt_thread;

/* The time stamp counter: monotonic in a thread, at least 32 bits worth of seconds. x86: rdtsc. */
uint64_t gt_arch_clock(void);

/* Zeroes words, fast. x86: rep stosq. */
void gt_arch_clear_words(uint64_t *words, uint64_t count);

/*
 * The rest is for kernels.
 */

/* This CPU's block, or NULL while it has not started (struct gt_thread.self). x86: %gs. */
struct gt_thread *gt_arch_block(void);

/* Interrupts off on this CPU; what they were. x86: pushf, cli. And back. */
uint64_t gt_arch_interrupts_off(void);
void gt_arch_interrupts_restore(uint64_t saved);

/* Where the recorder's own text begins and ends: hot.S, glue.S and the rest of the library. The
 * linker script says it. */
extern const char gt_recorder_text_start[] __attribute__((visibility("hidden"))),
	gt_recorder_text_end[] __attribute__((visibility("hidden")));

/*
 * From here on each CPU adds the 8 bytes at its %gs:GT_KERNEL_CLOCK_ADD to its clock wherever it is
 * read (gt_arch_clock, and the stubs that are written later: gt_sites_rewrite). At boot, if ever;
 * never undone.
 */
void gt_arch_clocks_apart(void);

/* Bytes of an entry that the compiler left room in. Of a stub: GT_STUB_BYTES, in layout.h. */
#define GT_SITE_BYTES 5

/* Entries of the hot text that a stub can call. */
enum gt_stub_kind {
	GT_STUB_ORDINARY = 0,
	GT_STUB_ROOT = 1, /* of set_graph_function */
	GT_STUB_ENTRY_ONLY = 2,
	GT_STUB_NOTRACE = 3, /* of set_graph_notrace */
	GT_STUB_SILENT = 4,  /* for the stack traces of others */
	GT_STUB_TRIGGER = 5, /* what happens stands in the arena's table of triggers */
};

/* Makes the stub that will stand at `at`, of function `number`, which goes on at `body`. Stubs of
 * consecutive numbers stand side by side. */
void gt_arch_stub_write(uint8_t bytes[GT_STUB_BYTES], uint64_t at, uint32_t number,
			enum gt_stub_kind kind, uint64_t body);
/* Where the first stub stands: the hot text finds functions' numbers by it. */
void gt_arch_stubs_at(uint64_t first, uint64_t bytes);

/* What stands at an entry that is traced (goes to its stub), and at one that is not. */
void gt_arch_site_jump(uint8_t bytes[GT_SITE_BYTES], uint64_t site, uint64_t stub);
void gt_arch_site_nop(uint8_t bytes[GT_SITE_BYTES]);
/* Are these bytes the room that a compiler leaves (five nops, or one)? */
bool gt_arch_site_is_room(const uint8_t bytes[GT_SITE_BYTES]);

#endif
