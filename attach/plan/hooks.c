/* SPDX-License-Identifier: MIT */
/*
 * Finds the functions that the agent hooks. Most names mean what they say only in the C library, or
 * in a static program, which has it inside; the unwinder's names can be anywhere (-static-libgcc).
 */
#include "attach/plan/hooks.h"
#include "attach/plan/rules.h"

#include <stdlib.h>
#include <string.h>

/* A kind with the number that its hook site gets. */
#define NUMBERED(kind, number) ((uint32_t)(kind) | (number) << 16)

static const struct {
	const char *name;
	uint32_t kind;
	bool anywhere; /* not only in the C library */
} names[] = {
	{ "longjmp", GRAFTRACE_HOOK_LONGJMP, false },
	{ "_longjmp", GRAFTRACE_HOOK_LONGJMP, false },
	{ "siglongjmp", GRAFTRACE_HOOK_LONGJMP, false },
	{ "__libc_longjmp", GRAFTRACE_HOOK_LONGJMP, false },
	{ "__libc_siglongjmp", GRAFTRACE_HOOK_LONGJMP, false },
	{ "__longjmp_chk", GRAFTRACE_HOOK_LONGJMP, false },
	{ "____longjmp_chk", GRAFTRACE_HOOK_LONGJMP, false },
	{ "_Unwind_SetIP", GRAFTRACE_HOOK_UNWIND_SETIP, true },
	{ "setcontext", GRAFTRACE_HOOK_SETCONTEXT, false },
	{ "swapcontext", GRAFTRACE_HOOK_SWAPCONTEXT, false },
	{ "getcontext", GRAFTRACE_HOOK_GETCONTEXT, false },
	{ "_dl_debug_state", GRAFTRACE_HOOK_DEBUG_STATE, false },
	{ "execve", GRAFTRACE_HOOK_EXEC, false },
	{ "execveat", GRAFTRACE_HOOK_EXEC, false },
	{ "fexecve", GRAFTRACE_HOOK_EXEC, false },
	{ "_dl_find_object", GRAFTRACE_HOOK_FIND_OBJECT, false },
	{ "dl_iterate_phdr", GRAFTRACE_HOOK_ITERATE_PHDR, false },
	{ "_Unwind_Backtrace", GRAFTRACE_HOOK_UNWIND_BACKTRACE, true },
	{ "pthread_create", GRAFTRACE_HOOK_THREAD, false },
	{ "clone", GRAFTRACE_HOOK_CLONE, false },
	{ "__call_tls_dtors", GRAFTRACE_HOOK_LEAVE, false },
	{ "__tsan_func_entry", GRAFTRACE_HOOK_TSAN, true },
	{ "sigaction", GRAFTRACE_HOOK_SIGACTION, false },
	{ "pthread_sigmask", GRAFTRACE_HOOK_SIGMASK, false },
	{ "sigprocmask", GRAFTRACE_HOOK_SIGMASK, false },
	{ "sigsuspend", NUMBERED(GRAFTRACE_HOOK_WAITMASK, 0), false },
	{ "pthread_attr_setsigmask_np", NUMBERED(GRAFTRACE_HOOK_WAITMASK, 1), false },
	{ "ppoll", NUMBERED(GRAFTRACE_HOOK_WAITMASK, 3), false },
	{ "epoll_pwait", NUMBERED(GRAFTRACE_HOOK_WAITMASK, 4), false },
	{ "epoll_pwait2", NUMBERED(GRAFTRACE_HOOK_WAITMASK, 4), false },
	{ "pselect", NUMBERED(GRAFTRACE_HOOK_WAITMASK, 5), false },
	{ "sigpending", GRAFTRACE_HOOK_SIGPENDING, false },
	{ "sigwait", GRAFTRACE_HOOK_SIGWAIT, false },
	{ "sigwaitinfo", NUMBERED(GRAFTRACE_HOOK_SIGWAIT, 1), false },
	{ "sigtimedwait", NUMBERED(GRAFTRACE_HOOK_SIGWAIT, 1), false },
	{ "syscall", GRAFTRACE_HOOK_SYSCALL, false },
	{ "prctl", GRAFTRACE_HOOK_PRCTL, false },
	{ "arch_prctl", GRAFTRACE_HOOK_ARCH_PRCTL, false },
	{ "mlockall", GRAFTRACE_HOOK_MLOCKALL, false },
};
#define NAMES (sizeof(names) / sizeof(*names))

_Static_assert(NAMES <= GT_HOOKS_MAX, "every name has room");

struct found {
	uint64_t address[NAMES];
	uint64_t get_cfa;
	uint64_t get_ip;
	uint64_t r_debug;
	bool libc_inside; /* __libc_start_main is defined here */
	bool libunwind;	  /* the one of nongnu.org, which cannot walk through the hook */
	bool switches;	  /* swapcontext and kin are named, here or from elsewhere */
};

