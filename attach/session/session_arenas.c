/* SPDX-License-Identifier: MIT */
/*
 * The arenas of a session: one for each set of credentials. Its processes write what they share, and the agent in each
 * reads there; so no process has memory in common with one that may do other things. What the host alone writes is one
 * memory for all.
 */
#define _GNU_SOURCE
#include "attach/session/session_private.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Of a limited address space (ulimit -v) a quarter is enough: ours, which the program that we start
 * inherits, or that of who is attached to. */
static uint64_t room_for_arena(const struct gt_session_options *options)
{
	rlim_t least = RLIM_INFINITY;
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) == 0)
		least = limit.rlim_cur;
	for (size_t i = 0; i < options->pid_count; i++)
		if (prlimit(options->pids[i], RLIMIT_AS, NULL, &limit) == 0 &&
		    limit.rlim_cur < least)
			least = limit.rlim_cur;
	return least == RLIM_INFINITY ? UINT64_MAX : least / 4;
}

static bool is_foreign(void *data, uint32_t arena, uint32_t pid)
{
	const struct gt_tracee *tracee = gt_follow_find(data, (pid_t)pid);

	return tracee != NULL && tracee->has_agent && tracee->arena != arena;
}

static bool number(void *data, uint32_t arena, const struct graftrace_stream *stream, uint32_t *pid,
		   uint32_t *tid)
{
	struct gt_session *session = data;

	return gt_number_of_stream(session, &session->arenas[arena], stream, pid, tid);
}

/* All but the shared memory. */
static int begin_arena(struct gt_session *session, struct gt_session_arena *arena,
		       enum graftrace_arena_mode mode, bool forgets, struct gt_message *message)
{
	int error = gt_drain_init(&arena->drain, &arena->shared, mode,
				  mode == GRAFTRACE_MODE_DRAIN ? session->sink : NULL, message);

	if (error)
		return error;
	arena->drain.forgets = forgets;
	arena->drain.number = number;
	arena->drain.is_foreign = is_foreign;
	arena->drain.data = session;
	gt_profile_init(&arena->profile, &arena->shared, &arena->drain, &session->catalog);
	return 0;
}

int gt_session_first_arena(struct gt_session *session, const struct gt_session_options *options,
			   struct gt_message *message)
{
	struct gt_session_arena *arena = &session->arenas[0];
	int error = gt_arena_create_within(&arena->shared, options->buffer_bytes,
					   room_for_arena(options), message);

	if (error)
		return error;
	if (options->recording != NULL)
		gt_arena_note_recording(&arena->shared, options->recording,
					options->recording_clock.tsc_base,
					options->recording_clock.ns_base);
	error = begin_arena(session, arena, options->mode, options->forget_writers, message);
	if (error)
		gt_arena_destroy(&arena->shared);
	else
		session->arena_count = 1;
	return error;
}

void gt_session_end_arenas(struct gt_session *session)
{
	while (session->arena_count) {
		struct gt_session_arena *arena = &session->arenas[--session->arena_count];

		gt_profile_fini(&arena->profile);
		gt_drain_fini(&arena->drain);
		gt_arena_destroy(&arena->shared);
		gt_credentials_free(&arena->credentials);
	}
}

static int add_arena(struct gt_session *session, struct gt_credentials *credentials,
		     struct gt_session_arena **out, struct gt_message *message)
{
	struct gt_session_arena *first = &session->arenas[0], *arena;
	int error;

	if (session->arena_count == GT_ARENAS)
		return gt_fail(
			message, GT_ENOSPC,
			"it is user %u's and may do other things than the processes before "
			"it (its users, groups, capabilities, namespaces), and there "
			"are %d such sets in this recording already: attach to it by itself (-P)",
			(unsigned)credentials->uids[1], GT_ARENAS);
	if (!session->is_polling)
		return gt_fail(message, GT_EBUSY,
			       "it may do other things than its parent, and was executed while "
			       "what is traced was being changed");
	arena = &session->arenas[session->arena_count];
	error = gt_arena_create_beside(&arena->shared, &first->shared, message);
	if (error)
		return error;
	error = begin_arena(session, arena, first->drain.mode, first->drain.forgets, message);
	if (error) {
		gt_arena_unlink(&first->shared, &arena->shared);
		gt_arena_destroy(&arena->shared);
		return error;
	}
	for (uint32_t which = GT_SESSION_ONLY; which <= GT_SESSION_NOT; which++)
		gt_session_list_threads(session, arena, which);
	arena->credentials = *credentials;
	*credentials = (struct gt_credentials){ 0 };
	gt_live_target_add(&session->live, &arena->drain);
	__atomic_store_n(&session->arena_count, session->arena_count + 1, __ATOMIC_RELEASE);
	*out = arena;
	return 0;
}

