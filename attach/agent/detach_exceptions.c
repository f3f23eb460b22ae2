/* SPDX-License-Identifier: MIT */
/*
 * Detaching, B, and exceptions that are under way: where a slot comes back, those whose handler was found by its
 * stub's CFA get the call's (detach_unwinders.c says why). They are found by their addresses, which whoever will
 * resume them has on its stack.
 */
#define _GNU_SOURCE
#include "attach/agent/detach_private.h"
#include "attach/process/pages.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* So near is the frame of a personality routine, which an unwinder has called. */
#define CALLED_WORDS 32u
/* Where who will resume an exception has its address: so far above the stack pointer. */
#define SCAN_BYTES   (1u << 20)
#define READ_AT_ONCE 256u

/* The C++ ABI's, of whatever language: private_1 is 0 but for forced unwinding, private_2 is then
 * the handler's frame. */
struct exception {
	uint64_t class; /* who made it and in which language: letters, "GNUCC++\0"; 0 in Crystal */
	uint64_t cleanup; /* a function, or 0 */
	uint64_t private_1;
	uint64_t private_2;
};

int gt_detach_note_restored(struct gt_detach *out, uint64_t slot)
{
	return gt_addresses_add(&out->restored, slot);
}

/* A letter, or a small number. */
static bool is_of_class(unsigned byte)
{
	return byte <= 15 || (byte >= ' ' && byte <= '~');
}

/* A text that begins in the highest byte, where a string of fewer than 8 letters has its end: "GNUC", "CLNG", "MOZ", "LUAJ"
 * and the like are the makers, then letters or small numbers say more: "C++", "RUST", "IT2" and a code. */
static bool is_class(uint64_t class)
{
	for (unsigned i = 0; i < 8; i++, class <<= 8) {
		const unsigned byte = (unsigned)(class >> 56);

		if (i < 3 ? (byte < 'A' || byte > 'Z') : !is_of_class(byte))
			return false;
	}
	return true;
}

/* Any text, or none. */
static bool may_be_class(uint64_t class, uint64_t cleanup)
{
	unsigned letters = 0;

	if (!class)
		return !cleanup;
	for (unsigned i = 0; i < 8; i++, class >>= 8) {
		const unsigned byte = class & 0xff;

		if (!is_of_class(byte))
			return false;
		letters += byte >= ' ';
	}
	return letters >= 4;
}

/* A context of a thread that may have addresses of exceptions. */
struct holder {
	const struct user_regs_struct *registers;
	const uint64_t *words; /* its stack, from the stack pointer on */
	size_t count;
	bool handles; /* a signal's handler runs in the thread */
	bool asked;   /* whether it is unwinding */
	bool unwinding;
};

/* Whether it is in an unwinder now, in what that has called, or in a signal's handler, maybe on top of it. Farther up
 * there may be old words. */
static bool is_unwinding(const struct gt_detach *out, struct holder *holder)
{
	if (holder->asked)
		return holder->unwinding;
	holder->asked = true;
	holder->unwinding = holder->handles || gt_detach_is_unwinder(out, holder->registers->rip);
	for (size_t i = 0; !holder->unwinding && i < holder->count && i < CALLED_WORDS; i++)
		holder->unwinding = gt_detach_is_unwinder(out, holder->words[i]);
	return holder->unwinding;
}

/* Whether it can be an exception, and no other memory of the program that has an address in that frame. near: its
 * address stands where an unwinder may have it, which is given those of other makes, too. */
static bool is_exception(const struct gt_detach *out, const struct exception *exception, bool near,
			 struct holder *holder)
{
	const struct gt_map *cleanup = gt_maps_find(&out->maps, exception->cleanup);

	return !exception->private_1 &&
	       gt_addresses_have(&out->restored, exception->private_2 - 16) &&
	       (exception->cleanup == 0 || (cleanup != NULL && cleanup->executable)) &&
	       (is_class(exception->class) ||
		(near && may_be_class(exception->class, exception->cleanup) &&
		 is_unwinding(out, holder)));
}

/* Its address may stand in several places, and what it has now may look as if it was to be mended, too. */
static bool is_fixed(const struct gt_detach *out, uint64_t exception)
{
	for (size_t i = 0; i < out->fixed.count; i++)
		if (out->fixed.at[i] == exception)
			return true;
	return false;
}

/* Those of `count` addresses that are exceptions which a restored slot's stub was noted in. */
static int fix_these(struct gt_detach *out, struct holder *holder, const uint64_t *addresses,
		     const bool *near, size_t count)
{
	struct exception exceptions[READ_AT_ONCE];
	struct iovec local[READ_AT_ONCE], remote[READ_AT_ONCE];
	size_t done = 0;
	ssize_t got;
	int error = 0;

	for (size_t i = 0; i < count; i++) {
		local[i] = (struct iovec){ &exceptions[i], sizeof(exceptions[i]) };
		remote[i] = (struct iovec){ (void *)addresses[i], sizeof(exceptions[i]) };
	}
	/* It ends at the first that cannot be read. */
	while (!error && done < count) {
		got = process_vm_readv(out->process->pid, local + done, count - done, remote + done,
				       count - done, 0);
		if (got < 0)
			got = 0;
		for (size_t i = done; !error && i < done + (size_t)got / sizeof(*exceptions); i++) {
			uint64_t frame = exceptions[i].private_2;

			if (!is_exception(out, &exceptions[i], near[i], holder) ||
			    is_fixed(out, addresses[i]))
				continue;
			frame -= 8;
			error = gt_process_write(
				out->process, addresses[i] + offsetof(struct exception, private_2),
				&frame, sizeof(frame));
			if (!error)
				error = gt_addresses_add(&out->fixed, addresses[i]);
		}
		done += (size_t)got / sizeof(*exceptions) + 1;
	}
	return error;
}

