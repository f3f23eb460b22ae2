/* SPDX-License-Identifier: MIT */
/*
 * graftrace functions: what can be traced in a program and its libraries, how, and what cannot and
 * why. Nothing is run: all comes from the files.
 */
#include "cli/command.h"

#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/hooks.h"
#include "attach/libraries.h"
#include "attach/plan.h"

#define NAME "functions"

static const char help[] =
	"Usage: graftrace functions [--libs] [--no-demangle] [--format text|csv|json] PROGRAM\n"
	"\n"
	"Lists the functions of a program and of its own libraries, object by object: how\n"
	"each one is traced, or why it cannot be. PROGRAM is a file, or a name to be looked\n"
	"for in $PATH; it is not run.\n"
	"\n"
	"  -L, --libs           the system's libraries too\n"
	"  -D, --no-demangle    names as the linker knows them\n"
	"  -F, --format FORMAT  text (default), csv or json\n"
	"  -h, --help           this text\n"
	"\n"
	"Ways: 'nops' and 'fentry' are what a compiler has prepared; 'moved', 'padding' and\n"
	"'short' put a jump in place of the first instructions, which are moved elsewhere.\n"
	"\n"
	"Exit codes: 0 it was listed; 1 the program cannot be read; 2 the command line is\n"
	"wrong.\n";

