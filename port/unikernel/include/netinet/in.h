/* SPDX-License-Identifier: MIT */
/* As in POSIX: with the sockets. */
#include "port/unikernel/include/sys/socket.h"
