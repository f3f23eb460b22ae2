/* SPDX-License-Identifier: MIT */
/* What the files of events' filters show: see filter_texts.h. */
#include "core/trace/filter_texts.h"
#include "core/trace/message.h"
#include "core/trace/strings.h"

/* Of what stands below a filter that was refused. */
#define ERROR_BYTES 256

static struct gt_filter_text *find(const struct gt_filter_texts *texts, const char *word)
{
	for (size_t i = 0; i < texts->count; i++)
		if (gt_string_is(texts->entries[i].word, word))
			return &texts->entries[i];
	return NULL;
}

static struct gt_filter_text *add(struct gt_filter_texts *texts, const char *word)
{
	const size_t each = sizeof(*texts->entries);
	char *copy = gt_string_keep(&texts->memory, word, gt_string_bytes(word));
	struct gt_filter_text *grown =
		copy != NULL ? texts->memory.resize(texts->memory.data, texts->entries,
						    texts->count * each, (texts->count + 1) * each)
			     : NULL;

	if (grown == NULL) {
		gt_string_drop(&texts->memory, copy);
		return NULL;
	}
	texts->entries = grown;
	grown[texts->count] = (struct gt_filter_text){ copy, NULL };
	return &grown[texts->count++];
}

/* As append_filter_err of trace_events_filter.c: its caret is one column further right than
 * error_log's. */
static char *text_of(const struct gt_filter_texts *texts, const char *filter, size_t bytes,
		     const struct gt_event_filter_error *failed)
{
	size_t place = failed != NULL ? failed->at < bytes ? failed->at : bytes : 0;
	const size_t room = bytes + place + ERROR_BYTES;
	char *text = gt_memory_get(&texts->memory, room), *kept;

	if (text == NULL)
		return NULL;
	place += place > 0;
	if (failed == NULL)
		gt_format(text, room, "%.*s\n", (int)bytes, filter);
	else if (failed->text != NULL)
		gt_format(text, room, "%.*s\n%*s\nparse_error: %s\n\n", (int)bytes, filter,
			  (int)place, "^", failed->text);
	else
		gt_format(text, room, "%.*s\nError: (0)\n\n", (int)bytes, filter);
	kept = gt_string_keep(&texts->memory, text, gt_string_bytes(text));
	gt_memory_put(&texts->memory, text, room);
	return kept;
}

int gt_filter_texts_set(struct gt_filter_texts *texts, const char *word, const char *filter,
			size_t bytes, const struct gt_event_filter_error *failed)
{
	struct gt_filter_text *entry = find(texts, word);
	char *text = NULL;

	if (bytes > 0 || failed != NULL) {
		text = text_of(texts, filter, bytes, failed);
		entry = text != NULL && entry == NULL ? add(texts, word) : entry;
		if (text == NULL || entry == NULL) {
			gt_string_drop(&texts->memory, text);
			return GT_ENOMEM;
		}
	}
	if (entry != NULL) {
		gt_string_drop(&texts->memory, entry->text);
		entry->text = text;
	}
	return 0;
}

size_t gt_filter_texts_read(const struct gt_filter_texts *texts, const char *word, uint64_t offset,
			    char *buffer, size_t bytes)
{
	const struct gt_filter_text *entry = find(texts, word);
	const size_t length =
		entry != NULL && entry->text != NULL ? gt_string_bytes(entry->text) : 0;
	size_t given = offset < length ? length - (size_t)offset : 0;

	given = given < bytes ? given : bytes;
	if (given > 0)
		__builtin_memcpy(buffer, entry->text + offset, given);
	return given;
}

void gt_filter_texts_fini(struct gt_filter_texts *texts)
{
	for (size_t i = 0; i < texts->count; i++) {
		gt_string_drop(&texts->memory, texts->entries[i].word);
		gt_string_drop(&texts->memory, texts->entries[i].text);
	}
	gt_memory_put(&texts->memory, texts->entries, texts->count * sizeof(*texts->entries));
	texts->entries = NULL;
	texts->count = 0;
}
