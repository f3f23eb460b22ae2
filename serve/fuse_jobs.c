/* SPDX-License-Identifier: MIT */
/*
 * Requests on their way to the working thread: the queue, and the early answers to threads of traced
 * programs. Both of the mount's threads are here; fuse->lock guards the queue.
 */
#define _GNU_SOURCE
#include "serve/fuse_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/process/clock.h"
#include "attach/process/proc.h"

#define AGENT_MAPPING "/memfd:graftrace" /* in the maps of a traced process */

int gt_fuse_errno(int64_t error)
{
	switch (error) {
	case GT_ENOMEM:
		return ENOMEM;
	case GT_EINVAL:
		return EINVAL;
	case GT_ENOENT:
		return ENOENT;
	case GT_EPERM:
		return EPERM;
	case GT_EBUSY:
		return EBUSY;
	case GT_EAGAIN:
		return EAGAIN;
	case GT_EGONE:
		return ENODEV;
	case GT_ENOTSUP:
		return EOPNOTSUPP;
	case GT_ENOSPC:
		return ENOSPC;
	case GT_EEXIST:
		return EEXIST;
	case GT_EBADF:
		return EBADF;
	case GT_ERANGE:
		return ERANGE;
	case GT_ENODEV:
		return ENODEV;
	case GT_ESRCH:
		return ESRCH;
	case GT_EDOM:
		return EDOM;
	default:
		return EIO;
	}
}

struct gt_fuse_job *gt_fuse_job_make(struct gt_fuse *fuse, enum gt_fuse_work work,
				     fuse_req_t request, struct fuse_file_info *info,
				     size_t data_bytes)
{
	struct gt_fuse_job *job = calloc(1, sizeof(*job) + data_bytes);

	if (job == NULL) {
		fuse_reply_err(request, ENOMEM);
		return NULL;
	}
	job->work = work;
	job->request = request;
	job->thread = fuse_req_ctx(request)->pid;
	job->fuse = fuse;
	job->info = *info;
	job->file = (struct gt_fuse_file *)(uintptr_t)info->fh;
	job->bytes = data_bytes;
	return job;
}

void gt_fuse_job_drop(struct gt_fuse_job *job)
{
	if (job->poll != NULL)
		fuse_pollhandle_destroy(job->poll);
	free(job);
}

bool gt_fuse_claim(struct gt_fuse_job *job)
{
	bool claimed;

	pthread_mutex_lock(&job->fuse->lock);
	claimed = !job->answered;
	job->answered = true;
	pthread_mutex_unlock(&job->fuse->lock);
	return claimed;
}

/* Is our agent in that thread's process? */
static bool is_traced(pid_t thread)
{
	char path[64];
	char line[512];
	bool found = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)thread);
	maps = fopen(path, "re");
	while (maps != NULL && !found && fgets(line, sizeof(line), maps) != NULL)
		found = strstr(line, AGENT_MAPPING) != NULL;
	if (maps != NULL)
		fclose(maps);
	return found;
}

/* Has a change been under way for long? The functions below are called with the lock. */
static bool takes_long(const struct gt_fuse *fuse)
{
	return fuse->running != NULL &&
	       gt_monotonic_ms() - fuse->running_since_ms >= GT_FUSE_LONG_MS;
}

/* The next job in line: first the running change, then all jobs that wait for its end, parked
 * reads last. */
static struct gt_fuse_job *behind(const struct gt_fuse *fuse, const struct gt_fuse_job *job)
{
	struct gt_fuse_job *next = job == fuse->running ? fuse->first : job->next;

	return next == NULL && !job->parked ? fuse->parked : next;
}

/* Is the job still in line? Only the receiving thread makes jobs, so one that it has seen and
 * does not find any more is done. */
static bool is_in_line(const struct gt_fuse *fuse, const struct gt_fuse_job *job)
{
	const struct gt_fuse_job *other = fuse->running;

	while (other != NULL && other != job)
		other = behind(fuse, other);
	return other != NULL;
}

/* Finds a job of which it is not known yet whether a traced thread sent it. */
static struct gt_fuse_job *find_unknown(const struct gt_fuse *fuse)
{
	struct gt_fuse_job *job = fuse->running;

	while (job != NULL && (job->answered || job->looked))
		job = behind(fuse, job);
	return job;
}

/* Is the thread traced by ptrace? Then a tracer's stop interrupts its system call, not a signal
 * of its own. */
static bool is_being_stopped(pid_t thread)
{
	char text[1024];

	return gt_proc_read(text, sizeof(text), "/proc/%d/status", (int)thread) &&
	       gt_proc_field(text, "TracerPid") > 0;
}

