/* SPDX-License-Identifier: MIT */
/*
 * The list that `graftrace functions` prints: text, CSV or JSON, object by object, each with a
 * summary.
 */
#ifndef GT_CLI_FUNCTION_LIST_H
#define GT_CLI_FUNCTION_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/plan/plan.h"

enum gt_list_format {
	GT_LIST_TEXT,
	GT_LIST_CSV,
	GT_LIST_JSON,
};

struct gt_list_counts {
	uint32_t functions; /* without those that are counted apart: */
	uint32_t parts;	    /* of other functions */
	uint32_t start;	    /* of what runs before or after the program proper */
	uint32_t linkage;   /* stubs */
	uint32_t ways[GT_PLAN_BREAKPOINT + 1];
	uint32_t prepared;
	uint32_t entry_only;
};

struct gt_function_list {
	enum gt_list_format format;
	bool demangle;
	uint32_t objects; /* listed so far */
	bool first;	  /* the next function is the first of its object */
	struct gt_list_counts total;
	struct gt_list_counts counts; /* of the object under way */
};

/* In this order: begin, for each object (object, its functions, object_end), end. */
void gt_function_list_begin(const struct gt_function_list *list);
void gt_function_list_object(struct gt_function_list *list, struct gt_object *object);
void gt_function_list_add(struct gt_function_list *list, struct gt_object *object,
			  const struct gt_plan_entry *entry);
void gt_function_list_object_end(struct gt_function_list *list);
void gt_function_list_end(const struct gt_function_list *list);

#endif
