/* SPDX-License-Identifier: MIT */
/*
 * graftrace functions: lists which functions of a program and its libraries, or of a process, can
 * be traced, in which way, and which cannot and why. It runs and changes nothing: it reads the
 * files and, of a process, its maps and its code.
 */
#include "cli/command.h"

#include <elf.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/agent/catalog.h"
#include "attach/plan/hooks.h"
#include "attach/object/libraries.h"
#include "attach/plan/plan.h"
#include "attach/process/process.h"
#include "attach/plan/rules.h"
#include "cli/function_list.h"
#include "cli/progress.h"
#include "cli/values.h"

#define NAME "functions"

static const char help[] =
	"Usage: graftrace functions [OPTION...] PROGRAM\n"
	"       graftrace functions [OPTION...] -P PID\n"
	"\n"
	"Lists the functions of a program and of its own libraries, object by object: how\n"
	"each one is traced, or why it cannot be. PROGRAM is a file, or a name to be looked\n"
	"for in $PATH; it is not run. Of a process, what it has mapped is listed; nothing is\n"
	"changed in it.\n"
	"\n"
	"  -P, --pid PID        the functions of a process that runs\n"
	"  -L, --libs           the system's libraries too\n"
	"  -D, --no-demangle    names as the linker knows them\n"
	"  -F, --format FORMAT  text (default), csv or json\n"
	"      --breakpoints    as a recording with --breakpoints would trace them\n"
	"  -h, --help           this text\n"
	"\n"
	"Ways: 'nops' and 'fentry' are what a compiler has prepared; 'moved', 'padding' and\n"
	"'short' put a jump in place of the first instructions, which are moved elsewhere;\n"
	"'int3' puts a breakpoint there, only with --breakpoints.\n"
	"\n"
	"Exit codes: 0 it was listed; 1 the program cannot be read; 2 the command line is\n"
	"wrong.\n";

enum { OPTION_BREAKPOINTS = 256 };

