/* SPDX-License-Identifier: MIT */
/*
 * What calls were called with and returned, where it was recorded: texts beside the boxes, found by a call's stack,
 * depth and start. The reader adds them; questions come when all are there and in order.
 */
#include <stdlib.h>
#include <string.h>
#include "export/page/page_private.h"

#define TEXT_MOST 200u /* bytes of each text */

/* As much of it as a tip shows; `out` is NULL: only its length, with the zero byte. */
static size_t put_text(char *out, const char *text)
{
	const size_t bytes = text != NULL ? strnlen(text, TEXT_MOST) : 0;

	if (out != NULL) {
		memcpy(out, text != NULL ? text : "", bytes);
		out[bytes] = '\0';
	}
	return bytes + 1;
}

int gt_page_add_values(struct gt_page *page, uint32_t lane, uint32_t depth, uint64_t clock,
		       const char *arguments, const char *result)
{
	struct gt_page_value made = {
		.at = gt_page_at(page, clock),
		.lane = lane,
		.depth = depth,
		.has_arguments = arguments != NULL,
		.has_result = result != NULL,
	};

	if (page->value_count == GT_PAGE_VALUES) {
		page->values_left_out++;
		return 0;
	}
	if (page->value_count == page->value_room) {
		const uint32_t room = page->value_room ? page->value_room * 2 : 1024;
		struct gt_page_value *values = realloc(page->values, room * sizeof(*values));

		if (values == NULL)
			return GT_ENOMEM;
		page->values = values;
		page->value_room = room;
	}
	made.texts = malloc(put_text(NULL, arguments) + put_text(NULL, result));
	if (made.texts == NULL)
		return GT_ENOMEM;
	put_text(made.texts + put_text(made.texts, arguments), result);
	page->values[page->value_count++] = made;
	return 0;
}

static int by_place(const void *left, const void *right)
{
	const struct gt_page_value *a = left, *b = right;

	if (a->lane != b->lane)
		return a->lane < b->lane ? -1 : 1;
	if (a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

void gt_page_sort_values(struct gt_page *page)
{
	if (page->value_count)
		qsort(page->values, page->value_count, sizeof(*page->values), by_place);
}

const struct gt_page_value *gt_page_find_values(const struct gt_page *page, uint32_t lane,
						uint32_t depth, uint64_t at)
{
	const struct gt_page_value wanted = { .at = at, .lane = lane, .depth = depth };

	return page->value_count ? bsearch(&wanted, page->values, page->value_count,
					   sizeof(*page->values), by_place)
				 : NULL;
}

const char *gt_page_arguments(const struct gt_page_value *value)
{
	return value->has_arguments ? value->texts : NULL;
}

const char *gt_page_result(const struct gt_page_value *value)
{
	return value->has_result ? value->texts + strlen(value->texts) + 1 : NULL;
}

void gt_page_forget_values(struct gt_page *page)
{
	for (uint32_t i = 0; i < page->value_count; i++)
		free(page->values[i].texts);
	free(page->values);
}
