/* SPDX-License-Identifier: MIT */
/*
 * The static probes of an object: what its notes say (.note.stapsdt, as <sys/sdt.h>, SystemTap and
 * bpftrace have them; .note.graftrace for the names and types that <graftrace/event.h> adds). Part of
 * an object: hostile as all of it, read once at the first use.
 */
#ifndef GT_ATTACH_PROBES_H
#define GT_ATTACH_PROBES_H

#include <graftrace/agent.h>
#include "attach/object/object.h"

/* A field of the event: one argument. */
struct gt_probe_field {
	const char *name; /* "arg1" … where nothing names it */
	const char *type; /* C's, "u64" … where nothing says it */
	bool is_float;
	uint8_t show; /* as gt_event_field's */
};

/* One place in the code. An event may have several. */
struct gt_probe {
	const char *system; /* usdt_PROVIDER or, with names and types, PROVIDER */
	const char *name;
	const char *text;   /* the arguments as the note has them */
	uint64_t address;   /* of the nop, the object's */
	uint64_t semaphore; /* 16 bits that are not zero while somebody listens; 0: there is none */
	uint16_t flags;	    /* GRAFTRACE_PROBE_… */
	uint16_t step_count;
	const int64_t *steps;	 /* [step_count] of its arguments */
	uint32_t argument_count; /* more than GRAFTRACE_PROBE_FIELDS are left out */
	/* Places that are memory without a register have the object's address. */
	struct graftrace_probe_argument arguments[GRAFTRACE_PROBE_FIELDS];
	bool is_relative[GRAFTRACE_PROBE_FIELDS]; /* … and so need the bias */
	/* Constants that are offsets in these texts, which stand behind the probe. */
	bool is_literal[GRAFTRACE_PROBE_FIELDS];
	uint32_t literal_bytes;
	const char *literals;
	struct gt_probe_field fields[GRAFTRACE_PROBE_FIELDS];
};

/* All of them, as the notes have them; they belong to the object. *count 0: there is none, or they
 * cannot be read. */
const struct gt_probe *gt_object_probes(struct gt_object *object, uint32_t *count);

#endif
