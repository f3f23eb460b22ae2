/* SPDX-License-Identifier: MIT */
/*
 * Inode numbers and paths of the mount. A number is free again after the kernel's FORGET. Any
 * thread.
 */
#include "serve/fuse_private.h"
#include "core/trace/hash.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_HEADS 256

static size_t head_of(const struct gt_fuse_nodes *nodes, const char *path)
{
	uint64_t hash = gt_hash64_text(GT_HASH64_BEGIN, path);

	return (size_t)(hash ^ hash >> 32) & (nodes->head_count - 1);
}

int gt_fuse_nodes_init(struct gt_fuse_nodes *nodes)
{
	*nodes = (struct gt_fuse_nodes){ .room = 64, .count = 2, .head_count = FIRST_HEADS };
	nodes->all = calloc(nodes->room, sizeof(*nodes->all));
	nodes->heads = calloc(nodes->head_count, sizeof(*nodes->heads));
	pthread_mutex_init(&nodes->lock, NULL);
	if (nodes->all != NULL && nodes->heads != NULL)
		nodes->all[FUSE_ROOT_ID].path = strdup("");
	if (nodes->all != NULL && nodes->heads != NULL && nodes->all[FUSE_ROOT_ID].path != NULL)
		return 0;
	gt_fuse_nodes_fini(nodes);
	return GT_ENOMEM;
}

void gt_fuse_nodes_fini(struct gt_fuse_nodes *nodes)
{
	if (nodes->room == 0)
		return;
	for (size_t i = 0; nodes->all != NULL && i < nodes->count; i++)
		free(nodes->all[i].path);
	free(nodes->all);
	free(nodes->heads);
	pthread_mutex_destroy(&nodes->lock);
	*nodes = (struct gt_fuse_nodes){ .all = NULL };
}

const char *gt_fuse_nodes_path(struct gt_fuse_nodes *nodes, fuse_ino_t number)
{
	const char *path;

	pthread_mutex_lock(&nodes->lock);
	path = number < nodes->count ? nodes->all[number].path : NULL;
	pthread_mutex_unlock(&nodes->lock);
	return path;
}

/* Enlarges the hash table, so that its chains stay short. Without memory they grow. */
static void spread(struct gt_fuse_nodes *nodes)
{
	size_t *heads = calloc(nodes->head_count * 2, sizeof(*heads));

	if (heads == NULL)
		return;
	free(nodes->heads);
	nodes->heads = heads;
	nodes->head_count *= 2;
	for (size_t i = FUSE_ROOT_ID + 1; i < nodes->count; i++) {
		size_t head;

		if (nodes->all[i].path == NULL)
			continue;
		head = head_of(nodes, nodes->all[i].path);
		nodes->all[i].next = nodes->heads[head];
		nodes->heads[head] = i;
	}
}

static size_t make_room(struct gt_fuse_nodes *nodes)
{
	size_t number = nodes->free;

	if (number != 0) {
		nodes->free = nodes->all[number].next;
		return number;
	}
	if (nodes->count == nodes->room) {
		struct gt_fuse_node *all = realloc(nodes->all, nodes->room * 2 * sizeof(*all));

		if (all == NULL)
			return 0;
		memset(all + nodes->room, 0, nodes->room * sizeof(*all));
		nodes->all = all;
		nodes->room *= 2;
		if (nodes->room > nodes->head_count)
			spread(nodes);
	}
	return nodes->count++;
}

/* The number of a path; 0: it has none. */
static size_t number_locked(const struct gt_fuse_nodes *nodes, const char *path)
{
	size_t number = nodes->heads[head_of(nodes, path)];

	while (number != 0 && strcmp(nodes->all[number].path, path) != 0)
		number = nodes->all[number].next;
	return number;
}

static fuse_ino_t take_locked(struct gt_fuse_nodes *nodes, const char *path, mode_t mode)
{
	size_t head;
	size_t number = number_locked(nodes, path);
	char *copy;

	if (number != 0) {
		nodes->all[number].lookups++;
		nodes->all[number].mode = mode;
		return number;
	}
	copy = strdup(path);
	number = copy != NULL ? make_room(nodes) : 0;
	if (number == 0) {
		free(copy);
		return 0;
	}
	head = head_of(nodes, path);
	nodes->all[number] = (struct gt_fuse_node){
		.path = copy, .lookups = 1, .mode = mode, .next = nodes->heads[head]
	};
	nodes->heads[head] = number;
	return number;
}

fuse_ino_t gt_fuse_nodes_take(struct gt_fuse_nodes *nodes, const char *path, mode_t mode)
{
	fuse_ino_t number;

	if (path[0] == '\0')
		return FUSE_ROOT_ID;
	pthread_mutex_lock(&nodes->lock);
	number = take_locked(nodes, path, mode);
	pthread_mutex_unlock(&nodes->lock);
	return number;
}

mode_t gt_fuse_nodes_mode(struct gt_fuse_nodes *nodes, const char *path)
{
	mode_t mode;

	pthread_mutex_lock(&nodes->lock);
	mode = nodes->all[number_locked(nodes, path)].mode;
	pthread_mutex_unlock(&nodes->lock);
	return mode;
}

void gt_fuse_nodes_count_reader(struct gt_fuse_nodes *nodes, fuse_ino_t number, int change)
{
	pthread_mutex_lock(&nodes->lock);
	if (number < nodes->count)
		nodes->all[number].readers += (unsigned)change;
	pthread_mutex_unlock(&nodes->lock);
}

bool gt_fuse_nodes_has_reader(struct gt_fuse_nodes *nodes, fuse_ino_t number)
{
	bool has;

	pthread_mutex_lock(&nodes->lock);
	has = number < nodes->count && nodes->all[number].readers > 0;
	pthread_mutex_unlock(&nodes->lock);
	return has;
}

static void forget_locked(struct gt_fuse_nodes *nodes, fuse_ino_t number, uint64_t lookups)
{
	struct gt_fuse_node *node;
	size_t *link;

	if (number <= FUSE_ROOT_ID || number >= nodes->count || nodes->all[number].path == NULL)
		return;
	node = &nodes->all[number];
	node->lookups -= lookups < node->lookups ? lookups : node->lookups;
	if (node->lookups != 0)
		return;
	for (link = &nodes->heads[head_of(nodes, node->path)]; *link != number;
	     link = &nodes->all[*link].next)
		continue;
	*link = node->next;
	free(node->path);
	*node = (struct gt_fuse_node){ .next = nodes->free };
	nodes->free = number;
}

void gt_fuse_nodes_forget(struct gt_fuse_nodes *nodes, fuse_ino_t number, uint64_t lookups)
{
	pthread_mutex_lock(&nodes->lock);
	forget_locked(nodes, number, lookups);
	pthread_mutex_unlock(&nodes->lock);
}
