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

/* Exact names, sorted by nothing: a short list is looked through. */
static const struct {
	const char *name;
	enum gt_plan_reason reason;
} entry_only_names[] = {
	{ "setjmp", GT_REASON_TWICE },
	{ "_setjmp", GT_REASON_TWICE },
	{ "__setjmp", GT_REASON_TWICE },
	{ "sigsetjmp", GT_REASON_TWICE },
	{ "__sigsetjmp", GT_REASON_TWICE },
	{ "___sigsetjmp", GT_REASON_TWICE },
	{ "__sigjmp_save", GT_REASON_TWICE },
	{ "vfork", GT_REASON_TWICE },
	{ "__vfork", GT_REASON_TWICE },
	{ "__libc_vfork", GT_REASON_TWICE },
	{ "getcontext", GT_REASON_TWICE },
	{ "__getcontext", GT_REASON_TWICE },
	{ "savectx", GT_REASON_TWICE },
	{ "swapcontext", GT_REASON_SWITCHES },
	{ "__swapcontext", GT_REASON_SWITCHES },
	{ "setcontext", GT_REASON_SWITCHES },
	{ "__setcontext", GT_REASON_SWITCHES },
	{ "makecontext", GT_REASON_SWITCHES },
	{ "__makecontext", GT_REASON_SWITCHES },
	{ "jump_fcontext", GT_REASON_SWITCHES },
	{ "ontop_fcontext", GT_REASON_SWITCHES },
	{ "make_fcontext", GT_REASON_SWITCHES },
	{ "coro_transfer", GT_REASON_SWITCHES },
	{ "dlsym", GT_REASON_ASKS_CALLER },
	{ "__dlsym", GT_REASON_ASKS_CALLER },
	{ "___dlsym", GT_REASON_ASKS_CALLER },
	{ "dlvsym", GT_REASON_ASKS_CALLER },
	{ "__dlvsym", GT_REASON_ASKS_CALLER },
	{ "___dlvsym", GT_REASON_ASKS_CALLER },
	{ "dlopen", GT_REASON_ASKS_CALLER },
	{ "__dlopen", GT_REASON_ASKS_CALLER },
	{ "___dlopen", GT_REASON_ASKS_CALLER },
	{ "dlmopen", GT_REASON_ASKS_CALLER },
	{ "__dlmopen", GT_REASON_ASKS_CALLER },
	{ "___dlmopen", GT_REASON_ASKS_CALLER },
	{ "dl_iterate_phdr", GT_REASON_ASKS_CALLER },
	{ "__dl_iterate_phdr", GT_REASON_ASKS_CALLER },
	{ "_Unwind_RaiseException", GT_REASON_UNWINDS },
	{ "_Unwind_Resume", GT_REASON_UNWINDS },
	{ "_Unwind_Resume_or_Rethrow", GT_REASON_UNWINDS },
	{ "_Unwind_ForcedUnwind", GT_REASON_UNWINDS },
	{ "_Unwind_Backtrace", GT_REASON_UNWINDS },
};

static const struct {
	const char *name;
	enum gt_plan_reason reason;
} never_names[] = {
	{ "__tls_get_addr", GT_REASON_OWN_REGISTERS },
	{ "___tls_get_addr", GT_REASON_OWN_REGISTERS },
	{ "__tls_get_addr_slow", GT_REASON_OWN_REGISTERS },
	{ "__restore_rt", GT_REASON_SIGNAL_RETURN },
	{ "__sigreturn", GT_REASON_SIGNAL_RETURN },
	{ "__fentry__", GT_REASON_TRACER_CALL },
	{ "mcount", GT_REASON_TRACER_CALL },
	{ "_mcount", GT_REASON_TRACER_CALL },
	{ "__cyg_profile_func_enter", GT_REASON_TRACER_CALL },
	{ "__cyg_profile_func_exit", GT_REASON_TRACER_CALL },
	{ "__morestack", GT_REASON_OWN_CONVENTION },
	{ "__x86_return_thunk", GT_REASON_OWN_CONVENTION },
	{ "_dl_tlsdesc_return", GT_REASON_OWN_CONVENTION },
	{ "_dl_tlsdesc_undefweak", GT_REASON_OWN_CONVENTION },
	{ "_dl_tlsdesc_dynamic", GT_REASON_OWN_CONVENTION },
};

