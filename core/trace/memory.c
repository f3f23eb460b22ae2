/* SPDX-License-Identifier: MIT */
/*
 * Private copies of the C library's four memory functions. Callable from anywhere. They are called
 * for large blocks only (small ones are expanded in line), so on x86-64 they leave the work to the
 * string instructions, which recent processors do 32 bytes a clock and up.
 */
#include "core/trace/memory.h"

#include <stdint.h>

/* Loops must not be turned back into calls of the functions that they are. */
#if defined(__clang__)
#define NO_CALLS __attribute__((no_builtin))
#else
#define NO_CALLS __attribute__((optimize("no-tree-loop-distribute-patterns")))
#endif

/* One move of a fixed size: compilers expand it in line. */
#define MOVE(bytes, to, from) __builtin_memcpy((to), (from), (bytes))

NO_CALLS void *gt_view_memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	char *d = to;
	const char *s = from;
	/* Two moves that may overlap cover every size between one and two of them. */
	if (bytes <= 16) {
		if (bytes >= 8) {
			uint64_t first, last;
			MOVE(8, &first, s);
			MOVE(8, &last, s + bytes - 8);
			MOVE(8, d, &first);
			MOVE(8, d + bytes - 8, &last);
		} else if (bytes >= 4) {
			uint32_t first, last;
			MOVE(4, &first, s);
			MOVE(4, &last, s + bytes - 4);
			MOVE(4, d, &first);
			MOVE(4, d + bytes - 4, &last);
		} else if (bytes) {
			d[0] = s[0];
			d[bytes / 2] = s[bytes / 2];
			d[bytes - 1] = s[bytes - 1];
		}
		return to;
	}
	if (bytes <= 256) {
		size_t at = 0;
		for (; at + 16 < bytes; at += 16)
			MOVE(16, d + at, s + at);
		MOVE(16, d + bytes - 16, s + bytes - 16);
		return to;
	}
#if defined(__x86_64__)
	void *rest = d;
	__asm__ volatile("rep movsb" : "+D"(rest), "+S"(s), "+c"(bytes) : : "memory");
#else
	while (bytes--)
		*d++ = *s++;
#endif
	return to;
}

NO_CALLS void *gt_view_memmove(void *to, const void *from, size_t bytes)
{
	char *d = to;
	const char *s = from;
	/* gt_view_memcpy() reads the last bytes after it has written others. */
	if (d + bytes <= s || s + bytes <= d)
		return gt_view_memcpy(to, from, bytes);
	if (d > s) {
		while (bytes--)
			d[bytes] = s[bytes];
		return to;
	}
#if defined(__x86_64__)
	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(bytes) : : "memory");
#else
	while (bytes--)
		*d++ = *s++;
#endif
	return to;
}

NO_CALLS void *gt_view_memset(void *to, int byte, size_t bytes)
{
#if defined(__x86_64__)
	void *d = to;
	__asm__ volatile("rep stosb" : "+D"(d), "+c"(bytes) : "a"(byte) : "memory");
#else
	char *d = to;
	while (bytes--)
		*d++ = (char)byte;
#endif
	return to;
}

NO_CALLS int gt_view_memcmp(const void *a, const void *b, size_t bytes)
{
	const unsigned char *x = a, *y = b;
	for (; bytes--; x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}
