/* SPDX-License-Identifier: MIT */
/*
 * The rules by name and by code. By code: the stack's depth is followed through the function, along
 * its forward jumps, so that an operand that is the return slot is recognised wherever it stands.
 */
#include "attach/plan/rules.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_UNSET   INT32_MIN	      /* nobody jumped here yet */
#define DEPTH_UNKNOWN (INT32_MIN + 1) /* ... with a depth that cannot be told */

#define BEHIND_JUMP_MAX 32 /* instructions that are looked at behind a tail call */

static const char twice[] = "returns twice";
static const char switches[] = "switches stacks";
static const char asks_caller[] = "asks who called it";
static const char takes[] = "takes its arguments off the stack when it returns";
static const char unwinds[] = "unwinds the stack from its own frame";

/* Exact names, sorted by nothing: a short list is looked through. */
static const struct {
	const char *name;
	const char *reason;
} entry_only_names[] = {
	{ "setjmp", twice },
	{ "_setjmp", twice },
	{ "__setjmp", twice },
	{ "sigsetjmp", twice },
	{ "__sigsetjmp", twice },
	{ "___sigsetjmp", twice },
	{ "__sigjmp_save", twice },
	{ "vfork", twice },
	{ "__vfork", twice },
	{ "__libc_vfork", twice },
	{ "getcontext", twice },
	{ "__getcontext", twice },
	{ "savectx", twice },
	{ "swapcontext", switches },
	{ "__swapcontext", switches },
	{ "setcontext", switches },
	{ "__setcontext", switches },
	{ "makecontext", switches },
	{ "__makecontext", switches },
	{ "jump_fcontext", switches },
	{ "ontop_fcontext", switches },
	{ "make_fcontext", switches },
	{ "coro_transfer", switches },
	{ "dlsym", asks_caller },
	{ "__dlsym", asks_caller },
	{ "___dlsym", asks_caller },
	{ "dlvsym", asks_caller },
	{ "__dlvsym", asks_caller },
	{ "___dlvsym", asks_caller },
	{ "dlopen", asks_caller },
	{ "__dlopen", asks_caller },
	{ "___dlopen", asks_caller },
	{ "dlmopen", asks_caller },
	{ "__dlmopen", asks_caller },
	{ "___dlmopen", asks_caller },
	{ "dl_iterate_phdr", asks_caller },
	{ "__dl_iterate_phdr", asks_caller },
	{ "_Unwind_RaiseException", unwinds },
	{ "_Unwind_Resume", unwinds },
	{ "_Unwind_Resume_or_Rethrow", unwinds },
	{ "_Unwind_ForcedUnwind", unwinds },
	{ "_Unwind_Backtrace", unwinds },
};

static const struct {
	const char *name;
	const char *reason;
} never_names[] = {
	{ "__tls_get_addr", "is called with its own register rules" },
	{ "___tls_get_addr", "is called with its own register rules" },
	{ "__tls_get_addr_slow", "is called with its own register rules" },
	{ "__restore_rt", "is returned to from a signal, never called" },
	{ "__sigreturn", "is returned to from a signal, never called" },
	{ "__fentry__", "is the compiler's own call for tracers" },
	{ "mcount", "is the compiler's own call for tracers" },
	{ "_mcount", "is the compiler's own call for tracers" },
	{ "__cyg_profile_func_enter", "is the compiler's own call for tracers" },
	{ "__cyg_profile_func_exit", "is the compiler's own call for tracers" },
	{ "__morestack", "has a calling convention of its own" },
	{ "__x86_return_thunk", "has a calling convention of its own" },
	{ "_dl_tlsdesc_return", "has a calling convention of its own" },
	{ "_dl_tlsdesc_undefweak", "has a calling convention of its own" },
	{ "_dl_tlsdesc_dynamic", "has a calling convention of its own" },
};

