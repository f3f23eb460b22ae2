/* SPDX-License-Identifier: MIT */
/*
 * Open files of the mount: the working thread's half. It opens, reads, writes and closes files, in
 * order. They behave as those of /sys/kernel/tracing: a write takes as many bytes as the file
 * accepts (one word of a list), and `>` clears.
 */
#define _GNU_SOURCE
#include "serve/fuse_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/process/clock.h"

/* The most that is given at once of a file that waits. It is less than the kernel asks for in
 * one request: a full answer would make the kernel ask for the rest before it returns. */
#define WAITING_BYTES (64 * 1024)

/* The size that the kernel is made to see of a spliced file. */
#define SPLICE_BYTES (INT64_C(1) << 62)
#define PAGE_BYTES   4096
#define PIPE_PAGES   16 /* capacity of a pipe */
#define PAGE_MS	     50 /* the longest that a page is held back to fill it for splice() */

static int open_reader(struct gt_fuse_file *file, struct gt_message *message)
{
	int error = gt_control_open(&file->reader, &file->node, GT_CONTROL_READ, message);

	file->reading = error == 0;
	file->position = 0;
	return error;
}

static void close_reader(struct gt_fuse_file *file)
{
	struct gt_message message;

	if (file->reading)
		gt_control_close(&file->reader, &message);
	file->reading = false;
}

static int open_writer(struct gt_fuse_file *file, bool truncate, struct gt_message *message)
{
	int error =
		gt_control_open(&file->writer, &file->node,
				GT_CONTROL_WRITE | (truncate ? GT_CONTROL_TRUNCATE : 0), message);

	file->writing = error == 0;
	file->tried = false;
	return error;
}

/* Words that were written take effect, even if a later one is refused, as on Linux. */
static int close_writer(struct gt_fuse_file *file)
{
	struct gt_message message;
	int error = file->writing ? gt_control_close(&file->writer, &message) : 0;

	file->writing = false;
	return error;
}

/* splice() and sendfile() read through the page cache, up to the file's size as the kernel knows
 * it: the size that stat() shows, which is 0 as on tracefs. So one byte is stored in the cache
 * far away, which makes the kernel's own size large. The kernel then also ignores an attribute
 * request's answer that was sent before: it keeps its own size, and stat() still gets 0. The end
 * of the file is a page that is not full. */
void gt_fuse_allow_splice(struct gt_fuse *fuse, fuse_ino_t number)
{
	char byte = 0;
	struct fuse_bufvec far = FUSE_BUFVEC_INIT(1);

	far.buf[0].mem = &byte;
	fuse_lowlevel_notify_store(fuse->session, number, SPLICE_BYTES - 1, &far, 0);
}

static void open_file(struct gt_fuse *fuse, struct gt_fuse_job *job)
{
	struct gt_fuse_file *file = job->file;
	struct gt_message message = { "" };
	unsigned allowed;
	bool read_only;
	int error = gt_control_find(fuse->control, job->data, strlen(job->data), &file->node);

	if (error != 0 || file->node.file == NULL) {
		free(file);
		fuse_reply_err(job->request, error != 0 ? ENOENT : EISDIR);
		return;
	}
	file->waits = (file->node.file->flags & GT_CONTROL_WAITS) != 0;
	job->info.nonseekable = file->waits;
	allowed = gt_control_access(file->node.target, file->node.file);
	read_only = fuse->control->kind == GT_CONTROL_RECORDING && (file->access & ~allowed);
	/* root may open a file without such an operation; read() and write() then fail with
	 * EINVAL. */
	file->access &= allowed;
	if (file->waits && (file->access & GT_CONTROL_READ))
		error = open_reader(file, &message);
	if (error == 0 && (file->access & GT_CONTROL_WRITE))
		error = open_writer(file, job->info.flags & O_TRUNC, &message);
	if (error != 0 || read_only) {
		close_reader(file);
		close_writer(file);
		free(file);
		fuse_reply_err(job->request, read_only ? EROFS : gt_fuse_errno(error));
		return;
	}
	if (file->access & GT_CONTROL_READ) {
		gt_fuse_nodes_count_reader(&fuse->nodes, file->number, 1);
		gt_fuse_allow_splice(fuse, file->number);
	}
	file->next_open = fuse->opened;
	if (fuse->opened != NULL)
		fuse->opened->previous_open = file;
	fuse->opened = file;
	if (file->waits)
		atomic_fetch_add(&fuse->waiting_files, 1);
	fuse_reply_open(job->request, &job->info);
}

