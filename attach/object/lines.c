/* SPDX-License-Identifier: MIT */
/*
 * See lines.h. The units' address ranges are read at once into a table: .debug_aranges would be
 * quicker, but clang writes none.
 */
#include "attach/object/lines.h"
#include "attach/object/lines_dwarf.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <graftrace/error.h>

#define DEBUG_DIRECTORY "/usr/lib/debug"
#define NS_PER_SECOND	1000000000ull

#define DEPTH_MAX 64 /* of namespaces and types around a function */

/* A function's entry, and where the debug information describes it. */
struct declared {
	uint64_t address;
	Dwarf_Off die;
};

/* A compilation unit. */
struct unit {
	Dwarf_Off die;
	bool walked;		    /* its functions were looked for: */
	struct declared *functions; /* sorted by address */
	size_t count, room;
};

/* Code of one unit. */
struct range {
	uint64_t low, high;
	size_t unit; /* its index */
};

struct gt_lines {
	int fd;
	Elf *elf;
	Dwarf *dwarf;
	struct range *ranges; /* sorted by `low` */
	size_t count, room;
	struct unit *units;
	size_t unit_count, unit_room;
	uint64_t made_ns;
};

/* The directory in which debuginfod's client keeps what it has fetched, as debuginfod_find_debuginfo(3) has
 * it. False: there is none, or it is another user's, who could put anything there. */
static bool find_fetched(char *path, size_t bytes)
{
	const char *given = getenv("DEBUGINFOD_CACHE_PATH"), *cache = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");
	struct stat status;
	int length;

	if (given != NULL && *given)
		length = snprintf(path, bytes, "%s", given);
	else if (cache != NULL && *cache)
		length = snprintf(path, bytes, "%s/debuginfod_client", cache);
	else if (home != NULL && *home)
		length = snprintf(path, bytes, "%s/.cache/debuginfod_client", home);
	else
		return false;
	return length > 0 && (size_t)length < bytes && stat(path, &status) == 0 &&
	       S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
	       !(status.st_mode & (S_IWGRP | S_IWOTH));
}

/* The debug file that debuginfod's client has fetched. False: it has none. */
static bool has_fetched(const char *id, char *path, size_t bytes)
{
	char directory[3072];
	int length;

	if (!find_fetched(directory, sizeof(directory)))
		return false;
	length = snprintf(path, bytes, "%s/%s/debuginfo", directory, id);
	return length > 0 && (size_t)length < bytes && access(path, R_OK) == 0;
}

int gt_debug_path(const uint8_t *build_id, uint32_t build_id_bytes, char *path, size_t bytes)
{
	const char *directory = getenv("GRAFTRACE_DEBUG_DIRECTORY");
	char id[129], fetched[4096];
	int length;

	if (build_id_bytes < 2 || build_id_bytes > 64)
		return GT_ENOENT;
	for (uint32_t i = 0; i < build_id_bytes; i++)
		snprintf(id + 2 * (size_t)i, 3, "%02x", build_id[i]);
	length = snprintf(path, bytes, "%s/.build-id/%.2s/%s.debug",
			  directory && *directory ? directory : DEBUG_DIRECTORY, id, id + 2);
	if (length > 0 && (size_t)length < bytes && access(path, R_OK) != 0 &&
	    has_fetched(id, fetched, sizeof(fetched)))
		length = snprintf(path, bytes, "%s", fetched);
	return length > 0 && (size_t)length < bytes ? 0 : GT_ENOENT;
}

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS_PER_SECOND + (uint64_t)time->tv_nsec;
}

static bool is_the_one(Elf *elf, const struct gt_lines_of *of, const struct stat *status)
{
	const void *id;
	ssize_t bytes = dwelf_elf_gnu_build_id(elf, &id);

	if (of->build_id_bytes == 0)
		return bytes <= 0 && ns_of(&status->st_ctim) <= of->until_ns;
	return bytes == (ssize_t)of->build_id_bytes && memcmp(id, of->build_id, (size_t)bytes) == 0;
}

