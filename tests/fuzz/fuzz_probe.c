/* SPDX-License-Identifier: MIT */
/* Lines of dynamic_events. What is parsed is printed, and that is parsed again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gt_probe_definition probe;
	static char line[4096];
	struct gt_probe_error error;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	for (int kinds = GT_PROBES_KERNEL; kinds <= GT_PROBES_ANY; kinds++) {
		if (gt_probe_parse(text, size, (enum gt_probe_kinds)kinds, &probe, &error) != 0) {
			if (error.at > size)
				abort();
			continue;
		}
		for (uint32_t i = 0; i < probe.argument_count; i++)
			if (probe.arguments[i].fetch.first_step +
				    probe.arguments[i].fetch.step_count >
			    probe.step_count)
				abort();
		gt_probe_print(&probe, "/x", probe.offset, line, sizeof(line));
	}
	free(text);
	return 0;
}
