/* SPDX-License-Identifier: MIT */
/* Text of events is put together in a buffer of the caller's: what has no room is left out. */
#ifndef GT_CORE_TRACE_EVENT_OUTPUT_H
#define GT_CORE_TRACE_EVENT_OUTPUT_H

#include "core/trace/event.h"
#include "core/trace/message.h"

struct gt_output {
	char *at;
	char *end;
	struct gt_target *names; /* who knows functions by their addresses; NULL: nobody */
	uint32_t pid;		 /* the process that the addresses are of */
};

static inline void gt_output_char(struct gt_output *output, char c)
{
	if (output->at < output->end)
		*output->at++ = c;
}

static inline void gt_output_text(struct gt_output *output, const char *text)
{
	while (*text)
		gt_output_char(output, *text++);
}

/* What could steer a terminal becomes '?'. */
static inline void gt_output_clean(struct gt_output *output, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		gt_output_char(output,
			       (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i]);
}

/* format: gt_format()'s, of one number. */
static inline void gt_output_number(struct gt_output *output, uint64_t value, const char *format)
{
	char text[32];

	gt_format(text, sizeof(text), format, (unsigned long long)value);
	gt_output_text(output, text);
}

/* Of a system call's event: its text, name included, and its `print fmt` (event_syscall.c). */
void gt_event_put_call(struct gt_output *output, enum gt_event_call call,
		       const struct gt_event_format *format, const struct gt_record *record);
void gt_event_put_call_format(struct gt_output *output, enum gt_event_call call,
			      const struct gt_event_format *format);

/* Of the event graftrace:off_cpu, without its name (rest.c). */
struct gt_rest;
void gt_event_put_rest(struct gt_output *output, const struct gt_rest *rest);

#endif
