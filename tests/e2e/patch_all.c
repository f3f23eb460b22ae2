/* SPDX-License-Identifier: MIT */
/*
 * For the tests of the patch plan: a library to be preloaded that patches every function of the
 * program (and of the libraries that GT_PATCH_LIBRARIES names, by parts of their paths, separated
 * by colons) before main runs. Each patched function counts its calls and goes on. At the end a
 * line "objects functions patched reached calls" is written to the file GT_PATCH_REPORT.
 * GT_PATCH_ONLY=FROM-TO (numbers of functions) narrows a failure down.
 */
#define _GNU_SOURCE
#include "attach/plan/plan.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STUB_BYTES 16 /* incq counter(%rip); jmp body */

struct write {
	uint8_t *to;
	uint8_t bytes[8];
	uint8_t count;
};

struct patched {
	uint64_t *counters;
	uint32_t count;
};

static struct patched objects[16];
static uint32_t object_count, function_count, patched_count;
static pid_t patcher;

static void die(const char *what)
{
	fprintf(stderr, "patch_all: %s\n", what);
	_exit(99);
}

/* Memory within reach of [start, end). */
static uint8_t *map_near(uint64_t start, uint64_t end, size_t bytes)
{
	uint64_t at;

	for (at = (end + 0x100000) & -4096ull; at < start + 0x70000000; at += 0x100000) {
		void *got = mmap((void *)at, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (got == (void *)at)
			return got;
		if (got != MAP_FAILED)
			munmap(got, bytes);
	}
	die("no memory near the code");
	return NULL;
}

static void put(uint8_t **at, const void *bytes, size_t count)
{
	memcpy(*at, bytes, count);
	*at += count;
}

static void put_relative(uint8_t **at, const void *target)
{
	const int32_t value = (int32_t)((const uint8_t *)target - (*at + 4));

	put(at, &value, 4);
}

/* Byte by byte, volatile: memcpy may be what is being written. */
static void apply(const struct write *writes, uint32_t count)
{
	uint32_t i, k;

	for (i = 0; i < count; i++)
		for (k = 0; k < writes[i].count; k++)
			*(volatile uint8_t *)&writes[i].to[k] = writes[i].bytes[k];
}

static void set_code_writable(struct gt_object *object, uint64_t bias, bool writable)
{
	uint32_t i;

	for (i = 0; i < gt_object_segment_count(object); i++) {
		const struct gt_object_segment *segment = gt_object_segment(object, i);
		const uint64_t start = (segment->address + bias) & -4096ull;
		const uint64_t end = segment->address + bias + segment->memory_bytes;

		if (segment->execute &&
		    mprotect((void *)start, end - start,
			     PROT_READ | PROT_EXEC | (writable ? PROT_WRITE : 0)) != 0)
			die("mprotect");
	}
}

static void add_write(struct write *writes, uint32_t *count, uint64_t to, const uint8_t *original,
		      const uint8_t *bytes, uint8_t length)
{
	if (memcmp((void *)to, original, length) != 0)
		die("the code in memory differs from the file's");
	writes[*count].to = (uint8_t *)to;
	writes[*count].count = length;
	memcpy(writes[*count].bytes, bytes, length);
	(*count)++;
}

static void patch_object(const char *path, uint64_t bias)
{
	const char *only = getenv("GT_PATCH_ONLY");
	struct gt_message message = { "" };
	const struct gt_object_segment *last_segment;
	struct gt_object *object;
	struct gt_plan *plan;
	struct write *writes;
	uint32_t count, i, k, written = 0, first = 0, last = UINT32_MAX;
	uint64_t start, end;
	uint8_t *memory, *at;
	size_t bytes;

	if (only && sscanf(only, "%u-%u", &first, &last) != 2)
		die("GT_PATCH_ONLY=FROM-TO");
	if (gt_object_open(path, &object, &message) || gt_plan_create(object, &plan, &message))
		die(message.text);
	count = gt_object_function_count(object);
	last_segment = gt_object_segment(object, gt_object_segment_count(object) - 1);
	start = gt_object_segment(object, 0)->address & -4096ull;
	end = (last_segment->address + last_segment->memory_bytes + 4095) & -4096ull;
	bytes = (size_t)count * (8 + STUB_BYTES + GT_PLAN_MOVED_MAX) + 65536;
	memory = map_near(start + bias, end + bias, bytes);
	writes = calloc(count * 8ul + 64, sizeof(*writes));
	at = memory + (size_t)count * 8;
	objects[object_count].counters = (uint64_t *)memory;
	objects[object_count++].count = count;
	for (i = 0; i < count; i++) {
		struct gt_plan_entry entry;
		uint8_t *stub, *moved = NULL, jump[8];

		if (gt_plan_function(plan, i, &entry, &message))
			die(message.text);
		function_count++;
		if (entry.way == GT_PLAN_NONE || i < first || i > last)
			continue;
		if (written + entry.extra_count + 1u > count * 8ul + 64)
			die("too many extra patches");
		if (!entry.body) {
			const int length = gt_plan_move(plan, &entry, bias, (uint64_t)at, at,
							GT_PLAN_MOVED_MAX, NULL);

			if (length < 0)
				die("gt_plan_move");
			if (length > entry.moved_bytes_max)
				die("gt_plan_move took more than it said");
			moved = at;
			at += length;
		}
		stub = at;
		put(&at, "\x48\xff\x05", 3);
		put_relative(&at, memory + (size_t)i * 8);
		put(&at, "\xe9", 1);
		put_relative(&at, moved ? moved : (uint8_t *)entry.body + bias);
		if (gt_plan_jump(plan, &entry, bias, (uint64_t)stub, jump))
			die("gt_plan_jump");
		add_write(writes, &written, entry.patch_address + bias, entry.original, jump,
			  entry.patch_bytes);
		for (k = 0; k < entry.extra_count; k++) {
			const struct gt_plan_extra *extra = gt_plan_extra(plan, &entry, k);

			if (gt_plan_extra_bytes(extra, bias, (uint64_t)stub, (uint64_t)moved, jump))
				die("gt_plan_extra_bytes");
			add_write(writes, &written, extra->address + bias, extra->original, jump,
				  extra->bytes);
		}
		patched_count++;
	}
	set_code_writable(object, bias, true);
	apply(writes, written);
	set_code_writable(object, bias, false);
	free(writes);
	gt_plan_destroy(plan);
	gt_object_close(object);
}

static int each_object(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *libraries = getenv("GT_PATCH_LIBRARIES");
	char path[4096], *part, *copy;
	ssize_t bytes;

	(void)size;
	(void)data;
	if (!*info->dlpi_name && object_count == 0 && !getenv("GT_PATCH_NO_PROGRAM")) {
		bytes = readlink("/proc/self/exe", path, sizeof(path) - 1);
		if (bytes < 0)
			die("/proc/self/exe");
		path[bytes] = 0;
		patch_object(path, info->dlpi_addr);
		return 0;
	}
	if (!libraries || !*info->dlpi_name || strstr(info->dlpi_name, "patch_all"))
		return 0;
	copy = strdup(libraries);
	for (part = strtok(copy, ":"); part; part = strtok(NULL, ":"))
		if (strstr(info->dlpi_name, part)) {
			patch_object(info->dlpi_name, info->dlpi_addr);
			break;
		}
	free(copy);
	return 0;
}

__attribute__((constructor)) static void patch_everything(void)
{
	if (!getenv("GT_PATCH_REPORT"))
		return;
	patcher = getpid();
	dl_iterate_phdr(each_object, NULL);
	/* What the program starts is not ours. */
	unsetenv("LD_PRELOAD");
}

__attribute__((destructor)) static void report(void)
{
	const char *path = getenv("GT_PATCH_REPORT");
	unsigned long long calls = 0;
	uint32_t reached = 0, i, k;
	FILE *file;

	if (!path || getpid() != patcher)
		return;
	for (i = 0; i < object_count; i++)
		for (k = 0; k < objects[i].count; k++) {
			reached += objects[i].counters[k] != 0;
			calls += objects[i].counters[k];
		}
	file = fopen(path, "w");
	if (!file)
		return;
	fprintf(file, "%u %u %u %u %llu\n", object_count, function_count, patched_count, reached,
		calls);
	fclose(file);
}
