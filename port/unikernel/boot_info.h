/* SPDX-License-Identifier: MIT */
/* Between boot.c and options.c. */
#ifndef PORT_UNIKERNEL_BOOT_INFO_H
#define PORT_UNIKERNEL_BOOT_INFO_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the PVH start information at a physical address, by the boot tables' direct map. False: it
 * is none, or tells of no memory. */
bool boot_info_read(uint64_t address);

#endif
