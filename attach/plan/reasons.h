/* SPDX-License-Identifier: MIT */
/*
 * Why a function is not traced, or at its entry only: a number that code compares and the plan's
 * cache stores, and one table of the texts that people read ("graftrace functions" lists them).
 */
#ifndef GT_ATTACH_REASONS_H
#define GT_ATTACH_REASONS_H

#include <stdbool.h>
#include <stdint.h>

/* The order is free: a plan in the cache is found by the build that made it. */
enum gt_plan_reason {
	GT_REASON_NONE = 0,

	/* It is no code of its own, or not ours to patch. */
	GT_REASON_NO_CODE_SECTION,
	GT_REASON_PADDING,
	GT_REASON_HOOKED,
	GT_REASON_UNKNOWN,
	GT_REASON_NOT_AS_IN_FILE,
	GT_REASON_PLT,
	GT_REASON_IFUNC,
	GT_REASON_START,
	GT_REASON_SIGNAL_RETURN,
	GT_REASON_PART,
	GT_REASON_OCAML,
	GT_REASON_LOADER,
	GT_REASON_OWN_REGISTERS,
	GT_REASON_TRACER_CALL,
	GT_REASON_OWN_CONVENTION,
	GT_REASON_SANITIZER,
	GT_REASON_GO,
	GT_REASON_MONO_AOT,

	/* No way to put a jump there. */
	GT_REASON_NO_ROOM,
	GT_REASON_REACHED_INSIDE,
	GT_REASON_CALL_INSIDE,
	GT_REASON_OWN_LOOP,
	GT_REASON_TWO_PAGES,
	GT_REASON_BORROWED,
	GT_REASON_RUNS_ON,
	GT_REASON_UNMOVABLE,
	GT_REASON_NO_INSTRUCTIONS,
	GT_REASON_UNBOUNDED,
	GT_REASON_BLOCKED_SIGNALS,
	GT_REASON_NO_NOP,

	/* Of a system call's place. */
	GT_REASON_PLACE_COMPARED,
	GT_REASON_NO_STACK,
	GT_REASON_OWN_CALLS,

	/* Recorded at its entry only: of one function. */
	GT_REASON_TWICE,
	GT_REASON_SWITCHES,
	GT_REASON_ASKS_CALLER,
	GT_REASON_TAKES_ARGUMENTS,
	GT_REASON_UNWINDS,
	GT_REASON_V8_BUILTIN,
	GT_REASON_V8_GUARD,
	GT_REASON_USES_RETURN_ADDRESS,
	GT_REASON_TAKES_RETURN_ADDRESS,
	GT_REASON_FAR_RETURN,
	GT_REASON_LOOP_COUNTS,
	GT_REASON_CANCELS,

	/* ... of a whole object, or process. */
	GT_REASON_V8,
	GT_REASON_V8_RESOLVER,
	GT_REASON_JAVA,
	GT_REASON_NO_UNWINDER,
	GT_REASON_GREENLET,
	GT_REASON_TEALET,
	GT_REASON_STACKLESS,
	GT_REASON_CALLCC,
	GT_REASON_GUILE,
	GT_REASON_MONO,
	GT_REASON_LUAJIT,
	GT_REASON_THREAD_SANITIZER,

	GT_REASON_COUNT
};

/* The text, without a final stop: what the function is or does, or what is in its object or process.
 * "" for GT_REASON_NONE. */
const char *gt_plan_reason_text(enum gt_plan_reason reason);

/* Whether another try that may borrow room of other functions may find a way. */
bool gt_plan_may_borrow(enum gt_plan_reason reason);

/* Whether a breakpoint, which needs one byte only, is a way. */
bool gt_plan_may_break(enum gt_plan_reason reason);

#endif
