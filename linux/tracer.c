/* SPDX-License-Identifier: MIT */
/*
 * The kernel's tracers by libtracefs. The instance's name has our process's number, so that the next
 * graftrace sees whether its owner lives. The top has no name: what is changed there is written to a
 * file first, which the next graftrace puts back if we were killed.
 */
#define _GNU_SOURCE
#include "linux/tracer.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tracefs.h>

#include "core/trace/message.h"

#define INSTANCE       "graftrace-"
#define TOP_STATE      "/run/graftrace-kernel-top"
#define BUFFER_KB      16384u /* of a CPU */
#define PAGE_BYTES_MAX 65536u /* of the ring */
#define TAKE_BYTES     (1u << 20)
#define CPUS_MAX       4096
#define TOP_FILES      16

/* What is changed at the top, in the order in which it is put back. */
static const char *const top_files[TOP_FILES] = {
	"current_tracer",	 "set_event",
	"set_ftrace_filter",	 "set_ftrace_notrace",
	"set_graph_function",	 "set_graph_notrace",
	"max_graph_depth",	 "tracing_thresh",
	"set_ftrace_pid",	 "set_ftrace_notrace_pid",
	"set_event_pid",	 "set_event_notrace_pid",
	"options/function-fork", "options/event-fork",
	"trace_clock",		 "tracing_on",
};

struct gt_kernel_tracer {
	struct tracefs_instance *instance; /* NULL: the top */
	bool is_top;			   /* there is something to be put back */
	bool has_functions;
	bool whole_system;
	bool has_pids;
	int *pipes; /* trace_pipe_raw of each CPU, -1: it has none */
	int cpu_count;
	size_t page_bytes;
	uint8_t *pages; /* TAKE_BYTES */
};

/* ---- small files ---- */

static int put(struct gt_kernel_tracer *tracer, const char *file, const char *text)
{
	return tracefs_instance_file_write(tracer->instance, file, text) < 0 ? -errno : 0;
}

/* Without its last newline; NULL: it is empty, or cannot be read. */
static char *get(struct tracefs_instance *instance, const char *file)
{
	int size;
	char *text = tracefs_instance_file_read(instance, file, &size);

	if (text && size > 0 && text[size - 1] == '\n')
		text[size - 1] = '\0';
	return text;
}

static bool owner_lives(const char *digits)
{
	long pid = strtol(digits, NULL, 10);

	return pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/* ---- the top, put back ---- */

/* Files that list many words read otherwise than they are written. */
static const char *written(const char *file, const char *text)
{
	if (strcmp(file, "trace_clock") == 0 || text[0] == '#' || strncmp(text, "no pid", 6) == 0)
		return "";
	return text;
}

static void put_back(const char *file, const char *text)
{
	if (strncmp(file, "set_", 4) == 0)
		tracefs_instance_file_clear(NULL, file);
	if (*written(file, text))
		tracefs_instance_file_write(NULL, file, text);
}

/* The clock that is in brackets. */
static void put_clock_back(const char *text)
{
	const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
	char clock[32];

	if (!close || (size_t)(close - open) > sizeof(clock))
		return;
	snprintf(clock, sizeof(clock), "%.*s", (int)(close - open - 1), open + 1);
	tracefs_instance_file_write(NULL, "trace_clock", clock);
}

/* The state file: the owner's number, then for each file its name, a tab and its text, with \n as
 * \1. */
static void restore_top(FILE *state)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, state) > 0) {
		char *text = strchr(line, '\t');
		bool known = false;

		line[strcspn(line, "\n")] = '\0';
		if (!text)
			continue;
		*text++ = '\0';
		for (int i = 0; i < TOP_FILES; i++)
			known |= strcmp(line, top_files[i]) == 0;
		for (char *at = text; *at; at++)
			*at = *at == '\1' ? '\n' : *at;
		if (known && strcmp(line, "trace_clock") == 0)
			put_clock_back(text);
		else if (known)
			put_back(line, text);
	}
	free(line);
}

