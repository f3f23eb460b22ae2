/* SPDX-License-Identifier: MIT */
/*
 * Sessions: see session.h. One lock: poll works under it and sleeps without it; live changes and
 * the live target take it for as long as one of them lasts.
 */
#define _GNU_SOURCE
#include "attach/session/session.h"
#include "attach/agent/synthetics.h"
#include "attach/session/session_private.h"
#include "core/trace/message.h"
#include "port/host/own_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* Without a ring of the doorbell, poll looks again after this. */
#define BUSY_US	     2000
#define IDLE_US	     20000
#define HEARTBEAT_MS 250
#define LAST_PASSES  1000

/* Agents that wait for this host believe that it lives while the heartbeat goes on. */
static void beat(struct gt_session *session)
{
	struct graftrace_arena *memory = gt_session_settings(session);

	__atomic_fetch_add(&memory->heartbeat, 1, __ATOMIC_RELAXED);
}

static void *watch(void *data)
{
	struct gt_session *session = data;
	struct epoll_event events[16];

	for (;;) {
		int count = epoll_wait(session->watcher.epoll, events, 16, HEARTBEAT_MS), i;

		if (count < 0 && errno != EINTR)
			return NULL;
		for (i = 0; i < count; i++)
			if (events[i].data.u32 == 1)
				return NULL; /* the session ends */
		beat(session);
		if (count > 0)
			gt_arena_ring(&session->arenas[0].shared);
	}
}

static int start_watching(struct gt_session *session, struct gt_message *message)
{
	int error;

	session->watcher.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (session->watcher.epoll < 0)
		return gt_fail(message, GT_EIO, "cannot watch processes: %s", strerror(errno));
	error = gt_own_thread_start(&session->watcher.thread, watch, session);
	if (error)
		return gt_fail(message, GT_EIO, "cannot start a thread: %s", strerror(error));
	session->watcher.runs = true;
	return 0;
}

static void stop_watching(struct gt_session *session)
{
	struct epoll_event event = { .events = EPOLLIN, .data = { .u32 = 1 } };
	int pair[2];

	if (session->watcher.runs && pipe2(pair, O_CLOEXEC) == 0) {
		close(pair[1]); /* a pipe without writers is ready at once */
		epoll_ctl(session->watcher.epoll, EPOLL_CTL_ADD, pair[0], &event);
		pthread_join(session->watcher.thread, NULL);
		close(pair[0]);
		session->watcher.runs = false;
	}
	if (session->watcher.epoll >= 0)
		close(session->watcher.epoll);
	session->watcher.epoll = -1;
}

static pid_t parent_of(void *data, pid_t pid)
{
	struct gt_session *session = data;
	struct gt_tracee *tracee = gt_follow_find(session, pid);

	return tracee != NULL ? tracee->parent : 0;
}

static void calibrate(struct gt_session *session)
{
	session->times.last = gt_clock_now();
	gt_clock_calibrate(&session->live.target.clock, session->times.first, session->times.last);
	/* Ever longer distances: 4 ms, 12, 36 … */
	session->times.next_calibration_ns =
		session->times.last.ns + 2 * (session->times.last.ns - session->times.first.ns) +
		4000000;
}

static void publish(struct gt_session *session, const struct gt_session_options *options)
{
	struct graftrace_arena *memory = gt_session_settings(session);

	memory->tracing_on = options->settings.on;
	memory->tracer = options->settings.tracer;
	memory->mode = options->mode;
	memory->wait_ms = options->mode == GRAFTRACE_MODE_DRAIN ? options->wait_ms : 0;
	memory->fork_policy = options->no_fork	    ? GRAFTRACE_FORK_CLEAN
			      : options->watch_ends ? GRAFTRACE_FORK_KNOWN
						    : GRAFTRACE_FORK_FOLLOW;
	memory->graph_only = gt_trace_settings_has_roots(&options->settings);
	memory->profile = options->profile;
	memory->children_follow = 0; /* options/function-fork, as on Linux */
	memory->max_depth = options->settings.max_depth;
	memory->signals = options->stop_signals;
}

void gt_session_publish_threshold(struct gt_session *session)
{
	uint64_t ticks = gt_clock_ticks(&session->live.target.clock, session->wanted.threshold_ns);

	if (session->wanted.threshold_ns && !ticks)
		ticks = 1;
	__atomic_store_n(&gt_session_settings(session)->threshold_ticks, ticks, __ATOMIC_SEQ_CST);
}

void gt_session_calibrate(struct gt_session *session)
{
	calibrate(session);
	gt_session_publish_threshold(session);
}