/* Answers a job of a traced thread that waits in the kernel. Returns true if the job need not be
 * carried out any more. */
static bool answer_early(struct gt_fuse *fuse, struct gt_fuse_job *job)
{
	if (job == fuse->running || job->work == GT_FUSE_FLUSH || job->work == GT_FUSE_RELEASE) {
		job->answered = true;
		if (job->work == GT_FUSE_WRITE)
			fuse_reply_write(job->request, job->bytes);
		else
			fuse_reply_err(job->request, 0);
		return false;
	}
	/* The job has not begun, so EINTR is the answer: the thread repeats its call after our
	 * stop. poll() would return it as an error. */
	if (job->work == GT_FUSE_POLL || !fuse_req_interrupted(job->request) ||
	    !is_being_stopped(job->thread))
		return false;
	fuse_reply_err(job->request, EINTR);
	return true;
}

/* Takes a job out of the line that need not be carried out. */
static void leave_line(struct gt_fuse *fuse, struct gt_fuse_job *job)
{
	struct gt_fuse_job **link = job->parked ? &fuse->parked : &fuse->first, *before = NULL;

	while (*link != job) {
		before = *link;
		link = &before->next;
	}
	*link = job->next;
	if (fuse->last == job)
		fuse->last = before;
	if (job->changes)
		atomic_fetch_sub(&fuse->changing, 1);
}

/* Names that the kernel has looked up before: as they were found then. Without the lock: the answer may
 * have to wait for a read. */
static void answer_known(struct gt_fuse *fuse, struct gt_fuse_job *known)
{
	while (known != NULL) {
		struct gt_fuse_job *job = known;

		known = job->next;
		gt_fuse_answer_known(fuse, job);
		gt_fuse_job_drop(job);
	}
}

/* A traced program may change its own tracing through the mount. For that its threads have to
 * stop, and a thread that waits for an answer of the mount cannot stop. So while a change takes
 * long, requests of traced threads are answered early: the change itself and closes with success
 * (errors are found before), names that the kernel has looked up before as they were found then, the
 * others with EINTR once our stop interrupts them. Called by the receiving thread. */
void gt_fuse_answer_traced(struct gt_fuse *fuse)
{
	struct gt_fuse_job *job, *next, *known = NULL;

	pthread_mutex_lock(&fuse->lock);
	while (takes_long(fuse) && (job = find_unknown(fuse)) != NULL) {
		pid_t thread = job->thread;
		bool traced;

		pthread_mutex_unlock(&fuse->lock);
		traced = is_traced(thread);
		pthread_mutex_lock(&fuse->lock);
		if (!is_in_line(fuse, job))
			continue;
		job->looked = true;
		job->traced = traced;
	}
	for (job = takes_long(fuse) ? fuse->running : NULL; job != NULL; job = next) {
		next = behind(fuse, job);
		if (!job->traced || job->answered)
			continue;
		if (gt_fuse_is_known(fuse, job)) {
			leave_line(fuse, job);
			job->next = known;
			known = job;
		} else if (answer_early(fuse, job)) {
			leave_line(fuse, job);
			if (job->work == GT_FUSE_OPEN)
				free(job->file);
			gt_fuse_job_drop(job);
		}
	}
	pthread_mutex_unlock(&fuse->lock);
	answer_known(fuse, known);
}

/* Note that a job that changes something begins, and that it has ended. */

void gt_fuse_begin_change(struct gt_fuse *fuse, struct gt_fuse_job *job)
{
	pthread_mutex_lock(&fuse->lock);
	fuse->running = job;
	fuse->running_since_ms = gt_monotonic_ms();
	pthread_mutex_unlock(&fuse->lock);
}

void gt_fuse_end_change(struct gt_fuse *fuse)
{
	pthread_mutex_lock(&fuse->lock);
	fuse->running = NULL;
	pthread_mutex_unlock(&fuse->lock);
	atomic_fetch_sub(&fuse->changing, 1);
}

void gt_fuse_push(struct gt_fuse *fuse, struct gt_fuse_job *job)
{
	job->changes = job->work == GT_FUSE_WRITE || job->work == GT_FUSE_FLUSH ||
		       job->work == GT_FUSE_RELEASE || job->work == GT_FUSE_REMOVE;
	if (job->changes)
		atomic_fetch_add(&fuse->changing, 1);
	pthread_mutex_lock(&fuse->lock);
	if (fuse->last != NULL)
		fuse->last->next = job;
	else
		fuse->first = job;
	fuse->last = job;
	pthread_cond_signal(&fuse->more);
	pthread_mutex_unlock(&fuse->lock);
}
