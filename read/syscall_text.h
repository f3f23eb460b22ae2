/* SPDX-License-Identifier: MIT */
/*
 * Events of a program's system calls (attach/agent/syscall_events.h) as strace writes calls: flags, signals
 * and errors by their names, texts and buffers in quotes, the structures that people look at. The call and
 * its result are events of their own, so they are texts of their own:
 *	openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC)
 *	openat = -1 ENOENT (No such file or directory)
 *	read = 5 "abcd\n"
 * Data that the kernel has written for the program follow the result. Numbers are those of x86-64.
 */
#ifndef GT_READ_SYSCALL_TEXT_H
#define GT_READ_SYSCALL_TEXT_H

#include "core/trace/decode.h"
#include "core/trace/event.h"

/* Writes the text to `at`, at most `room` bytes, without control characters and a zero byte, and returns its end. NULL:
 * the event is no system call's. Fields and names may be anything: they come from a recording. */
char *gt_syscall_text_put(const struct gt_event_format *format, const struct gt_record *record,
			  char *at, size_t room);

#endif
