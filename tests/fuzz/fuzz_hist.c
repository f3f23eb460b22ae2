/* SPDX-License-Identifier: MIT */
/* Any bytes as a histogram's text, parsed, shown and parsed again: no access outside, and the same histogram. */
#include <stdlib.h>
#include <string.h>

#include "core/trace/hist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct gt_event_format format = {
	.system = "shop",
	.name = "sold",
	.field_count = 3,
	.fields = { { "count", "int", 4, .is_signed = true },
		    { "what", "const char *", 8, .is_string = true },
		    { "small", "unsigned char", 1, .is_signed = false } },
};

/* Any event has these fields, and a histogram with two variables. */
static uint32_t variable(void *data, const char *system, const char *event, const char *name,
			 struct gt_hist_found *found)
{
	(void)system;
	(void)event;
	return gt_hist_find_variable(data, name, 7, found);
}

static const struct gt_event_format *event(void *data, const char *system, const char *name)
{
	(void)data;
	(void)system;
	return *name == 'n' ? NULL : &format;
}

static bool is_alike(void *data, const char *system, const char *name, const struct gt_hist *hist)
{
	(void)system;
	(void)name;
	return gt_hist_has_same_keys(data, hist);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char other_text[] = "keys=count:ts=common_timestamp,w=what";
	static struct gt_hist hist, copy, again, other;
	static uint64_t description[GT_HIST_DESCRIPTION_BYTES / 8];
	const struct gt_hist_world world = { variable, event, is_alike, &other, true };
	struct graftrace_hist_shape shape;
	struct gt_hist_error error;
	char text[GT_HIST_SHOWN_BYTES];

	gt_hist_find_filter((const char *)data, size);
	if (gt_hist_parse(other_text, strlen(other_text), &format, NULL, &other, &error) != 0)
		abort();
	if (gt_hist_parse((const char *)data, size, &format, &world, &hist, &error) != 0)
		return 0;
	gt_hist_duplicate(&hist, &copy);
	memset(&hist, 0xa5, sizeof(hist));
	gt_hist_put(&copy, text, sizeof(text));
	if (gt_hist_describe(&copy, &(struct gt_clock){ 0 }, 0,
			     (struct graftrace_hist *)description) > sizeof(description))
		abort();
	if (!graftrace_hist_shape_of((struct graftrace_hist *)description, &shape) &&
	    ((struct graftrace_hist *)description)->key_words <= GRAFTRACE_HIST_KEY_WORDS)
		abort();
	if (gt_hist_parse(text, strlen(text), &format, &world, &again, &error) == 0 &&
	    (!gt_hist_is_same(&copy, &again) || again.bits != copy.bits))
		abort();
	return 0;
}
