/* SPDX-License-Identifier: MIT */
/* PCI devices by the memory-mapped configuration space: those of bus 0, where QEMU's q35 has them.
 */
#ifndef PORT_UNIKERNEL_PCI_H
#define PORT_UNIKERNEL_PCI_H

#include <stdbool.h>
#include <stdint.h>
#include "port/unikernel/interrupts.h"

#define PCI_BARS 6

struct pci_device {
	volatile uint8_t *configuration;
	uint16_t vendor, device;
	uint8_t slot, function;
	/* Mapped registers, NULL where there are none or they are not mapped yet. */
	volatile uint8_t *bars[PCI_BARS];
	volatile uint32_t *vectors; /* MSI-X table */
	uint16_t vector_count;
	const char *name; /* of its interrupts, by its driver */
};

/* Calls found for each device until it returns false; the structure lasts. */
void pci_visit(bool (*found)(struct pci_device *device));
/* Lets the device read and write memory and answer at its addresses. */
void pci_enable(struct pci_device *device);
/* The next capability of a kind behind offset `after` (0: the first), or 0. */
uint8_t pci_capability(const struct pci_device *device, uint8_t kind, uint8_t after);
/* The registers behind a base address, mapped; NULL: none, or no memory. */
volatile uint8_t *pci_bar(struct pci_device *device, unsigned number);
/* Leads the device's MSI-X vector `index` to a handler, on processor `cpu`. */
bool pci_connect(struct pci_device *device, uint16_t index, uint32_t cpu,
		 interrupt_handler *handler, void *argument);

static inline uint32_t pci_read_32(const struct pci_device *device, uint32_t offset)
{
	return *(volatile uint32_t *)(device->configuration + offset);
}
static inline uint16_t pci_read_16(const struct pci_device *device, uint32_t offset)
{
	return *(volatile uint16_t *)(device->configuration + offset);
}
static inline uint8_t pci_read_8(const struct pci_device *device, uint32_t offset)
{
	return device->configuration[offset];
}

#endif
