/* SPDX-License-Identifier: MIT */
/* The list of functions; see the header. */
#include "cli/function_list.h"

#include <stdio.h>
#include <string.h>

static uint32_t traceable(const struct gt_list_counts *counts)
{
	return counts->functions - counts->ways[GT_PLAN_NONE];
}

/* Returns the length of the valid UTF-8 sequence that begins here, 0 if there is none. */
static uint32_t utf8_length(const unsigned char *text)
{
	const uint32_t length = text[0] < 0x80	 ? 1
				: text[0] < 0xc2 ? 0
				: text[0] < 0xe0 ? 2
				: text[0] < 0xf0 ? 3
				: text[0] < 0xf5 ? 4
						 : 0;

	for (uint32_t i = 1; i < length; i++)
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

/* Names come from files: no control character in them may reach the terminal. */
static void print_text(const char *text)
{
	for (; *text; text++)
		putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

static const char *traced_as(const struct gt_plan_entry *entry)
{
	return entry->way == GT_PLAN_NONE ? "no" : entry->entry_only ? "entry" : "graph";
}

static void print_function(const struct gt_function_list *list, struct gt_object *object,
			   const struct gt_plan_entry *entry, bool first)
{
	const struct gt_object_function *function = gt_object_function(object, entry->function);
	const char *name = list->demangle || !*function->name
				   ? gt_object_function_name(object, entry->function)
				   : function->name;
	const char *way = gt_plan_way_name(entry->way);
	const char *prepared = gt_plan_prepared_name(entry->prepared);
	const char *reason = gt_plan_reason_text(entry->reason);

	switch (list->format) {
	case GT_LIST_TEXT:
		printf("  %-8s%-10s 0x%-10llx %7u  ", entry->way == GT_PLAN_NONE ? "-" : way,
		       entry->prepared == GT_PREPARED_NONE ? "-" : prepared,
		       (unsigned long long)function->address, function->bytes);
		print_text(name);
		if (entry->reason != GT_REASON_NONE)
			printf(entry->entry_only ? "  (entry only: %s)" : "  (%s)", reason);
		putchar('\n');
		break;
	case GT_LIST_CSV:
		print_csv_string(gt_object_path(object));
		putchar(',');
		print_csv_string(name);
		printf(",0x%llx,%u,%s,%s,%s,", (unsigned long long)function->address,
		       function->bytes, traced_as(entry), way, prepared);
		print_csv_string(reason);
		putchar('\n');
		break;
	case GT_LIST_JSON:
		printf("%s\n{\"name\":", first ? "" : ",");
		print_json_string(name);
		printf(",\"address\":%llu,\"size\":%u,\"traced\":\"%s\",\"way\":\"%s\","
		       "\"prepared\":\"%s\",\"reason\":\"%s\"}",
		       (unsigned long long)function->address, function->bytes, traced_as(entry),
		       way, prepared, reason);
		break;
	}
}

static void print_ways(const struct gt_list_counts *counts)
{
	const char *before = "";

	for (uint32_t i = GT_PLAN_NONE + 1; i <= GT_PLAN_BREAKPOINT; i++) {
		if (!counts->ways[i])
			continue;
		printf("%s%s %u", before, gt_plan_way_name(i), counts->ways[i]);
		before = ", ";
	}
}

/* What is listed and is no function of its own. */
static void print_apart(const struct gt_list_counts *counts)
{
	const char *before = "; not counted: ";

	if (counts->parts) {
		printf("%s%u part%s of functions", before, counts->parts,
		       counts->parts == 1 ? "" : "s");
		before = ", ";
	}
	if (counts->start) {
		printf("%s%u of the program's start and end", before, counts->start);
		before = ", ";
	}
	if (counts->linkage)
		printf("%s%u linkage stub%s", before, counts->linkage,
		       counts->linkage == 1 ? "" : "s");
}

static void print_summary(const char *what, const struct gt_list_counts *counts)
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
	print_apart(counts);
	putchar('\n');
}

static void print_json_counts(const struct gt_list_counts *counts)
{
	printf("{\"functions\":%u,\"parts\":%u,\"start\":%u,\"linkage\":%u,\"traceable\":%u,"
	       "\"entry_only\":%u,\"prepared\":%u",
	       counts->functions, counts->parts, counts->start, counts->linkage, traceable(counts),
	       counts->entry_only, counts->prepared);
	for (uint32_t i = GT_PLAN_NONE; i <= GT_PLAN_BREAKPOINT; i++)
		printf(",\"%s\":%u", gt_plan_way_name(i), counts->ways[i]);
	putchar('}');
}

void gt_function_list_object(struct gt_function_list *list, struct gt_object *object)
{
	const uint8_t *build_id;
	const uint32_t bytes = gt_object_build_id(object, &build_id);

	list->counts = (struct gt_list_counts){ 0 };
	list->first = true;
	if (list->format == GT_LIST_CSV)
		return;
	if (list->format == GT_LIST_TEXT) {
		if (list->objects)
			putchar('\n');
		print_text(gt_object_path(object));
		if (bytes)
			fputs("  build ID ", stdout);
	} else {
		printf("%s\n{\"path\":", list->objects ? "," : "");
		print_json_string(gt_object_path(object));
		fputs(",\"build_id\":\"", stdout);
	}
	for (uint32_t i = 0; i < bytes; i++)
		printf("%02x", build_id[i]);
	fputs(list->format == GT_LIST_TEXT ? "\n" : "\",\"functions\":[", stdout);
}

static void count_entry(struct gt_list_counts *counts, const struct gt_plan_entry *entry)
{
	switch (entry->reason) {
	case GT_REASON_PART:
		counts->parts++;
		return;
	case GT_REASON_START:
		counts->start++;
		return;
	case GT_REASON_PLT:
		counts->linkage++;
		return;
	default:
		break;
	}
	counts->functions++;
	counts->ways[entry->way]++;
	counts->entry_only += entry->entry_only;
	counts->prepared += entry->prepared != GT_PREPARED_NONE;
}

void gt_function_list_add(struct gt_function_list *list, struct gt_object *object,
			  const struct gt_plan_entry *entry)
{
	print_function(list, object, entry, list->first);
	list->first = false;
	count_entry(&list->counts, entry);
	count_entry(&list->total, entry);
}

void gt_function_list_object_end(struct gt_function_list *list)
{
	if (list->format == GT_LIST_TEXT) {
		print_summary("  in all", &list->counts);
	} else if (list->format == GT_LIST_JSON) {
		fputs("],\"summary\":", stdout);
		print_json_counts(&list->counts);
		putchar('}');
	}
	list->objects++;
}

void gt_function_list_begin(const struct gt_function_list *list)
{
	if (list->format == GT_LIST_CSV)
		puts("object,function,address,size,traced,way,prepared,reason");
	else if (list->format == GT_LIST_JSON)
		fputs("{\"objects\":[", stdout);
}

void gt_function_list_end(const struct gt_function_list *list)
{
	char what[64];

	if (list->format == GT_LIST_TEXT && list->objects > 1) {
		snprintf(what, sizeof(what), "\n%u objects", list->objects);
		print_summary(what, &list->total);
	} else if (list->format == GT_LIST_JSON) {
		fputs("],\"summary\":", stdout);
		print_json_counts(&list->total);
		fputs("}\n", stdout);
	}
}
