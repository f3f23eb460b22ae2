/* SPDX-License-Identifier: MIT */
/*
 * Triggers of a running session: changes of them, and the letters that say that one has acted. The
 * agent has done in its own process what had to be done at that moment; here the other processes
 * follow, and the handler is told.
 */
#include "attach/session/session.h"
#include "attach/agent/handlers.h"
#include "attach/session/session_private.h"
#include "core/trace/glob.h"

#include <stdio.h>
#include <string.h>

#define ACTIONS_A_SECOND 100

/* How many functions that can be traced the glob names; *returning: of these, those whose returns
 * are seen. */
static uint32_t count_matches(struct gt_session *session, const char *glob, uint32_t *returning)
{
	uint32_t matches = 0;

	*returning = 0;
	for (size_t i = 0; i < session->tracees.count; i++) {
		struct gt_tracee *tracee = session->tracees.list[i];

		for (size_t k = 0; k < tracee->object_count; k++) {
			struct gt_tracee_object *object = tracee->objects[k];
			struct gt_catalog_file *file = object->file;

			for (uint32_t index = 0; index < file->function_count; index++) {
				const char *name = gt_object_function(file->object, index)->name;
				const char *shown = gt_object_function_name(file->object, index);

				if ((!gt_glob_match(glob, name) && !gt_glob_match(glob, shown)) ||
				    !gt_tracee_can_trace(object, index, &session->selection))
					continue;
				matches++;
				*returning += !file->entries[index].entry_only;
			}
		}
	}
	return matches;
}

static int select_again(struct gt_session *session, struct gt_message *message)
{
	int error = 0, result;

	for (size_t i = 0; i < session->tracees.count; i++) {
		result = gt_tracee_select(session->tracees.list[i], &session->catalog,
					  &session->selection, message);
		error = error ? error : result;
	}
	return error;
}

static bool is_known(const struct gt_trigger *trigger)
{
	return trigger->glob != NULL && trigger->glob[0] && (int)trigger->action >= 0 &&
	       trigger->action < GT_TRIGGER_ACTIONS;
}

int gt_session_trigger_add(struct gt_session *session, const struct gt_trigger *trigger,
			   struct gt_message *message)
{
	uint32_t matches, returning;
	int error = 0;

	if (!is_known(trigger))
		return gt_fail(message, GT_EINVAL, "no such trigger");
	pthread_mutex_lock(&session->lock);
	matches = count_matches(session, trigger->glob, &returning);
	if (!matches)
		error = gt_fail(message, GT_EINVAL, "no function matches '%s'", trigger->glob);
	else if (trigger->longer_than_ns && !returning)
		error = gt_fail(message, GT_EINVAL,
				"how long '%s' takes is not seen: only its entries are recorded",
				trigger->glob);
	else if (matches > session->arenas[0].shared.trigger_count / 2)
		error = gt_fail(message, GT_ENOSPC,
				"'%s' names %u functions: %u can have a trigger", trigger->glob,
				matches, session->arenas[0].shared.trigger_count / 2);
	if (!error)
		error = gt_triggers_add(&session->triggers, trigger, message);
	if (!error)
		error = select_again(session, message);
	pthread_mutex_unlock(&session->lock);
	return error;
}

int gt_session_trigger_remove(struct gt_session *session, const struct gt_trigger *trigger,
			      struct gt_message *message)
{
	int error;

	if (!is_known(trigger))
		return gt_fail(message, GT_EINVAL, "no such trigger");
	pthread_mutex_lock(&session->lock);
	error = gt_triggers_remove(&session->triggers, trigger);
	if (error)
		gt_fail(message, error, "'%s' has no such trigger", trigger->glob);
	else
		error = select_again(session, message);
	pthread_mutex_unlock(&session->lock);
	return error;
}

int gt_session_trigger_get(struct gt_session *session, uint32_t index, struct gt_trigger *trigger,
			   bool *spent, char *glob, size_t room)
{
	int error;

	pthread_mutex_lock(&session->lock);
	error = gt_triggers_get(&session->triggers, index, trigger, spent);
	if (!error) { /* the rule's own is freed with it */
		snprintf(glob, room, "%s", trigger->glob);
		trigger->glob = glob;
	}
	pthread_mutex_unlock(&session->lock);
	return error;
}

