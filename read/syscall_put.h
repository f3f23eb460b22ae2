/* SPDX-License-Identifier: MIT */
/* Values in the text of a system call (syscall_text.c). Bytes for which there is no room are left out. */
#ifndef GT_READ_SYSCALL_PUT_H
#define GT_READ_SYSCALL_PUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "read/syscall_names.h"

struct gt_syscall_output {
	char *at;
	char *end;
};

/* Whether the argument's C type contains the text `what`. */
static inline bool gt_syscall_is_of(const char *type, const char *what)
{
	return strstr(type, what) != NULL;
}

/* Appends, as printf formats; at most 255 bytes. */
void gt_syscall_put(struct gt_syscall_output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Appends text in quotes, as C and strace write it: bytes that cannot be printed in octal. cut: there was more of it. */
void gt_syscall_put_quoted(struct gt_syscall_output *output, const char *text, size_t bytes,
			   bool cut);
/* Appends flags and a number by their names; bits without a name in hex. */
void gt_syscall_put_words(struct gt_syscall_output *output, const struct gt_syscall_words *words,
			  uint64_t value);
void gt_syscall_put_signal(struct gt_syscall_output *output, uint64_t number);

/* The word of the list with that value; NULL: none, or no list. */
const struct gt_syscall_word *gt_syscall_find(const struct gt_syscall_word *words, uint64_t value);
/* The number of `size` bytes at an offset. */
uint64_t gt_syscall_word_at(const char *bytes, size_t offset, size_t size);

/* syscall_structures.c: appends the structure to which an argument of this C type points. behind: the kernel has
 * written it. False: there are too few bytes for one, or the type is unknown. */
bool gt_syscall_put_structure(struct gt_syscall_output *output, const char *type, const char *bytes,
			      size_t count, bool behind);

#endif
