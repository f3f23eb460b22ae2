/* SPDX-License-Identifier: MIT */
/*
 * Contexts that nobody runs: see suspended.h.
 *
 * They are known by the order in which the kernel saves registers for a handler (struct sigcontext),
 * wherever that stands, copies included: rsp, rip, eflags, then the segments, of which cs is that
 * of 64-bit programs. What a call of swapcontext saves needs no moving: that is a return address.
 */
#define _GNU_SOURCE
#include "attach/agent/suspended.h"
#include "attach/agent/catalog.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE	    4096u
#define LOOKED_MOST (256ull << 20)
#define AT_ONCE	    (1u << 20)
/* Of a saved context: before rip one word that is needed, behind it two. */
#define BEFORE 1u
#define BEHIND 2u

struct search {
	const struct gt_process *process;
	const struct gt_maps *maps;
	bool (*wants)(const void *data, uint64_t rip);
	int (*each)(void *data, const struct gt_frame_place *place);
	void *data;
	uint64_t left; /* to look through */
	int pagemap;
	uint64_t *words;
};

bool gt_suspended_possible(const struct gt_tracee *tracee)
{
	for (size_t i = 0; i < tracee->object_count; i++) {
		struct gt_catalog_file *file = tracee->objects[i]->file;

		if (tracee->objects[i]->gone || file->object == NULL)
			continue;
		gt_catalog_hooks(file);
		if (file->switches)
			return true;
	}
	return false;
}

/* words[0 … count) stand at `at`. */
static int look_at_words(struct search *search, const uint64_t *words, size_t count, uint64_t at)
{
	int error = 0;

	for (size_t i = BEFORE; !error && i + BEHIND < count; i++) {
		const struct gt_frame_place place = { at + i * 8, words[i], words[i - BEFORE] };
		const struct gt_map *stack;

		if (!gt_world_is_state(words[i + 1], words[i + 2]) ||
		    !search->wants(search->data, place.rip))
			continue;
		stack = gt_maps_find(search->maps, place.rsp);
		if (stack != NULL && stack->writable)
			error = search->each(search->data, &place);
	}
	return error;
}

/* Pages that lie one behind the other. Pieces overlap by what belongs together. */
static int look_at_pages(struct search *search, uint64_t from, uint64_t to)
{
	const uint64_t shared = (BEFORE + BEHIND) * 8;
	int error = 0;

	while (!error && from < to && search->left) {
		uint64_t bytes = to - from < AT_ONCE ? to - from : AT_ONCE;

		if (gt_process_read(search->process, from, search->words, bytes))
			return 0;
		error = look_at_words(search, search->words, bytes / 8, from);
		search->left = search->left > bytes ? search->left - bytes : 0;
		from += bytes < AT_ONCE ? bytes : bytes - shared;
	}
	return error;
}

/* Those of its pages that are in memory, or were. */
static int look_at_map(struct search *search, const struct gt_map *map)
{
	uint64_t present[512], begun = 0;
	int error = 0;

	for (uint64_t at = map->start; !error && at < map->end && search->left;) {
		uint64_t pages = (map->end - at) / PAGE, i;

		if (pages > sizeof(present) / sizeof(*present))
			pages = sizeof(present) / sizeof(*present);
		if (pread(search->pagemap, present, pages * 8, (off_t)(at / PAGE * 8)) !=
		    (ssize_t)(pages * 8))
			memset(present, 0xff, pages * 8);
		for (i = 0; !error && i < pages; i++, at += PAGE) {
			bool is_there = present[i] >> 62;

			if (is_there && !begun)
				begun = at;
			if (!is_there && begun) {
				error = look_at_pages(search, begun, at);
				begun = 0;
			}
		}
	}
	return begun && !error ? look_at_pages(search, begun, map->end) : error;
}

int gt_suspended_each(const struct gt_process *process, const struct gt_maps *maps,
		      bool (*wants)(const void *data, uint64_t rip),
		      int (*each)(void *data, const struct gt_frame_place *place), void *data)
{
	struct search search = { process, maps, wants, each, data, LOOKED_MOST, -1, NULL };
	char path[64];
	int error = 0;

	search.words = malloc(AT_ONCE);
	if (search.words == NULL)
		return GT_ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)process->pid);
	search.pagemap = open(path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; !error && i < maps->count; i++)
		if (maps->entries[i].writable && maps->entries[i].readable &&
		    !maps->entries[i].shared)
			error = look_at_map(&search, &maps->entries[i]);
	if (search.pagemap >= 0)
		close(search.pagemap);
	free(search.words);
	return error;
}
