/* SPDX-License-Identifier: MIT */
/*
 * graftrace runtime-breakdown: the CSV of calls to one HTML page with a stacked bar of self times
 * for each thread, shown in the browser if there is one.
 */
#define _GNU_SOURCE
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/parse_recording.h"
#include "export/breakdown.h"
#include "export/html.h"
#include "read/csv.h"

#define NAME "runtime-breakdown"

static const char help[] =
	"Usage: graftrace runtime-breakdown [-o FILE.html] [--no-open] TRACE.csv\n"
	"\n"
	"Makes one HTML page of the CSV that 'graftrace parse-trace' writes: a bar of\n"
	"self times for each thread, stacked by function, and a table beside it in which\n"
	"functions are switched on and off, searched and sorted. The page needs no\n"
	"network. It is opened in the browser if there is one; its path is printed.\n"
	"TRACE.csv may be '-' for stdin.\n"
	"\n"
	"  -o, --output FILE  write the page to FILE ('-' is stdout); default TRACE.html\n"
	"                     in the working directory\n"
	"  -n, --no-open      do not open it\n"
	"  -h, --help         this text\n"
	"\n"
	"Exit codes: 0 the page is written; 1 it could not be, or no row could be read;\n"
	"2 the command line is wrong.\n";

static const struct option options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "no-open", no_argument, NULL, 'n' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct sums {
	struct gt_breakdown breakdown;
	int error; /* of gt_breakdown_add */
};

