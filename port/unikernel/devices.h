/* SPDX-License-Identifier: MIT */
/* The devices of the machine. */
#ifndef PORT_UNIKERNEL_DEVICES_H
#define PORT_UNIKERNEL_DEVICES_H

/* Finds and starts them: disk, network. From a thread, once. */
void devices_init(void);

#endif
