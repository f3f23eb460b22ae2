/* SPDX-License-Identifier: MIT */
/*
 * Explains why a recording has few calls or no names, and what to do: many programs only call a
 * library that does the work, and packages come without names.
 */
#define _GNU_SOURCE
#include "cli/record_report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/object/libraries.h"
#include "attach/object/object.h"
#include "cli/running.h"

#define FEW_CALLS     1000 /* below, a library may do the work */
#define FEW_FUNCTIONS 64   /* below, and with libraries of its own kind, a program is thin */
#define LIBRARIES_MAX 4	   /* names in the message */
/* A larger program is not opened for it: none that large is the front of a library. */
#define JUDGED_BYTES_MAX (32 << 20)
/* A run of dpkg-query takes a tenth of a second. A recording that took less than this does not wait for
 * it at its end: the message names the package by rule. */
#define ASKED_FROM_NS 1000000000ull

/* ---- names ---- */

/* Is it a call of a library, "puts@plt"? */
static bool is_linkage(const char *name)
{
	const size_t bytes = strlen(name);

	return bytes > 4 && strcmp(name + bytes - 4, "@plt") == 0;
}

/* Counts functions without a name, which are called "words+0x1234". */
static int look(void *data, uint32_t number, const struct gt_function *function, bool enabled)
{
	struct gt_record_names *names = data;
	const char *plus = strstr(function->name, "+0x");

	(void)number;
	if (!enabled || is_linkage(function->name))
		return 0;
	names->functions++;
	if (plus == NULL || plus[3 + strspn(plus + 3, "0123456789abcdef")] != '\0')
		return 0;
	if (names->nameless++ == 0)
		snprintf(names->object, sizeof(names->object), "%s", function->object);
	return 0;
}

/* Reads the first line that dpkg-query writes about a path, or about the path without /usr; ""
 * if there is none, or no dpkg. */
static void ask_dpkg(const char *path, char *line, size_t bytes)
{
	const char *other = strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;
	char *const words[] = { "dpkg-query", "-S", "--", (char *)path, (char *)other, NULL };
	posix_spawn_file_actions_t actions;
	ssize_t got, used = 0;
	int ends[2], status;
	pid_t pid;

	line[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) != 0)
		return;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, words[0], &actions, NULL, words, environ) != 0)
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	while (pid > 0 && (size_t)used + 1 < bytes &&
	       (got = read(ends[0], line + used, bytes - 1 - (size_t)used)) > 0)
		used += got;
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	line[used] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

/* The Debian package that has a file, "" if none: "libjq1:amd64: /usr/lib/…" gives libjq1. */
static void package_of(const char *path, char *package, size_t bytes)
{
	char line[1024];

	ask_dpkg(path, line, sizeof(line));
	snprintf(package, bytes, "%.*s", (int)strcspn(line, ":,"), line);
	if (strchr(package, ' ') != NULL)
		package[0] = '\0'; /* the line is "diversion by …" */
}

/* Whether the file may belong to a package, by its folder: programs that users build lie elsewhere. */
static bool may_be_debians(const char *path)
{
	static const char *const places[] = { "/usr/", "/bin/", "/sbin/", "/lib", "/opt/" };

	if (access("/etc/debian_version", F_OK) != 0 || strncmp(path, "/usr/local/", 11) == 0)
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strncmp(path, places[i], strlen(places[i])) == 0)
			return true;
	return false;
}

/* Writes where the names of a stripped program can be got. ns: how long it was recorded. */
static void find_names(const char *program, uint64_t ns, char *where, size_t bytes)
{
	char package[128] = "";
	bool debians = may_be_debians(program);

	if (debians && ns >= ASKED_FROM_NS)
		package_of(program, package, sizeof(package));
	if (package[0])
		snprintf(where, bytes, "the names are in Debian's package %s-dbgsym", package);
	else if (debians && ns < ASKED_FROM_NS)
		snprintf(where, bytes,
			 "the names are in the -dbgsym package of its Debian package");
	else
		snprintf(
			where, bytes,
			"a build with symbols, or a file with them below /usr/lib/debug, has them");
}

static void report_nameless(const struct gt_record_names *names, const char *program, uint64_t ns)
{
	const char *servers = getenv("DEBUGINFOD_URLS");
	char where[256];

	find_names(program, ns, where, sizeof(where));
	fprintf(stderr,
		"graftrace: %" PRIu64 " of the first program's %" PRIu64
		" traced functions have no name, as '%s' is stripped: %s",
		names->nameless, names->functions, program, where);
	if (servers != NULL && *servers)
		fprintf(stderr, "; `debuginfod-find debuginfo %s` asks for them", program);
	fputc('\n', stderr);
}

/* ---- libraries ---- */

/* Is it a library of the C or C++ implementation, or of a sanitizer? Those do no program's work. */
static bool is_runtime(const char *name)
{
	static const char *const runtimes[] = {
		"libc.",      "libm.",	    "libpthread.", "libdl.",	 "librt.",
		"libgcc_s.",  "libstdc++.", "ld-linux",	   "linux-vdso", "libutil.",
		"libresolv.", "libnsl.",    "libatomic.",  "libc++",	 "libasan.",
		"libtsan.",   "libubsan.",  "liblsan.",	   "libhwasan.", "libclang_rt"
	};

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (strncmp(name, runtimes[i], strlen(runtimes[i])) == 0)
			return true;
	return false;
}

