/* SPDX-License-Identifier: MIT */
/*
 * graftrace mount: shows the control files of a program, or of a recording, as a directory; runs
 * commands such as trace-cmd with that directory in the place where they look for the kernel's.
 */
#define _GNU_SOURCE
#include "cli/command.h"
#include "cli/looking.h"
#include "core/trace/message.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach/session/session.h"
#include "cli/background.h"
#include "cli/mount_enter.h"
#include "cli/record_report.h"
#include "cli/running.h"
#include "cli/session_options.h"
#include "cli/values.h"
#include "read/recording.h"
#include "serve/fuse.h"
#include "serve/live/live.h"
#include "serve/recorded.h"

#define NAME	 "mount"
#define POLL_MS	 100
#define GRACE_MS 5000 /* for readers of trace_pipe when the program ends */

static const char help[] =
	"Usage: graftrace mount DIR [OPTION...] -- PROGRAM [ARGUMENT...]\n"
	"       graftrace mount DIR [OPTION...] -P PID\n"
	"       graftrace mount DIR [OPTION...] FILE\n"
	"       graftrace mount --enter DIR -- COMMAND [ARGUMENT...]\n"
	"\n"
	"Makes the directory DIR what /sys/kernel/tracing is, for PROGRAM, which it runs, for\n"
	"the process PID, which goes on as it was afterwards, or for the recording FILE, both\n"
	"until Ctrl-C: cat and echo are all that is needed. The program's input, output,\n"
	"signals and exit code are its own. With --enter, COMMAND (trace-cmd) runs with DIR,\n"
	"which is mounted already, at /sys/kernel/tracing, and with DIR/kallsyms at\n"
	"/proc/kallsyms; nobody else sees that.\n"
	"\n"
	"  -P, --pid PID             a process that runs; may be repeated\n"
	"At the start (all can be changed in DIR, but for the last ones):\n"
	"  -p, --tracer NAME         nop (default), function_graph, function\n"
	"  -l, --filter GLOB         only these functions; may be repeated\n"
	"  -n, --notrace GLOB        not these functions; may be repeated\n"
	"  -g, --graph GLOB          only what is called below these; may be repeated\n"
	"  -N, --graph-notrace GLOB  not these, nor what is called below them; may be repeated\n"
	"  -e, --event EVENT         also these events: 'SYSTEM:NAME', globs, with '!' not\n"
	"      --synthetic 'NAME TYPE FIELD[; ...]'\n"
	"                            an event that hist triggers make, by onmatch(...).NAME(...)\n"
	"                            and its kin; may be repeated\n"
	"      --probe 'FUNC [ARG...]'\n"
	"                            a probe there, with these variables: FUNC%return,\n"
	"                            FUNC:LINE, FILE:LINE; may be repeated\n"
	"      --args, --retval      what functions are called with, and what they return\n"
	"  -A, --argument SPEC       arguments of these functions: 'GLOB', 'GLOB@arg1,arg2/s'\n"
	"  -R, --return SPEC         what these return: 'GLOB', 'GLOB@retval/i32'\n"
	"  -D, --max-graph-depth N   only the N outermost levels of calls\n"
	"      --threshold TIME      only calls that took longer: 10us, 1.5ms\n"
	"  -b, --buffer-size SIZE    memory for the trace (default 64M)\n"
	"      --overwrite           when it is full keep the newest (default: the oldest)\n"
	"      --libs                also the system's libraries\n"
	"      --lib GLOB            also system libraries whose name matches; may be repeated\n"
	"      --libcall             also calls across the linkage table, as puts@plt\n"
	"      --no-demangle         functions by the names that the linker knows\n"
	"      --breakpoints         also functions too short for a jump, by a trap: slow\n"
	"      --uprobe-safe         only functions that begin with endbr64\n"
	"      --unprepared          also functions that no compiler has prepared\n"
	"      --no-fork             leave the program's children alone\n"
	"The mount:\n"
	"      --background          come back when DIR is ready; the program's input is empty\n"
	"      --linger              stay mounted when the program has ended, until Ctrl-C\n"
	"      --allow-other         other users may enter, as the files' modes say\n"
	"  -o, --mount-options LIST  as tracefs's: uid=, gid= (of all files), mode= (of DIR,\n"
	"                            else 700); with --allow-other\n"
	"      --enter DIR           see above\n"
	"  -h, --help                this text\n"
	"\n"
	"Exit codes: PROGRAM's or COMMAND's own; if a signal killed it, graftrace dies of the\n"
	"same one. 0: the mount of a process or recording was ended. 127: no such program, 126: it "
	"cannot be\n"
	"run, 1: it cannot be traced, the file not be read, or DIR not be mounted, 2: the\n"
	"command line is wrong.\n";

