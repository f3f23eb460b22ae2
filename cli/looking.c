/* SPDX-License-Identifier: MIT */
/*
 * Opens recordings for the commands that only read them, and chooses where their text goes.
 */
#define _GNU_SOURCE
#include "cli/looking.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "core/trace/message.h"
#include "linux/beside.h"
#include "linux/trace_dat.h"
#include "linux/trace_text.h"

/* Reports lost records of the kernel at once. */
static void tell_kernel(const char *command, const char *path, const struct gt_linux_notes *notes)
{
	if (notes->lost)
		gt_complain(command, "'%s': %llu records were lost: the kernel's buffer was full",
			    path, (unsigned long long)notes->lost);
	if (notes->unknown_losses)
		gt_complain(command,
			    "'%s': in %llu places records were lost, nobody knows how many", path,
			    (unsigned long long)notes->unknown_losses);
	if (notes->damaged)
		gt_complain(command, "'%s': %llu records make no sense and are left out", path,
			    (unsigned long long)notes->damaged);
	if (notes->lines)
		gt_complain(command, "'%s': %llu lines are none that are understood", path,
			    (unsigned long long)notes->lines);
	if (notes->unknown)
		gt_complain(command, "'%s': %llu records of events without a format are left out",
			    path, (unsigned long long)notes->unknown);
}

/* Merges the kernel's part of a recording into the program's, or puts it in its place. If that fails, the
 * program's part alone is shown where both are wanted. */
static int put_beside(const char *command, const char *path, bool kernel_only,
		      struct gt_recording **recording, struct gt_message *message)
{
	struct gt_linux_notes notes = { 0 };
	struct gt_recording *both;
	const int error = (kernel_only ? gt_beside_open_kernel : gt_beside_open)(path, &both,
										 &notes, message);

	if (error != 0 && kernel_only)
		return error;
	if (error != 0) {
		gt_complain(command, "%s: what the kernel recorded is left out", message->text);
		return 0;
	}
	tell_kernel(command, path, &notes);
	gt_recording_close(*recording);
	*recording = both;
	return 0;
}

struct gt_recording *gt_look_open(const char *command, const char *path)
{
	return gt_look_open_parts(command, path, 0);
}

/* Does the file lack the one part that is wanted? */
static bool lacks_part(const char *path, struct gt_recording *recording, unsigned parts,
		       struct gt_message *message)
{
	bool is_linux = gt_is_trace_dat_path(path);

	if (parts && gt_is_trace_text_path(path))
		gt_message_set(message,
			       "'%s' is a text, which does not say whose functions are which",
			       path);
	else if (parts == GT_LOOK_USER && is_linux)
		gt_message_set(message, "--user: '%s' has the kernel's records only", path);
	else if (parts == GT_LOOK_KERNEL && !is_linux && !gt_has_linux(recording))
		gt_message_set(message,
			       "--kernel: nothing of the kernel is in '%s'; 'graftrace record "
			       "--kernel' puts it there",
			       path);
	else
		return false;
	return true;
}

struct gt_recording *gt_look_open_parts(const char *command, const char *path, unsigned parts)
{
	struct gt_recording *recording;
	struct gt_message message = { "" };
	struct gt_linux_notes notes = { 0 };
	int error = gt_is_trace_dat_path(path)
			    ? gt_trace_dat_open(path, &recording, &notes, &message)
		    : gt_is_trace_text_path(path)
			    ? gt_trace_text_open(path, &recording, &notes, &message)
			    : gt_recording_open(path, &recording, &message);
	if (error == 0 && lacks_part(path, recording, parts, &message)) {
		gt_recording_close(recording);
		error = GT_EINVAL;
	}
	if (error == 0)
		tell_kernel(command, path, &notes);
	if (error == 0 && parts != GT_LOOK_USER && gt_has_linux(recording)) {
		error = put_beside(command, path, parts == GT_LOOK_KERNEL, &recording, &message);
		if (error != 0)
			gt_recording_close(recording);
	}
	if (error == 0)
		return recording;
	if (error == GT_ENOENT && strcmp(path, GT_DEFAULT_RECORDING) == 0)
		gt_complain(command, "%s; 'graftrace record PROGRAM' makes it", message.text);
	else
		gt_complain(command, "%s", message.text);
	return NULL;
}

