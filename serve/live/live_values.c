/* SPDX-License-Identifier: MIT */
/*
 * A session's numbers: tracer, switches, options, sizes. Guarantees: changes are made one at a
 * time, and `lock` is not held while the session patches code. Any thread.
 */
#include "serve/live/live_events.h"
#include "serve/live/live_instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int gt_live_get(struct gt_control_target *target, enum gt_control_value which, uint64_t *value)
{
	struct gt_live *live = live_of(target);
	int error = gt_live_is_removed(live) ? GT_ENOENT : 0;

	if (which == GT_CONTROL_TRACING_ON && live->instance != NULL)
		gt_live_pull(live); /* a command may have switched it */
	pthread_mutex_lock(&live->lock);
	switch (which) {
	case GT_CONTROL_TRACER:
		*value = live->settings.tracer;
		break;
	case GT_CONTROL_MAX_DEPTH:
		*value = live->settings.max_depth;
		break;
	case GT_CONTROL_THRESHOLD_NS:
		*value = live->settings.threshold_ns;
		break;
	case GT_CONTROL_OPTIONS:
		*value = live->shown.options;
		break;
	case GT_CONTROL_BUFFER_BYTES: /* one pool: a single thread may fill it */
	case GT_CONTROL_TOTAL_BYTES:
		*value = live->buffer_bytes;
		break;
	case GT_CONTROL_CLOCK_ID:
		*value = live->shown.clock;
		break;
	case GT_CONTROL_NOW_NS:
		*value = now_ns();
		break;
	case GT_CONTROL_CMDLINES:
		*value = live->shown.cmdlines;
		break;
	case GT_CONTROL_SCHED_SWITCH:
		*value = live->shown.sched_switch;
		break;
	case GT_CONTROL_TRACING_ON:
	case GT_CONTROL_PROFILE:
		break;
	default:
		if (which >= GT_CONTROL_CPUMASK && which < GT_CONTROL_CPUMASK_END)
			*value = gt_live_events_mask(live, which - GT_CONTROL_CPUMASK);
		else
			error = GT_ENOTSUP;
	}
	pthread_mutex_unlock(&live->lock);
	if (which == GT_CONTROL_TRACING_ON)
		*value = live->instance != NULL ? gt_live_instance_on(live)
						: gt_session_tracing_on(live->session);
	if (which == GT_CONTROL_PROFILE)
		*value = gt_session_profiles(live->session);
	return error;
}

/* Whether the value makes the ring hold more than the top asks for: beside the profiler all calls are recorded, even if
 * the tracer is `function` or there is a threshold. */
static bool is_beside_profile(const struct gt_live *live, enum gt_control_value which,
			      uint64_t value)
{
	bool on = which == GT_CONTROL_PROFILE ? value != 0 : gt_session_profiles(live->session);
	uint64_t tracer = which == GT_CONTROL_TRACER ? value : (uint64_t)live->settings.tracer;
	uint64_t threshold = which == GT_CONTROL_THRESHOLD_NS ? value : live->settings.threshold_ns;

	return on && live->mode != GRAFTRACE_MODE_DRAIN &&
	       (!(live->shown.options & GT_OPTION_SLEEP_TIME) ||
		tracer == GRAFTRACE_TRACER_FUNCTION ||
		(tracer == GRAFTRACE_TRACER_FUNCTION_GRAPH && threshold != 0));
}

static int check_awake(const struct gt_live *live, bool profile, bool awake,
		       struct gt_message *message)
{
	if (!profile || !awake || live->mode != GRAFTRACE_MODE_DRAIN)
		return 0;
	return gt_fail(message, GT_EBUSY,
		       "in a recording that goes to a file as it comes the function "
		       "profiler counts the time off the CPU, too (--serve and "
		       "--overwrite record into a ring)");
}

/* Between gt_live_top_begin_lock() and gt_live_top_end_unlock(). */
static int set_profile(struct gt_live *live, bool on, struct gt_message *message)
{
	bool awake = !(live->shown.options & GT_OPTION_SLEEP_TIME);
	bool was_on = gt_session_profiles(live->session);
	int error = check_awake(live, on, awake, message);

	if (error == 0)
		error = gt_session_set_profile(live->session, on, message);
	/* After an error of patching it is switched all the same. */
	if (gt_session_profiles(live->session) != was_on &&
	    gt_live_top_awake(live, on && awake, on) != 0)
		error = no_memory(message);
	return error;
}

