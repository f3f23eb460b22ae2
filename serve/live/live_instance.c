/* SPDX-License-Identifier: MIT */
/*
 * Instances of a session (instances/NAME): buffers with a filter, a tracer, tracing_on and readers
 * of their own. An instance is a struct gt_live whose view is a store; what the session has only
 * one of is the top's.
 *
 * The program writes one stream, of what the top and the instances ask for in all. It is copied out
 * of the ring a few times a second, and before anything is read, emptied or changed; each store
 * takes what its instance asked for (serve/store/route.c). As long as the top asks for all that is
 * recorded, the ring is its buffer. From when it does not (the "detour"), the ring is the way only:
 * the top has a store like the others, and another one with what was in the ring before.
 *
 * A change of what is asked: what was written before it is copied first, under the settings of that
 * time; then the session is told, then the store. live_private.h has the order of
 * the locks.
 */
#include "serve/live/live_instance.h"
#include "serve/live/live_awake.h"
#include "serve/live/live_events.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach/process/own_thread.h"
#include "port/host/memory.h"
#include "serve/store/globs.h"

#define PUMP_NS	     20000000
#define BUSY_NS	     1000000 /* interval while this much of the ring is in use: */
#define BUSY_PERCENT 5
#define FULL_PERCENT 75
#define NAME_BYTES   64

struct gt_live_instance {
	char name[NAME_BYTES];
	struct gt_store *store;
	uint32_t who; /* its number as one of the session's askers; 0: none */
	atomic_bool removed;
	atomic_uint users; /* open texts and lists */
	uint64_t since;	   /* clock at which its tracing was switched on */
	uint64_t
		switched; /* clock of the last command that switched tracing; under instances.lock */
	bool active;	  /* it records something; under instances.lock */
	uint32_t *threads[2]; /* set_ftrace_pid and set_ftrace_notrace_pid; under the live's lock */
	uint32_t thread_count[2];
};

bool gt_live_is_removed(const struct gt_live *live)
{
	return live->instance != NULL && atomic_load(&live->instance->removed);
}

bool gt_live_instance_on(const struct gt_live *live)
{
	uint64_t switched;

	return gt_store_is_on(live->instance->store, &switched);
}

/* Copying */

/* Carries out the commands that were hit; nothing is copied meanwhile. */
static void carry_out(struct gt_live *live)
{
	struct gt_live_instance *instance = live->instance;
	uint32_t cpu, due = gt_store_due(instance->store, &cpu);

	for (uint32_t action = 0; action < GT_ACTIONS; action++) {
		if (due & 1u << action)
			gt_live_command_act(live, (enum gt_control_action)action, cpu);
	}
	gt_store_done(instance->store);
}

/* The kernel's switches of threads follow what commands do to tracing_on. */
static void follow_switch(struct gt_live *live)
{
	uint64_t switched;
	bool on = gt_store_is_on(live->instance->store, &switched);

	if (switched == live->instance->switched)
		return;
	live->instance->switched = switched;
	pthread_mutex_lock(&live->lock);
	gt_live_events_switched(live, on, switched);
	pthread_mutex_unlock(&live->lock);
}

/* The top's threads, which may become more by themselves. GT_ENOMEM. */
static int follow_threads(struct gt_live *top, struct gt_store *own)
{
	uint32_t tids[GT_SESSION_THREADS], count;
	int error = 0;

	for (int which = GT_SESSION_ONLY; error == 0 && which <= GT_SESSION_NOT; which++) {
		count = gt_session_threads(top->session, (enum gt_session_list)which, tids);
		error = gt_store_set_threads(own, which, tids, count);
	}
	return error;
}

/* Copies records to the top and all instances. Returns an instance with a command to be carried
 * out: until that is done it gets no more, and the ring keeps its records. NULL: none. */
static struct gt_live *pull_locked(struct gt_live *top)
{
	struct gt_live_instances *instances = &top->instances;
	struct gt_store *first = instances->own;
	struct gt_live *due = NULL;
	bool full = first != NULL && gt_session_buffer_use(top->session) >= FULL_PERCENT;

