/* SPDX-License-Identifier: MIT */
/*
 * Threads that are traced alone, or not: set_ftrace_pid and set_ftrace_notrace_pid of a session.
 * The lists lie in the arenas (graftrace/selected.h), where new threads read them, and add
 * themselves if children follow. Any process can write anything into those of its own arena: what the
 * host did not put there is believed of that arena's own threads only.
 */
#define _GNU_SOURCE
#include "attach/session/session.h"
#include "attach/session/session_private.h"
#include "attach/process/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <graftrace/selected.h>

static uint32_t *slots_of(const struct gt_session_arena *arena, enum gt_session_list which)
{
	struct graftrace_selected *selected = gt_arena_selected(&arena->shared);

	return which == GT_SESSION_ONLY ? selected->only : selected->except;
}

bool gt_session_leaves_out(const struct gt_session_arena *arena, uint32_t tid)
{
	return graftrace_selected_leaves_out(arena->shared.memory, gt_number_listed(arena, tid));
}

void gt_session_take_threads(struct gt_session *session, pid_t tid,
			     const struct gt_session_arena *from, struct gt_session_arena *arena)
{
	if (!gt_session_lists_threads(session))
		return;
	const uint32_t number = gt_number_listed(from, (uint32_t)tid);
	const uint32_t next = gt_number_listed(arena, (uint32_t)tid);

	for (uint32_t which = GT_SESSION_ONLY; next != 0 && which <= GT_SESSION_NOT; which++)
		if (graftrace_selected_has(slots_of(from, (enum gt_session_list)which), number))
			graftrace_selected_add(slots_of(arena, (enum gt_session_list)which), next);
}

/* Whoever reads leaves threads out by the lists where others than the top want them all: instances,
 * and, as on Linux, the function profiler. Beside a tracer, whose records would be of all threads
 * then, the profiler counts those that are listed. */
static uint32_t use_of_lists(const struct gt_session *session)
{
	bool counts =
		gt_session_profiles(session) && session->live.target.tracer == GRAFTRACE_TRACER_NOP;

	return session->wanted.others || counts ? GRAFTRACE_LIST_KEPT : GRAFTRACE_LIST_STRICT;
}

static void set_threads(uint32_t *slots, const uint32_t *tids, uint32_t count)
{
	uint32_t k;

	/* What stays keeps its slot, so that no thread misses itself meanwhile. */
	for (uint32_t i = 0; i < GRAFTRACE_SELECTED_SLOTS; i++) {
		uint32_t tid = __atomic_load_n(&slots[i], __ATOMIC_RELAXED);

		for (k = 0; k < count && tids[k] != tid; k++)
			;
		if (tid && k == count)
			__atomic_store_n(&slots[i], 0, __ATOMIC_SEQ_CST);
	}
	for (uint32_t i = 0; i < count; i++)
		graftrace_selected_add(slots, tids[i]);
}

void gt_session_list_threads(struct gt_session *session, const struct gt_session_arena *arena,
			     enum gt_session_list which)
{
	uint32_t tids[GT_SESSION_THREADS], count = 0;

	for (uint32_t i = 0; i < session->listed.counts[which]; i++) {
		const uint32_t number = gt_number_listed(arena, session->listed.tids[which][i]);

		if (number != 0)
			tids[count++] = number;
	}
	set_threads(slots_of(arena, which), tids, count);
}

int gt_session_set_threads(struct gt_session *session, enum gt_session_list which,
			   const uint32_t *tids, uint32_t count, struct gt_message *message)
{
	struct graftrace_arena *memory = gt_session_settings(session);

	if (count > GRAFTRACE_SELECTED_SLOTS)
		return gt_fail(message, GT_ENOSPC, "more than %u threads",
			       (unsigned)GRAFTRACE_SELECTED_SLOTS);
	pthread_mutex_lock(&session->lock);
	memcpy(session->listed.tids[which], tids, count * sizeof(*tids));
	session->listed.counts[which] = count;
	for (uint32_t i = 0; i < session->arena_count; i++)
		gt_session_list_threads(session, &session->arenas[i], which);
	__atomic_store_n(which == GT_SESSION_ONLY ? &memory->selected : &memory->left_out,
			 count == 0 ? GRAFTRACE_LIST_NONE : use_of_lists(session),
			 __ATOMIC_SEQ_CST);
	gt_stop_words_write_host(session);
	pthread_mutex_unlock(&session->lock);
	return 0;
}

void gt_session_publish_threads(struct gt_session *session)
{
	struct graftrace_arena *memory = gt_session_settings(session);
	uint32_t use = use_of_lists(session);

	if (memory->selected)
		__atomic_store_n(&memory->selected, use, __ATOMIC_SEQ_CST);
	if (memory->left_out)
		__atomic_store_n(&memory->left_out, use, __ATOMIC_SEQ_CST);
}

