/* SPDX-License-Identifier: MIT */
/* Synthetic events of a session: see synthetics.h. */
#include "attach/agent/synthetics.h"
#include "core/trace/message.h"

#include <stdlib.h>
#include <string.h>

/* Removed ones keep their numbers. */
#define SYNTHETICS_MOST 1024

struct gt_synthetic_event *gt_synthetics_find(const struct gt_catalog *catalog, const char *name)
{
	for (uint32_t i = 0; i < catalog->synthetic_count; i++)
		if (!catalog->synthetics[i]->removed &&
		    strcmp(catalog->synthetics[i]->definition.format.name, name) == 0)
			return catalog->synthetics[i];
	return NULL;
}

static int put(struct gt_catalog *catalog, struct gt_synthetic_event *made,
	       struct gt_message *message)
{
	struct gt_synthetic_event **grown;

	if (catalog->synthetic_count == SYNTHETICS_MOST)
		return gt_fail(message, GT_ENOSPC, "there are too many synthetic events, %u",
			       SYNTHETICS_MOST);
	grown = realloc(catalog->synthetics,
			(catalog->synthetic_count + 1) * sizeof(struct gt_synthetic_event *));
	if (grown == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for a synthetic event");
	catalog->synthetics = grown;
	made->definition.format.number = catalog->next_event++;
	grown[catalog->synthetic_count++] = made;
	return 0;
}

int gt_synthetics_add(struct gt_catalog *catalog, const char *text, size_t bytes,
		      struct gt_probe_error *error, struct gt_message *message)
{
	struct gt_synthetic_event *made = calloc(1, sizeof(*made));
	int result;

	if (made == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for a synthetic event");
	result = gt_synthetic_parse(text, bytes, &made->definition, error);
	if (!result && gt_synthetics_find(catalog, made->definition.format.name) != NULL) {
		result = GT_EEXIST;
		*error = (struct gt_probe_error){ "Event already exists", 0 };
	}
	if (result)
		gt_fail(message, result, "%s", error->text);
	else
		result = put(catalog, made, message);
	if (result)
		free(made);
	return result;
}

int gt_synthetics_event(const struct gt_catalog *catalog, uint32_t number,
			struct gt_event_format *event)
{
	for (uint32_t i = 0; i < catalog->synthetic_count; i++)
		if (catalog->synthetics[i]->definition.format.number == number) {
			*event = catalog->synthetics[i]->definition.format;
			return 0;
		}
	return GT_ENOENT;
}

void gt_synthetics_fini(struct gt_catalog *catalog)
{
	for (uint32_t i = 0; i < catalog->synthetic_count; i++)
		free(catalog->synthetics[i]);
	free(catalog->synthetics);
}
