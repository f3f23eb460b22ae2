/* SPDX-License-Identifier: MIT */
/* What is told of the agent: see told.h. */
#include "attach/agent/told.h"
#include "attach/process/process.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static uint64_t find(const struct gt_process *process)
{
	struct gt_maps maps;
	uint64_t found = 0;

	if (gt_process_maps(process->pid, &maps, NULL))
		return 0;
	for (size_t i = 0; i < maps.count && !found; i++) {
		const struct gt_map *map = &maps.entries[i];
		uint64_t magic;

		if (map->end - map->start == GRAFTRACE_TOLD_BYTES && !map->writable &&
		    !map->executable && !map->shared && !map->path[0] &&
		    gt_process_read(process, map->start, &magic, sizeof(magic)) == 0 &&
		    magic == GRAFTRACE_TOLD_MAGIC)
			found = map->start;
	}
	gt_maps_free(&maps);
	return found;
}

uint64_t gt_told_map(struct gt_remote *remote, const struct graftrace_agent_image *header,
		     bool *kept)
{
	/* The last: the kernel does not join it with read-only pages of the program's. */
	const uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	const uint64_t arguments[6] = {
		0, GRAFTRACE_TOLD_BYTES, PROT_READ, flags, (uint64_t)-1, 0
	};
	struct graftrace_told told = { .magic = GRAFTRACE_TOLD_MAGIC, .name = "[graftrace]" };
	uint64_t at = find(remote->process);
	int64_t result;

	*kept = at != 0;
	if (!at && gt_remote_call(remote, SYS_mmap, arguments, &result, NULL) == 0 && result > 0)
		at = (uint64_t)result;
	memcpy(told.headers[0], header->phdrs, sizeof(told.headers[0]));
	return at && gt_process_write(remote->process, at, &told,
				      offsetof(struct graftrace_told, headers[1])) == 0
		       ? at
		       : 0;
}

int gt_told_region(const struct gt_process *process, uint64_t told, uint32_t index,
		   const struct graftrace_region_unwind *unwind)
{
	return !told ? 0
		     : gt_process_write(process,
					told + offsetof(struct graftrace_told, headers) +
						(index + 1) * sizeof(unwind->phdrs),
					unwind->phdrs, sizeof(unwind->phdrs));
}
