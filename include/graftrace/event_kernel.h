/* SPDX-License-Identifier: MIT */
/*
 * Static events of a kernel that embeds the core (doc/porting.md): the macro of event.h as kernels
 * have it. C11, gcc and clang, x86-64. A part of event.h where GRAFTRACE_KERNEL is defined.
 *
 *	GRAFTRACE_EVENT(shop, sold, GRAFTRACE_INT(int, count, n), GRAFTRACE_STRING(what, name));
 *
 * leaves a 5-byte nop and, apart from the straight line, what gathers the fields and records them.
 * The nop is a row of the section __graftrace_events: gt_sites_events_init takes the section, and
 * gt_sites_apply_events makes a jump of the nop where the event is wanted. Unlike a program's, the
 * values are evaluated only where somebody listens.
 *
 * From any state of the kernel but the recorder's own hooks (core/record/kernel.h) and an NMI that
 * gt_kernel_enter_nmi refused. GT_KERNEL_EVENT_STACK_USE bytes of the stack that it is on.
 *
 * GRAFTRACE_EVENT_PRINTED(system, name, print, …) also says how people see it, in place of
 * "field=value …": a text in which
 *	%(field)	is the field's value
 *	%(field:x)	the same as hexadecimal number; :02x with at least two digits, :03 decimal
 *	%(field:/MM)	the number's part above bit 20; :/mm below it (Linux's device numbers)
 *	%(field:1=A,2=B)	the word that belongs to the value; the number if none does
 *	%(field:|1=A,2=B?C)	the words of the bits that are set, with | between; C if none is
 * and %% is a percent sign. One that begins with ! stands without the event's name. Values of words are decimal. Strings must live as long as the kernel.
 */
#ifndef GRAFTRACE_EVENT_KERNEL_H
#define GRAFTRACE_EVENT_KERNEL_H

#include <stdint.h>
#include <graftrace/record.h>

struct graftrace_event_field {
	const char *name;
	const char *type; /* as C has it */
	uint16_t bytes;	  /* 1, 2, 4, 8; of a string's address 8 */
	uint16_t flags;	  /* GRAFTRACE_FIELD_SIGNED, _STRING */
};

/* One for each place that the macro stands in; places of one name have one number. */
struct graftrace_kernel_event {
	const char *system;
	const char *name;
	const char *print; /* NULL: as any event */
	uint32_t number;   /* in records, by gt_sites_events_init; 0: not yet */
	uint32_t field_count;
	uint32_t wanted; /* what gt_sites_apply_events was told of it; 0: off */
	const struct graftrace_event_field *fields;
};

/* A row of __graftrace_events. */
struct graftrace_event_site {
	uint64_t address; /* of the nop */
	uint64_t on;	  /* where it leads, switched on */
	struct graftrace_kernel_event *event;
};

/* values: a word each field; of a string its address (NULL: it cannot be read). */
void graftrace_event_record(const struct graftrace_kernel_event *event, const uint64_t *values)
	__attribute__((cold, noinline));

#define GRAFTRACE_EVENT_FLAGS_I(type) \
	(GRAFTRACE_EVENT_IS_SIGNED_(type) ? GRAFTRACE_FIELD_SIGNED : 0)
#define GRAFTRACE_EVENT_FLAGS_P(type) 0
#define GRAFTRACE_EVENT_FLAGS_S(type) GRAFTRACE_FIELD_STRING

#define GRAFTRACE_EVENT_FIELD_(i, kind, type, name, value)                     \
	{                                                                      \
#name, #type, sizeof(type), GRAFTRACE_EVENT_FLAGS_##kind(type) \
	}
#define GRAFTRACE_EVENT_VALUE_(i, kind, type, name, value) (uint64_t)(type)(value)

#define GRAFTRACE_EVENT_SITE_(event, on)                                    \
	__asm__ goto("990: .byte 0x0f, 0x1f, 0x44, 0, 0\n"                  \
		     ".pushsection __graftrace_events, \"aw\", @progbits\n" \
		     ".balign 8\n"                                          \
		     ".quad 990b, %l[" #on "], %c0\n"                       \
		     ".popsection\n"                                        \
		     :                                                      \
		     : "i"(&(event))                                        \
		     :                                                      \
		     : on)

#define GRAFTRACE_EVENT_PRINTED(system_, name_, print_, ...)                                  \
	do {                                                                                  \
		__label__ gt_event_on;                                                        \
		static const struct graftrace_event_field gt_event_fields[] = {               \
			GRAFTRACE_EVENT_EACH_(GRAFTRACE_EVENT_FIELD_, GRAFTRACE_EVENT_COMMA_, \
					      __VA_ARGS__)                                    \
		};                                                                            \
		static struct graftrace_kernel_event gt_event = {                             \
			.system = #system_,                                                   \
			.name = #name_,                                                       \
			.print = print_,                                                      \
			.field_count = sizeof(gt_event_fields) / sizeof(gt_event_fields[0]),  \
			.fields = gt_event_fields                                             \
		};                                                                            \
		GRAFTRACE_EVENT_SITE_(gt_event, gt_event_on);                                 \
		break;                                                                        \
	gt_event_on:                                                                          \
		__attribute__((unused));                                                      \
		const uint64_t gt_event_values[] = { GRAFTRACE_EVENT_EACH_(                   \
			GRAFTRACE_EVENT_VALUE_, GRAFTRACE_EVENT_COMMA_, __VA_ARGS__) };       \
		graftrace_event_record(&gt_event, gt_event_values);                           \
	} while (0)

#define GRAFTRACE_EVENT(system_, name_, ...) GRAFTRACE_EVENT_PRINTED(system_, name_, 0, __VA_ARGS__)

/* An event without fields. */
#define GRAFTRACE_EVENT0(system_, name_)                                              \
	do {                                                                          \
		__label__ gt_event_on;                                                \
		static struct graftrace_kernel_event gt_event = { .system = #system_, \
								  .name = #name_ };   \
		GRAFTRACE_EVENT_SITE_(gt_event, gt_event_on);                         \
		break;                                                                \
	gt_event_on:                                                                  \
		__attribute__((unused));                                              \
		graftrace_event_record(&gt_event, 0);                                 \
	} while (0)

#endif
