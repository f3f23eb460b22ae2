/* SPDX-License-Identifier: MIT */
/*
 * trace-cmd's files, by libtracecmd.
 */
#define _GNU_SOURCE
#include "linux/trace_dat.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <trace-cmd.h>

#include "core/trace/message.h"
#include "linux/convert.h"
#include "linux/records.h"
#include "read/writer.h"

#define MAGIC		 "\x17\x08\x44tracing"
#define MAGIC_BYTES	 10
#define SUB_BUFFER_BYTES (64u << 10)
#define SLACK_NS	 1000000u /* between a call's own clock and that of its record */
#define INSTANCES_MAX	 64
#define CLOCK_RECORDS	 100000u
#define CLOCK_SURE	 1000u
#define CLOCK_SHIFT	 30

bool gt_is_trace_dat(int fd)
{
	char magic[MAGIC_BYTES];

	return pread(fd, magic, sizeof(magic), 0) == MAGIC_BYTES &&
	       memcmp(magic, MAGIC, MAGIC_BYTES) == 0;
}

bool gt_is_trace_dat_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is_one = fd >= 0 && gt_is_trace_dat(fd);

	if (fd >= 0)
		close(fd);
	return is_one;
}

/* The top buffer and those of instances, which are in one file. */
struct input {
	struct tracecmd_input *handles[INSTANCES_MAX];
	int count;
};

static int open_input(const char *path, struct input *input, struct gt_message *message)
{
	input->handles[0] = tracecmd_open(path, TRACECMD_FL_LOAD_NO_PLUGINS);
	if (!input->handles[0]) {
		gt_message_set(message,
			       "'%s': trace-cmd's library cannot read it: cut off, damaged, of a "
			       "newer version, or a text of a latency tracer",
			       path);
		return GT_EFORMAT;
	}
	input->count = 1;
	int instances = tracecmd_buffer_instances(input->handles[0]);
	for (int i = 0; i < instances && input->count < INSTANCES_MAX; i++) {
		struct tracecmd_input *handle =
			tracecmd_buffer_instance_handle(input->handles[0], i);
		if (handle)
			input->handles[input->count++] = handle;
	}
	return GT_OK;
}

static void close_input(struct input *input)
{
	while (input->count > 0)
		tracecmd_close(input->handles[--input->count]);
}

/* The tracer in whose layout the file is shown: its first call decides. */
static enum graftrace_tracer tracer_of(struct input *input)
{
	for (int i = 0; i < input->count; i++) {
		struct tep_handle *tep = tracecmd_get_tep(input->handles[i]);
		int cpus = tep_get_cpus(tep);

		for (int cpu = 0; cpu < cpus; cpu++) {
			struct tep_record *record = tracecmd_read_cpu_first(input->handles[i], cpu);
			while (record) {
				enum gt_linux_kind kind = gt_linux_kind_of(tep, record);
				tracecmd_free_record(record);
				if (kind == GT_LINUX_CALL)
					return GRAFTRACE_TRACER_FUNCTION_GRAPH;
				if (kind == GT_LINUX_FUNCTION)
					return GRAFTRACE_TRACER_FUNCTION;
				record = tracecmd_read_data(input->handles[i], cpu);
			}
		}
	}
	return GRAFTRACE_TRACER_NOP;
}

static bool is_one(double ns)
{
	return ns > 0.99 && ns < 1.01;
}

/* Returns the records' clock, measured by the first returns: each has the end of its call in
 * nanoseconds. trace-cmd keeps x86-tsc's ticks if it does not know their length; other clocks
 * are in nanoseconds. */
static struct gt_clock clock_of(struct input *input)
{
	struct tep_handle *tep = tracecmd_get_tep(input->handles[0]);
	struct tep_record *record = tracecmd_read_cpu_first(input->handles[0], 0);
	uint64_t first = 0, first_end = 0;
	double ns = 1;

