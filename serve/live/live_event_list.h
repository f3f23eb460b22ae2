/* SPDX-License-Identifier: MIT */
/*
 * The events that a session knows, each once however many places it has. The list is collected again
 * only when the session has other events than before; whether one is on is not kept, since an event
 * of the program may switch it. Any thread.
 */
#ifndef GT_SERVE_LIVE_EVENT_LIST_H
#define GT_SERVE_LIVE_EVENT_LIST_H

#include "serve/live/live_private.h"

struct gt_live_event_list {
	struct gt_event_format *formats; /* of each event's first place */
	size_t count;
	bool no_memory; /* some are missing */
	/* private */
	size_t room;
	uint32_t *slots;  /* by the hash of system and name, an event's index + 1; 0: none */
	uint64_t version; /* of gt_session_events_since() */
	pthread_mutex_t lock;
};

/* Makes live->event_list. live: the top, whose list its instances use, too. Before another thread knows it. GT_ENOMEM. */
int gt_live_event_list_init(struct gt_live *live);
/* Frees it; no other thread may know `live` any more. */
void gt_live_event_list_fini(struct gt_live *live);

/* Returns the events as they are now, holding the list's lock until gt_live_event_list_unlock(); they are valid
 * until then. After it only the session's lock may be taken. Never NULL; see no_memory. */
const struct gt_live_event_list *gt_live_event_list_lock(struct gt_live *live);
void gt_live_event_list_unlock(struct gt_live *live);

#endif
