/* SPDX-License-Identifier: MIT */
/* Gives each PCI device to its driver. */
#include "port/unikernel/devices.h"

#include "port/unikernel/block.h"
#include "port/unikernel/net.h"
#include "port/unikernel/virtio.h"

static struct pci_device *net;

static bool found(struct pci_device *device)
{
	if (device->vendor != VIRTIO_VENDOR)
		return true;
	if (device->device == VIRTIO_DEVICE_NET && !net)
		net = device;
	if (device->device == VIRTIO_DEVICE_BLOCK && !block_bytes())
		block_init(device);
	return true;
}

void devices_init(void)
{
	pci_visit(found);
	net_init(net);
}
