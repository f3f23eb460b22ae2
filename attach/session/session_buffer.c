/* SPDX-License-Identifier: MIT */
/* A session's ring: whether it overwrites, whether it is a way only, and emptying it. Any thread. */
#include "attach/session/session.h"
#include "attach/session/session_private.h"

#define TRANSPORT_WAIT_MS 200

void gt_session_keep_writers(struct gt_session *session)
{
	bool in_ring;

	pthread_mutex_lock(&session->lock);
	for (uint32_t i = 0; i < session->arena_count; i++)
		gt_drain_keep_writers(&session->arenas[i].drain);
	in_ring = session->arenas[0].drain.mode != GRAFTRACE_MODE_DRAIN;
	pthread_mutex_unlock(&session->lock);
	if (in_ring)
		gt_off_cpu_find_times(&session->switches.watch);
}

static void set_drains(struct gt_session *session, enum graftrace_arena_mode mode)
{
	for (uint32_t i = 0; i < session->arena_count; i++)
		session->arenas[i].drain.mode = mode;
}

int gt_session_set_overwrite(struct gt_session *session, bool overwrite, struct gt_message *message)
{
	enum graftrace_arena_mode mode = overwrite ? GRAFTRACE_MODE_OVERWRITE : GRAFTRACE_MODE_RING;
	int error = 0;

	pthread_mutex_lock(&session->lock);
	if (session->arenas[0].drain.mode == GRAFTRACE_MODE_DRAIN) {
		error = gt_fail(message, GT_EINVAL,
				"records go to a file as they come: there is nothing to overwrite");
	} else if (!session->wanted.transport) {
		set_drains(session, mode);
		__atomic_store_n(&gt_session_settings(session)->mode, mode, __ATOMIC_SEQ_CST);
		/* Writers that stopped for lack of room may go on by overwriting. */
		gt_stop_words_clear_full(session);
	}
	pthread_mutex_unlock(&session->lock);
	return error;
}

void gt_session_set_transport(struct gt_session *session)
{
	struct graftrace_arena *memory = gt_session_settings(session);

	pthread_mutex_lock(&session->lock);
	session->wanted.transport = true;
	set_drains(session, GRAFTRACE_MODE_RING); /* what is there is taken out, not given up */
	__atomic_store_n(&memory->wait_ms, TRANSPORT_WAIT_MS, __ATOMIC_SEQ_CST);
	__atomic_store_n(&memory->mode, GRAFTRACE_MODE_DRAIN, __ATOMIC_SEQ_CST);
	gt_stop_words_write(session, GRAFTRACE_STOP_BYTE_MODE, 0);
	gt_stop_words_clear_full(session);
	pthread_mutex_unlock(&session->lock);
}

void gt_session_has_room(struct gt_session *session, bool waits)
{
	pthread_mutex_lock(&session->lock);
	__atomic_store_n(&gt_session_settings(session)->wait_ms, waits ? TRANSPORT_WAIT_MS : 0,
			 __ATOMIC_SEQ_CST);
	gt_stop_words_clear_full(session);
	pthread_mutex_unlock(&session->lock);
}

int gt_session_clear(struct gt_session *session)
{
	pthread_mutex_lock(&session->lock);
	for (uint32_t i = 0; i < session->arena_count; i++)
		if (session->arenas[i].drain.mode != GRAFTRACE_MODE_DRAIN)
			gt_drain_clear(&session->arenas[i].drain);
	gt_stop_words_clear_full(session);
	pthread_mutex_unlock(&session->lock);
	return 0;
}
