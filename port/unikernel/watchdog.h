/* SPDX-License-Identifier: MIT */
/* Looks once a second for what will never end by itself. */
#ifndef PORT_UNIKERNEL_WATCHDOG_H
#define PORT_UNIKERNEL_WATCHDOG_H

/* Starts its thread, which looks for threads that wait for each other. Once. */
void watchdog_start(void);
/* Starts a processor's look at the next one. Once, by its idle thread, which never leaves it: the
 * first thread may be anywhere as soon as there is a second processor. Interrupts off. */
void watchdog_cpu_start(void);

#endif