int gt_session_arena_of(struct gt_session *session, pid_t pid, struct gt_session_arena **arena,
			struct gt_message *message)
{
	struct gt_credentials credentials;
	int error = gt_credentials_read(pid, &credentials);

	if (error)
		return gt_fail(message, error,
			       error == GT_EGONE ? "process %d has ended"
						 : "no memory for process %d",
			       (int)pid);
	for (uint32_t i = 0; i < session->arena_count; i++) {
		*arena = &session->arenas[i];
		if (!(*arena)->processes) { /* the first process's */
			gt_credentials_free(&(*arena)->credentials);
			(*arena)->credentials = credentials;
			return 0;
		}
		if (gt_credentials_are_equal(&(*arena)->credentials, &credentials)) {
			gt_credentials_free(&credentials);
			return 0;
		}
	}
	/* Numbers of several namespaces in one arena can be told apart; rights are what matters. */
	for (uint32_t i = 0; session->arena_count == GT_ARENAS && i < GT_ARENAS; i++) {
		*arena = &session->arenas[i];
		if (gt_credentials_are_alike(&(*arena)->credentials, &credentials)) {
			gt_credentials_free(&credentials);
			return 0;
		}
	}
	error = add_arena(session, &credentials, arena, message);
	gt_credentials_free(&credentials);
	return error;
}

static bool is_of(const struct gt_map *map, const struct gt_arena *arena)
{
	return map->shared && map->inode == arena->inode &&
	       map->device_major == major(arena->device) &&
	       map->device_minor == minor(arena->device);
}

struct gt_session_arena *gt_session_arena_mapped(struct gt_session *session, pid_t pid)
{
	struct gt_session_arena *found = NULL;
	struct gt_maps maps;

	if (pid <= 0 || gt_process_maps(pid, &maps, NULL))
		return NULL;
	for (size_t i = 0; i < maps.count && found == NULL; i++)
		for (uint32_t k = 0; k < session->arena_count && found == NULL; k++)
			if (is_of(&maps.entries[i], &session->arenas[k].shared))
				found = &session->arenas[k];
	gt_maps_free(&maps);
	return found;
}

void gt_session_enter(struct gt_session *session, struct gt_tracee *tracee,
		      struct gt_session_arena *arena, const struct gt_session_arena *from)
{
	tracee->arena = arena->shared.number;
	gt_number_tracee(session, tracee);
	tracee->process.helper = &session->helper;
	arena->processes++;
	if (from != NULL && from != arena)
		gt_session_take_threads(session, tracee->process.pid, from, arena);
}

void gt_session_write_tracing(struct gt_session *session, bool on)
{
	for (uint32_t i = 0; i < session->arena_count; i++)
		__atomic_store_n(&session->arenas[i].shared.memory->tracing_on, on,
				 __ATOMIC_SEQ_CST);
}

int gt_session_find_writers(struct gt_session *session)
{
	int error = 0;

	for (uint32_t i = 0; i < session->arena_count; i++) {
		int result = gt_drain_find_writers(&session->arenas[i].drain);

		error = error ? error : result;
	}
	return error;
}

int gt_session_drain(struct gt_session *session, uint64_t now_ns)
{
	int done = 0, result = 0;

	for (uint32_t i = 0; result >= 0 && i < session->arena_count; i++) {
		result = gt_drain_pass(&session->arenas[i].drain, now_ns);
		done += result > 0 ? result : 0;
	}
	return result < 0 ? result : done;
}