static const struct option options[] = {
	{ "pid", required_argument, NULL, 'P' },
	{ "libs", no_argument, NULL, 'L' },
	{ "no-demangle", no_argument, NULL, 'D' },
	{ "format", required_argument, NULL, 'F' },
	{ "breakpoints", no_argument, NULL, OPTION_BREAKPOINTS },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static bool is_listed(const struct gt_object *object, uint32_t index)
{
	/* Linkage stubs have call frames, but they are not in the source. */
	return !(gt_object_function(object, index)->flags & GT_FUNCTION_PLT);
}

static int list_object(struct gt_function_list *list, struct gt_object *object, bool breakpoints)
{
	const uint32_t count = gt_object_function_count(object);
	struct gt_message message = { "" };
	struct gt_hook hooks[GT_HOOKS_MAX];
	bool switches;
	struct gt_plan *plan;

	if (gt_plan_create(object, &plan, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	gt_plan_use_cache(plan, NULL);
	if (breakpoints)
		gt_plan_allow_breakpoints(plan);
	/* As when recording: a function that the agent hooks is not traced. */
	gt_hooks_find(object, plan, hooks, &switches, NULL);
	gt_function_list_object(list, object);
	if (!isatty(STDOUT_FILENO))
		gt_progress_start("planning", count, "functions");
	for (uint32_t i = 0; i < count; i++) {
		struct gt_plan_entry entry;

		gt_progress_at(i);
		if (!is_listed(object, i))
			continue;
		if (gt_plan_function(plan, i, &entry, &message) != 0) {
			gt_progress_end();
			gt_complain(NAME, "'%s': %s", gt_object_path(object), message.text);
			gt_plan_destroy(plan);
			return GT_EXIT_FAILED;
		}
		gt_function_list_add(list, object, &entry);
	}
	gt_progress_end();
	gt_function_list_object_end(list);
	gt_plan_destroy(plan);
	return GT_EXIT_DONE;
}

static int list_libraries(struct gt_function_list *list, const struct gt_object *program,
			  bool system, bool breakpoints)
{
	struct gt_message message = { "" };
	struct gt_libraries libraries;
	int result = GT_EXIT_DONE;

	if (gt_libraries_find(program, &libraries, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	for (uint32_t i = 0; i < libraries.count && result == GT_EXIT_DONE; i++) {
		const struct gt_library *library = &libraries.list[i];
		struct gt_object *object;

		if (library->path != NULL && library->system && !system)
			continue;
		if (library->path == NULL) {
			gt_complain(NAME, "the library '%s' was not found", library->name);
			continue;
		}
		if (gt_object_open(library->path, &object, &message) != 0) {
			gt_complain(NAME, "%s", message.text);
			continue;
		}
		result = list_object(list, object, breakpoints);
		gt_object_close(object);
	}
	gt_libraries_free(&libraries);
	return result;
}

static int list_program(struct gt_function_list *list, const char *program, bool libraries,
			bool breakpoints)
{
	struct gt_message message = { "" };
	struct gt_object *object;
	char path[PATH_MAX];
	int result;

	gt_value_program(program, path, sizeof(path));
	if (gt_object_open(path, &object, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	gt_function_list_begin(list);
	result = list_object(list, object, breakpoints);
	if (result == GT_EXIT_DONE)
		result = list_libraries(list, object, libraries, breakpoints);
	gt_object_close(object);
	return result;
}

/* Has the process set V8's resolver (attach/agent/resolver.h) itself? */
static bool has_other_resolver(const struct gt_catalog_file *file, uint64_t bias,
			       const struct gt_process *process)
{
	const uint64_t word = gt_plan_resolver(file->plan);
	uint64_t there = 0;

	return word && process->memory >= 0 &&
	       gt_process_read(process, word + bias, &there, sizeof(there)) == 0 && there;
}

/* Lists one file of a process, where its code is mapped. memory: /proc/PID/mem, or -1 if that
 * cannot be read. */
static int list_mapped(struct gt_function_list *list, struct gt_catalog_file *file, uint64_t bias,
		       const struct gt_process *process, enum gt_plan_reason entries_only)
{
	struct gt_message message = { "" };

	if (!entries_only && has_other_resolver(file, bias, process))
		entries_only = GT_REASON_V8_RESOLVER;
	gt_catalog_hooks(file);
	gt_function_list_object(list, file->object);
	for (uint32_t i = 0; i < file->function_count; i++) {
		const struct gt_plan_entry *planned;
		uint8_t there[GT_PLAN_ORIGINAL_MAX];
		struct gt_plan_entry entry;

		if (!is_listed(file->object, i))
			continue;
		if (gt_catalog_plan(file, i, &planned, &message) != 0) {
			gt_complain(NAME, "'%s': %s", file->path, message.text);
			return GT_EXIT_FAILED;
		}
		entry = *planned;
		if (entry.way != GT_PLAN_NONE && process->memory >= 0 &&
		    gt_process_read(process, entry.patch_address + bias, there,
				    entry.covered_bytes) == 0 &&
		    memcmp(there, entry.original, entry.covered_bytes) != 0) {
			entry.way = GT_PLAN_NONE;
			entry.entry_only = false;
			entry.reason = GT_REASON_NOT_AS_IN_FILE;
		}
		if (entries_only && entry.way != GT_PLAN_NONE && !entry.entry_only) {
			entry.entry_only = true;
			entry.reason = (uint8_t)entries_only;
		}
		gt_function_list_add(list, file->object, &entry);
	}
	gt_function_list_object_end(list);
	return GT_EXIT_DONE;
}

/* The reason why only entries are recorded in all of the process, or GT_REASON_NONE. */
static enum gt_plan_reason copied_stacks(const struct gt_process *process,
					 const struct gt_maps *maps, bool breakpoints)
{
	enum gt_plan_reason reason = GT_REASON_NONE;
	struct gt_catalog catalog;

	gt_catalog_init(&catalog);
	catalog.breakpoints = breakpoints;
	for (size_t i = 0; i < maps->count && !reason; i++) {
		const struct gt_map *map = &maps->entries[i];
		struct gt_catalog_file *file;

		if (map->executable && map->path[0] == '/' &&
		    gt_catalog_open(&catalog, process->pid, map, &file, NULL) == 0)
			reason = gt_rule_entries_only(file->object);
	}
	gt_catalog_fini(&catalog);
	return reason;
}

static int list_maps(struct gt_function_list *list, const struct gt_process *process,
		     const struct gt_maps *maps, bool libraries, bool breakpoints)
{
	const uint64_t entry = gt_process_auxv(process->pid, AT_ENTRY);
	const enum gt_plan_reason copies = copied_stacks(process, maps, breakpoints);
	struct gt_message message = { "" };
	struct gt_catalog catalog;
	int result = GT_EXIT_DONE;
	size_t known;

	gt_catalog_init(&catalog);
	catalog.breakpoints = breakpoints;
	for (size_t i = 0; i < maps->count && result == GT_EXIT_DONE; i++) {
		const struct gt_map *map = &maps->entries[i];
		struct gt_catalog_file *file;
		uint64_t address;

		if (!map->executable || map->path[0] != '/')
			continue;
		known = catalog.file_count;
		if (gt_catalog_open(&catalog, process->pid, map, &file, &message) != 0) {
			gt_complain(NAME, "%s", message.text);
			continue;
		}
		if (catalog.file_count == known || file->object == NULL ||
		    gt_object_address_of_offset(file->object, map->offset, &address) != 0)
			continue;
		if (!libraries && file->system && !(entry >= map->start && entry < map->end))
			continue;
		result = list_mapped(list, file, map->start - address, process, copies);
	}
	gt_catalog_fini(&catalog);
	return result;
}

static int list_process(struct gt_function_list *list, pid_t pid, bool libraries, bool breakpoints)
{
	struct gt_process process = { .pid = pid, .memory = -1, .pidfd = -1 };
	struct gt_message message = { "" };
	struct gt_maps maps;
	char path[64];
	int result;

	if (gt_process_maps(pid, &maps, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	/* The memory is only compared with the files: without permission to read it, the files
	 * are enough. */
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	process.memory = open(path, O_RDONLY | O_CLOEXEC);
	gt_function_list_begin(list);
	result = list_maps(list, &process, &maps, libraries, breakpoints);
	if (process.memory >= 0)
		close(process.memory);
	gt_maps_free(&maps);
	if (result == GT_EXIT_DONE && list->objects == 0) {
		gt_complain(NAME,
			    "process %d has no program mapped (a kernel's thread, or it has "
			    "ended)",
			    (int)pid);
		return GT_EXIT_FAILED;
	}
	return result;
}

static int take_format(const char *text, enum gt_list_format *format)
{
	static const char *const names[] = { "text", "csv", "json" };

	for (uint32_t i = 0; i < 3; i++)
		if (strcmp(text, names[i]) == 0) {
			*format = (enum gt_list_format)i;
			return 0;
		}
	gt_complain(NAME, "no format '%s': text, csv or json", text);
	return -1;
}

int gt_cmd_functions(int argc, char **argv)
{
	struct gt_function_list list = { .demangle = true };
	struct gt_message message = { "" };
	bool libraries = false, breakpoints = false;
	uint64_t pid = 0;
	int option, result;

	optind = 1;
	while ((option = gt_next_option(argc, argv, "P:LDF:h", options)) != -1) {
		switch (option) {
		case 'P':
			if (gt_value_number(optarg, 1, INT32_MAX, &pid, &message) != 0) {
				gt_complain(NAME, "--pid: %s", message.text);
				return gt_usage_error(NAME);
			}
			break;
		case 'L':
			libraries = true;
			break;
		case 'D':
			list.demangle = false;
			break;
		case 'F':
			if (take_format(optarg, &list.format) != 0)
				return gt_usage_error(NAME);
			break;
		case OPTION_BREAKPOINTS:
			breakpoints = true;
			break;
		case 'h':
			return gt_print_help(help);
		default:
			return gt_usage_error(NAME);
		}
	}
	if (pid && optind < argc) {
		gt_complain(NAME, "a program or a process, not both");
		return gt_usage_error(NAME);
	}
	if (!pid && gt_one_operand(NAME, argc - optind, "which program? Name its file, or -P PID",
				   "one program at a time"))
		return GT_EXIT_USAGE;
	result = pid ? list_process(&list, (pid_t)pid, libraries, breakpoints)
		     : list_program(&list, argv[optind], libraries, breakpoints);
	if (result != GT_EXIT_DONE)
		return result;
	gt_function_list_end(&list);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		gt_complain(NAME, "cannot write the list");
		return GT_EXIT_FAILED;
	}
	return GT_EXIT_DONE;
}