	/* a clock in nanoseconds is recognised soon; another one is measured over all of these
	 * records */
	for (uint32_t i = 0; record && i < CLOCK_RECORDS; i++) {
		uint64_t end = gt_linux_end_of(tep, record);
		if (end && !first_end) {
			first = record->ts;
			first_end = end;
		} else if (end > first_end && record->ts > first) {
			ns = (double)(end - first_end) / (double)(record->ts - first);
		}
		tracecmd_free_record(record);
		record = i > CLOCK_SURE && is_one(ns) ? NULL
						      : tracecmd_read_data(input->handles[0], 0);
	}
	tracecmd_free_record(record);
	if (ns < 0.01 || ns > 100 || is_one(ns))
		return (struct gt_clock){ .mult = 1 };
	return (struct gt_clock){ .mult = (uint64_t)(ns * (1u << CLOCK_SHIFT)),
				  .shift = CLOCK_SHIFT };
}

static int take(struct tracecmd_input *handle, struct tep_record *record, int cpu, void *data)
{
	(void)handle;
	(void)cpu;
	return gt_linux_records_take(data, record);
}

static int convert_records(struct input *input, enum graftrace_tracer tracer,
			   const struct gt_clock *clock, struct gt_file_writer *writer,
			   struct gt_linux_notes *notes, struct gt_message *message)
{
	struct gt_linux_records *records;
	struct gt_linux_totals totals = { 0 };
	struct gt_linux_options options = {
		.tep = tracecmd_get_tep(input->handles[0]),
		.sink = gt_file_writer_sink(writer),
		.tracer = tracer == GRAFTRACE_TRACER_NOP ? GRAFTRACE_TRACER_FUNCTION : tracer,
		.slack = SLACK_NS,
		.clock = *clock,
	};
	int error = gt_linux_records_create(&options, &records);

	if (error != GT_OK)
		return error;
	error = tracecmd_iterate_events_multi(input->handles, input->count, take, records);
	if (error == GT_OK)
		error = gt_linux_records_finish(records, &totals);
	gt_linux_records_destroy(records);
	if (error != GT_OK) {
		gt_message_set(message, "%s", gt_file_writer_error(writer));
		return error;
	}
	struct gt_file_writer_totals end = {
		.words = totals.tasks.words,
		.calls = totals.tasks.calls,
		.ns = gt_clock_duration_ns(clock,
					   totals.tasks.last_clock - totals.tasks.first_clock),
		.threads = totals.tasks.tasks,
	};
	*notes = (struct gt_linux_notes){
		.lost = totals.tasks.lost,
		.unknown_losses = totals.unknown_losses,
		.damaged = totals.tasks.damaged,
		.unknown = totals.unknown,
	};
	return gt_file_writer_finish(writer, &end, message);
}

static int convert(const char *path, const char *to, struct gt_linux_notes *notes,
		   struct gt_message *message)
{
	struct gt_file_writer *writer = NULL;
	struct input input = { .count = 0 };
	int error;

	tracecmd_set_loglevel(TEP_LOG_NONE);
	error = open_input(path, &input, message);
	if (error != GT_OK)
		return error;
	enum graftrace_tracer tracer = tracer_of(&input);
	int cpus = tep_get_cpus(tracecmd_get_tep(input.handles[0]));
	struct gt_clock clock = clock_of(&input);
	/* libtracecmd cannot go back to the beginning */
	close_input(&input);
	error = open_input(path, &input, message);
	if (error != GT_OK)
		return error;
	struct gt_recording_info about = { .made_by = "trace-cmd" };
	struct gt_file_writer_options options = {
		.size = sizeof(options),
		.path = to,
		.clock = clock,
		.tracer = tracer,
		.cpu_count = cpus > 0 ? (uint32_t)cpus : 0,
		.sub_buffer_bytes = SUB_BUFFER_BYTES,
		.like = &about,
	};
	error = gt_file_writer_create(&options, &writer, message);
	if (error == GT_OK)
		error = convert_records(&input, tracer, &clock, writer, notes, message);
	gt_file_writer_destroy(writer);
	close_input(&input);
	return error;
}

int gt_trace_dat_open(const char *path, struct gt_recording **recording,
		      struct gt_linux_notes *notes, struct gt_message *message)
{
	return gt_linux_convert(path, convert, recording, notes, message);
}
