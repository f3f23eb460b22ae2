/* SPDX-License-Identifier: MIT */
/* The words of set_event, of the top or of an instance. */
#ifndef GT_SERVE_LIVE_EVENT_WORDS_H
#define GT_SERVE_LIVE_EVENT_WORDS_H

#include "serve/live/live_private.h"

/* Adds a word to live->change.events, which excludes what it names if `on` is false, and asks the session for the list.
 * word NULL: only asks. It has less than GT_CONTROL_WORD_BYTES. "WORD:mod:OBJECT" names the events of an object; if the
 * object is not loaded the word waits for it. GT_EINVAL: it names nothing (without a message); GT_ENOMEM; those of
 * gt_live_ask_for_list(). After an error live->change.events may have changed already: the next call asks for that.
 * Call with change.lock held, and no other lock; takes instances.lock, of an instance it pulls (gt_live_pull). message
 * may be NULL. */
int gt_live_event_words_change(struct gt_live *live, const char *word, bool on,
			       struct gt_message *message);

/* Operation of struct gt_control_ops; takes change.lock itself. GT_ENOENT after the last. A word that has no room is
 * cut off; GT_CONTROL_WORD_BYTES are enough. */
int gt_live_event_waiting(struct gt_control_target *target, uint64_t index, char *word,
			  size_t room);

#endif
