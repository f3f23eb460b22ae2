/* SPDX-License-Identifier: MIT */
/*
 * graftrace list: the events of a program and its libraries, with their fields, and how each of
 * their places in the code is watched. It runs nothing: it reads the files and, of a process, its
 * maps.
 */
#include "cli/command.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/agent/catalog.h"
#include "attach/object/libraries.h"
#include "attach/object/probes.h"
#include "attach/process/process.h"
#include "cli/values.h"

#define NAME "list"

static const char help[] =
	"Usage: graftrace list [OPTION...] PROGRAM\n"
	"       graftrace list [OPTION...] -P PID\n"
	"\n"
	"Lists the events of a program and of all its libraries, object by object: the static\n"
	"probes that its notes tell of (USDT, <graftrace/event.h>), with their fields.\n"
	"'record -e SYSTEM:NAME' records them. PROGRAM is a file, or a name to be looked for\n"
	"in $PATH; it is not run. Functions are listed by 'graftrace functions'.\n"
	"\n"
	"  -P, --pid PID      the events of a process that runs\n"
	"      --breakpoints  as a recording with --breakpoints would watch them\n"
	"  -h, --help         this text\n"
	"\n"
	"Ways: 'nops' replaces the nop of a place by a jump; 'moved' moves the instructions\n"
	"behind it besides; 'int3' puts a breakpoint there, only with --breakpoints.\n"
	"\n"
	"Exit codes: 0 they were listed; 1 the program cannot be read; 2 the command line is\n"
	"wrong.\n";

enum { OPTION_BREAKPOINTS = 256 };

static const struct option options[] = {
	{ "pid", required_argument, NULL, 'P' },
	{ "breakpoints", no_argument, NULL, OPTION_BREAKPOINTS },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static uint32_t listed; /* events, of all objects */

static void print_probe(const struct gt_probe *probe, const struct gt_plan_entry *plan)
{
	listed++;
	printf("%s:%s\t%s%s%s\t", probe->system, probe->name, gt_plan_way_name(plan->way),
	       plan->way == GT_PLAN_NONE ? ": " : "",
	       plan->way == GT_PLAN_NONE ? gt_plan_reason_text(plan->reason) : "");
	for (uint32_t i = 0; i < probe->argument_count; i++)
		printf("%s%s %s", i > 0 ? ", " : "", probe->fields[i].type, probe->fields[i].name);
	putchar('\n');
}

static void print_probes(const char *path, const struct gt_probe *probes, uint32_t count,
			 const struct gt_plan_entry *plans)
{
	if (count == 0)
		return;
	printf("# %s\n", path);
	for (uint32_t i = 0; i < count; i++)
		print_probe(&probes[i], &plans[i]);
}

static void print_file(const struct gt_catalog_file *file)
{
	if (file->probe_count == 0)
		return;
	printf("# %s\n", file->path);
	for (uint32_t i = 0; i < file->probe_count; i++)
		print_probe(file->probes[i].probe, &file->probes[i].plan);
}

static int failed(const char *path, const struct gt_message *message)
{
	gt_complain(NAME, "'%s': %s", path, *message->text ? message->text : "no memory");
	return GT_EXIT_FAILED;
}

static int list_object(struct gt_object *object, bool breakpoints)
{
	struct gt_message message = { "" };
	struct gt_plan_entry *plans;
	uint64_t *addresses;
	struct gt_plan *plan;
	uint32_t count;
	const struct gt_probe *probes = gt_object_probes(object, &count);
	int error;

	if (count == 0)
		return GT_EXIT_DONE;
	if (gt_plan_create(object, &plan, &message) != 0)
		return failed(gt_object_path(object), &message);
	if (breakpoints)
		gt_plan_allow_breakpoints(plan);
	plans = calloc(count, sizeof(*plans));
	addresses = calloc(count, sizeof(*addresses));
	error = plans != NULL && addresses != NULL ? 0 : GT_ENOMEM;
	for (uint32_t i = 0; error == 0 && i < count; i++)
		addresses[i] = probes[i].address;
	if (error == 0)
		error = gt_plan_probes(plan, addresses, count, plans, &message);
	if (error == 0)
		print_probes(gt_object_path(object), probes, count, plans);
	free(addresses);
	free(plans);
	gt_plan_destroy(plan);
	return error == 0 ? GT_EXIT_DONE : failed(gt_object_path(object), &message);
}

static int list_libraries(const struct gt_object *program, bool breakpoints)
{
	struct gt_message message = { "" };
	struct gt_libraries libraries;
	int result = GT_EXIT_DONE;

	if (gt_libraries_find(program, &libraries, &message) != 0)
		return failed(gt_object_path(program), &message);
	for (uint32_t i = 0; i < libraries.count && result == GT_EXIT_DONE; i++) {
		struct gt_object *object;

		if (libraries.list[i].path == NULL ||
		    gt_object_open(libraries.list[i].path, &object, &message) != 0)
			continue;
		result = list_object(object, breakpoints);
		gt_object_close(object);
	}
	gt_libraries_free(&libraries);
	return result;
}

static int list_program(const char *program, bool breakpoints)
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
	result = list_object(object, breakpoints);
	if (result == GT_EXIT_DONE)
		result = list_libraries(object, breakpoints);
	gt_object_close(object);
	return result;
}

static int list_process(pid_t pid, bool breakpoints)
{
	struct gt_message message = { "" };
	struct gt_catalog catalog;
	struct gt_maps maps;
	int result = GT_EXIT_DONE;

	if (gt_process_maps(pid, &maps, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	gt_catalog_init(&catalog);
	catalog.breakpoints = breakpoints;
	for (size_t i = 0; i < maps.count && result == GT_EXIT_DONE; i++) {
		const size_t known = catalog.file_count;
		struct gt_catalog_file *file;

		if (!maps.entries[i].executable || maps.entries[i].path[0] != '/' ||
		    gt_catalog_open(&catalog, pid, &maps.entries[i], &file, &message) != 0 ||
		    catalog.file_count == known)
			continue;
		if (gt_catalog_plan_probes(file, &message) != 0)
			result = failed(file->path, &message);
		else
			print_file(file);
	}
	gt_catalog_fini(&catalog);
	gt_maps_free(&maps);
	return result;
}

int gt_cmd_list(int argc, char **argv)
{
	struct gt_message message = { "" };
	bool breakpoints = false;
	uint64_t pid = 0;
	int option, result;

	optind = 1;
	while ((option = gt_next_option(argc, argv, "P:h", options)) != -1) {
		switch (option) {
		case 'P':
			if (gt_value_number(optarg, 1, INT32_MAX, &pid, &message) != 0) {
				gt_complain(NAME, "%s", message.text);
				return gt_usage_error(NAME);
			}
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
	if (gt_one_operand(NAME, argc - optind + (pid != 0), "which program?",
			   "one program at a time") != 0)
		return GT_EXIT_USAGE;
	result = pid != 0 ? list_process((pid_t)pid, breakpoints)
			  : list_program(argv[optind], breakpoints);
	if (fflush(stdout) != 0 && result == GT_EXIT_DONE) {
		gt_complain(NAME, "cannot write the list");
		result = GT_EXIT_FAILED;
	}
	if (listed == 0 && result == GT_EXIT_DONE)
		gt_complain(NAME, "neither the program nor its libraries have events; 'graftrace "
				  "functions' lists functions");
	return result;
}
