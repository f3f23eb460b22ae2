/* SPDX-License-Identifier: MIT */
/*
 * Events with fields (GRAFTRACE_EVENT_PROBE) in the stream of the thread in which they happen. Whoever
 * has gathered the fields tries the straight line first, from anywhere, signals as they are; where
 * that has nothing to write to, the slow half records it.
 */
#ifndef GT_CORE_RECORD_EVENT_H
#define GT_CORE_RECORD_EVENT_H

#include "core/record/recorder.h"

/* Of a record, its head included: no more than the places behind a sub-buffer's end that are known
 * as such (gt_thread.inside). */
#define GT_EVENT_WORDS	32
#define GT_EVENT_VALUES (GT_EVENT_WORDS - 4)

struct gt_event {
	uint32_t number; /* GRAFTRACE_VALUES | …: the values of a call */
	uint32_t faults; /* bit i: field i could not be read */
	uint32_t count;	 /* of values in use: fields, then the bytes of strings */
	uint32_t depth;	 /* how many events led to it, each by a histogram's action */
	uint64_t values[GT_EVENT_VALUES];
};

/* A text, or bytes, that have been copied behind the fields, to &values[count]: field `field` tells where, and zeroes follow up
 * to the end of its last word. False: there are none, and nothing has been done. */
static inline bool gt_event_put_behind(struct gt_event *event, uint32_t field, uint32_t bytes)
{
	char *const out = (char *)&event->values[event->count];

	if (bytes == 0)
		return false;
	for (uint32_t i = bytes; i % 8 != 0; i++)
		out[i] = 0;
	event->values[field] = event->count * 8 | (uint64_t)bytes << 16;
	event->count += (bytes + 7) / 8;
	return true;
}

/* The registers of the function that a probe interrupts, as gt_glue_event lays them out. */
struct gt_event_frame {
	uint64_t flags;
	uint64_t registers[16]; /* as instructions number them */
	uint64_t stub;		/* + 10: where the stub goes on */
};

/* Whether it has rules (graftrace/filter.h). From anywhere. */
bool gt_event_has_rules(uint32_t number);
/* It has happened, recorded or not. */
void gt_event_hit(uint32_t number);

/* What they say; histograms count the event: once an event, from anywhere. */
enum {
	GT_EVENT_RECORD = 1,	/* it is recorded */
	GT_EVENT_ACT = 2,	/* gt_event_act() has something to do */
	GT_EVENT_ASK = 4,	/* the thread is not known yet: the slow half is to ask again */
	GT_EVENT_FOLLOW = 8,	/* … and gt_event_follow(), once all else is done */
	GT_EVENT_SNAPSHOT = 16, /* … and gt_event_snapshot() */
};
unsigned gt_event_look(const struct gt_thread *thread, const struct gt_event *event);

/* Histograms with actions count the event: other events happen by that. From anywhere, with signals as they are;
 * returns 0 or GT_EVENT_SNAPSHOT. */
unsigned gt_event_follow(const struct gt_thread *thread, const struct gt_event *event);
/* With signals masked: asks for a snapshot, where anything is recorded. */
void gt_event_snapshot(const struct gt_thread *thread, const struct gt_event *event);

/* With signals masked: all that is done at the event, which is recorded, too, if it is to be. */
void gt_event_act(struct gt_thread *thread, const struct gt_event *event);

/* Whether nothing can be recorded now; for lack of room alone the event is counted as lost. */
bool gt_event_is_stopped(struct gt_thread *thread);

/* Whether a call made now, or a return, is none that is recorded (as far as the mode says it). root:
 * of a function of set_graph_function. */
bool gt_event_leaves_call_out(const struct gt_thread *thread, bool root);

/* False: the slow half is needed; nothing was written. */
bool gt_event_try_record(struct gt_thread *thread, const struct gt_event *event);

/* With signals masked. What has no room is counted (graftrace_stream.lost_events). */
void gt_event_record(struct gt_thread *thread, const struct gt_event *event);

#endif
