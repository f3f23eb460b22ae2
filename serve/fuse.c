/* SPDX-License-Identifier: MIT */
/*
 * The mount and its threads. Guarantees: requests are carried out in the order in which the kernel
 * sent them, except for reads without data yet; those are parked, without a thread, until there is
 * data, the reader gets a signal, or the mount ends. Nothing here writes to stdout or stderr:
 * libfuse's messages are put into ours.
 */
#define _GNU_SOURCE
#include "serve/fuse_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/host/own_thread.h"
#include "core/trace/message.h"

#define WAIT_MS 10 /* interval at which the working thread tries parked reads again */

/* The last message of libfuse, which has one log for all mounts. */
static struct {
	pthread_mutex_t lock;
	char text[256];
} said = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void take_words(enum fuse_log_level level, const char *format, va_list arguments)
{
	if (level > FUSE_LOG_ERR)
		return;
	pthread_mutex_lock(&said.lock);
	vsnprintf(said.text, sizeof(said.text), format, arguments);
	said.text[strcspn(said.text, "\n")] = '\0';
	pthread_mutex_unlock(&said.lock);
}

static void park(struct gt_fuse *fuse, struct gt_fuse_job *job)
{
	struct gt_fuse_job **link = &fuse->parked;

	while (*link != NULL)
		link = &(*link)->next;
	job->next = NULL;
	job->parked = true;
	*link = job;
}

static void look_parked(struct gt_fuse *fuse)
{
	struct gt_fuse_job **link = &fuse->parked;
	struct gt_fuse_job *job;

	while ((job = *link) != NULL) {
		/* The reader has got a signal. */
		if (fuse_req_interrupted(job->request)) {
			fuse_reply_err(job->request, EINTR);
		} else if (!gt_fuse_do(fuse, job)) {
			link = &job->next;
			continue;
		}
		*link = job->next;
		gt_fuse_job_drop(job);
	}
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* Tries the parked and polled reads again, if it is time. */
static void look(struct gt_fuse *fuse)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (is_before(&now, &fuse->next_look))
		return;
	look_parked(fuse);
	gt_fuse_look_polled(fuse);
	now.tv_nsec += WAIT_MS * 1000000L;
	if (now.tv_nsec >= 1000000000L) {
		now.tv_sec++;
		now.tv_nsec -= 1000000000L;
	}
	fuse->next_look = now;
}

/* Waits for a job or, if reads are parked or polled, until it is time to try them again. NULL:
 * no job. */
static struct gt_fuse_job *next_job(struct gt_fuse *fuse, bool *stopping)
{
	bool waiting = fuse->parked != NULL || fuse->polled != NULL;
	struct gt_fuse_job *job;

	pthread_mutex_lock(&fuse->lock);
	while (fuse->first == NULL && !fuse->stopping) {
		if (!waiting)
			pthread_cond_wait(&fuse->more, &fuse->lock);
		else if (pthread_cond_timedwait(&fuse->more, &fuse->lock, &fuse->next_look) != 0)
			break;
	}
	job = fuse->first;
	if (job != NULL) {
		fuse->first = job->next;
		if (fuse->first == NULL)
			fuse->last = NULL;
		job->next = NULL;
	}
	*stopping = fuse->stopping;
	pthread_mutex_unlock(&fuse->lock);
	return job;
}

static void *work(void *data)
{
	struct gt_fuse *fuse = data;
	bool stopping = false;

	for (;;) {
		struct gt_fuse_job *job = next_job(fuse, &stopping);

		if (job == NULL && stopping)
			break;
		if (job != NULL && job->changes) {
			gt_fuse_begin_change(fuse, job);
			gt_fuse_do(fuse, job);
			gt_fuse_end_change(fuse);
			gt_fuse_job_drop(job);
		} else if (job != NULL && gt_fuse_do(fuse, job)) {
			gt_fuse_job_drop(job);
		} else if (job != NULL) {
			park(fuse, job);
		}
		if (fuse->parked != NULL || fuse->polled != NULL)
			look(fuse);
	}
	while (fuse->parked != NULL) {
		struct gt_fuse_job *job = fuse->parked;

		fuse->parked = job->next;
		fuse_reply_err(job->request, ENODEV);
		gt_fuse_job_drop(job);
	}
	gt_fuse_close_files(fuse);
	return NULL;
}

