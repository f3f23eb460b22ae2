/* SPDX-License-Identifier: MIT */
/*
 * Requests of the kernel to the mount: the receiving thread's half. Names, attributes and folders
 * are answered at once (fuse_names.c) unless that may wait for a lock that a change holds. Then they are
 * passed to the working thread, as opening, reading, writing and closing files is (fuse_files.c). Nothing
 * here takes such a lock.
 */
#define _GNU_SOURCE
#include "serve/fuse_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define READ_BYTES (1024 * 1024)

/* Names */

static struct gt_fuse *fuse_of(fuse_req_t request)
{
	return fuse_req_userdata(request);
}

/* Makes a job that has the path. NULL: the request was answered with the reason, which is `error` if that is not 0. */
static struct gt_fuse_job *make_named(fuse_req_t request, enum gt_fuse_work work, int error,
				      const char *path, struct fuse_file_info *info)
{
	struct fuse_file_info none = { .fh = 0 };
	struct gt_fuse_job *job;

	if (error != 0) {
		fuse_reply_err(request, error);
		return NULL;
	}
	job = gt_fuse_job_make(fuse_of(request), work, request, info != NULL ? info : &none,
			       strlen(path) + 1);
	if (job != NULL)
		strcpy(job->data, path);
	return job;
}

/* As above, for the path of a number. */
static struct gt_fuse_job *make_numbered(fuse_req_t request, enum gt_fuse_work work,
					 fuse_ino_t number, struct fuse_file_info *info)
{
	const char *path = gt_fuse_nodes_path(&fuse_of(request)->nodes, number);
	struct gt_fuse_job *job = make_named(request, work, path != NULL ? 0 : ESTALE, path, info);

	if (job != NULL)
		job->number = number;
	return job;
}

/* As above, for a name below a folder. */
static struct gt_fuse_job *make_below(fuse_req_t request, enum gt_fuse_work work, fuse_ino_t parent,
				      const char *name)
{
	const char *above = gt_fuse_nodes_path(&fuse_of(request)->nodes, parent);
	char path[GT_FUSE_PATH_BYTES];
	int error = 0;

	if (above == NULL)
		error = ESTALE;
	else if (!gt_fuse_join(path, above, name))
		error = ENAMETOOLONG;
	return make_named(request, work, error, path, NULL);
}

/* Answers the job at once or passes it to the working thread. NULL: there is none. */
static void answer_name(struct gt_fuse_job *job)
{
	if (job == NULL)
		return;
	if (gt_control_find_waits(job->fuse->control, job->data, strlen(job->data))) {
		gt_fuse_push(job->fuse, job);
	} else {
		gt_fuse_answer_name(job->fuse, job);
		gt_fuse_job_drop(job);
	}
}

static void do_init(void *data, struct fuse_conn_info *connection)
{
	(void)data;
	/* With this, open() has the O_TRUNC flag itself. */
	if (connection->capable & FUSE_CAP_ATOMIC_O_TRUNC)
		connection->want |= FUSE_CAP_ATOMIC_O_TRUNC;
	connection->want &= ~(unsigned)FUSE_CAP_AUTO_INVAL_DATA;
	/* splice() goes through the page cache: one page at a time, so that a signal can
	 * interrupt it. */
	connection->want &= ~(unsigned)FUSE_CAP_ASYNC_READ;
	connection->max_readahead = 0;
}

static void do_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	answer_name(make_below(request, GT_FUSE_LOOK_UP, parent, name));
}

static void do_forget(fuse_req_t request, fuse_ino_t number, uint64_t lookups)
{
	gt_fuse_nodes_forget(&fuse_of(request)->nodes, number, lookups);
	fuse_reply_none(request);
}

static void do_forget_multi(fuse_req_t request, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		gt_fuse_nodes_forget(&fuse_of(request)->nodes, forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(request);
}

static void do_getattr(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info)
{
	struct gt_fuse_job *job = make_numbered(request, GT_FUSE_ATTRIBUTES, number, NULL);

	if (job != NULL)
		job->of_open_file = info != NULL;
	answer_name(job);
}

static void do_setattr(fuse_req_t request, fuse_ino_t number, struct stat *attributes, int which,
		       struct fuse_file_info *info)
{
	struct gt_fuse_job *job = make_numbered(request, GT_FUSE_SET_ATTRIBUTES, number, NULL);

	if (job != NULL) {
		job->of_open_file = info != NULL;
		job->wanted = *attributes;
		job->which = which;
	}
	answer_name(job);
}

/* Folders */

static void do_opendir(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info)
{
	answer_name(make_numbered(request, GT_FUSE_OPEN_FOLDER, number, info));
}

static void do_readdir(fuse_req_t request, fuse_ino_t number, size_t bytes, off_t offset,
		       struct fuse_file_info *info)
{
	struct gt_fuse_job *job = make_numbered(request, GT_FUSE_LIST, number, info);

	if (job != NULL) {
		job->bytes = bytes;
		job->offset = (uint64_t)offset;
	}
	answer_name(job);
}

/* Operations that tracefs lacks: the errno that Linux returns for them. */

static void do_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *info)
{
	(void)parent;
	(void)name;
	(void)mode;
	(void)info;
	fuse_reply_err(request, EACCES);
}