static const struct option options[] = {
	{ "libs", no_argument, NULL, 'L' },
	{ "no-demangle", no_argument, NULL, 'D' },
	{ "format", required_argument, NULL, 'F' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

enum format {
	FORMAT_TEXT,
	FORMAT_CSV,
	FORMAT_JSON,
};

struct counts {
	uint32_t functions;
	uint32_t ways[GT_PLAN_SHORT + 1];
	uint32_t prepared;
	uint32_t entry_only;
};

struct listing {
	enum format format;
	bool demangle;
	uint32_t objects;
	struct counts total;
};

static uint32_t traceable(const struct counts *counts)
{
	return counts->functions - counts->ways[GT_PLAN_NONE];
}

/* How many bytes of valid UTF-8 begin here; 0: none. */
static uint32_t utf8_length(const unsigned char *text)
{
	const uint32_t length = text[0] < 0x80	 ? 1
				: text[0] < 0xc2 ? 0
				: text[0] < 0xe0 ? 2
				: text[0] < 0xf0 ? 3
				: text[0] < 0xf5 ? 4
						 : 0;
	uint32_t i;

	for (i = 1; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
	    (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
		return 0;
	return length;
}

static void print_json_string(const char *string)
{
	const unsigned char *text = (const unsigned char *)string;

	putchar('"');
	while (*text) {
		const uint32_t length = utf8_length(text);

		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if (length == 0 || *text < 0x20 || *text == 0x7f)
			printf("\\u%04x", *text);
		else
			fwrite(text, 1, length, stdout);
		text += length ? length : 1;
	}
	putchar('"');
}

static void print_csv_string(const char *text)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

/* Names come from files: nothing of them may drive the terminal. */
static void print_text(const char *text)
{
	for (; *text; text++)
		putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

static const char *traced_as(const struct gt_plan_entry *entry)
{
	return entry->way == GT_PLAN_NONE ? "no" : entry->entry_only ? "entry" : "graph";
}

static void print_function(const struct listing *listing, struct gt_object *object,
			   const struct gt_plan_entry *entry, bool first)
{
	const struct gt_object_function *function = gt_object_function(object, entry->function);
	const char *name = listing->demangle || !*function->name
				   ? gt_object_function_name(object, entry->function)
				   : function->name;
	const char *way = gt_plan_way_name(entry->way);
	const char *prepared = gt_plan_prepared_name(entry->prepared);

	switch (listing->format) {
	case FORMAT_TEXT:
		printf("  %-8s%-10s 0x%-10llx %7u  ", entry->way == GT_PLAN_NONE ? "-" : way,
		       entry->prepared == GT_PREPARED_NONE ? "-" : prepared,
		       (unsigned long long)function->address, function->bytes);
		print_text(name);
		if (*entry->reason)
			printf(entry->entry_only ? "  (entry only: %s)" : "  (%s)", entry->reason);
		putchar('\n');
		break;
	case FORMAT_CSV:
		print_csv_string(gt_object_path(object));
		putchar(',');
		print_csv_string(name);
		printf(",0x%llx,%u,%s,%s,%s,", (unsigned long long)function->address,
		       function->bytes, traced_as(entry), way, prepared);
		print_csv_string(entry->reason);
		putchar('\n');
		break;
	case FORMAT_JSON:
		printf("%s\n{\"name\":", first ? "" : ",");
		print_json_string(name);
		printf(",\"address\":%llu,\"size\":%u,\"traced\":\"%s\",\"way\":\"%s\","
		       "\"prepared\":\"%s\",\"reason\":\"%s\"}",
		       (unsigned long long)function->address, function->bytes, traced_as(entry),
		       way, prepared, entry->reason);
		break;
	}
}

static void print_ways(const struct counts *counts)
{
	const char *before = "";
	uint32_t i;

	for (i = GT_PLAN_NONE + 1; i <= GT_PLAN_SHORT; i++) {
		if (!counts->ways[i])
			continue;
		printf("%s%s %u", before, gt_plan_way_name(i), counts->ways[i]);
		before = ", ";
	}
}

static void print_summary(const char *what, const struct counts *counts)
{
	printf("%s: %u function%s, %u can be traced", what, counts->functions,
	       counts->functions == 1 ? "" : "s", traceable(counts));
	if (traceable(counts)) {
		fputs(" (", stdout);
		print_ways(counts);
		putchar(')');
	}
	if (counts->entry_only)
		printf(", %u of them at the entry only", counts->entry_only);
	if (counts->prepared)
		printf("; %u %s prepared by the compiler", counts->prepared,
		       counts->prepared == 1 ? "is" : "are");
	putchar('\n');
}

static void print_json_counts(const struct counts *counts)
{
	uint32_t i;

	printf("{\"functions\":%u,\"traceable\":%u,\"entry_only\":%u,\"prepared\":%u",
	       counts->functions, traceable(counts), counts->entry_only, counts->prepared);
	for (i = GT_PLAN_NONE; i <= GT_PLAN_SHORT; i++)
		printf(",\"%s\":%u", gt_plan_way_name(i), counts->ways[i]);
	putchar('}');
}

static void start_object(struct listing *listing, struct gt_object *object)
{
	const uint8_t *build_id;
	const uint32_t bytes = gt_object_build_id(object, &build_id);
	uint32_t i;

	if (listing->format == FORMAT_CSV)
		return;
	if (listing->format == FORMAT_TEXT) {
		if (listing->objects)
			putchar('\n');
		print_text(gt_object_path(object));
		if (bytes)
			fputs("  build ID ", stdout);
	} else {
		printf("%s\n{\"path\":", listing->objects ? "," : "");
		print_json_string(gt_object_path(object));
		fputs(",\"build_id\":\"", stdout);
	}
	for (i = 0; i < bytes; i++)
		printf("%02x", build_id[i]);
	fputs(listing->format == FORMAT_TEXT ? "\n" : "\",\"functions\":[", stdout);
}

static void end_object(struct listing *listing, const struct counts *counts)
{
	if (listing->format == FORMAT_TEXT) {
		print_summary("  in all", counts);
	} else if (listing->format == FORMAT_JSON) {
		fputs("],\"summary\":", stdout);
		print_json_counts(counts);
		putchar('}');
	}
}

static void count_entry(struct counts *counts, const struct gt_plan_entry *entry)
{
	counts->functions++;
	counts->ways[entry->way]++;
	counts->entry_only += entry->entry_only;
	counts->prepared += entry->prepared != GT_PREPARED_NONE;
}

static int list_object(struct listing *listing, struct gt_object *object)
{
	const uint32_t count = gt_object_function_count(object);
	struct gt_message message = { "" };
	struct gt_hook hooks[GT_HOOKS_MAX];
	struct counts counts = { 0 };
	struct gt_plan *plan;
	bool first = true;
	uint32_t i;

	if (gt_plan_create(object, &plan, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	gt_plan_use_cache(plan, NULL);
	/* As a recording does: what has a hook is not traced. */
	gt_hooks_find(object, plan, hooks, NULL);
	start_object(listing, object);
	for (i = 0; i < count; i++) {
		struct gt_plan_entry entry;

		/* Linkage stubs have call frames, but nobody wrote them. */
		if (gt_object_function(object, i)->flags & GT_FUNCTION_PLT)
			continue;
		if (gt_plan_function(plan, i, &entry, &message) != 0) {
			gt_complain(NAME, "'%s': %s", gt_object_path(object), message.text);
			gt_plan_destroy(plan);
			return GT_EXIT_FAILED;
		}
		print_function(listing, object, &entry, first);
		first = false;
		count_entry(&counts, &entry);
		count_entry(&listing->total, &entry);
	}
	end_object(listing, &counts);
	listing->objects++;
	gt_plan_destroy(plan);
	return GT_EXIT_DONE;
}

/* As a shell would find it, but a file here goes first. */
static void find_program(const char *name, char *path, size_t size)
{
	const char *directory = getenv("PATH");

	snprintf(path, size, "%s", name);
	if (strchr(name, '/') || access(name, F_OK) == 0)
		return;
	while (directory && *directory) {
		const size_t bytes = strcspn(directory, ":");

		if (bytes &&
		    snprintf(path, size, "%.*s/%s", (int)bytes, directory, name) < (int)size &&
		    access(path, X_OK) == 0)
			return;
		directory += bytes + (directory[bytes] != 0);
	}
	snprintf(path, size, "%s", name);
}

static int list_libraries(struct listing *listing, const struct gt_object *program, bool system)
{
	struct gt_message message = { "" };
	struct gt_libraries libraries;
	int result = GT_EXIT_DONE;
	uint32_t i;

	if (gt_libraries_find(program, &libraries, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	for (i = 0; i < libraries.count && result == GT_EXIT_DONE; i++) {
		const struct gt_library *library = &libraries.list[i];
		struct gt_object *object;

		if (library->path && library->system && !system)
			continue;
		if (!library->path) {
			gt_complain(NAME, "the library '%s' was not found", library->name);
			continue;
		}
		if (gt_object_open(library->path, &object, &message) != 0) {
			gt_complain(NAME, "%s", message.text);
			continue;
		}
		result = list_object(listing, object);
		gt_object_close(object);
	}
	gt_libraries_free(&libraries);
	return result;
}

static int list(struct listing *listing, const char *program, bool libraries)
{
	struct gt_message message = { "" };
	struct gt_object *object;
	char path[PATH_MAX], what[64];
	int result;

	find_program(program, path, sizeof(path));
	if (gt_object_open(path, &object, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	if (listing->format == FORMAT_CSV)
		puts("object,function,address,size,traced,way,prepared,reason");
	else if (listing->format == FORMAT_JSON)
		fputs("{\"objects\":[", stdout);
	result = list_object(listing, object);
	if (result == GT_EXIT_DONE)
		result = list_libraries(listing, object, libraries);
	gt_object_close(object);
	if (result != GT_EXIT_DONE)
		return result;
	if (listing->format == FORMAT_TEXT && listing->objects > 1) {
		snprintf(what, sizeof(what), "\n%u objects", listing->objects);
		print_summary(what, &listing->total);
	} else if (listing->format == FORMAT_JSON) {
		fputs("],\"summary\":", stdout);
		print_json_counts(&listing->total);
		fputs("}\n", stdout);
	}
	if (fflush(stdout) != 0 || ferror(stdout)) {
		gt_complain(NAME, "cannot write the list");
		return GT_EXIT_FAILED;
	}
	return GT_EXIT_DONE;
}

static int take_format(const char *text, enum format *format)
{
	static const char *const names[] = { "text", "csv", "json" };
	uint32_t i;

	for (i = 0; i < 3; i++)
		if (strcmp(text, names[i]) == 0) {
			*format = (enum format)i;
			return 0;
		}
	gt_complain(NAME, "no format '%s': text, csv or json", text);
	return -1;
}

int gt_cmd_functions(int argc, char **argv)
{
	struct listing listing = { .demangle = true };
	bool libraries = false;
	int option;

	argv[0] = (char *)"graftrace functions"; /* what getopt puts before its messages */
	optind = 1;
	while ((option = getopt_long(argc, argv, "LDF:h", options, NULL)) != -1) {
		switch (option) {
		case 'L':
			libraries = true;
			break;
		case 'D':
			listing.demangle = false;
			break;
		case 'F':
			if (take_format(optarg, &listing.format) != 0)
				return gt_usage_error(NAME);
			break;
		case 'h':
			fputs(help, stdout);
			return fflush(stdout) == 0 ? GT_EXIT_DONE : GT_EXIT_FAILED;
		default:
			return gt_usage_error(NAME);
		}
	}
	if (argc - optind != 1) {
		gt_complain(NAME, optind == argc ? "which program? Name its file"
						 : "one program at a time");
		return gt_usage_error(NAME);
	}
	return list(&listing, argv[optind], libraries);
}
