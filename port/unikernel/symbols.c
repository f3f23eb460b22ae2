/* SPDX-License-Identifier: MIT */
/*
 * Looks names up in the table that symbols.py made. The data are constant: callable from anywhere.
 */
#include "port/unikernel/symbols.h"

#include "port/unikernel/layout.h"

struct symbol {
	uint32_t start; /* from KERNEL_BASE */
	uint32_t bytes;
	uint32_t name; /* offset in symbol_names */
};

extern const struct symbol symbol_table[];
extern const char symbol_names[];

uint32_t symbol_find(uint64_t address)
{
	uint32_t low = 0, high = symbol_count;
	uint64_t offset = address - KERNEL_BASE;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (symbol_table[middle].start <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || offset - symbol_table[low - 1].start >= symbol_table[low - 1].bytes)
		return symbol_count;
	return low - 1;
}

const char *symbol_name(uint32_t number)
{
	return number < symbol_count ? symbol_names + symbol_table[number].name : "?";
}

uint64_t symbol_start(uint32_t number)
{
	return KERNEL_BASE + symbol_table[number].start;
}

uint32_t symbol_bytes(uint32_t number)
{
	return symbol_table[number].bytes;
}
