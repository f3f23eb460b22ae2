/* SPDX-License-Identifier: MIT */
/*
 * A cursor for each CPU of each buffer. A page's first record comes from libtracecmd, which holds the
 * page as long as that record is held; it says where the page begins, and by how much its clock differs
 * from the page's own. That difference has to be the same everywhere: clocks that libtracecmd converts
 * (ticks to nanoseconds, a guest's to the host's) are not for this file. How records follow one another
 * is compared with libtracecmd's reading until time has gone on within the pages that were compared.
 */
#include "linux/dat_records.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <graftrace/error.h>
#include "read/kernel_page.h"

struct cursor {
	struct tracecmd_input *handle;
	int cpu;
	struct tep_record *first; /* of the page; by_library: the record itself */
	uint64_t page_offset;	  /* in the file, as libtracecmd counts */
	struct gt_kernel_page page;
	uint64_t apart; /* libtracecmd's clock minus the page's own */
	bool is_proven; /* … and so it stays while time goes on */
	bool has_record;
	struct tep_record record;
};

struct gt_dat_records {
	bool by_library;
	uint64_t page_bytes;
	struct cursor *cursors;
	int count;
	struct cursor *current; /* whose record was given out; NULL: none yet */
	uint64_t until; /* before this clock, the next record is the current cursor's, too */
};

/* ---- a page ---- */

/* Compares what is read here of a page with what libtracecmd reads. */
static bool is_as_read_by_library(struct cursor *cursor)
{
	struct gt_kernel_page page = cursor->page;
	const uint64_t begin = page.clock;
	struct tep_record *theirs;
	uint32_t bytes = 0;
	bool is_same = true;

	while (is_same) {
		const uint8_t *data = gt_kernel_page_next(&page, &bytes);
		if (data == NULL)
			return !page.is_damaged;
		theirs = tracecmd_read_data(cursor->handle, cursor->cpu);
		is_same = theirs != NULL && theirs->data == data && theirs->size == (int)bytes &&
			  theirs->ts == page.clock + cursor->apart;
		tracecmd_free_record(theirs);
		if (page.clock != begin)
			cursor->is_proven = true;
	}
	return false;
}

/* Finds the page's begin by its first record, and that record again by the page. */
static bool open_page(const struct gt_dat_records *records, struct cursor *cursor, bool is_first)
{
	struct tep_record *first = cursor->first;
	uint64_t in_page = first->offset & (records->page_bytes - 1);
	/* the record's own head is before its data */
	const uint8_t *begin =
		(const uint8_t *)first->data - (first->record_size - first->size) - in_page;
	const uint8_t *data;
	uint32_t bytes = 0;

	cursor->page_offset = first->offset - in_page;
	if (in_page < GT_KERNEL_PAGE_HEAD || first->cpu != cursor->cpu ||
	    !gt_kernel_page_open(&cursor->page, begin, records->page_bytes))
		return false;
	data = gt_kernel_page_next(&cursor->page, &bytes);
	if (data != first->data || (int)bytes != first->size)
		return false;
	uint64_t apart = first->ts - cursor->page.clock;
	if (!is_first && apart != cursor->apart)
		return false;
	cursor->apart = apart;
	return cursor->is_proven || is_as_read_by_library(cursor);
}

/* The page's first record is given as libtracecmd has it: with the records that were lost before. */
static void give_first(struct cursor *cursor)
{
	cursor->record = *cursor->first;
	cursor->has_record = true;
}

/* Goes to the first page that has a record, from `offset` on. */
static int load_page(const struct gt_dat_records *records, struct cursor *cursor, uint64_t offset)
{
	int cpu = cursor->cpu;

	tracecmd_free_record(cursor->first);
	cursor->first = tracecmd_read_at(cursor->handle, offset, &cpu);
	if (cursor->first == NULL)
		return 0;
	/* behind the CPU's last page are those of the next one */
	if (cpu != cursor->cpu) {
		tracecmd_free_record(cursor->first);
		cursor->first = NULL;
		return 0;
	}
	if (cursor->first->offset < offset || !open_page(records, cursor, false))
		return GT_EAGAIN;
	give_first(cursor);
	return 0;
}

/* ---- a CPU ---- */

