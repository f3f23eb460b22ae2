/* SPDX-License-Identifier: MIT */
/*
 * The namespace for trace-cmd. trace-cmd searches /proc/mounts for a file system of type tracefs,
 * and mounts one itself if it finds none: so a tracefs has to be mounted below our directory.
 */
#define _GNU_SOURCE
#include "cli/mount_enter.h"

#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/running.h"

#define TRACING	       "/sys/kernel/tracing"
#define FTRACE_ENABLED "/proc/sys/kernel/ftrace_enabled"
#define DEBUG	       "/sys/kernel/debug/tracing"

static int refuse(const char *command, const char *what, const char *path)
{
	gt_complain(command, "%s '%s': %s%s", what, path, strerror(errno),
		    errno == EPERM ? " (as root it works)" : "");
	return GT_EXIT_FAILED;
}

/* trace-cmd takes the first tracefs of the list. So there must be none at another place, or ours
 * is mounted over it where the namespace has no permission to unmount it. *here: it is mounted
 * at our place. */
static bool hide_others(const char *directory, bool *here)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	char text[2 * PATH_MAX];
	struct mntent entry;
	bool hidden = true;

	*here = false;
	while (mounts != NULL && getmntent_r(mounts, &entry, text, sizeof(text)) != NULL) {
		if (strcmp(entry.mnt_type, "tracefs") != 0)
			continue;
		if (strcmp(entry.mnt_dir, TRACING) == 0)
			*here = true;
		else
			hidden &= umount2(entry.mnt_dir, MNT_DETACH) == 0 ||
				  mount(directory, entry.mnt_dir, NULL, MS_BIND, NULL) == 0;
	}
	if (mounts != NULL)
		endmntent(mounts);
	return hidden;
}

/* Mounts a file of ours over one of /proc, if both exist. */
static bool put(const char *directory, const char *name, const char *place)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return false;
	return access(path, F_OK) != 0 || access(place, F_OK) != 0 ||
	       mount(path, place, NULL, MS_BIND, NULL) == 0;
}

int gt_mount_enter(const char *command, const char *directory, char *const *argv)
{
	char trace[PATH_MAX];
	bool here;

	snprintf(trace, sizeof(trace), "%s/current_tracer", directory);
	if (access(trace, F_OK) != 0) {
		gt_complain(command, "'%s' is no directory of control files: %s", directory,
			    strerror(errno));
		return GT_EXIT_FAILED;
	}
	if (unshare(CLONE_NEWNS) != 0)
		return refuse(command, "cannot make a mount namespace for", directory);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return refuse(command, "cannot make private", "/");
	if (!hide_others(directory, &here))
		return refuse(command, "cannot hide the kernel's own files from", argv[0]);
	if (!here && mount("tracefs", TRACING, "tracefs", 0, NULL) != 0)
		return refuse(command, "cannot mount a tracefs on", TRACING);
	if (mount(directory, TRACING, NULL, MS_BIND, NULL) != 0)
		return refuse(command, "cannot put the control files at", TRACING);
	if (access(DEBUG, F_OK) == 0 && mount(directory, DEBUG, NULL, MS_BIND, NULL) != 0)
		return refuse(command, "cannot put the control files at", DEBUG);
	if (!put(directory, "kallsyms", "/proc/kallsyms"))
		return refuse(command, "cannot put kallsyms at", "/proc/kallsyms");
	/* trace-cmd would switch the kernel's function tracing on here: give it a switch without
	 * effect. */
	if (!put(directory, "options/test_nop_accept", FTRACE_ENABLED))
		return refuse(command, "cannot put options/test_nop_accept at", FTRACE_ENABLED);
	execvp(argv[0], argv);
	gt_complain(command, "cannot run '%s': %s", argv[0], strerror(errno));
	return errno == ENOENT ? GT_RUN_NO_PROGRAM : GT_RUN_CANNOT_RUN;
}