static void *receive(void *data)
{
	struct gt_fuse *fuse = data;
	struct fuse_buf buffer = { .mem = NULL };
	struct pollfd wait[2] = {
		{ .fd = fuse_session_fd(fuse->session), .events = POLLIN },
		{ .fd = fuse->wake, .events = POLLIN },
	};

	while (!fuse_session_exited(fuse->session)) {
		int got;

		if (poll(wait, 2, atomic_load(&fuse->changing) > 0 ? GT_FUSE_LONG_MS / 2 : -1) <
			    0 &&
		    errno != EINTR)
			break;
		if (atomic_load(&fuse->changing) > 0)
			gt_fuse_answer_traced(fuse);
		if (wait[1].revents != 0)
			break;
		if (wait[0].revents == 0)
			continue;
		got = fuse_session_receive_buf(fuse->session, &buffer);
		if (got == -EINTR || got == -EAGAIN)
			continue;
		if (got <= 0)
			break; /* ENODEV: unmounted */
		fuse_session_process_buf(fuse->session, &buffer);
	}
	free(buffer.mem);
	atomic_store(&fuse->gone, true);
	return NULL;
}

/* The mount */

/* Checks that the directory can be mounted on. */
static int check_directory(const char *directory, struct gt_message *message)
{
	struct stat state;

	if (stat(directory, &state) != 0) {
		if (errno == ENOTCONN)
			return gt_fail(message, GT_EBUSY,
				       "'%s' is still the mount of a graftrace that was killed: "
				       "fusermount3 -u '%s' takes it away",
				       directory, directory);
		gt_message_set(message, "cannot mount on '%s': %s%s", directory, strerror(errno),
			       errno == ENOENT ? "; mkdir makes the directory" : "");
		return errno == ENOENT ? GT_ENOENT : errno == EACCES ? GT_EPERM : GT_EIO;
	}
	if (S_ISDIR(state.st_mode))
		return 0;
	return gt_fail(message, GT_EINVAL, "cannot mount on '%s': it is not a directory",
		       directory);
}

static int check_device(struct gt_message *message)
{
	if (access("/dev/fuse", F_OK) == 0)
		return 0;
	return gt_fail(message, GT_ENOTSUP,
		       "this machine has no /dev/fuse: as root, modprobe fuse, or give "
		       "the container that device");
}

static int make_session(struct gt_fuse *fuse, const struct gt_fuse_options *options)
{
	char name[] = "graftrace";
	char flag[] = "-o";
	char alone[] = "fsname=graftrace,subtype=graftrace,default_permissions";
	char others[] = "fsname=graftrace,subtype=graftrace,default_permissions,allow_other";
	char *words[] = { name, flag, options->allow_other ? others : alone, NULL };
	struct fuse_args arguments = FUSE_ARGS_INIT(3, words);

	fuse->session =
		fuse_session_new(&arguments, &gt_fuse_operations, sizeof(gt_fuse_operations), fuse);
	fuse_opt_free_args(&arguments);
	return fuse->session != NULL ? 0 : GT_EIO;
}

static void free_fuse(struct gt_fuse *fuse)
{
	if (fuse->mounted)
		fuse_session_unmount(fuse->session);
	if (fuse->session != NULL)
		fuse_session_destroy(fuse->session);
	if (fuse->wake >= 0)
		close(fuse->wake);
	gt_fuse_nodes_fini(&fuse->nodes);
	if (fuse->owners != NULL)
		gt_fuse_owners_destroy(fuse->owners);
	pthread_cond_destroy(&fuse->more);
	pthread_mutex_destroy(&fuse->lock);
	free(fuse);
}

