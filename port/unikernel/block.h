/* SPDX-License-Identifier: MIT */
/* The disk: virtio-blk, read by any number of threads at once. */
#ifndef PORT_UNIKERNEL_BLOCK_H
#define PORT_UNIKERNEL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include "port/unikernel/pci.h"

#define BLOCK_SECTOR 512

void block_init(struct pci_device *pci);
/* Bytes of the disk, 0: there is none. */
uint64_t block_bytes(void);
/* Reads or writes whole sectors, at most 64 KiB; the buffer lies in the direct map (malloc's do).
 * Sleeps. False: the device said no. */
bool block_transfer(uint64_t sector, void *buffer, uint32_t bytes, bool write);

#endif
