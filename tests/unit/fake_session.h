/* SPDX-License-Identifier: MIT */
/*
 * A made-up session with one thread, in the place of attach/session: what a test of the control
 * files asks of it, and what it was told. For one test's source.
 */
#ifndef GT_TESTS_UNIT_FAKE_SESSION_H
#define GT_TESTS_UNIT_FAKE_SESSION_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/glob.h"
#include "port/host/memory.h"
#include "serve/live/live.h"

#define WORDS 512

static const char *const names[] = { "alpha", "beta", "beta_two", "operator*" };
#define NAMES 4

/* The session that live.c is linked with here. */
struct gt_session {
	struct gt_target target;
	pthread_mutex_t lock;
	uint64_t words[WORDS];
	uint32_t written;
	uint64_t begin; /* clock of the sub-buffer */
	struct gt_switch switches[8];
	uint32_t switch_count;
	uint64_t off_from;  /* thread 7 was off the CPU from then on, */
	uint64_t off_ticks; /* … so long; 0: nothing is known */
	bool on;
	bool gone; /* lists no functions any more */
	char filter[512];
	struct gt_trace_settings asked; /* the top's three lists, and its tracer */
	bool unpatched;			/* a process cannot be patched: changes end with GT_EBUSY */
	char graph_notrace[64];
	bool func_stack;
	uint32_t cleared;
	uint32_t depth;
	uint64_t threshold;
	bool profiles;
	bool overwrite;
	unsigned used; /* percent of the ring */
	/* How often there was room again: [0] and who finds none does not wait, [1] and waits. */
	uint32_t told[2];
	struct gt_trigger trigger; /* glob NULL: none */
	char glob[64];
	struct gt_event_format events[4];
	uint32_t event_count;
	uint64_t event_version;
	uint32_t events_told; /* how often all of them were told */
	bool events_on;
	void (*defined)(
		void); /* called when there is a synthetic event, before that returns; NULL: none are taken */
};

static struct gt_session session;

void gt_session_keep_writers(struct gt_session *of)
{
	(void)of;
}

struct gt_target *gt_session_target(struct gt_session *of)
{
	return &of->target;
}

void gt_session_lock_sink(struct gt_session *of)
{
	pthread_mutex_lock(&of->lock);
}

void gt_session_unlock_sink(struct gt_session *of)
{
	pthread_mutex_unlock(&of->lock);
}

bool gt_session_tracing_on(struct gt_session *of)
{
	bool on;

	pthread_mutex_lock(&of->lock);
	on = of->on;
	pthread_mutex_unlock(&of->lock);
	return on;
}

void gt_session_set_tracing_on(struct gt_session *of, bool on)
{
	pthread_mutex_lock(&of->lock);
	of->on = on;
	pthread_mutex_unlock(&of->lock);
}

int gt_session_set_tracer(struct gt_session *of, enum graftrace_tracer tracer,
			  struct gt_message *why)
{
	(void)why;
	of->asked.tracer = tracer;
	return of->unpatched ? GT_EBUSY : 0;
}

struct gt_trace_settings gt_session_asked(struct gt_session *of, uint32_t who)
{
	(void)who;
	return gt_trace_settings_copy(&of->asked);
}

int gt_session_set_filters(struct gt_session *of, const struct gt_trace_settings *settings,
			   struct gt_message *why)
{
	(void)why;
	pthread_mutex_lock(&of->lock);
	of->filter[0] = '\0';
	for (int i = 0; i < 3; i++) {
		const char *const *word = gt_word_list_words(settings->lists[i]);

		gt_trace_settings_set_list(&of->asked, (enum gt_list)i, settings->lists[i]);

		for (; word != NULL && *word != NULL; word++)
			strcat(strcat(of->filter, *word), " ");
		strcat(of->filter, "/");
	}
	pthread_mutex_unlock(&of->lock);
	return of->unpatched ? GT_EBUSY : 0;
}

