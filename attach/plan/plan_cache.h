/* SPDX-License-Identifier: MIT */
/*
 * A plan's file in the cache: a header, an entry for each function of the object, and the extra
 * patches in the order of the entries that they belong to. Little-endian, read and written by one
 * build of this program only.
 */
#ifndef GT_ATTACH_PLAN_CACHE_H
#define GT_ATTACH_PLAN_CACHE_H

#include "attach/plan/plan_private.h"

#define GT_CACHE_MAGIC	 "graftplan"
#define GT_CACHE_VERSION 2u

struct gt_cache_header {
	char magic[12];
	uint32_t version;
	uint64_t key[2];
	uint64_t checksum; /* of what follows the header */
	uint32_t functions;
	uint32_t extras;
};

struct gt_cache_entry {
	uint32_t body; /* behind patch_address; 0: none */
	uint8_t way;
	uint8_t prepared;
	uint8_t entry_only;
	uint8_t behind; /* patch_address - address */
	uint8_t patch_bytes;
	uint8_t covered_bytes;
	uint8_t moved_bytes;
	uint8_t extra_count;
	uint8_t neutral;
	uint8_t reason; /* enum gt_plan_reason */
	uint8_t zero[2];
};

struct gt_cache_extra {
	uint64_t address;
	uint8_t kind;
	uint8_t bytes;
	uint8_t covered;
	uint8_t target;
	uint8_t zero[4];
	uint8_t replacement[8];
};

uint64_t gt_plan_cache_checksum(const void *data, size_t bytes);

/* Fills an empty plan from a file's content: all of it, or nothing (false). */
bool gt_plan_cache_take(struct gt_plan *plan, const uint8_t *bytes, size_t size,
			const uint64_t key[2]);

#endif
