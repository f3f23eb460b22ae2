/* SPDX-License-Identifier: MIT */
/*
 * Messages of `graftrace record`. Each is one write, so that the program's own output cannot get
 * into it.
 */
#include "cli/record_report.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/object/libraries.h"
#include "attach/object/object.h"
#include "attach/plan/reasons.h"
#include "cli/command.h"
#include "core/trace/glob.h"

/* Untraced */

/* A glob of the command line, and the first function's name that is near it. */
struct pattern {
	const char *option;
	char *glob;
	bool is_library; /* it is of a library's file, not of a function */
	bool matched;
	bool is_elsewhere; /* … by a function of a library that the program will begin with */
	struct gt_proposal nearest;
};

struct survey {
	uint64_t known;	  /* functions that can be traced */
	uint64_t enabled; /* that are */
	struct pattern *patterns;
	size_t count;
};

static bool add_pattern(struct survey *survey, const char *option, const char *glob, size_t bytes)
{
	struct pattern *grown =
		realloc(survey->patterns, (survey->count + 1) * sizeof(*survey->patterns));

	if (grown == NULL)
		return false;
	survey->patterns = grown;
	grown[survey->count] = (struct pattern){ .option = option, .glob = strndup(glob, bytes) };
	return grown[survey->count].glob != NULL && ++survey->count;
}

/* Of "FUNC@WHAT;FUNC…": what is before each '@'. */
static bool add_values(struct survey *survey, const char *option, const char *text)
{
	bool done = true;

	while (done && *text != '\0') {
		const size_t bytes = strcspn(text, ";");
		const size_t name = strcspn(text, "@;");

		if (name > 0)
			done = add_pattern(survey, option, text, name);
		text += bytes + (text[bytes] == ';');
	}
	return done;
}

static bool add_patterns(struct survey *survey, const struct gt_session_choice *choice)
{
	const struct {
		const char *option;
		enum gt_list which;
	} lists[] = {
		{ "--filter", GT_LIST_FILTER },
		{ "--notrace", GT_LIST_NOTRACE },
		{ "--graph", GT_LIST_GRAPH },
		{ "--graph-notrace", GT_LIST_GRAPH_NOTRACE },
	};
	bool done = true;

	for (size_t list = 0; list < sizeof(lists) / sizeof(lists[0]); list++) {
		const char *const *word = gt_session_choice_list(choice, lists[list].which);

		for (; done && *word != NULL; word++)
			done = add_pattern(survey, lists[list].option, *word, strlen(*word));
	}
	for (size_t i = 0; done && choice->library_globs[i] != NULL; i++) {
		done = add_pattern(survey, "--lib", choice->library_globs[i],
				   strlen(choice->library_globs[i]));
		if (done)
			survey->patterns[survey->count - 1].is_library = true;
	}
	for (size_t i = 0; done && choice->values != NULL && choice->values[i] != NULL; i++)
		if (*choice->values[i] == 'A' || *choice->values[i] == 'R')
			done = add_values(survey,
					  *choice->values[i] == 'A' ? "--argument" : "--return",
					  choice->values[i] + 1);
	return done;
}

static const char *file_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static int look(void *data, uint32_t number, const struct gt_function *function, bool enabled)
{
	struct survey *survey = data;

	(void)number;
	survey->known++;
	survey->enabled += enabled;
	for (size_t i = 0; i < survey->count; i++) {
		struct pattern *pattern = &survey->patterns[i];
		const char *name = pattern->is_library ? file_of(function->object) : function->name;

		if (pattern->matched)
			continue;
		pattern->matched = gt_glob_match(pattern->glob, name);
		gt_propose(&pattern->nearest, pattern->glob, name);
	}
	return 0;
}

/* Does it have characters of regular expressions, which a glob takes as they are? */
static bool is_expression(const char *glob)
{
	return strstr(glob, ".*") != NULL || strstr(glob, ".+") != NULL ||
	       strpbrk(glob, "^$|()") != NULL;
}

