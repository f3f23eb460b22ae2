/* SPDX-License-Identifier: MIT */
/*
 * Numbers of processes and threads inside and outside of their PID namespace: see numbers.h.
 *
 * An arena is of processes of one namespace (credentials.h). But a child that begins a namespace has its parent's arena
 * until it has been taken in, and first it has to be found: among the children of traced processes, which the kernel
 * lists; for a letter whose sender waits, at last among all processes. Who is not found is taken for one that has ended.
 */
#include "attach/session/numbers.h"
#include "attach/process/pid_namespace.h"
#include "attach/process/proc.h"
#include "attach/session/session_private.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Looking takes no more than a fifth of the time. */
#define LEAST_PAUSE_NS	  1000000ull
#define PAUSES		  4
#define PAUSES_EVERYWHERE 19
/* Of /proc/PID/task/TID/children: each number has a blank behind it. */
#define CHILDREN_BYTES 262144

static bool is_elsewhere(const struct gt_session_arena *arena)
{
	static uint64_t own; /* any thread finds the same */
	uint64_t known = __atomic_load_n(&own, __ATOMIC_RELAXED);

	if (known == 0) {
		known = gt_proc_namespace(getpid(), "pid");
		__atomic_store_n(&own, known, __ATOMIC_RELAXED);
	}
	return arena->credentials.pid_namespace != 0 && arena->credentials.pid_namespace != known;
}

void gt_number_tracee(struct gt_session *session, struct gt_tracee *tracee)
{
	const pid_t pid = tracee->process.pid, inside = gt_pid_inside(pid, pid);

	tracee->inside = inside != 0 ? inside : pid;
	session->strangers.elsewhere = session->strangers.elsewhere || tracee->inside != pid;
	tracee->threads_generation = 0; /* of another arena */
}

/* Of this thread: while it waits for a processor it holds nobody up by looking. */
static uint64_t worked_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* What a process calls itself; 0: it is a tracee, or has ended. */
static pid_t inside_of_stranger(struct gt_session *session, pid_t pid)
{
	return gt_follow_find(session, pid) == NULL ? gt_pid_inside(pid, pid) : 0;
}

static void add_stranger(struct gt_session_strangers *strangers, struct gt_stranger stranger)
{
	if (strangers->count < GT_STRANGERS)
		strangers->found[strangers->count++] = stranger;
}

/* Adds the children of one thread that are in no list. */
static void add_children(struct gt_session *session, pid_t pid, pid_t tid)
{
	char *text = malloc(CHILDREN_BYTES), *at = text, *end;
	pid_t child, inside;

	if (text != NULL &&
	    gt_proc_read(text, CHILDREN_BYTES, "/proc/%d/task/%d/children", (int)pid, (int)tid))
		for (; (child = (pid_t)strtol(at, &end, 10)) > 0 && *end != 0; at = end) {
			inside = inside_of_stranger(session, child);
			if (inside != 0)
				add_stranger(
					&session->strangers,
					(struct gt_stranger){ .pid = child, .inside = inside });
		}
	free(text);
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
	const uint64_t begun = worked_ns();
	uint64_t took;

	if (gt_monotonic_ns() < strangers->next_ns)
		return false;
	for (uint32_t k = 0; k < session->arena_count; k++)
		strangers->generations[k] = __atomic_load_n(
			&session->arenas[k].shared.memory->generations, __ATOMIC_ACQUIRE);
	strangers->count = 0;
	for (size_t i = 0; i < session->tracees.count; i++)
		add_children_of(session, session->tracees.list[i]->process.pid);
	for (uint32_t i = 0; i < strangers->count; i++)
		add_children_of(session, strangers->found[i].pid);
	took = worked_ns() - begun;
	strangers->next_ns = gt_monotonic_ns() +
			     (took * PAUSES > LEAST_PAUSE_NS ? took * PAUSES : LEAST_PAUSE_NS);
	return true;
}

bool gt_number_look_everywhere(struct gt_session *session)
{
	struct gt_session_strangers *strangers = &session->strangers;
	const uint64_t begun = worked_ns();
	const struct gt_session_arena *arena;
	DIR *processes;
	pid_t pid, inside;

	/* Where nobody was seen in another namespace yet, it has most likely ended. */
	if (gt_monotonic_ns() < strangers->next_everywhere_ns)
		return !strangers->elsewhere;
	processes = gt_proc_numbers(0);
	strangers->count = 0;
	while (processes != NULL && (pid = gt_proc_next(processes))) {
		inside = inside_of_stranger(session, pid);
		/* Others than ours, mostly: that is seen by their numbers, or by their memory. */
		arena = inside != 0 && inside != pid ? gt_session_arena_mapped(session, pid) : NULL;
		if (arena != NULL)
			add_stranger(strangers, (struct gt_stranger){ pid, inside, true, arena });
	}
	if (processes != NULL)
		closedir(processes);
	strangers->elsewhere = strangers->elsewhere || strangers->count != 0;
	strangers->next_everywhere_ns =
		gt_monotonic_ns() + LEAST_PAUSE_NS + (worked_ns() - begun) * PAUSES_EVERYWHERE;
	return true;
}

