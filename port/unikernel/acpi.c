/* SPDX-License-Identifier: MIT */
/* Walks the ACPI tables: MADT (processors), FADT (timer, power), MCFG (PCI configuration space). */
#include "port/unikernel/acpi.h"

#include "port/unikernel/boot.h"
#include "port/unikernel/console.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/include/string.h"

#define MADT_LOCAL_APIC	 0
#define MADT_ENABLED	 1
#define FADT_PM1A	 64
#define FADT_TIMER	 76
#define MCFG_FIRST_ENTRY 44
#define LARGEST_TABLE	 0x10000

struct root_pointer {
	char signature[8];
	uint8_t checksum, oem[6], revision;
	uint32_t rsdt;
};

struct table {
	char signature[4];
	uint32_t length;
	uint8_t revision, checksum, oem[26];
};

uint32_t acpi_apic_ids[CPU_MAX];
uint32_t acpi_cpu_count;
uint64_t acpi_apic_address = 0xfee00000;
uint16_t acpi_timer_port = 0x608;
uint64_t acpi_pci_address;
uint8_t acpi_pci_last_bus;
uint16_t acpi_power_port = 0x604;

static uint32_t get_32(const uint8_t *at)
{
	uint32_t value;
	memcpy(&value, at, 4);
	return value;
}

/* Returns the table at a physical address, or NULL if its checksum is wrong. */
static const struct table *table_at(uint64_t address)
{
	if (!address || address + LARGEST_TABLE > DIRECT_LIMIT ||
	    !paging_entry(DIRECT_BASE + address))
		return NULL;
	const struct table *table = direct_of_physical(address);
	if (table->length < sizeof(*table) || table->length > LARGEST_TABLE)
		return NULL;
	uint8_t sum = 0;
	for (uint32_t i = 0; i < table->length; i++)
		sum = (uint8_t)(sum + ((const uint8_t *)table)[i]);
	return sum ? NULL : table;
}

static void read_madt(const struct table *table)
{
	const uint8_t *bytes = (const uint8_t *)table;
	acpi_apic_address = get_32(bytes + sizeof(*table));
	acpi_cpu_count = 0;
	for (uint32_t at = sizeof(*table) + 8; at + 8 <= table->length;) {
		uint8_t type = bytes[at], length = bytes[at + 1];
		if (length < 2)
			return;
		if (type == MADT_LOCAL_APIC && get_32(bytes + at + 4) & MADT_ENABLED &&
		    acpi_cpu_count < CPU_MAX)
			acpi_apic_ids[acpi_cpu_count++] = bytes[at + 3];
		at += length;
	}
}

static void read_fadt(const struct table *table)
{
	const uint8_t *bytes = (const uint8_t *)table;
	if (table->length < FADT_TIMER + 4)
		return;
	acpi_power_port = (uint16_t)get_32(bytes + FADT_PM1A);
	acpi_timer_port = (uint16_t)get_32(bytes + FADT_TIMER);
}

static void read_mcfg(const struct table *table)
{
	const uint8_t *bytes = (const uint8_t *)table;
	if (table->length < MCFG_FIRST_ENTRY + 16)
		return;
	acpi_pci_address = get_32(bytes + MCFG_FIRST_ENTRY) |
			   (uint64_t)get_32(bytes + MCFG_FIRST_ENTRY + 4) << 32;
	acpi_pci_last_bus = bytes[MCFG_FIRST_ENTRY + 11];
}

bool acpi_init(void)
{
	acpi_cpu_count = 1;
	const struct root_pointer *root = direct_of_physical(boot_rsdp);
	if (!boot_rsdp || !paging_entry((uint64_t)root) || memcmp(root->signature, "RSD PTR ", 8))
		return false;
	const struct table *list = table_at(root->rsdt);
	if (!list)
		return false;
	const uint8_t *bytes = (const uint8_t *)list;
	for (uint32_t at = sizeof(*list); at + 4 <= list->length; at += 4) {
		const struct table *table = table_at(get_32(bytes + at));
		if (!table)
			continue;
		if (!memcmp(table->signature, "APIC", 4))
			read_madt(table);
		else if (!memcmp(table->signature, "FACP", 4))
			read_fadt(table);
		else if (!memcmp(table->signature, "MCFG", 4))
			read_mcfg(table);
	}
	return acpi_cpu_count > 0;
}
