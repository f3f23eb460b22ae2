/* SPDX-License-Identifier: MIT */
/*
 * Marks that a program leaves in its own trace: C11 and C++17, x86-64, gcc and clang, this header and
 * event.h alone.
 *
 *	#include <graftrace/mark.h>
 *
 *	graftrace_mark("cache emptied");
 *	graftrace_mark_value("queue length", length);
 *
 * Each leaves a 5-byte nop and a note beside the code; there is nothing to link. Untraced it costs the
 * nop and the computation of the values. A recording has the marks in the calls in which they happened,
 * without any option ("graftrace record -e '!graftrace:mark'" leaves them out). For graftrace, gdb, perf
 * and SystemTap they are the event graftrace:mark. From any thread and signal handler.
 */
#ifndef GRAFTRACE_MARK_H
#define GRAFTRACE_MARK_H

#include <graftrace/event.h>

/* what: a const char *, of which 63 bytes are recorded. */
#define graftrace_mark(what) GRAFTRACE_EVENT(graftrace, mark, GRAFTRACE_STRING(text, what))

/* And an integer. */
#define graftrace_mark_value(what, number)                             \
	GRAFTRACE_EVENT(graftrace, mark, GRAFTRACE_STRING(text, what), \
			GRAFTRACE_INT(long long, value, number))

#endif
