/* SPDX-License-Identifier: MIT */
/*
 * CRC-32C. With SSE4.2 and PCLMULQDQ three lanes run at once, because the crc32 instruction has a
 * latency of three cycles and starts one a cycle: over 20 GB/s, where one lane has 8 and the table
 * 2. Pure functions after a first call that fills tables; from any thread.
 */
#include "read/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_HARDWARE 1
#endif

#define POLYNOMIAL 0x82f63b78u /* reflected */
#define LANE	   1024	       /* bytes; a round is three of them */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t table[8][256]; /* [k]: of a byte followed by k zero bytes */
static bool hardware;
static uint64_t shift_one; /* factors that move a CRC over one lane, over two */
static uint64_t shift_two;

static uint32_t times_x(uint32_t value)
{
	return value >> 1 ^ (value & 1 ? POLYNOMIAL : 0);
}

/* x^n modulo the polynomial, reflected: bit 31 is x^0. */
static uint32_t power_of_x(unsigned n)
{
	uint32_t value = 1u << 31;
	while (n--)
		value = times_x(value);
	return value;
}

static void prepare(void)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		uint32_t value = byte;
		for (int bit = 0; bit < 8; bit++)
			value = times_x(value);
		table[0][byte] = value;
	}
	for (int k = 1; k < 8; k++)
		for (unsigned byte = 0; byte < 256; byte++)
			table[k][byte] =
				table[k - 1][byte] >> 8 ^ table[0][table[k - 1][byte] & 0xff];
#if HAVE_HARDWARE
	hardware = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
	/* crc32(0, clmul(a, k)) = a * k * x^33, because a reflected product is short by one x and
	 * the instruction multiplies by x^32. */
	shift_one = power_of_x(8 * LANE - 33);
	shift_two = power_of_x(16 * LANE - 33);
#endif
}

static uint32_t portable(uint32_t crc, const uint8_t *at, size_t count)
{
	while (count >= 8) {
		uint64_t word;
		memcpy(&word, at, 8);
		word ^= crc;
		crc = table[7][word & 0xff] ^ table[6][word >> 8 & 0xff] ^
		      table[5][word >> 16 & 0xff] ^ table[4][word >> 24 & 0xff] ^
		      table[3][word >> 32 & 0xff] ^ table[2][word >> 40 & 0xff] ^
		      table[1][word >> 48 & 0xff] ^ table[0][word >> 56];
		at += 8;
		count -= 8;
	}
	while (count--)
		crc = crc >> 8 ^ table[0][(crc ^ *at++) & 0xff];
	return crc;
}

#if HAVE_HARDWARE
__attribute__((target("sse4.2,pclmul"))) static uint64_t moved(uint64_t crc, uint64_t shift)
{
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc),
					       _mm_cvtsi64_si128((long long)shift), 0);
	return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t fast(uint32_t crc, const uint8_t *at,
							      size_t count)
{
	uint64_t a = crc;
	while (count >= 3 * LANE) {
		uint64_t b = 0, c = 0;
		for (size_t i = 0; i < LANE; i += 8) {
			uint64_t words[3];
			memcpy(&words[0], at + i, 8);
			memcpy(&words[1], at + LANE + i, 8);
			memcpy(&words[2], at + 2 * LANE + i, 8);
			a = _mm_crc32_u64(a, words[0]);
			b = _mm_crc32_u64(b, words[1]);
			c = _mm_crc32_u64(c, words[2]);
		}
		a = moved(a, shift_two) ^ moved(b, shift_one) ^ c;
		at += 3 * LANE;
		count -= 3 * LANE;
	}
	while (count >= 8) {
		uint64_t word;
		memcpy(&word, at, 8);
		a = _mm_crc32_u64(a, word);
		at += 8;
		count -= 8;
	}
	while (count--)
		a = _mm_crc32_u8((uint32_t)a, *at++);
	return (uint32_t)a;
}
#endif

uint32_t gt_crc32c(uint32_t crc, const void *bytes, size_t count)
{
	pthread_once(&once, prepare);
#if HAVE_HARDWARE
	if (hardware)
		return ~fast(~crc, bytes, count);
#endif
	return ~portable(~crc, bytes, count);
}

uint32_t gt_crc32c_portable(uint32_t crc, const void *bytes, size_t count)
{
	pthread_once(&once, prepare);
	return ~portable(~crc, bytes, count);
}
