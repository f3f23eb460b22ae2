/* SPDX-License-Identifier: MIT */
/* Any text as a value of the command line: parsed or refused, never read past its end. */
#include <stdlib.h>
#include <string.h>

#include "cli/values.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_message message;
	uint64_t value;
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	if (gt_value_size(text, &value, &message) == 0 && value == 0)
		abort();
	gt_value_time(text, 1000, &value, &message);
	if (gt_value_number(text, 3, 7, &value, &message) == 0 && (value < 3 || value > 7))
		abort();
	free(text);
	return 0;
}
