/* SPDX-License-Identifier: MIT */
/*
 * A session's control files: created, with their operations, and destroyed. Guarantees: `lock` is
 * held briefly, never while the session patches code, text is made or bytes are sent.
 */
#include "serve/live/live_event_words.h"
#include "serve/live/live_events.h"
#include "serve/live/live_filters.h"
#include "serve/live/live_hists.h"
#include "serve/live/live_instance.h"
#include "serve/live/live_probes.h"

#include <stdlib.h>
#include <string.h>

#include "serve/store/store.h"
#include "serve/text_reader.h"
#include "port/host/memory.h"

#define CMDLINES 8192 /* names in saved_cmdlines, by default */

/* Operations of the top and of instances. */
#define COMMON_OPERATIONS                                                                   \
	.get = gt_live_get, .set = gt_live_set, .list_open = gt_live_list_open,             \
	.list_read = gt_live_list_read, .list_close = gt_live_list_close,                   \
	.edit_open = gt_live_edit_open, .edit_add = gt_live_edit_add,                       \
	.edit_remove = gt_live_edit_remove, .edit_close = gt_live_edit_close,               \
	.text_open = gt_live_text_open, .text_read = gt_live_text_read,                     \
	.text_close = gt_live_text_close, .clear = gt_live_clear, .thread = gt_live_thread, \
	.threads_set = gt_live_threads_set, .stats = gt_live_stats, .mark = gt_live_mark,   \
	.command_set = gt_live_command_set, .command_remove = gt_live_command_remove,       \
	.command_read = gt_live_command_read, .snapshot = gt_live_snapshot,                 \
	.snapshot_open = gt_live_snapshot_open, .raw_open = gt_live_raw_open,               \
	.event = gt_live_event, .events_came = gt_live_events_came,                         \
	.event_set = gt_live_event_set, .event_waiting = gt_live_event_waiting,             \
	.raw_read = gt_live_raw_read, .raw_close = gt_live_raw_close

static const struct gt_control_ops operations = {
	COMMON_OPERATIONS,
	.instance = gt_live_instance_of,
	.instance_make = gt_live_instance_make,
	.instance_remove = gt_live_instance_remove,
	.profile_open = gt_live_profile_open,
	.profile_read = gt_live_profile_read,
	.profile_close = gt_live_profile_close,
	.probe_set = gt_live_probe_set,
	.probes_remove = gt_live_probes_remove,
	.probe = gt_live_probe,
	.probe_hits = gt_live_probe_hits,
	.event_filter_set = gt_live_event_filter_set,
	.event_filter_read = gt_live_event_filter_read,
	.synthetic_set = gt_live_synthetic_set,
	.synthetics_remove = gt_live_synthetics_remove,
	.synthetic = gt_live_synthetic,
	.event_hist_check = gt_live_event_hist_check,
	.event_trigger_set = gt_live_event_trigger_set,
	.event_trigger_get = gt_live_event_trigger_get,
	.event_hists_open = gt_live_event_hists_open,
	.event_hists_read = gt_live_event_hists_read,
	.event_hists_close = gt_live_event_hists_close,
};

/* What a session has only once is an operation of the top alone. */
static const struct gt_control_ops instance_operations = {
	COMMON_OPERATIONS,
};

/* Makes what the top and instances have in common; copies `program`. NULL: no memory. */
static struct gt_live *make(struct gt_session *session, struct gt_target *records,
			    const struct gt_control_ops *ops, const char *program)
{
	struct gt_live *live = calloc(1, sizeof(*live));

	if (live == NULL)
		return NULL;
	live->program = strdup(program);
	if (live->program == NULL) {
		free(live);
		return NULL;
	}
	pthread_mutex_init(&live->lock, NULL);
	live->change.filters.memory = gt_host_memory;
	pthread_mutex_init(&live->change.lock, NULL);
	pthread_mutex_init(&live->reading.lock, NULL);
	live->control = (struct gt_control_target){
		.ops = ops,
		.data = live,
		.kind = GT_CONTROL_PROGRAM,
		.view = &live->view,
		.log = &live->log,
	};
	gt_live_view_init(&live->over, records, &live->view);
	live->over.session = session;
	live->session = session;
	live->shown.cmdlines = CMDLINES;
	live->shown.options = GT_OPTIONS_DEFAULT;
	live->shown.time_start = __builtin_ia32_rdtsc();
	return live;
}

