/* SPDX-License-Identifier: MIT */
/*
 * Sets the kernel's tracers by libtracefs, in an instance or at the top, and takes the ring's
 * pages.
 */
#define _GNU_SOURCE
#include "linux/tracer_parts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracefs.h>

#include "core/trace/message.h"

#define BUFFER_KB      16384u /* of a CPU */
#define PAGE_BYTES_MAX 65536u /* of the ring */
#define TAKE_BYTES     (1u << 20)
#define TAKE_MAX       (2u * 1024 * BUFFER_KB) /* of a CPU at once: more than the ring holds */
#define CPUS_MAX       4096
#define COMMIT_BYTES   0x7ffffffu /* in a page's second word: the bytes in use */

static void tell(const struct gt_kernel_options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void tell(const struct gt_kernel_options *options, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (options->note != NULL)
		options->note(options->note_data, text);
}

/* ---- setting up ---- */

static int find_tracefs(struct gt_message *message)
{
	const char *directory;

	errno = 0;
	directory = tracefs_tracing_dir();
	if (directory == NULL || access(directory, F_OK) != 0) {
		gt_message_set(
			message,
			"the kernel cannot be recorded: there is no tracefs here%s%s; 'mount "
			"-t tracefs tracefs /sys/kernel/tracing' makes it",
			errno ? ": " : "", errno ? strerror(errno) : "");
		return errno == EPERM || errno == EACCES ? GT_EPERM : GT_ENOENT;
	}
	char *file = tracefs_get_tracing_file("instances");
	bool permitted = file != NULL && access(file, W_OK | X_OK) == 0;
	int number = errno;
	tracefs_put_tracing_file(file);
	if (permitted)
		return 0;
	return gt_fail(message, GT_EPERM,
		       "the kernel cannot be recorded: %s/instances: %s; root may", directory,
		       strerror(number));
}

static int make_instance(struct gt_kernel_tracer *tracer, struct gt_message *message)
{
	char name[48];

	snprintf(name, sizeof(name), GT_KERNEL_INSTANCE "%d", (int)getpid());
	tracer->instance = tracefs_instance_create(name);
	if (tracer->instance == NULL) {
		gt_message_set(message, "the kernel cannot be recorded: no instance of tracefs: %s",
			       strerror(errno));
		return errno == EPERM || errno == EACCES ? GT_EPERM : GT_EIO;
	}
	tracefs_trace_off(tracer->instance);
	return 0;
}

static void drop_instance(struct gt_kernel_tracer *tracer)
{
	if (tracer->instance == NULL)
		return;
	gt_kernel_remove_instance(tracefs_instance_get_name(tracer->instance));
	tracefs_instance_free(tracer->instance);
	tracer->instance = NULL;
}

/* Uses the top for function_graph, on kernels where instances do not have it. */
static int take_top(struct gt_kernel_tracer *tracer, struct gt_message *message)
{
	char *current = gt_kernel_get(NULL, "current_tracer");
	char *events = gt_kernel_get(NULL, "set_event");
	bool is_free =
		current != NULL && strcmp(current, "nop") == 0 && (events == NULL || !*events);

	free(current);
	free(events);
	if (!is_free)
		return gt_fail(message, GT_EBUSY,
			       "this kernel has function_graph at the top of tracefs only, "
			       "and somebody uses that");
	if (!gt_kernel_save_top()) {
		gt_message_set(
			message,
			"cannot write what is to be put back to '" GT_KERNEL_TOP_STATE "': %s",
			errno == EEXIST ? "another graftrace records the kernel" : strerror(errno));
		return errno == EEXIST ? GT_EBUSY : GT_EIO;
	}
	drop_instance(tracer);
	tracer->is_top = true;
	tracefs_trace_off(NULL);
	gt_kernel_clear_top();
	return 0;
}

/* GT_ENODEV: the instance has no such file, the top may. */
static int apply(struct gt_kernel_tracer *tracer, const struct gt_kernel_setting *setting,
		 struct gt_message *message)
{
	bool is_list = strncmp(setting->file, "set_", 4) == 0;

	if (!tracefs_file_exists(tracer->instance, setting->file)) {
		gt_message_set(message, "this kernel has no %s", setting->file);
		return tracer->is_top ? GT_ENOTSUP : GT_ENODEV;
	}
	/* a word without a blank after it is parsed when the file is closed, where errors are
	 * not returned */
	char word[512];
	snprintf(word, sizeof(word), "%.500s%s", setting->value, is_list ? " " : "");
	if ((is_list ? tracefs_instance_file_append(tracer->instance, setting->file, word)
		     : tracefs_instance_file_write(tracer->instance, setting->file, word)) >= 0)
		return 0;
	return gt_fail(message, GT_EINVAL, "%s of the kernel does not take '%s': %s", setting->file,
		       setting->value,
		       errno == EINVAL && is_list ? "no function is called so" : strerror(errno));
}

static int apply_all(struct gt_kernel_tracer *tracer, const struct gt_kernel_options *options,
		     struct gt_message *message)
{
	for (size_t i = 0; i < options->setting_count; i++) {
		int error = apply(tracer, &options->settings[i], message);
		if (error == GT_ENODEV) {
			error = take_top(tracer, message);
			return error == 0 ? apply_all(tracer, options, message) : error;
		}
		if (error != 0)
			return error;
	}
	return 0;
}

/* The settings come first: when the tracer starts, the kernel patches each function that is not
 * left out. */
static int set_tracer(struct gt_kernel_tracer *tracer, const char *name,
		      const struct gt_kernel_options *options, struct gt_message *message)
{
	int set = apply_all(tracer, options, message);
	if (set != 0)
		return set;
	int error = gt_kernel_put(tracer, "current_tracer", name);

	if (error == -EINVAL && tracefs_tracer_available(tracefs_tracing_dir(), name) &&
	    !tracer->is_top) {
		set = take_top(tracer, message);
		if (set == 0)
			set = apply_all(tracer, options, message);
		if (set != 0)
			return set;
		error = gt_kernel_put(tracer, "current_tracer", name);
	}
	if (error == 0)
		return 0;
	return gt_fail(message, GT_ENOTSUP, "this kernel %s the tracer %s%s%s",
		       error == -EINVAL ? "does not have" : "refuses", name,
		       error == -EINVAL ? "" : ": ", error == -EINVAL ? "" : strerror(-error));
}

static bool has_threshold(const struct gt_kernel_options *options)
{
	for (size_t i = 0; i < options->setting_count; i++)
		if (strcmp(options->settings[i].file, "tracing_thresh") == 0)
			return true;
	return false;
}

/* /proc/kallsyms shows zeros if addresses are hidden. */
static bool has_addresses(void)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[512];
	bool found = false;

	for (int i = 0; file != NULL && !found && i < 64 && fgets(line, sizeof(line), file) != NULL;
	     i++)
		found = strtoull(line, NULL, 16) != 0;
	if (file != NULL)
		fclose(file);
	return found;
}

