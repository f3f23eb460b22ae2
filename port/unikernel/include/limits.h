/* SPDX-License-Identifier: MIT */
/* As in C, as far as lwIP and targets ask. */
#ifndef PORT_UNIKERNEL_INCLUDE_LIMITS_H
#define PORT_UNIKERNEL_INCLUDE_LIMITS_H

#define CHAR_BIT  8
#define INT_MAX	  __INT_MAX__
#define INT_MIN	  (-INT_MAX - 1)
#define UINT_MAX  (INT_MAX * 2u + 1)
#define LONG_MAX  __LONG_MAX__
#define LONG_MIN  (-LONG_MAX - 1)
#define ULONG_MAX (LONG_MAX * 2ul + 1)

/* lwIP makes its own ssize_t, an int, where this is not known. */
#define SSIZE_MAX 0x7fffffffffffffff

#endif
