/* SPDX-License-Identifier: MIT */
/* What test_kernel_steps.c's recorder asks of its machine: of one CPU, which has no memory to give and whose text may
 * be written to. */
#ifndef TESTS_UNIT_KERNEL_STEPS_PORT_H
#define TESTS_UNIT_KERNEL_STEPS_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core/record/port.h"

void *gt_port_allocate(size_t bytes)
{
	(void)bytes;
	return NULL;
}
void gt_port_release(void *memory, size_t bytes)
{
	(void)memory, (void)bytes;
}
bool gt_port_mirror_open(uint64_t low, uint64_t high)
{
	(void)low, (void)high;
	return false;
}
void gt_port_wait(struct graftrace_arena *of, uint32_t word, uint32_t milliseconds)
{
	(void)of, (void)word, (void)milliseconds;
}
void gt_port_ring_doorbell(struct graftrace_arena *of)
{
	(void)of;
}
void gt_port_trigger(uint32_t action, uint32_t function, uint64_t clock, uint64_t took)
{
	(void)action, (void)function, (void)clock, (void)took;
}
uint32_t gt_port_state(void)
{
	return 0;
}

uint32_t gt_port_cpu(void)
{
	return 0;
}
void gt_port_lock(void)
{
}
void gt_port_unlock(void)
{
}
bool gt_port_peek(uint64_t address, uint64_t *value)
{
	*value = *(const uint64_t *)address;
	return true;
}
uint32_t gt_port_context_number(void)
{
	return 0x80000000u;
}
void gt_port_cpus_stop(void)
{
}
void gt_port_cpus_start(void)
{
}
void gt_port_text_write(uint64_t address, const void *bytes, size_t count)
{
	uint64_t page = address & ~4095ull;
	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		abort();
	memcpy((void *)address, bytes, count);
}

#endif
