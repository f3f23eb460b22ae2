/* SPDX-License-Identifier: MIT */
/*
 * Latency tracers in a kernel's control files: what choosing one changes, and the worst case as a part
 * of the ring. Behaviour: kernel/trace/trace_irqsoff.c, Linux 6.1.
 */
#include "core/kernel/kernel_private.h"

#define FORCED (GT_OPTION_LATENCY_FORMAT | GT_OPTION_OVERWRITE)

static uint32_t kinds_of(uint32_t tracer)
{
	switch (tracer) {
	case GRAFTRACE_TRACER_IRQSOFF:
		return GRAFTRACE_LATENCY_IRQS;
	case GRAFTRACE_TRACER_PREEMPTOFF:
		return GRAFTRACE_LATENCY_PREEMPT;
	case GRAFTRACE_TRACER_PREEMPTIRQSOFF:
		return GRAFTRACE_LATENCY_IRQS | GRAFTRACE_LATENCY_PREEMPT;
	default:
		return 0;
	}
}

bool gt_arena_is_latency(uint32_t tracer)
{
	return kinds_of(tracer) != 0;
}

/* The ring keeps the newest while latencies are measured, and its text has their format; what was
 * before comes back. */
void gt_arena_latency_options(struct gt_arena_control *control, uint32_t before, uint32_t tracer)
{
	if (gt_arena_is_latency(before))
		control->options = (control->options & ~FORCED) | control->options_before;
	if (gt_arena_is_latency(tracer)) {
		control->options_before = control->options & FORCED;
		control->options |= FORCED;
	}
	if (gt_arena_is_latency(before) || gt_arena_is_latency(tracer))
		__atomic_store_n(&control->ring->arena->mode,
				 control->options & GT_OPTION_OVERWRITE ? GRAFTRACE_MODE_OVERWRITE
									: GRAFTRACE_MODE_RING,
				 __ATOMIC_RELAXED);
}

void gt_arena_latency_begin(struct gt_arena_control *control, uint32_t before)
{
	const struct gt_arena_machine *machine = control->machine;
	if (gt_arena_is_latency(before) || gt_arena_is_latency(control->tracer))
		machine->latency_measure(machine->data, kinds_of(control->tracer));
}

void gt_arena_latency_forget(struct gt_arena_control *control)
{
	const struct gt_arena_machine *machine = control->machine;
	if (!gt_arena_is_latency(control->tracer))
		return;
	uint64_t longest = machine->latency_max(machine->data);
	machine->latency_measure(machine->data, kinds_of(control->tracer));
	machine->latency_set_max(machine->data, longest);
}

/* What has a line: of the function tracer, or of the graph. */
static bool is_line(const struct gt_record *record)
{
	switch (record->kind) {
	case GT_RECORD_FUNCTION:
	case GT_RECORD_ENTRY:
	case GT_RECORD_RETURN:
	case GT_RECORD_EVENT:
	case GT_RECORD_MARKER:
		return true;
	default:
		return false;
	}
}

static uint64_t count_records(struct gt_arena_reader *reader, const struct gt_memory *memory)
{
	struct gt_merge *merge = gt_memory_get(memory, sizeof(*merge));
	struct gt_source *source;
	uint64_t count = 0;
	if (merge == NULL)
		return 0;
	if (gt_merge_init(merge, &reader->target.target, memory, GT_MERGE_SNAPSHOT,
			  &reader->filter) == 0) {
		while (gt_merge_next(merge, &source) > 0)
			count += is_line(&source->record);
	}
	gt_merge_fini(merge);
	gt_memory_put(memory, merge, sizeof(*merge));
	return count;
}

#define GRAPH_COLUMNS (GT_OPTION_GRAPH_CPU | GT_OPTION_GRAPH_PROC | GT_OPTION_GRAPH_DURATION)