static const struct {
	const char *prefix;
	enum gt_plan_reason reason;
} never_prefixes[] = {
	{ "_dl_", GT_REASON_LOADER },
	{ "__x86_indirect_thunk", GT_REASON_OWN_CONVENTION },
	{ "__llvm_retpoline", GT_REASON_OWN_CONVENTION },
	{ "__asan_", GT_REASON_SANITIZER },
	{ "__tsan_", GT_REASON_SANITIZER },
	{ "__msan_", GT_REASON_SANITIZER },
	{ "__lsan_", GT_REASON_SANITIZER },
	{ "__ubsan_", GT_REASON_SANITIZER },
	{ "__sanitizer_", GT_REASON_SANITIZER },
	{ "__sancov_", GT_REASON_SANITIZER },
	{ "__interceptor_", GT_REASON_SANITIZER },
	{ "___interceptor_", GT_REASON_SANITIZER },
	{ "_ZN6__asan", GT_REASON_SANITIZER },
	{ "_ZN6__tsan", GT_REASON_SANITIZER },
	{ "_ZN6__lsan", GT_REASON_SANITIZER },
	{ "_ZN7__ubsan", GT_REASON_SANITIZER },
	{ "_ZN11__sanitizer", GT_REASON_SANITIZER },
	{ "_ZN14__interception", GT_REASON_SANITIZER },
};

enum gt_plan_reason gt_rule_never(const struct gt_object *object,
				  const struct gt_object_function *function)
{
	const char *name = function->name;

	/* One with a name is a call across libraries, for whoever asks for those. */
	if (function->flags & GT_FUNCTION_PLT && !*name)
		return GT_REASON_PLT;
	if (function->flags & GT_FUNCTION_IFUNC)
		return GT_REASON_IFUNC;
	if (function->flags & GT_FUNCTION_START)
		return GT_REASON_START;
	if (function->flags & GT_FUNCTION_SIGNAL_FRAME)
		return GT_REASON_SIGNAL_RETURN;
	if (function->flags & GT_FUNCTION_COLD)
		return GT_REASON_PART;
	if (function->flags & GT_FUNCTION_OCAML)
		return GT_REASON_OCAML;
	if (gt_object_is_loader(object))
		return GT_REASON_LOADER;
	if (name[0] != '_' && name[0] != 'm')
		return GT_REASON_NONE;
	for (uint32_t i = 0; i < sizeof(never_names) / sizeof(*never_names); i++)
		if (strcmp(name, never_names[i].name) == 0)
			return never_names[i].reason;
	for (uint32_t i = 0; i < sizeof(never_prefixes) / sizeof(*never_prefixes); i++)
		if (strncmp(name, never_prefixes[i].prefix, strlen(never_prefixes[i].prefix)) == 0)
			return never_prefixes[i].reason;
	return GT_REASON_NONE;
}

enum gt_plan_reason gt_rule_entry_only(const struct gt_object_function *function)
{
	const char *name = function->name;

	if (!*name)
		return GT_REASON_NONE;
	/* V8: code with its own ideas of where arguments and return addresses are, and what is
	 * given the address of its own return slot. */
	if (strncmp(name, "Builtins_", 9) == 0)
		return GT_REASON_V8_BUILTIN;
	if (strncmp(name, "_ZN2v8", 6) == 0 && strstr(name, "CheckStackGuardState") != NULL)
		return GT_REASON_V8_GUARD;
	for (uint32_t i = 0; i < sizeof(entry_only_names) / sizeof(*entry_only_names); i++)
		if (*name == *entry_only_names[i].name &&
		    strcmp(name, entry_only_names[i].name) == 0)
			return entry_only_names[i].reason;
	return GT_REASON_NONE;
}