/* Does --lib name the library, as the recorder takes it: by file, by soname, or "libz" for libz.so.1? */
static bool names_library(const char *glob, const struct gt_library *library)
{
	const char *const names[] = { file_of(library->path), library->name, library->path };
	const size_t bytes = strlen(glob);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (gt_glob_match(glob, names[i]) || (strncmp(names[i], glob, bytes) == 0 &&
						      strncmp(names[i] + bytes, ".so", 3) == 0))
			return true;
	return false;
}

/* Is the library traced? Marks the patterns of --lib that name it. */
static bool is_taken(struct survey *survey, const struct gt_session_choice *choice,
		     const struct gt_library *library)
{
	bool taken = !library->system || choice->libraries;

	for (size_t i = 0; i < survey->count; i++)
		if (survey->patterns[i].is_library &&
		    names_library(survey->patterns[i].glob, library)) {
			survey->patterns[i].matched = true;
			taken = true;
		}
	return taken;
}

static bool is_unmatched(const struct pattern *pattern)
{
	return !pattern->matched;
}

static bool is_function_unmatched(const struct pattern *pattern)
{
	return !pattern->matched && !pattern->is_library;
}

static bool is_elsewhere(const struct pattern *pattern)
{
	return pattern->is_elsewhere;
}

static bool any(const struct survey *survey, bool (*is)(const struct pattern *pattern))
{
	for (size_t i = 0; i < survey->count; i++)
		if (is(&survey->patterns[i]))
			return true;
	return false;
}

static void look_in_library(struct survey *survey, const char *path)
{
	struct gt_object *object = NULL;
	struct gt_message message;

	if (gt_object_open(path, &object, &message) != 0)
		return;
	for (uint32_t i = 0;
	     i < gt_object_function_count(object) && any(survey, is_function_unmatched); i++)
		for (size_t k = 0; k < survey->count; k++) {
			struct pattern *pattern = &survey->patterns[k];

			if (!pattern->is_library && !pattern->matched)
				pattern->matched = pattern->is_elsewhere = gt_glob_match(
					pattern->glob, gt_object_function_name(object, i));
		}
	gt_object_close(object);
}

/* A program that begins has not mapped its libraries: looks in those that it will begin with. */
static void look_in_libraries(struct survey *survey, const struct gt_session_choice *choice,
			      const char *program)
{
	struct gt_libraries libraries = { .count = 0 };
	struct gt_object *object = NULL;
	struct gt_message message;

	if (gt_object_open_names(program, &object, &message) != 0)
		return;
	if (gt_libraries_find(object, &libraries, &message) == 0)
		for (uint32_t i = 0; i < libraries.count; i++)
			if (libraries.list[i].path != NULL &&
			    is_taken(survey, choice, &libraries.list[i]) &&
			    any(survey, is_function_unmatched))
				look_in_library(survey, libraries.list[i].path);
	gt_libraries_free(&libraries);
	gt_object_close(object);
}

static void report_unmatched(const struct gt_record_options *options, const struct survey *survey)
{
	for (size_t i = 0; i < survey->count; i++) {
		const struct pattern *pattern = &survey->patterns[i];
		const char *near = pattern->nearest.word;

		if (pattern->matched)
			continue;
		if (pattern->is_library) {
			fprintf(stderr,
				"graftrace record: --lib '%s' matches no library that the program "
				"begins with: 'ldd %s' lists them\n",
				pattern->glob, options->subject);
			continue;
		}
		/* One write: the program may have the same standard error. */
		fprintf(stderr,
			"graftrace record: %s '%s' matches no function%s%s%s%s; 'graftrace "
			"functions %s' "
			"lists them\n",
			pattern->option, pattern->glob,
			is_expression(pattern->glob)
				? " (it is a glob, not a regular expression: * is any text)"
				: "",
			near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
			options->subject);
	}
}

/* Events */

/* A word of -e, and the first event's name that is near it. */
struct event_word {
	const char *text;
	bool matched;
	struct gt_proposal nearest;
};

static int look_at_event(void *data, const struct gt_event_format *event, bool enabled,
			 const char *reason)
{
	struct event_word *word = data;
	const char *const words[] = { word->text, NULL };
	const char *colon = strchr(word->text, ':');

	(void)enabled;
	(void)reason;
	word->matched =
		gt_event_words_match(words, event->system, event->name, event->object, false);
	gt_propose(&word->nearest, colon != NULL ? colon + 1 : word->text, event->name);
	return word->matched;
}

