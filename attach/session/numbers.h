/* SPDX-License-Identifier: MIT */
/*
 * Numbers of processes and threads as they call themselves, and as this host knows them: others if they are in another
 * PID namespace (a container). What stands in an arena are the former. All functions with the session's lock held.
 */
#ifndef GT_ATTACH_SESSION_NUMBERS_H
#define GT_ATTACH_SESSION_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/ring/arena.h"

struct gt_session;
struct gt_session_arena;
struct gt_tracee;

/* A process that descends from a traced one, and is in no list yet. */
struct gt_stranger {
	pid_t pid, inside;
	bool asked;			      /* which arena it has */
	const struct gt_session_arena *arena; /* NULL: none */
};

#define GT_STRANGERS 16384

struct gt_session_strangers {
	struct gt_stranger found[GT_STRANGERS];
	uint32_t count;
	bool elsewhere;		     /* somebody of ours was seen in another namespace */
	uint64_t next_ns;	     /* they are not looked for before, */
	uint64_t next_everywhere_ns; /* and not among all processes */
	/* Of streams in each arena, when they were looked for last. */
	uint32_t generations[GT_ARENAS];
};

/* Notes what the tracee calls itself: once its process is known. */
void gt_number_tracee(struct gt_session *session, struct gt_tracee *tracee);

/*
 * Number `at` of the processes that call themselves `inside` and have that arena: one at most, but while children that
 * have begun namespaces of their own have their parent's. 0: no more are known; descendants of traced processes have to
 * be looked through (gt_number_look) before such a number can be taken for one of a process that has ended, or that
 * somebody has made up. Once the session has left all processes, and for numbers that no process has: `inside`.
 */
pid_t gt_number_candidate(struct gt_session *session, const struct gt_session_arena *arena,
			  pid_t inside, uint32_t at);

/* The first of them; `inside` if none is known. */
pid_t gt_number_likely(struct gt_session *session, const struct gt_session_arena *arena,
		       pid_t inside);

/* Looks for descendants of traced processes that are in no list. False: not now, it was done a moment ago. */
bool gt_number_look(struct gt_session *session);

/* The same among all processes of the machine, in other namespaces than this host's: for a letter whose sender waits, and
 * descends from nobody that is traced. A twentieth of the time. False: not now, ask again; true
 * without a look where none of ours was seen in another namespace yet. */
bool gt_number_look_everywhere(struct gt_session *session);

/* The process and the thread of a stream; what they call themselves if they have ended. False: not to be told before the
 * next round. */
bool gt_number_of_stream(struct gt_session *session, const struct gt_session_arena *arena,
			 const struct graftrace_stream *stream, uint32_t *pid, uint32_t *tid);

/* The thread of process pid that calls itself `inside`; `inside` itself if there is none. */
pid_t gt_number_thread(struct gt_session *session, pid_t pid, pid_t inside);

/* What process pid calls itself; pid itself if it is not known and has ended. */
pid_t gt_number_inside(struct gt_session *session, pid_t pid);

/* The number by which a list of threads in that arena has thread `tid`: its own; 0: it has none in that arena's PID
 * namespace. */
uint32_t gt_number_listed(const struct gt_session_arena *arena, uint32_t tid);

#endif
