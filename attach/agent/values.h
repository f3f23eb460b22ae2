/* SPDX-License-Identifier: MIT */
/*
 * Arguments and results of traced functions: whose are asked for, what is known of them, and the stubs
 * that record them. A function whose values are asked for has one more stub before its entry, and one
 * before its return is recorded; others have nothing.
 */
#ifndef GT_ATTACH_VALUES_H
#define GT_ATTACH_VALUES_H

#include <stdbool.h>
#include <stdint.h>
#include <graftrace/error.h>
#include "attach/object/signatures.h"

struct gt_catalog_file;
struct gt_event_format;
struct gt_patcher;
struct gt_plan_entry;
struct gt_selection;
struct gt_sink;
struct gt_tracee;
struct gt_tracee_object;

/* What is asked for. */
struct gt_values;

/* Words, ended by NULL:
 *	"a"	arguments of all functions that something is known of
 *	"r"	results of all
 *	"AFUNC[@SPEC]", "RFUNC[@SPEC]"	of these, FUNC being a glob; several with ';' between them
 * NULL: none. GT_EINVAL, GT_ENOMEM. */
int gt_values_new(const char *const *words, struct gt_values **values, struct gt_message *message);
void gt_values_free(struct gt_values *values);

/* Bits of enum gt_function_role: the values of a function that are asked for, and known. */
uint8_t gt_values_role(const struct gt_values *values, struct gt_catalog_file *file, uint32_t index,
		       const char *plain, const char *shown);

/* Makes the stubs for the values of function `index` that `role` names. *call, *jump: the addresses that the function's
 * own stub has to call instead of its entry, and to jump to instead of its exit; 0: that one stays. entry: offset of its
 * entry in the hot text. Errors as in patcher.h. */
int gt_values_put(struct gt_patcher *patcher, uint32_t index, const struct gt_plan_entry *plan,
		  uint16_t role, uint32_t entry, uint64_t *call, uint64_t *jump);

/* Tells the agent of the object's read-only memory, if nothing can unload the object. */
int gt_values_tell_constants(struct gt_tracee *tracee, const struct gt_tracee_object *object);

/* Gives the sink (NULL: does nothing), once, the descriptions of the values that are recorded of functions. Returns its
 * error. */
int gt_values_tell(const struct gt_tracee *tracee, struct gt_tracee_object *object,
		   const struct gt_sink *sink);

/* Fills in *format with the description of the values of function `index`; number: GRAFTRACE_VALUES | …. GT_ENOENT:
 * they are not known. */
int gt_values_describe(const struct gt_catalog_file *file, uint32_t index, uint32_t number,
		       struct gt_event_format *format);

/* Bytes of a region that the stubs of one function take at most. */
#define GT_VALUES_EACH 640u

/* What a file remembers of it. */
struct gt_file_values;
void gt_file_values_free(struct gt_file_values *values, uint32_t function_count);

#endif
