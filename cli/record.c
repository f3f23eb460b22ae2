/* SPDX-License-Identifier: MIT */
/*
 * graftrace record: runs a program, records its calls into a file, serves them meanwhile if asked
 * to, and ends with the program's exit status. The program has the terminal: Ctrl-C and Ctrl-\ go
 * to it and have no effect here; SIGTERM and SIGHUP are passed on to it.
 */
#define _GNU_SOURCE
#include "cli/command.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/process/clock.h"
#include "attach/session/session.h"
#include "cli/process_command.h"
#include "cli/progress.h"
#include "cli/record_crash.h"
#include "cli/record_from.h"
#include "cli/record_hists.h"
#include "cli/record_kernel.h"
#include "cli/record_left.h"
#include "cli/record_options.h"
#include "cli/record_report.h"
#include "cli/record_stop.h"
#include "cli/record_system.h"
#include "read/recording.h"
#include "read/ring_dump.h"
#include "cli/running.h"
#include "cli/thread_names.h"
#include "read/writer.h"
#include "serve/door.h"
#include "serve/http.h"
#include "serve/live/live.h"
#include "serve/page.h"

#define NAME	"record"
#define POLL_MS 100
#define WAIT_FOR_ROOM_MS \
	100 /* how long a writer may wait for the file, before records are lost \
				*/
#define EMPTY_BYTES_MAX	 262144 /* a recording of nothing is smaller */
#define SERVE_GRACE_MS	 5000	/* for slow downloads after the program's end */
#define SUB_BUFFER_BYTES 65536	/* the largest that a session has */

struct recording {
	pthread_mutex_t live_lock; /* guards the making of `live` */
	struct gt_door *door;
	struct gt_record_options options;
	uint32_t untraced_told;	  /* gt_session_untraced() */
	char *program;		  /* path of its file */
	enum gt_record_poor poor; /* why the calls of its libraries are recorded too */
	char **attached_command; /* the first process's, malloc'ed; NULL: unknown, or not attached to */
	char *command; /* the program's with its arguments, for the page; NULL: unknown, or not served */
	struct utsname system; /* that it runs on, for the page */
	struct gt_file_writer *writer;
	struct gt_thread_names *thread_names; /* NULL: no memory */
	struct gt_kernel_tracer *kernel;      /* NULL: Linux is not recorded */
	struct gt_session *session;
	struct gt_live *live;
	struct gt_http_server *server;
	struct gt_page_server *page;
	struct gt_record_stop stop;
	struct gt_clock clock; /* as the file has it */
	char *path;	       /* of the file, absolute; NULL: it is a pipe or a device */
	bool had_older;	       /* a file was there before */
	bool failed;	       /* the file could not be written; reported */
	int status;	       /* of the program that ran, as waitpid gives it */
	bool detaching;	       /* from processes that go on */
};

static bool is_attached(const struct recording *recording)
{
	return recording->options.pid_count > 0;
}

/* The program's arguments, NULL-terminated; NULL: unknown. */
static char *const *command_of(const struct recording *recording)
{
	return is_attached(recording) ? recording->attached_command : recording->options.argv;
}

/* The clock */

/* Measures the clock to 0.01 %, for a recording that is cut off. The end of a complete one has
 * the clock as measured over the whole run. */
static struct gt_clock measure_clock(void)
{
	const struct timespec moment = { 0, 1000 * 1000 };
	struct gt_instant from = gt_clock_now();
	struct gt_clock clock = { from.tsc, from.ns, UINT64_C(1) << 32, 32 };

	nanosleep(&moment, NULL);
	gt_clock_calibrate(&clock, from, gt_clock_now());
	return clock;
}

/* The file */

/* How full the ring may be: if the program records faster than blocks are packed, the file gets
 * larger before calls are lost. */
static unsigned buffer_use(void *data)
{
	const struct recording *recording = data;

	return recording->session != NULL ? gt_session_buffer_use(recording->session) : 0;
}

static bool is_regular(const char *path)
{
	struct stat file;

	return lstat(path, &file) == 0 && S_ISREG(file.st_mode);
}

/* Removes a recording in which nothing was recorded, where FILE.old is kept: else a word that was typed
 * wrongly twice would leave neither. */
