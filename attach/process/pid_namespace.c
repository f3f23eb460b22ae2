/* SPDX-License-Identifier: MIT */
/* PID namespaces: see pid_namespace.h. */
#include "attach/process/pid_namespace.h"
#include "attach/process/proc.h"

#include <stdlib.h>
#include <string.h>

#define STATUS_BYTES 8192

/* NSpid: one number for each namespace, from that of /proc to the thread's own. */
pid_t gt_pid_inside_of_status(const char *status)
{
	const char *at = strstr(status, "\nNSpid:");
	pid_t number = 0;
	char *end;

	if (at == NULL)
		return 0;
	at += sizeof("\nNSpid:") - 1;
	while (*at == '\t' || *at == ' ') {
		number = (pid_t)strtol(at, &end, 10);
		if (end == at)
			break;
		at = end;
	}
	return number;
}

pid_t gt_pid_inside(pid_t pid, pid_t tid)
{
	char text[STATUS_BYTES];
	pid_t inside;

	if (!gt_proc_read(text, sizeof(text), "/proc/%d/task/%d/status", (int)pid, (int)tid))
		return 0;
	inside = gt_pid_inside_of_status(text);
	return inside != 0 ? inside : tid;
}

static int by_tid(const void *left, const void *right)
{
	pid_t a = ((const struct gt_pid_pair *)left)->tid;
	pid_t b = ((const struct gt_pid_pair *)right)->tid;

	return a < b ? -1 : a > b;
}

/* What the map says of a thread; 0: nothing. */
static pid_t known_inside(const struct gt_pid_map *map, pid_t tid)
{
	const struct gt_pid_pair wanted = { .tid = tid }, *found = NULL;

	if (map->count != 0)
		found = bsearch(&wanted, map->pairs, map->count, sizeof(wanted), by_tid);
	return found != NULL ? found->inside : 0;
}

void gt_pid_map_fill(struct gt_pid_map *map, pid_t pid)
{
	DIR *threads = gt_proc_numbers(pid);
	struct gt_pid_map filled = { 0 };
	size_t room = 0;
	pid_t tid;

	while (threads != NULL && (tid = gt_proc_next(threads))) {
		pid_t inside = known_inside(map, tid);

		if (filled.count == room) {
			struct gt_pid_pair *grown = realloc(
				filled.pairs, (room = room * 2 + 64) * sizeof(*filled.pairs));

			if (grown == NULL)
				break;
			filled.pairs = grown;
		}
		filled.pairs[filled.count++] =
			(struct gt_pid_pair){ tid, inside != 0 ? inside : gt_pid_inside(pid, tid) };
	}
	if (threads != NULL)
		closedir(threads);
	if (filled.pairs == NULL)
		return;
	qsort(filled.pairs, filled.count, sizeof(*filled.pairs), by_tid);
	gt_pid_map_free(map);
	*map = filled;
}

pid_t gt_pid_map_find(struct gt_pid_map *map, pid_t pid, pid_t inside)
{
	for (size_t i = 0; i < map->count; i++) {
		struct gt_pid_pair *pair = &map->pairs[i];

		if (pair->inside != inside)
			continue;
		/* Both numbers may have been given out anew. */
		if (gt_pid_inside(pid, pair->tid) == inside)
			return pair->tid;
		pair->inside = 0;
	}
	return 0;
}

void gt_pid_map_free(struct gt_pid_map *map)
{
	free(map->pairs);
	*map = (struct gt_pid_map){ 0 };
}
