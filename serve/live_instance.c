/* SPDX-License-Identifier: MIT */
/*
 * Instances of a session (instances/NAME): a buffer of its own, filled from the one stream of
 * records that the session makes, with a filter, a tracer, tracing_on and readers of its own. An
 * instance is a struct gt_live whose view is a store; what the session has only one of is the
 * top's.
 *
 * What follows from one stream:
 *  - all who trace have the same tracer; the top's may be nop, then its own trace stays empty;
 *  - an instance shows of what the top's filters, depth, threshold and tracing_on let through the
 *    functions that its own filter names, from the time on at which it was switched on;
 *  - records are lost to all when the ring is full. Where the top traces nothing, what the
 * instances have copied leaves the ring at once.
 *
 * The copying is done by a thread, a few times a second, and whenever something is read, emptied or
 * consumed. Locks, in this order: change, pipe_lock, instances.lock, a store's own.
 */
#include "serve/live_instance.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PUMP_NS	     20000000
#define NAME_BYTES   64
#define WINDOWS_MOST 4096

/* What an instance shows; replaced as a whole, the old ones stay for whoever looks at them. */
struct shown {
	struct shown *older;
	struct gt_globs only, leave_out;
	struct gt_filter_window *windows;
	uint32_t window_count;
};

struct gt_live_instance {
	char name[NAME_BYTES];
	struct gt_store *store;
	atomic_bool removed;
	atomic_uint users;   /* texts and lists that are open */
	struct shown *shown; /* under the live's lock, as are those below */
	bool on;
	bool recording; /* the last window is open */
	struct gt_filter_window *windows;
	uint32_t window_count, window_room;
};

bool gt_live_is_removed(const struct gt_live *live)
{
	return live->instance != NULL && atomic_load(&live->instance->removed);
}

bool gt_live_instance_on(const struct gt_live *live)
{
	return live->instance->on;
}

void gt_live_instance_look(const struct gt_live *live, struct gt_text_look *look)
{
	const struct shown *shown = live->instance->shown;

	look->only = gt_globs_words(&shown->only);
	look->leave_out = gt_globs_words(&shown->leave_out);
	look->windows = shown->windows;
	look->window_count = shown->window_count;
}

/* Copying */

void gt_live_pull(struct gt_live *live)
{
	struct gt_live *top = live->top != NULL ? live->top : live;
	struct gt_live_instances *instances = &top->instances;
	struct gt_store *first = NULL;

	pthread_mutex_lock(&instances->lock);
	for (uint32_t i = 0; i < instances->count; i++) {
		struct gt_live *one = instances->all[i];

		if (gt_live_is_removed(one) || one->tracer == GRAFTRACE_TRACER_NOP)
			continue;
		gt_store_pull(one->instance->store);
		if (first == NULL)
			first = one->instance->store;
	}
	/* What the first one has copied, all have. */
	if (first != NULL && atomic_load(&top->nothing))
		gt_store_consume_source(first);
	pthread_mutex_unlock(&instances->lock);
}