static void drop_empty(const char *path)
{
	struct gt_message message = { "" };
	struct gt_recording *recording;
	const struct gt_recording_info *info;
	char old[PATH_MAX];
	struct stat file;
	bool is_empty;

	if (!is_regular(path) || stat(path, &file) != 0 || file.st_size > EMPTY_BYTES_MAX ||
	    snprintf(old, sizeof(old), "%s.old", path) >= (int)sizeof(old) || !is_regular(old) ||
	    gt_recording_open(path, &recording, &message) != 0)
		return;
	info = gt_recording_info(recording);
	is_empty = info->ended && info->words == 0 && gt_recording_kernel_count(recording) == 0;
	gt_recording_close(recording);
	if (is_empty)
		unlink(path);
}

static int create_file(struct recording *recording)
{
	const struct gt_record_options *options = &recording->options;
	struct gt_message message = { "" };
	struct gt_file_writer_options file = {
		.size = sizeof(file),
		.path = options->output,
		.compress = options->compress,
		.level = options->level,
		.clock = measure_clock(),
		.tracer = options->choice.settings.tracer,
		.sub_buffer_bytes = SUB_BUFFER_BYTES,
		.argv = (const char *const *)command_of(recording),
		.program = recording->program,
		.pressure = buffer_use,
		.pressure_data = recording,
		.goes_on = true,
		.see_writer = gt_thread_names_see,
		.see_data = recording->thread_names,
	};

	drop_empty(options->output);
	recording->clock = file.clock;
	recording->had_older = is_regular(options->output);
	if (gt_file_writer_create(&file, &recording->writer, &message) == 0) {
		recording->path =
			is_regular(options->output) ? realpath(options->output, NULL) : NULL;
		return 0;
	}
	gt_complain(NAME, "%s", message.text);
	return GT_EXIT_FAILED;
}

/* Removes the file after a failed start. */
static void drop_file(struct recording *recording)
{
	char *old = NULL;

	gt_file_writer_destroy(recording->writer);
	recording->writer = NULL;
	if (!is_regular(recording->options.output)) /* a device or a pipe existed before */
		return;
	unlink(recording->options.output);
	if (recording->had_older && asprintf(&old, "%s.old", recording->options.output) > 0) {
		rename(old, recording->options.output);
		free(old);
	}
}

static void note_damage(struct recording *recording, const struct gt_session_totals *totals)
{
	char option[256 + sizeof("damaged=")];
	char text[256];

	for (unsigned i = 0; gt_record_report_damage(totals, i, text, sizeof(text)); i++) {
		snprintf(option, sizeof(option), "damaged=%s", text);
		if (text[0] != '\0')
			gt_file_writer_option(recording->writer, option);
	}
}

static int need_live(void *data, struct gt_control_target **control, struct gt_message *message);

/* Keeps the histograms of events: those of the options, and those that were set while recording. */
static void keep_hists(struct recording *recording)
{
	const struct gt_session_choice *choice = &recording->options.choice;
	struct gt_control_target *control;
	struct gt_message message;

	if ((recording->live != NULL || gt_session_choice_has_hists(choice)) &&
	    need_live(recording, &control, &message) == 0)
		gt_record_keep_hists(control, recording->writer);
}