/* Under change.lock: options/sleep-time of the function profiler. */
static int set_awake(struct gt_live *live, bool awake, struct gt_message *message)
{
	bool profile = gt_session_profiles(live->session);
	int error = check_awake(live, profile, awake, message);

	if (error == 0 && live->mode != GRAFTRACE_MODE_DRAIN)
		error = gt_live_top_begin_lock(live, profile && awake, message);
	if (error != 0 || live->mode == GRAFTRACE_MODE_DRAIN)
		return error;
	gt_session_set_profile_awake(live->session, awake);
	if (gt_live_top_awake(live, profile && awake, false) != 0)
		error = no_memory(message);
	gt_live_top_end_unlock(live);
	return error;
}

/* After an error of patching the session has the new tracer all the same. */
static bool has_taken(struct gt_live *live, enum graftrace_tracer tracer)
{
	struct gt_trace_settings asked = gt_session_asked(live->session, 0);
	bool taken = asked.tracer == tracer;

	gt_trace_settings_fini(&asked);
	return taken;
}

/* Carries the change out. */
static int ask(struct gt_live *live, enum gt_control_value which, uint64_t value,
	       struct gt_message *message)
{
	bool taken;
	int error;

	if (live->instance != NULL) {
		struct gt_trace_settings settings = gt_live_settings(live);

		if (which == GT_CONTROL_TRACING_ON)
			settings.on = value != 0;
		else if (which == GT_CONTROL_TRACER)
			settings.tracer = (enum graftrace_tracer)value;
		else if (which == GT_CONTROL_MAX_DEPTH)
			settings.max_depth = (uint32_t)value;
		else
			settings.threshold_ns = value;
		return gt_live_ask(live, &settings, message);
	}
	error = gt_live_top_begin_lock(live, is_beside_profile(live, which, value), message);
	if (error != 0)
		return error;
	if (which == GT_CONTROL_PROFILE)
		error = set_profile(live, value != 0, message);
	else if (which == GT_CONTROL_TRACING_ON)
		gt_session_set_tracing_on(live->session, value != 0);
	else if (which == GT_CONTROL_TRACER)
		error = gt_session_set_tracer(live->session, (enum graftrace_tracer)value, message);
	else if (which == GT_CONTROL_MAX_DEPTH)
		error = gt_session_set_max_graph_depth(live->session, (uint32_t)value);
	else
		error = gt_session_set_threshold(live->session, value);
	taken = which == GT_CONTROL_TRACER &&
		(error == 0 || has_taken(live, (enum graftrace_tracer)value));
	pthread_mutex_lock(&live->lock);
	if (taken)
		live->settings.tracer = live->view.tracer = (enum graftrace_tracer)value;
	if (error == 0 && which == GT_CONTROL_MAX_DEPTH)
		live->settings.max_depth = (uint32_t)value;
	if (error == 0 && which == GT_CONTROL_THRESHOLD_NS)
		live->settings.threshold_ns = value;
	pthread_mutex_unlock(&live->lock);
	gt_live_top_end_unlock(live);
	if (error == GT_EBUSY && which == GT_CONTROL_THRESHOLD_NS)
		gt_message_set(message, "not beside function_graph while the function profiler is "
					"on");
	return error;
}

static int set_tracer(struct gt_live *live, enum graftrace_tracer tracer,
		      struct gt_message *message)
{
	bool busy;
	bool same;
	int error;

	pthread_mutex_lock(&live->lock);
	busy = live->pipe_busy || live->cpus_busy > 0;
	same = live->settings.tracer == tracer;
	pthread_mutex_unlock(&live->lock);
	if (same)
		return 0;
	if (busy)
		return gt_fail(message, GT_EBUSY,
			       "the tracer cannot change while trace_pipe is being read");
	error = ask(live, GT_CONTROL_TRACER, tracer, message);
	return error != 0 ? error : gt_live_empty(live, message); /* as Linux does */
}

/* Under change.lock. Sets whether the kernel is asked for context switches, which is not done
 * for a removed instance. */
static int watch(struct gt_live *live, bool wanted, struct gt_message *message)
{
	int error = 0;

	wanted = wanted && !gt_live_is_removed(live);
	if (wanted && !live->change.watches)
		error = gt_session_watch_off_cpu(live->session, message);
	else if (!wanted && live->change.watches)
		gt_session_unwatch_off_cpu(live->session);
	if (error == 0)
		live->change.watches = wanted;
	return error;
}

