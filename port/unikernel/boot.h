/* SPDX-License-Identifier: MIT */
/* What the boot told us: the memory's map and the options of the command line. */
#ifndef PORT_UNIKERNEL_BOOT_H
#define PORT_UNIKERNEL_BOOT_H

#include <stdbool.h>
#include <stdint.h>

/* A range of usable memory, whole pages, physical addresses. */
struct memory_range {
	uint64_t start, end;
};

#define MEMORY_RANGES_MAX 32
extern struct memory_range memory_ranges[MEMORY_RANGES_MAX];
extern uint32_t memory_range_count;
extern uint64_t memory_end; /* of the highest range */
extern uint64_t boot_rsdp;  /* physical address of the ACPI tables' root, 0 = none */

/* The value of `name=value` on the command line, or NULL; not NUL-terminated: *length says its
 * length. */
const char *option_text(const char *name, uint32_t *length);
/* The same as a number, with K, M or G behind it; `otherwise` if it is not there. What is no number
 * is said on the console and counts as not there. */
uint64_t option_number(const char *name, uint64_t otherwise);

/* From start.S, on the boot stack. */
void kernel_start(uint64_t start_info) __attribute__((noreturn));

#endif
