/* SPDX-License-Identifier: MIT */
/* Any bytes as the line of a synthetic event, parsed, shown and parsed again: no access outside, and the same event. */
#include <stdlib.h>
#include <string.h>

#include "core/trace/synthetic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gt_synthetic made, again;
	struct gt_probe_error error;
	char line[2 * GT_SYNTHETIC_BYTES], shown[2 * GT_SYNTHETIC_BYTES];

	if (gt_synthetic_parse((const char *)data, size, &made, &error) != 0) {
		if (error.at > size)
			abort();
		return 0;
	}
	gt_synthetic_put(&made.format, line, sizeof(line));
	if (strlen(line) >= GT_SYNTHETIC_BYTES)
		return 0;
	/* An array is shown with its type, and is asked for with its name. */
	if (strchr(line, '['))
		return 0;
	if (gt_synthetic_parse(line, strlen(line), &again, &error) != 0)
		abort();
	gt_synthetic_put(&again.format, shown, sizeof(shown));
	if (strcmp(line, shown) != 0)
		abort();
	return 0;
}