static int start_program(struct gt_session *session, char *const argv[], struct gt_message *message)
{
	struct gt_tracee *tracee = calloc(1, sizeof(*tracee));
	struct gt_session_arena *arena = NULL;
	int error, status;
	pid_t pid;

	if (tracee == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for a process");
	error = gt_process_start(&tracee->process, argv, message);
	if (error) {
		free(tracee);
		return error;
	}
	pid = session->program.pid = tracee->process.pid;
	session->program.start_time = gt_process_start_time(pid);
	gt_follow_note_reapers(session, pid);
	calibrate(session); /* the exec took about a millisecond */
	error = gt_session_arena_of(session, pid, &arena, message);
	gt_session_publish_threshold(session);
	gt_session_watch(session, &pid, 1);
	if (!error)
		gt_session_enter(session, tracee, arena, NULL);
	if (!error)
		error = gt_tracee_begin(tracee, pid, &arena->shared, &session->catalog,
					&session->selection,
					gt_clock_ticks(&session->live.target.clock, 1000000),
					session->sink, message);
	if (!error) /* it has not run yet */
		error = gt_event_rules_check(&session->event_rules, message);
	if (!error)
		error = gt_follow_make_room(session, message);
	if (error) {
		kill(pid, SIGKILL);
		while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
			;
		gt_tracee_fini(tracee);
		free(tracee);
		return error;
	}
	tracee->process.stopped = 0;
	error = gt_follow_add(session, tracee);
	gt_thread_detach(pid);
	return error;
}

static int set_first_probe(struct gt_session *session, const char *text, struct gt_message *message)
{
	struct gt_probe_error error;
	const int result = gt_session_set_probe(session, text, strlen(text), GT_PROBES_PROGRAM,
						&error, message);

	if (result)
		gt_message_prefix(message, "'%s': ", text);
	return result == GT_ENOENT ? GT_EINVAL : result;
}

static int add_first_synthetic(struct gt_session *session, const char *text,
			       struct gt_message *message)
{
	struct gt_probe_error error = { "", 0 };
	const int result =
		gt_synthetics_add(&session->catalog, text, strlen(text), &error, message);

	if (result)
		gt_message_prefix(message, "'%s': ", text);
	return result;
}

/* What cannot fail. From here on gt_session_destroy() ends the session. */
static void init(struct gt_session *session, const struct gt_session_options *options)
{
	session->watcher.epoll = -1;
	session->sink = options->sink;
	session->helper =
		(struct gt_process_helper){ gt_mail_is_awaited, gt_mail_obey_awaited, session };
	session->is_polling = true;
	session->tracees.no_fork = options->no_fork;
	session->switches.never = options->no_switches;
	session->wanted.threshold_ns = options->settings.threshold_ns;
	session->selection.libraries = options->libraries;
	session->selection.unprepared = options->unprepared;
	session->selection.libcalls = options->libcalls;
	session->selection.breakpoints = options->breakpoints;
	session->selection.uprobe_safe = options->uprobe_safe;
	pthread_mutex_init(&session->lock, NULL);
	gt_off_cpu_init(&session->switches.watch);
	gt_catalog_init(&session->catalog);
	session->catalog.breakpoints = options->breakpoints;
	session->catalog.no_demangle = options->no_demangle;
	gt_triggers_init(&session->triggers, &session->arenas[0].shared,
			 &session->live.target.clock);
	session->selection.triggers = &session->triggers;
	session->times.first = gt_clock_now();
	session->live.start_ns = session->times.first.ns;
}

/* What the options ask for, as far as it needs no arena. */
static int take_wishes(struct gt_session *session, const struct gt_session_options *options,
		       struct gt_message *message)
{
	int error;

	if (options->library_globs != NULL && options->library_globs[0] != NULL) {
		session->selection.library_globs = gt_session_copy_list(options->library_globs);
		if (session->selection.library_globs == NULL)
			return gt_fail(message, GT_ENOMEM, "no memory for a session");
	}
	error = gt_values_new(options->values, &session->values, message);
	session->selection.values = session->values;
	if (!error)
		error = gt_session_ask_first(session, options, message);
	for (size_t i = 0; !error && options->probes != NULL && options->probes[i] != NULL; i++)
		error = set_first_probe(session, options->probes[i], message);
	for (size_t i = 0; !error && options->synthetics != NULL && options->synthetics[i] != NULL;
	     i++)
		error = add_first_synthetic(session, options->synthetics[i], message);
	for (size_t i = 0; !error && i < options->trigger_count; i++)
		error = gt_triggers_add(&session->triggers, &options->triggers[i], message);
	return error;
}

/* Filters and triggers of events, which stand in the arena. */
static int take_event_rules(struct gt_session *session, const struct gt_session_options *options,
			    struct gt_message *message)
{
	struct gt_event_rules *rules = &session->event_rules;
	int error = 0;

	gt_rules_of_program_init(&session->rules_of_program, &session->arenas[0].shared,
				 &session->live.target.clock, &session->catalog);
	gt_event_rules_init(rules, &session->rules_of_program.host);
	session->selection.event_rules = rules;
	for (const char *const *pair = options->event_filters;
	     !error && pair != NULL && *pair != NULL; pair += 2)
		error = gt_event_rules_set_filter(rules, pair[0], pair[1], message);
	for (size_t i = 0; !error && i < options->event_trigger_count; i++)
		error = gt_event_rules_trigger(rules, options->event_triggers[i].word,
					       &options->event_triggers[i].trigger, false, message);
	return error ? error : gt_session_select_synthetics(session, message);
}

/* The arena, with all settings in it, and the live target over it. */
static int begin_recording(struct gt_session *session, const struct gt_session_options *options,
			   struct gt_message *message)
{
	struct gt_live_target *live = &session->live;
	int error = gt_session_first_arena(session, options, message);

	if (!error)
		error = take_event_rules(session, options, message);
	if (error)
		return error;
	session->switches.watch.switches.in_order_only = session->arenas[0].drain.forgets;
	gt_live_target_init(live, &session->lock, &session->arenas[0].drain, &session->catalog);
	live->parent = parent_of;
	live->parent_data = session;
	live->off_cpu = &session->switches.watch;
	live->target.tracer = options->settings.tracer;
	error = gt_session_check_profile(session, options->profile, options->settings.tracer,
					 options->settings.threshold_ns, message);
	if (error)
		return error;
	publish(session, options);
	return gt_session_select_syscalls(session, message);
}

int gt_session_start(const struct gt_session_options *options, struct gt_session **out,
		     struct gt_message *message)
{
	struct gt_session *session;
	int error;

	if (options->size < sizeof(*options))
		return gt_fail(message, GT_EINVAL, "the options of the session are too short");
	if (!options->pid_count && (options->argv == NULL || options->argv[0] == NULL))
		return gt_fail(message, GT_EINVAL, "no program to run");
	session = calloc(1, sizeof(*session));
	if (session == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for a session");
	init(session, options);
	error = take_wishes(session, options, message);
	if (!error)
		error = begin_recording(session, options, message);
	if (!error)
		error = start_watching(session, message);
	if (!error)
		error = options->pid_count
				? gt_session_attach(session, options->pids, options->pid_count,
						    options->children, message)
				: start_program(session, options->argv, message);
	if (error) {
		session->program.reaped = true; /* nothing runs */
		gt_session_destroy(session);
		return error;
	}
	session->is_polling = false;
	session->started = true;
	*out = session;
	return 0;
}

/* 1: something was done. */
static int work_locked(struct gt_session *session, bool *over)
{
	struct gt_instant now = gt_clock_now();
	uint32_t passes = 0; /* a process that nobody knows of may fill the ring without end */
	bool ended;
	int done, drained, error;

	*over = false;
	if (now.ns >= session->times.next_calibration_ns && session->tracees.count)
		calibrate(session);
	done = gt_follow_work(session, now.ns);
	if (done < 0)
		return done;
	for (uint32_t i = 0; i < session->arena_count; i++)
		gt_profile_collect(&session->arenas[i].profile);
	/* Who was detached from goes on switching: no turn would be the last where each one's
	 * switches cannot be written. */
	ended = !session->tracees.count && session->program.reaped;
	if (ended)
		gt_off_cpu_stop(&session->switches.watch);
	else
		gt_off_cpu_collect(&session->switches.watch, false);
	error = gt_off_cpu_give(&session->switches.watch, session->arenas[0].drain.sink,
				&session->switches.given);
	gt_off_cpu_forget(&session->switches.watch, session->switches.given);
	do {
		if (ended)
			gt_follow_end_all(session);
		drained = gt_session_drain(session, now.ns);
		if (drained < 0 || error)
			return drained < 0 ? drained : error;
		done += drained;
		if (!ended)
			return done > 0;
	} while (drained > 0 && ++passes < LAST_PASSES); /* all have ended: to the last word */
	if (!session->times.end_ns) {
		calibrate(session);
		session->times.end_ns = session->times.last.ns;
	}
	*over = true;
	return 1;
}

static int work(struct gt_session *session, bool *over)
{
	int done;

	pthread_mutex_lock(&session->lock);
	session->is_polling = true;
	done = work_locked(session, over);
	session->is_polling = false;
	pthread_mutex_unlock(&session->lock);
	return done;
}

int gt_session_poll(struct gt_session *session, int timeout_ms, struct gt_message *message)
{
	uint64_t limit = timeout_ms < 0 ? IDLE_US : (uint64_t)timeout_ms * 1000, wait;
	uint32_t seen[GT_ARENAS] = { 0 }, i;
	bool over;
	int done;

	/* Those that are added while we work are looked at there. */
	for (i = 0; i < session->arena_count; i++)
		seen[i] = gt_arena_doorbell(&session->arenas[i].shared);

	done = work(session, &over);
	gt_session_run_handlers(session);
	if (done >= 0 && !over && limit) {
		wait = done ? BUSY_US : IDLE_US;
		gt_arena_wait(&session->arenas[0].shared, seen, wait < limit ? wait : limit);
		done = work(session, &over);
		gt_session_run_handlers(session);
	}
	if (done < 0)
		return gt_fail(message, done,
			       done == GT_ENOMEM ? "no memory to go on recording"
						 : "the recording cannot be written");
	return over ? 0 : 1;
}

void gt_session_lock_sink(struct gt_session *session)
{
	pthread_mutex_lock(&session->lock);
}

void gt_session_unlock_sink(struct gt_session *session)
{
	pthread_mutex_unlock(&session->lock);
}

struct gt_target *gt_session_target(struct gt_session *session)
{
	return &session->live.target;
}

/* The file was listed for an earlier process: a child has the same numbers, another run the same
 * names. */
static bool listed_before(const struct gt_session *session, size_t tracee, size_t object)
{
	const struct gt_catalog_file *file = session->tracees.list[tracee]->objects[object]->file;

	for (size_t i = 0; i <= tracee; i++)
		for (size_t k = 0;
		     k < (i < tracee ? session->tracees.list[i]->object_count : object); k++)
			if (session->tracees.list[i]->objects[k]->file == file &&
			    !session->tracees.list[i]->objects[k]->gone)
				return true;
	return false;
}

int gt_session_each_function(struct gt_session *session,
			     int (*each)(void *data, uint32_t number,
					 const struct gt_function *function, bool enabled),
			     void *data)
{
	int result = 0;

	pthread_mutex_lock(&session->lock);
	for (size_t i = 0; i < session->tracees.count; i++) {
		struct gt_tracee *tracee = session->tracees.list[i];

		for (size_t k = 0; k < tracee->object_count; k++) {
			struct gt_tracee_object *object = tracee->objects[k];

			if (object->region < 0 || object->gone || listed_before(session, i, k))
				continue;
			for (uint32_t index = 0; !result && index < object->file->function_count;
			     index++) {
				struct gt_function function;

				if (!gt_tracee_can_trace(object, index, &session->selection))
					continue;
				gt_catalog_describe(object->file, index, object->bias, &function);
				function.touched = object->file->touched[index];
				result = each(data,
					      tracee->agent.regions[object->region].first_number +
						      object->slot + index,
					      &function,
					      object->states[index] == GT_FUNCTION_TRACED);
			}
		}
	}
	pthread_mutex_unlock(&session->lock);
	return result;
}

int gt_session_exit_status(const struct gt_session *session)
{
	for (uint32_t i = 0; session->program.attached && i < session->notes.death_count; i++)
		if (session->notes.deaths[i].pid == session->program.pid)
			return session->notes.deaths[i].signal;
	return session->program.status;
}

pid_t gt_session_pid(const struct gt_session *session)
{
	return session->program.pid;
}

int gt_session_signal(struct gt_session *session, int signal)
{
	int result;

	pthread_mutex_lock(&session->lock);
	/* Not reaped yet: the number is still the program's. */
	result = session->program.reaped || kill(session->program.pid, signal) != 0 ? GT_EGONE : 0;
	pthread_mutex_unlock(&session->lock);
	return result;
}

void gt_session_destroy(struct gt_session *session)
{
	if (session == NULL)
		return;
	stop_watching(session);
	gt_follow_free(session);
	gt_off_cpu_fini(&session->switches.watch);
	gt_live_target_fini(&session->live);
	gt_session_end_arenas(session);
	gt_catalog_fini(&session->catalog);
	gt_triggers_fini(&session->triggers);
	gt_event_rules_fini(&session->event_rules);
	gt_session_ask_fini(session);
	gt_session_free_list(session->selection.library_globs);
	gt_session_free_list(session->selection.events);
	gt_values_free(session->values);
	free(session->syscalls_told);
	pthread_mutex_destroy(&session->lock);
	free(session);
}
