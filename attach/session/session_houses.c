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
	size_t i;

	if (getrlimit(RLIMIT_AS, &limit) == 0)
		least = limit.rlim_cur;
	for (i = 0; i < options->pid_count; i++)
		if (prlimit(options->pids[i], RLIMIT_AS, NULL, &limit) == 0 &&
		    limit.rlim_cur < least)
			least = limit.rlim_cur;
	return least == RLIM_INFINITY ? UINT64_MAX : least / 4;
}

static bool is_foreign(void *data, uint32_t arena, uint32_t pid)
{
	const struct gt_tracee *tracee = gt_follow_find(data, (pid_t)pid);

	return tracee && tracee->has_agent && tracee->house != arena;
}

/* What there is besides its arena. */
static int begin_house(struct gt_session *session, struct gt_house *house,
		       enum graftrace_arena_mode mode, bool forgets, struct gt_message *message)
{
	int error = gt_drain_init(&house->drain, &house->arena, mode,
				  mode == GRAFTRACE_MODE_DRAIN ? session->sink : NULL, message);

	if (error)
		return error;
	house->drain.forgets = forgets;
	house->drain.is_foreign = is_foreign;
	house->drain.data = session;
	gt_profile_init(&house->profile, &house->arena, &house->drain, &session->catalog);
	return 0;
}

int gt_session_first_house(struct gt_session *session, const struct gt_session_options *options,
			   struct gt_message *message)
{
	struct gt_house *house = &session->houses[0];
	int error = gt_arena_create_within(&house->arena, options->buffer_bytes,
					   room_for_arena(options), message);

	if (error)
		return error;
	if (options->recording)
		gt_arena_note_recording(&house->arena, options->recording,
					options->recording_clock.tsc_base,
					options->recording_clock.ns_base);
	error = begin_house(session, house, options->mode, options->forget_writers, message);
	if (error)
		gt_arena_destroy(&house->arena);
	else
		session->house_count = 1;
	return error;
}

void gt_session_end_houses(struct gt_session *session)
{
	while (session->house_count) {
		struct gt_house *house = &session->houses[--session->house_count];

		gt_profile_fini(&house->profile);
		gt_drain_fini(&house->drain);
		gt_arena_destroy(&house->arena);
		gt_credentials_free(&house->credentials);
	}
}

static int add_house(struct gt_session *session, struct gt_credentials *credentials,
		     struct gt_house **out, struct gt_message *message)
{
	struct gt_house *first = &session->houses[0], *house;
	int error;

	if (session->house_count == GT_ARENAS)
		return gt_fail(
			message, GT_ENOSPC,
			"it is user %u's and may do other things than the processes before "
			"it (its users, groups, capabilities, user namespace), and there "
			"are %d such sets in this recording already: attach to it by itself (-P)",
			(unsigned)credentials->uids[1], GT_ARENAS);
	house = &session->houses[session->house_count];
	error = gt_arena_create_beside(&house->arena, &first->arena, message);
	if (error)
		return error;
	error = begin_house(session, house, first->drain.mode, first->drain.forgets, message);
	if (error) {
		gt_arena_unlink(&first->arena, &house->arena);
		gt_arena_destroy(&house->arena);
		return error;
	}
	house->credentials = *credentials;
	*credentials = (struct gt_credentials){ 0 };
	gt_live_target_add(&session->live, &house->drain);
	__atomic_store_n(&session->house_count, session->house_count + 1, __ATOMIC_RELEASE);
	*out = house;
	return 0;
}

int gt_session_house_of(struct gt_session *session, pid_t pid, struct gt_house **house,
			struct gt_message *message)
{
	struct gt_credentials credentials;
	uint32_t i;
	int error = gt_credentials_read(pid, &credentials);

	if (error)
		return gt_fail(message, error,
			       error == GT_EGONE ? "process %d has ended"
						 : "no memory for process %d",
			       (int)pid);
	for (i = 0; i < session->house_count; i++) {
		*house = &session->houses[i];
		if (!(*house)->processes) { /* the first process's */
			gt_credentials_free(&(*house)->credentials);
			(*house)->credentials = credentials;
			return 0;
		}
		if (gt_credentials_are_equal(&(*house)->credentials, &credentials)) {
			gt_credentials_free(&credentials);
			return 0;
		}
	}
	error = add_house(session, &credentials, house, message);
	gt_credentials_free(&credentials);
	return error;
}

static bool is_of(const struct gt_map *map, const struct gt_arena *arena)
{
	return map->shared && map->inode == arena->inode &&
	       map->device_major == major(arena->device) &&
	       map->device_minor == minor(arena->device);
}

struct gt_house *gt_session_house_mapped(struct gt_session *session, pid_t pid)
{
	struct gt_house *found = NULL;
	struct gt_maps maps;
	uint32_t k;
	size_t i;

	if (pid <= 0 || gt_process_maps(pid, &maps, NULL))
		return NULL;
	for (i = 0; i < maps.count && !found; i++)
		for (k = 0; k < session->house_count && !found; k++)
			if (is_of(&maps.entries[i], &session->houses[k].arena))
				found = &session->houses[k];
	gt_maps_free(&maps);
	return found;
}

void gt_session_enter(struct gt_session *session, struct gt_tracee *tracee, struct gt_house *house,
		      const struct gt_house *from)
{
	tracee->house = house->arena.number;
	house->processes++;
	if (from && from != house)
		gt_session_take_threads(session, tracee->process.pid, from, house);
}

void gt_session_write_tracing(struct gt_session *session, bool on)
{
	uint32_t i;

	for (i = 0; i < session->house_count; i++)
		__atomic_store_n(&session->houses[i].arena.memory->tracing_on, on,
				 __ATOMIC_SEQ_CST);
}

int gt_session_find_writers(struct gt_session *session)
{
	uint32_t i;
	int error = 0;

	for (i = 0; i < session->house_count; i++) {
		int result = gt_drain_find_writers(&session->houses[i].drain);

		error = error ? error : result;
	}
	return error;
}

int gt_session_drain(struct gt_session *session, uint64_t now_ns)
{
	int done = 0, result = 0;
	uint32_t i;

	for (i = 0; result >= 0 && i < session->house_count; i++) {
		result = gt_drain_pass(&session->houses[i].drain, now_ns);
		done += result > 0 ? result : 0;
	}
	return result < 0 ? result : done;
}
