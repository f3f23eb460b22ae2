/* SPDX-License-Identifier: MIT */
/*
 * Detaching: see detach.h. The rounds, with the world stopped in each:
 *  A. the code gets its bytes back, so nobody comes in any more;
 *  B. return slots that lead to stubs get the mirror's address, so nobody comes back;
 *  C. whoever stands in our code (or has a signal frame there) is looked for: while there is one,
 *     all go on for a moment, and B and C are done again;
 *  D. %gs is cleared and everything is unmapped, the image last: it is what a later host looks for.
 */
#define _GNU_SOURCE
#include "attach/detach.h"
#include "attach/editor.h"
#include "attach/inject.h"
#include "attach/patch.h"
#include "attach/world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE		4096ull
#define GRANULE		(1ull << GRAFTRACE_GRANULE_SHIFT)
#define MIRROR		(1ull << GRAFTRACE_MIRROR_BIT)
#define HIGHEST		(1ull << 47)
#define GRANULES_MOST	(1u << 22)
#define ARENA_PATH	"/memfd:graftrace"
#define PATCHES_AT_ONCE 4096u
#define WRITES_AT_ONCE	512u
/* An unwinder that is under way has its frames within this many bytes. */
#define UNWINDER_BYTES 8192u

struct out {
	struct gt_process *process;
	struct gt_tracee *tracee;
	uint64_t image;
	struct graftrace_agent_image header;
	struct graftrace_agent_state state;
	uint64_t call_returns[GRAFTRACE_AGENT_REGIONS];
	struct gt_maps maps;
	bool foreign; /* someone else wrote over a patch */
	bool inside;  /* someone stands in our code */
};

static uint64_t now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

uint64_t gt_detach_find(const struct gt_process *process, const struct gt_maps *maps)
{
	size_t i;

	for (i = 0; i < maps->count; i++) {
		const struct gt_map *map = &maps->entries[i];
		struct graftrace_agent_image header;

		/* Read and write only: an injection that was not finished. */
		if ((!map->executable && !map->writable) || map->path[0] || map->shared)
			continue;
		if (gt_process_read(process, map->start, &header, sizeof(header)) == 0 &&
		    header.magic == GRAFTRACE_AGENT_MAGIC)
			return map->start;
	}
	return 0;
}

static int read_agent(struct out *out, struct gt_message *message)
{
	struct graftrace_agent_state *state = &out->state;
	uint32_t i;

	if (gt_process_read(out->process, out->image, &out->header, sizeof(out->header)) ||
	    out->header.magic != GRAFTRACE_AGENT_MAGIC || out->header.state_offset > (64u << 20) ||
	    gt_process_read(out->process, out->image + out->header.state_offset, state,
			    sizeof(*state)))
		return gt_fail(message, GT_EFORMAT, "process %d has no agent that can be read",
			       (int)out->process->pid);
	if (state->magic != GRAFTRACE_AGENT_MAGIC) {
		/* Put there, but never filled: nothing is patched. */
		struct graftrace_agent_state empty = { 0 };

		memcpy(empty.passing, state->passing, sizeof(empty.passing));
		*state = empty;
	}
	if (state->region_count > GRAFTRACE_AGENT_REGIONS)
		return gt_fail(message, GT_EFORMAT, "process %d has overwritten the agent's state",
			       (int)out->process->pid);
	for (i = 0; i < state->region_count; i++) {
		struct graftrace_region page;

		out->call_returns[i] = 0;
		if (state->regions[i].start &&
		    gt_process_read(out->process, state->regions[i].start, &page, sizeof(page)) ==
			    0)
			out->call_returns[i] = page.call_return;
	}
	return 0;
}

pid_t gt_detach_host(const struct gt_process *process, uint64_t image)
{
	struct gt_process copy = *process;
	struct out *out = calloc(1, sizeof(*out));
	struct graftrace_arena arena;
	pid_t host = 0;

	if (!out)
		return 0;
	out->process = &copy;
	out->image = image;
	if (read_agent(out, NULL) == 0 && out->state.arena &&
	    gt_process_read(process, out->state.arena, &arena, sizeof(arena)) == 0 &&
	    arena.magic == GRAFTRACE_ARENA_MAGIC && arena.host_pid && arena.host_pid < 1u << 30 &&
	    gt_process_start_time((pid_t)arena.host_pid) == arena.host_start)
		host = (pid_t)arena.host_pid;
	free(out);
	return host;
}