	if (instances->routed && gt_session_lists_threads(top->session))
		follow_threads(top, instances->own);
	if (instances->routed)
		gt_store_switch(instances->own, gt_session_tracing_on(top->session));
	if (instances->own != NULL)
		gt_store_pull(instances->own);
	for (uint32_t i = 0; i < instances->count; i++) {
		struct gt_live *one = instances->all[i];

		if (gt_live_is_removed(one) || !one->instance->active)
			continue;
		if (gt_store_pull(one->instance->store) == GT_EAGAIN)
			due = one;
		follow_switch(one);
	}
	gt_awake_pull(instances->awake);
	/* All stores have copied what the first one has. */
	if (first != NULL && due == NULL)
		gt_store_consume_source(first);
	if (full && due == NULL)
		gt_session_has_room(top->session);
	return due;
}

void gt_live_pull(struct gt_live *live)
{
	struct gt_live *top = live->top != NULL ? live->top : live, *due;

	pthread_mutex_lock(&top->instances.turn);
	do {
		pthread_mutex_lock(&top->instances.lock);
		due = pull_locked(top);
		pthread_mutex_unlock(&top->instances.lock);
		if (due != NULL)
			carry_out(due);
	} while (due != NULL);
	pthread_mutex_unlock(&top->instances.turn);
}

static void *pump(void *data)
{
	struct gt_live *top = data;
	struct gt_live_instances *instances = &top->instances;
	struct timespec until;
	bool busy;

	pthread_mutex_lock(&instances->lock);
	while (!instances->stop) {
		pthread_mutex_unlock(&instances->lock);
		gt_live_pull(top);
		pthread_mutex_lock(&instances->lock);
		busy = instances->own != NULL &&
		       gt_session_buffer_use(top->session) >= BUSY_PERCENT;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += busy ? BUSY_NS : PUMP_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		if (!instances->stop)
			pthread_cond_timedwait(&instances->wake, &instances->lock, &until);
	}
	pthread_mutex_unlock(&instances->lock);
	return NULL;
}

/* Under instances.lock. Starts the copying thread; if it cannot be started, records are copied
 * when something is read. */
static void start_pump(struct gt_live *top)
{
	if (!top->instances.pumping)
		top->instances.pumping = gt_own_thread_start(&top->instances.pump, pump, top) == 0;
}

/* The detour */

/* Triggers are the top's, and so are the events that they enable. */
static bool is_gated(void *data, const char *system, const char *name)
{
	const struct gt_live *top = data;

	return gt_session_event_is_gated(top->session, system, name);
}

static struct gt_route_want want_of(struct gt_live *live, const struct gt_trace_settings *settings)
{
	const bool is_top = live->top == NULL;

	return (struct gt_route_want){
		.settings = *settings,
		.stacks = is_top,
		.marks = is_top,
		.also = is_top ? is_gated : NULL,
		.also_data = live,
		.since = live->instance != NULL ? live->instance->since : 0,
	};
}

bool gt_live_is_detoured(struct gt_live *top)
{
	return top->instances.own != NULL;
}

/* Moves all of the ring into a store, which also takes new records until another one replaces
 * it. */
static int copy_ring(struct gt_live *top, struct gt_store **store)
{
	int error = gt_store_create(gt_session_target(top->session), 0, true, store);

	return error != 0 ? error : gt_store_pull(*store);
}

/* Begins a detour: the ring's records become a store of their own, and new ones go to another
 * store. */
static int detour(struct gt_live *top)
{
	struct gt_live_instances *instances = &top->instances;
	struct gt_target *session = gt_session_target(top->session);
	bool overwrite = (top->options & GT_OPTION_OVERWRITE) != 0;
	struct gt_store *archive = instances->own, *own = NULL;
	struct gt_merge_given *positions = NULL;
	struct gt_trace_settings settings = gt_live_settings(top);
	struct gt_route_want want = want_of(top, &settings);
	uint32_t count = 0;
	int error = 0;

	if (archive == NULL)
		error = copy_ring(top, &archive);
	if (error == 0)
		error = gt_store_create_routed(session, top->buffer_bytes, overwrite, &own);
	if (error == 0)
		error = gt_store_positions(archive, &positions, &count);
	if (error == 0)
		error = gt_store_begin(own, positions, count);
	if (error == 0) {
		gt_store_want(own, &want);
		error = follow_threads(top, own);
	}
	if (error == 0)
		error = gt_live_view_detour(&top->over, gt_store_target(archive),
					    gt_store_target(own));
	free(positions);
	if (error != 0) {
		if (archive != instances->own)
			gt_store_put(archive);
		gt_store_put(own);
		return error;
	}
	gt_session_set_transport(top->session);
	gt_store_consume_source(archive);
	gt_session_has_room(top->session);
	gt_store_freeze(archive);
	gt_store_set_older(own, archive);
	instances->archive = archive;
	instances->own = own;
	instances->routed = true;
	return 0;
}

