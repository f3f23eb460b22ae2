/* SPDX-License-Identifier: MIT */
/*
 * The file is read in a child, which answers through a pipe. The recording's file has a name as
 * long as the child writes it, in a directory that nobody else can enter.
 */
#define _GNU_SOURCE
#include "linux/trace_dat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <trace-cmd.h>

#include "core/trace/message.h"
#include "linux/records.h"
#include "read/writer.h"

#define MAGIC		 "\x17\x08\x44tracing"
#define MAGIC_BYTES	 10
#define MEMORY_MAX	 (4ull << 30) /* of the child: a hostile file may ask for any number of bytes */
#define SUB_BUFFER_BYTES (64u << 10)
#define SLACK_NS	 1000000u /* between a call's own clock and that of its record */
#define INSTANCES_MAX	 64
#define CLOCK_RECORDS	 100000u
#define CLOCK_SHIFT	 30

/* What the child tells. */
struct answer {
	int error;
	struct gt_message message;
	struct gt_trace_dat_notes notes;
};

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

/* ---- the child ---- */

/* The top buffer and those of instances, which trace-cmd keeps in one file. */
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

/* What kind of text the file is best shown as: its first call says it. */
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

/*
 * The records' clock, from the first returns: each has the end of its call in nanoseconds. trace-cmd
 * keeps x86-tsc's ticks as they are where it does not know how long one is; others are nanoseconds.
 */
static struct gt_clock clock_of(struct input *input)
{
	struct tep_handle *tep = tracecmd_get_tep(input->handles[0]);
	struct tep_record *record = tracecmd_read_cpu_first(input->handles[0], 0);
	uint64_t first = 0, first_end = 0, last = 0, last_end = 0;

	for (uint32_t i = 0; record && i < CLOCK_RECORDS; i++) {
		uint64_t end = gt_linux_end_of(tep, record);
		if (end && !first_end) {
			first = record->ts;
			first_end = end;
		} else if (end > first_end && record->ts > first) {
			last = record->ts;
			last_end = end;
		}
		tracecmd_free_record(record);
		record = tracecmd_read_data(input->handles[0], 0);
	}
	tracecmd_free_record(record);
	double ns = last > first ? (double)(last_end - first_end) / (double)(last - first) : 1;
	if (ns < 0.01 || ns > 0.99)
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
			   struct gt_trace_dat_notes *notes, struct gt_message *message)
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
	*notes = (struct gt_trace_dat_notes){
		.lost = totals.tasks.lost,
		.unknown_losses = totals.unknown_losses,
		.damaged = totals.tasks.damaged,
		.unknown = totals.unknown,
	};
	return gt_file_writer_finish(writer, &end, message);
}

static int convert(const char *path, const char *to, struct gt_trace_dat_notes *notes,
		   struct gt_message *message)
{
	struct gt_file_writer *writer = NULL;
	struct input input = { .count = 0 };
	int error = open_input(path, &input, message);

	if (error != GT_OK)
		return error;
	enum graftrace_tracer tracer = tracer_of(&input);
	int cpus = tep_get_cpus(tracecmd_get_tep(input.handles[0]));
	struct gt_clock clock = clock_of(&input);
	/* libtracecmd does not go back to the beginning */
	close_input(&input);
	error = open_input(path, &input, message);
	if (error != GT_OK)
		return error;
	struct gt_file_writer_options options = {
		.size = sizeof(options),
		.path = to,
		.clock = clock,
		.tracer = tracer,
		.cpu_count = cpus > 0 ? (uint32_t)cpus : 0,
		.sub_buffer_bytes = SUB_BUFFER_BYTES,
		.foreign = "trace-cmd",
	};
	error = gt_file_writer_create(&options, &writer, message);
	if (error == GT_OK)
		error = convert_records(&input, tracer, &clock, writer, notes, message);
	gt_file_writer_destroy(writer);
	close_input(&input);
	return error;
}

/* Nothing that the library says goes to the user's terminal, and no file can make it eat the
 * machine. */
static void confine(void)
{
	struct rlimit memory = { MEMORY_MAX, MEMORY_MAX }, none = { 0, 0 };
	int null = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null >= 0) {
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	setrlimit(RLIMIT_AS, &memory);
	setrlimit(RLIMIT_CORE, &none);
	tracecmd_set_loglevel(TEP_LOG_NONE);
	tep_set_loglevel(TEP_LOG_NONE);
}

static void run_child(const char *path, const char *to, int pipe)
{
	struct answer answer = { .error = GT_OK };

	confine();
	answer.error = convert(path, to, &answer.notes, &answer.message);
	_exit(write(pipe, &answer, sizeof(answer)) == (ssize_t)sizeof(answer) ? 0 : 1);
}

/* ---- the parent ---- */

static void read_answer(int from, struct answer *answer)
{
	size_t done = 0;

	while (done < sizeof(*answer)) {
		ssize_t got = read(from, (char *)answer + done, sizeof(*answer) - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	if (done < sizeof(*answer)) {
		*answer = (struct answer){ .error = GT_EFORMAT };
		gt_message_set(&answer->message,
			       "trace-cmd's library died of it: the file is damaged");
	}
	answer->message.text[sizeof(answer->message.text) - 1] = '\0';
}

static int run(const char *path, const char *to, struct answer *answer)
{
	int ends[2], status;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return GT_EIO;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		run_child(path, to, ends[1]);
	close(ends[1]);
	if (pid > 0) {
		read_answer(ends[0], answer);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	return pid < 0 ? GT_EIO : GT_OK;
}

int gt_trace_dat_open(const char *path, struct gt_recording **recording,
		      struct gt_trace_dat_notes *notes, struct gt_message *message)
{
	const char *below = getenv("TMPDIR");
	struct answer answer = { .error = GT_EIO };
	char *directory, *to = NULL;
	int error = GT_ENOMEM;

	if (asprintf(&directory, "%s/graftrace-XXXXXX", below && *below ? below : "/tmp") < 0)
		return GT_ENOMEM;
	if (!mkdtemp(directory)) {
		gt_message_set(message, "cannot make a directory below '%s': %s",
			       below && *below ? below : "/tmp", strerror(errno));
		free(directory);
		return GT_EIO;
	}
	if (asprintf(&to, "%s/recording", directory) < 0)
		goto remove;
	error = run(path, to, &answer);
	if (error != GT_OK) {
		gt_message_set(message, "cannot start a process: %s", strerror(errno));
	} else if (answer.error != GT_OK) {
		error = answer.error;
		*message = answer.message;
		if (error == GT_ENOMEM)
			gt_message_set(message, "out of memory");
		if (strstr(message->text, path) == NULL)
			gt_message_prefix(message, "'%s': ", path);
	} else {
		error = gt_recording_open(to, recording, message);
		*notes = answer.notes;
	}
	unlink(to);
	free(to);
remove:
	rmdir(directory);
	free(directory);
	return error;
}