static bool in_region(const struct out *out, uint64_t address)
{
	uint32_t i;

	for (i = 0; i < out->state.region_count; i++)
		if (address - out->state.regions[i].start < out->state.regions[i].bytes)
			return true;
	return false;
}

static bool is_ours(const void *data, uint64_t address)
{
	const struct out *out = data;

	return address - out->image < out->header.text_bytes || in_region(out, address);
}

static bool is_stub_return(const struct out *out, uint64_t address)
{
	return address % GRAFTRACE_STUB_BYTES == GRAFTRACE_STUB_RETURN && in_region(out, address);
}

/* A: code. */

static int undo_patch(struct out *out, struct gt_editor *code, const struct graftrace_patch *patch)
{
	static const uint8_t nop5[5] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	const uint8_t *bytes;
	uint32_t i, same = 0;

	if (!patch->bytes || patch->bytes > sizeof(patch->original))
		return 0;
	bytes = gt_editor_look(code, patch->address, patch->bytes);
	if (!bytes || memcmp(bytes, patch->original, patch->bytes) == 0)
		return 0; /* unloaded, or off */
	if (memcmp(bytes, patch->patched, patch->bytes) == 0 ||
	    (patch->neutral && patch->bytes == sizeof(nop5) &&
	     memcmp(bytes, nop5, sizeof(nop5)) == 0))
		return gt_editor_put(code, patch->address, patch->original, patch->bytes);
	/* A breakpoint in the midst of our bytes, which will put one of them back some day? Or
	 * another object at the same place? */
	for (i = 0; i < patch->bytes; i++)
		same += bytes[i] == patch->patched[i];
	if (same + 1 >= patch->bytes)
		out->foreign = true;
	return 0;
}

static int undo_range(struct out *out, struct gt_editor *code, uint64_t journal, uint32_t first,
		      uint32_t end)
{
	struct graftrace_patch *patches = malloc(PATCHES_AT_ONCE * sizeof(*patches));
	int error = patches ? 0 : GT_ENOMEM;

	while (!error && first < end) {
		uint32_t count = end - first, i;

		if (count > PATCHES_AT_ONCE)
			count = PATCHES_AT_ONCE;
		error = gt_process_read(out->process, journal + (uint64_t)first * sizeof(*patches),
					patches, count * sizeof(*patches));
		for (i = 0; !error && i < count; i++)
			error = undo_patch(out, code, &patches[i]);
		first += count;
	}
	free(patches);
	return error ? error : gt_editor_flush(code);
}

/* Functions' jumps first, then the patches elsewhere that they needed. */
static int undo_code(struct out *out)
{
	struct gt_editor *code = malloc(sizeof(*code));
	int error = code ? 0 : GT_ENOMEM, pass;
	uint32_t i;

	for (pass = 0; !error && pass < 2; pass++) {
		for (i = 0; !error && i < out->state.region_count; i++) {
			uint64_t start = out->state.regions[i].start;
			uint64_t bytes = out->state.regions[i].bytes;
			struct graftrace_region page;

			if (!start || gt_process_read(out->process, start, &page, sizeof(page)))
				continue;
			if (page.journal < start || page.journal - start > bytes ||
			    page.journal_used > page.journal_room ||
			    page.journal_mains > page.journal_used ||
			    (bytes - (page.journal - start)) / sizeof(struct graftrace_patch) <
				    page.journal_used)
				continue;
			gt_editor_init(code, out->process);
			error = undo_range(out, code, page.journal, pass ? page.journal_mains : 0,
					   pass ? page.journal_used : page.journal_mains);
		}
	}
	free(code);
	return error;
}

/* B: return slots. */

static int by_key(const void *left, const void *right)
{
	const struct graftrace_granule *a = left, *b = right;

	return a->key < b->key ? -1 : a->key > b->key;
}

/* The granules that have a mirror, by address; `uses` of each becomes its index in the table, with
 * GRAFTRACE_GRANULE_TAKEN as it is there. NULL: none, or no memory (*error). */
static struct graftrace_granule *read_granules(struct out *out, size_t *count, int *error)
{
	uint64_t size = out->state.mirror_size, i;
	struct graftrace_granule *table;