int gt_session_set_graph_notrace(struct gt_session *of, struct gt_word_list *list,
				 struct gt_message *why)
{
	(void)why;
	pthread_mutex_lock(&of->lock);
	snprintf(of->graph_notrace, sizeof(of->graph_notrace), "%s",
		 list != NULL ? list->words[0] : "");
	pthread_mutex_unlock(&of->lock);
	return 0;
}

int gt_session_set_func_stack(struct gt_session *of, bool on, struct gt_message *why)
{
	(void)why;
	of->func_stack = on;
	return 0;
}

int gt_session_set_max_graph_depth(struct gt_session *of, uint32_t depth)
{
	of->depth = depth;
	return 0;
}

int gt_session_set_threshold(struct gt_session *of, uint64_t ns)
{
	of->threshold = ns;
	return 0;
}

int gt_session_set_threads(struct gt_session *of, enum gt_session_list which, const uint32_t *tids,
			   uint32_t count, struct gt_message *why)
{
	(void)of;
	(void)which;
	(void)tids;
	(void)count;
	(void)why;
	return 0;
}

uint32_t gt_session_threads(struct gt_session *of, enum gt_session_list which,
			    uint32_t tids[GT_SESSION_THREADS])
{
	(void)of;
	(void)which;
	(void)tids;
	return 0;
}

bool gt_session_lists_threads(const struct gt_session *of)
{
	(void)of;
	return false;
}

int gt_session_thread(struct gt_session *of, enum gt_session_list which, uint32_t index,
		      uint32_t *tid)
{
	(void)of;
	(void)which;
	(void)index;
	(void)tid;
	return GT_ENOENT;
}

void gt_session_set_follow(struct gt_session *of, bool follow)
{
	(void)of;
	(void)follow;
}

int gt_session_watch_off_cpu(struct gt_session *of, struct gt_message *why)
{
	(void)of;
	(void)why;
	return 0;
}

uint32_t gt_session_creator(struct gt_session *of, uint32_t tid, uint64_t *clock)
{
	(void)of;
	(void)tid;
	(void)clock;
	return 0;
}

void gt_session_unwatch_off_cpu(struct gt_session *of)
{
	(void)of;
}

int gt_session_set_profile(struct gt_session *of, bool on, struct gt_message *why)
{
	(void)why;
	of->profiles = on;
	return of->unpatched ? GT_EBUSY : 0;
}

void gt_session_set_profile_awake(struct gt_session *of, bool awake)
{
	(void)of;
	(void)awake;
}

bool gt_session_profiles(const struct gt_session *of)
{
	return of->profiles;
}

/* A tick is a nanosecond. */
void gt_session_profile_starts(struct gt_session *of, uint64_t starts_ns[GT_DURATIONS])
{
	(void)of;
	gt_durations_starts(&(struct gt_clock){ .mult = 1 }, starts_ns);
}

/* alpha called beta; thread 7 only beta. */
int gt_session_profile(struct gt_session *of, uint32_t tid, bool self, struct gt_profile_row **rows,
		       uint32_t *count)
{
	(void)of;
	*rows = calloc(2, sizeof(**rows));
	*count = 0;
	if (tid == 0)
		(*rows)[(*count)++] = (struct gt_profile_row){
			.named = { .name = "a_name_that_is_longer_than_the_column_it_stands_in",
				   .object = "" },
			.function = 1,
			.hits = 3,
			.time_ns = self ? 1200 : 12345678901ull,
			.self_ns = 1200,
			.variance = 7,
			.buckets = { [27] = 2 },
		};
	(*rows)[(*count)++] = (struct gt_profile_row){
		.named = { .name = "beta", .object = "/bin/prog" },
		.function = 2,
		.hits = 2,
		.time_ns = 99000,
		.self_ns = 99000,
		.variance = 1234567,
		.buckets = { [9] = 1, [11] = 1 },
	};
	return 0;
}

