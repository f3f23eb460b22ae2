/* SPDX-License-Identifier: MIT */
/*
 * What stat() says of a file of the mount. Owners and modes that users have set, as on tracefs, are
 * kept by path, until the mount ends or the folder is removed. Sorted for binary search. Any thread.
 */
#include "serve/fuse_private.h"
#include "core/trace/hash.h"

#include <stdlib.h>
#include <string.h>

#define CHANGED_MAX 65536 /* files; more than a mount has */

struct changed {
	char *path;
	bool has_mode, has_uid, has_gid;
	mode_t mode;
	uid_t uid;
	gid_t gid;
};

struct gt_fuse_owners {
	pthread_mutex_t lock;
	struct changed *all; /* by path */
	size_t count, room;
};

struct gt_fuse_owners *gt_fuse_owners_create(void)
{
	struct gt_fuse_owners *owners = calloc(1, sizeof(*owners));

	if (owners != NULL)
		pthread_mutex_init(&owners->lock, NULL);
	return owners;
}

void gt_fuse_owners_destroy(struct gt_fuse_owners *owners)
{
	for (size_t i = 0; i < owners->count; i++)
		free(owners->all[i].path);
	free(owners->all);
	pthread_mutex_destroy(&owners->lock);
	free(owners);
}

/* Returns the index of the path, or the one at which it would be inserted. */
static size_t place_of(const struct gt_fuse_owners *owners, const char *path, bool *there)
{
	size_t low = 0, high = owners->count;

	*there = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(owners->all[middle].path, path);

		if (order == 0) {
			*there = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct changed *insert(struct gt_fuse_owners *owners, size_t place, const char *path)
{
	char *copy;

	if (owners->count == CHANGED_MAX)
		return NULL;
	if (owners->count == owners->room) {
		size_t room = owners->room != 0 ? 2 * owners->room : 16;
		struct changed *grown = realloc(owners->all, room * sizeof(*grown));

		if (grown == NULL)
			return NULL;
		owners->all = grown;
		owners->room = room;
	}
	copy = strdup(path);
	if (copy == NULL)
		return NULL;
	memmove(&owners->all[place + 1], &owners->all[place],
		(owners->count - place) * sizeof(*owners->all));
	owners->count++;
	owners->all[place] = (struct changed){ .path = copy };
	return &owners->all[place];
}

int gt_fuse_owners_set(struct gt_fuse_owners *owners, const char *path, const struct stat *wanted,
		       int which)
{
	struct changed *changed;
	size_t place;
	bool there;

	pthread_mutex_lock(&owners->lock);
	place = place_of(owners, path, &there);
	changed = there ? &owners->all[place] : insert(owners, place, path);
	if (changed != NULL && which & FUSE_SET_ATTR_MODE) {
		changed->has_mode = true;
		changed->mode = wanted->st_mode & 07777;
	}
	if (changed != NULL && which & FUSE_SET_ATTR_UID) {
		changed->has_uid = true;
		changed->uid = wanted->st_uid;
	}
	if (changed != NULL && which & FUSE_SET_ATTR_GID) {
		changed->has_gid = true;
		changed->gid = wanted->st_gid;
	}
	pthread_mutex_unlock(&owners->lock);
	return changed != NULL ? 0 : GT_ENOMEM;
}

void gt_fuse_owners_apply(struct gt_fuse_owners *owners, const char *path, struct stat *state)
{
	const struct changed *changed;
	size_t place;
	bool there;

	pthread_mutex_lock(&owners->lock);
	place = place_of(owners, path, &there);
	changed = there ? &owners->all[place] : NULL;
	if (changed != NULL && changed->has_mode)
		state->st_mode = (state->st_mode & S_IFMT) | changed->mode;
	if (changed != NULL && changed->has_uid)
		state->st_uid = changed->uid;
	if (changed != NULL && changed->has_gid)
		state->st_gid = changed->gid;
	pthread_mutex_unlock(&owners->lock);
}

void gt_fuse_owners_forget(struct gt_fuse_owners *owners, const char *folder)
{
	size_t bytes = strlen(folder), kept = 0;

	pthread_mutex_lock(&owners->lock);
	for (size_t i = 0; i < owners->count; i++) {
		const char *path = owners->all[i].path;

		if (strncmp(path, folder, bytes) == 0 &&
		    (path[bytes] == '/' || path[bytes] == '\0'))
			free(owners->all[i].path);
		else
			owners->all[kept++] = owners->all[i];
	}
	owners->count = kept;
	pthread_mutex_unlock(&owners->lock);
}

static ino_t number_of(const char *path)
{
	uint64_t hash = gt_hash64_text(GT_HASH64_BEGIN, path);

	return hash > FUSE_ROOT_ID ? (ino_t)hash : 2;
}

/* As Linux's TRACE_MODE_READ and TRACE_MODE_WRITE, and tracefs's folders. */
mode_t gt_fuse_mode(const struct gt_fuse *fuse, const struct gt_control_node *node)
{
	unsigned access;

	if (node->file == NULL)
		return S_IFDIR |
		       (node->directory_bytes == 0 && !node->instances ? fuse->mode : 0750);
	access = gt_control_access(node->target, node->file);
	if (access == GT_CONTROL_WRITE)
		return S_IFREG | 0220;
	return S_IFREG | (access & GT_CONTROL_WRITE ? 0640 : 0440);
}

void gt_fuse_describe(const struct gt_fuse *fuse, const char *path, mode_t mode, struct stat *state)
{
	*state = (struct stat){
		.st_ino = path[0] == '\0' ? FUSE_ROOT_ID : number_of(path),
		.st_mode = mode,
		.st_nlink = S_ISDIR(mode) ? 2 : 1,
		.st_uid = fuse->uid,
		.st_gid = fuse->gid,
		.st_blksize = 4096,
		.st_atim = fuse->since,
		.st_mtim = fuse->since,
		.st_ctim = fuse->since,
	};
	gt_fuse_owners_apply(fuse->owners, path, state);
}
