/* SPDX-License-Identifier: MIT */
/*
 * Parses the arguments of `graftrace record` up to the first word that is no option: the rest is
 * the program's command. Every value is checked here, before anything is started.
 */
#define _GNU_SOURCE
#include "cli/record_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/values.h"
#include "core/trace/event.h"
#include "core/trace/message.h"
#include "serve/address.h"
#include "serve/http.h"

#define NAME "record"

static const char help[] =
	"Usage: graftrace record [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	"       graftrace record [OPTION...] -P PID\n"
	"       graftrace record [OPTION...] --kernel -a\n"
	"       graftrace record [-o FILE] [--for TIME] [--kernel ...] --from http://HOST:PORT\n"
	"\n"
	"Runs PROGRAM and records every call of its functions. The program's input, output,\n"
	"signals and exit code are its own; one line on stderr ends the recording.\n"
	"With -P, records a process that runs already, until Ctrl-C, and leaves it as it was.\n"
	"\n"
	"What is traced:\n"
	"  -P, --pid PID[,PID...]    these processes, with all their threads and the children "
	"that\n"
	"                            they will have; may be repeated. -p PID is the same\n"
	"      --children            and the children that they have already\n"
	"      --for TIME            no longer than this: 10s, 500ms\n"
	"      --from URL            a kernel that serves its trace: taken out of its ring\n"
	"                            as it comes, until Ctrl-C or the kernel's end; with\n"
	"                            --kernel this machine's is recorded beside (-P: of it\n"
	"                            these processes)\n"
	"What is recorded:\n"
	"  -p, --tracer NAME         function_graph (default: entries and returns),\n"
	"                            function (entries with their callers), nop\n"
	"  -l, --filter GLOB         only these functions; may be repeated\n"
	"  -n, --notrace GLOB        not these functions; may be repeated\n"
	"  -g, --graph GLOB          only what is called below these; may be repeated\n"
	"  -N, --graph-notrace GLOB  not these, nor what is called below them; may be repeated\n"
	"  -e, --event EVENT         also these events, or alone if no function is named:\n"
	"                            'SYSTEM:NAME', globs, with '!' not (graftrace list);\n"
	"                            may be repeated\n"
	"      --filter EXPR         behind -e: only those of them for which it holds, as\n"
	"                            'count > 3 && what ~ \"app*\"'\n"
	"      --synthetic 'NAME TYPE FIELD[; ...]'\n"
	"                            an event that hist triggers make, by onmatch(...).NAME(...)\n"
	"                            and its kin; may be repeated\n"
	"      --probe 'FUNC [ARG...]'\n"
	"                            a probe there, with these variables: FUNC%return,\n"
	"                            FUNC:LINE, FILE:LINE (graftrace probe); may be repeated\n"
	"      --trigger WHAT        behind -e SYSTEM:NAME: done where it happens, as\n"
	"                            'traceoff:1 if count > 3', stacktrace, enable_event:…\n"
	"  -D, --max-graph-depth N   only the N outermost levels of calls\n"
	"      --args                also what functions are called with, as far as debug\n"
	"                            information or the C library's prototypes tell\n"
	"      --retval              and what they return\n"
	"  -A, --argument SPEC       arguments of these functions: 'GLOB', or\n"
	"                            'GLOB@arg1,arg2/s,fparg1'; may be repeated\n"
	"  -R, --return SPEC         what these return: 'GLOB', or 'GLOB@retval/i32'\n"
	"      --threshold TIME      only calls that took longer: 10us, 1.5ms\n"
	"      --libs                also the system's libraries\n"
	"      --lib GLOB            also system libraries whose name matches; may be repeated\n"
	"      --libcall             also calls of libraries across the linkage table, as\n"
	"                            puts@plt: the default for a program that is stripped,\n"
	"                            or has few functions, if no functions are chosen\n"
	"      --no-libcall          not these\n"
	"      --no-demangle         functions by the names that the linker knows\n"
	"      --breakpoints         also functions too short for a jump, by a trap (int3): slow\n"
	"      --uprobe-safe         only functions that begin with endbr64: see UPROBES\n"
	"      --unprepared          also functions compiled without tracing support\n"
	"      --no-fork             leave the program's children alone\n"
	"      --no-switch-events    do not record context switches (default: they are, where\n"
	"                            the kernel tells them)\n"
	"What the Linux kernel does for it (as root):\n"
	"      --kernel[=WHAT]       graph (entries and returns of the kernel's functions),\n"
	"                            functions (entries), events; without WHAT the first of\n"
	"                            these that the kernel has; try: that, or without the kernel\n"
	"      --kernel-event EVENT  these of its events: SYSTEM:EVENT, SYSTEM, EVENT; may be\n"
	"                            repeated (default: context switches, wake-ups; system calls\n"
	"                            where no functions are recorded)\n"
	"  -e EVENT, -e k:EVENT      the same, of a name that the kernel has; k: may be a glob\n"
	"      -l -n -g -N -D k:...  the same of the kernel's functions: -l 'k:vfs_*', -D k:3;\n"
	"      --threshold k:TIME    only its calls that took longer\n"
	"  -a, --all-tasks           not only of the program: of the whole system; without\n"
	"                            PROGRAM until Ctrl-C\n"
	"Where it goes:\n"
	"  -o, --output FILE         the recording (default graftrace.data; an old one\n"
	"                            becomes FILE.old)\n"
	"  -b, --buffer-size SIZE    memory for what is not written yet (default 64M)\n"
	"      --overwrite           keep the newest that fit in the buffer, write them at\n"
	"                            the end (default: write all as it comes)\n"
	"      --stop-when WHEN      end the recording when it happens, while the program goes "
	"on;\n"
	"                            may be repeated: 'FUNC > 10ms' (a call took longer),\n"
	"                            'FUNC hit 100' (its 100th call), 'signal SIGUSR1', 'crash'\n"
	"      --compress[=LEVEL]    pack the file with zstd (default), LEVEL 1 to 19\n"
	"      --no-compress         do not\n"
	"      --serve[=ADDR:PORT]   keep the trace in the buffer and serve it over HTTP while\n"
	"                            the program runs (default 127.0.0.1:9090), for its user\n"
	"                            and root; unix:PATH: at a Unix socket\n"
	"      --allow-users LIST    serve these users too: names, numbers; all: everybody\n"
	"      --token FILE          serve whoever shows the token in FILE, which is made if\n"
	"                            it does not exist\n"
	"      --linger[=TIME]       go on serving afterwards, until Ctrl-C or for TIME\n"
	"  -h, --help                this text\n"
	"\n"
	"Exit codes: the program's own; if a signal killed it, graftrace dies of the same\n"
	"one. 127: no such program, 126: it cannot be run, 1: it cannot be recorded, 2: the\n"
	"command line is wrong.\n";

