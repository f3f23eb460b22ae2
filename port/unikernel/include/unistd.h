/* SPDX-License-Identifier: MIT */
/* As in POSIX, as far as it goes: the console (1, 2), the disk and sockets by number. */
#ifndef PORT_UNIKERNEL_INCLUDE_UNISTD_H
#define PORT_UNIKERNEL_INCLUDE_UNISTD_H

#include <stddef.h>
#include <stdint.h>

#include "port/unikernel/include/limits.h"

typedef long ssize_t;
typedef long off_t;

#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2

#define _SC_NPROCESSORS_ONLN 84

ssize_t read(int file, void *buffer, size_t bytes);
ssize_t write(int file, const void *buffer, size_t bytes);
ssize_t pread(int file, void *buffer, size_t bytes, off_t offset);
off_t lseek(int file, off_t offset, int whence);
int close(int file);
long sysconf(int name);
unsigned sleep(unsigned seconds);
int usleep(unsigned microseconds);

#endif
