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
#include "linux/dat_records.h"
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
	if (input->handles[0] == NULL)
		return gt_fail(message, GT_EFORMAT,
			       "'%s': trace-cmd's library cannot read it: cut off, damaged, of a "
			       "newer version, or a text of a latency tracer",
			       path);
	input->count = 1;
	int instances = tracecmd_buffer_instances(input->handles[0]);
	for (int i = 0; i < instances && input->count < INSTANCES_MAX; i++) {
		struct tracecmd_input *handle =
			tracecmd_buffer_instance_handle(input->handles[0], i);
		if (handle != NULL)
			input->handles[input->count++] = handle;
	}
	return 0;
}

static void close_input(struct input *input)
{
	while (input->count > 0)
		tracecmd_close(input->handles[--input->count]);
}

/* Reads until a call; 0 with *tracer, or GT_ENOMEM, GT_EAGAIN. */
static int find_tracer(struct input *input, bool by_library, enum graftrace_tracer *tracer)
{
	struct tep_handle *tep = tracecmd_get_tep(input->handles[0]);
	struct gt_dat_records *source;
	struct tep_record *record;
	int error = gt_dat_records_create(input->handles, input->count, by_library, &source);

	*tracer = GRAFTRACE_TRACER_NOP;
	if (error != 0)
		return error;
	while (*tracer == GRAFTRACE_TRACER_NOP &&
	       (error = gt_dat_records_next(source, &record)) > 0) {
		enum gt_linux_kind kind = gt_linux_kind_of(tep, record);
		if (kind == GT_LINUX_CALL)
			*tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
		else if (kind == GT_LINUX_FUNCTION)
			*tracer = GRAFTRACE_TRACER_FUNCTION;
	}
	gt_dat_records_destroy(source);
	return error < 0 ? error : 0;
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
	for (uint32_t i = 0; record != NULL && i < CLOCK_RECORDS; i++) {
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

static int take_all(struct input *input, bool by_library, struct gt_linux_records *records)
{
	struct gt_dat_records *source;
	struct tep_record *record;
	int error = gt_dat_records_create(input->handles, input->count, by_library, &source);

	if (error != 0)
		return error;
	while ((error = gt_dat_records_next(source, &record)) > 0) {
		error = gt_linux_records_take(records, record);
		if (error != 0)
			break;
	}
	gt_dat_records_destroy(source);
	return error;
}

static int convert_records(struct input *input, bool by_library, enum graftrace_tracer tracer,
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

	if (error != 0)
		return error;
	error = take_all(input, by_library, records);
	if (error == 0)
		error = gt_linux_records_finish(records, &totals);
	gt_linux_records_destroy(records);
	if (error != 0)
		return gt_fail(message, error, "%s", gt_file_writer_error(writer));
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

static int convert_by(const char *path, const char *to, bool by_library,
		      struct gt_linux_notes *notes, struct gt_message *message)
{
	struct gt_file_writer *writer = NULL;
	struct input input = { .count = 0 };
	enum graftrace_tracer tracer;
	int error = open_input(path, &input, message);

	if (error != 0)
		return error;
	error = find_tracer(&input, by_library, &tracer);
	if (error != 0) {
		close_input(&input);
		return error;
	}
	int cpus = tep_get_cpus(tracecmd_get_tep(input.handles[0]));
	struct gt_clock clock = clock_of(&input);
	/* libtracecmd cannot go back to the beginning */
	close_input(&input);
	error = open_input(path, &input, message);
	if (error != 0)
		return error;
	struct gt_recording_info about = { .made_by = "trace-cmd" };
	struct gt_file_writer_options options = {
		.size = sizeof(options),
		.path = to,
		.compress = true,
		.clock = clock,
		.tracer = tracer,
		.cpu_count = cpus > 0 ? (uint32_t)cpus : 0,
		.sub_buffer_bytes = SUB_BUFFER_BYTES,
		.like = &about,
	};
	error = gt_file_writer_create(&options, &writer, message);
	if (error == 0) {
		gt_file_writer_set_pressure(writer, 50);
		error = convert_records(&input, by_library, tracer, &clock, writer, notes, message);
	}
	gt_file_writer_destroy(writer);
	close_input(&input);
	return error;
}

static int convert(const char *path, const char *to, struct gt_linux_notes *notes,
		   struct gt_message *message)
{
	int error;

	tracecmd_set_loglevel(TEP_LOG_NONE);
	error = convert_by(path, to, false, notes, message);
	if (error != GT_EAGAIN)
		return error;
	unlink(to);
	return convert_by(path, to, true, notes, message);
}

int gt_trace_dat_open(const char *path, struct gt_recording **recording,
		      struct gt_linux_notes *notes, struct gt_message *message)
{
	return gt_linux_convert(path, convert, recording, notes, message);
}