uint64_t gt_session_damaged(struct gt_session *session)
{
	(void)session;
	return 0;
}

int gt_session_set_overwrite(struct gt_session *of, bool overwrite, struct gt_message *why)
{
	(void)why;
	of->overwrite = overwrite;
	return 0;
}

int gt_session_trigger_add(struct gt_session *of, const struct gt_trigger *trigger,
			   struct gt_message *why)
{
	(void)why;
	of->trigger = *trigger;
	snprintf(of->glob, sizeof(of->glob), "%s", trigger->glob);
	of->trigger.glob = of->glob;
	return 0;
}

int gt_session_trigger_remove(struct gt_session *of, const struct gt_trigger *trigger,
			      struct gt_message *why)
{
	if (of->trigger.glob == NULL || strcmp(of->glob, trigger->glob) != 0 ||
	    of->trigger.action != trigger->action) {
		snprintf(why->text, sizeof(why->text), "there is none");
		return GT_ENOENT;
	}
	of->trigger.glob = NULL;
	return 0;
}

int gt_session_trigger_get(struct gt_session *of, uint32_t index, struct gt_trigger *trigger,
			   bool *spent, char *glob, size_t room)
{
	if (index > 0 || of->trigger.glob == NULL)
		return GT_ENOENT;
	*trigger = of->trigger;
	snprintf(glob, room, "%s", of->glob);
	trigger->glob = glob;
	*spent = false;
	return 0;
}

int gt_session_clear(struct gt_session *of)
{
	of->cleared++;
	return 0;
}

unsigned gt_session_buffer_use(const struct gt_session *of)
{
	return __atomic_load_n(&of->used, __ATOMIC_RELAXED);
}

/* It has no events, unless a test adds some. */
bool gt_session_event_is_gated(struct gt_session *of, const char *system, const char *name)
{
	(void)system;
	(void)name;
	return of->events_on; /* without being asked for */
}

const char *gt_session_syscall_event(uint64_t number)
{
	(void)number;
	return NULL;
}

bool gt_session_names_syscall(const char *word)
{
	(void)word;
	return false;
}

int gt_session_set_events(struct gt_session *of, struct gt_word_list *words,
			  struct gt_message *message)
{
	(void)of;
	(void)words;
	(void)message;
	return 0;
}

int gt_session_set_event_filter(struct gt_session *of, const char *word, const char *filter,
				struct gt_message *message)
{
	(void)of;
	(void)word;
	(void)filter;
	(void)message;
	return 0;
}

int gt_session_event_trigger(struct gt_session *of, const char *word,
			     const struct gt_event_trigger *trigger, bool remove,
			     struct gt_message *message)
{
	(void)of;
	(void)word;
	(void)trigger;
	(void)remove;
	(void)message;
	return 0;
}

bool gt_session_event_trigger_get(struct gt_session *of, const char *word, uint32_t index,
				  struct gt_event_trigger *trigger, char *text, size_t room)
{
	(void)of;
	(void)word;
	(void)index;
	(void)trigger;
	(void)text;
	(void)room;
	return false;
}

int gt_session_event_hist(struct gt_session *session, const char *word, uint32_t index,
			  struct gt_hist_copy *copy)
{
	(void)session;
	(void)word;
	(void)index;
	(void)copy;
	return GT_ENOENT;
}

int gt_session_check_hist(struct gt_session *session, const char *word, const char *text,
			  bool is_new, struct gt_hist_error *error)
{
	(void)session;
	(void)word;
	(void)text;
	(void)is_new;
	(void)error;
	return 0;
}

int gt_session_set_synthetic(struct gt_session *session, const char *text, size_t bytes,
			     struct gt_event_format *event, struct gt_probe_error *error,
			     struct gt_message *message)
{
	(void)text;
	(void)bytes;
	(void)error;
	(void)message;
	if (session->defined == NULL)
		return GT_EINVAL;
	*event = (struct gt_event_format){
		.number = session->event_count + 1,
		.system = "synthetic",
		.name = "made",
		.object = "",
	};
	session->events[session->event_count++] = *event;
	session->event_version++;
	session->defined();
	return 0;
}