static void close_file(struct gt_lines *lines)
{
	dwarf_end(lines->dwarf);
	elf_end(lines->elf);
	if (lines->fd >= 0)
		close(lines->fd);
	lines->fd = -1;
	lines->elf = NULL;
	lines->dwarf = NULL;
}

/* Makes room for one more in *array. False: no memory. */
static bool has_room(void *array, size_t *room, size_t count, size_t size)
{
	void *grown, *old;

	if (count < *room)
		return true;
	memcpy(&old, array, sizeof(old));
	grown = realloc(old, (*room ? 2 * *room : 64) * size);
	if (grown == NULL)
		return false;
	memcpy(array, &grown, sizeof(grown));
	*room = *room ? 2 * *room : 64;
	return true;
}

static int by_low(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return (a->low > b->low) - (a->low < b->low);
}

static int by_address(const void *left, const void *right)
{
	const struct declared *a = left, *b = right;

	return (a->address > b->address) - (a->address < b->address);
}

/* False: no memory. */
static bool add_ranges(struct gt_lines *lines, Dwarf_Die *die)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	if (!has_room(&lines->units, &lines->unit_room, lines->unit_count, sizeof(*lines->units)))
		return false;
	lines->units[lines->unit_count++] = (struct unit){ .die = dwarf_dieoffset(die) };
	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		if (low >= high)
			continue;
		if (!has_room(&lines->ranges, &lines->room, lines->count, sizeof(*lines->ranges)))
			return false;
		lines->ranges[lines->count++] = (struct range){ low, high, lines->unit_count - 1 };
	}
	return true;
}

static bool find_ranges(struct gt_lines *lines)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die, part;
	uint8_t type;

	while (dwarf_get_units(lines->dwarf, unit, &unit, NULL, &type, &die, &part) == 0)
		if ((type == DW_UT_compile || type == DW_UT_skeleton) && !add_ranges(lines, &die))
			return false;
	if (lines->count)
		qsort(lines->ranges, lines->count, sizeof(*lines->ranges), by_low);
	return true;
}

/* The functions below a DIE, in its namespaces and types. Without memory some are missing: their
 * lines come from the line table. */