static bool wants_switches(uint64_t options, bool event)
{
	return event || !(options & GT_OPTION_SLEEP_TIME) || (options & GT_OPTION_EVENT_FORK);
}

void gt_live_unwatch(struct gt_live *live)
{
	pthread_mutex_lock(&live->change.lock);
	watch(live, false, NULL);
	pthread_mutex_unlock(&live->change.lock);
}

/* Values can be shown only if they are recorded. That is decided at the start, since room for the stubs of values is
 * made beside those of functions. */
static int check_values(const struct gt_live *live, uint64_t on, struct gt_message *message)
{
	const struct gt_live *top = live->top != NULL ? live->top : live;
	const uint64_t all = GT_OPTION_GRAPH_ARGS | GT_OPTION_FUNC_ARGS | GT_OPTION_GRAPH_RETVAL;
	const uint64_t missing = on & all & ~top->shown.recorded_values;

	if (missing == 0)
		return 0;
	return gt_fail(message, GT_EINVAL,
		       missing & GT_OPTION_GRAPH_RETVAL
			       ? "results are not recorded: start with --retval or -R FUNC"
			       : "arguments are not recorded: start with --args or -A FUNC");
}

/* Under change.lock. */
static int set_options(struct gt_live *live, uint64_t options, struct gt_message *message)
{
	uint64_t changed = options ^ live->shown.options;
	int error = 0;

	if (changed & (GT_OPTION_OVERWRITE | GT_OPTION_FUNCTION_FORK | GT_OPTION_FUNC_STACK))
		error = has_ended(live, message);
	if (error == 0)
		error = check_values(live, changed & options, message);
	if (error == 0 && (changed & options & GT_OPTION_FUNCTION_FORK) && live->instance != NULL) {
		gt_message_set(message, "what a thread starts is followed at the top only");
		error = GT_EINVAL;
	}
	if (error == 0 && (changed & GT_OPTION_OVERWRITE) && live->instance == NULL)
		error = gt_session_set_overwrite(live->session,
						 (options & GT_OPTION_OVERWRITE) != 0, message);
	if (error == 0 && (changed & GT_OPTION_FUNC_STACK) && live->instance == NULL)
		error = gt_session_set_func_stack(live->session,
						  (options & GT_OPTION_FUNC_STACK) != 0, message);
	if (error == 0 && (changed & (GT_OPTION_SLEEP_TIME | GT_OPTION_EVENT_FORK)))
		error = watch(live, wants_switches(options, live->shown.sched_switch), message);
	if (error == 0 && (changed & GT_OPTION_EVENT_FORK))
		gt_live_pull(live); /* earlier records keep the old option */
	if (error == 0 && (changed & GT_OPTION_EVENT_FORK))
		error = gt_live_event_fork(&live->over, options & GT_OPTION_EVENT_FORK, message);
	if (error == 0 && (changed & GT_OPTION_SLEEP_TIME) && live->instance == NULL)
		error = set_awake(live, !(options & GT_OPTION_SLEEP_TIME), message);
	if (error != 0 && (changed & (GT_OPTION_SLEEP_TIME | GT_OPTION_EVENT_FORK)))
		watch(live, wants_switches(live->shown.options, live->shown.sched_switch), NULL);
	if (error != 0)
		return error;
	pthread_mutex_lock(&live->lock);
	live->shown.options = options;
	if (live->instance == NULL)
		gt_session_set_follow(live->session, options & GT_OPTION_FUNCTION_FORK);
	pthread_mutex_unlock(&live->lock);
	gt_live_set_overwrite(live, options & GT_OPTION_OVERWRITE);
	pthread_mutex_lock(&live->over.lock);
	live->over.overwrite = (options & GT_OPTION_OVERWRITE) != 0;
	pthread_mutex_unlock(&live->over.lock);
	return 0;
}

/* Memory that the system can give without swapping; UINT64_MAX: unknown. */
static uint64_t available_bytes(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kilobytes = 0;
	char line[128];
	bool found = false;

	while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL)
		found = sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1;
	if (file != NULL)
		fclose(file);
	return found ? kilobytes * 1024 : UINT64_MAX;
}

