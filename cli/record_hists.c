/* SPDX-License-Identifier: MIT */
/* graftrace record: the text of each event's histograms goes into the file, as its control file shows it. */
#define _GNU_SOURCE /* open_memstream */
#include "cli/record_hists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

/* Reads the text of the event's histograms; it follows the word and a line feed in *text. False: no memory. */
static bool read_text(struct gt_control_target *control, const char *word, char **text,
		      size_t *bytes)
{
	const struct gt_control_ops *ops = control->ops;
	struct gt_message message;
	char buffer[65536];
	uint64_t offset = 0;
	void *hists = NULL;
	size_t given;
	FILE *out = open_memstream(text, bytes);
	bool whole;

	if (out == NULL)
		return false;
	fprintf(out, "%s\n", word);
	whole = ops->event_hists_open(control, word, &hists, &message) == 0;
	while (whole && (given = ops->event_hists_read(control, hists, offset, buffer,
						       sizeof(buffer))) > 0) {
		fwrite(buffer, 1, given, out);
		offset += given;
	}
	if (hists != NULL)
		ops->event_hists_close(control, hists);
	whole &= !ferror(out);
	return fclose(out) == 0 && whole;
}

void gt_record_keep_hists(struct gt_control_target *control, struct gt_file_writer *writer)
{
	const struct gt_control_ops *ops = control->ops;
	struct gt_control_event event;
	char word[GT_CONTROL_WORD_BYTES];

	for (uint64_t i = 0; ops->event(control, i, &event) == 0; i++) {
		char *text = NULL;
		size_t bytes = 0;

		if (!event.soft)
			continue;
		snprintf(word, sizeof(word), "%s:%s", event.format.system, event.format.name);
		if (!read_text(control, word, &text, &bytes))
			gt_complain("record", "no memory for the histograms of %s", word);
		else if (bytes > GT_FILE_HISTS_BYTES)
			gt_complain("record",
				    "the histograms of %s are too large to be kept: %zu bytes",
				    word, bytes);
		else if (bytes > strlen(word) + 1)
			gt_file_writer_hists(writer, text);
		free(text);
	}
}