static void finish_file(struct recording *recording, struct gt_session_totals *totals)
{
	struct gt_message message = { "" };
	struct gt_file_writer_totals end;
	char incomplete[512];
	uint64_t bytes;
	uint64_t missed;

	gt_session_totals(recording->session, totals);
	if (recording->server != NULL || recording->options.choice.overwrite) {
		struct gt_target *rings[2] = { gt_session_target(recording->session), NULL };
		uint32_t count =
			recording->live != NULL ? gt_live_rings(recording->live, rings) : 1;
		uint64_t words, calls;

		totals->words = totals->calls = 0;
		for (uint32_t i = 0; i < count; i++) {
			if (gt_ring_dump(rings[i], gt_file_writer_sink(recording->writer), &words,
					 &calls) == GT_ENOMEM)
				gt_complain(NAME, "no memory to write the ring to the file");
			totals->words += words;
			totals->calls += calls;
		}
		gt_session_give_switches(recording->session,
					 gt_file_writer_sink(recording->writer));
	}
	if (recording->live != NULL) {
		uint64_t marks, none;

		if (gt_ring_dump(gt_live_marks(recording->live),
				 gt_file_writer_sink(recording->writer), &marks, &none) == 0)
			totals->words += marks;
	}
	end = (struct gt_file_writer_totals){
		.words = totals->words,
		.calls = totals->calls,
		.ns = totals->ns,
		.threads = totals->threads,
		.processes = totals->processes,
		.exit_status = gt_session_exit_status(recording->session),
		.clock = gt_session_target(recording->session)->clock,
	};
	memcpy(end.lost, totals->lost, sizeof(end.lost));
	note_damage(recording, totals);
	keep_hists(recording);
	if (gt_file_writer_finish(recording->writer, &end, &message) != 0) {
		if (!recording->failed)
			gt_complain(NAME, "%s", message.text);
		recording->failed = true;
	}
	bytes = gt_file_writer_bytes(recording->writer);
	missed = gt_file_writer_missed(recording->writer);
	gt_file_writer_destroy(recording->writer);
	recording->writer = NULL;
	if (recording->failed)
		snprintf(incomplete, sizeof(incomplete), "%s, incomplete",
			 recording->options.output);
	if (!recording->failed)
		gt_record_report_crash(recording->session, recording->options.output);
	totals->calls -= missed < totals->calls ? missed : totals->calls;
	gt_record_report_end(totals, &recording->options,
			     recording->failed ? incomplete : recording->options.output, bytes,
			     missed);
}

/* Serving */

static int open_server(struct recording *recording)
{
	struct gt_message message = { "" };
	struct gt_http_options http = {
		.size = sizeof(http),
		.address = recording->options.serve,
		.allow_users = recording->options.allow_users,
		.token_file = recording->options.token_file,
	};

	if (gt_http_open(&http, &recording->server, &message) == 0)
		return 0;
	gt_complain(NAME, "%s", message.text);
	return GT_EXIT_FAILED;
}

static bool is_ring(const struct gt_record_options *options)
{
	return options->serve != NULL || options->choice.overwrite;
}

/* Makes the control files when the first door needs them, possibly in another thread. */
static int need_live(void *data, struct gt_control_target **control, struct gt_message *message)
{
	struct recording *recording = data;
	const struct gt_record_options *options = &recording->options;
	struct gt_live_options live = {
		.size = sizeof(live),
		.program = recording->program,
		.mode = options->choice.overwrite ? GRAFTRACE_MODE_OVERWRITE
			: is_ring(options)	  ? GRAFTRACE_MODE_RING
						  : GRAFTRACE_MODE_DRAIN,
		.dump = gt_run_dump,
	};

	int error = 0;

	gt_session_choice_live(&options->choice, &live);
	pthread_mutex_lock(&recording->live_lock);
	if (recording->live == NULL)
		error = gt_live_create(recording->session, &live, &recording->live, message);
	if (error == 0)
		*control = gt_live_control(recording->live);
	pthread_mutex_unlock(&recording->live_lock);
	return error;
}

static bool has_live(struct recording *recording)
{
	bool has;

	pthread_mutex_lock(&recording->live_lock);
	has = recording->live != NULL;
	pthread_mutex_unlock(&recording->live_lock);
	return has;
}

/* A function's command has acted in the program; the rest of it is done here. */
static void on_command(void *data, const struct gt_trigger_hit *hit)
{
	struct recording *recording = data;
	struct gt_control_target *control;
	struct gt_message message;

	if ((hit->action == GT_TRIGGER_TRACEON || hit->action == GT_TRIGGER_TRACEOFF) &&
	    !has_live(recording))
		return; /* there are no files to follow it */
	if (need_live(recording, &control, &message) == 0)
		gt_live_hit(recording->live, hit);
}

/* Opens the socket for `graftrace get` and `set`. If the system refuses it, recording goes on
 * without. */
static void open_door(struct recording *recording)
{
	struct gt_message message = { "" };

	if (gt_door_open(gt_session_pid(recording->session), need_live, recording, &recording->door,
			 &message) != 0)
		recording->door = NULL;
}

static void close_door(struct recording *recording)
{
	if (recording->door != NULL)
		gt_door_close(recording->door);
	recording->door = NULL;
}

