/* SPDX-License-Identifier: MIT */
/*
 * A session's control files. Guarantees: `lock` is held for moments only, never while the session
 * patches code, text is made or bytes are sent; one reader of trace_pipe at a time.
 */
#include "serve/live_events.h"
#include "serve/live_instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/store.h"
#include "serve/text_reader.h"

#define DISCARD_BYTES  65536
#define DISCARD_BLOCKS 4096
#define CMDLINES       8192 /* names that saved_cmdlines lists, until it is told otherwise */

/* How the whole trace is shown now. */
void gt_live_get_look(struct gt_live *live, struct gt_text_look *look)
{
	memset(look, 0, sizeof(*look));
	pthread_mutex_lock(&live->lock);
	look->clock = live->clock;
	look->time_start = live->time_start;
	look->names_kept = (uint32_t)live->cmdlines;
	look->options = live->options & GT_OPTIONS_OF_TEXT;
	look->switches = live->switch_window_count > 0;
	look->switch_window_count = live->switch_window_count;
	memcpy(look->switch_windows, live->switch_windows, sizeof(look->switch_windows));
	look->masks = live->masks;
	pthread_mutex_unlock(&live->lock);
}

/* Under pipe_lock: the pipe's reader, behind what trace_pipe_raw's have given. */
static int take_over(struct gt_live *live, const struct gt_text_look *look,
		     struct gt_message *message)
{
	struct gt_text_reader *pipe;
	struct gt_merge_given *given;
	uint32_t count;
	int error = gt_live_raw_given(live, &given, &count);

	if (error != 0)
		return no_memory(message);
	error = gt_text_reader_open(live->control.view, look, true, &pipe, message);
	if (error != 0) {
		free(given);
		return error;
	}
	gt_text_reader_skip(pipe, given, count);
	gt_live_raw_destroy(live);
	if (live->pipe != NULL)
		gt_text_reader_close(live->pipe);
	live->pipe = pipe;
	live->pipe_look = *look;
	return gt_live_cpus_skip(live, pipe);
}

/* Under pipe_lock: the pipe's reader, made if there is none. */
int gt_live_need_pipe(struct gt_live *live, const struct gt_text_look *look,
		      struct gt_message *message)
{
	int error;

	if (live->raw != NULL)
		return take_over(live, look, message);
	if (live->pipe != NULL && memcmp(&live->pipe_look, look, sizeof(*look)) == 0)
		return 0;
	if (live->pipe != NULL) {
		/* Of the old one's given-out part nothing is known to the new one: it begins
		 * behind. */
		struct gt_text_reader *old = live->pipe;

		error = gt_text_reader_open(live->control.view, look, true, &live->pipe, message);
		if (error == 0)
			error = gt_text_reader_skip_given(live->pipe, old);
		if (error != 0) {
			gt_message_set(message, "no memory");
			live->pipe = old;
			return error;
		}
		gt_text_reader_close(old);
	} else {
		error = gt_text_reader_open(live->control.view, look, true, &live->pipe, message);
	}
	if (error == 0) {
		live->pipe_look = *look;
		error = gt_live_cpus_skip(live, live->pipe);
	}
	return error;
}

