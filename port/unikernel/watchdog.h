/* SPDX-License-Identifier: MIT */
/* Looks once a second for what will never end by itself. */
#ifndef PORT_UNIKERNEL_WATCHDOG_H
#define PORT_UNIKERNEL_WATCHDOG_H

void watchdog_start(void); /* its thread, once */
/* Starts a processor's look at the next one. Once, by its idle thread, which never leaves it. */
void watchdog_cpu_start(void);

#endif
