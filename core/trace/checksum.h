/* SPDX-License-Identifier: MIT */
/* CRC-32C (Castagnoli), of recording files, without a processor's help. Reentrant. */
#ifndef GT_CORE_TRACE_CHECKSUM_H
#define GT_CORE_TRACE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Of `count` bytes behind those that gave `before` (0: none). */
uint32_t gt_checksum(uint32_t before, const void *bytes, size_t count);

#endif