/* The page that was asked for last. */
struct page {
	uint64_t number;
	uint64_t entry;
};

static bool is_there(int pagemap, uint64_t address, struct page *page)
{
	if (address / GT_PAGE_BYTES != page->number)
		gt_pages_read(pagemap, address, &page->entry, 1);
	page->number = address / GT_PAGE_BYTES;
	return gt_page_is_there(page->entry);
}

/* An exception is memory of the C++ library: aligned, writable, there, on no stack of this thread. */
static int scan(struct gt_detach *out, struct holder *holder, int pagemap, const uint64_t *words,
		const bool *near, size_t count, const struct gt_map *stack)
{
	uint64_t found[READ_AT_ONCE];
	bool found_near[READ_AT_ONCE];
	struct page page = { 0 };
	const struct gt_map *map = NULL;
	size_t used = 0;
	int error = 0;

	for (size_t i = 0; !error && i < count; i++) {
		uint64_t word = words[i];

		if (word % 16 || word < 65536 || word >= GT_DETACH_HIGHEST)
			continue;
		if (map == NULL || word < map->start || word >= map->end)
			map = gt_maps_find(&out->maps, word);
		if (map == NULL || map == stack || !map->writable || map->shared)
			continue;
		if (!is_there(pagemap, word, &page) ||
		    !is_there(pagemap, word + sizeof(struct exception) - 1, &page))
			continue;
		found_near[used] = near[i];
		found[used++] = word;
		if (used < READ_AT_ONCE)
			continue;
		error = fix_these(out, holder, found, found_near, used);
		used = 0;
	}
	return error ? error : fix_these(out, holder, found, found_near, used);
}

/* Those that a context has the address of, in a register or on its stack up to `last`, the outermost slot that came
 * back. words, near: room for SCAN_BYTES / 8. */
static int fix_of_context(struct gt_detach *out, int pagemap,
			  const struct user_regs_struct *registers, bool handles, uint64_t last,
			  uint64_t *words, bool *near)
{
	struct holder holder = { .registers = registers, .words = words, .handles = handles };
	const uint64_t low = registers->rsp & ~7ull;
	const struct gt_map *stack = gt_maps_find(&out->maps, low);
	bool general_near[GT_DETACH_GENERAL];
	uint64_t end;
	int error;

	if (stack != NULL && stack->writable && last >= low) {
		end = last < stack->end ? last + 8 : stack->end;
		holder.count = (end - low < SCAN_BYTES ? end - low : SCAN_BYTES) / 8;
		if (gt_process_read(out->process, low, words, holder.count * 8))
			holder.count = 0;
	}
	gt_detach_mark_near(out, registers, words, holder.count, near);
	memset(general_near, 1, sizeof(general_near));
	error = scan(out, &holder, pagemap, (const uint64_t *)registers, general_near,
		     GT_DETACH_GENERAL, NULL);
	return error ? error : scan(out, &holder, pagemap, words, near, holder.count, stack);
}

static int fix_of_thread(struct gt_detach *out, int pagemap, pid_t tid, uint64_t last,
			 uint64_t *words, bool *near)
{
	struct user_regs_struct all[GT_DETACH_CONTEXTS], registers;
	size_t count;
	int error = 0;

	if (gt_thread_registers(tid, &registers))
		return 0;
	count = gt_detach_contexts(out, tid, &registers, all);
	for (size_t i = 0; !error && i < count; i++)
		error = fix_of_context(out, pagemap, &all[i], count > 1, last, words, near);
	return error;
}

int gt_detach_fix_exceptions(struct gt_detach *out, const struct gt_stopped_threads *threads)
{
	uint64_t *words, last;
	int error = 0, pagemap;
	bool *near;

	if (!out->restored.count)
		return 0;
	gt_addresses_sort(&out->restored);
	last = out->restored.at[out->restored.count - 1];
	words = malloc(SCAN_BYTES);
	near = malloc(SCAN_BYTES / 8);
	if (words == NULL || near == NULL)
		error = GT_ENOMEM;
	pagemap = gt_pages_open(out->process->pid);
	for (size_t i = 0; !error && i < threads->count; i++)
		error = fix_of_thread(out, pagemap, threads->tids[i], last, words, near);
	if (pagemap >= 0)
		close(pagemap);
	free(near);
	free(words);
	out->restored.count = out->fixed.count = 0;
	return error;
}