/* Returns the number of the reader's next bytes, at most `bytes`; an error; or GT_EAGAIN. */
static int64_t read_on(struct gt_fuse_file *file, char *buffer, size_t bytes,
		       struct gt_message *message)
{
	int64_t got = gt_control_read(&file->reader, buffer, bytes, message);

	if (got > 0)
		file->position += (uint64_t)got;
	return got;
}

/* Moves the reader to an offset. Reading again from the start makes a new text. */
static int64_t seek(struct gt_fuse_file *file, uint64_t offset, struct gt_message *message)
{
	char passed[4096];

	if (file->reading && (offset < file->position || (offset == 0 && file->at_end)))
		close_reader(file);
	if (!file->reading) {
		int error = open_reader(file, message);

		if (error != 0)
			return error;
	}
	file->at_end = false;
	while (file->position < offset) {
		uint64_t left = offset - file->position;
		int64_t got = read_on(file, passed, left < sizeof(passed) ? left : sizeof(passed),
				      message);

		if (got <= 0)
			return got < 0 ? got : 1;
	}
	return 0;
}

/* Of a file that waits, first gives the bytes that poll() has read already. */
static int64_t read_waiting(struct gt_fuse_file *file, char *buffer, size_t bytes,
			    struct gt_message *message)
{
	size_t left = file->ahead_bytes - file->ahead_given;

	if (left == 0)
		return file->at_end ? 0 : read_on(file, buffer, bytes, message);
	bytes = bytes < left ? bytes : left;
	memcpy(buffer, file->ahead + file->ahead_given, bytes);
	file->ahead_given += bytes;
	return (int64_t)bytes;
}

/* Fills the rest of the page with a comment, like the lines of the header. */
static void pad_page(struct gt_fuse_file *file)
{
	size_t rest = PAGE_BYTES - file->page_bytes;

	memset(file->page + file->page_bytes, ' ', rest);
	if (rest > 1)
		file->page[file->page_bytes] = '#';
	file->page[PAGE_BYTES - 1] = '\n';
	file->page_bytes = PAGE_BYTES;
}

/* Gives a text that waits to splice() in whole pages, since a page that is not full means the
 * end. A page with some text that does not fill for PAGE_MS is filled with a comment. Then pages
 * of comments alone follow: one splice() takes several pages and returns none of them before it
 * has as many as its pipe holds. GT_EAGAIN: the page is not full yet. */
static int64_t splice_waiting(struct gt_fuse_file *file, bool nonblocking, char *buffer,
			      struct gt_message *message)
{
	int64_t got = 0;
	size_t bytes;

	if (file->page == NULL)
		file->page = malloc(PAGE_BYTES);
	if (file->page == NULL)
		return GT_ENOMEM;
	while (file->page_bytes < PAGE_BYTES) {
		got = read_waiting(file, file->page + file->page_bytes,
				   PAGE_BYTES - file->page_bytes, message);
		if (got <= 0)
			break;
		if (file->page_bytes == 0)
			file->page_since_ms = gt_monotonic_ms();
		file->page_bytes += (size_t)got;
	}
	if (got < 0 && got != GT_EAGAIN)
		return got;
	if (got == GT_EAGAIN && file->page_bytes == 0 && !nonblocking && file->empty_pages > 0) {
		file->empty_pages--;
		pad_page(file);
	} else if (got == GT_EAGAIN) {
		if (file->page_bytes == 0 ||
		    (!nonblocking && gt_monotonic_ms() - file->page_since_ms < PAGE_MS))
			return GT_EAGAIN;
		file->empty_pages = PIPE_PAGES - 1;
		pad_page(file);
	} else {
		file->empty_pages = PIPE_PAGES - 1;
	}
	bytes = file->page_bytes;
	memcpy(buffer, file->page, bytes);
	file->page_bytes = 0;
	return (int64_t)bytes;
}

/* Gives read() the bytes of a page that was begun for splice(). */
static int64_t read_page(struct gt_fuse_file *file, char *buffer, size_t bytes)
{
	bytes = bytes < file->page_bytes ? bytes : file->page_bytes;
	memcpy(buffer, file->page, bytes);
	memmove(file->page, file->page + bytes, file->page_bytes - bytes);
	file->page_bytes -= bytes;
	return (int64_t)bytes;
}

