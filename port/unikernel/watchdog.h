/* SPDX-License-Identifier: MIT */
/* Looks once a second for what will never end by itself. */
#ifndef PORT_UNIKERNEL_WATCHDOG_H
#define PORT_UNIKERNEL_WATCHDOG_H

/* Starts its thread. Once. */
void watchdog_start(void);

#endif
