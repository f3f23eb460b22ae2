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
#include "attach/process/pages.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOKED_MOST (1ull << 30)
/* … and with the world stopped (some 30 ms), beside the places. */
#define STOPPED_MOST (128ull << 20)
#define AT_ONCE	     (1u << 20)
#define PAGES	     512u
/* Of a saved context: before rip one word that is needed, behind it two. */
#define BEFORE 1u
#define BEHIND 2u
#define SHARED ((BEFORE + BEHIND) * 8)
/* A place, and how far from where registers were seen others of the same stack may be. */
#define PLACE_BYTES (64u << 10)
#define NEAR_BYTES  (32u << 10)
/* No frame of a signal is larger: registers of every extension, and the red zone. */
#define FRAME_MOST (64u << 10)

struct search {
	const struct gt_process *process;
	const struct gt_maps *maps;
	/* words[0 … count) stand at `at`. */
	int (*look)(struct search *search, const uint64_t *words, size_t count, uint64_t at);
	struct gt_suspended_places *found;
	const struct gt_suspended_places *places;
	const struct gt_stopped_threads *threads;
	uint64_t *stacks; /* stack pointers of the threads, [0 … stack_count) */
	size_t stack_count;
	bool copies;
	bool (*wants)(const void *data, uint64_t rip);
	int (*each)(void *data, const struct gt_frame_place *place);
	void *data;
	uint64_t left; /* to look through */
	bool resident; /* only what is in memory: nothing is read from a disk while the world is stopped */
	int pagemap;
	uint64_t *words;
};

bool gt_suspended_known(const struct gt_tracee *tracee)
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

/* Pages that lie one behind the other. Pieces overlap by what belongs together. What has been unmapped meanwhile
 * is passed over page by page. */
static int look_at_pages(struct search *search, uint64_t from, uint64_t to)
{
	uint64_t most = AT_ONCE;
	int error = 0;

	while (!error && from < to && search->left) {
		const bool last = to - from <= most;
		const uint64_t bytes = last ? to - from : most;

		search->left = search->left > bytes ? search->left - bytes : 0;
		if (gt_process_read(search->process, from, search->words, bytes) == 0) {
			error = search->look(search, search->words, bytes / 8, from);
			from += last ? bytes : bytes - SHARED;
		} else if (bytes > GT_PAGE_BYTES) {
			most = GT_PAGE_BYTES;
		} else {
			from = (from / GT_PAGE_BYTES + 1) * GT_PAGE_BYTES;
		}
	}
	return error;
}

/* Those of its pages that are in memory, or (not: resident) were. Whole pages. */
static int look_at_range(struct search *search, uint64_t start, uint64_t end)
{
	uint64_t entries[PAGES], begun = 0;
	int error = 0;

	for (uint64_t at = start; !error && at < end && search->left;) {
		uint64_t pages = (end - at) / GT_PAGE_BYTES;

		if (pages > PAGES)
			pages = PAGES;
		gt_pages_read(search->pagemap, at, entries, pages);
		for (uint64_t i = 0; !error && i < pages; i++, at += GT_PAGE_BYTES) {
			const bool is_there = search->resident ? gt_page_is_resident(entries[i])
							       : gt_page_is_there(entries[i]);

			if (is_there && !begun)
				begun = at;
			if (!is_there && begun) {
				error = look_at_pages(search, begun, at);
				begun = 0;
			}
		}
	}
	return begun && !error ? look_at_pages(search, begun, end) : error;
}

static bool is_own_memory(const struct gt_map *map)
{
	return map->writable && map->readable && !map->shared;
}

static int begin(struct search *search)
{
	search->words = malloc(AT_ONCE);
	if (search->words == NULL)
		return GT_ENOMEM;
	search->pagemap = gt_pages_open(search->process->pid);
	return 0;
}

static void end(struct search *search)
{
	if (search->pagemap >= 0)
		close(search->pagemap);
	free(search->words);
}

static int by_size(const void *left, const void *right)
{
	const struct gt_map *a = left, *b = right;
	const uint64_t of_a = a->end - a->start, of_b = b->end - b->start;

	return of_a < of_b ? -1 : of_a > of_b;
}

