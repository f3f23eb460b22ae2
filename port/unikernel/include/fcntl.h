/* SPDX-License-Identifier: MIT */
/* As in POSIX, as far as it goes: /dev/vda, the disk, for reading. */
#ifndef PORT_UNIKERNEL_INCLUDE_FCNTL_H
#define PORT_UNIKERNEL_INCLUDE_FCNTL_H

#define O_RDONLY 0

int open(const char *path, int flags, ...);

#endif
