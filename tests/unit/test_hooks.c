/* SPDX-License-Identifier: MIT */
/*
 * The functions that the agent hooks, in the C library, the loader and libgcc of this machine, and
 * that the short way of planning them agrees with the long one.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "attach/plan/hooks.h"
#include "attach/object/libraries.h"

struct opened {
	struct gt_object *object;
	struct gt_plan *plan;
	struct gt_hook hooks[GT_HOOKS_MAX];
	bool switches;
	int count;
};

/* Path of a loaded object that has `part` in its name. */
struct search {
	const char *part;
	char path[4096];
};

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;

	(void)size;
	if (!strstr(info->dlpi_name, search->part))
		return 0;
	strncpy(search->path, info->dlpi_name, sizeof(search->path) - 1);
	return 1;
}

static void open_loaded(const char *part, struct opened *opened)
{
	struct search search = { .part = part };
	struct gt_message message = { "" };

	assert_int_equal(dl_iterate_phdr(look, &search), 1);
	assert_int_equal(gt_object_open(search.path, &opened->object, &message), 0);
	assert_int_equal(gt_plan_create(opened->object, &opened->plan, &message), 0);
	opened->count = gt_hooks_find(opened->object, opened->plan, opened->hooks,
				      &opened->switches, &message);
	assert_true(opened->count >= 0);
}

static void close_opened(struct opened *opened)
{
	gt_plan_destroy(opened->plan);
	gt_object_close(opened->object);
}

static const struct gt_hook *hook_of(const struct opened *opened, enum graftrace_hook kind,
				     const char *name)
{
	uint64_t address;
	int i;

	assert_int_equal(gt_object_symbol(opened->object, name, &address), 0);
	for (i = 0; i < opened->count; i++)
		if (opened->hooks[i].kind == kind && opened->hooks[i].address == address)
			return &opened->hooks[i];
	fail_msg("%s is not hooked", name);
	return NULL;
}

static void the_c_library_has_its_hooks_each_address_once(void **state)
{
	static const struct {
		enum graftrace_hook kind;
		const char *name;
	} wanted[] = {
		{ GRAFTRACE_HOOK_LONGJMP, "longjmp" },
		{ GRAFTRACE_HOOK_LONGJMP, "_longjmp" },
		{ GRAFTRACE_HOOK_LONGJMP, "siglongjmp" },
		{ GRAFTRACE_HOOK_LONGJMP, "__longjmp_chk" },
		{ GRAFTRACE_HOOK_SETCONTEXT, "setcontext" },
		{ GRAFTRACE_HOOK_SWAPCONTEXT, "swapcontext" },
		{ GRAFTRACE_HOOK_EXEC, "execve" },
		{ GRAFTRACE_HOOK_EXEC, "execveat" },
		{ GRAFTRACE_HOOK_EXEC, "fexecve" },
		{ GRAFTRACE_HOOK_FIND_OBJECT, "_dl_find_object" },
		{ GRAFTRACE_HOOK_ITERATE_PHDR, "dl_iterate_phdr" },
	};
	struct opened libc;
	size_t i;
	int k, other;

	(void)state;
	open_loaded("libc.so", &libc);
	for (i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		const struct gt_hook *hook = hook_of(&libc, wanted[i].kind, wanted[i].name);

		assert_int_not_equal(hook->entry.way, GT_PLAN_NONE);
		assert_int_equal(hook->entry.reason, GT_REASON_NONE);
	}
	for (k = 0; k < libc.count; k++)
		for (other = 0; other < k; other++)
			assert_int_not_equal(libc.hooks[k].address, libc.hooks[other].address);
	close_opened(&libc);
}

static void the_loaders_empty_debug_hook_is_patched_over_its_padding(void **state)
{
	struct opened loader;
	const struct gt_hook *hook;
	uint64_t r_debug;

	(void)state;
	open_loaded("ld-linux", &loader);
	hook = hook_of(&loader, GRAFTRACE_HOOK_DEBUG_STATE, "_dl_debug_state");
	assert_int_equal(hook->entry.way, GT_PLAN_PADDING);
	assert_int_equal(gt_object_symbol(loader.object, "_r_debug", &r_debug), 0);
	assert_int_equal(hook->argument, r_debug);
	close_opened(&loader);
}

