/* SPDX-License-Identifier: MIT */
/*
 * What registers.S and registers.c share: the places in struct registers, and of the counter in a
 * struct count_site.
 */
#ifndef REGISTERS_H
#define REGISTERS_H

#define SITE_CALLS 24

#define REGISTERS_STACK	  120
#define REGISTERS_VECTORS 128
#define REGISTERS_MASKS	  2176
#define REGISTERS_X87	  2192
#define REGISTERS_MXCSR	  2320
#define REGISTERS_CONTROL 2324

#ifndef __ASSEMBLER__
#include <stdint.h>

struct registers {
	uint64_t general[15];
	uint64_t stack;
	uint64_t vector[32][8];
	uint16_t mask[8];
	uint8_t x87[8][16];
	uint32_t mxcsr;
	uint16_t control;
	uint16_t pad;
};
#endif
#endif
