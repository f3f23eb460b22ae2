/* SPDX-License-Identifier: MIT */
/*
 * Detaching, D: %gs is cleared, and one thread unmaps mirror, heap, regions, arena, and the image
 * last, by which a later host would know that there is something.
 */
#define _GNU_SOURCE
#include "attach/agent/detach_private.h"
#include "attach/process/proc.h"
#include "attach/process/sharers.h"
#include "attach/agent/resolver.h"
#include "attach/agent/traps.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int call(struct gt_remote *remote, long number, uint64_t a, uint64_t b, uint64_t c,
		uint64_t d)
{
	const uint64_t arguments[6] = { a, b, c, d, (uint64_t)-1, 0 };
	int64_t result;

	return gt_remote_call(remote, number, arguments, &result, NULL);
}

static int unmap(struct gt_remote *remote, uint64_t start, uint64_t bytes)
{
	if (!start || !bytes || start % GT_DETACH_PAGE || start >= GT_DETACH_HIGHEST ||
	    bytes > GT_DETACH_HIGHEST - start)
		return 0;
	return call(remote, SYS_munmap, start, (bytes + GT_DETACH_PAGE - 1) & ~(GT_DETACH_PAGE - 1),
		    0, 0);
}

/* What is unmapped is struck off first: a host that comes after us, if we are killed here, must not
 * unmap what the program has put there meanwhile. */
static int unmap_mirror(struct gt_detach *out, struct gt_remote *remote)
{
	const uint64_t removed = 1;
	const struct graftrace_granule *granules = out->granules;
	size_t count = out->granule_count, end;
	int error = 0;

	for (size_t i = 0; !error && i < count; i = end) {
		uint64_t taken = granules[i].uses & GRAFTRACE_GRANULE_TAKEN;
		uint64_t low = gt_detach_stack_of(&granules[i]) ^ GT_DETACH_MIRROR, bytes;

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
		bytes = (end - i) * GT_DETACH_GRANULE;
		if (error)
			break;
		error = unmap(remote, low, bytes);
		if (!error && taken) /* a hole that a sanitizer keeps free */
			error = call(remote, SYS_mmap, low, bytes, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED);
	}
	return error;
}