/* Finds out which optional features this kernel has. */
static void look_for(struct gt_kernel_tracer *tracer)
{
	static const struct {
		const char *file, *text;
	} wanted[] = {
		{ "set_graph_function", "function_graph (functions' returns)" },
		{ "kprobe_events", "kprobes (only its own events can be recorded)" },
		{ "options/funcgraph-retval", "funcgraph-retval (no return values)" },
	};
	char text[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!tracefs_file_exists(NULL, wanted[i].file))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used ? ", " : "", wanted[i].text);
	gt_message_set(&tracer->lacks, "%s", text);
}

/* Chooses the tracer that was asked for, or the best available one. */
static int choose_tracer(struct gt_kernel_tracer *tracer, const struct gt_kernel_options *options,
			 struct gt_message *message)
{
	const enum gt_kernel_what what = options->what;
	int error = GT_ENOTSUP;

	if (what == GT_KERNEL_EVENTS)
		return 0;
	if (what != GT_KERNEL_FUNCTIONS)
		error = set_tracer(tracer, "function_graph", options, message);
	if (error == GT_EINVAL)
		return error;
	if (error != 0 && what != GT_KERNEL_GRAPH) {
		struct gt_message first = *message;
		error = set_tracer(tracer, "function", options, message);
		if (error == 0 && has_threshold(options))
			return gt_fail(message, GT_ENOTSUP,
				       "a threshold needs function_graph, and %s", first.text);
		if (error == 0 && what == GT_KERNEL_BEST)
			tell(options, "%s: only entries of functions are recorded", first.text);
	}
	tracer->has_functions = error == 0;
	if (error != 0 && what == GT_KERNEL_BEST) {
		tell(options, "%s: only events are recorded", message->text);
		error = 0;
	}
	if (tracer->is_top && error == 0)
		tell(options, "this kernel has function_graph at the top of tracefs only, which is "
			      "taken for this recording and put back after it");
	if (tracer->has_functions && !has_addresses())
		tell(options, "the kernel hides the addresses of its symbols "
			      "(/proc/sys/kernel/kptr_restrict): its functions have numbers "
			      "for names");
	return error;
}

