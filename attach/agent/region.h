/* SPDX-License-Identifier: MIT */
/*
 * A region: the mapping beside some objects' code that holds the stubs of their functions, the hot
 * text and the moved code (graftrace/agent.h has the layout). Here: where it can lie, and its
 * bytes. No system calls; nothing here knows a process.
 */
#ifndef GT_ATTACH_REGION_H
#define GT_ATTACH_REGION_H

#include <stdbool.h>
#include <stddef.h>
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
	uint64_t moved_first; /* moved code … */
	uint64_t moved;	      /* … its next free address */
	uint64_t moved_end;
	uint64_t places;  /* what it stands for (struct graftrace_places) */
	uint64_t journal; /* of its patches (struct graftrace_region) */
	uint32_t journal_room;
	uint32_t journal_used;
	uint32_t text_count; /* graftrace_region.texts */
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

/* Fills in *region: the layout of a mapping at `start`, which the caller makes. */
void gt_region_init(struct gt_region *region, uint64_t start, uint64_t bytes, uint32_t stub_room,
		    uint32_t first_number);

/* Fills in page 0 of the region. image: the address of the agent's image in the process. */
void gt_region_header(const struct gt_region *region, const struct graftrace_agent_image *header,
		      uint64_t image, struct graftrace_region *page);

/* Fills in the region's unwind data. image: the bytes of the agent's image, `size` of them. GT_EFORMAT: they are not what
 * the header says; GT_ENOSPC: the hot text has more unwind data than there is room for. */
int gt_region_unwind(const struct gt_region *region, const struct graftrace_agent_image *header,
		     const uint8_t *image, size_t size, struct graftrace_region_unwind *unwind);

/* Address of stub `slot` (0 … stub_room - 1). */
uint64_t gt_region_stub_address(const struct gt_region *region, uint32_t slot);

/* A stub's bytes. entry: offset in the hot text (graftrace_agent_image.entry, …); body: run-time
 * address. GT_ENOTSUP: the body is out of reach. */
int gt_region_stub(const struct gt_region *region, const struct graftrace_agent_image *header,
		   uint32_t entry, uint32_t slot, uint64_t body, uint8_t out[GRAFTRACE_STUB_BYTES]);

/* A hook's stub for address `at` (of gt_region_alloc). */
int gt_region_hook_stub(const struct gt_region *region, const struct graftrace_agent_image *header,
			uint64_t at, uint32_t site, uint64_t body,
			uint8_t out[GRAFTRACE_STUB_BYTES]);

/* A probe's stub for address `at`, a multiple of GRAFTRACE_STUB_BYTES. */
int gt_region_probe_stub(const struct gt_region *region, const struct graftrace_agent_image *header,
			 uint64_t at, uint64_t body, uint8_t out[GRAFTRACE_STUB_BYTES]);

/* Makes the stub that records a call's values before its entry or its return. recorder, target: offsets in the hot text
 * of what it calls, and of where it goes then. GT_ENOTSUP: out of reach. */
int gt_region_values_stub(const struct gt_region *region, uint64_t at, uint32_t recorder,
			  uint32_t target, uint8_t out[GRAFTRACE_STUB_BYTES]);

/* Changes the bytes of the function's stub at `stub`: it calls `call` in place of its entry, and jumps to `jump` in place
 * of its exit; 0: that one stays. GT_ENOTSUP: out of reach. */
int gt_region_lead_stub(uint64_t stub, uint64_t call, uint64_t jump,
			uint8_t bytes[GRAFTRACE_STUB_BYTES]);

/* Takes room among the moved code; 0 = full. alignment: a power of two. */
uint64_t gt_region_alloc(struct gt_region *region, uint64_t bytes, uint64_t alignment);

/* The address of the word in the moved code's table for the 16 bytes from `moved` on. */
uint64_t gt_region_places(const struct gt_region *region, uint64_t moved);

/* That word: byte i stands for base + at[i] (GRAFTRACE_PLACES_PUSHED may be set in it). Where that
 * needs a record, *record is to be written to *record_at; else *record_at is 0. */
uint32_t gt_region_place_word(struct gt_region *region, uint64_t base, const uint8_t *at,
			      uint64_t *record_at, struct graftrace_places *record);

#endif
