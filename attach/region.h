/* SPDX-License-Identifier: MIT */
/*
 * A region: the mapping beside some objects' code that holds the stubs of their functions, the hot
 * text and the moved code (graftrace/agent.h has the layout). Here: where it can lie, and its
 * bytes. No system calls; nothing here knows a process.
 */
#ifndef GT_ATTACH_REGION_H
#define GT_ATTACH_REGION_H

#include <stdbool.h>
#include <stdint.h>
#include <graftrace/agent.h>
#include <graftrace/error.h>

struct gt_maps;

struct gt_region {
	uint64_t start;
	uint64_t bytes;
	uint64_t stubs;	       /* address of the first stub */
	uint32_t first_number; /* function number of the first stub; the others follow */
	uint32_t stub_room;
	uint32_t stub_used;
	uint64_t moved; /* moved code: next free address … */
	uint64_t moved_end;
	uint64_t call_stub; /* where the one stub that calls its function may stand; 0: taken */
	uint64_t journal;   /* of its patches (struct graftrace_region) */
	uint32_t journal_room;
	uint32_t journal_used;
};

/* How far code and region may lie apart: 2 GB, less what displacements may add. */
#define GT_REGION_REACH 1900000000ull

/* Bytes of a region with room for so many stubs and so much moved code. */
uint64_t gt_region_bytes(uint32_t stub_room, uint64_t moved_bytes);

/* Finds a gap for `bytes` within reach of all of [low, high): GT_ENOSPC: none. Below the code and
 * not adjacent, so that heap and libraries find their usual places; for code in the first 2 GB near
 * 0x70000000. */
int gt_region_place(const struct gt_maps *maps, uint64_t low, uint64_t high, uint64_t bytes,
		    uint64_t *start);

/* Whether all of [low, high) is within reach. */
bool gt_region_reaches(const struct gt_region *region, uint64_t low, uint64_t high);

/* Lays out; the mapping is the caller's. */
void gt_region_init(struct gt_region *region, uint64_t start, uint64_t bytes, uint32_t stub_room,
		    uint32_t first_number);

/* Page 0. image: where the agent's image lies. */
void gt_region_header(const struct gt_region *region, const struct graftrace_agent_image *header,
		      uint64_t image, struct graftrace_region *page);

/* Address of stub `slot` (0 … stub_room - 1). */
uint64_t gt_region_stub_address(const struct gt_region *region, uint32_t slot);

/* A stub's bytes. entry: offset in the hot text (graftrace_agent_image.entry, …); body: run-time
 * address. GT_ENOTSUP: the body is out of reach. */
int gt_region_stub(const struct gt_region *region, const struct graftrace_agent_image *header,
		   uint32_t entry, uint32_t slot, uint64_t body, uint8_t out[GRAFTRACE_STUB_BYTES]);

/* For a hook that looks at its function's result (rax) and its first argument (rdi): a stub that
 * calls the function, so that unwinders walk through it, and then the hook. at: region->call_stub.
 */
int gt_region_call_stub(const struct gt_region *region, const struct graftrace_agent_image *header,
			uint64_t at, uint32_t site, uint64_t body,
			uint8_t out[GRAFTRACE_STUB_BYTES]);
/* A hook's stub for address `at` (of gt_region_alloc). */
int gt_region_hook_stub(const struct gt_region *region, const struct graftrace_agent_image *header,
			uint64_t at, uint32_t site, uint64_t body,
			uint8_t out[GRAFTRACE_STUB_BYTES]);

/* Takes room among the moved code; 0 = full. alignment: a power of two. */
uint64_t gt_region_alloc(struct gt_region *region, uint64_t bytes, uint64_t alignment);

#endif