void gt_arena_latency_open(struct gt_arena_control *control, struct gt_arena_reader *reader,
			   struct gt_text_options *options)
{
	const struct gt_arena_machine *machine = control->machine;
	const struct gt_clock *clock = &control->ring->clock;
	struct gt_text_latency *latency = &reader->latency;
	struct graftrace_latency *worst = &latency->worst;
	__builtin_memset(latency, 0, sizeof(*latency));
	machine->latency_keep(machine->data, true);
	reader->keeps = true;
	latency->graph = control->display_graph;
	options->latency = latency;
	options->filter = &reader->filter;
	if (latency->graph) /* GRAPH_TRACER_FLAGS of trace_irqsoff.c */
		options->options = (options->options | GRAPH_COLUMNS) & ~GT_OPTION_GRAPH_ABSTIME;
	if (!machine->latency_worst(machine->data, worst) || worst->cpu >= GT_ARENA_WRITERS) {
		worst->number = 0;
		return;
	}
	options->time_start = worst->from.clock;
	reader->filter.from_ns = gt_clock_ns(clock, worst->from.clock);
	reader->filter.to_ns = gt_clock_ns(clock, worst->to.clock);
	__builtin_memset(reader->filter.cpus, 0, sizeof(reader->filter.cpus));
	reader->filter.cpus[worst->cpu / 64] = 1ull << worst->cpu % 64;
	if (gt_target_thread(&reader->target.target, worst->tid, latency->comm) != 0)
		__builtin_memcpy(latency->comm, "<...>", 6);
	latency->records = count_records(reader, &control->memory);
}

void gt_arena_latency_close(struct gt_arena_control *control, struct gt_arena_reader *reader)
{
	if (reader->keeps)
		control->machine->latency_keep(control->machine->data, false);
	reader->keeps = false;
}

/* ---- tracing_max_latency, options/function-trace ---- */

static int open_max(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_arena_control *control = handle->target->data;
	uint64_t ticks = control->machine->latency_max(control->machine->data);
	uint64_t ns = gt_clock_duration_ns(&control->ring->clock, ticks);
	(void)access;
	(void)message;
	handle->text_bytes = gt_format(handle->text, sizeof(handle->text), "%llu\n",
				       (unsigned long long)((ns + 500) / 1000));
	return 0;
}

static int64_t write_max(struct gt_control_handle *handle, const char *bytes, size_t count,
			 struct gt_message *message)
{
	struct gt_arena_control *control = handle->target->data;
	uint64_t us = 0;
	int error = gt_row_number(bytes, count, 1ull << 32, &us, message);
	if (error != 0)
		return error;
	control->machine->latency_set_max(control->machine->data,
					  gt_arena_ticks(control, us * 1000));
	return (int64_t)count;
}

static bool *option_of(struct gt_control_handle *handle)
{
	struct gt_arena_control *control = handle->target->data;
	return handle->file->argument ? &control->display_graph : &control->function_trace;
}

static int open_option(struct gt_control_handle *handle, unsigned access,
		       struct gt_message *message)
{
	(void)access;
	(void)message;
	handle->text_bytes =
		gt_format(handle->text, sizeof(handle->text), "%d\n", *option_of(handle));
	return 0;
}

/* The worst case so far had other lines: it is looked for anew, as irqsoff_display_graph has it. */
static int64_t write_option(struct gt_control_handle *handle, const char *bytes, size_t count,
			    struct gt_message *message)
{
	struct gt_arena_control *control = handle->target->data;
	bool *option = option_of(handle), before = *option;
	uint64_t value = 0;
	int error = gt_row_number(bytes, count, 1, &value, message);
	if (error != 0)
		return error;
	gt_arena_lock(control);
	*option = value != 0;
	if (*option != before && gt_arena_is_latency(control->tracer))
		error = gt_arena_choose_tracer(control, control->tracer, message);
	if (error != 0)
		*option = before;
	gt_arena_unlock(control);
	return error != 0 ? error : (int64_t)count;
}

static bool exists(const struct gt_control_target *target)
{
	const struct gt_arena_control *control = target->data;
	return control->has_latencies;
}

static const struct gt_control_file files[] = {
	ROW("tracing_max_latency", "the longest latency, in microseconds; 0 looks for it anew",
	    GT_CONTROL_KERNEL, .exists = exists, .open = open_max, .read = gt_row_read_text,
	    .write = write_max),
	ROW("options/function-trace", "latency tracers: the functions that are called meanwhile",
	    GT_CONTROL_KERNEL, .argument = 0, .exists = exists, .open = open_option,
	    .read = gt_row_read_text, .write = write_option),
	ROW("options/display-graph", "latency tracers: the functions as a call graph",
	    GT_CONTROL_KERNEL, .argument = 1, .exists = exists, .open = open_option,
	    .read = gt_row_read_text, .write = write_option),
};

const struct gt_control_group gt_arena_latency_files = { files, COUNT(files) };
