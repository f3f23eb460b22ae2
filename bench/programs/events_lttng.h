/* SPDX-License-Identifier: MIT */
/* The tracepoint of events.c, as LTTng-UST has it. It is included several times. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER bench
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "bench/programs/events_lttng.h"

#if !defined(EVENTS_LTTNG_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define EVENTS_LTTNG_H

#include <lttng/tracepoint.h>

TRACEPOINT_EVENT(bench, three, TP_ARGS(int, first, int, second, int, third),
		 TP_FIELDS(ctf_integer(int, first, first) ctf_integer(int, second, second)
				   ctf_integer(int, third, third)))

#endif
#include <lttng/tracepoint-event.h>