/* Returns the arguments with blanks between them; NULL: no memory. To be freed. */
static char *join(char *const *words)
{
	size_t bytes = 1;
	char *joined;

	for (size_t i = 0; words[i] != NULL; i++)
		bytes += strlen(words[i]) + 1;
	joined = calloc(1, bytes);
	for (size_t i = 0; joined != NULL && words[i] != NULL; i++) {
		strcat(joined, i > 0 ? " " : "");
		strcat(joined, words[i]);
	}
	return joined;
}

/* Prepares the page's data: the ring as it is now. */
static int prepare_page(void *user, struct gt_page_options *options)
{
	struct recording *recording = user;
	struct gt_control_target *control;
	struct gt_message message;
	struct timespec now = { 0 };
	int error = need_live(recording, &control, &message);

	if (error != 0)
		return error;
	clock_gettime(CLOCK_REALTIME, &now);
	*options = (struct gt_page_options){
		.target = gt_live_view(recording->live),
		.about = {
			.command_line = recording->command ? recording->command
							   : recording->program,
			.program = recording->program,
			.host = recording->system.nodename,
			.made_by = "graftrace " GRAFTRACE_VERSION,
			.realtime_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
		},
	};
	return 0;
}

/* A browser cannot open a page at a Unix socket. */
static void report_served(const struct gt_http_server *server)
{
	const char *page = gt_http_page_address(server);

	if (strncmp(page, "unix:", 5) == 0)
		fprintf(stderr, "graftrace: serving %s\n", gt_http_address(server));
	else
		fprintf(stderr, "graftrace: serving %s ; a page to look at: %s\n",
			gt_http_address(server), page);
}

static void start_server(struct recording *recording)
{
	const struct gt_page_source source = { .user = recording,
					       .live = true,
					       .prepare = prepare_page };
	struct gt_message message = { "" };
	struct gt_control_target *control;

	if (command_of(recording) != NULL)
		recording->command = join(command_of(recording));
	if (uname(&recording->system) != 0)
		recording->system.nodename[0] = '\0';
	/* If the page cannot be made, the control files are still served. */
	if (gt_page_server_create(&source, &recording->page, &message) == 0)
		gt_http_show_page(recording->server, recording->page);
	if (need_live(recording, &control, &message) == 0 &&
	    gt_http_start(recording->server, control, recording->program, &message) == 0)
		report_served(recording->server);
	else
		gt_complain(NAME, "%s; the program runs unserved", message.text);
}

/* Serves until Ctrl-C, SIGTERM, or the end of the time. */
static void linger(const struct gt_record_options *options, const struct gt_http_server *server)
{
	uint64_t end = gt_monotonic_ns() + options->linger_ns;
	const struct timespec moment = { 0, 20 * 1000 * 1000 };

	gt_run_interrupted = 0;
	fprintf(stderr, "graftrace: the program has ended; still serving %s %s\n",
		gt_http_address(server),
		options->linger_ns != 0 ? "for the time of --linger, or until Ctrl-C"
					: "until Ctrl-C");
	while (!gt_run_interrupted && !gt_run_to_forward &&
	       (options->linger_ns == 0 || gt_monotonic_ns() < end))
		nanosleep(&moment, NULL);
}

/* The run */

/* Is it time to detach? Attached processes are left at Ctrl-C and SIGTERM, all of them when the
 * time is over. */
static bool is_to_detach(const struct recording *recording, uint64_t start)
{
	const struct gt_record_options *options = &recording->options;

	if (recording->detaching)
		return false;
	if (options->for_ns != 0 && gt_monotonic_ns() - start >= options->for_ns)
		return true;
	/* nothing more can be written to the file */
	if (recording->failed && recording->server == NULL && is_attached(recording))
		return true;
	return is_attached(recording) && (gt_run_interrupted || gt_run_to_forward);
}

static void detach(struct recording *recording)
{
	struct gt_message message = { "" };

	recording->detaching = true;
	gt_session_detach(recording->session, &message);
	if (message.text[0] != '\0')
		gt_complain(NAME, "%s", message.text);
}