/* Whether perf has a counter of the processor's or the kernel's of that name (perf-list(1)); "cycles:u" is one too. */
static bool is_counter(const char *word)
{
	static const char *const counters[] = {
		"branches",	"branch-misses",    "bus-cycles",
		"cache-misses", "cache-references", "cpu-clock",
		"cpu-cycles",	"context-switches", "cs",
		"cycles",	"faults",	    "instructions",
		"major-faults", "migrations",	    "minor-faults",
		"page-faults",	"ref-cycles",	    "task-clock",
	};
	const size_t length = strcspn(word, ":");

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		if (strlen(counters[i]) == length && strncmp(word, counters[i], length) == 0)
			return true;
	return false;
}

void gt_record_report_events(struct gt_session *session, const struct gt_record_options *options)
{
	const char *const *text = gt_session_choice_list(&options->choice, GT_LIST_EVENTS);

	for (; *text != NULL; text++) {
		struct event_word word = { .text = *text };

		if (word.text[0] == '!' || gt_record_is_of_switches(word.text))
			continue;
		gt_session_each_event(session, look_at_event, &word);
		if (word.matched)
			continue;
		if (is_counter(word.text)) {
			fprintf(stderr,
				"graftrace record: -e '%s': counters are not recorded: "
				"perf stat -e %s counts\n",
				word.text, word.text);
			continue;
		}
		const char *near = word.nearest.word;
		fprintf(stderr,
			"graftrace record: -e '%s' matched no event%s%s%s; 'graftrace list %s' "
			"lists them\n",
			word.text, near ? "; did you mean '" : "", near ? near : "",
			near ? "'?" : "", options->subject);
	}
}

void gt_record_report_untraced(struct gt_session *session, const struct gt_record_options *options,
			       const char *program)
{
	struct survey survey = { .known = 0 };
	const bool done = add_patterns(&survey, &options->choice);

	if (done)
		gt_session_each_function(session, look, &survey);
	if (done && options->pid_count == 0 && any(&survey, is_unmatched))
		look_in_libraries(&survey, &options->choice, program);
	if (done && survey.known > 0)
		report_unmatched(options, &survey);
	if (done && survey.known == 0)
		fprintf(stderr,
			"graftrace record: no function of '%s' can be traced; it runs all the "
			"same. 'graftrace functions %s' tells why\n",
			options->subject, options->subject);
	else if (done && survey.enabled == 0 && !any(&survey, is_elsewhere) &&
		 options->choice.settings.tracer != GRAFTRACE_TRACER_NOP)
		fprintf(stderr,
			"graftrace record: none of the %" PRIu64
			" functions of '%s' is traced: look at --filter and --notrace\n",
			survey.known, options->subject);
	for (size_t i = 0; i < survey.count; i++)
		free(survey.patterns[i].glob);
	free(survey.patterns);
}

