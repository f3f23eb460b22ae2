/* SPDX-License-Identifier: MIT */
/*
 * Numbers of processes and threads inside and outside of their PID namespace: see numbers.h.
 *
 * An arena is of processes of one namespace (credentials.h). But a child that begins a namespace has its parent's arena
 * until it has been taken in, and first it has to be found: among the children of traced processes, which the kernel
 * lists. Others than descendants are not found; they are taken for processes that have ended.
 */
#include "attach/session/numbers.h"
#include "attach/process/pid_namespace.h"
#include "attach/process/proc.h"
#include "attach/session/session_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Looking takes no more than a fifth of the time. */
#define LEAST_PAUSE_NS 1000000ull
#define PAUSES	       4

static bool is_elsewhere(const struct gt_session_arena *arena)
{
	static uint64_t own; /* any thread finds the same */
	uint64_t known = __atomic_load_n(&own, __ATOMIC_RELAXED);

	if (known == 0) {
		known = gt_pid_namespace(getpid());
		__atomic_store_n(&own, known, __ATOMIC_RELAXED);
	}
	return arena->credentials.pid_namespace != 0 && arena->credentials.pid_namespace != known;
}

void gt_number_tracee(struct gt_tracee *tracee)
{
	const pid_t pid = tracee->process.pid, inside = gt_pid_inside(pid, pid);

	tracee->inside = inside != 0 ? inside : pid;
}

/* Adds the children of one thread that are in no list. */
static void add_children(struct gt_session *session, pid_t pid, pid_t tid)
{
	struct gt_session_strangers *strangers = &session->strangers;
	char text[4096], *at = text, *end;
	pid_t child, inside;

	if (!gt_proc_read(text, sizeof(text), "/proc/%d/task/%d/children", (int)pid, (int)tid))
		return;
	while (strangers->count < GT_STRANGERS && (child = (pid_t)strtol(at, &end, 10)) > 0) {
		inside = gt_follow_find(session, child) == NULL ? gt_pid_inside(child, child) : 0;
		if (inside != 0)
			strangers->found[strangers->count++] =
				(struct gt_stranger){ child, inside };
		at = end;
	}
}

static void add_children_of(struct gt_session *session, pid_t pid)
{
	DIR *threads = gt_proc_numbers(pid);
	pid_t tid;

	while (threads != NULL && (tid = gt_proc_next(threads)))
		add_children(session, pid, tid);
	if (threads != NULL)
		closedir(threads);
}

bool gt_number_look(struct gt_session *session)
{
	struct gt_session_strangers *strangers = &session->strangers;
	const uint64_t now = gt_monotonic_ns();
	uint64_t took;

	if (now < strangers->next_ns)
		return false;
	for (uint32_t k = 0; k < session->arena_count; k++)
		strangers->generations[k] = __atomic_load_n(
			&session->arenas[k].shared.memory->generations, __ATOMIC_ACQUIRE);
	strangers->count = 0;
	for (size_t i = 0; i < session->tracees.count; i++)
		add_children_of(session, session->tracees.list[i]->process.pid);
	for (uint32_t i = 0; i < strangers->count; i++)
		add_children_of(session, strangers->found[i].pid);
	took = gt_monotonic_ns() - now;
	strangers->next_ns =
		now + took + (took * PAUSES > LEAST_PAUSE_NS ? took * PAUSES : LEAST_PAUSE_NS);
	return true;
}

/* 0: none of those that were found. */
static pid_t find_stranger(struct gt_session *session, const struct gt_session_arena *arena,
			   pid_t inside)
{
	const struct gt_session_strangers *strangers = &session->strangers;

	for (uint32_t i = 0; i < strangers->count; i++)
		if (strangers->found[i].inside == inside &&
		    gt_session_arena_mapped(session, strangers->found[i].pid) == arena)
			return strangers->found[i].pid;
	return 0;
}

static const struct gt_tracee *find_tracee(const struct gt_session *session,
					   const struct gt_session_arena *arena, pid_t inside)
{
	for (size_t i = 0; i < session->tracees.count; i++) {
		const struct gt_tracee *tracee = session->tracees.list[i];

		if (tracee->inside == inside && tracee->arena == arena->shared.number)
			return tracee;
	}
	return NULL;
}

pid_t gt_number_known(struct gt_session *session, const struct gt_session_arena *arena,
		      pid_t inside)
{
	const struct gt_tracee *tracee = find_tracee(session, arena, inside);

	if (tracee != NULL)
		return tracee->process.pid;
	if (inside <= 0 || session->tracees.count == 0)
		return inside;
	if (!is_elsewhere(arena) && gt_session_arena_mapped(session, inside) == arena)
		return inside;
	return find_stranger(session, arena, inside);
}

pid_t gt_number_of_stream(struct gt_session *session, const struct gt_session_arena *arena,
			  uint32_t generation, pid_t inside)
{
	const uint32_t *looked_at = &session->strangers.generations[arena->shared.number];
	pid_t pid = gt_number_known(session, arena, inside);

	if (pid != 0)
		return pid;
	if (generation > *looked_at) {
		if (!gt_number_look(session))
			return 0;
		pid = gt_number_known(session, arena, inside);
	}
	return pid != 0 ? pid : inside;
}

pid_t gt_number_inside(struct gt_session *session, pid_t pid)
{
	const struct gt_tracee *tracee = gt_follow_find(session, pid);
	const pid_t inside = tracee != NULL ? tracee->inside : gt_pid_inside(pid, pid);

	return inside != 0 ? inside : pid;
}

pid_t gt_number_thread(struct gt_session *session, pid_t pid, pid_t inside)
{
	const pid_t number = gt_number_inside(session, pid);
	pid_t tid;

	if (number == pid)
		return inside;
	if (inside == number)
		return pid;
	tid = gt_pid_of_thread_inside(pid, inside);
	return tid != 0 ? tid : inside;
}

uint32_t gt_number_listed(const struct gt_session_arena *arena, uint32_t tid)
{
	const pid_t inside = is_elsewhere(arena) ? gt_pid_inside((pid_t)tid, (pid_t)tid) : 0;

	return inside != 0 ? (uint32_t)inside : tid;
}