/* Converts a glob to the regular expression that libtracefs needs; NULL: there is none. */
static const char *expression_of(const char *glob, size_t bytes, char *text, size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < bytes && used + 3 < room; i++) {
		if (glob[i] == '*' || glob[i] == '.')
			text[used++] = glob[i] == '*' ? '.' : '\\';
		text[used++] = glob[i] == '?' ? '.' : glob[i];
	}
	text[used] = '\0';
	return used ? text : NULL;
}

static int enable(struct gt_kernel_tracer *tracer, const char *word)
{
	const char *colon = strchr(word, ':');
	char system[256], event[256];
	const char *first =
		expression_of(word, colon != NULL ? (size_t)(colon - word) : strlen(word), system,
			      sizeof(system));
	const char *second =
		colon != NULL ? expression_of(colon + 1, strlen(colon + 1), event, sizeof(event))
			      : NULL;

	if (tracefs_event_enable(tracer->instance, first, second) == 0)
		return 0;
	/* a single word is a system's name, or an event's */
	return colon == NULL && tracefs_event_enable(tracer->instance, NULL, first) == 0
		       ? 0
		       : GT_EINVAL;
}

bool gt_kernel_has_event(const char *word)
{
	char file[300];
	const char *colon = strchr(word, ':');
	bool found;

	if (strcspn(word, "*?[!/") != strlen(word) || strlen(word) > 200 || !*word)
		return false;
	snprintf(file, sizeof(file), "events/%s", word);
	if (colon != NULL)
		file[strlen("events/") + (size_t)(colon - word)] = '/';
	if (tracefs_tracing_dir() == NULL)
		return false;
	found = tracefs_dir_exists(NULL, file);
	if (!found && colon == NULL) {
		char **systems = tracefs_event_systems(NULL);
		for (char **system = systems; system != NULL && *system != NULL && !found;
		     system++) {
			snprintf(file, sizeof(file), "events/%.80s/%s", *system, word);
			found = tracefs_dir_exists(NULL, file);
		}
		tracefs_list_free(systems);
	}
	return found;
}

static int enable_events(struct gt_kernel_tracer *tracer, const char *const *events,
			 struct gt_message *message)
{
	/* events that tell why a task was off the CPU; a kernel may lack some */
	enable(tracer, "sched:sched_switch");
	enable(tracer, "sched:sched_waking");
	if ((events == NULL || *events == NULL) && !tracer->has_functions &&
	    enable(tracer, "syscalls") != 0)
		enable(tracer, "raw_syscalls");
	for (; events != NULL && *events != NULL; events++) {
		if (enable(tracer, *events) == 0)
			continue;
		return gt_fail(message, GT_EINVAL,
			       "this kernel has no event '%s' (available_events lists them)",
			       *events);
	}
	return 0;
}

static int set_clock(struct gt_kernel_tracer *tracer, struct gt_message *message)
{
	tracer->is_tsc = gt_kernel_put(tracer, "trace_clock", "x86-tsc") == 0;
	if (tracer->is_tsc || gt_kernel_put(tracer, "trace_clock", "mono") == 0)
		return 0;
	return gt_fail(message, GT_EIO, "the kernel's clocks cannot be set: %s", strerror(errno));
}