/* The last one that was defined. */
int gt_session_remove_synthetics(struct gt_session *session, const char *name,
				 struct gt_message *message)
{
	(void)name;
	(void)message;
	session->event_count--;
	session->event_version++;
	return 0;
}

int gt_session_each_synthetic(struct gt_session *session,
			      int (*each)(void *data, const struct gt_event_format *event,
					  bool enabled, const char *reason),
			      void *data)
{
	(void)session;
	(void)each;
	(void)data;
	return 0;
}

void gt_session_event_hist_free(struct gt_hist_copy *copy)
{
	(void)copy;
}

bool gt_session_event_is_soft(struct gt_session *of, const char *system, const char *name)
{
	(void)of;
	(void)system;
	(void)name;
	return false;
}

void gt_session_events_since(struct gt_session *of, uint64_t *version, void (*forget)(void *data),
			     int (*each)(void *data, const struct gt_event_format *event,
					 bool enabled, const char *reason),
			     void *data)
{
	if (*version == of->event_version + 1)
		return;
	*version = of->event_version + 1;
	of->events_told++;
	forget(data);
	for (uint32_t i = 0; i < of->event_count; i++)
		if (each(data, &of->events[i], false, NULL) != 0)
			return;
}

int gt_session_each_event(struct gt_session *of,
			  int (*each)(void *data, const struct gt_event_format *event, bool enabled,
				      const char *reason),
			  void *data)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < of->event_count; i++)
		result = each(data, &of->events[i], of->events_on, NULL);
	return result;
}

bool gt_session_event_is_on(struct gt_session *of, const char *system, const char *name)
{
	(void)system;
	(void)name;
	return of->events_on;
}

int gt_session_each_function(struct gt_session *of,
			     int (*each)(void *data, uint32_t number,
					 const struct gt_function *function, bool enabled),
			     void *data)
{
	int result = 0;

	pthread_mutex_lock(&of->lock);
	for (uint32_t i = 0; i < NAMES && !of->gone && result == 0; i++) {
		struct gt_function function = {
			.name = names[i],
			.object = i == 3 ? "/lib/libx.so.1" : "/bin/prog",
			.address = 0x1000 + i,
			.size = 16,
			.touched = i == 0,
		};

		result = each(data, i + 1, &function, true);
	}
	pthread_mutex_unlock(&of->lock);
	return result;
}

int gt_session_join(struct gt_session *of, uint32_t *who, struct gt_message *message)
{
	(void)of;
	(void)message;
	*who = 1;
	return 0;
}

int gt_session_ask(struct gt_session *of, uint32_t who, const struct gt_trace_settings *ask,
		   struct gt_message *message)
{
	(void)who;
	(void)ask;
	(void)message;
	return of->unpatched ? GT_EBUSY : 0;
}

void gt_session_set_transport(struct gt_session *of)
{
	(void)of;
}

void gt_session_has_room(struct gt_session *of, bool waits)
{
	__atomic_fetch_add(&of->told[waits], 1, __ATOMIC_RELAXED);
}

void gt_session_leave(struct gt_session *of, uint32_t who)
{
	(void)of;
	(void)who;
}

bool gt_session_top_has_all(struct gt_session *of, uint32_t who,
			    const struct gt_trace_settings *ask)
{
	(void)of;
	(void)who;
	(void)ask;
	return true;
}

bool gt_session_has_function(struct gt_session *of, const char *glob)
{
	bool found = false;

	pthread_mutex_lock(&of->lock);
	for (uint32_t i = 0; i < NAMES && !of->gone; i++)
		found |= gt_glob_match(glob, names[i]);
	pthread_mutex_unlock(&of->lock);
	return found;
}

#endif