/* Engines that read return addresses off their own stack, to find their frames by them. */
static int find_engine(void *data, const struct gt_object_symbol *symbol)
{
	enum gt_plan_reason *reason = data;

	if (symbol->address && (strncmp(symbol->name, "_ZN2v88internal7Isolate", 23) == 0 ||
				strncmp(symbol->name, "_ZN2v87Isolate", 14) == 0))
		*reason = GT_REASON_V8;
	else if (symbol->address && strcmp(symbol->name, "JNI_CreateJavaVM") == 0)
		*reason = GT_REASON_JAVA;
	return *reason != GT_REASON_NONE;
}

static bool is_go(const struct gt_object *object)
{
	return gt_object_section_named(object, ".gopclntab") != NULL ||
	       gt_object_section_named(object, ".note.go.buildid") != NULL;
}

enum gt_plan_reason gt_rule_entries_only(const struct gt_object *object)
{
	static const struct {
		const char *symbol;
		enum gt_plan_reason reason;
	} libraries[] = {
		{ "PyInit__greenlet", GT_REASON_GREENLET },
		{ "PyInit__tealet", GT_REASON_TEALET },
		{ "PyStackless_Call_Main", GT_REASON_STACKLESS },
		{ "Init_continuation", GT_REASON_CALLCC },
		{ "scm_with_continuation_barrier", GT_REASON_GUILE },
		/* ... of whatever its code calls, in any library. */
		{ "mono_jit_init", GT_REASON_MONO },
		{ "luaJIT_setmode", GT_REASON_LUAJIT },
	};
	uint64_t address;

	for (size_t i = 0; object != NULL && i < sizeof(libraries) / sizeof(*libraries); i++)
		if (gt_object_symbol(object, libraries[i].symbol, &address) == 0 && address)
			return libraries[i].reason;
	return GT_REASON_NONE;
}

enum gt_plan_reason gt_rule_checks_mappings(const struct gt_object *object)
{
	uint64_t address;

	if (object != NULL && gt_object_symbol(object, "__tsan_init", &address) == 0 && address)
		return GT_REASON_THREAD_SANITIZER;
	return GT_REASON_NONE;
}

/*
 * A program with the C library inside, whose exceptions are looked up by a function without a name:
 * the unwinder would not be told of stubs, and end the program.
 */
static bool is_without_unwinder(const struct gt_object *object)
{
	uint64_t address;

	return gt_object_catches(object) && gt_object_is_program(object) &&
	       gt_object_interpreter(object) == NULL && gt_object_needed_count(object) == 0 &&
	       gt_object_symbol(object, "_dl_find_object", &address) != 0 &&
	       gt_object_symbol(object, "dl_iterate_phdr", &address) != 0;
}

enum gt_plan_reason gt_rule_object(const struct gt_object *object, bool *never)
{
	enum gt_plan_reason reason = GT_REASON_NONE;
	uint64_t address;

	*never = true;
	if (is_go(object))
		return GT_REASON_GO;
	if (gt_object_symbol(object, "mono_aot_file_info", &address) == 0 && address)
		return GT_REASON_MONO_AOT;
	*never = false;
	if (is_without_unwinder(object))
		return GT_REASON_NO_UNWINDER;
	gt_object_each_symbol(object, find_engine, &reason);
	return reason ? reason : gt_rule_entries_only(object);
}