	*count = 0;
	*error = 0;
	if (!out->state.mirror_table || !size || size > GRANULES_MOST)
		return NULL;
	table = malloc(size * sizeof(*table));
	if (!table) {
		*error = GT_ENOMEM;
		return NULL;
	}
	if (gt_process_read(out->process, out->state.mirror_table, table, size * sizeof(*table)))
		size = 0;
	for (i = 0; i < size; i++)
		if (table[i].key > 1 && table[i].key < HIGHEST >> GRAFTRACE_GRANULE_SHIFT)
			table[(*count)++] = (struct graftrace_granule){
				table[i].key, i | (table[i].uses & GRAFTRACE_GRANULE_TAKEN)
			};
	if (*count)
		qsort(table, *count, sizeof(*table), by_key);
	return table;
}

static uint64_t stack_of(const struct graftrace_granule *granule)
{
	return (granule->key - 2) << GRAFTRACE_GRANULE_SHIFT;
}

/* Small writes that go together. */
struct writes {
	uint64_t values[WRITES_AT_ONCE];
	struct iovec local[WRITES_AT_ONCE];
	struct iovec remote[WRITES_AT_ONCE];
	size_t count;
};

static int flush_writes(struct out *out, struct writes *writes)
{
	size_t i, count = writes->count;
	int error = 0;

	writes->count = 0;
	if (!count || process_vm_writev(out->process->pid, writes->local, count, writes->remote,
					count, 0) == (ssize_t)(count * 8))
		return 0;
	for (i = 0; !error && i < count; i++)
		error = gt_process_write(out->process, (uint64_t)writes->remote[i].iov_base,
					 &writes->values[i], 8);
	return error;
}

static int add_write(struct out *out, struct writes *writes, uint64_t address, uint64_t value)
{
	size_t i = writes->count++;

	writes->values[i] = value;
	writes->local[i] = (struct iovec){ &writes->values[i], 8 };
	writes->remote[i] = (struct iovec){ (void *)address, 8 };
	return writes->count == WRITES_AT_ONCE ? flush_writes(out, writes) : 0;
}

/* One page of a stack: what leads to a stub gets what its mirror says. A word that merely looks so
 * is left over from a call that has returned: nobody reads it. */
static int put_back_page(struct out *out, struct writes *writes, uint64_t at)
{
	uint64_t mirror[PAGE / 8], stack[PAGE / 8];
	size_t i;
	int error = 0;

	if (gt_process_read(out->process, at ^ MIRROR, mirror, sizeof(mirror)) ||
	    gt_process_read(out->process, at, stack, sizeof(stack)))
		return 0;
	for (i = 0; !error && i < PAGE / 8; i++)
		if (mirror[i] && is_stub_return(out, stack[i]) && !is_stub_return(out, mirror[i]))
			error = add_write(out, writes, at + i * 8, mirror[i]);
	return error;
}

static int put_back_slots(struct out *out)
{
	size_t count, i, page;
	int error, pagemap;
	struct graftrace_granule *granules = read_granules(out, &count, &error);
	struct writes *writes = malloc(sizeof(*writes));
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)out->process->pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (!writes)
		error = GT_ENOMEM;
	else
		writes->count = 0;
	for (i = 0; !error && i < count; i++) {
		uint64_t low = stack_of(&granules[i]), present[GRANULE / PAGE];

		/* Most of a mirror was never touched. */
		if (pread(pagemap, present, sizeof(present), (off_t)((low ^ MIRROR) / PAGE * 8)) !=
		    (ssize_t)sizeof(present))
			memset(present, 0xff, sizeof(present));
		for (page = 0; !error && page < GRANULE / PAGE; page++)
			if (present[page] >> 62)
				error = put_back_page(out, writes, low + page * PAGE);
	}
	if (!error)
		error = flush_writes(out, writes);
	if (pagemap >= 0)
		close(pagemap);
	free(writes);
	free(granules);
	return error;
}

/* C: who is inside. */

static int note_frame(void *data, const struct gt_frame_place *frame)
{
	struct out *out = data;
	uint64_t place = out->tracee ? gt_patch_old_place(out->tracee, frame->rip) : 0;

	if (place)
		return gt_process_write(out->process, frame->rip_at, &place, sizeof(place));
	out->inside = true;
	return 0;
}

static bool is_unwinder(const struct gt_map *map)
{
	return map && map->executable && strstr(map->path, "/libgcc_s");
}

/*
 * Return addresses into our code on this thread's stack: of a stub that called its function. And
 * is it in the middle of an unwinding, whose notes may name stubs? Such a thread runs; one that
 * waits in the kernel has only old words on its stack.
 */
