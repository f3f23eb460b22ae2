/* SPDX-License-Identifier: MIT */
/*
 * What most kernels answer to core/record/port.h: weak, so that a kernel which has something to do
 * there defines the function itself. A program's port defines all of them.
 */
#include "core/record/port.h"

#pragma weak gt_port_allocate
#pragma weak gt_port_release
#pragma weak gt_port_mirror_open
#pragma weak gt_port_wait
#pragma weak gt_port_ring_doorbell
#pragma weak gt_port_trigger
#pragma weak gt_port_context_number
#pragma weak gt_port_comm
#pragma weak gt_port_peek_bytes

/* Contexts and frames are the kernel's own: nothing is asked for. */
void *gt_port_allocate(size_t bytes)
{
	(void)bytes;
	return NULL;
}

void gt_port_release(void *memory, size_t bytes)
{
	(void)memory;
	(void)bytes;
}

/* Each stack has its mirror from the start. */
bool gt_port_mirror_open(uint64_t low, uint64_t high)
{
	(void)low;
	(void)high;
	return false;
}

/* No other process drains the ring. */
void gt_port_wait(struct graftrace_arena *arena, uint32_t seen, uint32_t milliseconds)
{
	(void)arena;
	(void)seen;
	(void)milliseconds;
}

/* Readers look for themselves. */
void gt_port_ring_doorbell(struct graftrace_arena *arena)
{
	(void)arena;
}

/* Without `watch` in struct gt_arena_machine nobody carries a command out later. */
void gt_port_trigger(uint32_t action, uint32_t function, uint64_t clock, uint64_t took)
{
	(void)action;
	(void)function;
	(void)clock;
	(void)took;
}

/* Threads have no names. */
const char *gt_port_comm(void)
{
	static const char none[16] = "<...>";

	return none;
}

/* The recorder finds no context by itself. */
uint32_t gt_port_context_number(void)
{
	return 0x80000000u;
}

/* Word by word; what can be read of the first and of the last one is what was asked for. */
bool gt_port_peek_bytes(uint64_t address, void *bytes, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t at = address + i;
		uint64_t word;

		if (at < address || !gt_port_peek(at & ~7ull, &word))
			return false;
		((uint8_t *)bytes)[i] = (uint8_t)(word >> at % 8 * 8);
	}
	return true;
}
