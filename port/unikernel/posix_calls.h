/* SPDX-License-Identifier: MIT */
/*
 * Where a POSIX call of a target begins and ends: the events of Linux's system calls
 * (syscalls:sys_enter_NAME, sys_exit_NAME, raw_syscalls:sys_enter, sys_exit) with Linux's numbers, and,
 * with OPTIONS=debugsyscalls, lines on the console.
 */
#ifndef PORT_UNIKERNEL_POSIX_CALLS_H
#define PORT_UNIKERNEL_POSIX_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include "port/unikernel/events.h"

/* OPTIONS=debugsyscalls; written once, at boot. */
extern bool calls_shown;
void calls_init(void);

/* name, count and then a name and a value for each argument. */
void call_show(const char *name, unsigned count, ...);
/* stack: of the caller. */
void call_show_return(long result, const void *stack);

#define CALL_RAW_(number, a, b, c, d, e, f)                                                  \
	EVENT(raw_syscalls, sys_enter,                                                       \
	      "NR %(id) (%(arg0:x), %(arg1:x), %(arg2:x), %(arg3:x), %(arg4:x), %(arg5:x))", \
	      GRAFTRACE_INT(long, id, number), GRAFTRACE_INT(unsigned long, arg0, a),        \
	      GRAFTRACE_INT(unsigned long, arg1, b), GRAFTRACE_INT(unsigned long, arg2, c),  \
	      GRAFTRACE_INT(unsigned long, arg3, d), GRAFTRACE_INT(unsigned long, arg4, e),  \
	      GRAFTRACE_INT(unsigned long, arg5, f))

#define CALL_NUMBER_(number)	       GRAFTRACE_INT(int, __syscall_nr, number)
#define CALL_FIELD_(type, name, value) GRAFTRACE_INT(type, name, (unsigned long)(uintptr_t)(value))
#define CALL_WORD_(value)	       (unsigned long)(uintptr_t)(value)

/* CALL_ENTERn(name, Linux's number, type, argument's name, value, …) */
#define CALL_ENTER0(call, number)                                                            \
	do {                                                                                 \
		CALL_RAW_(number, 0, 0, 0, 0, 0, 0);                                         \
		EVENT(syscalls, sys_enter_##call, "!sys_" #call "()", CALL_NUMBER_(number)); \
		if (__builtin_expect(calls_shown, 0))                                        \
			call_show(#call, 0);                                                 \
	} while (0)
#define CALL_ENTER1(call, number, t1, n1, v1)                                              \
	do {                                                                               \
		CALL_RAW_(number, CALL_WORD_(v1), 0, 0, 0, 0, 0);                          \
		EVENT(syscalls, sys_enter_##call, "!sys_" #call "(" #n1 ": %(" #n1 ":x))", \
		      CALL_NUMBER_(number), CALL_FIELD_(t1, n1, v1));                      \
		if (__builtin_expect(calls_shown, 0))                                      \
			call_show(#call, 1, #n1, CALL_WORD_(v1));                          \
	} while (0)
#define CALL_ENTER2(call, number, t1, n1, v1, t2, n2, v2)                                      \
	do {                                                                                   \
		CALL_RAW_(number, CALL_WORD_(v1), CALL_WORD_(v2), 0, 0, 0, 0);                 \
		EVENT(syscalls, sys_enter_##call,                                              \
		      "!sys_" #call "(" #n1 ": %(" #n1 ":x), " #n2 ": %(" #n2 ":x))",          \
		      CALL_NUMBER_(number), CALL_FIELD_(t1, n1, v1), CALL_FIELD_(t2, n2, v2)); \
		if (__builtin_expect(calls_shown, 0))                                          \
			call_show(#call, 2, #n1, CALL_WORD_(v1), #n2, CALL_WORD_(v2));         \
	} while (0)
#define CALL_ENTER3(call, number, t1, n1, v1, t2, n2, v2, t3, n3, v3)                         \
	do {                                                                                  \
		CALL_RAW_(number, CALL_WORD_(v1), CALL_WORD_(v2), CALL_WORD_(v3), 0, 0, 0);   \
		EVENT(syscalls, sys_enter_##call,                                             \
		      "!sys_" #call "(" #n1 ": %(" #n1 ":x), " #n2 ": %(" #n2 ":x), " #n3     \
		      ": %(" #n3 ":x))",                                                      \
		      CALL_NUMBER_(number), CALL_FIELD_(t1, n1, v1), CALL_FIELD_(t2, n2, v2), \
		      CALL_FIELD_(t3, n3, v3));                                               \
		if (__builtin_expect(calls_shown, 0))                                         \
			call_show(#call, 3, #n1, CALL_WORD_(v1), #n2, CALL_WORD_(v2), #n3,    \
				  CALL_WORD_(v3));                                            \
	} while (0)
#define CALL_ENTER4(call, number, t1, n1, v1, t2, n2, v2, t3, n3, v3, t4, n4, v4)                 \
	do {                                                                                      \
		CALL_RAW_(number, CALL_WORD_(v1), CALL_WORD_(v2), CALL_WORD_(v3), CALL_WORD_(v4), \
			  0, 0);                                                                  \
		EVENT(syscalls, sys_enter_##call,                                                 \
		      "!sys_" #call "(" #n1 ": %(" #n1 ":x), " #n2 ": %(" #n2 ":x), " #n3         \
		      ": %(" #n3 ":x), " #n4 ": %(" #n4 ":x))",                                   \
		      CALL_NUMBER_(number), CALL_FIELD_(t1, n1, v1), CALL_FIELD_(t2, n2, v2),     \
		      CALL_FIELD_(t3, n3, v3), CALL_FIELD_(t4, n4, v4));                          \
		if (__builtin_expect(calls_shown, 0))                                             \
			call_show(#call, 4, #n1, CALL_WORD_(v1), #n2, CALL_WORD_(v2), #n3,        \
				  CALL_WORD_(v3), #n4, CALL_WORD_(v4));                           \
	} while (0)

#define CALL_EXIT(call, number, result)                                                   \
	do {                                                                              \
		EVENT(syscalls, sys_exit_##call, "!sys_" #call " -> 0x%(ret:x)",          \
		      CALL_NUMBER_(number), GRAFTRACE_INT(long, ret, result));            \
		EVENT(raw_syscalls, sys_exit, "NR %(id) = %(ret)",                        \
		      GRAFTRACE_INT(long, id, number), GRAFTRACE_INT(long, ret, result)); \
		if (__builtin_expect(calls_shown, 0))                                     \
			call_show_return((long)(result), __builtin_frame_address(0));     \
	} while (0)

#endif
