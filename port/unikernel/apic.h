/* SPDX-License-Identifier: MIT */
/* The local interrupt controller of each processor, and its timer. */
#ifndef PORT_UNIKERNEL_APIC_H
#define PORT_UNIKERNEL_APIC_H

#include <stdint.h>

void apic_map(void);  /* once; needs acpi_init */
void apic_init(void); /* on each processor */
uint32_t apic_id(void);
void apic_end_of_interrupt(void);

/* Interrupts another processor. */
void apic_send(uint32_t apic_id, uint32_t vector);
/* As an NMI, which arrives even where interrupts are off. */
void apic_send_nmi(uint32_t apic_id);
/* Interrupts this processor when it lets interrupts through. From anywhere, NMIs too; untraced. */
void apic_send_self(uint32_t vector);
/* INIT, then the start-up interrupt with the page that it begins in. */
void apic_send_init(uint32_t apic_id);
void apic_send_startup(uint32_t apic_id, uint32_t physical);

/* For clock.c: lets the timer run down from its highest count, and reads what is left. */
void apic_timer_free_run(void);
uint32_t apic_timer_left(void);
void apic_timer_set_rate(uint64_t per_second);
/* One timer interrupt on this processor after so many nanoseconds (at most a minute; the last call
 * counts). */
void apic_timer_arm(uint64_t nanoseconds);
/* In 50 microseconds. */
void apic_timer_soon(void);

#endif