enum {
	OPTION_BACKGROUND = 256,
	OPTION_LINGER,
	OPTION_ALLOW_OTHER,
	OPTION_ENTER,
};

static const struct option options_known[] = {
	{ "pid", required_argument, NULL, 'P' },
	GT_CHOICE_OPTIONS,
	{ "background", no_argument, NULL, OPTION_BACKGROUND },
	{ "linger", no_argument, NULL, OPTION_LINGER },
	{ "allow-other", no_argument, NULL, OPTION_ALLOW_OTHER },
	{ "mount-options", required_argument, NULL, 'o' },
	{ "enter", required_argument, NULL, OPTION_ENTER },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* Strings are argv's; the arrays are malloc'ed and NULL-terminated. */
struct mount {
	struct gt_session_options session;
	struct gt_session_choice choice;
	pid_t *pids;
	struct gt_fuse_options fuse;
	const char *enter;
	const char *file; /* a recording */
	bool background;
	bool linger;
	bool for_program; /* an option was given that only a program can have */
};

/* The number of a user or of a group, by name or in digits. */
static bool find_number(const char *text, bool group, uint32_t *number)
{
	const struct passwd *user = group ? NULL : getpwnam(text);
	const struct group *many = group ? getgrnam(text) : NULL;
	struct gt_message unused;
	uint64_t value = 0;

	if (user != NULL || many != NULL)
		value = user != NULL ? user->pw_uid : many->gr_gid;
	else if (gt_value_number(text, 0, UINT32_MAX - 1, &value, &unused) != 0)
		return false;
	*number = (uint32_t)value;
	return true;
}

static bool find_mode(const char *text, mode_t *mode)
{
	if (*text == '\0' || strlen(text) > 5 || text[strspn(text, "01234567")] != '\0')
		return false;
	*mode = (mode_t)strtoul(text, NULL, 8);
	return *mode <= 07777;
}

/* Returns 0, or GT_EINVAL with the message. */
static int take_mount_options(const char *list, struct gt_fuse_options *fuse,
			      struct gt_message *message)
{
	for (size_t length; *list != '\0'; list += length + (list[length] == ',')) {
		char word[64];
		bool known = false;

		length = strcspn(list, ",");
		snprintf(word, sizeof(word), "%.*s", (int)length, list);
		if (strncmp(word, "uid=", 4) == 0)
			known = fuse->has_uid = find_number(word + 4, false, &fuse->uid);
		else if (strncmp(word, "gid=", 4) == 0)
			known = fuse->has_gid = find_number(word + 4, true, &fuse->gid);
		else if (strncmp(word, "mode=", 5) == 0)
			known = fuse->has_mode = find_mode(word + 5, &fuse->mode);
		if (known)
			continue;
		return gt_fail(message, GT_EINVAL,
			       "-o %s: uid=USER, gid=GROUP and mode=OCTAL are known", word);
	}
	return 0;
}

/* Returns 0, or GT_EINVAL with the message. */
static int take(int option, struct mount *mount, struct gt_message *message)
{
	uint64_t number = 0;
	int error = 0;

	mount->for_program |= option != OPTION_ALLOW_OTHER && option != OPTION_ENTER &&
			      option != OPTION_BACKGROUND && option != 'o';
	switch (option) {
	case 'P':
		error = gt_value_number(optarg, 1, INT32_MAX, &number, message);
		mount->pids[mount->session.pid_count++] = (pid_t)number;
		break;
	case OPTION_BACKGROUND:
		mount->background = true;
		break;
	case OPTION_LINGER:
		mount->linger = true;
		break;
	case OPTION_ALLOW_OTHER:
		mount->fuse.allow_other = true;
		break;
	case 'o':
		error = take_mount_options(optarg, &mount->fuse, message);
		break;
	case OPTION_ENTER:
		mount->enter = optarg;
		break;
	default:
		error = gt_session_choice_take(&mount->choice, option, optarg, message);
	}
	return error;
}

static int usage(const char *what)
{
	gt_complain(NAME, "%s", what);
	return gt_usage_error(NAME);
}

/* Sets the probes of the command line, in the file of the program or of the first process. */
static int take_probes(struct mount *mount)
{
	struct gt_message message = { "" };
	char path[PATH_MAX], link[64];
	ssize_t bytes;

	if (mount->choice.wanted_probes[0] == NULL)
		return 0;
	if (mount->session.argv != NULL) {
		gt_value_program(mount->session.argv[0], path, sizeof(path));
	} else {
		snprintf(link, sizeof(link), "/proc/%d/exe", (int)mount->session.pids[0]);
		bytes = readlink(link, path, sizeof(path) - 1);
		path[bytes > 0 ? bytes : 0] = '\0';
	}
	if (gt_session_choice_probes(&mount->choice, path, &message) == 0)
		return 0;
	gt_complain(NAME, "%s", message.text);
	return GT_EXIT_FAILED;
}

/* DIR may stand before the options; PROGRAM's own options come after `--`. Returns -1 to go on,
 * or an exit code. */
static int parse(int argc, char **argv, struct mount *mount)
{
	struct gt_message message = { "" };
	const char *plain[2] = { NULL, NULL };
	unsigned plain_count = 0;
	bool program = false;
	int option;

	while (!program && (option = gt_next_option(argc, argv, "-P:o:h" GT_CHOICE_SHORT,
						    options_known)) != -1) {
		if (option == '?')
			return gt_usage_error(NAME);
		if (option == 'h') {
			return gt_print_help(help);
		}
		if (option != 1) {
			if (take(option, mount, &message) != 0)
				return usage(message.text);
		} else if (plain_count == 2) {
			return usage("one directory and one recording are wanted; a program stands "
				     "behind --");
		} else {
			plain[plain_count++] = optarg;
		}
	}
	program = optind < argc; /* behind the `--` */
	if (mount->enter != NULL) {
		if (plain_count > 0 || !program || mount->for_program || mount->background ||
		    mount->fuse.allow_other)
			return usage("--enter DIR -- COMMAND, and nothing else");
		mount->session.argv = argv + optind;
		return -1;
	}
	if (plain_count == 0)
		return usage("the directory to mount on is missing");
	if (!mount->fuse.allow_other &&
	    (mount->fuse.has_uid || mount->fuse.has_gid || mount->fuse.has_mode))
		return usage("-o says what other users may: it wants --allow-other");
	mount->fuse.directory = plain[0];
	mount->file = plain[1];
	if (program + (mount->file != NULL) + (mount->session.pid_count > 0) > 1)
		return usage("either a program, or processes, or a recording is mounted");
	if (!program && mount->file == NULL && mount->session.pid_count == 0)
		return usage("what shall be mounted is missing: -- PROGRAM, -P PID or a recording");
	if (mount->file != NULL && mount->for_program)
		return usage("a recording is mounted as it is: options of what is traced are for "
			     "a program");
	mount->session.argv = program ? argv + optind : NULL;
	mount->session.pids = mount->pids;
	if (take_probes(mount) != 0)
		return GT_EXIT_FAILED;
	gt_session_choice_session(&mount->choice, &mount->session);
	if (mount->choice.overwrite)
		mount->session.mode = GRAFTRACE_MODE_OVERWRITE;
	return -1;
}

static int complain(const struct gt_message *message)
{
	gt_complain(NAME, "%s", message->text);
	return GT_EXIT_FAILED;
}

/* A recording */

/* Waits for a signal, or until the directory is unmounted. */
static void wait_for_end(const struct gt_fuse *fuse)
{
	const struct timespec moment = { 0, 20 * 1000 * 1000 };

	while (!gt_run_interrupted && !gt_run_to_forward && !gt_fuse_is_gone(fuse))
		nanosleep(&moment, NULL);
}

static int mount_recording(const struct mount *mount)
{
	struct gt_message message = { "" };
	struct gt_recording *recording;
	struct gt_recorded *recorded = NULL;
	struct gt_fuse *fuse = NULL;
	const char *problem;
	int error;

	recording = gt_look_open(NAME, mount->file);
	if (recording == NULL) {
		if (access(mount->file, X_OK) == 0)
			gt_complain(NAME, "a program stands behind --: graftrace mount %s -- %s",
				    mount->fuse.directory, mount->file);
		return GT_EXIT_FAILED;
	}
	for (uint32_t i = 0; (problem = gt_recording_problem(recording, i)) != NULL; i++)
		gt_complain(NAME, "%s: %s", mount->file, problem);
	gt_run_handle_signals();
	error = gt_recorded_create(recording, &recorded, &message);
	if (error == 0)
		error = gt_fuse_open(&mount->fuse, &fuse, &message);
	if (error == 0)
		error = gt_fuse_start(fuse, gt_recorded_control(recorded), &message);
	if (error == 0) {
		fprintf(stderr, "graftrace mount: %s at %s until %s\n", mount->file,
			mount->fuse.directory, mount->background ? "it is unmounted" : "Ctrl-C");
		gt_background_ready(GT_EXIT_DONE);
		wait_for_end(fuse);
	} else {
		complain(&message);
	}
	if (fuse != NULL)
		gt_fuse_close(fuse, 0);
	if (recorded != NULL)
		gt_recorded_destroy(recorded);
	gt_recording_close(recording);
	return error == 0 ? GT_EXIT_DONE : GT_EXIT_FAILED;
}

/* A program */

static void on_hit(void *live, const struct gt_trigger_hit *hit)
{
	gt_live_hit(live, hit);
}

static int create_live(const struct mount *mount, const char *program, struct gt_session *session,
		       struct gt_live **live, struct gt_message *message)
{
	struct gt_live_options options = {
		.size = sizeof(options),
		.program = program,
		.mode = mount->session.mode,
		.dump = gt_run_dump,
	};
	int error;

	gt_session_choice_live(&mount->choice, &options);
	error = gt_live_create(session, &options, live, message);
	if (error == 0)
		gt_session_trigger_handler(session, on_hit, *live);
	return error;
}

/* Serves until the program has ended. Attached processes are left at Ctrl-C and SIGTERM, and
 * once the directory is unmounted. */
static void follow(struct gt_session *session, const struct gt_fuse *fuse, bool attached)
{
	struct gt_message message = { "" };
	bool detaching = false;

	while (gt_session_poll(session, POLL_MS, &message) > 0) {
		if (attached && !detaching &&
		    (gt_run_interrupted || gt_run_to_forward ||
		     (fuse != NULL && gt_fuse_is_gone(fuse)))) {
			detaching = true;
			if (gt_session_detach(session, &message) != 0)
				gt_complain(NAME, "%s", message.text);
		} else if (gt_run_to_forward && !attached) {
			int signal = gt_run_to_forward;

			gt_run_to_forward = 0;
			gt_session_signal(session, signal);
		}
	}
}

/* Mounts first, so that a program is not started if that fails. Returns -1 if it ran, with its
 * end in *status, or an exit code. */
static int mount_program(const struct mount *mount, const char *program, int *status)
{
	bool attached = mount->session.pid_count > 0;
	struct gt_message message = { "" };
	struct gt_session *session = NULL;
	struct gt_live *live = NULL;
	struct gt_fuse *fuse = NULL;
	int code = -1;
	int error;

	if (gt_fuse_open(&mount->fuse, &fuse, &message) != 0)
		return complain(&message);
	gt_run_handle_signals();
	error = gt_session_start(&mount->session, &session, &message);
	if (error != 0) {
		complain(&message);
		code = attached ? GT_EXIT_FAILED : gt_run_not_started(error);
		gt_fuse_close(fuse, 0);
		return code;
	}
	if (create_live(mount, program, session, &live, &message) != 0 ||
	    gt_fuse_start(fuse, gt_live_control(live), &message) != 0) {
		gt_complain(NAME, "%s; the program goes on unmounted", message.text);
		gt_fuse_close(fuse, 0);
		fuse = NULL;
	}
	gt_background_ready(fuse != NULL ? GT_EXIT_DONE : GT_EXIT_FAILED);
	if (attached && fuse != NULL)
		fprintf(stderr, "graftrace mount: process %d%s at %s until %s or its end\n",
			(int)mount->pids[0], mount->session.pid_count > 1 ? " and others" : "",
			mount->fuse.directory, mount->background ? "it is unmounted" : "Ctrl-C");
	follow(session, fuse, attached);
	if (live != NULL)
		gt_live_end(live);
	if (fuse != NULL && mount->linger) {
		gt_run_interrupted = 0;
		fprintf(stderr, "graftrace mount: the program has ended; %s stays until Ctrl-C\n",
			mount->fuse.directory);
		wait_for_end(fuse);
	}
	if (fuse != NULL)
		gt_fuse_close(fuse, GRACE_MS);
	if (attached)
		code = GT_EXIT_DONE;
	else
		*status = gt_session_exit_status(session);
	if (live != NULL)
		gt_live_destroy(live);
	gt_session_destroy(session);
	return code;
}

/* Finds the file of the program, or of the first process. Returns 0 or an exit code. */
static int find_program(const struct mount *mount, char **program)
{
	char path[64];
	char target[PATH_MAX];
	ssize_t bytes;

	if (mount->session.argv != NULL)
		return gt_run_find_program(NAME, mount->session.argv[0], program);
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)mount->pids[0]);
	bytes = readlink(path, target, sizeof(target) - 1);
	target[bytes > 0 ? bytes : 0] = '\0';
	*program = strdup(target);
	return *program != NULL ? 0 : GT_EXIT_FAILED;
}

int gt_cmd_mount(int argc, char **argv)
{
	size_t words = (size_t)argc + 1;
	struct mount mount = {
		.session = { .size = sizeof(mount.session), .mode = GRAFTRACE_MODE_RING },
		.fuse = { .size = sizeof(mount.fuse) },
		.pids = calloc(words, sizeof(pid_t)),
	};
	char *program = NULL;
	int status = 0;
	int code;

	if (gt_session_choice_init(&mount.choice, GRAFTRACE_TRACER_NOP) != 0 ||
	    mount.pids == NULL) {
		gt_complain(NAME, "no memory");
		code = GT_EXIT_FAILED;
	} else {
		code = parse(argc, argv, &mount);
	}
	if (code < 0 && mount.background)
		code = gt_background_begin(NAME);
	if (code < 0 && mount.enter != NULL)
		code = gt_mount_enter(NAME, mount.enter, mount.session.argv);
	else if (code < 0 && mount.file != NULL)
		code = mount_recording(&mount);
	else if (code < 0 && (code = find_program(&mount, &program)) == 0)
		code = mount_program(&mount, program, &status);
	free(program);
	gt_session_choice_fini(&mount.choice);
	free(mount.pids);
	return code < 0 ? gt_run_end_as(status) : code;
}