static int advance(const struct gt_dat_records *records, struct cursor *cursor)
{
	uint32_t bytes = 0;

	cursor->has_record = false;
	if (records->by_library) {
		tracecmd_free_record(cursor->first);
		cursor->first = tracecmd_read_data(cursor->handle, cursor->cpu);
		if (cursor->first != NULL)
			give_first(cursor);
		return 0;
	}
	const uint8_t *data = gt_kernel_page_next(&cursor->page, &bytes);
	if (data == NULL)
		return cursor->page.is_damaged
			       ? GT_EAGAIN
			       : load_page(records, cursor,
					   cursor->page_offset + records->page_bytes);
	cursor->record.ts = cursor->page.clock + cursor->apart;
	cursor->record.data = (void *)data;
	cursor->record.size = (int)bytes;
	cursor->record.missed_events = 0;
	cursor->has_record = true;
	return 0;
}

static int start(const struct gt_dat_records *records, struct cursor *cursor)
{
	cursor->first = tracecmd_read_cpu_first(cursor->handle, cursor->cpu);
	if (cursor->first == NULL)
		return 0;
	if (!records->by_library && !open_page(records, cursor, true))
		return GT_EAGAIN;
	give_first(cursor);
	return 0;
}

/* ---- all ---- */

static bool has_other_layout(struct tep_handle *tep)
{
	int bytes = tep_get_sub_buffer_size(tep);

	return tep_is_old_format(tep) || tep_is_file_bigendian(tep) ||
	       tep_is_local_bigendian(tep) || tep_get_long_size(tep) != 8 ||
	       tep_get_header_page_size(tep) != 8 || bytes < 1024 || bytes > 1 << 20 ||
	       (bytes & (bytes - 1)) != 0;
}

int gt_dat_records_create(struct tracecmd_input *const *handles, int count, bool by_library,
			  struct gt_dat_records **out)
{
	struct gt_dat_records *records = calloc(1, sizeof(*records));
	int cursors = 0;

	*out = NULL;
	if (records == NULL)
		return GT_ENOMEM;
	struct tep_handle *tep = tracecmd_get_tep(handles[0]);
	records->by_library = by_library || has_other_layout(tep);
	records->page_bytes = (uint64_t)tep_get_sub_buffer_size(tep);
	for (int i = 0; i < count; i++)
		cursors += tep_get_cpus(tracecmd_get_tep(handles[i]));
	records->cursors = calloc((size_t)cursors + 1, sizeof(*records->cursors));
	if (records->cursors == NULL) {
		free(records);
		return GT_ENOMEM;
	}
	for (int i = 0; i < count; i++) {
		int cpus = tep_get_cpus(tracecmd_get_tep(handles[i]));
		for (int cpu = 0; cpu < cpus; cpu++)
			records->cursors[records->count++] =
				(struct cursor){ .handle = handles[i], .cpu = cpu };
	}
	*out = records;
	return 0;
}

/* Chooses the cursor with the oldest record, the first one of several. */
static void choose(struct gt_dat_records *records)
{
	records->current = NULL;
	records->until = UINT64_MAX;
	for (int i = 0; i < records->count; i++) {
		struct cursor *cursor = &records->cursors[i];
		if (!cursor->has_record)
			continue;
		if (records->current == NULL || cursor->record.ts < records->current->record.ts) {
			if (records->current != NULL)
				records->until = records->current->record.ts;
			records->current = cursor;
		} else if (cursor->record.ts < records->until) {
			records->until = cursor->record.ts;
		}
	}
}

int gt_dat_records_next(struct gt_dat_records *records, struct tep_record **record)
{
	struct cursor *current = records->current;
	int error = 0;

	if (current != NULL) {
		error = advance(records, current);
	} else {
		for (int i = 0; i < records->count && error == 0; i++)
			error = start(records, &records->cursors[i]);
	}
	if (error != 0)
		return error;
	if (current == NULL || !current->has_record || current->record.ts >= records->until)
		choose(records);
	if (records->current == NULL)
		return 0;
	*record = &records->current->record;
	return 1;
}

void gt_dat_records_destroy(struct gt_dat_records *records)
{
	if (records == NULL)
		return;
	for (int i = 0; i < records->count; i++)
		tracecmd_free_record(records->cursors[i].first);
	free(records->cursors);
	free(records);
}
