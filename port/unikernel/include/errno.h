/* SPDX-License-Identifier: MIT */
/* As in POSIX, with Linux's numbers. Each thread has its own errno. */
#ifndef PORT_UNIKERNEL_INCLUDE_ERRNO_H
#define PORT_UNIKERNEL_INCLUDE_ERRNO_H

int *errno_location(void);
#define errno (*errno_location())

#define EPERM	      1
#define ENOENT	      2
#define ESRCH	      3
#define EINTR	      4
#define EIO	      5
#define ENXIO	      6
#define EBADF	      9
#define EAGAIN	      11
#define EWOULDBLOCK   EAGAIN
#define ENOMEM	      12
#define EACCES	      13
#define EFAULT	      14
#define EBUSY	      16
#define EEXIST	      17
#define ENODEV	      19
#define EINVAL	      22
#define ENFILE	      23
#define EMFILE	      24
#define ENOSPC	      28
#define ESPIPE	      29
#define EROFS	      30
#define EPIPE	      32
#define ERANGE	      34
#define EDEADLK	      35
#define ENOSYS	      38
#define EMSGSIZE      90
#define EPROTOTYPE    91
#define ENOPROTOOPT   92
#define EOPNOTSUPP    95
#define EAFNOSUPPORT  97
#define EADDRINUSE    98
#define EADDRNOTAVAIL 99
#define ENETUNREACH   101
#define ECONNABORTED  103
#define ECONNRESET    104
#define ENOBUFS	      105
#define EISCONN	      106
#define ENOTCONN      107
#define ETIMEDOUT     110
#define ECONNREFUSED  111
#define EHOSTUNREACH  113
#define EALREADY      114
#define EINPROGRESS   115

#endif