int gt_live_create_instance(struct gt_live *top, struct gt_live_instance *instance,
			    struct gt_store *store, struct gt_live **live_out)
{
	struct gt_live *live =
		make(top->session, gt_store_target(store), &instance_operations, top->program);

	if (live == NULL)
		return GT_ENOMEM;
	live->top = top;
	live->control.top = &top->control;
	live->over.overwrite = true;
	live->view.clock = top->view.clock;
	live->view.tracer = live->settings.tracer = GRAFTRACE_TRACER_NOP;
	live->shown.has_clock = true;
	live->mode = top->mode;
	live->buffer_bytes = top->buffer_bytes;
	live->shown.options |= GT_OPTION_OVERWRITE;
	live->instance = instance;
	*live_out = live;
	return 0;
}

int gt_live_create(struct gt_session *session, const struct gt_live_options *options,
		   struct gt_live **live_out, struct gt_message *message)
{
	struct gt_live *live;
	void *functions = NULL;

	if (options->size < sizeof(*options))
		return gt_fail(message, GT_EINVAL,
			       "the options of the control files are too short");
	live = make(session, gt_session_target(session), &operations,
		    options->program != NULL ? options->program : "");
	if (live == NULL)
		return no_memory(message);
	gt_session_keep_writers(session);
	live->mode = options->mode;
	live->over.overwrite = options->mode == GRAFTRACE_MODE_OVERWRITE;
	if (live->over.overwrite)
		live->shown.options |= GT_OPTION_OVERWRITE;
	live->no_fork = options->no_fork;
	live->dump = options->dump;
	live->dump_data = options->dump_data;
	live->buffer_bytes = options->buffer_bytes;
	live->view.tracer = options->settings.tracer;
	live->settings = gt_trace_settings_copy(&options->settings);
	gt_live_instances_init(live);
	for (const char *const *word = options->values; word != NULL && *word != NULL; word++)
		live->shown.options |=
			**word == 'r' || **word == 'R'
				? GT_OPTION_GRAPH_RETVAL
				: GT_OPTION_GRAPH_ARGS | GT_OPTION_FUNC_ARGS |
					  (strstr(*word, "retval") != NULL ? GT_OPTION_GRAPH_RETVAL
									   : 0);
	live->shown.recorded_values = live->shown.options & GT_OPTIONS_OF_VALUES;
	if (gt_live_probes_init(live, options->event_filters) != 0) {
		gt_live_destroy(live);
		return no_memory(message);
	}
	/* Notes the functions at the start, in case no list is read before the program ends. */
	if (gt_live_list_open(&live->control, GT_CONTROL_AVAILABLE, &functions, message) == 0)
		gt_live_list_close(&live->control, functions);
	/* The first search builds the index of names: here, so that no change has to wait for
	 * it. */
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
	gt_trace_settings_fini(&live->settings);
	pthread_mutex_destroy(&live->lock);
	pthread_mutex_destroy(&live->change.lock);
	pthread_mutex_destroy(&live->reading.lock);
	gt_live_raw_destroy(live);
	gt_live_cpus_destroy(live);
	gt_live_snapshot_forget(live);
	if (live->reading.pipe != NULL)
		gt_text_reader_close(live->reading.pipe);
	gt_live_view_fini(&live->over);
	gt_live_instance_fini(live);
	gt_live_probes_fini(live);
	free(live->known);
	free(live->program);
	free(live);
}