/* What is in sub-buffers that are being written cannot be freed: it counts as given. */
static int empty_ring(struct gt_live *live, struct gt_message *message)
{
	struct gt_message unused;
	char *text = malloc(DISCARD_BYTES);
	struct gt_text_look look;
	int error = text != NULL ? 0 : GT_ENOMEM;

	gt_live_pull(live);
	if (error == 0 && live->instance == NULL && !gt_live_is_detoured(live))
		error = gt_session_clear(live->session);
	pthread_mutex_lock(&live->lock);
	live->time_start = __builtin_ia32_rdtsc();
	gt_live_events_clear(live);
	pthread_mutex_unlock(&live->lock);
	gt_live_get_look(live, &look);
	gt_live_view_clear(&live->over);
	if (live->instance == NULL && gt_live_is_detoured(live)) {
		/* What found no room until now, in a sub-buffer that is being written. */
		gt_live_pull(live);
		gt_live_view_clear(&live->over);
	}
	pthread_mutex_lock(&live->pipe_lock);
	if (error == 0 && gt_live_raw_discard(live)) {
		pthread_mutex_unlock(&live->pipe_lock);
		free(text);
		return 0;
	}
	if (error == 0)
		error = gt_live_need_pipe(live, &look, message);
	/* A program that writes faster than this reads must not hold us for ever. */
	for (int i = 0; error == 0 && i < DISCARD_BLOCKS; i++) {
		if (gt_text_reader_read(live->pipe, text, DISCARD_BYTES, &unused) <= 0)
			break;
	}
	if (error == 0)
		gt_live_cpus_empty(live, text, DISCARD_BYTES);
	pthread_mutex_unlock(&live->pipe_lock);
	free(text);
	if (error != 0)
		gt_message_set(message, "the ring cannot be emptied");
	return error;
}

