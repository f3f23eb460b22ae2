/* SPDX-License-Identifier: MIT */
/*
 * Detaching, B, and unwinders at work.
 *
 * An unwinder walks a stack twice: a search finds the frame that handles, the second walk cleans up
 * and lands there. It knows that frame by the CFA of what it has called, and a stub's is 8 bytes
 * above that of the function that it stands for (region.c says why). So a slot that comes back
 * between the two walks, or within a step, makes the second one miss its frame. Therefore
 *
 *  - a slot that an unwinder stands at (it holds the CFA of the call or of its stub) is left for
 * the next round; so are its notes, where the stub's return point stands as in a slot;
 *  - where a slot comes back, exceptions whose handler was found by its stub's CFA get the call's
 *    (detach_exceptions.c).
 */
#define _GNU_SOURCE
#include "attach/agent/detach_private.h"
#include "attach/agent/unwinders.h"

#include <stdlib.h>
#include <string.h>

/* An unwinder's notes are this near to return addresses into it. */
#define NEAR_WORDS GT_DETACH_NEAR_WORDS

bool gt_detach_is_unwinder(const struct gt_detach *out, uint64_t address)
{
	for (uint32_t i = 0; i < out->unwinder_count; i++)
		if (address >= out->unwinders[i].start && address < out->unwinders[i].end)
			return true;
	return false;
}

static void add_unwinder(struct gt_detach *out, uint64_t start, uint64_t end)
{
	if (out->unwinder_count < GT_DETACH_UNWINDERS) {
		out->unwinders[out->unwinder_count].start = start;
		out->unwinders[out->unwinder_count++].end = end;
	}
}

void gt_detach_find_unwinders(struct gt_detach *out)
{
	const struct gt_maps *maps = &out->maps;

	out->unwinder_count = 0;
	for (size_t i = 0; i < GRAFTRACE_AGENT_UNWINDERS; i++)
		if (out->state.unwinders[i].end)
			add_unwinder(out, out->state.unwinders[i].start,
				     out->state.unwinders[i].end);
	for (size_t i = 0; i < maps->count; i++)
		if (maps->entries[i].executable && gt_unwinders_is_library(maps->entries[i].path))
			add_unwinder(out, maps->entries[i].start, maps->entries[i].end);
}

static int by_value(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

int gt_addresses_add(struct gt_addresses *list, uint64_t address)
{
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 64;
		uint64_t *bigger = realloc(list->at, room * sizeof(*bigger));

		if (bigger == NULL)
			return GT_ENOMEM;
		list->at = bigger;
		list->room = room;
	}
	list->at[list->count++] = address;
	return 0;
}

void gt_addresses_sort(struct gt_addresses *list)
{
	if (list->count)
		qsort(list->at, list->count, sizeof(*list->at), by_value);
}

bool gt_addresses_have(const struct gt_addresses *list, uint64_t address)
{
	return list->count &&
	       bsearch(&address, list->at, list->count, sizeof(*list->at), by_value) != NULL;
}

bool gt_detach_leaves(const struct gt_detach *out, uint64_t slot)
{
	return gt_addresses_have(&out->left, slot);
}

/* A word that an unwinder holds: if it is the CFA of a call whose slot leads to a stub, or of that
 * stub, the slot stays. *value: what is in it. */
static bool stands_at(struct gt_detach *out, uint64_t word, uint64_t low, uint64_t *slot,
		      uint64_t *value)
{
	for (int i = 8; i <= 16; i += 8) {
		*slot = word - (uint64_t)i;
		if (*slot % 8 == 0 && *slot >= low && gt_detach_has_mirror(out, *slot) &&
		    gt_process_read(out->process, *slot, value, sizeof(*value)) == 0 &&
		    gt_detach_is_stub_return(out, *value))
			return true;
	}
	return false;
}

/* words[first …] are near an unwinder's return address, and stand at `at` + 8 * index. */
static int leave_held(struct gt_detach *out, const uint64_t *words, const bool *near, size_t count,
		      uint64_t at, uint64_t low, const uint64_t *general)
{
	uint64_t slot, value;
	int error = 0;

	for (size_t i = 0; !error && i < count + GT_DETACH_GENERAL; i++) {
		uint64_t word = i < count ? words[i] : general[i - count];

		if ((i < count && !near[i]) || !stands_at(out, word, low, &slot, &value))
			continue;
		error = gt_addresses_add(&out->left, slot);
		for (size_t k = 0; !error && k < count; k++)
			if (near[k] && words[k] == value)
				error = gt_addresses_add(&out->left, at + k * 8);
	}
	return error;
}

bool gt_detach_mark_near(const struct gt_detach *out, const struct user_regs_struct *registers,
			 const uint64_t *words, size_t count, bool *near)
{
	bool found = gt_detach_is_unwinder(out, registers->rip);
	size_t marked = 0; /* up to here */

	memset(near, 0, count);
	for (; found && marked < count && marked < NEAR_WORDS; marked++)
		near[marked] = true;
	for (size_t i = 0; i < count; i++) {
		if (!gt_detach_is_unwinder(out, words[i]))
			continue;
		found = true;
		if (i > NEAR_WORDS && marked < i - NEAR_WORDS)
			marked = i - NEAR_WORDS;
		for (; marked < count && marked <= i + NEAR_WORDS; marked++)
			near[marked] = true;
	}
	return found;
}

static int look_at_unwinder(struct gt_detach *out, pid_t tid, uint64_t *words, bool *near)
{
	struct user_regs_struct all[GT_DETACH_CONTEXTS], registers;
	const size_t before = out->left.count;
	size_t contexts;
	int error = tid != out->waits ? gt_thread_registers(tid, &registers) : GT_EGONE;

	if (error)
		return error == GT_EGONE ? 0 : error;
	contexts = gt_detach_contexts(out, tid, &registers, all);
	for (size_t i = 0; !error && i < contexts; i++) {
		uint64_t at = 0;
		const size_t count = gt_detach_read_stack(out, &all[i], words, &at);

		if (gt_detach_mark_near(out, &all[i], words, count, near))
			error = leave_held(out, words, near, count, at, all[i].rsp,
					   (const uint64_t *)&all[i]);
	}
	if (!error && out->left.count != before && gt_detach_only_waits(out, tid, &registers))
		out->left.count = before;
	return error;
}

int gt_detach_look_at_unwinders(struct gt_detach *out, const struct gt_stopped_threads *threads)
{
	uint64_t *words = malloc(GT_DETACH_STACK_WORDS * sizeof(*words));
	bool *near = malloc(GT_DETACH_STACK_WORDS);
	int error = words != NULL && near != NULL ? 0 : GT_ENOMEM;

	out->left.count = 0;
	for (size_t i = 0; !error && out->unwinder_count && i < threads->count; i++)
		error = look_at_unwinder(out, threads->tids[i], words, near);
	gt_addresses_sort(&out->left);
	free(words);
	free(near);
	return error;
}
