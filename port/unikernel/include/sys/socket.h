/* SPDX-License-Identifier: MIT */
/* As in POSIX: lwIP's sockets. read, write and close (<unistd.h>) know them too. */
#ifndef PORT_UNIKERNEL_INCLUDE_SYS_SOCKET_H
#define PORT_UNIKERNEL_INCLUDE_SYS_SOCKET_H

#include "port/unikernel/include/errno.h"
#include "port/unikernel/include/fcntl.h"
#include "port/unikernel/include/unistd.h"
#include <lwip/sockets.h>

int posix_socket(int family, int type, int protocol);
int posix_bind(int file, const struct sockaddr *address, socklen_t bytes);
int posix_listen(int file, int backlog);
int posix_accept(int file, struct sockaddr *address, socklen_t *bytes);
int posix_connect(int file, const struct sockaddr *address, socklen_t bytes);
int posix_shutdown(int file, int how);
ssize_t posix_send(int file, const void *data, size_t bytes, int flags);
ssize_t posix_recv(int file, void *data, size_t bytes, int flags);
int posix_setsockopt(int file, int level, int name, const void *value, socklen_t bytes);
int posix_poll(struct pollfd *files, nfds_t count, int timeout);
int posix_select(int limit, fd_set *readable, fd_set *writable, fd_set *failed,
		 struct timeval *timeout);

/* lwIP's macros of these names lead past posix_socket.c. */
#undef socket
#undef bind
#undef listen
#undef accept
#undef connect
#undef shutdown
#undef send
#undef recv
#undef setsockopt
#undef poll
#undef select
#define socket	   posix_socket
#define bind	   posix_bind
#define listen	   posix_listen
#define accept	   posix_accept
#define connect	   posix_connect
#define shutdown   posix_shutdown
#define send	   posix_send
#define recv	   posix_recv
#define setsockopt posix_setsockopt
#define poll	   posix_poll
#define select	   posix_select

#endif