/* Numbers */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int get(struct gt_control_target *target, enum gt_control_value which, uint64_t *value)
{
	struct gt_live *live = live_of(target);
	int error = gt_live_is_removed(live) ? GT_ENOENT : 0;

	if (which == GT_CONTROL_TRACING_ON && live->instance != NULL)
		gt_live_pull(live); /* commands may have switched it */
	pthread_mutex_lock(&live->lock);
	switch (which) {
	case GT_CONTROL_TRACER:
		*value = live->tracer;
		break;
	case GT_CONTROL_MAX_DEPTH:
		*value = live->max_depth;
		break;
	case GT_CONTROL_THRESHOLD_NS:
		*value = live->threshold_ns;
		break;
	case GT_CONTROL_OPTIONS:
		*value = live->options;
		break;
	case GT_CONTROL_BUFFER_BYTES: /* one pool: a thread may fill all of it */
	case GT_CONTROL_TOTAL_BYTES:
		*value = live->buffer_bytes;
		break;
	case GT_CONTROL_CLOCK_ID:
		*value = live->clock;
		break;
	case GT_CONTROL_NOW_NS:
		*value = now_ns();
		break;
	case GT_CONTROL_CMDLINES:
		*value = live->cmdlines;
		break;
	case GT_CONTROL_SCHED_SWITCH:
		*value = live->sched_switch;
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

/* With the profiler on more is recorded than `function` or a threshold asks for. */
static bool is_beside_profile(const struct gt_live *live, enum gt_control_value which,
			      uint64_t value)
{
	bool on = which == GT_CONTROL_PROFILE ? value != 0 : gt_session_profiles(live->session);
	uint64_t tracer = which == GT_CONTROL_TRACER ? value : (uint64_t)live->tracer;
	uint64_t threshold = which == GT_CONTROL_THRESHOLD_NS ? value : live->threshold_ns;

	return on && live->mode != GRAFTRACE_MODE_DRAIN &&
	       (!(live->options & GT_OPTION_SLEEP_TIME) || tracer == GRAFTRACE_TRACER_FUNCTION ||
		(tracer == GRAFTRACE_TRACER_FUNCTION_GRAPH && threshold != 0));
}

static int check_awake(const struct gt_live *live, bool profile, bool awake,
		       struct gt_message *message)
{
	if (!profile || !awake || live->mode != GRAFTRACE_MODE_DRAIN)
		return 0;
	gt_message_set(message, "in a recording that goes to a file as it comes the function "
				"profiler counts the time off the CPU, too (--serve and "
				"--overwrite record into a ring)");
	return GT_EBUSY;
}

/* Between gt_live_top_begin and _end. */
static int set_profile(struct gt_live *live, bool on, struct gt_message *message)
{
	bool awake = !(live->options & GT_OPTION_SLEEP_TIME);
	bool was_on = gt_session_profiles(live->session);
	int error = check_awake(live, on, awake, message);

	if (error == 0)
		error = gt_session_set_profile(live->session, on, message);
	if (error == 0 && on != was_on && gt_live_top_awake(live, on && awake, on) != 0)
		error = no_memory(message);
	return error;
}

/* Under `change`: options/sleep-time of the function profiler. */
static int set_awake(struct gt_live *live, bool awake, struct gt_message *message)
{
	bool profile = gt_session_profiles(live->session);
	struct gt_live_wish wish;
	int error = check_awake(live, profile, awake, message);

	if (error == 0 && live->mode != GRAFTRACE_MODE_DRAIN)
		error = gt_live_top_begin(live, profile && awake, message);
	if (error != 0 || live->mode == GRAFTRACE_MODE_DRAIN)
		return error;
	gt_session_set_profile_awake(live->session, awake);
	if (gt_live_top_awake(live, profile && awake, false) != 0)
		error = no_memory(message);
	gt_live_wish_of(live, &wish);
	gt_live_top_end(live, &wish);
	return error;
}

/* What is asked for becomes so. */
static int ask(struct gt_live *live, enum gt_control_value which, uint64_t value,
	       struct gt_message *message)
{
	struct gt_live_wish wish;
	int error;

	if (live->instance != NULL) {
		gt_live_wish_of(live, &wish);
		if (which == GT_CONTROL_TRACING_ON)
			wish.on = value != 0;
		else if (which == GT_CONTROL_TRACER)
			wish.tracer = (enum graftrace_tracer)value;
		else if (which == GT_CONTROL_MAX_DEPTH)
			wish.max_depth = value;
		else
			wish.threshold_ns = value;
		return gt_live_ask(live, &wish, message);
	}
	error = gt_live_top_begin(live, is_beside_profile(live, which, value), message);
	if (error != 0)
		return error;
	if (which == GT_CONTROL_PROFILE)
		error = set_profile(live, value != 0, message);
	else if (which == GT_CONTROL_TRACING_ON)
		error = gt_session_set_tracing_on(live->session, value != 0, message);
	else if (which == GT_CONTROL_TRACER)
		error = gt_session_set_tracer(live->session, (enum graftrace_tracer)value, message);
	else if (which == GT_CONTROL_MAX_DEPTH)
		error = gt_session_set_max_graph_depth(live->session, (uint32_t)value);
	else
		error = gt_session_set_threshold(live->session, value);
	pthread_mutex_lock(&live->lock);
	if (error == 0 && which == GT_CONTROL_TRACER)
		live->tracer = live->view.tracer = (enum graftrace_tracer)value;
	if (error == 0 && which == GT_CONTROL_MAX_DEPTH)
		live->max_depth = value;
	if (error == 0 && which == GT_CONTROL_THRESHOLD_NS)
		live->threshold_ns = value;
	pthread_mutex_unlock(&live->lock);
	gt_live_wish_of(live, &wish);
	gt_live_top_end(live, &wish);
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
	same = live->tracer == tracer;
	pthread_mutex_unlock(&live->lock);
	if (same)
		return 0;
	if (busy) {
		gt_message_set(message, "the tracer cannot change while trace_pipe is being read");
		return GT_EBUSY;
	}
	error = ask(live, GT_CONTROL_TRACER, tracer, message);
	return error != 0 ? error : empty_ring(live, message); /* as Linux does */
}

/* Under `change`: whether the kernel is asked when threads leave their CPUs. Of an instance that
 * was removed it is not. */
static int watch(struct gt_live *live, bool wanted, struct gt_message *message)
{
	int error = 0;

	wanted = wanted && !gt_live_is_removed(live);
	if (wanted && !live->watches)
		error = gt_session_watch_off_cpu(live->session, message);
	else if (!wanted && live->watches)
		gt_session_unwatch_off_cpu(live->session);
	if (error == 0)
		live->watches = wanted;
	return error;
}

static bool wants_switches(uint64_t options, bool event)
{
	return event || !(options & GT_OPTION_SLEEP_TIME) || (options & GT_OPTION_EVENT_FORK);
}

void gt_live_unwatch(struct gt_live *live)
{
	pthread_mutex_lock(&live->change);
	watch(live, false, NULL);
	pthread_mutex_unlock(&live->change);
}

/* Under `change`. */
static int set_options(struct gt_live *live, uint64_t options, struct gt_message *message)
{
	uint64_t changed = options ^ live->options;
	int error = 0;

	if (changed & (GT_OPTION_OVERWRITE | GT_OPTION_FUNCTION_FORK | GT_OPTION_FUNC_STACK))
		error = has_ended(live, message);
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
		error = watch(live, wants_switches(options, live->sched_switch), message);
	if (error == 0 && (changed & GT_OPTION_EVENT_FORK))
		error = gt_live_event_fork(&live->over, options & GT_OPTION_EVENT_FORK, message);
	if (error == 0 && (changed & GT_OPTION_SLEEP_TIME) && live->instance == NULL)
		error = set_awake(live, !(options & GT_OPTION_SLEEP_TIME), message);
	if (error != 0 && (changed & (GT_OPTION_SLEEP_TIME | GT_OPTION_EVENT_FORK)))
		watch(live, wants_switches(live->options, live->sched_switch), NULL);
	if (error != 0)
		return error;
	pthread_mutex_lock(&live->lock);
	live->options = options;
	if (live->instance == NULL)
		gt_session_set_follow(live->session, options & GT_OPTION_FUNCTION_FORK);
	pthread_mutex_unlock(&live->lock);
	gt_live_set_overwrite(live, options & GT_OPTION_OVERWRITE);
	pthread_mutex_lock(&live->over.lock);
	live->over.overwrite = (options & GT_OPTION_OVERWRITE) != 0;
	pthread_mutex_unlock(&live->over.lock);
	return 0;
}

/* Memory that the system can give without swapping; UINT64_MAX: nobody knows. */
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

/* Under `change`. As Linux: what there is stays, and memory that is not there is refused at once.
 */
static int set_size(struct gt_live *live, uint64_t bytes, struct gt_message *message)
{
	int error;

	if (live->mode == GRAFTRACE_MODE_DRAIN) {
		gt_message_set(message, "records go to a file as they come: the ring has its size "
					"from the start (graftrace record --buffer-size)");
		return GT_EBUSY;
	}
	if (bytes > live->buffer_bytes && bytes - live->buffer_bytes > available_bytes()) {
		gt_message_set(message, "there is not so much memory");
		return GT_ENOMEM;
	}
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

/* Time stamps are made when the trace is shown; that another clock clears is Linux's way. */
static int set_clock(struct gt_live *live, enum gt_control_clock clock, struct gt_message *message)
{
	pthread_mutex_lock(&live->lock);
	live->clock = clock;
	pthread_mutex_unlock(&live->lock);
	return empty_ring(live, message); /* also when it is the same one, as on Linux */
}

static int set(struct gt_control_target *target, enum gt_control_value which, uint64_t value,
	       struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	int error;

	if (gt_live_is_removed(live)) {
		gt_message_set(message, "the instance was removed");
		return GT_ENOENT;
	}
	if (which == GT_CONTROL_OPTIONS) { /* how text is shown: also afterwards */
		pthread_mutex_lock(&live->change);
		error = set_options(live, value, message);
		pthread_mutex_unlock(&live->change);
		return error;
	}
	if (which == GT_CONTROL_CLOCK_ID)
		return set_clock(live, (enum gt_control_clock)value, message);
	if (which == GT_CONTROL_CMDLINES ||
	    (which >= GT_CONTROL_CPUMASK && which < GT_CONTROL_CPUMASK_END)) {
		pthread_mutex_lock(&live->lock);
		if (which == GT_CONTROL_CMDLINES)
			live->cmdlines = value;
		else
			gt_live_events_set_mask(live, which - GT_CONTROL_CPUMASK, value);
		pthread_mutex_unlock(&live->lock);
		return 0;
	}
	pthread_mutex_lock(&live->change);
	error = has_ended(live, message);
	if (error == 0) {
		switch (which) {
		case GT_CONTROL_SCHED_SWITCH:
			error = watch(live, wants_switches(live->options, value != 0), message);
			break;
		case GT_CONTROL_TRACING_ON:
			live->was_on = value != 0; /* where it is paused: at the end of that */
			error = ask(live, which, value, message);
			break;
		case GT_CONTROL_TRACER:
			error = set_tracer(live, (enum graftrace_tracer)value, message);
			break;
		case GT_CONTROL_MAX_DEPTH:
		case GT_CONTROL_THRESHOLD_NS:
		case GT_CONTROL_PROFILE:
			error = ask(live, which, value, message);
			break;
		case GT_CONTROL_BUFFER_BYTES:
			error = set_size(live, value, message);
			break;
		default:
			gt_message_set(message, "this cannot be changed");
			error = GT_ENOTSUP;
		}
	}
	if (error == 0 && (which == GT_CONTROL_SCHED_SWITCH || which == GT_CONTROL_TRACING_ON)) {
		uint64_t on = value;

		if (which == GT_CONTROL_SCHED_SWITCH)
			get(target, GT_CONTROL_TRACING_ON, &on);
		pthread_mutex_lock(&live->lock);
		if (which == GT_CONTROL_SCHED_SWITCH)
			live->sched_switch = value != 0;
		gt_live_events_show(live, live->sched_switch && on != 0);
		pthread_mutex_unlock(&live->lock);
	}
	pthread_mutex_unlock(&live->change);
	return error;
}

/*
 * The trace. trace_pipe's reader stays when a client of it has gone: the next client goes on where
 * that one stopped, and `trace` leaves out what was given of sub-buffers that are still being
 * written. It is made anew when the ring was emptied, or when options say that its text looks
 * otherwise.
 */

struct live_text {
	struct gt_text_reader *reader; /* NULL: the pipe's */
	struct gt_store *store;	       /* that it reads; NULL: the session itself */
	bool thread;		       /* a thread's or CPU's pipe */
	uint32_t cpu;		       /* … of CPU cpu - 1; 0: a thread's */
	bool pauses;		       /* options/pause-on-trace was set */
};

int gt_live_text_of(struct gt_text_reader *reader, struct gt_store *store, void **text_out)
{
	struct live_text *text = calloc(1, sizeof(*text));

	if (text == NULL)
		return GT_ENOMEM;
	text->reader = reader;
	text->store = store;
	*text_out = text;
	return 0;
}

static void let_go(struct gt_live *live, bool cpu)
{
	pthread_mutex_lock(&live->lock);
	if (cpu)
		live->cpus_busy--;
	else
		live->pipe_busy = false;
	pthread_mutex_unlock(&live->lock);
}

/* reader: of a thread's or CPU's pipe; NULL: the whole trace's. */
static int open_pipe(struct gt_live *live, const struct gt_text_look *look,
		     struct gt_text_reader **reader, struct gt_message *message)
{
	bool cpu = look->scope.kind == GT_SCOPE_CPU;
	bool busy;
	int error;

	pthread_mutex_lock(&live->lock);
	busy = live->pipe_busy || (!cpu && live->cpus_busy > 0);
	if (!busy && cpu)
		live->cpus_busy++;
	else if (!busy)
		live->pipe_busy = true;
	pthread_mutex_unlock(&live->lock);
	if (busy) {
		gt_message_set(message, "trace_pipe is being read by somebody else");
		return GT_EBUSY;
	}
	pthread_mutex_lock(&live->pipe_lock);
	error = cpu		 ? gt_live_cpu_open(live, look, reader, message)
		: reader != NULL ? gt_live_thread_pipe_open(live, look, reader, message)
				 : gt_live_need_pipe(live, look, message);
	pthread_mutex_unlock(&live->pipe_lock);
	if (error != 0)
		let_go(live, cpu);
	return error;
}

int gt_live_open_trace(struct gt_live *live, const struct gt_text_look *look,
		       struct gt_text_reader **reader, struct gt_message *message)
{
	int error = gt_text_reader_open(live->control.view, look, false, reader, message);
	struct gt_merge_given *given;
	uint32_t count;

	if (error != 0)
		return error;
	pthread_mutex_lock(&live->pipe_lock);
	if (live->raw != NULL) {
		error = gt_live_raw_given(live, &given, &count);
		if (error == 0)
			gt_text_reader_skip(*reader, given, count);
	} else if (live->pipe != NULL) {
		error = gt_text_reader_skip_given(*reader, live->pipe);
	}
	if (error == 0)
		error = gt_live_cpus_skip(live, *reader);
	pthread_mutex_unlock(&live->pipe_lock);
	if (error != 0) {
		gt_text_reader_close(*reader);
		return no_memory(message);
	}
	return 0;
}

/* The session may be writing it: twice the same is whole. */
static struct gt_clock read_clock(struct gt_session *session)
{
	const volatile struct gt_clock *clock = &gt_session_target(session)->clock;
	struct gt_clock one = *clock;
	struct gt_clock two = *clock;

	while (one.tsc_base != two.tsc_base || one.ns_base != two.ns_base || one.mult != two.mult) {
		one = two;
		two = *clock;
	}
	return two;
}

void gt_live_settle_clock(struct gt_live *live)
{
	pthread_mutex_lock(&live->lock);
	if (!live->has_clock)
		live->view.clock = read_clock(live->session);
	live->has_clock = true;
	pthread_mutex_unlock(&live->lock);
}

static int text_open(struct gt_control_target *target, const struct gt_control_scope *scope,
		     bool consume, void **text_out, struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct live_text *text;
	struct gt_text_look look;
	int error;

	text = calloc(1, sizeof(*text));
	if (text == NULL)
		return no_memory(message);
	gt_live_pull(live);
	gt_live_get_look(live, &look);
	look.scope = *scope;
	gt_live_settle_clock(live);
	text->thread = consume && scope->kind != GT_SCOPE_ALL;
	text->cpu = consume && scope->kind == GT_SCOPE_CPU ? scope->number + 1 : 0;
	error = consume ? open_pipe(live, &look, text->thread ? &text->reader : NULL, message)
			: gt_live_open_trace(live, &look, &text->reader, message);
	if (error != 0) {
		free(text);
		return error;
	}
	gt_live_hold(live);
	text->pauses = !consume && live->top == NULL && gt_live_pause(live);
	*text_out = text;
	return 0;
}

static int64_t text_read(struct gt_control_target *target, void *data, char *buffer, size_t bytes,
			 struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct live_text *text = data;
	struct gt_text_look look;
	int64_t got;

	if (text->reader != NULL && !text->thread)
		return gt_text_reader_read(text->reader, buffer, bytes, message);
	gt_live_pull(live);
	gt_live_get_look(live, &look);
	pthread_mutex_lock(&live->pipe_lock);
	gt_text_reader_update(text->thread ? text->reader : live->pipe, &look);
	/* Asked before reading: what came before the end is then seen by this read. */
	if (atomic_load(&live->ended))
		gt_text_reader_finish(text->thread ? text->reader : live->pipe);
	got = gt_text_reader_read(text->thread ? text->reader : live->pipe, buffer, bytes, message);
	if (text->cpu != 0)
		gt_live_cpu_note(live, text->cpu - 1);
	pthread_mutex_unlock(&live->pipe_lock);
	return got;
}

static void text_close(struct gt_control_target *target, void *data)
{
	struct gt_live *live = live_of(target);
	struct live_text *text = data;

	if (text->reader != NULL && !text->thread) {
		gt_text_reader_close(text->reader);
		gt_store_put(text->store);
		if (text->pauses)
			gt_live_unpause(live);
	} else {
		pthread_mutex_lock(&live->pipe_lock);
		if (text->cpu != 0)
			gt_live_cpu_close(live, text->cpu - 1);
		else if (text->thread)
			gt_live_thread_pipe_close(live, text->reader);
		pthread_mutex_unlock(&live->pipe_lock);
		let_go(live, text->cpu != 0);
	}
	if (text->store == NULL)
		gt_live_release(live);
	free(text);
}

/* What a thread's or CPU's pipe would give is given to nobody. */
static int clear_one(struct gt_control_target *target, const struct gt_control_scope *scope,
		     struct gt_message *message)
{
	char *text = malloc(DISCARD_BYTES);
	void *pipe;
	int error =
		text != NULL ? text_open(target, scope, true, &pipe, message) : no_memory(message);

	for (int i = 0; error == 0 && i < DISCARD_BLOCKS; i++) {
		if (text_read(target, pipe, text, DISCARD_BYTES, message) <= 0)
			break;
	}
	if (error == 0)
		text_close(target, pipe);
	free(text);
	return error;
}

static int clear(struct gt_control_target *target, const struct gt_control_scope *scope,
		 struct gt_message *message)
{
	if (scope->kind != GT_SCOPE_ALL)
		return clear_one(target, scope, message);
	return empty_ring(live_of(target), message);
}

static const struct gt_control_ops operations = {
	.get = get,
	.set = set,
	.list_open = gt_live_list_open,
	.list_read = gt_live_list_read,
	.list_close = gt_live_list_close,
	.edit_open = gt_live_edit_open,
	.edit_add = gt_live_edit_add,
	.edit_remove = gt_live_edit_remove,
	.edit_close = gt_live_edit_close,
	.text_open = text_open,
	.text_read = text_read,
	.text_close = text_close,
	.clear = clear,
	.thread = gt_live_thread,
	.threads_set = gt_live_threads_set,
	.stats = gt_live_stats,
	.mark = gt_live_mark,
	.command_set = gt_live_command_set,
	.command_remove = gt_live_command_remove,
	.command_read = gt_live_command_read,
	.snapshot = gt_live_snapshot,
	.snapshot_open = gt_live_snapshot_open,
	.instance = gt_live_instance_of,
	.instance_make = gt_live_instance_make,
	.instance_remove = gt_live_instance_remove,
	.profile_open = gt_live_profile_open,
	.profile_read = gt_live_profile_read,
	.profile_close = gt_live_profile_close,
	.raw_open = gt_live_raw_open,
	.raw_read = gt_live_raw_read,
	.raw_close = gt_live_raw_close,
};

/* Of an instance: what the session has only one of is the top's. */
static const struct gt_control_ops instance_operations = {
	.get = get,
	.set = set,
	.list_open = gt_live_list_open,
	.list_read = gt_live_list_read,
	.list_close = gt_live_list_close,
	.edit_open = gt_live_edit_open,
	.edit_add = gt_live_edit_add,
	.edit_remove = gt_live_edit_remove,
	.edit_close = gt_live_edit_close,
	.text_open = text_open,
	.text_read = text_read,
	.text_close = text_close,
	.clear = clear,
	.thread = gt_live_thread,
	.threads_set = gt_live_threads_set,
	.stats = gt_live_stats,
	.mark = gt_live_mark,
	.command_set = gt_live_command_set,
	.command_remove = gt_live_command_remove,
	.command_read = gt_live_command_read,
	.snapshot = gt_live_snapshot,
	.snapshot_open = gt_live_snapshot_open,
	.raw_open = gt_live_raw_open,
	.raw_read = gt_live_raw_read,
	.raw_close = gt_live_raw_close,
};

int gt_live_create_instance(struct gt_live *top, struct gt_live_instance *instance,
			    struct gt_store *store, struct gt_live **live_out)
{
	struct gt_live *live = calloc(1, sizeof(*live));

	if (live == NULL)
		return GT_ENOMEM;
	pthread_mutex_init(&live->lock, NULL);
	pthread_mutex_init(&live->change, NULL);
	pthread_mutex_init(&live->pipe_lock, NULL);
	live->top = top;
	live->control = (struct gt_control_target){
		.ops = &instance_operations,
		.data = live,
		.kind = GT_CONTROL_PROGRAM,
		.view = &live->view,
		.top = &top->control,
		.log = &live->log,
	};
	gt_live_view_init(&live->over, gt_store_target(store), &live->view);
	live->over.session = top->session;
	live->over.overwrite = true;
	live->view.clock = top->view.clock;
	live->view.tracer = live->tracer = GRAFTRACE_TRACER_NOP;
	live->has_clock = true;
	live->cmdlines = CMDLINES;
	live->time_start = __builtin_ia32_rdtsc();
	live->session = top->session;
	live->mode = top->mode;
	live->buffer_bytes = top->buffer_bytes;
	live->options = GT_OPTIONS_DEFAULT | GT_OPTION_OVERWRITE;
	live->program = strdup(top->program);
	if (live->program == NULL) {
		gt_live_destroy(live);
		return GT_ENOMEM;
	}
	live->instance = instance;
	*live_out = live;
	return 0;
}

int gt_live_create(struct gt_session *session, const struct gt_live_options *options,
		   struct gt_live **live_out, struct gt_message *message)
{
	struct gt_live *live = calloc(1, sizeof(*live));
	void *functions = NULL;

	if (live == NULL)
		return no_memory(message);
	pthread_mutex_init(&live->lock, NULL);
	pthread_mutex_init(&live->change, NULL);
	pthread_mutex_init(&live->pipe_lock, NULL);
	live->control = (struct gt_control_target){
		.ops = &operations,
		.data = live,
		.kind = GT_CONTROL_PROGRAM,
		.view = &live->view,
		.log = &live->log,
	};
	gt_live_view_init(&live->over, gt_session_target(session), &live->view);
	live->over.session = session;
	live->over.overwrite = options->mode == GRAFTRACE_MODE_OVERWRITE;
	live->cmdlines = CMDLINES;
	live->time_start = __builtin_ia32_rdtsc();
	live->session = session;
	live->mode = options->mode;
	live->no_fork = options->no_fork;
	live->dump = options->dump;
	live->dump_data = options->dump_data;
	live->buffer_bytes = options->buffer_bytes;
	live->tracer = options->tracer;
	live->view.tracer = options->tracer;
	gt_live_instances_init(live);
	live->max_depth = options->max_graph_depth;
	live->threshold_ns = options->threshold_ns;
	live->options = GT_OPTIONS_DEFAULT |
			(options->mode == GRAFTRACE_MODE_OVERWRITE ? GT_OPTION_OVERWRITE : 0);
	live->program = strdup(options->program != NULL ? options->program : "");
	if (live->program == NULL ||
	    !gt_globs_add_all(&live->lists[GT_CONTROL_FILTER], options->filter) ||
	    !gt_globs_add_all(&live->lists[GT_CONTROL_NOTRACE], options->notrace) ||
	    !gt_globs_add_all(&live->lists[GT_CONTROL_GRAPH], options->graph) ||
	    !gt_globs_add_all(&live->lists[GT_CONTROL_GRAPH_NOTRACE], options->graph_notrace)) {
		gt_live_destroy(live);
		return no_memory(message);
	}
	/* What there is at the start, in case that nobody asks before the end. */
	if (gt_live_list_open(&live->control, GT_CONTROL_AVAILABLE, &functions, message) == 0)
		gt_live_list_close(&live->control, functions);
	/* The index of names is made by the first question: here, not at somebody's first change.
	 */
	gt_session_has_function(session, "");
	*live_out = live;
	return 0;
}

struct gt_control_target *gt_live_control(struct gt_live *live)
{
	return &live->control;
}

struct gt_target *gt_live_marks(struct gt_live *live)
{
	return &live->over.marks;
}

void gt_live_end(struct gt_live *live)
{
	atomic_store(&live->ended, true);
	gt_live_instances_end(live);
}

void gt_live_destroy(struct gt_live *live)
{
	if (live->top == NULL)
		gt_live_instances_fini(live);
	for (int i = 0; i < LISTS; i++)
		gt_globs_clear(&live->lists[i]);
	pthread_mutex_destroy(&live->lock);
	pthread_mutex_destroy(&live->change);
	pthread_mutex_destroy(&live->pipe_lock);
	gt_live_raw_destroy(live);
	gt_live_cpus_destroy(live);
	gt_live_snapshot_forget(live);
	if (live->pipe != NULL)
		gt_text_reader_close(live->pipe);
	gt_live_view_fini(&live->over);
	gt_live_instance_fini(live);
	free(live->known);
	free(live->program);
	free(live);
}
