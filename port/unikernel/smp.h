/* SPDX-License-Identifier: MIT */
/* The other processors: starting them, stopping them all for a moment, or for good. */
#ifndef PORT_UNIKERNEL_SMP_H
#define PORT_UNIKERNEL_SMP_H

#include <stdint.h>

/* Starts those that ACPI lists, up to `limit` in all; says which do not come. */
void smp_start(uint32_t limit);
/* Calls function(argument) here while every other processor stands still with interrupts off,
 * outside of any other code; they serialize before they go on. From a thread, with interrupts on;
 * not nested. */
void smp_stopped(void (*function)(void *argument), void *argument);
/* Stops the other processors for good, wherever they are. From anywhere, once. */
void smp_halt_others(void);

#endif
