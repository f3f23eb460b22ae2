/* SPDX-License-Identifier: MIT */
/* See store.h. Making and ending a store, and the settings of its route. */
#include "serve/store/store_private.h"

#include <stdlib.h>

int gt_store_create(struct gt_target *source, uint64_t limit, bool overwrite, struct gt_store **out)
{
	struct gt_store *store = calloc(1, sizeof(*store));

	if (store != NULL)
		store->copy = malloc(source->sub_buffer_bytes);
	if (store == NULL || store->copy == NULL) {
		free(store);
		return GT_ENOMEM;
	}
	pthread_mutex_init(&store->lock, NULL);
	store->users = 1;
	store->source = source;
	store->limit = limit;
	store->overwrite = overwrite;
	store->target = *source;
	store->target.ring = &gt_store_ring;
	store->target.data = store;
	*out = store;
	return 0;
}

int gt_store_create_routed(struct gt_target *source, uint64_t limit, bool overwrite,
			   struct gt_store **out)
{
	int error = gt_store_create(source, limit, overwrite, out);

	if (error != 0)
		return error;
	(*out)->routed = true;
	(*out)->route =
		(struct gt_route){ .source = source, .open = gt_store_open_piece, .data = *out };
	gt_route_init(&(*out)->route);
	if ((*out)->target.sub_buffer_bytes < GT_ROUTE_PIECE_BYTES)
		(*out)->target.sub_buffer_bytes = GT_ROUTE_PIECE_BYTES;
	return 0;
}

struct gt_store *gt_store_get(struct gt_store *store)
{
	pthread_mutex_lock(&store->lock);
	store->users++;
	pthread_mutex_unlock(&store->lock);
	return store;
}

static void free_route(struct gt_store_writer *writer)
{
	if (writer->route == NULL)
		return;
	gt_route_writer_fini(writer->route);
	free(writer->route);
	writer->route = NULL;
}

void gt_store_put(struct gt_store *store)
{
	bool last;

	if (store == NULL)
		return;
	pthread_mutex_lock(&store->lock);
	last = --store->users == 0;
	pthread_mutex_unlock(&store->lock);
	if (!last)
		return;
	gt_store_drop_all(store);
	for (uint32_t i = 0; i < store->count; i++)
		free_route(&store->writers[i]);
	gt_route_fini(&store->route);
	pthread_mutex_destroy(&store->lock);
	free(store->writers);
	free(store->active);
	free(store->copy);
	free(store);
}

void gt_store_set_overwrite(struct gt_store *store, bool overwrite)
{
	pthread_mutex_lock(&store->lock);
	store->overwrite = overwrite;
	pthread_mutex_unlock(&store->lock);
}

void gt_store_want(struct gt_store *store, const struct gt_route_want *want)
{
	pthread_mutex_lock(&store->lock);
	gt_route_set(&store->route, want);
	pthread_mutex_unlock(&store->lock);
}

void gt_store_switch(struct gt_store *store, bool on)
{
	pthread_mutex_lock(&store->lock);
	gt_route_switch(&store->route, on);
	pthread_mutex_unlock(&store->lock);
}

bool gt_store_is_on(struct gt_store *store, uint64_t *switched)
{
	bool on;

	pthread_mutex_lock(&store->lock);
	on = store->route.want.settings.on;
	*switched = store->route.switched;
	pthread_mutex_unlock(&store->lock);
	return on;
}

int gt_store_command_set(struct gt_store *store, const struct gt_control_command *command)
{
	int error;

	pthread_mutex_lock(&store->lock);
	error = gt_route_command_set(&store->route, command);
	pthread_mutex_unlock(&store->lock);
	return error;
}

int gt_store_command_remove(struct gt_store *store, const struct gt_control_command *command)
{
	int error;

	pthread_mutex_lock(&store->lock);
	error = gt_route_command_remove(&store->route, command);
	pthread_mutex_unlock(&store->lock);
	return error;
}

int gt_store_command_read(struct gt_store *store, uint64_t index,
			  struct gt_control_command *command, char *text, size_t room)
{
	int error;

	pthread_mutex_lock(&store->lock);
	error = gt_route_command_read(&store->route, index, command);
	if (error == 0)
		gt_control_command_copy(command, text, room);
	pthread_mutex_unlock(&store->lock);
	return error;
}

int gt_store_set_threads(struct gt_store *store, int which, const uint32_t *tids, uint32_t count)
{
	int error;

	pthread_mutex_lock(&store->lock);
	error = gt_route_set_threads(&store->route, which, tids, count);
	pthread_mutex_unlock(&store->lock);
	return error;
}

uint32_t gt_store_due(struct gt_store *store, uint32_t *cpu)
{
	uint32_t due;

	pthread_mutex_lock(&store->lock);
	due = store->route.due;
	*cpu = store->route.due_cpu;
	pthread_mutex_unlock(&store->lock);
	return due;
}

void gt_store_done(struct gt_store *store)
{
	pthread_mutex_lock(&store->lock);
	store->route.due = 0;
	pthread_mutex_unlock(&store->lock);
}