static bool read_file(struct gt_fuse_job *job)
{
	struct gt_fuse_file *file = job->file;
	struct gt_message message = { "" };
	int64_t got;
	char *buffer;

	if (!(file->access & GT_CONTROL_READ)) {
		fuse_reply_err(job->request, EINVAL);
		return true;
	}
	if (file->waits && job->bytes > WAITING_BYTES)
		job->bytes = WAITING_BYTES;
	buffer = malloc(job->bytes + 1);
	if (buffer == NULL) {
		fuse_reply_err(job->request, ENOMEM);
		return true;
	}
	file->reader.nonblocking = job->info.flags & O_NONBLOCK;
	if (file->waits && job->spliced && job->bytes >= PAGE_BYTES &&
	    !(file->node.file->flags & GT_CONTROL_BINARY)) {
		got = splice_waiting(file, job->info.flags & O_NONBLOCK, buffer, &message);
	} else if (file->waits && file->page_bytes > 0) {
		got = read_page(file, buffer, job->bytes);
	} else if (file->waits) {
		got = read_waiting(file, buffer, job->bytes, &message);
	} else {
		got = seek(file, job->offset, &message);
		if (got == 0)
			got = read_on(file, buffer, job->bytes, &message);
		else if (got == 1)
			got = 0; /* after the end */
		file->at_end = got == 0;
	}
	if (got == GT_EAGAIN && !(job->info.flags & O_NONBLOCK)) {
		free(buffer);
		return false;
	}
	if (got < 0)
		fuse_reply_err(job->request, gt_fuse_errno(got));
	else
		fuse_reply_buf(job->request, buffer, (size_t)got);
	free(buffer);
	return true;
}

/* Sets who writes, for files that need to know. */
static void name_writer(struct gt_control_writer *writer, pid_t tid)
{
	char path[64];
	char line[128];
	FILE *status;

	if (tid <= 0 || writer->tid == (uint32_t)tid)
		return;
	*writer = (struct gt_control_writer){ .pid = (uint32_t)tid, .tid = (uint32_t)tid };
	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	status = fopen(path, "re");
	while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
		if (sscanf(line, "Name: %15[^\n]", writer->comm) == 1 ||
		    sscanf(line, "Tgid: %" SCNu32, &writer->pid) != 1)
			continue;
		break;
	}
	if (status != NULL)
		fclose(status);
}

static void write_file(struct gt_fuse_job *job)
{
	struct gt_fuse_file *file = job->file;
	struct gt_message message = { "" };
	int64_t taken = 0;
	size_t done = 0;

	if (!(file->access & GT_CONTROL_WRITE))
		taken = GT_EINVAL;
	/* Written after another descriptor of it was closed: the file goes on accepting writes. */
	if (taken == 0 && !file->writing)
		taken = open_writer(file, false, &message);
	if (taken == 0) {
		file->tried = true;
		name_writer(&file->writer.writer, job->thread);
		taken = gt_control_write(&file->writer, job->data, job->bytes, &message);
	}
	if (!gt_fuse_claim(job)) {
		/* The thread was told early that all of it is written. */
		while (taken > 0 && (done += (size_t)taken) < job->bytes)
			taken = gt_control_write(&file->writer, job->data + done, job->bytes - done,
						 &message);
	} else if (taken < 0) {
		fuse_reply_err(job->request, gt_fuse_errno(taken));
	} else {
		fuse_reply_write(job->request, (size_t)taken);
	}
}

/* A descriptor is closed, maybe not the last one: shells duplicate them, so a file that has not
 * been written to stays open for writing. What flush does not do is done by release, which the
 * kernel sends before any later request of the same process. */
static void flush_file(struct gt_fuse_job *job)
{
	struct gt_fuse_file *file = job->file;
	int error = file->writing && file->tried ? close_writer(file) : 0;

	if (gt_fuse_claim(job))
		fuse_reply_err(job->request, error != 0 ? gt_fuse_errno(error) : 0);
}

static void leave_polled(struct gt_fuse *fuse, struct gt_fuse_file *file)
{
	struct gt_fuse_file **link = &fuse->polled;

	while (*link != NULL && *link != file)
		link = &(*link)->next_polled;
	if (*link != NULL)
		*link = file->next_polled;
	if (file->poll != NULL)
		fuse_pollhandle_destroy(file->poll);
	file->poll = NULL;
}

static void close_file(struct gt_fuse *fuse, struct gt_fuse_file *file)
{
	leave_polled(fuse, file);
	close_writer(file);
	close_reader(file);
	if (file->next_open != NULL)
		file->next_open->previous_open = file->previous_open;
	if (file->previous_open != NULL)
		file->previous_open->next_open = file->next_open;
	else
		fuse->opened = file->next_open;
	if (file->waits)
		atomic_fetch_sub(&fuse->waiting_files, 1);
	if (file->access & GT_CONTROL_READ)
		gt_fuse_nodes_count_reader(&fuse->nodes, file->number, -1);
	free(file->page);
	free(file->ahead);
	free(file);
}

