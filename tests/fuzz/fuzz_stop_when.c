/* SPDX-License-Identifier: MIT */
/* Any text as a condition of --stop-when: parsed or refused with a message, never read past its
 * end. */
#include <stdlib.h>
#include <string.h>

#include "cli/stop_when.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_stop_condition condition;
	struct gt_message message = { "" };
	struct gt_trigger trigger;
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	if (gt_stop_parse(text, &condition, &message) == 0) {
		if (gt_stop_trigger(&condition, &trigger) && trigger.glob == NULL)
			abort();
	} else if (message.text[0] == '\0' || condition.function != NULL) {
		abort();
	}
	gt_stop_condition_fini(&condition);
	free(text);
	return 0;
}