/* All of the process's own memory, small mappings first: what stacks lie in. */
static int look_at_all(struct search *search, const struct gt_maps *maps)
{
	struct gt_map *sorted = malloc((maps->count + 1) * sizeof(*sorted));
	int error = sorted != NULL ? 0 : GT_ENOMEM;

	if (!error && maps->count) {
		memcpy(sorted, maps->entries, maps->count * sizeof(*sorted));
		qsort(sorted, maps->count, sizeof(*sorted), by_size);
	}
	for (size_t i = 0; !error && i < maps->count; i++)
		if (is_own_memory(&sorted[i]))
			error = look_at_range(search, sorted[i].start, sorted[i].end);
	free(sorted);
	return error;
}

/* ---- while the process runs ---- */

static int add_place(struct gt_suspended_places *places, uint64_t at, uint64_t frame)
{
	const struct gt_suspended_place place = { at / PLACE_BYTES * PLACE_BYTES, frame };
	struct gt_suspended_place *last = places->count ? &places->all[places->count - 1] : NULL;

	if (last != NULL && last->at == place.at) {
		last->frame = last->frame ? last->frame : frame;
		return 0;
	}
	if (places->count == places->room) {
		const size_t room = places->room ? places->room * 2 : 64;
		struct gt_suspended_place *bigger = realloc(places->all, room * sizeof(*bigger));

		if (bigger == NULL)
			return GT_ENOMEM;
		places->all = bigger;
		places->room = room;
	}
	places->all[places->count++] = place;
	return 0;
}

static int note_places(struct search *search, const uint64_t *words, size_t count, uint64_t at)
{
	int error = 0;

	for (size_t i = BEFORE; !error && i + BEHIND < count; i++) {
		const uint64_t rip_at = at + i * 8, rsp = words[i - BEFORE];
		const bool is_frame = rsp > rip_at && rsp - rip_at < FRAME_MOST;

		if (!gt_world_is_state(words[i + 1], words[i + 2]))
			continue;
		error = add_place(search->found, rip_at - NEAR_BYTES, 0);
		if (!error)
			error = add_place(search->found, rip_at, is_frame ? rip_at : 0);
		if (!error)
			error = add_place(search->found, rip_at + NEAR_BYTES, 0);
	}
	return error;
}

static int by_address(const void *left, const void *right)
{
	const struct gt_suspended_place *a = left, *b = right;

	return a->at < b->at ? -1 : a->at > b->at;
}

static void sort(struct gt_suspended_places *places)
{
	size_t kept = 0;

	if (places->count)
		qsort(places->all, places->count, sizeof(*places->all), by_address);
	for (size_t i = 0; i < places->count; i++) {
		struct gt_suspended_place *place = &places->all[i];

		if (kept == 0 || places->all[kept - 1].at != place->at)
			places->all[kept++] = *place;
		else if (place->frame)
			places->all[kept - 1].frame = place->frame;
	}
	places->count = kept;
}

int gt_suspended_look(const struct gt_process *process, struct gt_suspended_places *places)
{
	struct search search = {
		.process = process, .look = note_places, .found = places, .left = LOOKED_MOST
	};
	struct gt_maps maps;
	int error = gt_process_maps(process->pid, &maps, NULL);

	places->count = 0;
	if (error)
		return error;
	error = begin(&search);
	if (!error)
		error = look_at_all(&search, &maps);
	if (search.words != NULL)
		end(&search);
	gt_maps_free(&maps);
	sort(places);
	return error;
}

void gt_suspended_free(struct gt_suspended_places *places)
{
	free(places->all);
	*places = (struct gt_suspended_places){ 0 };
}

/* ---- with the world stopped ---- */

bool gt_suspended_is_frame(const struct gt_maps *maps, const struct gt_frame_place *place)
{
	const struct gt_map *stack = gt_maps_find(maps, place->rsp);

	return stack != NULL && place->rip_at >= stack->start && place->rip_at < place->rsp &&
	       place->rsp - place->rip_at < FRAME_MOST;
}