/* The ring keeps the size that the arena was made with; another size is that of a store that the
 * ring is copied to. */
int gt_live_resize(struct gt_live *live, uint64_t bytes)
{
	struct gt_live *top = live->top != NULL ? live->top : live;
	struct gt_live_instances *instances = &top->instances;
	struct gt_store *own = NULL;
	int error = 0;

	pthread_mutex_lock(&instances->lock);
	pull_locked(top);
	if (live->instance != NULL) {
		gt_store_set_limit(live->instance->store, bytes);
	} else if (instances->own != NULL) {
		gt_store_set_limit(instances->own, bytes);
	} else {
		error = copy_ring(top, &own);
		if (error == 0)
			error = gt_live_view_detour(&top->over, gt_store_target(own),
						    gt_store_target(own));
		if (error == 0) {
			gt_session_set_transport(top->session);
			gt_store_consume_source(own);
			gt_session_has_room(top->session);
			gt_store_set_overwrite(own, (top->options & GT_OPTION_OVERWRITE) != 0);
			gt_store_set_limit(own, bytes);
			instances->own = own;
			start_pump(top);
		} else {
			gt_store_put(own);
		}
	}
	pthread_mutex_unlock(&instances->lock);
	return error;
}

/* What is asked */

struct gt_trace_settings gt_live_settings(struct gt_live *live)
{
	struct gt_trace_settings settings;

	if (live->instance != NULL) /* a command may have switched it */
		gt_live_pull(live);
	pthread_mutex_lock(&live->lock);
	settings = live->settings;
	pthread_mutex_unlock(&live->lock);
	settings.on = live->instance != NULL ? gt_live_instance_on(live)
					     : gt_session_tracing_on(live->session);
	return settings;
}

/* Widens an instance's filter to what the session has to record for it: functions with commands
 * are recorded even if the instance does not show them, and a stack trace needs the calls around
 * such a function. *filter: its list, to be released. GT_ENOMEM. */
static int widen(struct gt_store *store, struct gt_trace_settings *ask,
		 struct gt_word_list **filter)
{
	bool some = ask->lists[GT_LIST_FILTER] != NULL || ask->tracer == GRAFTRACE_TRACER_NOP;
	struct gt_globs words = { NULL, 0, 0 };
	struct gt_control_command command;
	bool added;
	int error;

	*filter = NULL;
	if (gt_store_command_read(store, 0, &command) != 0)
		return 0;
	added = ask->tracer == GRAFTRACE_TRACER_NOP ||
		gt_globs_add_all(&words, gt_word_list_words(ask->lists[GT_LIST_FILTER]));
	for (uint32_t i = 0; added && gt_store_command_read(store, i, &command) == 0; i++) {
		added = gt_globs_add(&words, command.function, command.function_bytes, false);
		if (ask->tracer == GRAFTRACE_TRACER_NOP)
			ask->tracer = GRAFTRACE_TRACER_FUNCTION;
		if (command.action == GT_ACTION_STACKTRACE)
			ask->tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
		ask->on |= command.action == GT_ACTION_TRACEON;
	}
	error = !added ? GT_ENOMEM
		: some ? gt_word_list_create(&gt_host_memory, gt_globs_words(&words), filter)
		       : 0;
	gt_globs_clear(&words);
	ask->lists[GT_LIST_FILTER] = *filter;
	ask->lists[GT_LIST_NOTRACE] = ask->lists[GT_LIST_GRAPH] = NULL;
	ask->max_depth = 0;
	ask->threshold_ns = 0;
	return error;
}

static int ask_for_instance(struct gt_live *live, const struct gt_trace_settings *settings,
			    struct gt_message *message)
{
	struct gt_live *top = live->top;
	struct gt_live_instance *instance = live->instance;
	struct gt_trace_settings ask = *settings;
	struct gt_word_list *filter;
	struct gt_route_want want;
	int error = widen(instance->store, &ask, &filter);
	bool active = ask.tracer != GRAFTRACE_TRACER_NOP || ask.lists[GT_LIST_EVENTS] != NULL;
	bool begins = active && !instance->active;