int gt_session_trigger_handler(struct gt_session *session,
			       void (*handler)(void *data, const struct gt_trigger_hit *hit),
			       void *data)
{
	pthread_mutex_lock(&session->lock);
	session->hits.handler = handler;
	session->hits.handler_data = data;
	pthread_mutex_unlock(&session->lock);
	return 0;
}

/* The blocks of all processes say what the word says. Agents change the word first, then their own
 * blocks: if it changed while we wrote, theirs may have been the older value, and ours goes again.
 */
static void follow_tracing(struct gt_session *session, const struct gt_session_arena *arena)
{
	uint32_t *word = &arena->shared.memory->tracing_on, on;

	for (int tries = 0; tries < 8; tries++) {
		on = __atomic_load_n(word, __ATOMIC_SEQ_CST);
		gt_stop_words_write_host(session);
		if (gt_session_profiles(session))
			gt_stop_words_write(session, GRAFTRACE_STOP_BYTE_MODE, 0);
		if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == on)
			return;
	}
}

/* The number of the hit whose letter is in the slot and waits; pending_count: none does. */
static uint32_t find_pending(const struct gt_session *session, const struct gt_session_arena *arena,
			     uint32_t index)
{
	uint32_t i;

	for (i = 0; i < session->hits.pending_count; i++)
		if (session->hits.pending[i].waits &&
		    session->hits.pending[i].letter.arena == arena &&
		    session->hits.pending[i].letter.slot == index)
			break;
	return i;
}

bool gt_session_is_pending(const struct gt_session *session, const struct gt_session_arena *arena,
			   uint32_t index)
{
	return find_pending(session, arena, index) < session->hits.pending_count;
}

void gt_session_answered_pending(struct gt_session *session, const struct gt_session_arena *arena,
				 uint32_t index)
{
	const uint32_t i = find_pending(session, arena, index);

	if (i < session->hits.pending_count)
		session->hits.pending[i].waits = false;
}

/* Dumps and snapshots take the host's time, and a hostile process can ask for them without end. */
static bool too_many(struct gt_session *session, uint64_t action)
{
	uint64_t now = gt_monotonic_ns();

	if (action == GT_TRIGGER_STOP)
		return false;
	if (now - session->hits.second_ns > 1000000000) {
		session->hits.second_ns = now;
		session->hits.actions = 0;
	}
	if (session->hits.actions++ < ACTIONS_A_SECOND)
		return false;
	session->hits.actions_left++;
	return true;
}

bool gt_session_on_trigger(struct gt_session *session, const struct gt_letter *letter,
			   const struct graftrace_mail *mail)
{
	uint32_t function = (uint32_t)mail->argument[0];
	struct gt_event_format event = { 0 };
	struct gt_pending_hit *pending;
	uint64_t action = mail->argument[0] >> 32;
	bool switches = action == GT_TRIGGER_TRACEOFF || action == GT_TRIGGER_TRACEON;

	/* Any process may have written it: what no trigger of ours does is not done. */
	if (action >= GT_TRIGGER_ACTIONS)
		return false;
	if (function & GRAFTRACE_TRIGGER_OF_EVENT
		    ? !gt_session_event_acts(session, function & ~GRAFTRACE_TRIGGER_OF_EVENT,
					     action, &event)
		    : !gt_triggers_has(&session->triggers, function,
				       (enum gt_trigger_action)action))
		return false;
	if (switches || action == GT_TRIGGER_STOP) {
		gt_session_note_trigger(session, letter->arena, action == GT_TRIGGER_TRACEON);
		follow_tracing(session, letter->arena);
	}
	if (session->hits.handler == NULL || session->hits.pending_count == GRAFTRACE_ARENA_MAIL ||
	    (!switches && too_many(session, action)))
		return false;
	pending = &session->hits.pending[session->hits.pending_count];
	*pending = (struct gt_pending_hit){
		.waits = !switches,
		.letter = *letter,
		.hit = {
			.action = (enum gt_trigger_action)action,
			.pid = mail->pid,
			.tid = mail->tid,
			.tsc = mail->argument[2],
			.took_ns = gt_clock_duration_ns(&session->live.target.clock,
							mail->argument[3]),
		},
	};
	if (event.name != NULL)
		pending->hit.function =
			(struct gt_function){ .name = event.name, .object = event.object };
	else if (gt_catalog_function(&session->catalog, function, &pending->hit.function))
		pending->hit.function = (struct gt_function){ .name = "?", .object = "" };
	session->hits.pending_count++;
	return pending->waits;
}

