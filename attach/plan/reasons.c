/* SPDX-License-Identifier: MIT */
#include "attach/plan/reasons.h"

static const char *const texts[GT_REASON_COUNT] = {
	[GT_REASON_NONE] = "",
	[GT_REASON_NO_CODE_SECTION] = "is in no section of code",
	[GT_REASON_PADDING] = "is padding",
	[GT_REASON_HOOKED] = "is watched, to keep the records right",
	[GT_REASON_UNKNOWN] = "is no function that is known here",
	[GT_REASON_NOT_AS_IN_FILE] =
		"is not in memory as in its file: a debugger's, or another tracer's",
	[GT_REASON_PLT] = "is a linkage stub",
	[GT_REASON_IFUNC] = "chooses an implementation while the program is linked (IFUNC)",
	[GT_REASON_START] = "runs before or after the program proper",
	[GT_REASON_SIGNAL_RETURN] = "is returned to from a signal, never called",
	[GT_REASON_PART] = "is a part of another function",
	[GT_REASON_OCAML] = "is OCaml's, whose runtime goes by addresses of its code",
	[GT_REASON_LOADER] = "belongs to the dynamic loader",
	[GT_REASON_OWN_REGISTERS] = "is called with its own register rules",
	[GT_REASON_TRACER_CALL] = "is the compiler's own call for tracers",
	[GT_REASON_OWN_CONVENTION] = "has a calling convention of its own",
	[GT_REASON_SANITIZER] = "belongs to a sanitizer",
	[GT_REASON_GO] = "belongs to a Go program, whose runtime moves stacks",
	[GT_REASON_MONO_AOT] = "was compiled by Mono, whose runtime reads and rewrites its code",
	[GT_REASON_NO_ROOM] = "is shorter than a jump, and no room is near it",
	[GT_REASON_REACHED_INSIDE] = "a jump leads into its first bytes",
	[GT_REASON_CALL_INSIDE] = "calls within its first bytes, and no room is near it",
	[GT_REASON_OWN_LOOP] = "its own loop begins at its first byte, and no room is near it",
	[GT_REASON_TWO_PAGES] = "its first bytes lie on two pages, which are not written at once",
	[GT_REASON_BORROWED] = "its first bytes are needed for the patch of another place",
	[GT_REASON_RUNS_ON] = "goes on into the next function within its first bytes",
	[GT_REASON_UNMOVABLE] = "its first instructions cannot be moved",
	[GT_REASON_NO_INSTRUCTIONS] = "its first bytes are no instructions",
	[GT_REASON_UNBOUNDED] = "its end is not known",
	[GT_REASON_BLOCKED_SIGNALS] =
		"needs a breakpoint, but the C library runs with its signals blocked",
	[GT_REASON_NO_NOP] = "has no nop where a probe should be",
	[GT_REASON_TWICE] = "returns twice",
	[GT_REASON_SWITCHES] = "switches stacks",
	[GT_REASON_ASKS_CALLER] = "asks who called it",
	[GT_REASON_TAKES_ARGUMENTS] = "takes its arguments off the stack when it returns",
	[GT_REASON_UNWINDS] = "unwinds the stack from its own frame",
	[GT_REASON_V8_BUILTIN] = "is machine code that V8 has made",
	[GT_REASON_V8_GUARD] = "is told where its own return address is",
	[GT_REASON_USES_RETURN_ADDRESS] = "uses its own return address",
	[GT_REASON_TAKES_RETURN_ADDRESS] = "takes its own return address off the stack",
	[GT_REASON_FAR_RETURN] = "returns by more than an address (lret, iret)",
	[GT_REASON_LOOP_COUNTS] =
		"its own loop begins at its first byte: each round counts as a call",
	[GT_REASON_CANCELS] = "a thread may be cancelled in it, by an unwinder that is not found",
	[GT_REASON_PLACE_COMPARED] = "a signal handler compares its place with the interrupted one",
	[GT_REASON_NO_STACK] = "it has no stack: the thread has just unmapped it",
	[GT_REASON_OWN_CALLS] = "graftrace makes its own calls in threads' names there",
	[GT_REASON_V8] = "the V8 engine in it walks its stack by return addresses",
	[GT_REASON_V8_RESOLVER] = "the V8 engine in it has another resolver of return addresses",
	[GT_REASON_JAVA] = "the Java engine in it walks its stack by return addresses",
	[GT_REASON_NO_UNWINDER] = "catches exceptions, by an unwinder that is not found: the "
				  "program is static and stripped",
	[GT_REASON_GREENLET] = "greenlet is in the process, which copies stacks away and back",
	[GT_REASON_TEALET] = "tealet is in the process, which copies stacks away and back",
	[GT_REASON_STACKLESS] =
		"Stackless Python is in the process, which copies stacks away and back",
	[GT_REASON_CALLCC] = "callcc is in the process, which copies stacks away and back",
	[GT_REASON_GUILE] = "Guile is in the process, which copies stacks away and back",
	[GT_REASON_MONO] = "Mono is in the process, which finds its frames by return addresses",
	[GT_REASON_LUAJIT] =
		"LuaJIT is in the process, which finds its frames by where its calls lie",
	[GT_REASON_THREAD_SANITIZER] = "ThreadSanitizer is in the process, which allows nothing "
				       "where return addresses would be kept",
};

_Static_assert(GT_REASON_COUNT <= UINT8_MAX, "a reason is a byte of a plan's entry");

const char *gt_plan_reason_text(enum gt_plan_reason reason)
{
	return reason < GT_REASON_COUNT ? texts[reason] : "?";
}

bool gt_plan_may_borrow(enum gt_plan_reason reason)
{
	switch (reason) {
	case GT_REASON_NO_ROOM:
	case GT_REASON_REACHED_INSIDE:
	case GT_REASON_CALL_INSIDE:
	case GT_REASON_OWN_LOOP:
	case GT_REASON_TWO_PAGES:
		return true;
	default:
		return false;
	}
}

bool gt_plan_may_break(enum gt_plan_reason reason)
{
	switch (reason) {
	case GT_REASON_BORROWED:
	case GT_REASON_RUNS_ON:
	case GT_REASON_UNMOVABLE:
		return true;
	default:
		return gt_plan_may_borrow(reason);
	}
}