static int unmap_heap(struct gt_detach *out, struct gt_remote *remote)
{
	uint64_t at = out->state.mappings;
	struct graftrace_mappings page;
	const uint64_t zero = 0;
	int error = 0;

	for (int pages = 0; !error && at && pages < 65536; pages++) {
		uint64_t head = out->image + out->header.state_offset +
				offsetof(struct graftrace_agent_state, mappings);

		if (at % GT_DETACH_PAGE || gt_process_read(out->process, at, &page, sizeof(page)))
			break;
		/* Entry 0 is this page itself: last. */
		for (uint64_t i = 1; !error && i < page.used && i < GRAFTRACE_MAPPINGS; i++) {
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
			error = unmap(remote, at, GT_DETACH_PAGE);
		at = page.next;
	}
	return error;
}

static int unmap_regions(struct gt_detach *out, struct gt_remote *remote)
{
	const uint64_t zero = 0;
	int error = 0;

	for (uint32_t i = 0; !error && i < out->state.region_count; i++) {
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

/* Only unwinders have been told of the agent: nobody keeps pointers there. */
static int unmap_told(struct gt_detach *out, struct gt_remote *remote)
{
	const uint64_t zero = 0;
	int error;

	if (!out->state.told || out->state.told_others)
		return 0;
	error = gt_process_write(out->process,
				 out->image + out->header.state_offset +
					 offsetof(struct graftrace_agent_state, told),
				 &zero, sizeof(zero));
	return error ? error : unmap(remote, out->state.told, GRAFTRACE_TOLD_BYTES);
}

static bool is_arena(const struct gt_map *map)
{
	return map->shared && strcmp(map->path, GT_DETACH_ARENA) == 0;
}

/* However many there are: each was made by a graftrace. */
static int unmap_arenas(struct gt_detach *out, struct gt_remote *remote)
{
	struct gt_maps maps;
	int error = gt_process_maps(out->process->pid, &maps, NULL);

	for (size_t i = 0; !error && i < maps.count; i++) {
		const struct gt_map *map = &maps.entries[i];
		uint64_t header[2] = { 0 }; /* magic, bytes */
		size_t last = i;

		if (!is_arena(map) ||
		    gt_process_read(out->process, map->start, header, sizeof(header)) != 0 ||
		    header[0] != GRAFTRACE_ARENA_MAGIC)
			continue;
		/* Its parts are mappings of their own. */
		while (last + 1 < maps.count && is_arena(&maps.entries[last + 1]) &&
		       maps.entries[last + 1].start == maps.entries[last].end &&
		       maps.entries[last].end - map->start < header[1])
			last++;
		error = unmap(remote, map->start, maps.entries[last].end - map->start);
		i = last;
	}
	gt_maps_free(&maps);
	return error;
}

/* Descriptors that a killed host has left open: the arena's, and sockets that it has noted. */
static int close_descriptors(struct gt_detach *out, struct gt_remote *remote)
{
	char path[64], link[128];
	struct dirent *entry;
	DIR *descriptors;
	int error = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)out->process->pid);
	descriptors = opendir(path);
	while (descriptors != NULL && !error && (entry = readdir(descriptors)) != NULL) {
		ssize_t bytes =
			readlinkat(dirfd(descriptors), entry->d_name, link, sizeof(link) - 1);

		if (bytes <= 0)
			continue;
		link[bytes] = 0;
		if (strcmp(link, GT_DETACH_ARENA) == 0)
			error = call(remote, SYS_close, strtoull(entry->d_name, NULL, 10), 0, 0, 0);
	}
	if (descriptors != NULL)
		closedir(descriptors);
	for (int i = 0; i < 2 && !error; i++) {
		uint64_t fd = out->state.passing[i].descriptor, inode = out->state.passing[i].inode;

		if (inode && gt_proc_socket(out->process->pid, (int)fd) == inode)
			error = call(remote, SYS_close, fd, 0, 0, 0);
	}
	return error;
}

/* The null block, or a block in the agent's heap; else it is the program's own use of %gs. */
static bool is_our_gs(const struct gt_detach *out, uint64_t base)
{
	uint64_t at = out->state.mappings;
	struct graftrace_mappings page;

	if (base - out->image < out->header.image_bytes)
		return true;
	for (int pages = 0; at && pages < 65536; pages++, at = page.next) {
		if (at % GT_DETACH_PAGE || gt_process_read(out->process, at, &page, sizeof(page)))
			return false;
		for (uint64_t i = 1; i < page.used && i < GRAFTRACE_MAPPINGS; i++)
			if (page.entries[i].start &&
			    base - page.entries[i].start < page.entries[i].bytes)
				return true;
	}
	return false;
}

int gt_detach_unmap(struct gt_detach *out, const struct gt_stopped_threads *threads,
		    struct gt_message *message)
{
	struct gt_remote remote;
	pid_t tid = threads->tids[0];
	int error, ended, rest, best = -1;

	gt_traps_leave_threads(out->process, &out->state, threads);
	for (size_t i = 0; i < threads->count; i++) {
		struct user_regs_struct registers;

		if (gt_thread_registers(threads->tids[i], &registers))
			continue;
		/* Rather one that sleeps, best in a call that can be made anew: see
		 * gt_thread_at_rest(). Who only shares the memory has signal actions of its own. */
		rest = !gt_sharers_is_own(out->process, threads->tids[i]) ? -1
		       : (long)registers.orig_rax < 0			  ? 0
		       : registers.orig_rax == SYS_restart_syscall	  ? 1
									  : 2;
		if (rest > best) {
			best = rest;
			tid = threads->tids[i];
		}
		if (registers.gs_base == 0 || !is_our_gs(out, registers.gs_base))
			continue;
		registers.gs_base = 0;
		gt_thread_set_registers(threads->tids[i], &registers);
	}
	error = gt_remote_begin(&remote, out->process, tid, message);
	if (error)
		return error;
	error = gt_traps_leave(&remote, &out->header, out->image, &out->state);
	if (!error)
		error = gt_resolver_reset(out->process, &out->header, out->image, &out->state);
	if (!error)
		error = unmap_mirror(out, &remote);
	if (!error)
		error = unmap_heap(out, &remote);
	if (!error)
		error = unmap_regions(out, &remote);
	if (!error)
		error = unmap_told(out, &remote);
	if (!error)
		error = unmap_arenas(out, &remote);
	if (!error && out->tracee == NULL)
		error = close_descriptors(out, &remote);
	if (!error)
		error = unmap(&remote, out->image, out->header.image_bytes);
	ended = gt_remote_end(&remote, NULL);
	return error ? error : ended;
}
