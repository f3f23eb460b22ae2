/* SPDX-License-Identifier: MIT */
/*
 * The crash report at the end of a recording. It is made from the file, which has everything in
 * every mode; a pipe or a device cannot be read back, so there is no report then.
 */
#include "cli/record_crash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cli/command.h"
#include "cli/stop_when.h"
#include "export/open_calls.h"
#include "read/recording.h"

/* The number that fits a screen; `graftrace report --crash` shows all. */
#define PROCESSES 4
#define THREADS	  8
#define CALLS	  24

static void report(struct gt_recording *recording, const struct gt_session_death *death)
{
	struct gt_message message = { "" };
	struct gt_open_calls *open;
	char name[64];
	char *text;
	size_t bytes;

	if (gt_open_calls_make(gt_recording_target(recording), (uint32_t)death->pid, &open,
			       &message) != 0)
		return;
	if (gt_open_calls_format(open, THREADS, CALLS, &text, &bytes) == 0) {
		fprintf(stderr, "graftrace: process %d died of %s; open were, innermost last:\n%s",
			(int)death->pid, gt_stop_signal_name(death->signal, name, sizeof(name)),
			text);
		free(text);
	}
	gt_open_calls_destroy(open);
}

void gt_record_report_crash(struct gt_session *session, const char *path)
{
	struct gt_session_death deaths[GT_SESSION_DEATHS + 1];
	uint32_t count = gt_session_deaths(session, deaths, GT_SESSION_DEATHS), kept = 0;
	int status = gt_session_exit_status(session);
	struct gt_recording *recording;
	struct stat file;

	for (uint32_t i = 0; i < count; i++)
		if (deaths[i].pid != gt_session_pid(session) &&
		    gt_signal_is_crash(deaths[i].signal) && kept < PROCESSES - 1)
			deaths[kept++] = deaths[i];
	if (WIFSIGNALED(status) && gt_signal_is_crash(WTERMSIG(status)))
		deaths[kept++] = (struct gt_session_death){ .pid = gt_session_pid(session),
							    .signal = WTERMSIG(status) };
	if (kept == 0 || stat(path, &file) != 0 || !S_ISREG(file.st_mode) ||
	    gt_recording_open(path, &recording, NULL) != 0)
		return;
	for (uint32_t i = 0; i < kept; i++)
		report(recording, &deaths[i]);
	gt_recording_close(recording);
}