static bool has_return(const struct out *out, const struct user_regs_struct *registers)
{
	const struct gt_map *stack = gt_maps_find(&out->maps, registers->rsp);
	bool waits = (long)registers->orig_rax >= 0;
	uint64_t at = registers->rsp & ~7ull, words[UNWINDER_BYTES / 8], bytes;
	bool found = !waits && is_unwinder(gt_maps_find(&out->maps, registers->rip));
	uint32_t k;
	size_t i;

	if (!stack || !stack->writable)
		return found;
	bytes = stack->end - at;
	if (bytes > sizeof(words))
		bytes = sizeof(words);
	if (gt_process_read(out->process, at, words, bytes))
		return found;
	for (i = 0; !found && i < bytes / 8; i++) {
		for (k = 0; k < out->state.region_count; k++)
			found = found || (words[i] && words[i] == out->call_returns[k]);
		if (!waits && !found)
			found = is_unwinder(gt_maps_find(&out->maps, words[i]));
	}
	return found;
}

/* A thread: moved out of moved code, or noted as inside. */
static int look_at_thread(struct out *out, pid_t tid)
{
	struct user_regs_struct registers;
	uint64_t place = 0, back = 0;
	int error = gt_thread_registers(tid, &registers);

	if (error)
		return error == GT_EGONE ? 0 : error;
	if (is_ours(out, registers.rip) ||
	    (gt_thread_restarts(&registers) && is_ours(out, registers.rip - 2))) {
		back = gt_thread_restarts(&registers) ? 2 : 0;
		if (out->tracee)
			place = gt_patch_old_place(out->tracee, registers.rip - back);
		if (place) {
			registers.rip = place + back;
			error = gt_thread_set_registers(tid, &registers);
			if (error)
				return error == GT_EGONE ? 0 : error;
		} else {
			out->inside = true;
		}
	}
	if (has_return(out, &registers))
		out->inside = true;
	return gt_world_signal_frames(out->process, &out->maps, registers.rsp, is_ours, note_frame,
				      out);
}

/* Stacks that no thread is on now (coroutines): signal frames there. */
static int look_at_stacks(struct out *out, const struct gt_stopped_threads *threads)
{
	size_t count, i, k;
	int error;
	struct graftrace_granule *granules = read_granules(out, &count, &error);
	const struct gt_map *last = NULL;

	for (i = 0; !error && i < count; i++) {
		uint64_t low = stack_of(&granules[i]);
		const struct gt_map *stack = gt_maps_find(&out->maps, low);
		bool used = !stack || stack == last;

		for (k = 0; !used && k < threads->count; k++) {
			struct user_regs_struct registers;

			used = gt_thread_registers(threads->tids[k], &registers) == 0 &&
			       registers.rsp >= stack->start && registers.rsp < stack->end;
		}
		if (!used)
			error = gt_world_signal_frames(out->process, &out->maps,
						       low > stack->start ? low : stack->start,
						       is_ours, note_frame, out);
		last = stack;
	}
	free(granules);
	return error;
}

static int look_inside(struct out *out, const struct gt_stopped_threads *threads)
{
	size_t i;
	int error = gt_process_maps(out->process->pid, &out->maps, NULL);

	out->inside = out->state.called_out != 0;
	for (i = 0; !error && i < threads->count; i++)
		error = look_at_thread(out, threads->tids[i]);
	if (!error)
		error = look_at_stacks(out, threads);
	gt_maps_free(&out->maps);
	return error;
}

/* D: out. */

static int call(struct gt_remote *remote, long number, uint64_t a, uint64_t b, uint64_t c,
		uint64_t d)
{
	const uint64_t arguments[6] = { a, b, c, d, (uint64_t)-1, 0 };
	int64_t result;

	return gt_remote_call(remote, number, arguments, &result, NULL);
}

static int unmap(struct gt_remote *remote, uint64_t start, uint64_t bytes)
{
	if (!start || !bytes || start % PAGE || start >= HIGHEST || bytes > HIGHEST - start)
		return 0;
	return call(remote, SYS_munmap, start, (bytes + PAGE - 1) & ~(PAGE - 1), 0, 0);
}

/* What is unmapped is struck off first: a host that comes after us, if we are killed here, must not
 * unmap what the program has put there meanwhile. */
