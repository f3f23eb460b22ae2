/* SPDX-License-Identifier: MIT */
/* The network: virtio-net below lwIP, with the address that QEMU's user network gives its guest. */
#ifndef PORT_UNIKERNEL_NET_H
#define PORT_UNIKERNEL_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "port/unikernel/pci.h"

/* Starts lwIP and the device if there is one. From a thread, once. */
void net_init(struct pci_device *pci);
/* After a crash, from the one processor that is left: what the network's threads did else. */
void net_poll(void);

#endif
