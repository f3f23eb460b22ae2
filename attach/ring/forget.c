/* SPDX-License-Identifier: MIT */
/*
 * Writers that have ended and have nothing left, and that nobody looks at: a program may start
 * threads without end, so what is kept of them is of one size. See gt_drain.forgets.
 */
#include "attach/ring/drain.h"

#include <stdlib.h>
#include <string.h>

/* Counts the process, if there is room to know it again. */
static void note_process(struct gt_drain_forgotten *forgotten, uint32_t pid)
{
	uint32_t at = pid * 0x9e3779b1u;

	if (forgotten->pids == NULL)
		forgotten->pids = calloc(GT_DRAIN_PIDS, sizeof(*forgotten->pids));
	if (forgotten->pids == NULL || !pid || forgotten->processes == GT_DRAIN_PIDS / 4 * 3)
		return;
	while (forgotten->pids[at % GT_DRAIN_PIDS] && forgotten->pids[at % GT_DRAIN_PIDS] != pid)
		at++;
	forgotten->processes += !forgotten->pids[at % GT_DRAIN_PIDS];
	forgotten->pids[at % GT_DRAIN_PIDS] = pid;
}

bool gt_drain_has_forgotten(const struct gt_drain *drain, uint32_t pid)
{
	const uint32_t *pids = drain->forgotten.pids;
	uint32_t at = pid * 0x9e3779b1u;

	while (pids != NULL && pids[at % GT_DRAIN_PIDS] && pids[at % GT_DRAIN_PIDS] != pid)
		at++;
	return pids != NULL && pid && pids[at % GT_DRAIN_PIDS] == pid;
}

static void add_losses(uint64_t *lost, const struct gt_live_writer *writer)
{
	for (int cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
		lost[cause] += writer->writer.lost[cause];
}

/* Ring modes: no sink has heard of it, so its losses stay among the writers, for whoever looks
 * later and for the file. The first becomes the one that has them. True: this was the first. */
static bool fold(struct gt_drain *drain, uint32_t index)
{
	struct gt_live_writer *writer = &drain->writers[index], *sum;

	if (!drain->sum_writer) {
		drain->sum_writer = index + 1;
		writer->writer.tid = 0; /* of no thread */
		memset(writer->writer.comm, 0, sizeof(writer->writer.comm));
		return true;
	}
	sum = &drain->writers[drain->sum_writer - 1];
	add_losses(sum->writer.lost, writer);
	sum->lost_events += writer->lost_events;
	if (writer->writer.start < sum->writer.start)
		sum->writer.start = writer->writer.start;
	if (writer->writer.end > sum->writer.end)
		sum->writer.end = writer->writer.end;
	return false;
}

void gt_drain_forget(struct gt_drain *drain, uint32_t index)
{
	struct gt_drain_forgotten *forgotten = &drain->forgotten;
	struct gt_live_writer *writer = &drain->writers[index];

	if (!drain->forgets)
		return;
	note_process(forgotten, writer->writer.pid);
	if (writer->damaged) {
		if (!forgotten->damaged++)
			forgotten->damaged_first = writer->writer;
	} else if (drain->mode != GRAFTRACE_MODE_DRAIN) {
		if (fold(drain, index))
			return;
	} else {
		add_losses(forgotten->lost, writer);
		forgotten->lost_events += writer->lost_events;
	}
	forgotten->count++;
	*writer = (struct gt_live_writer){ .stream = drain->free_writer };
	drain->free_writer = index + 1;
}

void gt_drain_keep_writers(struct gt_drain *drain)
{
	if (drain->mode == GRAFTRACE_MODE_DRAIN)
		return;
	drain->forgets = false;
	drain->free_writer = 0;
}