/* Where the threads run. */
static void find_stacks(struct search *search)
{
	struct user_regs_struct registers;

	search->stacks = malloc((search->threads->count + 1) * sizeof(*search->stacks));
	for (size_t i = 0; search->stacks != NULL && i < search->threads->count; i++)
		if (!search->threads->late[i] &&
		    gt_thread_registers(search->threads->tids[i], &registers) == 0)
			search->stacks[search->stack_count++] = registers.rsp;
}

static bool is_run(const struct search *search, const struct gt_map *stack)
{
	for (size_t i = 0; i < search->stack_count; i++)
		if (search->stacks[i] >= stack->start && search->stacks[i] < stack->end)
			return true;
	return false;
}

/* Whether a signal's frame was seen on a stack on which no thread runs now. */
static bool waits_elsewhere(struct search *search)
{
	const struct gt_map *stack;

	for (size_t i = 0; i < search->places->count; i++) {
		if (!search->places->all[i].frame)
			continue;
		if (search->stacks == NULL)
			find_stacks(search);
		stack = gt_maps_find(search->maps, search->places->all[i].frame);
		if (stack == NULL || !is_run(search, stack))
			return true;
	}
	return false;
}

static int call_back(struct search *search, const uint64_t *words, size_t count, uint64_t at)
{
	int error = 0;

	for (size_t i = BEFORE; !error && i + BEHIND < count; i++) {
		const struct gt_frame_place place = { at + i * 8, words[i], words[i - BEFORE] };
		const struct gt_map *stack;

		if (!gt_world_is_state(words[i + 1], words[i + 2]) ||
		    !search->wants(search->data, place.rip))
			continue;
		stack = gt_maps_find(search->maps, place.rsp);
		if (stack != NULL && stack->writable &&
		    (search->copies || gt_suspended_is_frame(search->maps, &place)))
			error = search->each(search->data, &place);
	}
	return error;
}

/* Those of the places that lie in a mapping, from *next on. Places overlap their neighbours by what belongs together. */
static int look_at_places(struct search *search, const struct gt_map *map, size_t *next)
{
	const struct gt_suspended_places *places = search->places;
	uint64_t from, to;
	int error = 0;

	while (*next < places->count && places->all[*next].at + PLACE_BYTES <= map->start)
		(*next)++;
	for (size_t i = *next; !error && i < places->count && places->all[i].at < map->end;
	     i = *next) {
		from = places->all[i].at;
		for (to = from; *next < places->count && places->all[*next].at == to; (*next)++)
			to += PLACE_BYTES;
		error = look_at_range(search, from > map->start ? from : map->start,
				      to < map->end ? to : map->end);
		/* the next mapping may begin in the last of them */
		if (to > map->end) {
			*next = i + (map->end - from) / PLACE_BYTES;
			break;
		}
	}
	return error;
}

int gt_suspended_each(const struct gt_process *process, const struct gt_maps *maps,
		      const struct gt_suspended_places *places,
		      const struct gt_stopped_threads *threads, bool copies,
		      bool (*wants)(const void *data, uint64_t rip),
		      int (*each)(void *data, const struct gt_frame_place *place), void *data)
{
	struct search search = { .process = process,
				 .maps = maps,
				 .look = call_back,
				 .places = places,
				 .threads = threads,
				 .copies = copies,
				 .wants = wants,
				 .each = each,
				 .data = data,
				 .left = ~0ull };
	size_t next = 0;
	int error = begin(&search);

	for (size_t i = 0; !error && i < maps->count; i++)
		if (is_own_memory(&maps->entries[i]))
			error = look_at_places(&search, &maps->entries[i], &next);
	/* Not blindly: a page that is not there may have to come from a thread that is stopped. */
	if (!error && threads != NULL && search.pagemap >= 0 &&
	    (copies || waits_elsewhere(&search))) {
		search.left = STOPPED_MOST;
		search.resident = true;
		error = look_at_all(&search, maps);
	}
	free(search.stacks);
	if (search.words != NULL)
		end(&search);
	return error;
}