/* Reports each reason once, here and in the recording. */
static void tell_untraced(struct recording *recording)
{
	struct gt_session_untraced untraced;
	char option[512];

	while (gt_session_untraced(recording->session, recording->untraced_told, &untraced)) {
		recording->untraced_told++;
		gt_complain(NAME, "process %d %s: %s", (int)untraced.pid,
			    untraced.is_traced ? "stays traced" : "runs untraced", untraced.why);
		if (untraced.is_traced)
			continue;
		snprintf(option, sizeof(option), "untraced=process %d: %s", (int)untraced.pid,
			 untraced.why);
		gt_session_lock_sink(recording->session);
		if (recording->writer != NULL)
			gt_file_writer_option(recording->writer, option);
		gt_session_unlock_sink(recording->session);
	}
}

/* Reports that the file cannot be written any more while the program goes on. Its calls are
 * still taken out of the ring, and counted as lost. */
static void tell_failed(struct recording *recording, const char *reason)
{
	if (!recording->failed)
		gt_complain(NAME, "%s; the program goes on, and its calls are lost from here on",
			    reason);
	recording->failed = true;
}

/* Writes what does not come through the sink, and what has waited for long in the writer's buffers. */
static void write_beside(struct recording *recording)
{
	const char *error = NULL;

	gt_session_lock_sink(recording->session);
	if (recording->kernel != NULL) /* the next call returns its error */
		gt_kernel_tracer_take(recording->kernel, recording->writer);
	gt_thread_names_look(recording->thread_names, gt_file_writer_sink(recording->writer), NULL);
	if (gt_file_writer_flush_old(recording->writer) != 0)
		error = gt_file_writer_error(recording->writer);
	gt_session_unlock_sink(recording->session);
	if (error != NULL)
		tell_failed(recording, error);
}

static void follow(struct recording *recording)
{
	uint64_t start = gt_monotonic_ns();
	const struct timespec moment = { 0, 100 * 1000 };
	struct gt_message message = { "" };
	char option[600];
	int state;

	while ((state = gt_session_poll(recording->session, POLL_MS, &message)) != 0) {
		tell_untraced(recording);
		if (!recording->detaching &&
		    gt_record_stop_now(&recording->stop, recording->session)) {
			gt_session_set_tracing_on(recording->session, false);
			detach(recording);
		} else if (is_to_detach(recording, start)) {
			detach(recording);
		} else if (gt_run_to_forward && !is_attached(recording)) {
			int signal = gt_run_to_forward;

			gt_run_to_forward = 0;
			gt_session_signal(recording->session, signal);
		}
		if (state > 0) {
			if (is_ring(&recording->options))
				gt_thread_names_look(recording->thread_names, NULL,
						     gt_session_target(recording->session));
			write_beside(recording);
			continue;
		}
		/* No memory to drain the ring, but the program must not wait for room there:
		 * tracing is switched off and the ring emptied, one sub-buffer a turn, until the
		 * program ends. */
		tell_failed(recording, message.text);
		gt_session_set_tracing_on(recording->session, false);
		nanosleep(&moment, NULL);
	}
	tell_untraced(recording);
	if (gt_record_report_places(recording->session, option, sizeof(option)) &&
	    recording->writer != NULL)
		gt_file_writer_option(recording->writer, option);
}

/* Writes an empty recording that has the reason: an older file would be taken for this run's. */
static void finish_untraced(struct recording *recording, const char *why)
{
	const struct gt_file_writer_totals none = { .clock = measure_clock() };
	struct gt_message message;
	char option[512];

	snprintf(option, sizeof(option), "untraced=%.500s", why);
	gt_file_writer_option(recording->writer, option);
	gt_file_writer_finish(recording->writer, &none, &message);
	gt_file_writer_destroy(recording->writer);
	recording->writer = NULL;
}