static void the_unwinders_hooks_know_what_they_call(void **state)
{
	void *handle = dlopen("libgcc_s.so.1", RTLD_NOW);
	struct opened libgcc;
	uint64_t get_cfa, get_ip;
	int i;

	(void)state;
	assert_non_null(handle);
	open_loaded("libgcc_s", &libgcc);
	assert_int_equal(libgcc.count, 2);
	assert_int_equal(gt_object_symbol(libgcc.object, "_Unwind_GetCFA", &get_cfa), 0);
	assert_int_equal(hook_of(&libgcc, GRAFTRACE_HOOK_UNWIND_SETIP, "_Unwind_SetIP")->argument,
			 get_cfa);
	assert_int_equal(gt_object_symbol(libgcc.object, "_Unwind_GetIP", &get_ip), 0);
	assert_int_equal(
		hook_of(&libgcc, GRAFTRACE_HOOK_UNWIND_BACKTRACE, "_Unwind_Backtrace")->argument,
		get_ip);
	for (i = 0; i < libgcc.count; i++)
		assert_int_not_equal(libgcc.hooks[i].entry.way, GT_PLAN_NONE);
	close_opened(&libgcc);
	dlclose(handle);
}

/* A function of the program with a name of the C library's: not the agent's business. */
void *backtrace(void *frames, int count)
{
	return count ? frames : NULL;
}

static void a_programs_own_function_of_that_name_is_left_alone(void **state)
{
	struct gt_message message = { "" };
	struct opened program;
	uint64_t address;

	(void)state;
	assert_int_equal(gt_object_open("/proc/self/exe", &program.object, &message), 0);
	assert_int_equal(gt_plan_create(program.object, &program.plan, &message), 0);
	assert_int_equal(gt_object_symbol(program.object, "backtrace", &address), 0);
	assert_int_equal(gt_hooks_find(program.object, program.plan, program.hooks,
				       &program.switches, &message),
			 0);
	close_opened(&program);
}

static void the_short_way_agrees_with_the_whole_scan(void **state)
{
	struct gt_message message = { "" };
	struct gt_plan *plan;
	struct opened libc;
	uint32_t i, count, compared = 0;

	(void)state;
	open_loaded("libc.so", &libc);
	count = gt_object_function_count(libc.object);
	assert_int_equal(gt_plan_create(libc.object, &plan, &message), 0);
	for (i = 0; i < count; i += 17) {
		const struct gt_object_function *function = gt_object_function(libc.object, i);
		struct gt_plan_entry full, quick;

		assert_int_equal(gt_plan_function(plan, i, &full, &message), 0);
		if (full.way != GT_PLAN_MOVED || full.extra_count)
			continue;
		assert_int_equal(gt_plan_hooks(libc.plan, &function->address, 1, &quick, &message),
				 0);
		assert_int_equal(quick.way, GT_PLAN_MOVED);
		assert_int_equal(quick.patch_address, full.patch_address);
		assert_int_equal(quick.covered_bytes, full.covered_bytes);
		assert_memory_equal(quick.original, full.original, full.covered_bytes);
		compared++;
	}
	assert_true(compared > 100);
	gt_plan_destroy(plan);
	close_opened(&libc);
}

static void the_c_library_and_the_loader_are_not_prepared(void **state)
{
	static const char *const names[] = { "libc.so", "ld-linux" };
	struct opened opened;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		open_loaded(names[i], &opened);
		assert_false(gt_plan_is_prepared(opened.plan));
		close_opened(&opened);
	}
}

static void asking_twice_gives_the_same_plan(void **state)
{
	struct gt_message message = { "" };
	struct opened libc;
	uint32_t i;

	(void)state;
	open_loaded("libc.so", &libc);
	for (i = 0; i < gt_object_function_count(libc.object); i += 3) {
		struct gt_plan_entry first, second;

		assert_int_equal(gt_plan_function(libc.plan, i, &first, &message), 0);
		assert_int_equal(gt_plan_function(libc.plan, i, &second, &message), 0);
		assert_memory_equal(&first, &second, sizeof(first));
	}
	assert_int_equal(
		gt_plan_function(libc.plan, UINT32_MAX, &(struct gt_plan_entry){ 0 }, &message),
		GT_EINVAL);
	close_opened(&libc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_c_library_has_its_hooks_each_address_once),
		cmocka_unit_test(the_loaders_empty_debug_hook_is_patched_over_its_padding),
		cmocka_unit_test(the_unwinders_hooks_know_what_they_call),
		cmocka_unit_test(a_programs_own_function_of_that_name_is_left_alone),
		cmocka_unit_test(the_short_way_agrees_with_the_whole_scan),
		cmocka_unit_test(the_c_library_and_the_loader_are_not_prepared),
		cmocka_unit_test(asking_twice_gives_the_same_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
