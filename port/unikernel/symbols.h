/* SPDX-License-Identifier: MIT */
/* The kernel's function names, made by symbols.py from the first link and linked into the second.
 */
#ifndef PORT_UNIKERNEL_SYMBOLS_H
#define PORT_UNIKERNEL_SYMBOLS_H

#include <stdint.h>

/* Functions, by ascending address. */
extern const uint32_t symbol_count;

/* The number of the function that holds an address, or symbol_count if none does. */
uint32_t symbol_find(uint64_t address);
const char *symbol_name(uint32_t number);
uint64_t symbol_start(uint32_t number);
uint32_t symbol_bytes(uint32_t number);

#endif