static int start_session(struct recording *recording)
{
	const struct gt_record_options *options = &recording->options;
	struct gt_message message = { "" };
	bool ring = is_ring(options);
	struct gt_session_options session = {
		.size = sizeof(session),
		.argv = options->argv,
		.pids = options->pids,
		.pid_count = options->pid_count,
		.children = options->children,
		.mode = options->choice.overwrite ? GRAFTRACE_MODE_OVERWRITE
			: ring			  ? GRAFTRACE_MODE_RING
						  : GRAFTRACE_MODE_DRAIN,
		.wait_ms = WAIT_FOR_ROOM_MS,
		.forget_writers = options->serve == NULL,
		.no_switches = options->no_switches,
		.triggers = recording->stop.triggers,
		.trigger_count = recording->stop.trigger_count,
		.stop_signals = recording->stop.signals,
		.watch_ends = recording->stop.ends,
		.recording = recording->path,
		.recording_clock = recording->clock,
		.sink = gt_file_writer_sink(recording->writer),
	};
	int error;

	if (gt_session_choice_probes(&recording->options.choice, recording->program, &message) !=
	    0) {
		drop_file(recording);
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	gt_session_choice_session(&options->choice, &session);
	gt_progress_waiting(is_attached(recording) ? "attaching" : "getting the program ready");
	error = gt_session_start(&session, &recording->session, &message);
	gt_progress_end();

	if (error == 0)
		gt_session_choice_report(&options->choice, recording->session, NAME);
	if (error == 0 && !options->no_switches &&
	    (gt_record_options_want_switches(options)
		     ? gt_session_watch_off_cpu(recording->session, &message)
		     : gt_session_switches(recording->session, &message)) != 0)
		fprintf(stderr, "graftrace: times off the CPU are not recorded: %s\n",
			message.text);
	if (error == 0)
		return 0;
	/* before exec, if the program runs untraced */
	gt_record_kernel_end(&recording->kernel, NULL);
	if (is_attached(recording)) {
		drop_file(recording);
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	if (error == GT_ENOTSUP) {
		finish_untraced(recording, message.text);
		gt_complain(NAME, "%s: it cannot be traced, and runs untraced", message.text);
		execv(recording->program, options->argv);
		gt_complain(NAME, "cannot run '%s': %s", options->argv[0], strerror(errno));
		return GT_RUN_CANNOT_RUN;
	}
	drop_file(recording);
	gt_complain(NAME, "%s", message.text);
	return gt_run_not_started(error);
}

/* Reports an option that has taken the name of the program as its value, or a program that was meant as its value. */
static void report_taken(const struct gt_record_options *options)
{
	const char *taken = gt_record_options_taken(options);

	if (taken != NULL)
		gt_complain(NAME, "'%s' is taken for a function: -g, -A and -R take one", taken);
	/* argv[-1]: the word before the program, of the command line's */
	else if (strcmp(options->argv[-1], "--args") == 0 ||
		 strcmp(options->argv[-1], "--retval") == 0)
		gt_complain(NAME, "%s takes no function, -A and -R do", options->argv[-1]);
}

/* Finds the name of the first process's program, and its command line. */
static int name_process(struct recording *recording)
{
	struct gt_record_options *options = &recording->options;
	char path[64];
	char target[PATH_MAX];
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)options->pids[0]);
	bytes = readlink(path, target, sizeof(target) - 1);
	target[bytes > 0 ? bytes : 0] = '\0';
	if (bytes <= 0)
		snprintf(target, sizeof(target), "process %d", (int)options->pids[0]);
	recording->attached_command = gt_process_command(options->pids[0]);
	recording->program = strdup(target);
	options->subject = recording->program;
	return recording->program != NULL ? 0 : GT_EXIT_FAILED;
}

static void report_attached(const struct recording *recording)
{
	const struct gt_record_options *options = &recording->options;
	const unsigned asked_for = (unsigned)options->pid_count;
	struct gt_session_totals totals;
	char children[64] = "";

	gt_session_totals(recording->session, &totals);
	if (!options->children && options->pid_count == 1)
		gt_record_report_children(options->pids[0], children, sizeof(children));
	else if (options->children && totals.processes > asked_for)
		snprintf(children, sizeof(children), " and %u child%s",
			 totals.processes - asked_for,
			 totals.processes - asked_for == 1 ? "" : "ren");
	fprintf(stderr,
		"graftrace: recording process %d%s%s (its threads were stopped for %.1f ms), %s\n",
		(int)options->pids[0], options->pid_count > 1 ? " and others" : "", children,
		(double)totals.stopped_ns / 1e6,
		options->for_ns != 0 ? "until the time is over, Ctrl-C or its end"
				     : "until Ctrl-C or its end");
}

