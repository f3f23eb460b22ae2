/* SPDX-License-Identifier: MIT */
/* Clock offsets between CPUs: see offset.h. Any context. */
#include "core/record/offset.h"

void gt_offset_sample(struct gt_offset *offset, uint64_t before, uint64_t remote, uint64_t after)
{
	if (after < before)
		return;
	uint64_t error = (after - before + 1) / 2;
	if (error >= offset->error)
		return;
	offset->error = error;
	offset->ticks = (int64_t)(remote - (before + (after - before) / 2));
}

bool gt_offset_applies(const struct gt_offset *offset)
{
	uint64_t size = offset->ticks < 0 ? -(uint64_t)offset->ticks : (uint64_t)offset->ticks;
	return offset->error != ~0ull && size > offset->error;
}

uint64_t gt_offset_apply(const struct gt_offset *offset, uint64_t remote)
{
	return gt_offset_applies(offset) ? remote - (uint64_t)offset->ticks : remote;
}