	pull_locked(top);
	if (error == 0 && active && !top->instances.routed &&
	    !gt_session_top_has_all(top->session, instance->who, &ask))
		error = detour(top);
	if (error == 0 && begins)
		error = gt_store_begin_now(instance->store);
	if (error != 0) {
		gt_word_list_release(filter);
		return no_memory(message);
	}
	if (begins)
		instance->since = __builtin_ia32_rdtsc();
	error = gt_session_ask(top->session, instance->who, &ask, message);
	gt_word_list_release(filter);
	if (error != 0)
		return error;
	instance->active = active;
	want = want_of(live, settings);
	gt_store_want(instance->store, &want);
	if (!active)
		gt_store_rest(instance->store);
	return 0;
}

int gt_live_ask(struct gt_live *live, const struct gt_trace_settings *settings,
		struct gt_message *message)
{
	struct gt_live *top = live->top;
	struct gt_trace_settings old;
	int error;

	pthread_mutex_lock(&top->instances.lock);
	error = ask_for_instance(live, settings, message);
	if (error == 0) {
		pthread_mutex_lock(&live->lock);
		old = live->settings;
		live->settings = gt_trace_settings_copy(settings);
		live->view.tracer = settings->tracer;
		pthread_mutex_unlock(&live->lock);
		gt_trace_settings_fini(&old);
	}
	pthread_mutex_unlock(&top->instances.lock);
	return error;
}

int gt_live_top_begin_lock(struct gt_live *top, bool wider, struct gt_message *message)
{
	struct gt_live_instances *instances = &top->instances;
	bool others = false;
	int error = 0;

	pthread_mutex_lock(&instances->lock);
	for (uint32_t i = 0; i < instances->count; i++)
		others |= !gt_live_is_removed(instances->all[i]) &&
			  instances->all[i]->instance->active;
	pull_locked(top);
	if ((others || wider) && !instances->routed)
		error = detour(top);
	if (error == 0 && wider)
		start_pump(top);
	if (error == 0)
		return 0;
	pthread_mutex_unlock(&instances->lock);
	return no_memory(message);
}

int gt_live_top_awake(struct gt_live *top, bool awake, bool anew)
{
	struct gt_live_instances *instances = &top->instances;

	if (anew) {
		gt_awake_destroy(instances->awake);
		instances->awake = NULL;
	}
	if (awake)
		return gt_awake_follow(&instances->awake, gt_session_target(top->session));
	gt_awake_stop(instances->awake);
	return 0;
}

void gt_live_top_end_unlock(struct gt_live *top)
{
	struct gt_trace_settings settings = gt_live_settings(top);
	struct gt_route_want want = want_of(top, &settings);

	if (top->instances.routed) {
		gt_store_want(top->instances.own, &want);
		follow_threads(top, top->instances.own);
	}
	pthread_mutex_unlock(&top->instances.lock);
}

void gt_live_set_overwrite(struct gt_live *live, bool overwrite)
{
	struct gt_live *top = live->top != NULL ? live->top : live;

	pthread_mutex_lock(&top->instances.lock);
	if (live->instance != NULL)
		gt_store_set_overwrite(live->instance->store, overwrite);
	else if (gt_live_is_detoured(live))
		gt_store_set_overwrite(live->instances.own, overwrite);
	pthread_mutex_unlock(&top->instances.lock);
}

uint32_t gt_live_rings(struct gt_live *live, struct gt_target *rings[2])
{
	if (!gt_live_is_detoured(live)) {
		rings[0] = gt_session_target(live->session);
		return 1;
	}
	gt_live_pull(live);
	gt_store_freeze(live->instances.own);
	rings[0] = gt_store_target(live->instances.routed ? live->instances.archive
							  : live->instances.own);
	rings[1] = gt_store_target(live->instances.own);
	return live->instances.routed ? 2 : 1;
}

/* Functions with commands, and threads */

