/* SPDX-License-Identifier: MIT */
/* Any bytes as a histogram's text, parsed, shown and parsed again: no access outside, and the same histogram. */
#include <stdlib.h>
#include <string.h>

#include "core/trace/hist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct gt_event_format format = {
		.field_count = 3,
		.fields = { { "count", "int", 4, .is_signed = true },
			    { "what", "const char *", 8, .is_string = true },
			    { "small", "unsigned char", 1, .is_signed = false } },
	};
	static struct gt_hist hist, copy, again;
	static uint64_t description[GT_HIST_DESCRIPTION_BYTES / 8];
	struct graftrace_hist_shape shape;
	struct gt_hist_error error;
	char text[2 * GT_HIST_BYTES];

	gt_hist_find_filter((const char *)data, size);
	if (gt_hist_parse((const char *)data, size, &format, &hist, &error) != 0)
		return 0;
	gt_hist_duplicate(&hist, &copy);
	memset(&hist, 0xa5, sizeof(hist));
	gt_hist_put(&copy, text, sizeof(text));
	gt_hist_describe(&copy, &(struct gt_clock){ 0 }, 0, (struct graftrace_hist *)description);
	if (!graftrace_hist_shape_of((struct graftrace_hist *)description, &shape))
		abort();
	if (gt_hist_parse(text, strlen(text), &format, &again, &error) == 0 &&
	    (!gt_hist_is_same(&copy, &again) || again.bits != copy.bits))
		abort();
	return 0;
}