static void do_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
		     dev_t device)
{
	(void)parent;
	(void)name;
	(void)mode;
	(void)device;
	fuse_reply_err(request, EPERM);
}

static void do_unlink(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	(void)parent;
	(void)name;
	fuse_reply_err(request, EPERM);
}

static void do_rename(fuse_req_t request, fuse_ino_t parent, const char *name,
		      fuse_ino_t new_parent, const char *new_name, unsigned flags)
{
	(void)parent;
	(void)name;
	(void)new_parent;
	(void)new_name;
	(void)flags;
	fuse_reply_err(request, EPERM);
}

static void do_symlink(fuse_req_t request, const char *link, fuse_ino_t parent, const char *name)
{
	(void)link;
	(void)parent;
	(void)name;
	fuse_reply_err(request, EPERM);
}

static void do_link(fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char *name)
{
	(void)number;
	(void)parent;
	(void)name;
	fuse_reply_err(request, EPERM);
}

/* Files */

static void do_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info)
{
	struct gt_fuse_file *file = calloc(1, sizeof(*file));
	struct gt_fuse_job *job;
	int how = info->flags & O_ACCMODE;

	if (file == NULL) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	file->number = number;
	file->access =
		(how != O_WRONLY ? GT_CONTROL_READ : 0) | (how != O_RDONLY ? GT_CONTROL_WRITE : 0);
	info->fh = (uintptr_t)file;
	info->direct_io = 1;
	job = make_numbered(request, GT_FUSE_OPEN, number, info);
	if (job == NULL)
		free(file);
	else
		gt_fuse_push(job->fuse, job);
}

static void do_read(fuse_req_t request, fuse_ino_t number, size_t bytes, off_t offset,
		    struct fuse_file_info *info)
{
	struct gt_fuse *fuse = fuse_of(request);
	struct gt_fuse_job *job = gt_fuse_job_make(fuse, GT_FUSE_READ, request, info, 0);

	(void)number;
	if (job == NULL)
		return;
	job->bytes = bytes < READ_BYTES ? bytes : READ_BYTES;
	job->spliced = info->lock_owner == 0; /* only read(2) sends an owner */
	job->offset = (uint64_t)offset;
	gt_fuse_push(fuse, job);
}

static void do_write(fuse_req_t request, fuse_ino_t number, const char *data, size_t bytes,
		     off_t offset, struct fuse_file_info *info)
{
	struct gt_fuse *fuse = fuse_of(request);
	struct gt_fuse_job *job = gt_fuse_job_make(fuse, GT_FUSE_WRITE, request, info, bytes);

	(void)number;
	(void)offset;
	if (job == NULL)
		return;
	memcpy(job->data, data, bytes);
	gt_fuse_push(fuse, job);
}

static void push_plain(fuse_req_t request, struct fuse_file_info *info, enum gt_fuse_work work,
		       struct fuse_pollhandle *poll)
{
	struct gt_fuse *fuse = fuse_of(request);
	struct gt_fuse_job *job = gt_fuse_job_make(fuse, work, request, info, 0);

	if (job != NULL) {
		job->poll = poll;
		gt_fuse_push(fuse, job);
	} else if (poll != NULL) {
		fuse_pollhandle_destroy(poll);
	}
}

static void do_flush(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info)
{
	(void)number;
	push_plain(request, info, GT_FUSE_FLUSH, NULL);
}

static void do_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info)
{
	(void)number;
	push_plain(request, info, GT_FUSE_RELEASE, NULL);
}

/* mkdir and rmdir below instances/. */
static void push_folder(fuse_req_t request, enum gt_fuse_work work, fuse_ino_t parent,
			const char *name)
{
	struct gt_fuse_job *job = make_below(request, work, parent, name);

	if (job != NULL)
		gt_fuse_push(job->fuse, job);
}

static void do_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
	(void)mode;
	push_folder(request, GT_FUSE_MAKE, parent, name);
}

static void do_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	push_folder(request, GT_FUSE_REMOVE, parent, name);
}

static void do_poll(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info,
		    struct fuse_pollhandle *poll)
{
	(void)number;
	push_plain(request, info, GT_FUSE_POLL, poll);
}

const struct fuse_lowlevel_ops gt_fuse_operations = {
	.init = do_init,
	.lookup = do_lookup,
	.forget = do_forget,
	.forget_multi = do_forget_multi,
	.getattr = do_getattr,
	.setattr = do_setattr,
	.opendir = do_opendir,
	.readdir = do_readdir,
	.create = do_create,
	.mknod = do_mknod,
	.mkdir = do_mkdir,
	.rmdir = do_rmdir,
	.unlink = do_unlink,
	.rename = do_rename,
	.symlink = do_symlink,
	.link = do_link,
	.open = do_open,
	.read = do_read,
	.write = do_write,
	.flush = do_flush,
	.release = do_release,
	.poll = do_poll,
};