/* Each is asked once between two looks. */
static const struct gt_session_arena *arena_of(struct gt_session *session,
					       struct gt_stranger *stranger)
{
	if (!stranger->asked) {
		stranger->arena = gt_session_arena_mapped(session, stranger->pid);
		stranger->asked = true;
	}
	return stranger->arena;
}

pid_t gt_number_candidate(struct gt_session *session, const struct gt_session_arena *arena,
			  pid_t inside, uint32_t at)
{
	struct gt_session_strangers *strangers = &session->strangers;
	bool found = false;

	for (size_t i = 0; i < session->tracees.count; i++) {
		const struct gt_tracee *tracee = session->tracees.list[i];

		if (tracee->inside != inside || tracee->arena != arena->shared.number)
			continue;
		if (at-- == 0)
			return tracee->process.pid;
		found = found || tracee->process.pid == inside;
	}
	if (inside <= 0 || session->tracees.count == 0)
		return at == 0 ? inside : 0;
	if (!found && !is_elsewhere(arena) && gt_session_arena_mapped(session, inside) == arena &&
	    at-- == 0)
		return inside;
	for (uint32_t i = 0; i < strangers->count; i++) {
		struct gt_stranger *stranger = &strangers->found[i];

		if (stranger->inside == inside && stranger->pid != inside &&
		    gt_follow_find(session, stranger->pid) == NULL &&
		    arena_of(session, stranger) == arena && at-- == 0)
			return stranger->pid;
	}
	return 0;
}

pid_t gt_number_likely(struct gt_session *session, const struct gt_session_arena *arena,
		       pid_t inside)
{
	const pid_t pid = gt_number_candidate(session, arena, inside, 0);

	return pid != 0 ? pid : inside;
}

pid_t gt_number_inside(struct gt_session *session, pid_t pid)
{
	const struct gt_tracee *tracee = gt_follow_find(session, pid);
	const pid_t inside = tracee != NULL ? tracee->inside : gt_pid_inside(pid, pid);

	return inside != 0 ? inside : pid;
}

/*
 * The thread of process pid that calls itself `inside`; 0: it has ended. generation: of the stream that it has claimed, or
 * UINT32_MAX: threads that a process has had then were read since, if it is not newer.
 */
static pid_t find_thread(struct gt_session *session, pid_t pid, pid_t inside, uint32_t generation)
{
	struct gt_tracee *tracee = gt_follow_find(session, pid);
	struct gt_pid_map own = { 0 };
	const pid_t number = gt_number_inside(session, pid);
	pid_t tid;

	/* In another namespace it may have the same number by chance. */
	if (number == pid && (tracee == NULL || !is_elsewhere(&session->arenas[tracee->arena])))
		return inside;
	if (inside == number)
		return pid;
	if (tracee == NULL) {
		gt_pid_map_fill(&own, pid);
		tid = gt_pid_map_find(&own, pid, inside);
		gt_pid_map_free(&own);
		return tid;
	}
	tid = gt_pid_map_find(&tracee->threads, pid, inside);
	if (tid == 0 && generation > tracee->threads_generation) {
		tracee->threads_generation =
			__atomic_load_n(&session->arenas[tracee->arena].shared.memory->generations,
					__ATOMIC_ACQUIRE);
		gt_pid_map_fill(&tracee->threads, pid);
		tid = gt_pid_map_find(&tracee->threads, pid, inside);
	}
	return tid;
}

/* Whether a process has opened that stream, as its own memory says. A stranger's agent is where a tracee's is. */
static bool has_opened(struct gt_session *session, const struct gt_session_arena *arena, pid_t pid,
		       const struct graftrace_stream *stream)
{
	const uint32_t index = (uint32_t)(stream - gt_arena_stream(&arena->shared, 0));
	const uint64_t block = __atomic_load_n(&stream->block, __ATOMIC_ACQUIRE);
	const uint32_t generation = __atomic_load_n(&stream->generation, __ATOMIC_RELAXED);
	const struct gt_tracee *known = gt_follow_find(session, pid);
	struct gt_process process = { .memory = -1, .pidfd = -1 };
	uint64_t image = 0;
	bool found = false;

	if (block == 0 || (known == NULL && gt_process_open(&process, pid, NULL)))
		return false;
	for (size_t i = 0; i < session->tracees.count && !found; i++) {
		const struct gt_tracee *tracee = session->tracees.list[i];

		if (!tracee->has_agent || tracee->arena != arena->shared.number ||
		    tracee->agent.image == image || (known != NULL && tracee != known))
			continue;
		image = tracee->agent.image;
		found = gt_stop_words_block(arena, index, block, generation,
					    known != NULL ? &known->process : &process,
					    &tracee->agent) != 0;
	}
	if (known == NULL)
		gt_process_close(&process);
	return found;
}