static const struct {
	const char *prefix;
	const char *reason;
} never_prefixes[] = {
	{ "_dl_", "belongs to the dynamic loader" },
	{ "__x86_indirect_thunk", "has a calling convention of its own" },
	{ "__llvm_retpoline", "has a calling convention of its own" },
	{ "__asan_", "belongs to a sanitizer" },
	{ "__tsan_", "belongs to a sanitizer" },
	{ "__msan_", "belongs to a sanitizer" },
	{ "__lsan_", "belongs to a sanitizer" },
	{ "__ubsan_", "belongs to a sanitizer" },
	{ "__sanitizer_", "belongs to a sanitizer" },
	{ "__sancov_", "belongs to a sanitizer" },
	{ "__interceptor_", "belongs to a sanitizer" },
	{ "___interceptor_", "belongs to a sanitizer" },
	{ "_ZN6__asan", "belongs to a sanitizer" },
	{ "_ZN6__tsan", "belongs to a sanitizer" },
	{ "_ZN6__lsan", "belongs to a sanitizer" },
	{ "_ZN7__ubsan", "belongs to a sanitizer" },
	{ "_ZN11__sanitizer", "belongs to a sanitizer" },
	{ "_ZN14__interception", "belongs to a sanitizer" },
};

const char *gt_rule_never(const struct gt_object *object, const struct gt_object_function *function)
{
	const char *name = function->name;
	uint32_t i;

	/* One with a name is a call across libraries, for whoever asks for those. */
	if (function->flags & GT_FUNCTION_PLT && !*name)
		return "is a linkage stub";
	if (function->flags & GT_FUNCTION_IFUNC)
		return "chooses an implementation while the program is linked (IFUNC)";
	if (function->flags & GT_FUNCTION_START)
		return "runs before or after the program proper";
	if (function->flags & GT_FUNCTION_SIGNAL_FRAME)
		return "is returned to from a signal, never called";
	if (function->flags & GT_FUNCTION_COLD)
		return "is a part of another function";
	if (function->flags & GT_FUNCTION_OCAML)
		return "is OCaml's, whose runtime goes by addresses of its code";
	if (gt_object_is_loader(object))
		return "belongs to the dynamic loader";
	if (name[0] != '_' && name[0] != 'm')
		return NULL;
	for (i = 0; i < sizeof(never_names) / sizeof(*never_names); i++)
		if (strcmp(name, never_names[i].name) == 0)
			return never_names[i].reason;
	for (i = 0; i < sizeof(never_prefixes) / sizeof(*never_prefixes); i++)
		if (strncmp(name, never_prefixes[i].prefix, strlen(never_prefixes[i].prefix)) == 0)
			return never_prefixes[i].reason;
	return NULL;
}

const char *gt_rule_entry_only(const struct gt_object_function *function)
{
	const char *name = function->name;
	uint32_t i;

	if (!*name)
		return NULL;
	/* V8: code with its own ideas of where arguments and return addresses are, and what is
	 * given the address of its own return slot. */
	if (strncmp(name, "Builtins_", 9) == 0)
		return "is machine code that V8 has made";
	if (strncmp(name, "_ZN2v8", 6) == 0 && strstr(name, "CheckStackGuardState"))
		return "is told where its own return address is";
	for (i = 0; i < sizeof(entry_only_names) / sizeof(*entry_only_names); i++)
		if (*name == *entry_only_names[i].name &&
		    strcmp(name, entry_only_names[i].name) == 0)
			return entry_only_names[i].reason;
	return NULL;
}

/* Engines that read return addresses off their own stack, to find their frames by them. */
static int find_engine(void *data, const struct gt_object_symbol *symbol)
{
	const char **reason = data;

	if (symbol->address && (strncmp(symbol->name, "_ZN2v88internal7Isolate", 23) == 0 ||
				strncmp(symbol->name, "_ZN2v87Isolate", 14) == 0))
		*reason = "the V8 engine in it walks its stack by return addresses";
	else if (symbol->address && strcmp(symbol->name, "JNI_CreateJavaVM") == 0)
		*reason = "the Java engine in it walks its stack by return addresses";
	return *reason != NULL;
}

static bool is_go(const struct gt_object *object)
{
	return gt_object_section_named(object, ".gopclntab") ||
	       gt_object_section_named(object, ".note.go.buildid");
}

