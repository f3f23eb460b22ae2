/* SPDX-License-Identifier: MIT */
/* CRC-32C, eight bytes a step: table k gives what a byte does that k bytes follow. The tables are
 * made at the first call; two who make them at once write the same. */
#include "core/trace/checksum.h"

#include <stdbool.h>

#define POLYNOMIAL 0x82f63b78u

static uint32_t tables[8][256];
static bool made;

static void make(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t value = i;
		for (int bit = 0; bit < 8; bit++)
			value = value >> 1 ^ (value & 1 ? POLYNOMIAL : 0);
		tables[0][i] = value;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 255];
	__atomic_store_n(&made, true, __ATOMIC_RELEASE);
}

uint32_t gt_checksum(uint32_t before, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;
	uint32_t value = ~before;
	if (!__atomic_load_n(&made, __ATOMIC_ACQUIRE))
		make();
	for (; count >= 8; count -= 8, at += 8) {
		uint64_t word;
		__builtin_memcpy(&word, at, 8);
		word ^= value;
		value = tables[7][word & 255] ^ tables[6][word >> 8 & 255] ^
			tables[5][word >> 16 & 255] ^ tables[4][word >> 24 & 255] ^
			tables[3][word >> 32 & 255] ^ tables[2][word >> 40 & 255] ^
			tables[1][word >> 48 & 255] ^ tables[0][word >> 56];
	}
	for (; count; count--, at++)
		value = value >> 8 ^ tables[0][(value ^ *at) & 255];
	return ~value;
}