/* Returns -1 if the program ran and ended, or an exit code. */
static int record(struct recording *recording)
{
	struct gt_session_totals totals;
	struct gt_record_names names;
	int code = is_attached(recording) ? name_process(recording)
					  : gt_run_find_program(NAME, recording->options.argv[0],
								&recording->program);

	if (code == GT_RUN_NO_PROGRAM)
		report_taken(&recording->options);
	if (code == 0 && recording->options.serve != NULL)
		code = open_server(recording);
	if (code == 0 && is_attached(recording))
		gt_record_take_left(recording->options.pids, recording->options.pid_count);
	if (code == 0)
		code = create_file(recording);
	if (code != 0)
		return code;
	gt_run_handle_signals();
	if (recording->options.kernel)
		code = gt_record_kernel_create(&recording->options, &recording->kernel);
	if (code == 0)
		code = gt_record_kernel_start(recording->kernel, recording->writer);
	if (code != 0) {
		drop_file(recording);
		return code;
	}
	if (!is_attached(recording))
		recording->poor =
			gt_record_choose_libcalls(&recording->options, recording->program);
	code = start_session(recording);
	if (code != 0)
		return code;
	if (recording->kernel != NULL && (!is_attached(recording) || recording->options.kernel_all))
		gt_kernel_tracer_leave_us(recording->kernel);
	if (recording->server != NULL)
		start_server(recording);
	open_door(recording);
	gt_record_report_untraced(recording->session, &recording->options, recording->program);
	gt_record_count_names(recording->session, &names);
	recording->stop.command = on_command;
	recording->stop.command_data = recording;
	gt_record_stop_watch(&recording->stop, recording->session);
	if (is_attached(recording))
		report_attached(recording);
	follow(recording);
	if (gt_record_stop_now(&recording->stop, recording->session))
		fprintf(stderr, "graftrace: %s: the recording ends\n", recording->stop.why);
	if (recording->door != NULL && recording->server == NULL)
		close_door(recording);
	if (recording->live != NULL)
		gt_live_end(recording->live);
	gt_record_kernel_end(&recording->kernel, recording->writer);
	gt_session_totals(recording->session, &totals);
	gt_record_report_events(recording->session, &recording->options);
	if (!recording->failed &&
	    !is_ring(&recording->options)) /* a ring's are counted at the end */
		gt_record_report_poor(&names, &totals, &recording->options, recording->poor,
				      recording->program);
	gt_record_report_libcalls(recording->poor, recording->program);
	finish_file(recording, &totals);
	if (recording->page != NULL)
		gt_page_server_program_ended(recording->page);
	if (recording->live != NULL && recording->options.linger)
		linger(&recording->options, recording->server);
	if (is_attached(recording))
		return recording->failed ? GT_EXIT_FAILED : GT_EXIT_DONE;
	recording->status = gt_run_wait(recording->session);
	return -1;
}

int gt_cmd_record(int argc, char **argv)
{
	struct recording recording = { .live_lock = PTHREAD_MUTEX_INITIALIZER };
	int code = gt_record_options_parse(argc, argv, &recording.options);

	if (code < 0 && recording.options.from != NULL) {
		code = gt_record_from(&recording.options);
		gt_record_options_fini(&recording.options);
		return code;
	}
	if (code < 0 && recording.options.argv == NULL && recording.options.pid_count == 0) {
		struct gt_clock clock = measure_clock();

		code = gt_record_system(&recording.options, &clock);
		gt_record_options_fini(&recording.options);
		return code;
	}
	if (code < 0 && !gt_record_stop_init(&recording.stop, &recording.options)) {
		gt_complain(NAME, "no memory");
		code = GT_EXIT_FAILED;
	}
	if (code < 0) {
		recording.thread_names = gt_thread_names_create();
		code = record(&recording);
		close_door(&recording);
		if (recording.server != NULL)
			gt_http_close(recording.server, code < 0 ? SERVE_GRACE_MS : 0);
		if (recording.page != NULL)
			gt_page_server_destroy(recording.page);
		if (recording.live != NULL)
			gt_live_destroy(recording.live);
		gt_session_destroy(recording.session);
	}
	gt_record_kernel_end(&recording.kernel, NULL);
	gt_thread_names_destroy(recording.thread_names);
	free(recording.program);
	free(recording.attached_command);
	free(recording.command);
	free(recording.path);
	gt_record_stop_fini(&recording.stop);
	gt_record_options_fini(&recording.options);
	/* The exit code is the program's, except where that would hide a failed recording. */
	if (code < 0 && recording.failed && recording.status == 0)
		code = GT_EXIT_FAILED;
	return code < 0 ? gt_run_end_as(recording.status) : code;
}