const char *gt_rule_entries_only(const struct gt_object *object)
{
	static const struct {
		const char *symbol;
		const char *reason;
	} libraries[] = {
		{ "PyInit__greenlet",
		  "greenlet is in the process, which copies stacks away and back" },
		{ "PyInit__tealet", "tealet is in the process, which copies stacks away and back" },
		{ "PyStackless_Call_Main",
		  "Stackless Python is in the process, which copies stacks away and back" },
		{ "Init_continuation",
		  "callcc is in the process, which copies stacks away and back" },
		{ "scm_with_continuation_barrier",
		  "Guile is in the process, which copies stacks away and back" },
		/* ... of whatever its code calls, in any library. */
		{ "mono_jit_init",
		  "Mono is in the process, which finds its frames by return addresses" },
		{ "luaJIT_setmode",
		  "LuaJIT is in the process, which finds its frames by where its calls lie" },
	};
	uint64_t address;
	size_t i;

	for (i = 0; object && i < sizeof(libraries) / sizeof(*libraries); i++)
		if (gt_object_symbol(object, libraries[i].symbol, &address) == 0 && address)
			return libraries[i].reason;
	return NULL;
}

const char *gt_rule_checks_mappings(const struct gt_object *object)
{
	uint64_t address;

	if (object && gt_object_symbol(object, "__tsan_init", &address) == 0 && address)
		return "ThreadSanitizer is in the process, which allows nothing where return "
		       "addresses would be kept";
	return NULL;
}

/*
 * A program with the C library inside, whose exceptions are looked up by a function without a name:
 * the unwinder would not be told of stubs, and end the program.
 */
static bool is_without_unwinder(const struct gt_object *object)
{
	uint64_t address;

	return gt_object_catches(object) && gt_object_is_program(object) &&
	       !gt_object_interpreter(object) && gt_object_needed_count(object) == 0 &&
	       gt_object_symbol(object, "_dl_find_object", &address) != 0 &&
	       gt_object_symbol(object, "dl_iterate_phdr", &address) != 0;
}

const char *gt_rule_object(const struct gt_object *object, bool *never)
{
	const char *reason = NULL;
	uint64_t address;

	*never = true;
	if (is_go(object))
		return "belongs to a Go program, whose runtime moves stacks";
	if (gt_object_symbol(object, "mono_aot_file_info", &address) == 0 && address)
		return "was compiled by Mono, whose runtime reads and rewrites its code";
	*never = false;
	if (is_without_unwinder(object))
		return "catches exceptions, by an unwinder that is not found: the program is "
		       "static and stripped";
	gt_object_each_symbol(object, find_engine, &reason);
	return reason ? reason : gt_rule_entries_only(object);
}

uint64_t gt_rule_resolver(struct gt_scan *scan, const struct gt_object *object)
{
	static const uint8_t store[] = { 0x48, 0x89, 0x3d }; /* mov %rdi, word(%rip) */
	uint64_t address, word, room;
	uint32_t left;

	if (gt_object_symbol(object, "_ZN2v82V832SetReturnAddressLocationResolverEPFmmE",
			     &address) ||
	    !address)
		return 0;
	/* A library's code reaches it through its tables, so it has a name. */
	if (gt_object_symbol(object,
			     "_ZN2v88internal10StackFrame33return_address_location_"
			     "resolver_E",
			     &word) == 0 &&
	    word)
		return word;
	for (left = 16; left > 0; left--) {
		const uint8_t *code = gt_scan_code(scan, address, &room);
		struct gt_instruction instruction;

		if (!code || !gt_instruction_decode(code, room, address, &instruction))
			return 0;
		if (instruction.bytes == 7 && memcmp(code, store, sizeof(store)) == 0)
			return instruction.rip_target;
		/* To V8's inner function, also with a frame around it. */
		if ((instruction.kind == GT_INSTRUCTION_JMP ||
		     instruction.kind == GT_INSTRUCTION_CALL) &&
		    instruction.target_bytes)
			address = instruction.target;
		else if (gt_instruction_ends(&instruction))
			return 0;
		else
			address += instruction.bytes;
	}
	return 0;
}

const char *gt_rule_refused(const struct gt_object *object)
{
	const char *path = gt_object_path(object), *slash = strrchr(path, '/');
	uint64_t address;

	if (strcmp(slash ? slash + 1 : path, "valgrind") == 0 || strstr(path, "/valgrind/"))
		return "belongs to Valgrind, which executes a translation of a program's code: "
		       "trace the program without";
	if (gt_object_symbol(object, "__msan_init", &address) == 0 && address)
		return "is built with MemorySanitizer, which keeps the memory that graftrace "
		       "needs: "
		       "use a build without";
	return NULL;
}