static void release_file(struct gt_fuse *fuse, struct gt_fuse_job *job)
{
	close_file(fuse, job->file);
	if (gt_fuse_claim(job))
		fuse_reply_err(job->request, 0);
}

void gt_fuse_close_files(struct gt_fuse *fuse)
{
	while (fuse->opened != NULL)
		close_file(fuse, fuse->opened);
}

/* Would a read return at once, with data, the end or an error? */
static bool is_readable(struct gt_fuse_file *file)
{
	struct gt_message message;
	int64_t got;

	if (!file->waits || !file->reading || file->at_end || file->ahead_given < file->ahead_bytes)
		return true;
	if (file->ahead == NULL)
		file->ahead = malloc(WAITING_BYTES);
	if (file->ahead == NULL)
		return true; /* read() returns the error */
	got = read_on(file, file->ahead, WAITING_BYTES, &message);
	file->ahead_given = 0;
	file->ahead_bytes = got > 0 ? (size_t)got : 0;
	file->at_end = got == 0;
	return got != GT_EAGAIN;
}

/* options/block: poll() reports data while read() waits, as on Linux. */
static bool is_blocking(const struct gt_fuse_file *file)
{
	struct gt_control_target *target = file->reader.target;
	uint64_t options = 0;

	return target->ops->get != NULL &&
	       target->ops->get(target, GT_CONTROL_OPTIONS, &options) == 0 &&
	       options & GT_OPTION_BLOCK;
}

static void poll_file(struct gt_fuse *fuse, struct gt_fuse_job *job)
{
	struct gt_fuse_file *file = job->file;
	bool readable = is_readable(file) || is_blocking(file);
	unsigned events = readable ? POLLIN | POLLRDNORM : 0;

	if (!file->waits)
		events |= POLLOUT | POLLWRNORM;
	if (!readable && job->poll != NULL) {
		leave_polled(fuse, file);
		file->poll = job->poll;
		file->next_polled = fuse->polled;
		fuse->polled = file;
		job->poll = NULL;
	}
	fuse_reply_poll(job->request, events);
}

void gt_fuse_look_polled(struct gt_fuse *fuse)
{
	struct gt_fuse_file **link = &fuse->polled;
	struct gt_fuse_file *file;

	while ((file = *link) != NULL) {
		if (!is_readable(file)) {
			link = &file->next_polled;
			continue;
		}
		*link = file->next_polled;
		fuse_lowlevel_notify_poll(file->poll);
		fuse_pollhandle_destroy(file->poll);
		file->poll = NULL;
	}
}

static void make_folder(struct gt_fuse *fuse, struct gt_fuse_job *job)
{
	struct gt_message message = { "" };
	int error = gt_control_make(fuse->control, job->data, strlen(job->data), &message);

	if (error != 0) {
		fuse_reply_err(job->request, gt_fuse_errno(error));
		return;
	}
	job->work = GT_FUSE_LOOK_UP;
	gt_fuse_answer_name(fuse, job);
}

static void remove_folder(struct gt_fuse *fuse, struct gt_fuse_job *job)
{
	struct gt_message message = { "" };
	int error = gt_control_remove(fuse->control, job->data, strlen(job->data), &message);

	if (error == 0)
		gt_fuse_owners_forget(fuse->owners, job->data);
	if (gt_fuse_claim(job))
		fuse_reply_err(job->request, error != 0 ? gt_fuse_errno(error) : 0);
}

bool gt_fuse_do(struct gt_fuse *fuse, struct gt_fuse_job *job)
{
	switch (job->work) {
	case GT_FUSE_OPEN:
		open_file(fuse, job);
		return true;
	case GT_FUSE_READ:
		return read_file(job);
	case GT_FUSE_WRITE:
		write_file(job);
		return true;
	case GT_FUSE_FLUSH:
		flush_file(job);
		return true;
	case GT_FUSE_RELEASE:
		release_file(fuse, job);
		return true;
	case GT_FUSE_POLL:
		poll_file(fuse, job);
		return true;
	case GT_FUSE_MAKE:
		make_folder(fuse, job);
		return true;
	case GT_FUSE_REMOVE:
		remove_folder(fuse, job);
		return true;
	case GT_FUSE_LOOK_UP:
	case GT_FUSE_ATTRIBUTES:
	case GT_FUSE_SET_ATTRIBUTES:
	case GT_FUSE_OPEN_FOLDER:
	case GT_FUSE_LIST:
		gt_fuse_answer_name(fuse, job);
		return true;
	}
	return true;
}
