/* SPDX-License-Identifier: MIT */
/*
 * Instances of a session (instances/NAME): buffers with a filter, a tracer, tracing_on and readers
 * of their own. An instance is a struct gt_live whose view is a store; what the session has only
 * one of is the top's.
 *
 * The program writes one stream, of what the top and the instances ask for in all (live_ask.c). It is
 * copied out of the ring (live_pull.c); each store takes what its instance asked for
 * (serve/store/route.c). live_private.h has the order of the locks.
 */
#include "serve/live/live_instance_private.h"

#include <stdlib.h>
#include <string.h>

#include "serve/live/live_awake.h"

bool gt_live_is_removed(const struct gt_live *live)
{
	return live->instance != NULL && atomic_load(&live->instance->removed);
}

bool gt_live_instance_on(const struct gt_live *live)
{
	uint64_t switched;

	return gt_store_is_on(live->instance->store, &switched);
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
	else if (error == GT_EEXIST)
		gt_message_set(message, "the function has this command");
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
				  struct gt_control_command *command, char *text, size_t room)
{
	if (index == 0)
		gt_live_pull(live); /* updates the counts */
	return gt_store_command_read(live->instance->store, index, command, text, room);
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
	if (top->mode == GRAFTRACE_MODE_DRAIN)
		return gt_fail(message, GT_ENOTSUP,
			       "records go to a file as they come: there are no other "
			       "buffers (--serve and --overwrite record into a ring)");
	if (bytes == 0 || bytes >= GT_INSTANCE_NAME_BYTES || memchr(name, '/', bytes) != NULL ||
	    name[0] == '.') {
		return gt_fail(message, GT_EINVAL, "this cannot be an instance's name");
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
	error = has_ended(top, message); /* gt_live_instances_end() marks those that are there */
	if (error != 0)
		goto unlock;
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
	gt_live_start_pump_locked(top);
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