const char *gt_rule_nothing(const struct gt_object *object)
{
	return is_go(object) ? "is a Go program: its runtime moves stacks, so its calls cannot be "
			       "traced; use Go's own runtime/trace or pprof"
			     : NULL;
}

bool gt_rule_is_libc(const struct gt_object *object)
{
	static const char *const starts[] = { "libc.so",       "libc-2",   "libc.musl",
					      "ld-linux",      "ld-musl",  "ld.so",
					      "libpthread.so", "libdl.so", "libexecinfo.so" };
	const char *name = gt_object_soname(object);
	uint32_t i;

	for (i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

/* What is known of the stack at a point of a function. All distances in bytes below the return
 * slot. */
struct walk {
	int32_t depth; /* rsp = slot - depth, or DEPTH_UNKNOWN */
	int32_t frame; /* rbp = slot - frame, or DEPTH_UNKNOWN */
	bool framed;   /* it has made rbp its frame pointer */
	/* Registers that had a value of rsp, or something from the stack, which may be one:
	 * variable length arrays are undone from there. */
	uint32_t saved;
};

static const char *look_at_operands(const struct walk *walk,
				    const struct gt_instruction *instruction)
{
	static const char own[] = "uses its own return address";

	if (!instruction->memory || instruction->indexed || instruction->is_lea ||
	    instruction->kind == GT_INSTRUCTION_NOP)
		return NULL;
	if (instruction->base == 4 && walk->depth != DEPTH_UNKNOWN &&
	    instruction->displacement == walk->depth)
		return own;
	if (instruction->base == 5 && walk->frame != DEPTH_UNKNOWN &&
	    instruction->displacement == walk->frame)
		return own;
	return NULL;
}

static const char *follow_stack(struct walk *walk, const struct gt_stack_effect *effect, bool quiet)
{
	if (effect->loads_stack && !walk->framed &&
	    (effect->loaded_from > 15 || !(walk->saved >> effect->loaded_from & 1)))
		return switches;
	if (effect->saved_to < 16)
		walk->saved |= 1u << effect->saved_to;
	if (effect->sets_frame) {
		walk->frame = walk->depth;
		walk->framed = true;
	}
	if (effect->unknown) {
		walk->depth = DEPTH_UNKNOWN;
	} else if (effect->from_frame) {
		walk->depth =
			walk->frame == DEPTH_UNKNOWN ? DEPTH_UNKNOWN : walk->frame - effect->delta;
	} else if (walk->depth != DEPTH_UNKNOWN) {
		walk->depth -= effect->delta;
		if (walk->depth < 0) {
			walk->depth = DEPTH_UNKNOWN;
			return quiet ? NULL : "takes its own return address off the stack";
		}
	}
	return NULL;
}

/* Whether what begins here ends in a call of __tsan_func_entry, before anything else is called: the
 * return address is its argument, and the agent's hook gives it the real one. */
static bool is_for_tsan(struct gt_scan *scan, uint64_t address, const uint8_t *code, uint32_t bytes)
{
	struct gt_instruction instruction;
	uint32_t at = 0, count;

	for (count = 0; count < 16 && at < bytes; count++) {
		if (!gt_instruction_decode(code + at, bytes - at, address + at, &instruction))
			return false;
		if (instruction.kind == GT_INSTRUCTION_CALL ||
		    instruction.kind == GT_INSTRUCTION_CALL_INDIRECT)
			return gt_scan_special(scan, &instruction) == GT_SPECIAL_TSAN;
		if (gt_instruction_ends(&instruction))
			return false;
		at += instruction.bytes;
	}
	return false;
}

/*
 * What a jump leads to when the stack is as it was at the entry: the other function finds the same
 * return slot. Without names (stripped static programs) setjmp is known by this alone: it saves its
 * return address, so the function that jumps there must keep the real one, too.
 */
static const char *look_behind_jump(struct gt_scan *scan, uint64_t target)
{
	struct walk walk = { .depth = 0, .frame = DEPTH_UNKNOWN };
	uint32_t left;

	for (left = BEHIND_JUMP_MAX; left > 0; left--) {
		struct gt_instruction instruction;
		struct gt_stack_effect effect;
		uint64_t room;
		const uint8_t *code = gt_scan_code(scan, target, &room);
		const char *reason;

		if (!code || !gt_instruction_decode(code, room, target, &instruction))
			return NULL;
		reason = look_at_operands(&walk, &instruction);
		if (reason && is_for_tsan(scan, target, code, (uint32_t)(room < 256 ? room : 256)))
			reason = NULL;
		if (instruction.memory && !instruction.is_lea &&
		    (instruction.base == 4 || instruction.base == 5))
			walk.saved |= 1u << (instruction.reg & 15);
		if (!reason && instruction.stack) {
			gt_instruction_stack(code, room, &effect);
			reason = follow_stack(&walk, &effect, false);
		}
		if (reason)
			return reason;
		if (walk.depth == DEPTH_UNKNOWN)
			return NULL;
		if (instruction.kind == GT_INSTRUCTION_JMP && instruction.target_bytes)
			target = instruction.target;
		else if (gt_instruction_ends(&instruction))
			return NULL;
		else
			target += instruction.bytes;
	}
	return NULL;
}

void gt_rule_scratch_free(struct gt_rule_scratch *scratch)
{
	free(scratch->depths);
	scratch->depths = NULL;
	scratch->room = 0;
	gt_returns_free(&scratch->returns);
}

const char *gt_rule_code(struct gt_scan *scan, const struct gt_object_function *function,
			 bool instrumented, struct gt_rule_scratch *scratch)
{
	struct walk walk = { .depth = 0, .frame = DEPTH_UNKNOWN };
	const uint32_t bytes = function->bytes;
	const char *reason = NULL;
	uint64_t room;
	const uint8_t *code = gt_scan_code(scan, function->address, &room);
	uint32_t at = 0, i;

	if (!code || room < bytes)
		return NULL;
	if (scratch->room < bytes) {
		int32_t *grown = realloc(scratch->depths, (size_t)bytes * sizeof(*grown));

		if (!grown)
			return NULL;
		scratch->depths = grown;
		scratch->room = bytes;
	}
	for (i = 0; i < bytes; i++)
		scratch->depths[i] = DEPTH_UNSET;
	if (gt_returns_take(&scratch->returns, scan, function))
		reason = takes;
	while (at < bytes && !reason) {
		struct gt_instruction instruction;
		struct gt_stack_effect effect;

		if (scratch->depths[at] != DEPTH_UNSET)
			walk.depth = scratch->depths[at];
		if (!gt_instruction_decode(code + at, bytes - at, function->address + at,
					   &instruction)) {
			at++;
			walk.depth = DEPTH_UNKNOWN;
			continue;
		}
		if (!instrumented)
			reason = look_at_operands(&walk, &instruction);
		if (reason && is_for_tsan(scan, function->address + at, code + at, bytes - at))
			reason = NULL;
		if (instruction.memory && !instruction.is_lea &&
		    (instruction.base == 4 || instruction.base == 5))
			walk.saved |= 1u << (instruction.reg & 15);
		if (!reason && instruction.stack) {
			gt_instruction_stack(code + at, bytes - at, &effect);
			reason = follow_stack(&walk, &effect, instrumented);
		}
		if (!reason && (instruction.kind == GT_INSTRUCTION_JMP ||
				instruction.kind == GT_INSTRUCTION_JMP_INDIRECT)) {
			const enum gt_special special = gt_scan_special(scan, &instruction);

			if (special == GT_SPECIAL_TWICE)
				reason = twice;
			else if (special == GT_SPECIAL_CALLER)
				reason = asks_caller;
		}
		if (!reason && instruction.kind == GT_INSTRUCTION_RET && instruction.takes)
			reason = instruction.takes == GT_INSTRUCTION_FAR
					 ? "returns by more than an address (lret, iret)"
					 : takes;
		if (!reason && !instrumented && walk.depth == 0 && instruction.target_bytes &&
		    (instruction.kind == GT_INSTRUCTION_JMP ||
		     instruction.kind == GT_INSTRUCTION_JCC) &&
		    instruction.target - function->address >= bytes)
			reason = look_behind_jump(scan, instruction.target);
		if (instruction.target_bytes && instruction.kind != GT_INSTRUCTION_CALL &&
		    instruction.target > function->address + at &&
		    instruction.target - function->address < bytes)
			scratch->depths[instruction.target - function->address] = walk.depth;
		if (gt_instruction_ends(&instruction))
			walk.depth = DEPTH_UNKNOWN;
		at += instruction.bytes;
	}
	return reason;
}
