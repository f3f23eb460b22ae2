/* SPDX-License-Identifier: MIT */
/* As in POSIX, as far as it goes. */
#ifndef PORT_UNIKERNEL_INCLUDE_STDLIB_H
#define PORT_UNIKERNEL_INCLUDE_STDLIB_H

#include <stddef.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1

void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *object, size_t bytes);
void free(void *object);
/* Ends the kernel, after LINGER seconds. */
void exit(int code) __attribute__((noreturn));
/* Ends it with a crash report. */
void abort(void) __attribute__((noreturn));
/* NAME=VALUE of the kernel's command line (make run OPTIONS=…). NULL: not there. */
char *getenv(const char *name);
int atoi(const char *text);

#endif
