/* SPDX-License-Identifier: MIT */
/*
 * A recording's control files. A recording is used by one thread at a time: this file has the lock
 * for that, taken for each call of the target.
 */
#include "serve/recorded.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/message.h"
#include "core/text/raw.h"
#include "port/host/memory.h"
#include "serve/recorded_events.h"
#include "serve/recorded_stats.h"
#include "serve/text_reader.h"

struct gt_recorded {
	struct gt_control_target control;
	struct gt_target view; /* the recording's target, with each call under `lock` */
	struct gt_target *inner;
	uint32_t function_end;
	char *program;
	pthread_mutex_t lock; /* guards the recording and `options` */
	uint64_t options;
	bool has_switches;
	bool sched_switch; /* the event's lines are shown */
	struct gt_recorded_stats stats;
	struct gt_recorded_events events; /* does not change */
};

/* The target, locked */

static struct gt_recorded *lock(struct gt_target *target)
{
	struct gt_recorded *recorded = target->data;

	pthread_mutex_lock(&recorded->lock);
	return recorded;
}

static uint32_t writer_count(struct gt_target *target)
{
	struct gt_recorded *recorded = lock(target->data);
	uint32_t count = recorded->inner->ring->writer_count(recorded->inner);

	pthread_mutex_unlock(&recorded->lock);
	return count;
}

static int writer(struct gt_target *target, uint32_t index, struct gt_writer *out)
{
	struct gt_recorded *recorded = lock(target->data);
	int error = recorded->inner->ring->writer(recorded->inner, index, out);

	pthread_mutex_unlock(&recorded->lock);
	return error;
}

static int64_t sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence, void *buffer,
			  const struct graftrace_sub_buffer **bytes)
{
	struct gt_recorded *recorded = lock(target->data);
	int64_t words =
		recorded->inner->ring->sub_buffer(recorded->inner, index, sequence, buffer, bytes);

	/* The target's memory is valid until the next call, which another thread may make at
	 * once: copy. */
	if (words >= 0 && (const void *)*bytes != buffer) {
		size_t size = sizeof(**bytes) + (size_t)words * 8;

		memcpy(buffer, *bytes,
		       size <= target->sub_buffer_bytes ? size : target->sub_buffer_bytes);
		*bytes = buffer;
	}
	pthread_mutex_unlock(&recorded->lock);
	return words;
}

static int function(void *data, uint32_t number, struct gt_function *out)
{
	struct gt_recorded *recorded = lock(data);
	int error = gt_target_function(recorded->inner, number, out);

	pthread_mutex_unlock(&recorded->lock);
	return error;
}

static int function_at(void *data, uint32_t pid, uint64_t address, struct gt_function *out)
{
	struct gt_recorded *recorded = lock(data);
	int error = gt_target_function_at(recorded->inner, pid, address, out);

	pthread_mutex_unlock(&recorded->lock);
	return error;
}

static int line(void *data, uint32_t number, struct gt_source_line *out)
{
	struct gt_recorded *recorded = lock(data);
	int error = gt_target_line(recorded->inner, number, out);

	pthread_mutex_unlock(&recorded->lock);
	return error;
}

/* Values of calls by the recording, events by their first place's number, which their format has. */
static int event(void *data, uint32_t number, struct gt_event_format *out)
{
	struct gt_recorded *recorded = data;
	int error;

	if (!(number & GRAFTRACE_VALUES))
		return gt_recorded_events_of(&recorded->events, number, out);
	recorded = lock(data);
	error = gt_target_event(recorded->inner, number, out);
	pthread_mutex_unlock(&recorded->lock);
	return error;
}

static int off_cpu(void *data, uint32_t tid, uint64_t after, struct gt_off_cpu *time)
{
	struct gt_recorded *recorded = lock(data);
	int error = gt_target_find_off_cpu(recorded->inner, tid, after, time);

	pthread_mutex_unlock(&recorded->lock);
	return error;
}

static uint32_t read_switches(void *data, uint64_t *cursor, struct gt_switch *out, uint32_t room)
{
	struct gt_recorded *recorded = lock(data);
	uint32_t count = gt_target_read_switches(recorded->inner, cursor, out, room);

	pthread_mutex_unlock(&recorded->lock);
	return count;
}

static const struct gt_ring_ops view_ring = {
	.writer_count = writer_count,
	.writer = writer,
	.sub_buffer = sub_buffer,
};
static const struct gt_name_ops view_names = {
	.function = function, .function_at = function_at, .event = event, .line = line
};
static const struct gt_switch_ops view_switches = { .off_cpu = off_cpu, .read = read_switches };

/* The control files */

