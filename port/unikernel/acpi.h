/* SPDX-License-Identifier: MIT */
/* What the ACPI tables say of the machine. Read once, at boot. */
#ifndef PORT_UNIKERNEL_ACPI_H
#define PORT_UNIKERNEL_ACPI_H

#include <stdbool.h>
#include <stdint.h>
#include "port/unikernel/cpu.h"

extern uint32_t acpi_apic_ids[CPU_MAX]; /* of processors that can run */
extern uint32_t acpi_cpu_count;
extern uint64_t acpi_apic_address; /* physical address of the local APIC */
extern uint16_t acpi_timer_port;   /* 3.58 MHz counter */
extern uint64_t acpi_pci_address;  /* of the memory-mapped configuration space, 0 = none */
extern uint8_t acpi_pci_last_bus;
extern uint16_t acpi_power_port; /* PM1a control: sleep type 0 in it powers off */

/* False: no tables, or none that is whole; the values are then a q35's with one processor. */
bool acpi_init(void);

#endif
