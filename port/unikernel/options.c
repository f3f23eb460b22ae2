/* SPDX-License-Identifier: MIT */
/*
 * Reads the loader's PVH start information and the options on the command line. The command line is
 * copied before memory is given out, which may overwrite it.
 */
#include "port/unikernel/boot.h"

#include "port/unikernel/boot_info.h"
#include "port/unikernel/console.h"
#include "port/unikernel/layout.h"

#define START_INFO_MAGIC 0x336ec578
#define TYPE_RAM	 1
#define LINE_BYTES	 1024

/* Xen's hvm/start_info.h, version 1. */
struct start_info {
	uint32_t magic, version, flags, module_count;
	uint64_t modules, command_line, rsdp;
	uint64_t memory_map;
	uint32_t memory_map_count, reserved;
};

struct memory_map_entry {
	uint64_t start, bytes;
	uint32_t type, reserved;
};

struct memory_range memory_ranges[MEMORY_RANGES_MAX];
uint32_t memory_range_count;
uint64_t memory_end;
uint64_t boot_rsdp;

static char command_line[LINE_BYTES];

static const void *at_physical(uint64_t address)
{
	return (const void *)(DIRECT_BASE + address);
}

bool boot_info_read(uint64_t address)
{
	const struct start_info *info = at_physical(address);
	if (info->magic != START_INFO_MAGIC || info->version < 1)
		return false;
	boot_rsdp = info->rsdp;
	if (info->command_line) {
		const char *text = at_physical(info->command_line);
		for (uint32_t i = 0; i < LINE_BYTES - 1 && text[i]; i++)
			command_line[i] = text[i];
	}
	const struct memory_map_entry *entries = at_physical(info->memory_map);
	for (uint32_t i = 0; i < info->memory_map_count; i++) {
		uint64_t start = (entries[i].start + PAGE_BYTES - 1) & -(uint64_t)PAGE_BYTES;
		uint64_t end = (entries[i].start + entries[i].bytes) & -(uint64_t)PAGE_BYTES;
		if (end > DIRECT_LIMIT)
			end = DIRECT_LIMIT;
		if (entries[i].type != TYPE_RAM || start >= end ||
		    memory_range_count == MEMORY_RANGES_MAX)
			continue;
		memory_ranges[memory_range_count++] = (struct memory_range){ start, end };
		if (end > memory_end)
			memory_end = end;
	}
	return memory_range_count > 0;
}

const char *option_text(const char *name, uint32_t *length)
{
	const char *word = command_line;
	while (*word) {
		const char *at = word, *n = name;
		while (*n && *at == *n) {
			at++;
			n++;
		}
		if (!*n && *at == '=') {
			at++;
			*length = 0;
			while (at[*length] && at[*length] != ' ')
				++*length;
			return at;
		}
		while (*word && *word != ' ')
			word++;
		while (*word == ' ')
			word++;
	}
	return NULL;
}

uint64_t option_number(const char *name, uint64_t otherwise)
{
	uint32_t length, at = 0;
	const char *text = option_text(name, &length);
	if (!text)
		return otherwise;
	uint64_t number = 0;
	while (at < length && at < 18 && text[at] >= '0' && text[at] <= '9')
		number = number * 10 + (uint64_t)(text[at++] - '0');
	bool digits = at > 0;
	if (at < length && (text[at] == 'K' || text[at] == 'M' || text[at] == 'G')) {
		number <<= text[at] == 'K' ? 10 : text[at] == 'M' ? 20 : 30;
		at++;
	}
	if (digits && at == length)
		return number;
	console_print("option %s=%.*s is no number (with K, M or G); ignored\n", name, (int)length,
		      text);
	return otherwise;
}