static struct gt_recorded *recorded_of(struct gt_control_target *target)
{
	return target->data;
}

static int get(struct gt_control_target *target, enum gt_control_value which, uint64_t *value)
{
	struct gt_recorded *recorded = recorded_of(target);

	switch (which) {
	case GT_CONTROL_TRACER:
		*value = recorded->view.tracer;
		return 0;
	case GT_CONTROL_OPTIONS:
		pthread_mutex_lock(&recorded->lock);
		*value = recorded->options;
		pthread_mutex_unlock(&recorded->lock);
		return 0;
	case GT_CONTROL_SCHED_SWITCH:
		if (!recorded->has_switches)
			return GT_ENOTSUP;
		pthread_mutex_lock(&recorded->lock);
		*value = recorded->sched_switch;
		pthread_mutex_unlock(&recorded->lock);
		return 0;
	case GT_CONTROL_TRACING_ON:
	case GT_CONTROL_CLOCK_ID:
		*value = 0;
		return 0;
	default:
		return GT_ENOTSUP;
	}
}

/* Under the lock. */
static int set_options(struct gt_recorded *recorded, uint64_t options, struct gt_message *message)
{
	uint64_t fixed = GT_OPTION_OVERWRITE | GT_OPTION_FUNCTION_FORK;

	if ((options ^ recorded->options) & fixed)
		return gt_fail(message, GT_EINVAL, "this of a recording cannot be changed");
	if (!(options & GT_OPTION_SLEEP_TIME) && !gt_target_has_off_cpu(recorded->inner))
		return gt_fail(message, GT_ENOTSUP,
			       "this recording does not have when threads were off the "
			       "CPU");
	recorded->options = options;
	return 0;
}

static int set(struct gt_control_target *target, enum gt_control_value which, uint64_t value,
	       struct gt_message *message)
{
	struct gt_recorded *recorded = recorded_of(target);
	int error = 0;

	if (which == GT_CONTROL_TRACING_ON) { /* trace-cmd extract writes 0 first */
		if (value == 0)
			return 0;
		return gt_fail(message, GT_EPERM, "a recording is over");
	}
	pthread_mutex_lock(&recorded->lock);
	if (which == GT_CONTROL_SCHED_SWITCH && recorded->has_switches) {
		recorded->sched_switch = value != 0;
	} else if (which == GT_CONTROL_OPTIONS_ON || which == GT_CONTROL_OPTIONS_OFF) {
		error = set_options(recorded,
				    gt_control_options_with(recorded->options, which, value),
				    message);
	} else {
		gt_message_set(message, "this of a recording cannot be changed");
		error = GT_EINVAL;
	}
	pthread_mutex_unlock(&recorded->lock);
	return error;
}

/* The reader of a list: functions in order of their numbers, of which some may not exist. */
struct list {
	uint64_t index;	 /* of the line that was asked for last … */
	uint32_t number; /* … and its function */
};

static int list_open(struct gt_control_target *target, enum gt_control_list which, void **list,
		     struct gt_message *message)
{
	(void)target;
	if (which != GT_CONTROL_AVAILABLE)
		return 1;
	*list = calloc(1, sizeof(struct list));
	if (*list != NULL)
		return 0;
	return gt_fail(message, GT_ENOMEM, "no memory");
}

static int list_read(struct gt_control_target *target, void *data, uint64_t index,
		     struct gt_control_name *name)
{
	struct gt_recorded *recorded = recorded_of(target);
	struct list *list = data;
	struct gt_function function_found;
	const char *slash;
	uint64_t line;
	uint32_t number;

	/* Starts from the line before: lines are read in order. */
	if (list->number == 0 || index < list->index) {
		line = 0;
		number = 1;
	} else {
		line = list->index;
		number = list->number;
	}
	for (; number < recorded->function_end; number++) {
		if (function(&recorded->view, number, &function_found) != 0)
			continue;
		if (line == index)
			break;
		line++;
	}
	if (number >= recorded->function_end)
		return GT_ENOENT;
	list->index = index;
	list->number = number;
	slash = strrchr(function_found.object, '/');
	name->name = function_found.name;
	name->address = function_found.address;
	name->module = strcmp(function_found.object, recorded->program) == 0 ? ""
		       : slash != NULL					     ? slash + 1
				       : function_found.object;
	return 0;
}

static void list_close(struct gt_control_target *target, void *list)
{
	(void)target;
	free(list);
}

static int text_open(struct gt_control_target *target, const struct gt_control_scope *scope,
		     bool consume, void **text, struct gt_message *message)
{
	struct gt_recorded *recorded = recorded_of(target);
	struct gt_text_look look = { .scope = *scope };

	get(target, GT_CONTROL_OPTIONS, &look.options);
	look.switches = recorded->sched_switch;
	return gt_text_reader_open(&recorded->view, &look, consume, (struct gt_text_reader **)text,
				   message);
}