static void *pump(void *data)
{
	struct gt_live *top = data;
	struct gt_live_instances *instances = &top->instances;
	struct timespec until;

	pthread_mutex_lock(&instances->lock);
	while (!instances->stop) {
		pthread_mutex_unlock(&instances->lock);
		gt_live_pull(top);
		pthread_mutex_lock(&instances->lock);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += PUMP_NS;
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

/* Under instances.lock. Without a thread, copies are made when something is read. */
static void start_pump(struct gt_live *top)
{
	sigset_t all, old;

	if (top->instances.pumping)
		return;
	sigfillset(&all); /* signals are for the threads of the caller */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	top->instances.pumping = pthread_create(&top->instances.pump, NULL, pump, top) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* What is shown */

/* Under the live's lock. */
static int note_window(struct gt_live_instance *instance, bool recording)
{
	uint64_t now = __builtin_ia32_rdtsc();

	if (instance->recording == recording)
		return 0;
	if (!recording) {
		instance->windows[instance->window_count - 1].to = now;
		instance->recording = false;
		return 0;
	}
	if (instance->window_count == WINDOWS_MOST) /* the oldest go */
		memmove(instance->windows, instance->windows + 1,
			--instance->window_count * sizeof(*instance->windows));
	if (instance->window_count == instance->window_room) {
		uint32_t room = instance->window_room != 0 ? instance->window_room * 2 : 8;
		void *grown = realloc(instance->windows, room * sizeof(*instance->windows));

		if (grown == NULL)
			return GT_ENOMEM;
		instance->windows = grown;
		instance->window_room = room;
	}
	instance->windows[instance->window_count++] = (struct gt_filter_window){ now, UINT64_MAX };
	instance->recording = true;
	return 0;
}

int gt_live_instance_change(struct gt_live *live)
{
	struct gt_live_instance *instance = live->instance;
	struct shown *shown = calloc(1, sizeof(*shown));
	int error = GT_ENOMEM;

	pthread_mutex_lock(&live->lock);
	if (shown != NULL &&
	    note_window(instance, instance->on && live->tracer != GRAFTRACE_TRACER_NOP) == 0) {
		shown->window_count = instance->window_count;
		shown->windows = calloc(shown->window_count + 1, sizeof(*shown->windows));
		if (shown->windows != NULL && shown->window_count != 0)
			memcpy(shown->windows, instance->windows,
			       shown->window_count * sizeof(*shown->windows));
		if (shown->windows != NULL &&
		    gt_globs_add_all(&shown->only,
				     gt_globs_words(&live->lists[GT_CONTROL_FILTER])) &&
		    gt_globs_add_all(&shown->leave_out,
				     gt_globs_words(&live->lists[GT_CONTROL_NOTRACE])))
			error = 0;
	}
	if (error == 0) {
		shown->older = instance->shown;
		instance->shown = shown;
	}
	pthread_mutex_unlock(&live->lock);
	if (error != 0 && shown != NULL) {
		gt_globs_clear(&shown->only);
		gt_globs_clear(&shown->leave_out);
		free(shown->windows);
		free(shown);
	}
	return error;
}

int gt_live_instance_set_on(struct gt_live *live, bool on, struct gt_message *message)
{
	pthread_mutex_lock(&live->lock);
	live->instance->on = on;
	pthread_mutex_unlock(&live->lock);
	return gt_live_instance_change(live) == 0 ? 0 : no_memory(message);
}

void gt_live_instance_set_overwrite(struct gt_live *live, bool overwrite)
{
	gt_store_set_overwrite(live->instance->store, overwrite);
}

void gt_live_instance_clear(struct gt_live *live)
{
	gt_store_clear(live->instance->store);
}

/* Tracers */

int gt_live_choose_tracer(struct gt_live *live, enum graftrace_tracer tracer,
			  struct gt_message *message)
{
	struct gt_live *top = live->top != NULL ? live->top : live;
	struct gt_live_instances *instances = &top->instances;
	enum graftrace_tracer engine = tracer, own = live == top ? tracer : top->tracer;
	int error = 0;

	pthread_mutex_lock(&instances->lock);
	for (uint32_t i = 0; i <= instances->count; i++) {
		struct gt_live *one = i == 0 ? top : instances->all[i - 1];

		if (one == live || gt_live_is_removed(one) || one->tracer == GRAFTRACE_TRACER_NOP)
			continue;
		if (tracer != GRAFTRACE_TRACER_NOP && one->tracer != tracer) {
			gt_message_set(message,
				       "all who trace a program have the same tracer: %s has "
				       "another one",
				       one == top ? "the top" : one->instance->name);
			error = GT_EBUSY;
		}
		if (engine == GRAFTRACE_TRACER_NOP)
			engine = one->tracer;
	}
	if (error == 0 && engine != instances->tracer)
		error = gt_session_set_tracer(top->session, engine, message);
	/* What was written before is not copied. */
	if (error == 0 && live->instance != NULL && live->tracer == GRAFTRACE_TRACER_NOP)
		error = gt_store_begin_now(live->instance->store);
	if (error == 0) {
		instances->tracer = engine;
		atomic_store(&top->nothing,
			     own == GRAFTRACE_TRACER_NOP && engine != GRAFTRACE_TRACER_NOP);
	}
	pthread_mutex_unlock(&instances->lock);
	return error;
}

/* Life */

void gt_live_instances_init(struct gt_live *top)
{
	pthread_mutex_init(&top->instances.lock, NULL);
	pthread_cond_init(&top->instances.wake, NULL);
	top->instances.tracer = top->tracer;
}

static void free_instance(struct gt_live_instance *instance)
{
	if (instance == NULL)
		return;
	while (instance->shown != NULL) {
		struct shown *shown = instance->shown;

		instance->shown = shown->older;
		gt_globs_clear(&shown->only);
		gt_globs_clear(&shown->leave_out);
		free(shown->windows);
		free(shown);
	}
	gt_store_put(instance->store);
	free(instance->windows);
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
	pthread_cond_destroy(&instances->wake);
	pthread_mutex_destroy(&instances->lock);
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
	instance->on = true;
	if (gt_store_create(gt_session_target(top->session), top->buffer_bytes, true,
			    &instance->store) == 0 &&
	    gt_store_begin_now(instance->store) == 0)
		return instance;
	free_instance(instance);
	return NULL;
}

int gt_live_instance_make(struct gt_control_target *target, const char *name, size_t bytes,
			  struct gt_message *message)
{
	struct gt_live *top = live_of(target), *live = NULL;
	struct gt_live_instances *instances = &top->instances;
	struct gt_live_instance *instance = NULL;
	struct gt_live **grown;
	int error = 0;

	if (bytes == 0 || bytes >= NAME_BYTES || memchr(name, '/', bytes) != NULL ||
	    name[0] == '.') {
		gt_message_set(message, "this cannot be an instance's name");
		return GT_EINVAL;
	}
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
	if (error == 0)
		error = gt_live_instance_change(live);
	if (error != 0) {
		if (live != NULL)
			gt_live_destroy(live);
		else
			free_instance(instance);
		error = no_memory(message);
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
		atomic_store(&live->instance->removed, true);
	}
	pthread_mutex_unlock(&top->instances.lock);
	if (error != 0)
		return error;
	/* Whoever has a value of it open is refused from now on; nobody reads its buffer. */
	gt_live_choose_tracer(live, GRAFTRACE_TRACER_NOP, message);
	gt_store_freeze(live->instance->store);
	gt_store_clear(live->instance->store);
	return 0;
}

/* What is open of an instance */

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