static void tell_switches(const char *command, const char *path, struct gt_recording *recording)
{
	const struct gt_recording_info *info = gt_recording_info(recording);
	struct gt_target *target = gt_recording_target(recording);
	uint64_t start = gt_look_start_ns(recording), known;

	if (info->switches_lost)
		gt_complain(command,
			    "'%s': %llu context switches are missing, which the kernel had no room "
			    "for: threads were longer off the CPU than is told",
			    path, (unsigned long long)info->switches_lost);
	known = gt_clock_ns(&target->clock, info->switches_start);
	if (info->has_switches && start && known > start)
		gt_complain(command,
			    "'%s': only the newest context switches were kept, those from %.6f s "
			    "after the beginning on: before that all time counts as on the CPU",
			    path, (double)(known - start) / 1e9);
}

int gt_look_tell(const char *command, const char *path, struct gt_recording *recording)
{
	static const char *const causes[GRAFTRACE_LOST_CAUSES] = {
		[GRAFTRACE_LOST_FULL] = "the buffer was full",
		[GRAFTRACE_LOST_DEPTH] = "they were nested too deep",
		[GRAFTRACE_LOST_OVERRUN_CALLS] = "newer ones took their place (--overwrite)",
		[GRAFTRACE_LOST_LATE] = "signal handlers that had interrupted them ran too long",
		[GRAFTRACE_LOST_STREAM] = "there were too many threads at a time",
		[GRAFTRACE_LOST_PROFILE] = "the function profiler had no room for them",
	};
	const struct gt_recording_info *info = gt_recording_info(recording);
	const char *problem;

	for (uint32_t i = 0; (problem = gt_recording_problem(recording, i)) != NULL; i++)
		gt_complain(command, "'%s': %s", path, problem);
	for (uint32_t i = 0; info->options != NULL && info->options[i] != NULL; i++)
		if (strncmp(info->options[i], "untraced=", 9) == 0)
			gt_complain(command, "'%s': ran untraced: %s", path, info->options[i] + 9);
		else if (strncmp(info->options[i], "damaged=", 8) == 0)
			gt_complain(command, "'%s': the trace is damaged: %s", path,
				    info->options[i] + 8);
	for (unsigned i = 0; i < GRAFTRACE_LOST_CAUSES; i++)
		if (info->lost[i] && causes[i] != NULL)
			gt_complain(command, "'%s': %llu calls were lost: %s", path,
				    (unsigned long long)info->lost[i], causes[i]);
	if (info->lost[GRAFTRACE_LOST_WINDOW])
		gt_complain(command,
			    "'%s': %llu calls are there without their returns: no mirror of the "
			    "stack could be had",
			    path, (unsigned long long)info->lost[GRAFTRACE_LOST_WINDOW]);
	/* before version 1.1 of the format, lost calls were not counted among the records */
	if (info->lost[GRAFTRACE_LOST_OVERRUN] && !info->lost[GRAFTRACE_LOST_OVERRUN_CALLS])
		gt_complain(command,
			    "'%s': %llu records of calls and returns were lost: newer ones took "
			    "their place (--overwrite)",
			    path, (unsigned long long)info->lost[GRAFTRACE_LOST_OVERRUN]);
	tell_switches(command, path, recording);
	return gt_recording_damaged(recording) ? GT_EXIT_FAILED : GT_EXIT_DONE;
}

uint64_t gt_look_start_ns(struct gt_recording *recording)
{
	struct gt_target *target = gt_recording_target(recording);
	uint64_t start = gt_target_first_start(target, 0);
	return start == UINT64_MAX ? 0 : gt_clock_ns(&target->clock, start);
}

/* Finds the build ID of the object that has the function's address; where processes have
 * different objects there, of any with that path. */
static void find_build(void *user, const struct gt_function *function, char id[GT_BUILD_BYTES])
{
	struct gt_recording_object object, best = { .build_id_bytes = 0 };
	bool sure = false;

	for (uint32_t i = 0; !sure && gt_recording_object(user, i, &object) == 0; i++) {
		if (strcmp(object.path, function->object) != 0)
			continue;
		sure = function->address >= object.start && function->address < object.end;
		if (sure || best.build_id_bytes == 0)
			best = object;
	}
	for (uint32_t i = 0; i < best.build_id_bytes && 2 * i + 2 < GT_BUILD_BYTES; i++)
		snprintf(id + 2 * i, 3, "%02x", best.build_id[i]);
}

void gt_look_describe(struct gt_export_about *about, struct gt_recording *recording)
{
	const struct gt_recording_info *info = gt_recording_info(recording);
	struct gt_target *target = gt_recording_target(recording);
	const uint64_t first = gt_target_first_start(target, 0);

	*about = (struct gt_export_about){
		.command_line = info->command_line,
		.program = info->program,
		.host = info->host,
		.made_by = "graftrace " GRAFTRACE_VERSION,
		.realtime_ns = info->realtime_ns,
		.start = first == UINT64_MAX ? 0 : first,
		.is_kernel = gt_target_is_kernel(target),
		.build = find_build,
		.build_user = recording,
	};
}