int gt_fuse_open(const struct gt_fuse_options *options, struct gt_fuse **fuse_out,
		 struct gt_message *message)
{
	pthread_condattr_t monotonic;
	struct gt_fuse *fuse;
	int error;

	if (options->size < sizeof(*options))
		return gt_fail(message, GT_EINVAL, "the options of the mount are too short");
	error = check_directory(options->directory, message);
	if (error == 0)
		error = check_device(message);
	if (error != 0)
		return error;
	fuse = calloc(1, sizeof(*fuse));
	if (fuse == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory");
	pthread_mutex_init(&fuse->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&fuse->more, &monotonic);
	pthread_condattr_destroy(&monotonic);
	fuse->uid = options->has_uid ? options->uid : getuid();
	fuse->gid = options->has_gid ? options->gid : getgid();
	fuse->mode = options->has_mode ? options->mode : 0700;
	fuse->owners = gt_fuse_owners_create();
	clock_gettime(CLOCK_REALTIME, &fuse->since);
	fuse->wake = eventfd(0, EFD_CLOEXEC);
	fuse_set_log_func(take_words);
	pthread_mutex_lock(&said.lock);
	said.text[0] = '\0';
	pthread_mutex_unlock(&said.lock);
	if (fuse->wake < 0 || fuse->owners == NULL || gt_fuse_nodes_init(&fuse->nodes) != 0) {
		gt_message_set(message, "no memory");
		error = GT_ENOMEM;
	} else if (make_session(fuse, options) != 0 ||
		   fuse_session_mount(fuse->session, options->directory) != 0) {
		int reason = errno;

		pthread_mutex_lock(&said.lock);
		gt_message_set(message, "cannot mount on '%s': %s", options->directory,
			       said.text[0] != '\0' ? said.text : strerror(reason));
		pthread_mutex_unlock(&said.lock);
		error = reason == EPERM || reason == EACCES ? GT_EPERM : GT_EIO;
	} else {
		int device = fuse_session_fd(fuse->session);

		fuse->mounted = true;
		fcntl(device, F_SETFL, fcntl(device, F_GETFL) | O_NONBLOCK);
		fcntl(device, F_SETFD, FD_CLOEXEC);
		*fuse_out = fuse;
		return 0;
	}
	free_fuse(fuse);
	return error;
}

int gt_fuse_start(struct gt_fuse *fuse, struct gt_control_target *control,
		  struct gt_message *message)
{
	int error;

	fuse->control = control;
	error = gt_own_thread_start(&fuse->worker, work, fuse);
	if (error == 0) {
		error = gt_own_thread_start(&fuse->receiver, receive, fuse);
		if (error != 0) {
			pthread_mutex_lock(&fuse->lock);
			fuse->stopping = true;
			pthread_cond_signal(&fuse->more);
			pthread_mutex_unlock(&fuse->lock);
			pthread_join(fuse->worker, NULL);
		}
	}
	fuse->started = error == 0;
	if (error == 0)
		return 0;
	return gt_fail(message, GT_EIO, "cannot serve the mount: %s", strerror(error));
}

bool gt_fuse_is_gone(const struct gt_fuse *fuse)
{
	return atomic_load(&fuse->gone);
}

void gt_fuse_close(struct gt_fuse *fuse, unsigned grace_ms)
{
	const struct timespec moment = { 0, 5 * 1000 * 1000 };
	uint64_t one = 1;

	if (fuse->started) {
		while (grace_ms > 0 && atomic_load(&fuse->waiting_files) > 0 &&
		       !atomic_load(&fuse->gone)) {
			nanosleep(&moment, NULL);
			grace_ms -= grace_ms < 5 ? grace_ms : 5;
		}
		while (write(fuse->wake, &one, sizeof(one)) < 0 && errno == EINTR)
			continue;
		pthread_join(fuse->receiver, NULL);
		pthread_mutex_lock(&fuse->lock);
		fuse->stopping = true;
		pthread_cond_signal(&fuse->more);
		pthread_mutex_unlock(&fuse->lock);
		pthread_join(fuse->worker, NULL);
	}
	free_fuse(fuse);
}
