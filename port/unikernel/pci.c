/* SPDX-License-Identifier: MIT */
/* Finds devices, maps their registers, and connects their message-signalled interrupts. */
#include "port/unikernel/pci.h"

#include "port/unikernel/acpi.h"
#include "port/unikernel/memory.h"

#define SLOTS	       32
#define FUNCTIONS      8
#define FUNCTION_BYTES 4096

#define REGISTER_COMMAND      0x04
#define REGISTER_STATUS	      0x06
#define REGISTER_HEADER	      0x0e
#define REGISTER_BAR	      0x10
#define REGISTER_CAPABILITIES 0x34

#define COMMAND_MEMORY	    2
#define COMMAND_MASTER	    4
#define COMMAND_NO_INTX	    0x400
#define STATUS_CAPABILITIES 0x10
#define HEADER_MANY	    0x80
#define BAR_IO		    1
#define BAR_64		    4
#define CAPABILITY_MSIX	    0x11
#define MSIX_ENABLE	    0x8000
#define MSIX_COUNT	    0x7ff
#define MESSAGE_ADDRESS	    0xfee00000

static void set_16(struct pci_device *device, uint32_t offset, uint16_t value)
{
	*(volatile uint16_t *)(device->configuration + offset) = value;
}

static void set_32(struct pci_device *device, uint32_t offset, uint32_t value)
{
	*(volatile uint32_t *)(device->configuration + offset) = value;
}

void pci_visit(bool (*found)(struct pci_device *device))
{
	volatile void *space =
		acpi_pci_address
			? paging_map_device(acpi_pci_address, SLOTS * FUNCTIONS * FUNCTION_BYTES)
			: NULL;
	for (uint32_t i = 0; space && i < SLOTS * FUNCTIONS; i++) {
		struct pci_device device = { .configuration =
						     (volatile uint8_t *)space + i * FUNCTION_BYTES,
					     .slot = (uint8_t)(i / FUNCTIONS),
					     .function = (uint8_t)(i % FUNCTIONS) };
		device.vendor = pci_read_16(&device, 0);
		device.device = pci_read_16(&device, 2);
		if (device.vendor == 0xffff) {
			/* Without function 0 the device has no others. */
			if (i % FUNCTIONS == 0)
				i += FUNCTIONS - 1;
			continue;
		}
		struct pci_device *kept = malloc(sizeof(*kept));
		if (!kept)
			return;
		*kept = device;
		if (!found(kept))
			return;
		if (i % FUNCTIONS == 0 && !(pci_read_8(kept, REGISTER_HEADER) & HEADER_MANY))
			i += FUNCTIONS - 1;
	}
}

void pci_enable(struct pci_device *device)
{
	set_16(device, REGISTER_COMMAND,
	       pci_read_16(device, REGISTER_COMMAND) | COMMAND_MEMORY | COMMAND_MASTER |
		       COMMAND_NO_INTX);
}

uint8_t pci_capability(const struct pci_device *device, uint8_t kind, uint8_t after)
{
	if (!(pci_read_16(device, REGISTER_STATUS) & STATUS_CAPABILITIES))
		return 0;
	uint8_t at = pci_read_8(device, after ? after + 1u : REGISTER_CAPABILITIES) & 0xfc;
	/* Capabilities of a faulty device may form a ring: the walk is bounded. */
	for (int i = 0; at >= 0x40 && i < 48; i++) {
		if (pci_read_8(device, at) == kind)
			return at;
		at = pci_read_8(device, at + 1u) & 0xfc;
	}
	return 0;
}

volatile uint8_t *pci_bar(struct pci_device *device, unsigned number)
{
	if (number >= PCI_BARS)
		return NULL;
	if (device->bars[number])
		return device->bars[number];
	uint32_t offset = REGISTER_BAR + 4 * number;
	uint32_t low = pci_read_32(device, offset);
	if (low & BAR_IO || !(low & ~0xfu))
		return NULL;
	bool wide = low & BAR_64 && number + 1 < PCI_BARS;
	uint64_t address = low & ~0xfu;
	if (wide)
		address |= (uint64_t)pci_read_32(device, offset + 4) << 32;
	/* Finds the size by the bits that stay zero. */
	set_32(device, offset, ~0u);
	uint32_t bytes = ~(pci_read_32(device, offset) & ~0xfu) + 1;
	set_32(device, offset, low);
	device->bars[number] = paging_map_device(address, bytes);
	return device->bars[number];
}

bool pci_connect(struct pci_device *device, uint16_t index, uint32_t cpu,
		 interrupt_handler *handler, void *argument)
{
	uint8_t capability = pci_capability(device, CAPABILITY_MSIX, 0);
	if (!capability)
		return false;
	uint16_t control = pci_read_16(device, capability + 2u);
	if (!device->vectors) {
		uint32_t where = pci_read_32(device, capability + 4u);
		volatile uint8_t *bar = pci_bar(device, where & 7);
		if (!bar)
			return false;
		device->vectors = (volatile uint32_t *)(bar + (where & ~7u));
		device->vector_count = (uint16_t)((control & MSIX_COUNT) + 1);
		set_16(device, capability + 2u, control | MSIX_ENABLE);
	}
	uint32_t vector = interrupt_allocate(handler, argument, device->name);
	if (index >= device->vector_count || !vector)
		return false;
	volatile uint32_t *entry = device->vectors + 4 * index;
	entry[0] = MESSAGE_ADDRESS | cpus[cpu].apic_id << 12;
	entry[1] = 0;
	entry[2] = vector;
	entry[3] = 0; /* not masked */
	return true;
}