void gt_session_run_handlers(struct gt_session *session)
{
	struct gt_pending_hit pending[GRAFTRACE_ARENA_MAIL];
	void (*handler)(void *data, const struct gt_trigger_hit *hit);
	uint32_t count;
	void *data;

	pthread_mutex_lock(&session->lock);
	count = session->hits.pending_count;
	memcpy(pending, session->hits.pending, count * sizeof(*pending));
	handler = session->hits.handler;
	data = session->hits.handler_data;
	pthread_mutex_unlock(&session->lock);
	if (!count)
		return;
	for (uint32_t i = 0; handler != NULL && i < count; i++)
		handler(data, &pending[i].hit);
	pthread_mutex_lock(&session->lock);
	/* Some may have been answered meanwhile: another letter may be in the slot. */
	for (uint32_t i = 0; i < count; i++)
		if (session->hits.pending[i].waits)
			gt_mail_answer(&session->hits.pending[i].letter, 0);
	session->hits.pending_count = 0; /* only this thread adds to it */
	pthread_mutex_unlock(&session->lock);
}

/* A glob that names this and nothing else. */
static bool quote(const char *name, char *glob, size_t room)
{
	size_t at = 0;

	for (; *name; name++) {
		if (at + 3 > room)
			return false;
		if (strchr("*?[\\", *name) != NULL)
			glob[at++] = '\\';
		glob[at++] = *name;
	}
	glob[at] = 0;
	return true;
}

static void stop_at(struct gt_session *session, const struct gt_tracee *tracee, uint64_t address)
{
	char glob[1024];
	uint32_t index;

	for (size_t i = 0; i < tracee->object_count; i++) {
		const struct gt_tracee_object *object = tracee->objects[i];
		const struct gt_object *file = object->file->object;
		struct gt_trigger trigger = { .glob = glob, .action = GT_TRIGGER_STOP };

		if (object->gone || address < object->start || address >= object->end ||
		    gt_object_function_at(file, address - object->bias, &index) ||
		    gt_object_function(file, index)->address != address - object->bias ||
		    !quote(gt_object_function_name(object->file->object, index), glob,
			   sizeof(glob)))
			continue;
		/* The program waits for it, not for a message: what fails is not stopped at. */
		if (gt_triggers_add(&session->triggers, &trigger, NULL) == 0)
			select_again(session, NULL);
		return;
	}
}

void gt_session_on_handler(struct gt_session *session, const struct graftrace_letter *letter)
{
	const struct gt_tracee *tracee = gt_follow_find(session, (pid_t)letter->pid);

	if (tracee != NULL)
		stop_at(session, tracee, letter->argument[0]);
}

int gt_session_handlers(struct gt_session *session, struct gt_tracee *tracee, uint64_t handlers[64],
			struct gt_message *message)
{
	const uint64_t signals = gt_session_settings(session)->signals;
	const int error = signals ? gt_signals_handlers(tracee, signals, handlers, message) : 0;

	if (!signals || error == GT_EGONE)
		memset(handlers, 0, 64 * sizeof(*handlers));
	return error == GT_EGONE ? 0 : error;
}

void gt_session_stop_at_handlers(struct gt_session *session, struct gt_tracee *tracee,
				 const uint64_t handlers[64])
{
	for (int i = 0; i < 64; i++)
		if (handlers[i])
			stop_at(session, tracee, handlers[i]);
}