enum {
	OPTION_COMPRESS = 256,
	OPTION_NO_COMPRESS,
	OPTION_SERVE,
	OPTION_LINGER,
	OPTION_ALLOW_USERS,
	OPTION_TOKEN,
	OPTION_FOR,
	OPTION_FROM,
	OPTION_STOP_WHEN,
	OPTION_SWITCH_EVENTS,
	OPTION_NO_SWITCH_EVENTS,
	OPTION_NO_LIBCALL,
	OPTION_CHILDREN,
	OPTION_KERNEL,
	OPTION_KERNEL_EVENT,
};

static const struct option options_known[] = {
	{ "pid", required_argument, NULL, 'P' },
	{ "children", no_argument, NULL, OPTION_CHILDREN },
	{ "for", required_argument, NULL, OPTION_FOR },
	{ "from", required_argument, NULL, OPTION_FROM },
	GT_CHOICE_OPTIONS,
	{ "output", required_argument, NULL, 'o' },
	{ "compress", optional_argument, NULL, OPTION_COMPRESS },
	{ "no-compress", no_argument, NULL, OPTION_NO_COMPRESS },
	{ "serve", optional_argument, NULL, OPTION_SERVE },
	{ "linger", optional_argument, NULL, OPTION_LINGER },
	{ "allow-users", required_argument, NULL, OPTION_ALLOW_USERS },
	{ "token", required_argument, NULL, OPTION_TOKEN },
	{ "stop-when", required_argument, NULL, OPTION_STOP_WHEN },
	{ "switch-events", no_argument, NULL, OPTION_SWITCH_EVENTS },
	{ "no-switch-events", no_argument, NULL, OPTION_NO_SWITCH_EVENTS },
	{ "no-libcall", no_argument, NULL, OPTION_NO_LIBCALL },
	{ "kernel", optional_argument, NULL, OPTION_KERNEL },
	{ "kernel-event", required_argument, NULL, OPTION_KERNEL_EVENT },
	{ "all-tasks", no_argument, NULL, 'a' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int take_kernel(const char *what, struct gt_record_options *options,
		       struct gt_message *message)
{
	static const char *const words[] = {
		[GT_KERNEL_BEST] = "try",
		[GT_KERNEL_GRAPH] = "graph",
		[GT_KERNEL_FUNCTIONS] = "functions",
		[GT_KERNEL_EVENTS] = "events",
	};

	options->kernel = true;
	for (int i = 0; what != NULL && i <= GT_KERNEL_EVENTS; i++)
		if (strcmp(what, words[i]) == 0) {
			options->kernel_what = (enum gt_kernel_what)i;
			options->kernel_try = i == GT_KERNEL_BEST;
			return 0;
		}
	if (what == NULL)
		return 0;
	return gt_fail(message, GT_EINVAL,
		       "--kernel takes graph, functions, events or try, not '%s'", what);
}

/* Among the words of -e these mark the next word as the filter, or trigger, of the last event. */
static const char filter_follows[] = "filter", trigger_follows[] = "trigger";

/* Takes "-l k:vfs_*": a choice of kernel functions. Returns true if it is one. */
static bool take_for_kernel(int option, struct gt_record_options *options, int *error,
			    struct gt_message *message)
{
	static const struct {
		int option;
		const char *file;
	} files[] = {
		{ 'l', "set_ftrace_filter" },  { 'n', "set_ftrace_notrace" },
		{ 'g', "set_graph_function" }, { 'N', "set_graph_notrace" },
		{ 'D', "max_graph_depth" },    { GT_CHOICE_FILTER, "set_ftrace_filter" },
	};
	uint64_t number = 0;

	if (optarg == NULL || strncmp(optarg, "k:", 2) != 0)
		return false;
	if (option == 'e') {
		options->events[options->event_count++] = optarg + 2;
		return true;
	}
	if (option == GT_CHOICE_THRESHOLD) {
		*error = gt_value_time(optarg + 2, 1000, &number, message);
		snprintf(options->kernel_threshold, sizeof(options->kernel_threshold), "%llu",
			 (unsigned long long)((number + 999) / 1000));
		options->kernel_settings[options->kernel_setting_count++] =
			(struct gt_kernel_setting){ "tracing_thresh", options->kernel_threshold };
		return true;
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (files[i].option != option)
			continue;
		*error = option == 'D' ? gt_value_number(optarg + 2, 0, INT32_MAX, &number, message)
				       : 0;
		options->kernel_settings[options->kernel_setting_count++] =
			(struct gt_kernel_setting){ files[i].file, optarg + 2 };
		return true;
	}
	return false;
}

/* Returns 0, or GT_EINVAL with the message. */
static int take(int option, struct gt_record_options *options, struct gt_message *message)
{
	struct gt_address address;
	uint64_t number = 0;
	int error = 0;

	/* Users of perf and uftrace write -p for a process. */
	if (option == 'p' && optarg[0] >= '0' && optarg[0] <= '9' &&
	    strspn(optarg, "0123456789,") == strlen(optarg))
		option = 'P';
	if (take_for_kernel(option, options, &error, message))
		return error;
	switch (option) {
	case 'P':
		error = gt_value_pids(optarg, &options->pids, &options->pid_count, message);
		break;
	case OPTION_CHILDREN:
		options->children = true;
		break;
	case OPTION_KERNEL:
		error = take_kernel(optarg, options, message);
		break;
	case OPTION_KERNEL_EVENT:
		options->events[options->event_count++] = optarg;
		break;
	case 'e': /* whether the kernel or the program has it is decided at the end */
		options->event_words[options->event_word_count++] = optarg;
		break;
	case 'a':
		options->kernel_all = true;
		break;
	case OPTION_FOR:
		error = gt_value_time(optarg, 1000000000, &options->for_ns, message);
		break;
	case OPTION_FROM:
		options->from = optarg;
		break;
	case 'o':
		options->output = optarg;
		break;
	case OPTION_COMPRESS:
		options->compress = true;
		if (optarg != NULL)
			error = gt_value_number(optarg, 1, 19, &number, message);
		options->level = (int)number;
		break;
	case OPTION_NO_COMPRESS:
		options->compress = false;
		break;
	case OPTION_SERVE:
		options->serve = optarg != NULL ? optarg : GT_HTTP_DEFAULT_ADDRESS;
		error = gt_address_parse(options->serve, &address, message);
		break;
	case OPTION_ALLOW_USERS:
		options->allow_users = optarg;
		break;
	case OPTION_TOKEN:
		options->token_file = optarg;
		break;
	case OPTION_LINGER:
		options->linger = true;
		if (optarg != NULL)
			error = gt_value_time(optarg, 1000000000, &options->linger_ns, message);
		if (error == 0 && optarg != NULL && options->linger_ns == 0)
			options->linger = false;
		break;
	case OPTION_STOP_WHEN:
		error = gt_stop_parse(optarg, &options->stops[options->stop_count], message);
		if (error == 0)
			options->stop_count++;
		break;
	case OPTION_SWITCH_EVENTS:
	case OPTION_NO_SWITCH_EVENTS:
		options->no_switches = option == OPTION_NO_SWITCH_EVENTS;
		break;
	case OPTION_NO_LIBCALL:
		options->no_libcalls = true;
		options->choice.libcalls = false;
		break;
	default:
		if ((option == GT_CHOICE_FILTER && options->event_word_count > 0) ||
		    option == GT_CHOICE_TRIGGER) {
			options->event_words[options->event_word_count++] =
				option == GT_CHOICE_FILTER ? filter_follows : trigger_follows;
			options->event_words[options->event_word_count++] = optarg;
			break;
		}
		if (optarg != NULL && optarg[0] == '\0' &&
		    (option == GT_CHOICE_FILTER || strchr("lngN", option) != NULL))
			gt_complain(NAME, "-%c '' names no function: it is as if it were left out",
				    option == GT_CHOICE_FILTER ? 'l' : option);
		error = gt_session_choice_take(&options->choice, option, optarg, message);
	}
	return error;
}

/* An event of -e is the kernel's if --kernel is given and the kernel has it, else the program's. */
static int share_events(struct gt_record_options *options, struct gt_message *message)
{
	int error = 0;

	for (size_t i = 0; i < options->event_word_count && error == 0; i++)
		if (options->event_words[i] == filter_follows)
			error = gt_session_choice_take(&options->choice, GT_CHOICE_FILTER,
						       options->event_words[++i], message);
		else if (options->event_words[i] == trigger_follows)
			error = gt_session_choice_take(&options->choice, GT_CHOICE_TRIGGER,
						       options->event_words[++i], message);
		else if (options->kernel && gt_kernel_has_event(options->event_words[i]))
			options->events[options->event_count++] = options->event_words[i];
		else
			error = gt_session_choice_take(&options->choice, 'e',
						       options->event_words[i], message);
	return error;
}

static int usage(const char *what)
{
	gt_complain(NAME, "%s", what);
	return gt_usage_error(NAME);
}

const char *gt_record_options_taken(const struct gt_record_options *options)
{
	const char *const *glob = gt_session_choice_list(&options->choice, GT_LIST_GRAPH);

	for (; *glob != NULL; glob++)
		if (strchr(*glob, '/') != NULL && access(*glob, X_OK) == 0)
			return *glob;
	for (const char *const *word = options->choice.values; word != NULL && *word != NULL;
	     word++)
		if (strchr(*word, '/') != NULL && access(*word + 1, X_OK) == 0)
			return *word + 1;
	return NULL;
}

/* As usage(), where what should be the program may be an option's value. */
static int usage_of_program(const struct gt_record_options *options, const char *what)
{
	const char *taken = gt_record_options_taken(options);
	char text[256];

	if (taken == NULL)
		return usage(what);
	snprintf(text, sizeof(text), "%s: '%.100s' is taken for a function: -g, -A and -R take one",
		 what, taken);
	return usage(text);
}

bool gt_record_is_of_switches(const char *word)
{
	return gt_event_word_matches(word, "sched", "sched_switch");
}

bool gt_record_options_want_switches(const struct gt_record_options *options)
{
	return gt_event_words_match(gt_session_choice_list(&options->choice, GT_LIST_EVENTS),
				    "sched", "sched_switch", "", false);
}

int gt_record_options_parse(int argc, char **argv, struct gt_record_options *options)
{
	struct gt_message message = { "" };
	size_t words = (size_t)argc + 1;
	bool lingers = false;
	int option;

	*options = (struct gt_record_options){
		.output = "graftrace.data",
		.compress = true,
		.stops = calloc(words, sizeof(*options->stops)),
		.events = calloc(words, sizeof(*options->events)),
		.event_words = calloc(2 * words, sizeof(*options->event_words)),
		.kernel_settings = calloc(words, sizeof(*options->kernel_settings)),
	};
	if (gt_session_choice_init(&options->choice, GRAFTRACE_TRACER_FUNCTION_GRAPH) != 0 ||
	    options->stops == NULL || options->events == NULL || options->event_words == NULL ||
	    options->kernel_settings == NULL) {
		gt_complain(NAME, "no memory");
		return GT_EXIT_FAILED;
	}
	while ((option = gt_next_option(argc, argv, "+P:o:ah" GT_CHOICE_SHORT, options_known)) !=
	       -1) {
		if (option == '?')
			return gt_usage_error(NAME);
		if (option == 'h') {
			return gt_print_help(help);
		}
		lingers |= option == OPTION_LINGER;
		if (take(option, options, &message) != 0)
			return usage(message.text);
	}
	if (share_events(options, &message) != 0)
		return usage(message.text);
	if ((options->choice.settings.lists[GT_LIST_EVENTS] != NULL ||
	     options->choice.wanted_probes[0] != NULL) &&
	    !options->choice.names_functions)
		options->choice.settings.tracer = GRAFTRACE_TRACER_NOP;
	if (options->from != NULL &&
	    (optind < argc || (options->pid_count > 0 && !options->kernel)))
		return usage("--from records what a kernel serves: no program besides");
	if (options->from != NULL && !options->kernel &&
	    (options->event_count > 0 || options->kernel_all || options->kernel_setting_count > 0))
		return usage("what of this machine's kernel is recorded beside wants --kernel");
	if (options->from != NULL) {
		options->kernel_all |= options->pid_count == 0;
		return -1;
	}
	if (options->pid_count > 0 && optind < argc && strcmp(argv[optind], "sleep") == 0)
		return usage("with -P no program is run; how long to record is --for TIME");
	if (options->pid_count > 0 && optind < argc)
		return usage("either a program is run, or -P names processes that run already");
	bool is_system =
		options->kernel && options->kernel_all && optind >= argc && options->pid_count == 0;
	if ((options->event_count > 0 || options->kernel_all) && !options->kernel)
		return usage("--kernel-event and -a say what of the kernel is recorded: they want "
			     "--kernel");
	if (optind >= argc && options->pid_count == 0 && !is_system)
		return usage_of_program(options, "the program to run is missing");
	if (is_system &&
	    (options->kernel_try || options->choice.names_functions || options->stop_count > 0))
		return usage("without a program there is the kernel only: --kernel=try, "
			     "--stop-when and functions without k: want one");
	if (options->kernel_setting_count > 0 && !options->kernel)
		return usage("k: names functions of the kernel: it wants --kernel");
	if (options->kernel && (options->serve != NULL || options->choice.overwrite))
		return usage(
			"--kernel goes to a file as it comes: not with --serve or --overwrite");
	if (options->children && options->pid_count == 0)
		return usage("--children says what -P takes: a program that is run has none yet");
	if ((options->allow_users != NULL || options->token_file != NULL) && options->serve == NULL)
		return usage("--allow-users and --token say who is served: they want --serve");
	if (lingers && options->serve == NULL)
		return usage("--linger says how long to serve: it wants --serve");
	if (options->pid_count == 0 && !is_system) {
		options->argv = argv + optind;
		options->subject = options->argv[0];
	}
	return -1;
}

void gt_record_options_fini(struct gt_record_options *options)
{
	gt_session_choice_fini(&options->choice);
	free(options->pids);
	for (size_t i = 0; i < options->stop_count; i++)
		gt_stop_condition_fini(&options->stops[i]);
	free(options->stops);
	free(options->events);
	free(options->kernel_settings);
	free(options->event_words);
}