static int look_at(void *data, const struct gt_object_symbol *symbol)
{
	struct found *found = data;
	const char *name = symbol->name;

	/* A quick way out for nearly all names of large programs. */
	if (name[0] == '_' && name[1] == 'Z')
		return 0;
	if (strcmp(name, "swapcontext") == 0 || strcmp(name, "makecontext") == 0 ||
	    strcmp(name, "setcontext") == 0)
		found->switches = true;
	if (!symbol->address || (*name != '_' && *name != 'l' && *name != 's' && *name != 'e' &&
				 *name != 'f' && *name != 'd' && *name != 'b' && *name != 'p' &&
				 *name != 'g' && *name != 'c' && *name != 'a' && *name != 'm'))
		return 0;
	if (strcmp(name, "_Unwind_GetCFA") == 0)
		found->get_cfa = symbol->address;
	else if (strcmp(name, "_Unwind_GetIP") == 0)
		found->get_ip = symbol->address;
	else if (strcmp(name, "_r_debug") == 0)
		found->r_debug = symbol->address;
	else if (strcmp(name, "__libunwind_Unwind_Backtrace") == 0)
		found->libunwind = true;
	else if (strcmp(name, "__libc_start_main") == 0)
		found->libc_inside = true;
	for (uint32_t i = 0; i < NAMES; i++)
		if (strcmp(name, names[i].name) == 0)
			found->address[i] = symbol->address;
	return 0;
}

/* Without names: a child on the same memory must not be taken for the thread that made it. */
static uint64_t find_clone(const struct gt_object *object, struct gt_plan *plan)
{
	const uint32_t count = gt_object_function_count(object);

	if (!gt_object_is_program(object) || gt_object_interpreter(object) != NULL)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		if (gt_plan_is_clone(plan, i))
			return gt_object_function(object, i)->address;
	return 0;
}

static bool is_for_breakpoints(uint32_t kind)
{
	return kind >= GRAFTRACE_HOOK_SIGMASK && kind <= GRAFTRACE_HOOK_SIGWAIT;
}

int gt_hooks_find(struct gt_object *object, struct gt_plan *plan, struct gt_hook *hooks,
		  bool *switches, struct gt_message *message)
{
	struct gt_plan_entry entries[GT_HOOKS_MAX];
	uint64_t addresses[GT_HOOKS_MAX];
	struct found found = { 0 };
	uint64_t unnamed;
	bool libc;
	uint32_t k, count = 0;
	int error;

	gt_object_each_symbol(object, look_at, &found);
	*switches = found.switches && !gt_rule_is_libc(object);
	libc = gt_rule_is_libc(object) || gt_object_is_loader(object) || found.libc_inside;
	unnamed = libc ? 0 : find_clone(object, plan);
	for (uint32_t i = 0; i < NAMES; i++) {
		struct gt_hook *hook = &hooks[count];
		bool by_code = unnamed && names[i].kind == GRAFTRACE_HOOK_CLONE;

		if (by_code)
			found.address[i] = unnamed;
		if (!found.address[i] || (!names[i].anywhere && !libc && !by_code) ||
		    (is_for_breakpoints(names[i].kind & 0xffff) &&
		     !gt_plan_has_breakpoints(plan)) ||
		    (names[i].kind == GRAFTRACE_HOOK_UNWIND_SETIP && !found.get_cfa) ||
		    (names[i].kind == GRAFTRACE_HOOK_UNWIND_BACKTRACE &&
		     (!found.get_ip || found.libunwind)))
			continue;
		for (k = 0; k < count && addresses[k] != found.address[i]; k++)
			;
		if (k < count)
			continue;
		memset(hook, 0, sizeof(*hook));
		hook->kind = names[i].kind & 0xffff;
		hook->name = names[i].name;
		hook->address = found.address[i];
		hook->number = names[i].kind >> 16;
		if (hook->kind == GRAFTRACE_HOOK_UNWIND_SETIP)
			hook->argument = found.get_cfa;
		else if (hook->kind == GRAFTRACE_HOOK_UNWIND_BACKTRACE)
			hook->argument = found.get_ip;
		else if (hook->kind == GRAFTRACE_HOOK_DEBUG_STATE)
			hook->argument = found.r_debug;
		addresses[count++] = found.address[i];
	}
	if (!count)
		return 0;
	error = gt_plan_hooks(plan, addresses, count, entries, message);
	if (error)
		return error;
	for (uint32_t i = 0; i < count; i++)
		hooks[i].entry = entries[i];
	return (int)count;
}
