/* SPDX-License-Identifier: MIT */
/* Names of flags and numbers in arguments of system calls, for syscall_text.c. */
#ifndef GT_READ_SYSCALL_NAMES_H
#define GT_READ_SYSCALL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct gt_syscall_word {
	uint64_t value;
	const char *name; /* NULL: the list ends */
};

/* An argument: the bits in `mask` are one number, which `numbers` names; the others are flags. */
struct gt_syscall_words {
	uint64_t mask;
	const struct gt_syscall_word *numbers; /* NULL: none */
	const struct gt_syscall_word *flags;   /* NULL: none; those that have others within first */
};

/* How an argument is written; others as their C type is. */
enum gt_syscall_way {
	GT_SYSCALL_AS_TYPE = 0,
	GT_SYSCALL_WORDS, /* by names */
	GT_SYSCALL_INT,
	GT_SYSCALL_HEX,
	GT_SYSCALL_ADDRESS, /* 0 is NULL */
	GT_SYSCALL_OCTAL,
	GT_SYSCALL_SIGNAL,
	GT_SYSCALL_CLONE, /* flags, and a signal in the low byte */
};

/* How `argument` of `call` (as strace names calls) is written. *words is set for GT_SYSCALL_WORDS and _CLONE. */
enum gt_syscall_way gt_syscall_way_of(const char *call, const char *argument,
				      const struct gt_syscall_words **words);

/* *words: how fcntl's third argument is written, by its second. False: it has none. */
bool gt_syscall_fcntl_argument(uint64_t command, const struct gt_syscall_words **words);

/* The name that programs use for a call for which Linux's events have another name; else `name` itself. */
const char *gt_syscall_program_name(const char *name);

/* For structures. */
extern const struct gt_syscall_words gt_syscall_families, gt_syscall_polls, gt_syscall_epolls,
	gt_syscall_actions, gt_syscall_clones, gt_syscall_kinds;

#endif
