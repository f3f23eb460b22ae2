/* SPDX-License-Identifier: MIT */
/* Looks once a second for what will never end by itself. */
#ifndef PORT_UNIKERNEL_WATCHDOG_H
#define PORT_UNIKERNEL_WATCHDOG_H

/* Starts its thread, and the boot processor's look at the next one. Once. */
void watchdog_start(void);
/* Starts another processor's look at the next one. Once, on it, interrupts off. */
void watchdog_cpu_start(void);

#endif