static FILE *open_state(void)
{
	int fd = open(TOP_STATE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat status;

	if (fd >= 0 && (fstat(fd, &status) != 0 || status.st_uid != geteuid())) {
		close(fd);
		fd = -1;
	}
	return fd >= 0 ? fdopen(fd, "r") : NULL;
}

static bool save_top(void)
{
	int fd = open(TOP_STATE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *state = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (!state)
		return false;
	fprintf(state, "%d\n", (int)getpid());
	for (int i = 0; i < TOP_FILES; i++) {
		char *text = get(NULL, top_files[i]);
		for (char *at = text; at && *at; at++)
			*at = *at == '\n' ? '\1' : *at;
		fprintf(state, "%s\t%s\n", top_files[i], text ? text : "");
		free(text);
	}
	return fclose(state) == 0;
}

static void put_top_back(void)
{
	FILE *state = open_state();

	if (!state)
		return;
	restore_top(state);
	fclose(state);
	unlink(TOP_STATE);
	tracefs_instance_file_clear(NULL, "trace");
}

/* ---- what others left ---- */

static void remove_instance(const char *name)
{
	struct tracefs_instance *instance = tracefs_instance_create(name);

	if (!instance)
		return;
	tracefs_instance_file_write(instance, "tracing_on", "0");
	tracefs_instance_file_write(instance, "events/enable", "0");
	tracefs_instance_file_write(instance, "current_tracer", "nop");
	tracefs_instance_destroy(instance);
	tracefs_instance_free(instance);
}

static int remove_orphan(const char *name, void *data)
{
	(void)data;
	if (strncmp(name, INSTANCE, strlen(INSTANCE)) == 0 && !owner_lives(name + strlen(INSTANCE)))
		remove_instance(name);
	return 0;
}

static void clean_up(void)
{
	FILE *state = open_state();
	char owner[32] = "";

	tracefs_instances_walk(remove_orphan, NULL);
	if (!state)
		return;
	bool orphan = fgets(owner, sizeof(owner), state) && !owner_lives(owner);
	fclose(state);
	if (orphan)
		put_top_back();
}

/* ---- setting up ---- */

static int find_tracefs(struct gt_message *message)
{
	const char *directory;

	errno = 0;
	directory = tracefs_tracing_dir();
	if (!directory || access(directory, F_OK) != 0) {
		gt_message_set(
			message,
			"the kernel cannot be recorded: there is no tracefs here%s%s; 'mount "
			"-t tracefs tracefs /sys/kernel/tracing' makes it",
			errno ? ": " : "", errno ? strerror(errno) : "");
		return errno == EPERM || errno == EACCES ? GT_EPERM : GT_ENOENT;
	}
	char *file = tracefs_get_tracing_file("instances");
	bool permitted = file && access(file, W_OK | X_OK) == 0;
	int number = errno;
	tracefs_put_tracing_file(file);
	if (permitted)
		return GT_OK;
	gt_message_set(message, "the kernel cannot be recorded: %s/instances: %s; root may",
		       directory, strerror(number));
	return GT_EPERM;
}

static int make_instance(struct gt_kernel_tracer *tracer, struct gt_message *message)
{
	char name[48];

	snprintf(name, sizeof(name), INSTANCE "%d", (int)getpid());
	tracer->instance = tracefs_instance_create(name);
	if (!tracer->instance) {
		gt_message_set(message, "the kernel cannot be recorded: no instance of tracefs: %s",
			       strerror(errno));
		return errno == EPERM || errno == EACCES ? GT_EPERM : GT_EIO;
	}
	tracefs_trace_off(tracer->instance);
	return GT_OK;
}

static void drop_instance(struct gt_kernel_tracer *tracer)
{
	if (!tracer->instance)
		return;
	remove_instance(tracefs_instance_get_name(tracer->instance));
	tracefs_instance_free(tracer->instance);
	tracer->instance = NULL;
}

/* function_graph, on kernels that have it at the top only. */
static int take_top(struct gt_kernel_tracer *tracer, struct gt_message *message)
{
	char *current = get(NULL, "current_tracer");
	char *events = get(NULL, "set_event");
	bool is_free = current && strcmp(current, "nop") == 0 && (!events || !*events);

	free(current);
	free(events);
	if (!is_free) {
		gt_message_set(message,
			       "this kernel has function_graph at the top of tracefs only, "
			       "and somebody uses that");
		return GT_EBUSY;
	}
	if (!save_top()) {
		gt_message_set(
			message, "cannot write what is to be put back to '" TOP_STATE "': %s",
			errno == EEXIST ? "another graftrace records the kernel" : strerror(errno));
		return errno == EEXIST ? GT_EBUSY : GT_EIO;
	}
	drop_instance(tracer);
	tracer->is_top = true;
	tracefs_trace_off(NULL);
	for (int i = 0; i < TOP_FILES; i++)
		if (strncmp(top_files[i], "set_", 4) == 0)
			tracefs_instance_file_clear(NULL, top_files[i]);
	return GT_OK;
}

/* GT_ENODEV: the instance has no such file, but the top may. */
static int apply(struct gt_kernel_tracer *tracer, const struct gt_kernel_setting *setting,
		 struct gt_message *message)
{
	bool is_list = strncmp(setting->file, "set_", 4) == 0;

	if (!tracefs_file_exists(tracer->instance, setting->file)) {
		gt_message_set(message, "this kernel has no %s", setting->file);
		return tracer->is_top ? GT_ENOTSUP : GT_ENODEV;
	}
	/* a word that no blank ends is looked at when the file is closed, and nobody hears */
	char word[512];
	snprintf(word, sizeof(word), "%.500s%s", setting->value, is_list ? " " : "");
	if ((is_list ? tracefs_instance_file_append(tracer->instance, setting->file, word)
		     : tracefs_instance_file_write(tracer->instance, setting->file, word)) >= 0)
		return GT_OK;
	gt_message_set(message, "%s of the kernel does not take '%s': %s", setting->file,
		       setting->value,
		       errno == EINVAL && is_list ? "no function is called so" : strerror(errno));
	return GT_EINVAL;
}

static int apply_all(struct gt_kernel_tracer *tracer, const struct gt_kernel_options *options,
		     struct gt_message *message)
{
	for (size_t i = 0; i < options->setting_count; i++) {
		int error = apply(tracer, &options->settings[i], message);
		if (error == GT_ENODEV) {
			error = take_top(tracer, message);
			return error == GT_OK ? apply_all(tracer, options, message) : error;
		}
		if (error != GT_OK)
			return error;
	}
	return GT_OK;
}

/* The settings first: a kernel prepares each function that is not left out. */
static int set_tracer(struct gt_kernel_tracer *tracer, const char *name,
		      const struct gt_kernel_options *options, struct gt_message *message)
{
	int set = apply_all(tracer, options, message);
	if (set != GT_OK)
		return set;
	int error = put(tracer, "current_tracer", name);

	if (error == -EINVAL && tracefs_tracer_available(tracefs_tracing_dir(), name) &&
	    !tracer->is_top) {
		set = take_top(tracer, message);
		if (set == GT_OK)
			set = apply_all(tracer, options, message);
		if (set != GT_OK)
			return set;
		error = put(tracer, "current_tracer", name);
	}
	if (error == 0)
		return GT_OK;
	gt_message_set(message, "this kernel %s the tracer %s%s%s",
		       error == -EINVAL ? "does not have" : "refuses", name,
		       error == -EINVAL ? "" : ": ", error == -EINVAL ? "" : strerror(-error));
	return GT_ENOTSUP;
}

/* The tracer that was asked for, or the best that there is. */
static int choose_tracer(struct gt_kernel_tracer *tracer, const struct gt_kernel_options *options,
			 struct gt_message *notes, struct gt_message *message)
{
	const enum gt_kernel_what what = options->what;
	int error = GT_ENOTSUP;

	if (what == GT_KERNEL_EVENTS)
		return GT_OK;
	if (what != GT_KERNEL_FUNCTIONS)
		error = set_tracer(tracer, "function_graph", options, message);
	if (error == GT_EINVAL)
		return error;
	if (error != GT_OK && what != GT_KERNEL_GRAPH) {
		struct gt_message first = *message;
		error = set_tracer(tracer, "function", options, message);
		if (error == GT_OK && what == GT_KERNEL_BEST)
			gt_message_set(notes, "%s: only entries of functions are recorded",
				       first.text);
	}
	tracer->has_functions = error == GT_OK;
	if (error != GT_OK && what == GT_KERNEL_BEST) {
		gt_message_set(notes, "%s: only events are recorded", message->text);
		error = GT_OK;
	}
	return error;
}

static int enable(struct gt_kernel_tracer *tracer, const char *word)
{
	const char *colon = strchr(word, ':');
	char system[128];

	if (!colon) {
		/* a system's name, or an event's */
		if (tracefs_event_enable(tracer->instance, word, NULL) == 0)
			return GT_OK;
		return tracefs_event_enable(tracer->instance, NULL, word) == 0 ? GT_OK : GT_EINVAL;
	}
	snprintf(system, sizeof(system), "%.*s", (int)(colon - word), word);
	return tracefs_event_enable(tracer->instance, *system ? system : NULL,
				    colon[1] ? colon + 1 : NULL) == 0
		       ? GT_OK
		       : GT_EINVAL;
}

static int enable_events(struct gt_kernel_tracer *tracer, const char *const *events,
			 struct gt_message *message)
{
	/* what tells why a task was off the CPU; a kernel may lack any of them */
	enable(tracer, "sched:sched_switch");
	enable(tracer, "sched:sched_waking");
	if ((!events || !*events) && !tracer->has_functions && enable(tracer, "syscalls") != GT_OK)
		enable(tracer, "raw_syscalls");
	for (; events && *events; events++) {
		if (enable(tracer, *events) == GT_OK)
			continue;
		gt_message_set(message,
			       "this kernel has no event '%s' (available_events lists them)",
			       *events);
		return GT_EINVAL;
	}
	return GT_OK;
}

static int set_clock(struct gt_kernel_tracer *tracer, struct gt_message *message)
{
	if (put(tracer, "trace_clock", "x86-tsc") == 0 || put(tracer, "trace_clock", "mono") == 0)
		return GT_OK;
	gt_message_set(message, "the kernel's clocks cannot be set: %s", strerror(errno));
	return GT_EIO;
}

/* Adds the threads of a process to a list of numbers. */
static void add_threads(struct gt_kernel_tracer *tracer, const char *file, int32_t pid)
{
	char path[64], number[32];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *directory = opendir(path);
	struct dirent *entry;

	while (directory && (entry = readdir(directory)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(number, sizeof(number), "%.20s ", entry->d_name);
		tracefs_instance_file_append(tracer->instance, file, number);
	}
	if (directory)
		closedir(directory);
}

static void set_pids(struct gt_kernel_tracer *tracer, const struct gt_kernel_options *options)
{
	int32_t us = getpid();
	const int32_t *pids = options->pid_count ? options->pids : &us;
	size_t count = options->pid_count ? options->pid_count : 1;

	if (options->whole_system)
		return;
	tracer->has_pids = true;
	put(tracer, "options/event-fork", "1");
	tracefs_instance_file_clear(tracer->instance, "set_event_pid");
	if (tracer->has_functions) {
		put(tracer, "options/function-fork", "1");
		tracefs_instance_file_clear(tracer->instance, "set_ftrace_pid");
	}
	for (size_t i = 0; i < count; i++) {
		add_threads(tracer, "set_event_pid", pids[i]);
		if (tracer->has_functions)
			add_threads(tracer, "set_ftrace_pid", pids[i]);
	}
}

static int open_pipes(struct gt_kernel_tracer *tracer, struct gt_message *message)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	char file[64];
	int opened = 0;

	tracer->cpu_count = cpus < 1 ? 1 : cpus > CPUS_MAX ? CPUS_MAX : (int)cpus;
	tracer->pipes = malloc((size_t)tracer->cpu_count * sizeof(int));
	tracer->pages = malloc(TAKE_BYTES);
	if (!tracer->pipes || !tracer->pages) {
		tracer->cpu_count = 0;
		return GT_ENOMEM;
	}
	long page = sysconf(_SC_PAGESIZE);
	tracer->page_bytes = page > 0 && page <= PAGE_BYTES_MAX ? (size_t)page : 4096;
	for (int cpu = 0; cpu < tracer->cpu_count; cpu++) {
		snprintf(file, sizeof(file), "per_cpu/cpu%d/trace_pipe_raw", cpu);
		tracer->pipes[cpu] = tracefs_instance_file_open(tracer->instance, file,
								O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		opened += tracer->pipes[cpu] >= 0;
	}
	if (opened)
		return GT_OK;
	gt_message_set(message, "the kernel's ring cannot be read: %s", strerror(errno));
	return GT_EIO;
}

int gt_kernel_tracer_create(const struct gt_kernel_options *options, struct gt_kernel_tracer **out,
			    struct gt_message *notes, struct gt_message *message)
{
	struct gt_kernel_tracer *tracer = calloc(1, sizeof(*tracer));
	int error = tracer ? find_tracefs(message) : GT_ENOMEM;

	*out = NULL;
	notes->text[0] = '\0';
	if (error == GT_OK) {
		clean_up();
		error = make_instance(tracer, message);
	}
	if (error == GT_OK)
		error = choose_tracer(tracer, options, notes, message);
	if (error == GT_OK)
		error = set_clock(tracer, message);
	if (error == GT_OK)
		error = enable_events(tracer, options->events, message);
	if (error == GT_OK) {
		tracefs_instance_set_buffer_size(tracer->instance, BUFFER_KB, -1);
		tracefs_instance_file_clear(tracer->instance, "trace");
		tracer->whole_system = options->whole_system;
		set_pids(tracer, options);
		error = open_pipes(tracer, message);
	}
	if (error != GT_OK) {
		gt_kernel_tracer_destroy(tracer);
		return error;
	}
	*out = tracer;
	return GT_OK;
}

int gt_kernel_tracer_start(struct gt_kernel_tracer *tracer, struct gt_message *message)
{
	if (tracefs_trace_on(tracer->instance) == 0)
		return GT_OK;
	gt_message_set(message, "the kernel's tracer cannot be switched on: %s", strerror(errno));
	return GT_EIO;
}

void gt_kernel_tracer_leave_us(struct gt_kernel_tracer *tracer)
{
	/* The lists of those that are meant stay: while one is replaced, all tasks are. */
	if (!tracer->has_pids)
		return;
	add_threads(tracer, "set_event_notrace_pid", getpid());
	if (tracer->has_functions)
		add_threads(tracer, "set_ftrace_notrace_pid", getpid());
}

/* ---- taking ---- */

static int take_cpu(struct gt_kernel_tracer *tracer, int cpu, struct gt_file_writer *writer)
{
	size_t held = 0;
	int error = GT_OK;

	while (tracer->pipes[cpu] >= 0 && error == GT_OK) {
		if (held + tracer->page_bytes > TAKE_BYTES) {
			error = gt_file_writer_kernel(writer, (uint32_t)cpu, NULL, tracer->pages,
						      held);
			held = 0;
		}
		ssize_t got = read(tracer->pipes[cpu], tracer->pages + held, tracer->page_bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		memset(tracer->pages + held + got, 0, tracer->page_bytes - (size_t)got);
		held += tracer->page_bytes;
	}
	if (error == GT_OK && held)
		error = gt_file_writer_kernel(writer, (uint32_t)cpu, NULL, tracer->pages, held);
	return error;
}

int gt_kernel_tracer_take(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer)
{
	int error = GT_OK;

	for (int cpu = 0; cpu < tracer->cpu_count && error == GT_OK; cpu++)
		error = take_cpu(tracer, cpu, writer);
	return error;
}

/* ---- what is needed to read it ---- */

static int keep_file(struct tracefs_instance *instance, const char *file,
		     struct gt_file_writer *writer)
{
	int size = 0;
	char *text = tracefs_instance_file_read(instance, file, &size);
	int error = GT_OK;

	if (text && size > 0)
		error = gt_file_writer_kernel(writer, 0, file, text, (size_t)size);
	free(text);
	return error;
}

static int keep_format(const char *system, const char *event, struct gt_file_writer *writer)
{
	char file[512];

	snprintf(file, sizeof(file), "events/%s/%s/format", system, event);
	return keep_file(NULL, file, writer);
}

/* Those of the events that are on, and of ftrace's own. */
static int keep_formats(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer)
{
	char *on = get(tracer->instance, "set_event"), *rest = NULL;
	char **own = tracefs_system_events(NULL, "ftrace");
	int error = keep_file(NULL, "events/header_page", writer);

	for (char **event = own; event && *event && error == GT_OK; event++)
		error = keep_format("ftrace", *event, writer);
	for (char *line = on ? strtok_r(on, "\n", &rest) : NULL; line && error == GT_OK;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = '\0';
		error = keep_format(line, colon + 1, writer);
	}
	tracefs_list_free(own);
	free(on);
	return error;
}

/* Symbols of code. Without addresses (kptr_restrict) they are of no use. */
static int keep_symbols(struct gt_file_writer *writer)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char *text = NULL, *line = NULL;
	size_t count = 0, room = 0, line_room = 0;
	ssize_t bytes;
	int error = GT_OK;

	while (file && error == GT_OK && (bytes = getline(&line, &line_room, file)) > 0) {
		const char *type = strchr(line, ' ');
		if (!type || !strchr("tTwW", type[1]) || strtoull(line, NULL, 16) == 0)
			continue;
		if (count + (size_t)bytes > room) {
			room = (count + (size_t)bytes) * 2 + 65536;
			char *bigger = realloc(text, room);
			if (!bigger) {
				error = GT_ENOMEM;
				break;
			}
			text = bigger;
		}
		memcpy(text + count, line, (size_t)bytes);
		count += (size_t)bytes;
	}
	if (error == GT_OK && count)
		error = gt_file_writer_kernel(writer, 0, "kallsyms", text, count);
	if (file)
		fclose(file);
	free(line);
	free(text);
	return error;
}

static int keep_losses(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer,
		       uint64_t *lost)
{
	char file[64];
	int error = GT_OK;

	*lost = 0;
	for (int cpu = 0; cpu < tracer->cpu_count && error == GT_OK; cpu++) {
		snprintf(file, sizeof(file), "per_cpu/cpu%d/stats", cpu);
		char *text = get(tracer->instance, file);
		const char *overrun = text ? strstr(text, "\noverrun: ") : NULL;
		const char *dropped = text ? strstr(text, "dropped events: ") : NULL;
		if (overrun)
			*lost += strtoull(overrun + strlen("\noverrun: "), NULL, 10);
		if (dropped)
			*lost += strtoull(dropped + strlen("dropped events: "), NULL, 10);
		if (text)
			error = gt_file_writer_kernel(writer, (uint32_t)cpu, file, text,
						      strlen(text));
		free(text);
	}
	return error;
}

/* Our own threads, which readers leave out. */
static int keep_us(struct gt_file_writer *writer)
{
	char text[4096] = "";
	size_t used = 0;
	DIR *directory = opendir("/proc/self/task");
	struct dirent *entry;

	while (directory && (entry = readdir(directory)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]) && used + 24 < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%.20s ",
						 entry->d_name);
	if (directory)
		closedir(directory);
	return gt_file_writer_kernel(writer, 0, "recorder", text, used);
}

int gt_kernel_tracer_finish(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer,
			    uint64_t *lost)
{
	int error;

	tracefs_trace_off(tracer->instance);
	error = gt_kernel_tracer_take(tracer, writer);
	if (error == GT_OK)
		error = keep_losses(tracer, writer, lost);
	if (error == GT_OK)
		error = keep_formats(tracer, writer);
	if (error == GT_OK)
		error = keep_file(NULL, "saved_cmdlines", writer);
	if (error == GT_OK)
		error = keep_file(tracer->instance, "trace_clock", writer);
	if (error == GT_OK && !tracer->whole_system)
		error = keep_us(writer);
	if (error == GT_OK && tracer->has_functions)
		error = keep_symbols(writer);
	return error;
}

void gt_kernel_tracer_destroy(struct gt_kernel_tracer *tracer)
{
	if (!tracer)
		return;
	for (int cpu = 0; cpu < tracer->cpu_count; cpu++)
		if (tracer->pipes[cpu] >= 0)
			close(tracer->pipes[cpu]);
	drop_instance(tracer);
	if (tracer->is_top)
		put_top_back();
	free(tracer->pipes);
	free(tracer->pages);
	free(tracer);
}