/* Adds the threads of a process to a list of numbers. */
static void add_threads(struct gt_kernel_tracer *tracer, const char *file, int32_t pid)
{
	char path[64], number[32];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *directory = opendir(path);
	struct dirent *entry;

	while (directory != NULL && (entry = readdir(directory)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(number, sizeof(number), "%.20s ", entry->d_name);
		tracefs_instance_file_append(tracer->instance, file, number);
	}
	if (directory != NULL)
		closedir(directory);
}

static void set_pids(struct gt_kernel_tracer *tracer, const struct gt_kernel_options *options)
{
	int32_t us = getpid();
	const int32_t *pids = options->pid_count ? options->pids : &us;
	size_t count = options->pid_count ? options->pid_count : 1;

	if (options->whole_system) { /* except us: our reads would be recorded, then read … */
		gt_kernel_tracer_leave_us(tracer);
		return;
	}
	tracer->has_pids = true;
	gt_kernel_put(tracer, "options/event-fork", "1");
	tracefs_instance_file_clear(tracer->instance, "set_event_pid");
	if (tracer->has_functions) {
		gt_kernel_put(tracer, "options/function-fork", "1");
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
	if (tracer->pipes == NULL || tracer->pages == NULL) {
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
		return 0;
	return gt_fail(message, GT_EIO, "the kernel's ring cannot be read: %s", strerror(errno));
}

int gt_kernel_tracer_create(const struct gt_kernel_options *options, struct gt_kernel_tracer **out,
			    struct gt_message *message)
{
	struct gt_kernel_tracer *tracer;
	int error;

	*out = NULL;
	if (options->size < sizeof(*options))
		return gt_fail(message, GT_EINVAL,
			       "the options of the kernel's tracer are too short");
	tracer = calloc(1, sizeof(*tracer));
	error = tracer != NULL ? find_tracefs(message) : GT_ENOMEM;
	if (error == 0) {
		gt_kernel_clean_up();
		error = make_instance(tracer, message);
	}
	if (error == 0)
		error = set_clock(tracer, message);
	if (error == 0) {
		look_for(tracer);
		gt_kernel_measure_clock(tracer);
		error = choose_tracer(tracer, options, message);
	}
	if (error == 0)
		error = set_clock(tracer, message);
	if (error == 0)
		error = enable_events(tracer, options->events, message);
	if (error == 0) {
		tracefs_instance_set_buffer_size(tracer->instance, BUFFER_KB, -1);
		tracefs_instance_file_clear(tracer->instance, "trace");
		tracer->whole_system = options->whole_system;
		set_pids(tracer, options);
		error = open_pipes(tracer, message);
	}
	if (error != 0) {
		gt_kernel_tracer_destroy(tracer);
		return error;
	}
	*out = tracer;
	return 0;
}

int gt_kernel_tracer_start(struct gt_kernel_tracer *tracer, struct gt_message *message)
{
	if (tracefs_trace_on(tracer->instance) == 0)
		return 0;
	return gt_fail(message, GT_EIO, "the kernel's tracer cannot be switched on: %s",
		       strerror(errno));
}

void gt_kernel_tracer_leave_us(struct gt_kernel_tracer *tracer)
{
	/* The lists of threads are not cleared: while a list is replaced, all tasks are
	 * recorded. */
	if (!tracer->has_pids && !tracer->whole_system)
		return;
	/* of the whole system, interrupts during our own work are kept */
	if (!tracer->whole_system)
		add_threads(tracer, "set_event_notrace_pid", getpid());
	if (tracer->has_functions)
		add_threads(tracer, "set_ftrace_notrace_pid", getpid());
}

/* ---- taking ---- */

static bool is_full(const struct gt_kernel_tracer *tracer, const uint8_t *page)
{
	uint64_t commit;

	memcpy(&commit, page + sizeof(uint64_t), sizeof(commit));
	return (commit & COMMIT_BYTES) > tracer->page_bytes / 2;
}

static int take_cpu(struct gt_kernel_tracer *tracer, int cpu, struct gt_file_writer *writer)
{
	size_t held = 0;
	int error = 0;

	/* bounded: a system that records faster than we write must not keep us here */
	for (size_t taken = 0; tracer->pipes[cpu] >= 0 && error == 0 && taken < TAKE_MAX;
	     taken += tracer->page_bytes) {
		if (held + tracer->page_bytes > TAKE_BYTES) {
			error = gt_file_writer_kernel_pages(writer, (uint32_t)cpu, tracer->pages,
							    held, tracer->page_bytes);
			held = 0;
		}
		ssize_t got = read(tracer->pipes[cpu], tracer->pages + held, tracer->page_bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		memset(tracer->pages + held + got, 0, tracer->page_bytes - (size_t)got);
		held += tracer->page_bytes;
		/* our own work is recorded, too, so the unfinished page is not read yet */
		if (tracer->whole_system && !tracer->is_off &&
		    !is_full(tracer, tracer->pages + held - tracer->page_bytes))
			break;
	}
	if (error == 0 && held)
		error = gt_file_writer_kernel_pages(writer, (uint32_t)cpu, tracer->pages, held,
						    tracer->page_bytes);
	return error;
}

int gt_kernel_tracer_take(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer)
{
	int error = 0;

	for (int cpu = 0; cpu < tracer->cpu_count && error == 0; cpu++)
		error = take_cpu(tracer, cpu, writer);
	return error;
}

void gt_kernel_tracer_destroy(struct gt_kernel_tracer *tracer)
{
	if (tracer == NULL)
		return;
	for (int cpu = 0; cpu < tracer->cpu_count; cpu++)
		if (tracer->pipes[cpu] >= 0)
			close(tracer->pipes[cpu]);
	drop_instance(tracer);
	if (tracer->is_top)
		gt_kernel_put_top_back();
	free(tracer->pipes);
	free(tracer->pages);
	free(tracer->modules);
	free(tracer);
}
