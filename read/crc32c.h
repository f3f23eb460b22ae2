/* SPDX-License-Identifier: MIT */
/*
 * CRC-32C (Castagnoli; polynomial 0x1edc6f41, reflected, initial value and final inversion all
 * ones: the CRC of "123456789" is 0xe3069283), the checksum of recording files. From any thread.
 */
#ifndef GT_READ_CRC32C_H
#define GT_READ_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Goes on from `crc`, which is 0 or what an earlier call returned. */
uint32_t gt_crc32c(uint32_t crc, const void *bytes, size_t count);

/* The same without the processor's instructions, for machines without them and for tests. */
uint32_t gt_crc32c_portable(uint32_t crc, const void *bytes, size_t count);

#endif