int gt_live_instance_command(struct gt_live *live, const struct gt_control_command *command,
			     bool remove, struct gt_message *message)
{
	struct gt_store *store = live->instance->store;
	struct gt_trace_settings settings;
	int error;

	gt_live_pull(live); /* a new command does not act on earlier records */
	error = remove ? gt_store_command_remove(store, command)
		       : gt_store_command_set(store, command);
	if (error == GT_ENOENT)
		gt_message_set(message, "there is no such command");
	else if (error == GT_ENOSPC)
		gt_message_set(message, "an instance has %d commands at the most",
			       GT_ROUTE_COMMANDS);
	else if (error != 0)
		return no_memory(message);
	if (error != 0)
		return error;
	settings = gt_live_settings(live);
	error = gt_live_ask(live, &settings, message);
	if (error != 0 && !remove)
		gt_store_command_remove(store, command);
	return error;
}

int gt_live_instance_command_read(struct gt_live *live, uint64_t index,
				  struct gt_control_command *command)
{
	if (index == 0)
		gt_live_pull(live); /* updates the counts */
	return gt_store_command_read(live->instance->store, index, command);
}

int gt_live_instance_thread(struct gt_live *live, int which, uint32_t index, uint32_t *tid)
{
	int error = GT_ENOENT;

	pthread_mutex_lock(&live->lock);
	if (index < live->instance->thread_count[which]) {
		*tid = live->instance->threads[which][index];
		error = 0;
	}
	pthread_mutex_unlock(&live->lock);
	return error;
}

