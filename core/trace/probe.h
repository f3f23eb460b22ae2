/* SPDX-License-Identifier: MIT */
/*
 * Dynamic probes as text: one line of Linux's kprobe_events, uprobe_events and dynamic_events
 * (Documentation/trace/kprobetrace.rst, uprobetracer.rst; kernel/trace/trace_probe.c), parsed into what
 * the recorder fetches, and printed again. Freestanding; the text is anybody's.
 *
 *	p[:[GRP/][EVENT]] PATH:OFFSET[(REF)][%return] [FETCHARGS]	in a program
 *	r[:[GRP/][EVENT]] PATH:OFFSET [FETCHARGS]
 *	p[:[GRP/][EVENT]] [MOD:]SYM[+OFFS][%return]|ADDRESS [FETCHARGS]	in a kernel, or in the program itself
 *	r[MAXACTIVE][:[GRP/][EVENT]] [MOD:]SYM[+0] [FETCHARGS]
 *	-:[GRP/][EVENT]
 */
#ifndef GT_CORE_TRACE_PROBE_H
#define GT_CORE_TRACE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/agent.h>
#include <graftrace/error.h>
#include "core/trace/event.h"

#define GT_PROBE_NAME_MAX 63 /* of a group, an event, an argument: bytes */

/* Which probes a text may define. */
enum gt_probe_kinds {
	GT_PROBES_KERNEL = 1,  /* kprobe_events */
	GT_PROBES_PROGRAM = 2, /* uprobe_events */
	GT_PROBES_ANY = 3,     /* dynamic_events */
};

struct gt_probe_argument {
	char name[GT_PROBE_NAME_MAX + 1];
	const char *text; /* in the parsed text: the fetch argument with its type … */
	size_t text_bytes;
	struct graftrace_probe_argument fetch;
	uint8_t show; /* enum gt_event_show */
	bool is_user; /* its last address is one of user space: u, ustring */
	/* What `fetch.value` is still to be told by who knows the addresses. */
	enum {
		GT_PROBE_AS_IT_IS = 0,
		GT_PROBE_FILE_OFFSET, /* + the address of the file's first byte */
		GT_PROBE_SYMBOL,      /* + the address of `symbol`: in a kernel */
		GT_PROBE_OWN_ADDRESS, /* the address of the probe: %ip */
		GT_PROBE_LITERAL,     /* the address of `symbol`, as a text with a zero byte */
	} base;
	const char *symbol; /* in the parsed text */
	size_t symbol_bytes;
};

struct gt_probe_definition {
	bool removes; /* "-:": group and name, either may be empty, are all there is */
	bool returns;
	bool has_max;
	uint32_t max_active;
	char group[GT_PROBE_NAME_MAX + 1]; /* as given, or "uprobes", "kprobes" */
	char name[GT_PROBE_NAME_MAX + 1];  /* … or made of the place */
	bool is_named;			   /* the name was given */
	/* The place: PATH:OFFSET has a path; others a symbol, or neither but an address. In the parsed
	 * text. */
	const char *path;
	size_t path_bytes;
	const char *symbol;
	size_t symbol_bytes;
	uint64_t offset;    /* from the symbol, in the file, or the address */
	uint64_t reference; /* offset in the file of a counter of who listens; 0: there is none */
	size_t place_at;    /* where the place begins in the text */
	size_t offset_at;   /* … and its offset */
	uint32_t argument_count;
	struct gt_probe_argument arguments[GRAFTRACE_PROBE_FIELDS];
	uint16_t step_count;
	int64_t steps[GRAFTRACE_PROBE_STEPS]; /* of their fetches */
};

/* Fields that a probe's record has before its arguments: __probe_ip; of a return __probe_func and
 * __probe_ret_ip. */
#define GT_PROBE_HIDDEN(returns) ((returns) ? 2u : 1u)
#define GT_PROBE_ARGUMENTS_MAX	 (GRAFTRACE_PROBE_FIELDS - 2)

/* What is wrong, in Linux's words, and where. */
struct gt_probe_error {
	const char *text;
	size_t at;
};

/* Parses one line of `bytes` bytes, which must live as long as the definition is used. GT_EINVAL: *error says
 * what is wrong. */
int gt_probe_parse(const char *text, size_t bytes, enum gt_probe_kinds kinds,
		   struct gt_probe_definition *probe, struct gt_probe_error *error);

/* The line as uprobe_events shows it, without its end: at most size - 1 bytes. path, offset: where the place has
 * been found. */
size_t gt_probe_print(const struct gt_probe_definition *probe, const char *path, uint64_t offset,
		      char *out, size_t size);

/* The same as kprobe_events shows it: SYM+OFFS, or an address. */
size_t gt_probe_print_symbol(const struct gt_probe_definition *probe, char *out, size_t size);

/* Whether two definitions may be one event, and are not the same; at: whether they have one place. GT_EINVAL,
 * GT_EEXIST with the error, which stands in the text of `added`. */
int gt_probe_compare(const struct gt_probe_definition *known,
		     const struct gt_probe_definition *added, bool at, const char *text,
		     struct gt_probe_error *error);

/* What the field of an argument is. Its name is the definition's. */
void gt_probe_argument_field(const struct gt_probe_argument *argument,
			     struct gt_event_field *field);

/* Texts of errors that only who sets the probe can tell; the caller's gt_probe_error.text. */
#pragma GCC visibility push(hidden)
extern const char gt_probe_error_file[], gt_probe_error_regular[], gt_probe_error_address[],
	gt_probe_error_offset[], gt_probe_error_boundary[], gt_probe_error_return[],
	gt_probe_error_exists[], gt_probe_error_same[], gt_probe_error_differs[],
	gt_probe_error_type[], gt_probe_error_register[];
#pragma GCC visibility pop

#endif