/* Under change.lock. As on Linux, records are kept, and a size for which there is no memory is
 * refused at once. */
static int set_size(struct gt_live *live, uint64_t bytes, struct gt_message *message)
{
	int error;

	if (live->mode == GRAFTRACE_MODE_DRAIN)
		return gt_fail(message, GT_EBUSY,
			       "records go to a file as they come: the ring has its size "
			       "from the start (graftrace record --buffer-size)");
	if (bytes > live->buffer_bytes && bytes - live->buffer_bytes > available_bytes())
		return gt_fail(message, GT_ENOMEM, "there is not so much memory");
	if (bytes == live->buffer_bytes)
		return 0;
	error = gt_live_resize(live, bytes);
	if (error != 0)
		return no_memory(message);
	pthread_mutex_lock(&live->lock);
	live->buffer_bytes = bytes;
	pthread_mutex_unlock(&live->lock);
	return 0;
}

/* Time stamps are converted when the trace is shown; clearing the trace at another clock is what
 * Linux does. */
static int set_clock(struct gt_live *live, enum gt_control_clock clock, struct gt_message *message)
{
	pthread_mutex_lock(&live->lock);
	live->shown.clock = clock;
	pthread_mutex_unlock(&live->lock);
	return gt_live_empty(live, message); /* even if the clock is the same, as on Linux */
}

/* Under change.lock. */
static int set_running(struct gt_live *live, enum gt_control_value which, uint64_t value,
		       struct gt_message *message)
{
	switch (which) {
	case GT_CONTROL_SCHED_SWITCH:
		return watch(live, wants_switches(live->shown.options, value != 0), message);
	case GT_CONTROL_TRACING_ON:
		live->change.was_on = value != 0; /* takes effect when the pause ends */
		return ask(live, which, value, message);
	case GT_CONTROL_TRACER:
		return set_tracer(live, (enum graftrace_tracer)value, message);
	case GT_CONTROL_MAX_DEPTH:
	case GT_CONTROL_THRESHOLD_NS:
	case GT_CONTROL_PROFILE:
		return ask(live, which, value, message);
	case GT_CONTROL_BUFFER_BYTES:
		return set_size(live, value, message);
	default:
		return gt_fail(message, GT_ENOTSUP, "this cannot be changed");
	}
}

/* Under change.lock: sets whether the event is shown from now on. */
static void show_switches(struct gt_live *live, bool event)
{
	uint64_t on = 0;

	gt_live_get(&live->control, GT_CONTROL_TRACING_ON, &on);
	pthread_mutex_lock(&live->lock);
	live->shown.sched_switch = event;
	gt_live_events_show(live, event && on != 0);
	pthread_mutex_unlock(&live->lock);
}

int gt_live_set(struct gt_control_target *target, enum gt_control_value which, uint64_t value,
		struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	int error;

	if (gt_live_is_removed(live))
		return gt_fail(message, GT_ENOENT, "the instance was removed");
	/* These change only the text: allowed after the program's end, too. */
	if (which == GT_CONTROL_OPTIONS_ON || which == GT_CONTROL_OPTIONS_OFF) {
		pthread_mutex_lock(&live->change.lock);
		error = set_options(
			live, gt_control_options_with(live->shown.options, which, value), message);
		pthread_mutex_unlock(&live->change.lock);
		return error;
	}
	if (which == GT_CONTROL_CLOCK_ID)
		return set_clock(live, (enum gt_control_clock)value, message);
	if (which == GT_CONTROL_CMDLINES ||
	    (which >= GT_CONTROL_CPUMASK && which < GT_CONTROL_CPUMASK_END)) {
		pthread_mutex_lock(&live->lock);
		if (which == GT_CONTROL_CMDLINES)
			live->shown.cmdlines = value;
		else
			gt_live_events_set_mask(live, which - GT_CONTROL_CPUMASK, value);
		pthread_mutex_unlock(&live->lock);
		return 0;
	}
	pthread_mutex_lock(&live->change.lock);
	error = has_ended(live, message);
	if (error == 0)
		error = set_running(live, which, value, message);
	if (error == 0 && which == GT_CONTROL_SCHED_SWITCH)
		show_switches(live, value != 0);
	else if (error == 0 && which == GT_CONTROL_TRACING_ON)
		show_switches(live, live->shown.sched_switch);
	pthread_mutex_unlock(&live->change.lock);
	return error;
}
