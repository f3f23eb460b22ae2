/* SPDX-License-Identifier: MIT */
/*
 * Detaching, B: return slots. Every mirror page that was ever touched is read beside its stack, and
 * what leads to a stub there gets what the mirror says.
 */
#define _GNU_SOURCE
#include "attach/agent/detach_private.h"
#include "attach/process/pages.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define GRANULES_MOST  (1u << 22)
#define WRITES_AT_ONCE 512u
#define GRANULE_PAGES  (GT_DETACH_GRANULE / GT_DETACH_PAGE)
#define KEY_OF_0       2 /* of a granule: struct graftrace_granule */

static int by_key(const void *left, const void *right)
{
	const struct graftrace_granule *a = left, *b = right;

	return a->key < b->key ? -1 : a->key > b->key;
}

int gt_detach_read_granules(struct gt_detach *out)
{
	uint64_t size = out->state.mirror_size;
	struct graftrace_granule *table;
	size_t count = 0;

	free(out->granules);
	out->granules = NULL;
	out->granule_count = 0;
	if (!out->state.mirror_table || !size || size > GRANULES_MOST)
		return 0;
	table = malloc(size * sizeof(*table));
	if (table == NULL)
		return GT_ENOMEM;
	if (gt_process_read(out->process, out->state.mirror_table, table, size * sizeof(*table)))
		size = 0;
	for (uint64_t i = 0; i < size; i++)
		if (table[i].key >= KEY_OF_0 &&
		    table[i].key - KEY_OF_0 < GT_DETACH_HIGHEST >> GRAFTRACE_GRANULE_SHIFT)
			table[count++] = (struct graftrace_granule){
				table[i].key, i | (table[i].uses & GRAFTRACE_GRANULE_TAKEN)
			};
	if (count)
		qsort(table, count, sizeof(*table), by_key);
	out->granules = table;
	out->granule_count = count;
	return 0;
}

uint64_t gt_detach_stack_of(const struct graftrace_granule *granule)
{
	return (granule->key - KEY_OF_0) << GRAFTRACE_GRANULE_SHIFT;
}

/* Small writes that go together. */
struct writes {
	uint64_t values[WRITES_AT_ONCE];
	struct iovec local[WRITES_AT_ONCE];
	struct iovec remote[WRITES_AT_ONCE];
	size_t count;
};

static int flush_writes(struct gt_detach *out, struct writes *writes)
{
	size_t count = writes->count;
	int error = 0;

	writes->count = 0;
	if (!count || process_vm_writev(out->process->pid, writes->local, count, writes->remote,
					count, 0) == (ssize_t)(count * 8))
		return 0;
	for (size_t i = 0; !error && i < count; i++)
		error = gt_process_write(out->process, (uint64_t)writes->remote[i].iov_base,
					 &writes->values[i], 8);
	return error;
}

static int add_write(struct gt_detach *out, struct writes *writes, uint64_t address, uint64_t value)
{
	size_t i = writes->count++;

	writes->values[i] = value;
	writes->local[i] = (struct iovec){ &writes->values[i], 8 };
	writes->remote[i] = (struct iovec){ (void *)address, 8 };
	return writes->count == WRITES_AT_ONCE ? flush_writes(out, writes) : 0;
}

/* One page of a stack: what leads to a stub gets what its mirror says. A word that merely looks so
 * is left over from a call that has returned: nobody reads it. */
static int put_back_page(struct gt_detach *out, struct writes *writes, uint64_t at)
{
	uint64_t mirror[GT_DETACH_PAGE / 8], stack[GT_DETACH_PAGE / 8];
	int error = 0;

	if (gt_process_read(out->process, at ^ GRAFTRACE_MIRROR, mirror, sizeof(mirror)) ||
	    gt_process_read(out->process, at, stack, sizeof(stack)))
		return 0;
	for (size_t i = 0; !error && i < GT_DETACH_PAGE / 8; i++)
		if (mirror[i] && gt_detach_is_stub_return(out, stack[i]) &&
		    !gt_detach_is_stub_return(out, mirror[i]) &&
		    !gt_detach_leaves(out, at + i * 8)) {
			error = gt_detach_note_restored(out, at + i * 8);
			if (!error)
				error = add_write(out, writes, at + i * 8, mirror[i]);
		}
	return error;
}

static int put_back_slots(struct gt_detach *out)
{
	const struct graftrace_granule *granules = out->granules;
	size_t count = out->granule_count;
	int error = 0, pagemap = gt_pages_open(out->process->pid);
	struct writes *writes = malloc(sizeof(*writes));

	if (writes == NULL)
		error = GT_ENOMEM;
	else
		writes->count = 0;
	for (size_t i = 0; !error && i < count; i++) {
		uint64_t low = gt_detach_stack_of(&granules[i]), mirror[GRANULE_PAGES],
			 stack[GRANULE_PAGES];

		/* Most of a mirror was never touched. */
		gt_pages_read(pagemap, low ^ GT_DETACH_MIRROR, mirror, GRANULE_PAGES);
		gt_pages_read(pagemap, low, stack, GRANULE_PAGES);
		for (size_t page = 0; !error && page < GRANULE_PAGES; page++)
			if (gt_page_is_there(
				    mirror[page ^ GRAFTRACE_MIRROR_TURN / GT_DETACH_PAGE]) &&
			    gt_page_is_there(stack[page]))
				error = put_back_page(out, writes, low + page * GT_DETACH_PAGE);
	}
	if (!error)
		error = flush_writes(out, writes);
	if (pagemap >= 0)
		close(pagemap);
	free(writes);
	return error;
}

int gt_detach_put_back(struct gt_detach *out, const struct gt_stopped_threads *threads)
{
	int error;

	gt_detach_find_unwinders(out);
	error = gt_detach_look_at_unwinders(out, threads);
	if (!error)
		error = put_back_slots(out);
	return error ? error : gt_detach_fix_exceptions(out, threads);
}
