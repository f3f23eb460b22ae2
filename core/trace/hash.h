/* SPDX-License-Identifier: MIT */
/*
 * FNV-1a: hashes of names for tables in memory. Begin with GT_HASH_BEGIN; several texts are hashed by
 * giving the hash of the first ones to the next call. Not for input that is chosen to collide.
 */
#ifndef GT_CORE_TRACE_HASH_H
#define GT_CORE_TRACE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define GT_HASH_BEGIN	2166136261u
#define GT_HASH64_BEGIN UINT64_C(14695981039346656037)

static inline uint32_t gt_hash_byte(uint32_t hash, char byte)
{
	return (hash ^ (unsigned char)byte) * 16777619u;
}

static inline uint32_t gt_hash_bytes(uint32_t hash, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hash = gt_hash_byte(hash, bytes[i]);
	return hash;
}

static inline uint32_t gt_hash_text(uint32_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = gt_hash_byte(hash, *text);
	return hash;
}

static inline uint64_t gt_hash64_text(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return hash;
}

#endif
