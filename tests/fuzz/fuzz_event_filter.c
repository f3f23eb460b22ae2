/* SPDX-License-Identifier: MIT */
/* Any bytes as a filter's expression, and what is made of them, with bytes changed, evaluated: no access
 * outside, and an end. */
#include <stdlib.h>
#include <string.h>

#include "core/trace/event_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct gt_event_format format = {
		.field_count = 2,
		.fields = { { "a", "int", 4, .is_signed = true },
			    { "s", "const char *", 8, .is_string = true } },
	};
	const uint64_t values[] = { 3, 16 | 6ull << 16, 0x6f6c6c6568 };
	const struct graftrace_filter_event event = { values, 3, .comm = "name" };
	const size_t text = size > 4 ? size - 4 : 0;
	const uint64_t room = GT_EVENT_FILTER_ROOM(text);
	struct graftrace_filter *filter = malloc(room);
	struct gt_event_filter_error error;
	int64_t bytes =
		gt_event_filter_make(&format, (const char *)data, text, filter, room, &error);

	if (bytes > (int64_t)room ||
	    (bytes < 0) !=
		    (gt_event_filter_make(&format, (const char *)data, text, NULL, 0, &error) < 0))
		abort();
	if (bytes > 0) {
		filter = realloc(filter, (size_t)bytes); /* its end is guarded by the sanitizer */
		graftrace_filter_passes(filter, (uint64_t)bytes, &event);
		((uint8_t *)filter)[(data[text] | data[text + 1] << 8) % bytes] ^= data[text + 2];
		graftrace_filter_passes(filter, (uint64_t)bytes, &event);
	}
	free(filter);
	return 0;
}