void gt_record_report_children(pid_t pid, char *text, size_t room)
{
	char path[64];
	unsigned count = 0;
	glob_t tasks;
	long child;

	text[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/task/*/children", (int)pid);
	if (glob(path, GLOB_NOSORT, NULL, &tasks) != 0)
		return;
	for (size_t i = 0; i < tasks.gl_pathc; i++) {
		FILE *file = fopen(tasks.gl_pathv[i], "re");

		while (file != NULL && fscanf(file, "%ld", &child) == 1)
			count++;
		if (file != NULL)
			fclose(file);
	}
	globfree(&tasks);
	if (count > 0)
		snprintf(text, room, ", without its %u child%s (--children)", count,
			 count > 1 ? "ren" : "");
}

/* The end */

/* 1234567 as 1,234,567 */
static const char *grouped(uint64_t number, char text[32])
{
	char digits[24];
	int count = snprintf(digits, sizeof(digits), "%" PRIu64, number);
	char *at = text;

	for (int i = 0; i < count; i++) {
		if (i > 0 && (count - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	*at = '\0';
	return text;
}

static const char *of_bytes(uint64_t bytes, char text[32])
{
	static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 999.95 && unit < 4) {
		value /= 1000;
		unit++;
	}
	snprintf(text, 32, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
	return text;
}

static void report_lost(uint64_t count, const char *what)
{
	char text[32];

	if (count > 0)
		fprintf(stderr, "graftrace: %s %s\n", grouped(count, text), what);
}

/* Reports that a running process made no call, with possible reasons. */
static void report_empty(const struct gt_record_options *options)
{
	const struct gt_session_choice *choice = &options->choice;

	if (choice->settings.tracer == GRAFTRACE_TRACER_NOP)
		return;
	if (choice->settings.lists[GT_LIST_GRAPH] != NULL)
		fprintf(stderr, "graftrace record: no function of --graph was called meanwhile: a "
				"call that had begun before is not seen\n");
	else if (choice->settings.threshold_ns != 0)
		fprintf(stderr,
			"graftrace record: no call took as long as --threshold meanwhile\n");
	else
		fprintf(stderr,
			"graftrace record: no traced function was called meanwhile: the process "
			"may "
			"wait, or work in libraries (--libs)%s\n",
			options->children ? "" : " or in its children (--children)");
}

bool gt_record_report_damage(const struct gt_session_totals *totals, unsigned which, char *text,
			     size_t room)
{
	char number[32];

	text[0] = '\0';
	if (which == 0 && totals->damaged > 0)
		snprintf(text, room,
			 "somebody has written over the recorder's memory. The numbers of %s "
			 "thread%s cannot be right and are left out (the first: thread %u of "
			 "process %u)",
			 grouped(totals->damaged, number), totals->damaged == 1 ? "" : "s",
			 totals->damaged_first.tid, totals->damaged_first.pid);
	if (which == 1 && totals->corrupt > 0)
		snprintf(text, room, "%s sub-buffer%s thrown away, which somebody has written over",
			 grouped(totals->corrupt, number),
			 totals->corrupt == 1 ? " was" : "s were");
	return which < 2;
}

/* Every traced process can write into the recorder's memory. */
static void report_damaged(const struct gt_session_totals *totals)
{
	char number[32];
	char text[256];

	for (unsigned i = 0; gt_record_report_damage(totals, i, text, sizeof(text)); i++)
		if (text[0] != '\0')
			fprintf(stderr, "graftrace: the trace is damaged: %s\n", text);
	if (totals->actions_left > 0)
		fprintf(stderr,
			"graftrace: %s dump%s or snapshots were left out: too many in a second\n",
			grouped(totals->actions_left, number),
			totals->actions_left == 1 ? "" : "s");
}

static const char *why_full(const struct gt_session_totals *totals,
			    const struct gt_record_options *options)
{
	if (totals->pool_is_held)
		return "lost because the threads that live at a time hold a part of the buffer "
		       "each, and there were more of them: a larger --buffer-size has more parts";
	if (options->choice.overwrite)
		return "lost because the ring was full of what was just being written: a larger "
		       "--buffer-size helps";
	if (options->serve != NULL)
		return "lost because the ring was full: a larger --buffer-size keeps more, "
		       "--overwrite the newest, --filter only what matters";
	return "lost because the file was slower than the program: a larger --buffer-size, "
	       "--filter or --no-compress helps";
}

void gt_record_report_file(const char *path, uint64_t bytes)
{
	char size[32];

	fprintf(stderr, "graftrace: %s (%s)\n", path, of_bytes(bytes, size));
}

/* Some reasons hold in every process. */
static bool is_usual(uint32_t reason)
{
	return reason == GT_REASON_START || reason == GT_REASON_SIGNAL_RETURN ||
	       reason == GT_REASON_OWN_CALLS;
}

bool gt_record_report_places(struct gt_session *session, char *option, size_t room)
{
	struct gt_syscall_places places;
	uint32_t left = 0, unusual = 0;
	char text[400] = "";
	size_t used = 0;

	gt_session_syscall_places(session, &places);
	for (uint32_t i = 0; i < GT_REASON_COUNT; i++) {
		if (places.left[i] == 0)
			continue;
		left += places.left[i];
		unusual += is_usual(i) ? 0 : places.left[i];
		if (used < sizeof(text) - 1)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u: %s",
						 used != 0 ? "; " : "", places.left[i],
						 gt_plan_reason_text((enum gt_plan_reason)i));
	}
	if (places.refused != NULL)
		gt_complain("record", "no system calls of process %d are recorded: %s", places.pid,
			    places.refused);
	snprintf(option, room, "syscalls=not seen at %u of %u places (%s)", left,
		 left + places.taken, text);
	if (unusual != 0)
		gt_complain("record", "system calls are %s", option + strlen("syscalls="));
	return left != 0;
}

void gt_record_report_end(const struct gt_session_totals *totals,
			  const struct gt_record_options *options, const char *path,
			  uint64_t file_bytes, uint64_t missed)
{
	char line[1024];
	char calls[32];
	char what[48];
	char threads[32];
	char lost_text[32];
	char size[32];
	char left[64] = "";
	uint64_t lost = graftrace_lost_calls(totals->lost) + missed;

	if (options->choice.settings.tracer == GRAFTRACE_TRACER_NOP && totals->calls == 0 &&
	    totals->words > 0)
		snprintf(what, sizeof(what), "events alone");
	else
		snprintf(what, sizeof(what), "%s call%s", grouped(totals->calls, calls),
			 totals->calls == 1 ? "" : "s");
	snprintf(line, sizeof(line), "%s, %s thread%s, %.3f s, %s lost, ", what,
		 grouped(totals->threads, threads), totals->threads == 1 ? "" : "s",
		 (double)totals->ns / 1e9, grouped(lost, lost_text));
	if (options->pid_count > 0 && totals->left_ns > 0)
		snprintf(left, sizeof(left), ", left in stops of %.1f ms at most",
			 (double)totals->left_ns / 1e6);
	if (path != NULL)
		fprintf(stderr, "graftrace: %s%s (%s)%s\n", line, path, of_bytes(file_bytes, size),
			left);
	else
		fprintf(stderr, "graftrace: %sno recording\n", line);

	if (totals->calls == 0 && options->pid_count > 0 && path != NULL)
		report_empty(options);
	if (totals->entries_only != NULL)
		fprintf(stderr, "graftrace: only entries, without returns: %s\n",
			totals->entries_only);
	if (totals->attached_anew != 0)
		fprintf(stderr,
			"graftrace: %" PRIu32
			" process%s with several threads changed %s credentials: what %s "
			"called while given memory of %s own is not recorded\n",
			totals->attached_anew, totals->attached_anew == 1 ? "" : "es",
			totals->attached_anew == 1 ? "its" : "their",
			totals->attached_anew == 1 ? "it" : "they",
			totals->attached_anew == 1 ? "its" : "their");
	if (totals->no_breakpoints != NULL)
		fprintf(stderr, "graftrace: no breakpoints: %s\n", totals->no_breakpoints);
	report_lost(missed, "lost because the file could not be written");
	report_lost(totals->lost[GRAFTRACE_LOST_FULL], why_full(totals, options));
	if (totals->lost_events != 0)
		fprintf(stderr, "graftrace: %llu event%s lost: %s\n",
			(unsigned long long)totals->lost_events,
			totals->lost_events == 1 ? "" : "s", why_full(totals, options));
	report_lost(totals->lost[GRAFTRACE_LOST_OVERRUN_CALLS],
		    "overwritten by newer ones: a larger --buffer-size keeps more");
	report_lost(totals->lost[GRAFTRACE_LOST_WINDOW],
		    "recorded without their returns, on stacks "
		    "that have no room beside them for return "
		    "addresses");
	report_lost(
		totals->lost[GRAFTRACE_LOST_DEPTH],
		"lost because they were nested too deeply: --max-graph-depth or --filter helps");
	report_lost(totals->lost[GRAFTRACE_LOST_LATE],
		    "lost because signal handlers that had interrupted them ran too long");
	report_lost(totals->lost[GRAFTRACE_LOST_STREAM],
		    "lost because more threads lived at a time than can be followed");
	report_damaged(totals);
}
