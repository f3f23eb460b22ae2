/* SPDX-License-Identifier: MIT */
/* What lwIP asks of the compiler and its surroundings. */
#ifndef PORT_UNIKERNEL_LWIP_ARCH_CC_H
#define PORT_UNIKERNEL_LWIP_ARCH_CC_H

#include <stddef.h>
#include <stdint.h>
#include "port/unikernel/console.h"
#include "port/unikernel/cpu.h"
#include "port/unikernel/crash.h"

#define LWIP_NO_INTTYPES_H    1
#define LWIP_NO_CTYPE_H	      1
#define LWIP_ERRNO_STDINCLUDE 1

#define X8_F  "02x"
#define U16_F "u"
#define S16_F "d"
#define X16_F "x"
#define U32_F "u"
#define S32_F "d"
#define X32_F "x"
#define SZT_F "zu"

/* An instruction each. */
#define lwip_htons(x) __builtin_bswap16(x)
#define lwip_htonl(x) __builtin_bswap32(x)

#define LWIP_RAND()		     ((uint32_t)(cpu_ticks() * 2654435761u))
#define LWIP_PLATFORM_DIAG(x)	     console_print x
#define LWIP_PLATFORM_ASSERT(reason) crash("lwIP: %s", reason)

#endif