static void walk(struct unit *unit, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;
	Dwarf_Addr address;

	if (depth == DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			if (dwarf_entrypc(&die, &address) == 0 &&
			    has_room(&unit->functions, &unit->room, unit->count,
				     sizeof(*unit->functions)))
				unit->functions[unit->count++] =
					(struct declared){ address, dwarf_dieoffset(&die) };
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_enumeration_type:
			walk(unit, &die, depth + 1);
			break;
		default:
			break;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
}

/* DWARF 5 counts files from 0, which dwarf_decl_file takes for none. */
static const char *first_file(Dwarf_Die *unit, Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word index;
	size_t count;

	if (dwarf_formudata(dwarf_attr_integrate(function, DW_AT_decl_file, &attribute), &index) !=
		    0 ||
	    index != 0 || dwarf_getsrcfiles(unit, &files, &count) != 0)
		return NULL;
	return dwarf_filesrc(files, 0, NULL, NULL);
}

static bool find_function(struct gt_lines *lines, struct unit *unit, Dwarf_Die *die,
			  uint64_t address, Dwarf_Die *function)
{
	const struct declared key = { .address = address }, *found;

	if (!unit->walked)
		walk(unit, die, 0);
	if (!unit->walked && unit->count)
		qsort(unit->functions, unit->count, sizeof(*unit->functions), by_address);
	unit->walked = true;
	found = unit->count ? bsearch(&key, unit->functions, unit->count, sizeof(key), by_address)
			    : NULL;
	return found != NULL && dwarf_offdie(lines->dwarf, found->die, function) != NULL;
}

/* Where the function that begins at an address is declared to stand. */
static int find_declared(struct gt_lines *lines, struct unit *unit, Dwarf_Die *die,
			 uint64_t address, const char **file, uint32_t *line)
{
	Dwarf_Die function;
	int number;

	if (!find_function(lines, unit, die, address, &function) ||
	    dwarf_decl_line(&function, &number) != 0 || number <= 0)
		return GT_ENOENT;
	*file = dwarf_decl_file(&function);
	if (*file == NULL)
		*file = first_file(die, &function);
	*line = (uint32_t)number;
	return *file != NULL && **file ? 0 : GT_ENOENT;
}

/* is_code: the file that was traced, and not its debug file. GT_ENOENT: another one, or without
 * lines. */
static int try_file(struct gt_lines *lines, const char *path, const struct gt_lines_of *of,
		    bool is_code)
{
	struct stat status;

	lines->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (lines->fd < 0)
		return GT_ENOENT;
	if (fstat(lines->fd, &status) == 0 && S_ISREG(status.st_mode))
		lines->elf = elf_begin(lines->fd, ELF_C_READ, NULL);
	if (lines->elf != NULL && is_the_one(lines->elf, of, &status)) {
		if (is_code)
			lines->made_ns = ns_of(&status.st_mtim);
		lines->dwarf = dwarf_begin_elf(lines->elf, DWARF_C_READ, NULL);
	}
	if (lines->dwarf != NULL && !find_ranges(lines))
		return GT_ENOMEM;
	if (lines->count)
		return 0;
	close_file(lines);
	return GT_ENOENT;
}

int gt_lines_open(const struct gt_lines_of *of, struct gt_lines **out)
{
	struct gt_lines *lines = calloc(1, sizeof(*lines));
	char path[4096];
	int error;

	*out = NULL;
	if (lines == NULL)
		return GT_ENOMEM;
	elf_version(EV_CURRENT);
	error = try_file(lines, of->path, of, true);
	if (error == GT_ENOENT &&
	    gt_debug_path(of->build_id, of->build_id_bytes, path, sizeof(path)) == 0)
		error = try_file(lines, path, of, false);
	if (error == 0)
		*out = lines;
	else
		gt_lines_close(lines);
	return error;
}

/* The unit whose code an address is in, and its description. */
static struct unit *find_unit(struct gt_lines *lines, uint64_t address, Dwarf_Die *die)
{
	size_t low = 0, high = lines->count;
	struct unit *unit;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lines->ranges[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address >= lines->ranges[low - 1].high)
		return NULL;
	unit = &lines->units[lines->ranges[low - 1].unit];
	return dwarf_offdie(lines->dwarf, unit->die, die) != NULL ? unit : NULL;
}

bool gt_lines_function(struct gt_lines *lines, uint64_t address, Dwarf_Die *function)
{
	Dwarf_Die die;
	struct unit *unit = find_unit(lines, address, &die);

	return unit != NULL && find_function(lines, unit, &die, address, function);
}

int gt_lines_at(struct gt_lines *lines, uint64_t address, const char **file, uint32_t *line)
{
	Dwarf_Die die;
	struct unit *unit = find_unit(lines, address, &die);
	Dwarf_Line *found;
	int number;

	if (unit == NULL)
		return GT_ENOENT;
	if (find_declared(lines, unit, &die, address, file, line) == 0)
		return 0;
	found = dwarf_getsrc_die(&die, address);
	if (found == NULL || dwarf_lineno(found, &number) != 0 || number <= 0)
		return GT_ENOENT;
	*file = dwarf_linesrc(found, NULL, NULL);
	*line = (uint32_t)number;
	return *file != NULL && **file ? 0 : GT_ENOENT;
}

uint64_t gt_lines_made_ns(const struct gt_lines *lines)
{
	return lines->made_ns;
}

void gt_lines_close(struct gt_lines *lines)
{
	if (lines == NULL)
		return;
	close_file(lines);
	for (size_t i = 0; i < lines->unit_count; i++)
		free(lines->units[i].functions);
	free(lines->units);
	free(lines->ranges);
	free(lines);
}