static bool is_ending(struct gt_session *session, pid_t pid)
{
	const struct gt_tracee *tracee = gt_follow_find(session, pid);

	return tracee != NULL && gt_process_is_ending(&tracee->process);
}

/* The process that has opened the stream. 0: none that is known. */
static pid_t find_writer(struct gt_session *session, const struct gt_session_arena *arena,
			 const struct graftrace_stream *stream)
{
	const pid_t inside = (pid_t)__atomic_load_n(&stream->pid, __ATOMIC_RELAXED);
	pid_t pid = gt_number_candidate(session, arena, inside, 0);

	/* Processes of this host's own namespace need not be asked. */
	for (uint32_t at = 0;
	     pid != 0 && pid != inside && !has_opened(session, arena, pid, stream);)
		pid = gt_number_candidate(session, arena, inside, ++at);
	return pid;
}

/* A tracee that calls itself so, and is about to end: it cannot be asked any more. 0: none. */
static pid_t find_ending(struct gt_session *session, const struct gt_session_arena *arena,
			 pid_t inside)
{
	pid_t pid = gt_number_candidate(session, arena, inside, 0);

	for (uint32_t at = 0; pid != 0 && !is_ending(session, pid);)
		pid = gt_number_candidate(session, arena, inside, ++at);
	return pid;
}

/* Whether a thread that may have claimed the stream lives, and has yet to write which block is its own. */
static bool is_coming(struct gt_session *session, const struct gt_session_arena *arena,
		      const struct graftrace_stream *stream, pid_t inside, pid_t tid)
{
	const uint32_t generation = __atomic_load_n(&stream->generation, __ATOMIC_RELAXED);
	bool coming = false;
	pid_t pid;

	if (__atomic_load_n(&stream->block, __ATOMIC_ACQUIRE) != 0)
		return false;
	for (uint32_t at = 0;
	     !coming && (pid = gt_number_candidate(session, arena, inside, at)) != 0; at++)
		coming = pid != inside && find_thread(session, pid, tid, generation) != 0;
	return coming;
}

bool gt_number_of_stream(struct gt_session *session, const struct gt_session_arena *arena,
			 const struct graftrace_stream *stream, uint32_t *pid, uint32_t *tid)
{
	pid_t process = find_writer(session, arena, stream);

	*pid = __atomic_load_n(&stream->pid, __ATOMIC_RELAXED);
	*tid = __atomic_load_n(&stream->tid, __ATOMIC_RELAXED);
	if (process == 0 && is_coming(session, arena, stream, (pid_t)*pid, (pid_t)*tid))
		return false;
	if (process == 0 && *pid != 0 &&
	    __atomic_load_n(&stream->generation, __ATOMIC_RELAXED) >
		    session->strangers.generations[arena->shared.number]) {
		if (!gt_number_look(session))
			return false;
		process = find_writer(session, arena, stream);
		if (process == 0 && is_coming(session, arena, stream, (pid_t)*pid, (pid_t)*tid))
			return false;
	}
	if (process == 0)
		process = find_ending(session, arena, (pid_t)*pid);
	if (process != 0) {
		const pid_t thread =
			find_thread(session, process, (pid_t)*tid,
				    __atomic_load_n(&stream->generation, __ATOMIC_RELAXED));

		*tid = thread != 0 ? (uint32_t)thread : *tid;
		*pid = (uint32_t)process;
	}
	return true;
}

pid_t gt_number_thread(struct gt_session *session, pid_t pid, pid_t inside)
{
	const pid_t tid = find_thread(session, pid, inside, UINT32_MAX);

	return tid != 0 ? tid : inside;
}

uint32_t gt_number_listed(const struct gt_session_arena *arena, uint32_t tid)
{
	if (!is_elsewhere(arena))
		return tid;
	return gt_proc_namespace((pid_t)tid, "pid") == arena->credentials.pid_namespace
		       ? (uint32_t)gt_pid_inside((pid_t)tid, (pid_t)tid)
		       : 0;
}