/* Counts the program's libraries that may do its work, and names the first one. */
static unsigned find_libraries(const char *program, char *names, size_t bytes, char first[64])
{
	struct gt_libraries libraries = { .count = 0 };
	struct gt_object *object = NULL;
	struct gt_message message;
	unsigned count = 0;

	if (gt_object_open_names(program, &object, &message) != 0)
		return 0;
	if (gt_libraries_find(object, &libraries, &message) == 0)
		for (uint32_t i = 0; i < libraries.count && count < LIBRARIES_MAX; i++) {
			const char *name = libraries.list[i].name;
			size_t used = strlen(names);

			if (!libraries.list[i].system || is_runtime(name) ||
			    strchr(name, '/') != NULL)
				continue;
			snprintf(names + used, bytes - used, "%s%s", count ? ", " : "", name);
			if (!count++)
				snprintf(first, 64, "%.*s", (int)strcspn(name, "."), name);
		}
	gt_libraries_free(&libraries);
	gt_object_close(object);
	return count;
}

static void report_libraries(const char *program, bool is_nameless)
{
	char names[256] = "", first[64] = "";

	if (find_libraries(program, names, sizeof(names), first))
		fprintf(stderr,
			"graftrace: few calls: the work may lie in libraries, which are not traced "
			"(%s): --lib '%s*' takes one, --libs all, --libcall the calls of them\n",
			names, first);
	else if (is_nameless)
		fprintf(stderr, "graftrace: few calls: the work may lie in the C library: --libs "
				"takes it, --libcall the calls of it\n");
}

/* ---- what is taken in by itself ---- */

/* Was anything said of which functions are recorded? */
static bool is_chosen(const struct gt_session_choice *choice)
{
	const struct gt_trace_settings *settings = &choice->settings;

	return settings->tracer == GRAFTRACE_TRACER_NOP ||
	       settings->lists[GT_LIST_FILTER] != NULL ||
	       settings->lists[GT_LIST_NOTRACE] != NULL || settings->lists[GT_LIST_GRAPH] != NULL ||
	       settings->lists[GT_LIST_GRAPH_NOTRACE] != NULL || choice->libraries ||
	       choice->libcalls || choice->library_globs[0] != NULL || settings->threshold_ns ||
	       settings->max_depth;
}

/* Has the program few functions, or few with a name? */
static enum gt_record_poor judge(struct gt_object *object)
{
	uint32_t functions = 0, nameless = 0;

	for (uint32_t i = 0; i < gt_object_function_count(object); i++) {
		const struct gt_object_function *function = gt_object_function(object, i);

		if (function->flags & (GT_FUNCTION_START | GT_FUNCTION_PLT | GT_FUNCTION_COLD))
			continue;
		functions++;
		nameless += function->name[0] == '\0';
	}
	if (nameless * 2 > functions)
		return GT_POOR_STRIPPED;
	return functions < FEW_FUNCTIONS ? GT_POOR_THIN : GT_POOR_NOT;
}

enum gt_record_poor gt_record_judge(const char *program)
{
	char interpreter[4096], names[256] = "", first[64];
	enum gt_record_poor poor = GT_POOR_NOT;
	struct gt_object *object = NULL;
	struct gt_message message;
	struct stat file;

	if (gt_run_interpreter(program, interpreter, sizeof(interpreter), NULL))
		program = interpreter;
	if (stat(program, &file) != 0 || file.st_size > JUDGED_BYTES_MAX ||
	    gt_object_open(program, &object, &message) != 0)
		return GT_POOR_NOT;
	if (gt_object_interpreter(object) != NULL)
		poor = judge(object);
	gt_object_close(object);
	if (poor == GT_POOR_THIN && !find_libraries(program, names, sizeof(names), first))
		poor = GT_POOR_NOT;
	return poor;
}

enum gt_record_poor gt_record_choose_libcalls(struct gt_record_options *options,
					      const char *program)
{
	enum gt_record_poor poor = GT_POOR_NOT;

	if (!options->no_libcalls && !is_chosen(&options->choice))
		poor = gt_record_judge(program);
	options->choice.libcalls |= poor != GT_POOR_NOT;
	return poor;
}

void gt_record_report_libcalls(enum gt_record_poor poor, const char *program)
{
	char interpreter[4096], names[256] = "", first[64], globs[320] = "";

	if (poor == GT_POOR_NOT)
		return;
	if (gt_run_interpreter(program, interpreter, sizeof(interpreter), NULL))
		program = interpreter;
	find_libraries(program, names, sizeof(names), first);
	for (char *rest = names, *name; (name = strsep(&rest, ",")) != NULL;) {
		size_t used = strlen(globs);

		name += *name == ' ';
		if (*name != '\0')
			snprintf(globs + used, sizeof(globs) - used, "%s'%.*s*'", used ? ", " : "",
				 (int)strcspn(name, "."), name);
	}
	fprintf(stderr,
		"graftrace: calls of libraries are recorded too, as puts@plt, since the program %s "
		"(--no-libcall: not); %s%s\n",
		poor == GT_POOR_STRIPPED ? "is stripped" : "has few functions",
		globs[0] != '\0' ? "--lib takes a library's own functions: "
				 : "--libs takes the libraries' own functions",
		globs);
}

void gt_record_count_names(struct gt_session *session, struct gt_record_names *names)
{
	*names = (struct gt_record_names){ .functions = 0 };
	gt_session_each_function(session, look, names);
}

void gt_record_report_poor(const struct gt_record_names *names,
			   const struct gt_session_totals *totals,
			   const struct gt_record_options *options, enum gt_record_poor poor,
			   const char *program)
{
	bool is_nameless = names->functions && names->nameless * 2 > names->functions;

	if (poor == GT_POOR_NOT && is_chosen(&options->choice))
		return;
	if (names->object[0] != '\0')
		program = names->object; /* of a script, its interpreter */
	if (is_nameless)
		report_nameless(names, program, totals->ns);
	if (poor == GT_POOR_NOT && options->pid_count == 0 && names->functions &&
	    totals->calls < FEW_CALLS)
		report_libraries(program, is_nameless);
}
