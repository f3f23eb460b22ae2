/* SPDX-License-Identifier: MIT */
/* As in POSIX, as far as it goes. */
#ifndef PORT_UNIKERNEL_INCLUDE_STRING_H
#define PORT_UNIKERNEL_INCLUDE_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);
int memcmp(const void *a, const void *b, size_t count);
void *memchr(const void *memory, int value, size_t count);
size_t strlen(const char *text);
size_t strnlen(const char *text, size_t limit);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t limit);
char *strchr(const char *text, int character);
char *strstr(const char *text, const char *wanted);
char *strncpy(char *to, const char *from, size_t count);

#endif