static int unmap_mirror(struct out *out, struct gt_remote *remote)
{
	const uint64_t removed = 1;
	size_t count, i, end;
	int error;
	struct graftrace_granule *granules = read_granules(out, &count, &error);

	for (i = 0; !error && i < count; i = end) {
		uint64_t taken = granules[i].uses & GRAFTRACE_GRANULE_TAKEN;
		uint64_t low = stack_of(&granules[i]) ^ MIRROR, bytes;

		for (end = i;
		     !error && end < count && granules[end].key == granules[i].key + (end - i) &&
		     (granules[end].uses & GRAFTRACE_GRANULE_TAKEN) == taken;
		     end++)
			error = gt_process_write(
				out->process,
				out->state.mirror_table +
					(granules[end].uses & ~GRAFTRACE_GRANULE_TAKEN) *
						sizeof(*granules),
				&removed, sizeof(removed));
		bytes = (end - i) * GRANULE;
		if (error)
			break;
		error = unmap(remote, low, bytes);
		if (!error && taken) /* a hole that a sanitizer keeps free */
			error = call(remote, SYS_mmap, low, bytes, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED);
	}
	free(granules);
	return error;
}

static int unmap_heap(struct out *out, struct gt_remote *remote)
{
	uint64_t at = out->state.mappings;
	struct graftrace_mappings page;
	const uint64_t zero = 0;
	uint64_t i;
	int error = 0, pages;

	for (pages = 0; !error && at && pages < 65536; pages++) {
		uint64_t head = out->image + out->header.state_offset +
				offsetof(struct graftrace_agent_state, mappings);

		if (at % PAGE || gt_process_read(out->process, at, &page, sizeof(page)))
			break;
		/* Entry 0 is this page itself: last. */
		for (i = 1; !error && i < page.used && i < GRAFTRACE_MAPPINGS; i++) {
			if (!page.entries[i].start)
				continue;
			error = gt_process_write(out->process,
						 at + offsetof(struct graftrace_mappings, entries) +
							 i * sizeof(page.entries[0]),
						 &zero, sizeof(zero));
			if (!error)
				error = unmap(remote, page.entries[i].start, page.entries[i].bytes);
		}
		if (!error)
			error = gt_process_write(out->process, head, &page.next, sizeof(page.next));
		if (!error)
			error = unmap(remote, at, PAGE);
		at = page.next;
	}
	return error;
}

static int unmap_regions(struct out *out, struct gt_remote *remote)
{
	const uint64_t zero = 0;
	int error = 0;
	uint32_t i;

	for (i = 0; !error && i < out->state.region_count; i++) {
		uint64_t at = out->image + out->header.state_offset +
			      offsetof(struct graftrace_agent_state, regions) +
			      i * sizeof(out->state.regions[0]);

		error = gt_process_write(out->process, at, &zero, sizeof(zero));
		if (!error)
			error = unmap(remote, out->state.regions[i].start,
				      out->state.regions[i].bytes);
	}
	return error;
}

/* However many there are: each was made by a graftrace. */
static int unmap_arenas(struct out *out, struct gt_remote *remote)
{
	struct gt_maps maps;
	size_t i;
	int error = gt_process_maps(out->process->pid, &maps, NULL);

	for (i = 0; !error && i < maps.count; i++) {
		const struct gt_map *map = &maps.entries[i];
		uint64_t magic = 0;

		if (map->shared && strncmp(map->path, ARENA_PATH, sizeof(ARENA_PATH) - 1) == 0 &&
		    gt_process_read(out->process, map->start, &magic, sizeof(magic)) == 0 &&
		    magic == GRAFTRACE_ARENA_MAGIC)
			error = unmap(remote, map->start, map->end - map->start);
	}
	gt_maps_free(&maps);
	return error;
}

/* Descriptors that a killed host has left open: the arena's, and sockets that it has noted. */
static int close_descriptors(struct out *out, struct gt_remote *remote)
{
	char path[64], link[128];
	struct dirent *entry;
	DIR *descriptors;
	int error = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)out->process->pid);
	descriptors = opendir(path);
	while (descriptors && !error && (entry = readdir(descriptors))) {
		unsigned long long inode = 0;
		ssize_t bytes =
			readlinkat(dirfd(descriptors), entry->d_name, link, sizeof(link) - 1);
		uint64_t fd = strtoull(entry->d_name, NULL, 10);
		bool ours;

		if (bytes <= 0)
			continue;
		link[bytes] = 0;
		ours = strncmp(link, ARENA_PATH, sizeof(ARENA_PATH) - 1) == 0;
		if (sscanf(link, "socket:[%llu]", &inode) == 1 && inode)
			ours = (out->state.passing[0].descriptor == fd &&
				out->state.passing[0].inode == inode) ||
			       (out->state.passing[1].descriptor == fd &&
				out->state.passing[1].inode == inode);
		if (ours)
			error = call(remote, SYS_close, fd, 0, 0, 0);
	}
	if (descriptors)
		closedir(descriptors);
	return error;
}