static int64_t text_read(struct gt_control_target *target, void *text, char *buffer, size_t bytes,
			 struct gt_message *message)
{
	(void)target;
	return gt_text_reader_read(text, buffer, bytes, message);
}

static void text_close(struct gt_control_target *target, void *text)
{
	(void)target;
	gt_text_reader_close(text);
}

/* Raw pages: each opening gives all of them from the start. */

static int raw_open(struct gt_control_target *target, uint32_t cpu, void **raw,
		    struct gt_message *message)
{
	struct gt_raw_options options = {
		.cpu = cpu,
		.mode = GT_MERGE_SNAPSHOT,
		.switches = recorded_of(target)->sched_switch,
		.stacks = (recorded_of(target)->options & GT_OPTION_STACKTRACE) != 0,
	};
	struct gt_raw *opened = malloc(sizeof(*opened));
	int error = GT_ENOMEM;

	if (opened != NULL)
		error = gt_raw_init(opened, &recorded_of(target)->view, &gt_host_memory, &options);
	if (error != 0) {
		free(opened);
		return gt_fail(message, error, "no memory");
	}
	*raw = opened;
	return 0;
}

static int64_t raw_read(struct gt_control_target *target, void *raw, char *buffer, size_t bytes,
			struct gt_message *message)
{
	int64_t got = gt_raw_read(raw, buffer, bytes);

	(void)target;
	if (got < 0)
		gt_message_set(message, "the recording cannot be read");
	return got;
}

static void raw_close(struct gt_control_target *target, void *raw)
{
	(void)target;
	gt_raw_fini(raw);
	free(raw);
}

static int stats(struct gt_control_target *target, const struct gt_control_scope *scope,
		 struct gt_control_stats *out, struct gt_message *message)
{
	struct gt_recorded *recorded = target->data;

	return gt_recorded_stats_get(&recorded->stats, &recorded->view, scope, out, message);
}

static int control_event(struct gt_control_target *target, uint64_t index,
			 struct gt_control_event *out)
{
	return gt_recorded_events_at(&recorded_of(target)->events, index, out);
}

static const struct gt_control_ops operations = {
	.event = control_event,
	.stats = stats,
	.raw_open = raw_open,
	.raw_read = raw_read,
	.raw_close = raw_close,
	.get = get,
	.set = set,
	.list_open = list_open,
	.list_read = list_read,
	.list_close = list_close,
	.text_open = text_open,
	.text_read = text_read,
	.text_close = text_close,
};

int gt_recorded_create(struct gt_recording *recording, struct gt_recorded **recorded_out,
		       struct gt_message *message)
{
	struct gt_recorded *recorded = calloc(1, sizeof(*recorded));

	if (recorded != NULL)
		recorded->program = strdup(gt_recording_info(recording)->program);
	if (recorded == NULL || recorded->program == NULL ||
	    gt_recorded_events_init(&recorded->events, recording) != 0) {
		if (recorded != NULL)
			free(recorded->program);
		free(recorded);
		return gt_fail(message, GT_ENOMEM, "no memory");
	}
	pthread_mutex_init(&recorded->lock, NULL);
	gt_recorded_stats_init(&recorded->stats);
	recorded->inner = gt_recording_target(recording);
	recorded->view = *recorded->inner;
	recorded->view.ring = &view_ring;
	recorded->view.names = &view_names;
	recorded->view.switches = &view_switches;
	recorded->view.data = recorded->view.name_data = recorded->view.switch_data = recorded;
	recorded->control = (struct gt_control_target){
		.ops = &operations,
		.data = recorded,
		.kind = GT_CONTROL_RECORDING,
		.view = &recorded->view,
		.groups = &recorded->events.group,
		.group_count = 1,
	};
	recorded->function_end = gt_recording_function_end(recording);
	recorded->options = GT_OPTIONS_DEFAULT | GT_OPTIONS_RECORDED_VALUES;
	recorded->has_switches = gt_recording_info(recording)->has_switches;
	*recorded_out = recorded;
	return 0;
}

struct gt_control_target *gt_recorded_control(struct gt_recorded *recorded)
{
	return &recorded->control;
}

void gt_recorded_destroy(struct gt_recorded *recorded)
{
	pthread_mutex_destroy(&recorded->lock);
	gt_recorded_stats_fini(&recorded->stats);
	gt_recorded_events_fini(&recorded->events);
	free(recorded->program);
	free(recorded);
}