int gt_look_color(const char *when, int fd, bool *color, struct gt_message *message)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	if (strcmp(when, "always") == 0) {
		*color = true;
	} else if (strcmp(when, "never") == 0) {
		*color = false;
	} else if (strcmp(when, "auto") == 0) {
		*color = isatty(fd) && !(no_color != NULL && *no_color) && term != NULL &&
			 strcmp(term, "dumb") != 0;
	} else {
		return gt_fail(message, GT_EINVAL, "color '%s' is none of auto, always, never",
			       when);
	}
	return 0;
}

int gt_look_names(const char *which, int fd, bool *brief, struct gt_message *message)
{
	*brief = which != NULL ? strcmp(which, "short") == 0 : isatty(fd);
	if (which != NULL && !*brief && strcmp(which, "full") != 0)
		return gt_fail(message, GT_EINVAL, "--names '%s' is none of short, full", which);
	return 0;
}

uint32_t gt_look_width_of(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

uint32_t gt_look_width(void)
{
	return gt_look_width_of(STDOUT_FILENO);
}

void gt_look_headline(struct gt_recording *recording, const char *path, char *line, size_t bytes)
{
	const struct gt_recording_info *info = gt_recording_info(recording);
	const char *command = info->command_line[0] ? info->command_line : info->program;
	time_t seconds = (time_t)(info->realtime_ns / 1000000000);
	char when[64] = "";
	struct tm local;

	if (info->realtime_ns != 0 && localtime_r(&seconds, &local) != NULL)
		strftime(when, sizeof(when), " of %Y-%m-%d %H:%M:%S", &local);
	snprintf(line, bytes, "%.300s: %.200s%s", command[0] ? command : "?", path, when);
	for (char *at = line; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
}

const char *gt_look_propose(struct gt_recording *recording, const char *word,
			    char text[GT_LOOK_PROPOSAL_BYTES])
{
	struct gt_target *target = gt_recording_target(recording);
	uint32_t end = gt_recording_function_end(recording);
	struct gt_proposal nearest = { .word = NULL };
	struct gt_function function;

	text[0] = '\0';
	for (uint32_t i = 1; word != NULL && i < end; i++) {
		if (gt_target_function(target, i, &function) != 0 || function.name == NULL)
			continue;
		if (strcmp(function.name, word) == 0)
			return text;
		gt_propose(&nearest, word, function.name);
	}
	if (nearest.word != NULL)
		snprintf(text, GT_LOOK_PROPOSAL_BYTES, "; did you mean '%.120s'?", nearest.word);
	return text;
}

void gt_look_begin(struct gt_recording *recording, const char *path, int fd)
{
	char line[640];

	if (!isatty(STDOUT_FILENO))
		return;
	gt_look_headline(recording, path, line, sizeof(line));
	gt_look_write(fd, "# ", 2);
	gt_look_write(fd, line, strlen(line));
	gt_look_write(fd, "\n", 1);
}

void gt_pager_start(struct gt_pager *pager, bool wanted)
{
	const char *program = getenv("GRAFTRACE_PAGER");
	int ends[2];

	pager->fd = STDOUT_FILENO;
	pager->pid = 0;
	if (program == NULL)
		program = getenv("PAGER");
	if (program == NULL)
		program = "less";
	if (!wanted || !isatty(STDOUT_FILENO) || !*program || strcmp(program, "cat") == 0 ||
	    pipe2(ends, O_CLOEXEC) != 0)
		return;
	fflush(NULL);
	pid_t pid = fork();
	if (pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return;
	}
	if (pid == 0) {
		dup2(ends[0], STDIN_FILENO);
		setenv("LESS", "FRSX", 0);
		execl("/bin/sh", "sh", "-c", program, (char *)NULL);
		_exit(127);
	}
	close(ends[0]);
	/* Ctrl-C is for the pager: it ends a search there. This process goes on writing. */
	signal(SIGINT, SIG_IGN);
	pager->fd = ends[1];
	pager->pid = pid;
}

void gt_pager_stop(struct gt_pager *pager)
{
	int status;
	if (!pager->pid)
		return;
	close(pager->fd);
	while (waitpid(pager->pid, &status, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, SIG_DFL);
	pager->pid = 0;
}

int gt_look_write(int fd, const char *bytes, size_t count)
{
	while (count) {
		ssize_t wrote = write(fd, bytes, count);
		if (wrote < 0) {
			if (errno == EINTR)
				continue;
			return errno == EPIPE ? 1 : GT_EIO;
		}
		bytes += wrote;
		count -= (size_t)wrote;
	}
	return 0;
}