bool gt_session_lists_threads(const struct gt_session *session)
{
	const struct graftrace_arena *memory = gt_session_settings(session);

	return memory->selected || memory->left_out;
}

static int by_number(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

static bool is_listed(const uint32_t *tids, uint32_t count, uint32_t tid)
{
	for (uint32_t i = 0; i < count; i++)
		if (tids[i] == tid)
			return true;
	return false;
}

/* Whether the thread is of a process that has that arena. */
static bool is_of_arena(struct gt_session *session, uint32_t arena, uint32_t tid)
{
	char text[4096];
	const struct gt_tracee *tracee;

	if (!gt_proc_read(text, sizeof(text), "/proc/%u/status", tid))
		return false;
	tracee = gt_follow_find(session, (pid_t)gt_proc_field(text, "Tgid"));
	return tracee != NULL && tracee->arena == arena;
}

/* Adds what threads of the arena have added to the list. */
static uint32_t add_followers(struct gt_session *session, uint32_t arena,
			      enum gt_session_list which, uint32_t *tids, uint32_t count)
{
	const uint32_t *slots = slots_of(&session->arenas[arena], which);

	for (uint32_t i = 0; i < GRAFTRACE_SELECTED_SLOTS && count < GT_SESSION_THREADS; i++) {
		uint32_t tid = __atomic_load_n(&slots[i], __ATOMIC_RELAXED);

		if (tid && !is_listed(tids, count, tid) &&
		    (session->arena_count == 1 || is_of_arena(session, arena, tid)))
			tids[count++] = tid;
	}
	return count;
}

_Static_assert(GT_SESSION_THREADS == GRAFTRACE_SELECTED_SLOTS, "as many as there can be");

uint32_t gt_session_threads(struct gt_session *session, enum gt_session_list which,
			    uint32_t tids[GT_SESSION_THREADS])
{
	uint32_t count;

	pthread_mutex_lock(&session->lock);
	count = session->listed.counts[which];
	memcpy(tids, session->listed.tids[which], count * sizeof(*tids));
	for (uint32_t k = 0; k < session->arena_count; k++)
		count = add_followers(session, k, which, tids, count);
	pthread_mutex_unlock(&session->lock);
	qsort(tids, count, sizeof(*tids), by_number);
	return count;
}

int gt_session_thread(struct gt_session *session, enum gt_session_list which, uint32_t index,
		      uint32_t *tid)
{
	uint32_t sorted[GT_SESSION_THREADS];

	if (index >= gt_session_threads(session, which, sorted))
		return GT_ENOENT;
	*tid = sorted[index];
	return 0;
}

void gt_session_set_follow(struct gt_session *session, bool follow)
{
	__atomic_store_n(&gt_session_settings(session)->children_follow, follow, __ATOMIC_SEQ_CST);
}

/* It lives, in another process: what a stream says of its thread any process of its arena may have written. */
static bool is_of_another(pid_t pid, pid_t tid)
{
	return !gt_follow_is_thread_of(pid, tid) &&
	       (syscall(SYS_tkill, tid, 0) == 0 || errno != ESRCH);
}

static void unlist(struct gt_session_listed *listed, uint32_t which, uint32_t tid)
{
	uint32_t *tids = listed->tids[which], *count = &listed->counts[which];

	for (uint32_t i = 0; i < *count; i++)
		while (i < *count && tids[i] == tid)
			tids[i] = tids[--*count];
}

/* As Linux does for lists that children follow: who has ended is in them no longer. */
void gt_session_forget_thread(struct gt_session *session, pid_t pid, uint32_t tid)
{
	const struct graftrace_arena *memory = gt_session_settings(session);

	if (!memory->children_follow || (!memory->selected && !memory->left_out) || !tid ||
	    is_of_another(pid, (pid_t)tid))
		return;
	for (uint32_t which = GT_SESSION_ONLY; which <= GT_SESSION_NOT; which++)
		unlist(&session->listed, which, tid);
	for (uint32_t k = 0; k < session->arena_count; k++)
		for (uint32_t which = GT_SESSION_ONLY; which <= GT_SESSION_NOT; which++) {
			uint32_t *slots =
				slots_of(&session->arenas[k], (enum gt_session_list)which);

			for (uint32_t i = 0; i < GRAFTRACE_SELECTED_SLOTS; i++)
				if (__atomic_load_n(&slots[i], __ATOMIC_RELAXED) == tid)
					__atomic_store_n(&slots[i], 0, __ATOMIC_RELAXED);
		}
}