static int add_row(void *user, const struct gt_csv_row *row)
{
	struct sums *sums = user;

	sums->error = gt_breakdown_add(&sums->breakdown, row->function, row->function_len, row->tid,
				       row->latency_ns, row->self_ns);
	return sums->error;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* Makes "trace.html" from "dir/trace.csv". */
static int default_output(const char *path, char *out, size_t size)
{
	const char *base = strcmp(path, "-") == 0 ? "trace" : base_name(path);
	size_t len = strlen(base);

	if (len > 4 && strcmp(base + len - 4, ".csv") == 0)
		len -= 4;
	return snprintf(out, size, "%.*s.html", (int)len, base) < (int)size ? 0 : GT_EINVAL;
}

static void tell_bad(const struct gt_csv_report *report, const char *path)
{
	if (report->bad.count == 0)
		return;
	gt_complain(NAME, "'%s': %llu row%s could not be read:", path,
		    (unsigned long long)report->bad.count, report->bad.count == 1 ? "" : "s");
	for (unsigned i = 0; i < report->bad.kept_count; i++)
		fprintf(stderr, "    line %llu (byte %llu): %s: '%s'\n",
			(unsigned long long)report->bad.kept[i].line,
			(unsigned long long)report->bad.kept[i].offset, report->bad.kept[i].why,
			report->bad.kept[i].text);
	if (report->bad.count > report->bad.kept_count)
		fprintf(stderr, "    and %llu more\n",
			(unsigned long long)(report->bad.count - report->bad.kept_count));
}

/* Opens the page with the desktop's opener, which outlives this process. Only with a display:
 * without one, openers start a text browser in the terminal. */
static void open_page(const char *path)
{
	const char *display = getenv("DISPLAY");
	const char *wayland = getenv("WAYLAND_DISPLAY");
	pid_t child;

	if ((display == NULL || *display == '\0') && (wayland == NULL || *wayland == '\0'))
		return;
	child = fork();
	if (child < 0)
		return;
	if (child == 0) {
		int null = open("/dev/null", O_RDWR);

		/* The opener is a grandchild, so that no process has to wait for the browser. */
		if (fork() != 0)
			_exit(0);
		setsid();
		if (null >= 0) {
			dup2(null, STDIN_FILENO);
			dup2(null, STDOUT_FILENO);
			dup2(null, STDERR_FILENO);
		}
		execlp("xdg-open", "xdg-open", path, (char *)NULL);
		_exit(127);
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

static int read_rows(int fd, const char *path, struct sums *sums, struct gt_csv_report *report)
{
	struct gt_message message = { "" };
	int error = gt_csv_read(fd, add_row, sums, report, &message);

	if (sums->error == GT_ENOSPC)
		gt_complain(NAME, "'%s' has more distinct functions or threads than %u", path,
			    GT_BREAKDOWN_ENTRIES_MAX);
	else if (sums->error != 0 || error == GT_ENOMEM)
		gt_complain(NAME, "out of memory");
	else if (error != 0 && gt_is_recording(fd))
		gt_complain(NAME,
			    "'%s' is a recording: 'graftrace parse-trace' makes the table of it, "
			    "'graftrace report --html' a page at once",
			    path);
	else if (error != 0)
		gt_complain(NAME, "'%s': %s", path, message.text);
	else
		tell_bad(report, path);
	if (error == 0 && report->rows == 0 && report->bad.count > 0) {
		gt_complain(NAME, "'%s' has no row that can be read", path);
		return GT_EXIT_FAILED;
	}
	return error == 0 && sums->error == 0 ? GT_EXIT_DONE : GT_EXIT_FAILED;
}

static int write_page(const struct sums *sums, const char *path, const char *to, uint64_t bad)
{
	struct gt_message message = { "" };
	struct gt_output output;

	if (gt_output_open(&output, to, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	if (gt_html_write_breakdown(output.fd, &sums->breakdown, base_name(path), bad, &message) !=
	    0) {
		gt_complain(NAME, "'%s': %s", to, message.text);
		gt_output_abandon(&output);
		return GT_EXIT_FAILED;
	}
	if (gt_output_commit(&output, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	return GT_EXIT_DONE;
}

static int make_page(int fd, const char *path, const char *to, bool show)
{
	struct gt_csv_report report;
	struct sums sums = { .error = 0 };
	int result;

	if (gt_breakdown_init(&sums.breakdown) != 0) {
		gt_complain(NAME, "out of memory");
		return GT_EXIT_FAILED;
	}
	result = read_rows(fd, path, &sums, &report);
	if (result == GT_EXIT_DONE)
		result = write_page(&sums, path, to, report.bad.count);
	gt_breakdown_fini(&sums.breakdown);
	if (result == GT_EXIT_DONE && strcmp(to, "-") != 0) {
		puts(to);
		if (fflush(stdout) != 0)
			return GT_EXIT_FAILED;
		if (show)
			open_page(to);
	}
	return result;
}

int gt_cmd_runtime_breakdown(int argc, char **argv)
{
	char name[PATH_MAX];
	const char *to = NULL;
	bool show = true;
	int fd = STDIN_FILENO;
	int option;
	int result;

	optind = 1;
	while ((option = gt_next_option(argc, argv, "o:nh", options)) != -1) {
		switch (option) {
		case 'o':
			to = optarg;
			break;
		case 'n':
			show = false;
			break;
		case 'h':
			return gt_print_help(help);
		default:
			return gt_usage_error(NAME);
		}
	}
	if (gt_one_operand(NAME, argc - optind, "which CSV? Name its file, or '-' for stdin",
			   "one CSV at a time"))
		return GT_EXIT_USAGE;
	if (to == NULL) {
		if (default_output(argv[optind], name, sizeof name) != 0) {
			gt_complain(NAME, "the name is too long; choose another one with -o");
			return GT_EXIT_FAILED;
		}
		to = name;
	}
	if (strcmp(argv[optind], "-") != 0) {
		fd = open(argv[optind], O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			gt_complain(NAME, "cannot open '%s': %s", argv[optind], strerror(errno));
			return GT_EXIT_FAILED;
		}
	}
	result = make_page(fd, strcmp(argv[optind], "-") == 0 ? "stdin" : argv[optind], to, show);
	if (fd != STDIN_FILENO)
		close(fd);
	return result;
}
