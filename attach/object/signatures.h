/* SPDX-License-Identifier: MIT */
/*
 * What a function is called with and what it returns: where each value is at its entry or at its
 * return, of which type, by which name. From debug information (which is hostile), from prototypes of
 * the C library's functions (prototypes.c), or from a specification in uftrace's words. Pure
 * computation but for the reading of debug files; see lines.h for who may call.
 */
#ifndef GT_ATTACH_SIGNATURES_H
#define GT_ATTACH_SIGNATURES_H

#include <stdbool.h>
#include <stdint.h>
#include <graftrace/agent.h>
#include <graftrace/error.h>

struct gt_lines;

#define GT_SIGNATURE_STEPS 2

struct gt_signature_value {
	char *name;   /* "": it has none */
	char *type;   /* as C has it; an enumeration with its names, see core/trace/event.h */
	uint8_t kind; /* enum graftrace_value_kind */
	bool is_float;
	/* As the agent fetches it, `first_step` left out. */
	struct graftrace_probe_argument place;
	int64_t steps[GT_SIGNATURE_STEPS];
};

struct gt_signature {
	uint32_t argument_count;
	uint32_t result_count; /* 0: it returns nothing, or nobody knows */
	/* The arguments, then the result: one value, or a structure's two words. */
	struct gt_signature_value values[];
};

/* Of the function that begins at an address, by its debug information; name: the symbol's. NULL: it
 * has none, or there is no memory. */
struct gt_signature *gt_signature_of_lines(struct gt_lines *lines, uint64_t address,
					   const char *name);

/* Of a function of the C library, by its name. NULL: it is not known. */
struct gt_signature *gt_signature_of_prototype(const char *name);

/*
 * By a specification: "arg1,arg2/s,fparg1/32,arg3%rdx,arg7%stack+8,retval/i32" (uftrace-record(1)).
 * known: what is known of the function besides, for names of arguments; may be NULL. GT_EINVAL: the
 * message says at which word.
 */
int gt_signature_of_spec(const char *spec, const struct gt_signature *known,
			 struct gt_signature **signature, struct gt_message *message);

void gt_signature_free(struct gt_signature *signature);

/* ---- for who makes one ---- */

/* NULL: no memory. All values are zero, their strings NULL. */
struct gt_signature *gt_signature_new(uint32_t arguments, uint32_t results);

/* Registers that pass values, in their order. */
struct gt_signature_cursor {
	uint32_t general; /* that are used */
	uint32_t vector;
	uint32_t stack; /* bytes of the stack behind the return address that are used */
};

/* The place of the next value: `bytes` of a general register (is_float: of a vector register), or of the
 * stack where there is none left. */
struct graftrace_probe_argument gt_signature_pass(struct gt_signature_cursor *cursor,
						  uint32_t bytes, bool is_float);

/* Number of a register by its name ("rdi", "xmm0"); 16 and more are vector registers. -1: none. */
int gt_signature_register(const char *name, uint32_t length);

#endif
