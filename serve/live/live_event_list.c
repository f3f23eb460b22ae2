/* SPDX-License-Identifier: MIT */
/* See live_event_list.h. */
#include "serve/live/live_event_list.h"

#include <stdlib.h>
#include <string.h>

#include "core/trace/hash.h"

#define SLOTS 8192u

static uint32_t hash_of(const struct gt_event_format *event)
{
	return gt_hash_text(gt_hash_text(GT_HASH_BEGIN, event->system), event->name);
}

static bool is_at(const struct gt_live_event_list *list, size_t at,
		  const struct gt_event_format *event)
{
	return strcmp(list->formats[at].name, event->name) == 0 &&
	       strcmp(list->formats[at].system, event->system) == 0;
}

/* The event's index; list->count: it is new. *slot: where its index is kept, SLOTS: nowhere, as half of
 * the slots are taken. */
static size_t find(const struct gt_live_event_list *list, const struct gt_event_format *event,
		   uint32_t *slot)
{
	uint32_t at = hash_of(event) % SLOTS;

	for (; list->slots[at] != 0; at = (at + 1) % SLOTS)
		if (is_at(list, list->slots[at] - 1, event))
			return list->slots[at] - 1;
	*slot = list->count < SLOTS / 2 ? at : SLOTS;
	for (size_t i = SLOTS / 2; i < list->count; i++)
		if (is_at(list, i, event))
			return i;
	return list->count;
}

static bool has_room(struct gt_live_event_list *list)
{
	const size_t room = list->room ? list->room * 2 : 32;
	void *formats;

	if (list->count < list->room)
		return true;
	formats = realloc(list->formats, room * sizeof(*list->formats));
	if (formats == NULL)
		return false;
	list->formats = formats;
	list->room = room;
	return true;
}

static int take(void *data, const struct gt_event_format *event, bool enabled, const char *reason)
{
	struct gt_live_event_list *list = data;
	uint32_t slot = SLOTS;

	(void)enabled;
	(void)reason;
	if (find(list, event, &slot) < list->count)
		return 0;
	list->no_memory = !has_room(list);
	if (list->no_memory)
		return 1;
	list->formats[list->count++] = *event;
	if (slot < SLOTS)
		list->slots[slot] = (uint32_t)list->count;
	return 0;
}

/* The session has other events than those of the list, which begins anew. */
static void forget(void *data)
{
	struct gt_live_event_list *list = data;

	list->count = 0;
	list->no_memory = false;
	memset(list->slots, 0, SLOTS * sizeof(*list->slots));
}

int gt_live_event_list_init(struct gt_live *live)
{
	struct gt_live_event_list *list = calloc(1, sizeof(*list));

	if (list != NULL)
		list->slots = calloc(SLOTS, sizeof(*list->slots));
	if (list == NULL || list->slots == NULL) {
		free(list);
		return GT_ENOMEM;
	}
	pthread_mutex_init(&list->lock, NULL);
	live->event_list = list;
	return 0;
}

void gt_live_event_list_fini(struct gt_live *live)
{
	struct gt_live_event_list *list = live->event_list;

	if (list == NULL)
		return;
	pthread_mutex_destroy(&list->lock);
	free(list->formats);
	free(list->slots);
	free(list);
	live->event_list = NULL;
}

static struct gt_live_event_list *list_of(struct gt_live *live)
{
	return live->top != NULL ? live->top->event_list : live->event_list;
}

const struct gt_live_event_list *gt_live_event_list_lock(struct gt_live *live)
{
	struct gt_live_event_list *list = list_of(live);

	pthread_mutex_lock(&list->lock);
	if (list->no_memory)
		list->version = 0; /* collect them again */
	gt_session_events_since(live->session, &list->version, forget, take, list);
	return list;
}

void gt_live_event_list_unlock(struct gt_live *live)
{
	pthread_mutex_unlock(&list_of(live)->lock);
}
