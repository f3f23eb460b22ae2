/* SPDX-License-Identifier: MIT */
/*
 * C's memory and string functions, for the kernel, its target, and calls that compilers insert.
 */
#include "port/unikernel/include/string.h"

#include <stdint.h>

void *memcpy(void *to, const void *from, size_t count)
{
	void *result = to;
	size_t words = count / 8;
	__asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words)::"memory");
	count &= 7;
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count)::"memory");
	return result;
}

void *memmove(void *to, const void *from, size_t count)
{
	if ((uintptr_t)to - (uintptr_t)from >= count)
		return memcpy(to, from, count);
	void *last = (char *)to + count - 1;
	const void *source = (const char *)from + count - 1;
	__asm__ volatile("std; rep movsb; cld" : "+D"(last), "+S"(source), "+c"(count)::"memory");
	return to;
}

void *memset(void *to, int value, size_t count)
{
	void *result = to;
	size_t words = count / 8;
	__asm__ volatile("rep stosq"
			 : "+D"(to), "+c"(words)
			 : "a"(0x0101010101010101ull * (uint8_t)value)
			 : "memory");
	count &= 7;
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(value) : "memory");
	return result;
}

int memcmp(const void *a, const void *b, size_t count)
{
	const uint8_t *x = a, *y = b;
	for (size_t i = 0; i < count; i++)
		if (x[i] != y[i])
			return x[i] - y[i];
	return 0;
}

void *memchr(const void *memory, int value, size_t count)
{
	const uint8_t *bytes = memory;
	for (size_t i = 0; i < count; i++)
		if (bytes[i] == (uint8_t)value)
			return (void *)(uintptr_t)(bytes + i);
	return NULL;
}

size_t strnlen(const char *text, size_t limit)
{
	size_t length = 0;
	while (length < limit && text[length])
		length++;
	return length;
}

size_t strlen(const char *text)
{
	return strnlen(text, SIZE_MAX);
}

int strncmp(const char *a, const char *b, size_t limit)
{
	for (size_t i = 0; i < limit; i++)
		if (a[i] != b[i] || !a[i])
			return (uint8_t)a[i] - (uint8_t)b[i];
	return 0;
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, SIZE_MAX);
}

char *strchr(const char *text, int character)
{
	for (;; text++) {
		if (*text == (char)character)
			return (char *)(uintptr_t)text;
		if (!*text)
			return NULL;
	}
}

char *strstr(const char *text, const char *wanted)
{
	size_t length = strlen(wanted);
	for (;; text++) {
		if (!strncmp(text, wanted, length))
			return (char *)(uintptr_t)text;
		if (!*text)
			return NULL;
	}
}

char *strncpy(char *to, const char *from, size_t count)
{
	size_t length = strnlen(from, count);
	memcpy(to, from, length);
	memset(to + length, 0, count - length);
	return to;
}
