/* SPDX-License-Identifier: MIT */
/* As in POSIX: lwIP's sockets. read, write and close (<unistd.h>) know them too. */
#ifndef PORT_UNIKERNEL_INCLUDE_SYS_SOCKET_H
#define PORT_UNIKERNEL_INCLUDE_SYS_SOCKET_H

#include "port/unikernel/include/errno.h"
#include "port/unikernel/include/fcntl.h"
#include "port/unikernel/include/unistd.h"
#include <lwip/sockets.h>

#endif