static int by_number(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

int gt_live_instance_threads_set(struct gt_live *live, int which, const uint32_t *tids,
				 uint32_t count, struct gt_message *message)
{
	uint32_t *copy = calloc(count + 1, sizeof(*copy));

	if (copy == NULL)
		return no_memory(message);
	for (uint32_t i = 0; i < count; i++)
		copy[i] = tids[i];
	qsort(copy, count, sizeof(*copy), by_number);
	gt_live_pull(live); /* earlier records keep the old list */
	if (gt_store_set_threads(live->instance->store, which, copy, count) != 0) {
		free(copy);
		return no_memory(message);
	}
	pthread_mutex_lock(&live->lock);
	free(live->instance->threads[which]);
	live->instance->threads[which] = copy;
	live->instance->thread_count[which] = count;
	pthread_mutex_unlock(&live->lock);
	return 0;
}

/* Life */

void gt_live_instances_init(struct gt_live *top)
{
	pthread_mutex_init(&top->instances.turn, NULL);
	pthread_mutex_init(&top->instances.lock, NULL);
	pthread_cond_init(&top->instances.wake, NULL);
}

static void free_instance(struct gt_live_instance *instance)
{
	if (instance == NULL)
		return;
	gt_store_put(instance->store);
	free(instance->threads[0]);
	free(instance->threads[1]);
	free(instance);
}

void gt_live_instance_fini(struct gt_live *live)
{
	free_instance(live->instance);
	live->instance = NULL;
}

void gt_live_instances_fini(struct gt_live *top)
{
	struct gt_live_instances *instances = &top->instances;

	pthread_mutex_lock(&instances->lock);
	instances->stop = true;
	pthread_cond_signal(&instances->wake);
	pthread_mutex_unlock(&instances->lock);
	if (instances->pumping)
		pthread_join(instances->pump, NULL);
	for (uint32_t i = 0; i < instances->count; i++)
		gt_live_destroy(instances->all[i]);
	free(instances->all);
	gt_awake_destroy(instances->awake);
	gt_store_put(instances->archive);
	gt_store_put(instances->own);
	pthread_cond_destroy(&instances->wake);
	pthread_mutex_destroy(&instances->lock);
	pthread_mutex_destroy(&instances->turn);
}

void gt_live_instances_end(struct gt_live *top)
{
	pthread_mutex_lock(&top->instances.lock);
	for (uint32_t i = 0; i < top->instances.count; i++)
		atomic_store(&top->instances.all[i]->ended, true);
	pthread_mutex_unlock(&top->instances.lock);
}

int gt_live_instance_of(struct gt_control_target *target, uint32_t index,
			struct gt_control_target **out, const char **name)
{
	struct gt_live_instances *instances = &live_of(target)->instances;
	int error = GT_ENOENT;

	pthread_mutex_lock(&instances->lock);
	for (uint32_t i = 0; i < instances->count && error != 0; i++) {
		struct gt_live *one = instances->all[i];

		if (gt_live_is_removed(one) || index-- > 0)
			continue;
		*out = &one->control;
		*name = one->instance->name;
		error = 0;
	}
	pthread_mutex_unlock(&instances->lock);
	return error;
}

static struct gt_live *find_locked(struct gt_live *top, const char *name, size_t bytes)
{
	for (uint32_t i = 0; i < top->instances.count; i++) {
		struct gt_live *one = top->instances.all[i];

		if (!gt_live_is_removed(one) && strlen(one->instance->name) == bytes &&
		    memcmp(one->instance->name, name, bytes) == 0)
			return one;
	}
	return NULL;
}

static struct gt_live_instance *new_instance(struct gt_live *top, const char *name, size_t bytes)
{
	struct gt_live_instance *instance = calloc(1, sizeof(*instance));

	if (instance == NULL)
		return NULL;
	memcpy(instance->name, name, bytes);
	if (gt_store_create_routed(gt_session_target(top->session), top->buffer_bytes, true,
				   &instance->store) == 0) {
		gt_store_switch(instance->store, true);
		return instance;
	}
	free_instance(instance);
	return NULL;
}

static int check_name(const struct gt_live *top, const char *name, size_t bytes,
		      struct gt_message *message)
{
	if (top->mode == GRAFTRACE_MODE_DRAIN) {
		gt_message_set(message, "records go to a file as they come: there are no other "
					"buffers (--serve and --overwrite record into a ring)");
		return GT_ENOTSUP;
	}
	if (bytes == 0 || bytes >= NAME_BYTES || memchr(name, '/', bytes) != NULL ||
	    name[0] == '.') {
		gt_message_set(message, "this cannot be an instance's name");
		return GT_EINVAL;
	}
	return 0;
}

int gt_live_instance_make(struct gt_control_target *target, const char *name, size_t bytes,
			  struct gt_message *message)
{
	struct gt_live *top = live_of(target), *live = NULL;
	struct gt_live_instances *instances = &top->instances;
	struct gt_live_instance *instance = NULL;
	struct gt_live **grown;
	int error = check_name(top, name, bytes, message);

	if (error != 0)
		return error;
	gt_live_settle_clock(top);
	pthread_mutex_lock(&instances->lock);
	if (find_locked(top, name, bytes) != NULL) {
		gt_message_set(message, "there is such an instance");
		error = GT_EEXIST;
		goto unlock;
	}
	grown = realloc(instances->all, (instances->count + 1) * sizeof(*grown));
	if (grown != NULL)
		instances->all = grown;
	instance = grown != NULL ? new_instance(top, name, bytes) : NULL;
	error = instance != NULL ? gt_live_create_instance(top, instance, instance->store, &live)
				 : GT_ENOMEM;
	if (error != 0) {
		free_instance(instance);
		error = no_memory(message);
		goto unlock;
	}
	error = gt_session_join(top->session, &instance->who, message);
	if (error != 0) {
		gt_live_destroy(live);
		goto unlock;
	}
	instances->all[instances->count++] = live;
	start_pump(top);
unlock:
	pthread_mutex_unlock(&instances->lock);
	return error;
}

int gt_live_instance_remove(struct gt_control_target *target, const char *name, size_t bytes,
			    struct gt_message *message)
{
	struct gt_live *top = live_of(target), *live;
	int error = 0;

	pthread_mutex_lock(&top->instances.lock);
	live = find_locked(top, name, bytes);
	if (live == NULL) {
		gt_message_set(message, "there is no such instance");
		error = GT_ENOENT;
	} else if (atomic_load(&live->instance->users) != 0) {
		gt_message_set(message, "a file of it is open");
		error = GT_EBUSY;
	} else {
		/* From now on its open values are refused, and no text of its buffer is open. */
		atomic_store(&live->instance->removed, true);
		gt_session_leave(top->session, live->instance->who);
		gt_store_freeze(live->instance->store);
		gt_store_clear(live->instance->store);
	}
	pthread_mutex_unlock(&top->instances.lock);
	if (error == 0)
		gt_live_unwatch(live);
	return error;
}

/* References that open files hold on an instance */

void gt_live_hold(struct gt_live *live)
{
	if (live->instance != NULL)
		atomic_fetch_add(&live->instance->users, 1);
}

void gt_live_release(struct gt_live *live)
{
	if (live->instance != NULL)
		atomic_fetch_sub(&live->instance->users, 1);
}