uint64_t gt_rule_resolver(struct gt_scan *scan, const struct gt_object *object)
{
	static const uint8_t store[] = { 0x48, 0x89, 0x3d }; /* mov %rdi, word(%rip) */
	uint64_t address, word, room;

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
	for (uint32_t left = 16; left > 0; left--) {
		const uint8_t *code = gt_scan_code(scan, address, &room);
		struct gt_instruction instruction;

		if (code == NULL || !gt_instruction_decode(code, room, address, &instruction))
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

	if (strcmp(slash != NULL ? slash + 1 : path, "valgrind") == 0 ||
	    strstr(path, "/valgrind/") != NULL)
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

	for (uint32_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
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

static enum gt_plan_reason look_at_operands(const struct walk *walk,
					    const struct gt_instruction *instruction)
{

	if (!instruction->memory || instruction->indexed || instruction->is_lea ||
	    instruction->kind == GT_INSTRUCTION_NOP)
		return GT_REASON_NONE;
	if (instruction->base == 4 && walk->depth != DEPTH_UNKNOWN &&
	    instruction->displacement == walk->depth)
		return GT_REASON_USES_RETURN_ADDRESS;
	if (instruction->base == 5 && walk->frame != DEPTH_UNKNOWN &&
	    instruction->displacement == walk->frame)
		return GT_REASON_USES_RETURN_ADDRESS;
	return GT_REASON_NONE;
}

static enum gt_plan_reason follow_stack(struct walk *walk, const struct gt_stack_effect *effect,
					bool quiet)
{
	if (effect->loads_stack && !walk->framed &&
	    (effect->loaded_from > 15 || !(walk->saved >> effect->loaded_from & 1)))
		return GT_REASON_SWITCHES;
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
			return quiet ? GT_REASON_NONE : GT_REASON_TAKES_RETURN_ADDRESS;
		}
	}
	return GT_REASON_NONE;
}

/* Whether what begins here ends in a call of __tsan_func_entry, before anything else is called: the
 * return address is its argument, and the agent's hook gives it the real one. */
static bool is_for_tsan(struct gt_scan *scan, uint64_t address, const uint8_t *code, uint32_t bytes)
{
	struct gt_instruction instruction;
	uint32_t at = 0;

	for (uint32_t count = 0; count < 16 && at < bytes; count++) {
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
static enum gt_plan_reason look_behind_jump(struct gt_scan *scan, uint64_t target)
{
	struct walk walk = { .depth = 0, .frame = DEPTH_UNKNOWN };

	for (uint32_t left = BEHIND_JUMP_MAX; left > 0; left--) {
		struct gt_instruction instruction;
		struct gt_stack_effect effect;
		uint64_t room;
		const uint8_t *code = gt_scan_code(scan, target, &room);
		enum gt_plan_reason reason;

		if (code == NULL || !gt_instruction_decode(code, room, target, &instruction))
			return GT_REASON_NONE;
		reason = look_at_operands(&walk, &instruction);
		if (reason && is_for_tsan(scan, target, code, (uint32_t)(room < 256 ? room : 256)))
			reason = GT_REASON_NONE;
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
			return GT_REASON_NONE;
		if (instruction.kind == GT_INSTRUCTION_JMP && instruction.target_bytes)
			target = instruction.target;
		else if (gt_instruction_ends(&instruction))
			return GT_REASON_NONE;
		else
			target += instruction.bytes;
	}
	return GT_REASON_NONE;
}

void gt_rule_scratch_free(struct gt_rule_scratch *scratch)
{
	free(scratch->depths);
	scratch->depths = NULL;
	scratch->room = 0;
	gt_returns_free(&scratch->returns);
}

enum gt_plan_reason gt_rule_code(struct gt_scan *scan, const struct gt_object_function *function,
				 bool instrumented, struct gt_rule_scratch *scratch)
{
	struct walk walk = { .depth = 0, .frame = DEPTH_UNKNOWN };
	const uint32_t bytes = function->bytes;
	enum gt_plan_reason reason = GT_REASON_NONE;
	uint64_t room;
	const uint8_t *code = gt_scan_code(scan, function->address, &room);
	uint32_t at = 0;

	if (code == NULL || room < bytes)
		return GT_REASON_NONE;
	if (scratch->room < bytes) {
		int32_t *grown = realloc(scratch->depths, (size_t)bytes * sizeof(*grown));

		if (grown == NULL)
			return GT_REASON_NONE;
		scratch->depths = grown;
		scratch->room = bytes;
	}
	for (uint32_t i = 0; i < bytes; i++)
		scratch->depths[i] = DEPTH_UNSET;
	if (gt_returns_take(&scratch->returns, scan, function))
		reason = GT_REASON_TAKES_ARGUMENTS;
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
			reason = GT_REASON_NONE;
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
				reason = GT_REASON_TWICE;
			else if (special == GT_SPECIAL_CALLER)
				reason = GT_REASON_ASKS_CALLER;
		}
		if (!reason && instruction.kind == GT_INSTRUCTION_RET && instruction.takes)
			reason = instruction.takes == GT_INSTRUCTION_FAR
					 ? GT_REASON_FAR_RETURN
					 : GT_REASON_TAKES_ARGUMENTS;
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
