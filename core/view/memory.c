/* SPDX-License-Identifier: MIT */
/*
 * Private copies of the C library's four memory functions. Callable from anywhere. They are called
 * for large blocks only (small ones are expanded in line), so on x86-64 they leave the work to the
 * string instructions, which recent processors do 32 bytes a clock and up.
 */
#include "core/view/memory.h"

/* Loops must not be turned back into calls of the functions that they are. */
#if defined(__clang__)
#define NO_CALLS __attribute__((no_builtin))
#else
#define NO_CALLS __attribute__((optimize("no-tree-loop-distribute-patterns")))
#endif

NO_CALLS void *gt_view_memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
#if defined(__x86_64__)
	void *d = to;
	__asm__ volatile("rep movsb" : "+D"(d), "+S"(from), "+c"(bytes) : : "memory");
#else
	char *d = to;
	const char *s = from;
	while (bytes--)
		*d++ = *s++;
#endif
	return to;
}

NO_CALLS void *gt_view_memmove(void *to, const void *from, size_t bytes)
{
	char *d = to;
	const char *s = from;
	if (d <= s || d >= s + bytes)
		return gt_view_memcpy(to, from, bytes);
	while (bytes--)
		d[bytes] = s[bytes];
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
