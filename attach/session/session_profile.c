/* SPDX-License-Identifier: MIT */
/*
 * The function profiler of a session: on and off, and what it has counted.
 *
 * While it is on, tracing_on is no matter of the threads' stop bytes: a thread reads in the arena
 * that tracing is off and goes on counting.
 */
#include "attach/session/session.h"
#include "attach/session/session_private.h"

#include <stdlib.h>
#include <string.h>

bool gt_session_profiles(const struct gt_session *session)
{
	return __atomic_load_n(&gt_session_settings(session)->profile, __ATOMIC_RELAXED) != 0;
}

/* Whether the profiler can run beside that: where there is a ring, somebody leaves out of it what
 * nobody asked for (session_filters.c). */
int gt_session_check_profile(struct gt_session *session, bool profile, enum graftrace_tracer tracer,
			     uint64_t threshold_ns, struct gt_message *message)
{
	if (session->started && session->arenas[0].drain.mode != GRAFTRACE_MODE_DRAIN)
		return 0;
	if (profile && tracer == GRAFTRACE_TRACER_FUNCTION)
		return gt_fail(message, GT_EBUSY,
			       "the function profiler needs returns: it runs beside the tracers "
			       "nop and function_graph, not function");
	if (profile && tracer == GRAFTRACE_TRACER_FUNCTION_GRAPH && threshold_ns)
		return gt_fail(message, GT_EBUSY,
			       "the function profiler does not run beside function_graph with "
			       "tracing_thresh");
	return 0;
}

int gt_session_set_profile(struct gt_session *session, bool on, struct gt_message *message)
{
	struct graftrace_arena *memory = gt_session_settings(session);
	int error = 0;

	pthread_mutex_lock(&session->lock);
	if (gt_session_profiles(session) == on)
		goto unlock;
	error = gt_session_check_profile(session, on, session->wanted.askers[0].settings.tracer,
					 session->wanted.askers[0].settings.threshold_ns, message);
	for (uint32_t i = 0; !error && on && i < session->arena_count; i++)
		if (gt_profile_reset(&session->arenas[i].profile))
			error = gt_fail(message, GT_ENOMEM, "no memory for the function profiler");
	if (error)
		goto unlock;
	gt_session_take_top(session);
	/* The arena, then the blocks, as for every setting (graftrace/agent.h). */
	__atomic_store_n(&memory->profile, on, __ATOMIC_SEQ_CST);
	gt_stop_words_write_host(session);
	if (on)
		gt_stop_words_write(session, GRAFTRACE_STOP_BYTE_FULL, 0);
	gt_session_publish(session);
	error = gt_session_patch_for_tracer(session, message);
unlock:
	pthread_mutex_unlock(&session->lock);
	return error;
}

void gt_session_set_profile_awake(struct gt_session *session, bool awake)
{
	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	session->wanted.profile_awake = awake;
	gt_session_publish(session);
	pthread_mutex_unlock(&session->lock);
}

static uint64_t to_ns(const struct gt_session *session, uint64_t ticks)
{
	return gt_clock_duration_ns(&session->live.target.clock, ticks);
}

/* As Linux: the sample's variance by Welford's method, in ns² / 1000. */
static uint64_t variance(const struct gt_session *session, uint64_t hits, uint64_t ticks,
			 const uint64_t squares[2])
{
	const struct gt_clock *clock = &session->live.target.clock;
	long double tick = (long double)clock->mult / (long double)(1ull << clock->shift);
	long double sum = (long double)ticks, n = (long double)hits;
	long double all = (long double)squares[1] * 18446744073709551616.0L + squares[0];
	long double value;

	if (hits <= 1)
		return 0;
	value = (n * all - sum * sum) * tick * tick / (n * (n - 1) * 1000);
	return value <= 0 ? 0 : value >= 1e18L ? 1000000000000000000ull : (uint64_t)value;
}

void gt_session_profile_starts(struct gt_session *session, uint64_t starts_ns[GT_DURATIONS])
{
	pthread_mutex_lock(&session->lock);
	gt_durations_starts(&session->live.target.clock, starts_ns);
	pthread_mutex_unlock(&session->lock);
}

/* All arenas' sums, each function once. */
static int read_sums(struct gt_session *session, uint32_t tid, struct gt_profile_sum **sums,
		     uint32_t *count)
{
	int error = 0;

	for (uint32_t k = 0; !error && k < session->arena_count; k++) {
		struct gt_profile_sum *more = NULL, *all;
		uint32_t n = 0;

		error = gt_profile_read(&session->arenas[k].profile, tid, &more, &n);
		if (!error && n) {
			all = realloc(*sums, (*count + n) * sizeof(*all));
			error = all != NULL ? 0 : GT_ENOMEM;
			*sums = all != NULL ? all : *sums;
			if (all != NULL)
				memcpy(all + *count, more, n * sizeof(*all));
			*count += all != NULL ? n : 0;
		}
		free(more);
	}
	if (!error && session->arena_count > 1)
		gt_profile_merge(&session->catalog, *sums, count);
	return error;
}

int gt_session_profile(struct gt_session *session, uint32_t tid, bool self,
		       struct gt_profile_row **out, uint32_t *count)
{
	struct gt_profile_sum *sums = NULL;
	struct gt_profile_row *rows;
	uint32_t n = 0;
	int error;

	*out = NULL;
	*count = 0;
	pthread_mutex_lock(&session->lock);
	error = read_sums(session, tid, &sums, &n);
	rows = error ? NULL : calloc(n + 1, sizeof(*rows));
	if (!error && rows == NULL)
		error = GT_ENOMEM;
	for (uint32_t i = 0; !error && i < n; i++) {
		const struct gt_profile_counts *entry = &sums[i].entry;
		uint64_t ticks = self ? entry->self_ticks : entry->ticks;
		struct gt_profile_row *row = &rows[*count];

		if (gt_catalog_function(&session->catalog, sums[i].function, &row->named))
			continue; /* the target's own invention */
		/* Instances may have functions patched that the top leaves out. */
		if (session->wanted.others && !gt_asked_wants(session->selection.asked[0], NULL,
							      row->named.name, row->named.name))
			continue;
		row->function = sums[i].function;
		row->hits = entry->hits;
		row->time_ns = to_ns(session, ticks);
		row->self_ns = to_ns(session, entry->self_ticks);
		row->variance = variance(session, entry->hits, ticks,
					 self ? entry->self_squares : entry->squares);
		memcpy(row->buckets, entry->buckets, sizeof(row->buckets));
		++*count;
	}
	pthread_mutex_unlock(&session->lock);
	free(sums);
	if (error)
		return error;
	qsort(rows, *count, sizeof(*rows), gt_profile_row_order);
	*out = rows;
	return 0;
}