static int unmap_all(struct out *out, const struct gt_stopped_threads *threads,
		     struct gt_message *message)
{
	struct gt_remote remote;
	pid_t tid = threads->tids[0];
	size_t i;
	int error, ended;

	for (i = 0; i < threads->count; i++) {
		struct user_regs_struct registers;

		if (gt_thread_registers(threads->tids[i], &registers))
			continue;
		/* Rather one that sleeps: see gt_thread_at_rest(). */
		if ((long)registers.orig_rax >= 0)
			tid = threads->tids[i];
		if (registers.gs_base == 0)
			continue;
		registers.gs_base = 0;
		gt_thread_set_registers(threads->tids[i], &registers);
	}
	error = gt_remote_begin(&remote, out->process, tid, message);
	if (error)
		return error;
	error = unmap_mirror(out, &remote);
	if (!error)
		error = unmap_heap(out, &remote);
	if (!error)
		error = unmap_regions(out, &remote);
	if (!error)
		error = unmap_arenas(out, &remote);
	if (!error && !out->tracee)
		error = close_descriptors(out, &remote);
	if (!error)
		error = unmap(&remote, out->image, out->header.image_bytes);
	ended = gt_remote_end(&remote, NULL);
	return error ? error : ended;
}

/* One stop of the world. *done: all is out. */
static int round_of(struct out *out, int limit_ms, bool first, bool *done,
		    struct gt_message *message)
{
	struct gt_stopped_threads threads;
	int error = gt_world_stop(out->process, &threads, limit_ms, message);

	if (error)
		return error;
	error = read_agent(out, message);
	if (!error && first)
		error = undo_code(out);
	if (!error)
		error = put_back_slots(out);
	if (!error)
		error = look_inside(out, &threads);
	*done = !error && !out->inside && !out->foreign;
	if (*done)
		error = unmap_all(out, &threads, message);
	gt_threads_resume(out->process, &threads);
	if (error && gt_process_ended(out->process))
		return gt_fail(message, GT_EGONE, "process %d has ended", (int)out->process->pid);
	if (error)
		return gt_fail(message, error, "cannot put process %d back as it was",
			       (int)out->process->pid);
	return 0;
}

/* Threads that wait for a host that has been killed need not: after it nobody waits for long. */
static void end_waits(struct out *out)
{
	const uint32_t zero = 0;

	if (read_agent(out, NULL) || !out->state.arena)
		return;
	gt_process_write(out->process,
			 out->state.arena + offsetof(struct graftrace_arena, host_alive), &zero,
			 sizeof(zero));
	gt_process_write(out->process, out->state.arena + offsetof(struct graftrace_arena, wait_ms),
			 &zero, sizeof(zero));
}

int gt_detach_process(struct gt_process *process, struct gt_tracee *tracee, int limit_ms,
		      enum gt_detach_left *left, struct gt_message *message)
{
	struct out *out = calloc(1, sizeof(*out));
	uint64_t start = now_ms(), magic = 0;
	bool done = false;
	struct gt_maps maps;
	int error = 0, rounds;

	*left = GT_DETACH_ALL_GONE;
	if (!out)
		return gt_fail(message, GT_ENOMEM, "no memory to detach");
	out->process = process;
	/* A child that has executed something else has another agent, or none. */
	if (tracee && gt_process_read(process, tracee->agent.image, &magic, sizeof(magic)) == 0 &&
	    magic == GRAFTRACE_AGENT_MAGIC) {
		out->tracee = tracee;
		out->image = tracee->agent.image;
	} else {
		error = gt_process_maps(process->pid, &maps, message);
		if (!error) {
			out->image = gt_detach_find(process, &maps);
			gt_maps_free(&maps);
		}
		if (!error && out->image)
			end_waits(out);
	}
	for (rounds = 0; !error && !done && out->image; rounds++) {
		struct timespec pause = { 0, 1000000L << (rounds < 5 ? rounds : 5) };

		error = round_of(out, limit_ms, rounds == 0, &done, message);
		if (error || done || out->foreign || now_ms() - start > (uint64_t)limit_ms)
			break;
		nanosleep(&pause, NULL);
	}
	if (!error && !done && out->image)
		*left = out->foreign ? GT_DETACH_LEFT_PATCH : GT_DETACH_LEFT_THREAD;
	free(out);
	return error;
}
