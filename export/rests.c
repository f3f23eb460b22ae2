/* SPDX-License-Identifier: MIT */
/*
 * Sums of the events graftrace:off_cpu: see rests.h.
 */
#define _GNU_SOURCE
#include "export/rests.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/hash.h"
#include "core/trace/merge.h"
#include "core/trace/rest.h"
#include "export/out.h"
#include "port/host/memory.h"

#define NAME_MAX 64
#define ROWS_MAX 65536u
#define PLACES	 (2 * ROWS_MAX) /* a power of two */

struct rest {
	uint32_t tid;
	char comm[16];
	char waker[NAME_MAX]; /* "": the thread was preempted */
	uint64_t count;
	uint64_t slept, waited;		      /* ns */
	uint64_t longest_sleep, longest_wait; /* of a single event */
};

struct rests {
	struct rest *rows;
	uint32_t count, room;
	uint32_t *places; /* hash table by thread and waker: index of a row + 1 */
};

/* By whom its sleep was ended, as people see it. */
static void put_waker(const struct gt_rest *rest, char waker[NAME_MAX])
{
	waker[0] = '\0';
	if (!rest->preempted)
		snprintf(waker, NAME_MAX, "%s%.*s-%u", rest->by_interrupt ? "an interrupt in " : "",
			 (int)rest->waker_bytes, rest->waker, rest->waker_tid);
}

static struct rest *row_of(struct rests *rests, uint32_t tid, const char *waker)
{
	uint32_t at = gt_hash_text(tid * 2654435761u, waker);

	for (at &= PLACES - 1; rests->places[at]; at = (at + 1) & (PLACES - 1)) {
		struct rest *there = &rests->rows[rests->places[at] - 1];
		if (there->tid == tid && strcmp(there->waker, waker) == 0)
			return there;
	}
	if (rests->count == rests->room) {
		uint32_t room = rests->room * 2 + 64;
		struct rest *bigger =
			room <= ROWS_MAX + 64 ? realloc(rests->rows, room * sizeof(*bigger)) : NULL;
		if (bigger == NULL)
			return NULL;
		rests->rows = bigger;
		rests->room = room;
	}
	struct rest *row = &rests->rows[rests->count++];
	*row = (struct rest){ .tid = tid };
	memcpy(row->waker, waker, NAME_MAX);
	rests->places[at] = rests->count;
	return row;
}

static int add(struct rests *rests, struct gt_target *target, const struct gt_source *source)
{
	const struct gt_record *record = &source->record;
	struct gt_event_format format;
	char waker[NAME_MAX];
	struct gt_rest rest;

	if (gt_target_event(target, (uint32_t)record->value, &format) != 0 ||
	    !gt_rest_read(&format, record, &rest))
		return 0;
	put_waker(&rest, waker);
	struct rest *row = row_of(rests, record->tid ? record->tid : source->tid, waker);
	if (row == NULL)
		return GT_ENOMEM;
	memcpy(row->comm, source->comm, sizeof(row->comm));
	row->count++;
	row->slept += rest.slept_ns;
	row->waited += rest.waited_ns;
	if (rest.slept_ns > row->longest_sleep)
		row->longest_sleep = rest.slept_ns;
	if (rest.waited_ns > row->longest_wait)
		row->longest_wait = rest.waited_ns;
	return 0;
}

static int by_time(const void *left, const void *right)
{
	const struct rest *a = left, *b = right;
	uint64_t first = a->slept + a->waited, second = b->slept + b->waited;

	if (first != second)
		return first < second ? 1 : -1;
	return a->tid != b->tid ? (a->tid < b->tid ? -1 : 1) : strcmp(a->waker, b->waker);
}

/* Writes a name: it may contain any bytes, but must not end the CSV field. */
static void put_csv_name(FILE *out, const char *name)
{
	fputc('"', out);
	for (; *name; name++) {
		if (*name == '"')
			fputc('"', out);
		fputc((unsigned char)*name < ' ' ? '?' : *name, out);
	}
	fputs("\",", out);
}

static void print_csv(FILE *out, const struct rests *rests)
{
	fputs("thread,tid,woken_by,count,slept_ns,waited_ns,longest_sleep_ns,longest_wait_ns\n",
	      out);
	for (uint32_t i = 0; i < rests->count; i++) {
		const struct rest *row = &rests->rows[i];
		put_csv_name(out, row->comm);
		fprintf(out, "%u,", row->tid);
		put_csv_name(out, row->waker[0] ? row->waker : "(preempted)");
		fprintf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
			row->count, row->slept, row->waited, row->longest_sleep, row->longest_wait);
	}
}

static void put_name(FILE *out, const char *name)
{
	for (; *name; name++)
		fputc(gt_clean_char(*name), out);
}

static void print(FILE *out, const struct rests *rests)
{
	fprintf(out, "%10s %16s %16s %16s %16s  %s\n", "RESTS", "SLEPT us", "LONGEST",
		"WAITED FOR A CPU", "LONGEST", "THREAD, WOKEN BY");
	for (uint32_t i = 0; i < rests->count; i++) {
		const struct rest *row = &rests->rows[i];
		fprintf(out, "%10" PRIu64 " %16.3f %16.3f %16.3f %16.3f  ", row->count,
			(double)row->slept / 1000, (double)row->longest_sleep / 1000,
			(double)row->waited / 1000, (double)row->longest_wait / 1000);
		put_name(out, row->comm);
		fprintf(out, "-%u, ", row->tid);
		put_name(out, row->waker[0] ? row->waker : "(preempted)");
		fputc('\n', out);
	}
}

int gt_rests_report(struct gt_target *target, bool csv, char **text, size_t *bytes)
{
	struct rests rests = { .places = calloc(PLACES, sizeof(uint32_t)) };
	struct gt_merge *merge = calloc(1, sizeof(*merge));
	struct gt_source *source;
	FILE *out = open_memstream(text, bytes);
	int result = merge != NULL && out != NULL && rests.places != NULL ? 0 : GT_ENOMEM;

	if (result == 0) {
		result = gt_merge_init(merge, target, &gt_host_memory, GT_MERGE_SNAPSHOT, NULL);
		while (result >= 0 && (result = gt_merge_next(merge, &source)) > 0)
			if (source->record.kind == GT_RECORD_EVENT)
				result = add(&rests, target, source);
		gt_merge_fini(merge);
	}
	if (result >= 0 && rests.count) {
		qsort(rests.rows, rests.count, sizeof(*rests.rows), by_time);
		(csv ? print_csv : print)(out, &rests);
	}
	if (out != NULL && fclose(out) != 0 && result >= 0)
		result = GT_ENOMEM;
	free(rests.rows);
	free(rests.places);
	free(merge);
	if (result < 0 && out != NULL) {
		free(*text);
		*text = NULL;
	}
	return result < 0 ? result : 0;
}
