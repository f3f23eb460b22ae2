/* SPDX-License-Identifier: MIT */
/* The text of all histograms of an event: see hist_text.h. */
#include "core/trace/hist_text.h"
#include "core/trace/message.h"

#define ROOM_BYTES 16384u /* at first; it doubles */

static bool put(struct gt_hist_text *text, const char *bytes, size_t count)
{
	size_t room = text->room ? text->room : ROOM_BYTES;
	char *grown = text->bytes;

	while (room - text->count < count)
		room *= 2;
	if (room != text->room)
		grown = text->memory.resize(text->memory.data, text->bytes, text->room, room);
	if (grown == NULL)
		return false;
	text->bytes = grown;
	text->room = room;
	__builtin_memcpy(grown + text->count, bytes, count);
	text->count += count;
	return true;
}

static bool put_text(struct gt_hist_text *text, const char *words)
{
	size_t count = 0;

	while (words[count] != '\0')
		count++;
	return put(text, words, count);
}

static bool put_head(struct gt_hist_text *text, const struct gt_hist_copy *copy)
{
	char shown[GT_HIST_SHOWN_BYTES];

	gt_hist_put(copy->hist, shown, sizeof(shown));
	return put_text(text, text->count == 0 ? "" : "\n\n") &&
	       put_text(text, "# event histogram\n#\n# trigger info: hist:") &&
	       put_text(text, shown) &&
	       (copy->filter == NULL || (put_text(text, " if ") && put_text(text, copy->filter))) &&
	       put_text(text, copy->is_paused ? " [paused]\n#\n\n" : " [active]\n#\n\n");
}

int gt_hist_text_add(struct gt_hist_text *text, const struct gt_hist_copy *copy,
		     const struct gt_hist_names *names)
{
	char line[GT_HIST_LINE_BYTES];
	bool whole = put_head(text, copy);

	for (uint32_t i = 0; whole && i < copy->view.count; i++)
		whole = put(text, line, gt_hist_put_entry(&copy->view, i, names, line));
	whole = whole && put(text, line, gt_hist_put_snapshot(&copy->view, names, line));
	whole = whole &&
		put(text, line,
		    gt_format(line, sizeof(line),
			      "\nTotals:\n    Hits: %llu\n    Entries: %u\n    Dropped: %llu\n",
			      (unsigned long long)copy->view.hits, copy->view.count,
			      (unsigned long long)copy->view.drops));
	return whole ? 0 : GT_ENOMEM;
}

size_t gt_hist_text_read(const struct gt_hist_text *text, uint64_t offset, char *buffer,
			 size_t bytes)
{
	size_t left = offset < text->count ? text->count - (size_t)offset : 0;

	left = left < bytes ? left : bytes;
	if (left > 0)
		__builtin_memcpy(buffer, text->bytes + offset, left);
	return left;
}

void gt_hist_text_fini(struct gt_hist_text *text)
{
	gt_memory_put(&text->memory, text->bytes, text->room);
	*text = (struct gt_hist_text){ .memory = text->memory };
}
