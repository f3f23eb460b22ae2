/* SPDX-License-Identifier: MIT */
/* What a session has recorded and lost so far. Any thread. */
#include "attach/session/session.h"
#include "attach/session/session_private.h"

#include <stdlib.h>

static int by_number(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

static bool has_forgotten(const struct gt_session *session, uint32_t pid)
{
	for (uint32_t k = 0; k < session->arena_count; k++)
		if (gt_drain_has_forgotten(&session->arenas[k].drain, pid))
			return true;
	return false;
}

/* Some are known only by what they wrote: they had ended before their letter was read. */
static uint32_t count_processes(const struct gt_session *session)
{
	uint32_t *pids, writers = 0, count = 0, at = 0;

	for (uint32_t k = 0; k < session->arena_count; k++)
		writers += session->arenas[k].drain.writer_count;
	pids = calloc(writers + 1, sizeof(*pids));
	for (uint32_t k = 0; k < session->arena_count; k++) {
		const struct gt_drain *drain = &session->arenas[k].drain;

		count += drain->forgotten.processes;
		for (uint32_t i = 0; pids != NULL && i < drain->writer_count; i++)
			if (!has_forgotten(session, drain->writers[i].writer.pid))
				pids[at++] = drain->writers[i].writer.pid;
	}
	if (pids != NULL)
		qsort(pids, at, sizeof(*pids), by_number);
	for (uint32_t i = 0; i < at; i++)
		count += pids[i] && (i == 0 || pids[i] != pids[i - 1]);
	free(pids);
	return count > session->tracees.so_far ? count : session->tracees.so_far;
}

/* What one arena's writers have written and lost. */
static void add_totals(struct gt_session_arena *arena, struct gt_session_totals *totals)
{
	struct gt_drain *drain = &arena->drain;

	totals->words += drain->words;
	totals->pool_is_held |= drain->pool_is_held;
	totals->calls += drain->calls;
	totals->threads += drain->forgotten.count;
	totals->corrupt += drain->corrupt + drain->refused;
	totals->lost_events += drain->forgotten.lost_events;
	if (drain->forgotten.damaged && !totals->damaged)
		totals->damaged_first = drain->forgotten.damaged_first;
	totals->damaged += drain->forgotten.damaged;
	totals->corrupt += gt_drain_add_lost(drain, totals->ns, totals->lost);
	for (uint32_t cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
		totals->lost[cause] += drain->forgotten.lost[cause];
	for (uint32_t i = 0; i < drain->writer_count; i++) {
		struct gt_writer writer;

		if (gt_drain_writer(drain, i, &writer))
			continue;
		totals->threads++;
		if (drain->writers[i].damaged) {
			if (!totals->damaged++)
				totals->damaged_first = writer;
			continue;
		}
		for (uint32_t cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
			totals->lost[cause] += writer.lost[cause];
		totals->lost_events += drain->writers[i].lost_events;
	}
}

void gt_session_totals(struct gt_session *session, struct gt_session_totals *totals)
{
	pthread_mutex_lock(&session->lock);
	gt_session_find_writers(session);
	*totals = (struct gt_session_totals){
		.processes = count_processes(session),
		.stopped_ns = session->notes.stopped_ns,
		.left_ns = session->notes.left_ns,
		.no_breakpoints = session->notes.no_breakpoints,
		.entries_only = session->notes.entries_only,
		.attached_anew = session->notes.attached_anew,
		.ns = (session->times.end_ns ? session->times.end_ns : gt_clock_now().ns) -
		      session->times.first.ns,
	};
	totals->actions_left = session->hits.actions_left;
	for (uint32_t i = 0; i < session->arena_count; i++)
		add_totals(&session->arenas[i], totals);
	pthread_mutex_unlock(&session->lock);
}

uint64_t gt_session_damaged(struct gt_session *session)
{
	struct gt_session_totals totals;

	gt_session_totals(session, &totals);
	return totals.corrupt + totals.damaged;
}

unsigned gt_session_buffer_use(const struct gt_session *session)
{
	const uint32_t arenas = __atomic_load_n(&session->arena_count, __ATOMIC_ACQUIRE);
	const uint32_t count = session->arenas[0].shared.sub_buffer_count;
	unsigned most = 0, use;
	uint32_t left;

	for (uint32_t i = 0; i < arenas; i++) {
		left = __atomic_load_n(&session->arenas[i].shared.memory->free_count,
				       __ATOMIC_RELAXED);
		/* The count is the target's: it may say anything. */
		use = left >= count ? 0 : 100 - (unsigned)((uint64_t)left * 100 / count);
		most = use > most ? use : most;
	}
	return most;
}
