/* SPDX-License-Identifier: MIT */
/*
 * Requests of the kernel to the mount: the receiving thread's half. Names, attributes and folders
 * are answered at once; opening, reading, writing and closing files is passed to the working thread
 * (fuse_files.c). Files look like those of /sys/kernel/tracing: their size is 0, and nothing of
 * them is cached.
 */
#define _GNU_SOURCE
#include "serve/fuse_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define READ_BYTES (1024 * 1024)
#define PATH_BYTES 1024

/* Names */

static struct gt_fuse *fuse_of(fuse_req_t request)
{
	return fuse_req_userdata(request);
}

static bool join(char *path, const char *above, const char *name)
{
	return snprintf(path, PATH_BYTES, "%s%s%s", above, above[0] != '\0' ? "/" : "", name) <
	       PATH_BYTES;
}

/* Finds the path of a number and its control file. Returns 0 or an errno. */
static int find(struct gt_fuse *fuse, fuse_ino_t number, const char **path,
		struct gt_control_node *node)
{
	*path = gt_fuse_nodes_path(&fuse->nodes, number);
	if (*path == NULL)
		return ESTALE;
	return gt_control_find(fuse->control, *path, strlen(*path), node) == 0 ? 0 : ENOENT;
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
	struct gt_fuse *fuse = fuse_of(request);
	struct fuse_entry_param entry = { .attr_timeout = 0, .entry_timeout = 0 };
	struct gt_control_node node;
	const char *above;
	char path[PATH_BYTES];
	int error = find(fuse, parent, &above, &node);

	if (error == 0 && node.file != NULL)
		error = ENOTDIR;
	if (error == 0 && !join(path, above, name))
		error = ENAMETOOLONG;
	if (error == 0 && gt_control_find(fuse->control, path, strlen(path), &node) != 0)
		error = ENOENT;
	if (error == 0) {
		entry.ino = gt_fuse_nodes_take(&fuse->nodes, path);
		error = entry.ino != 0 ? 0 : ENOMEM;
	}
	if (error != 0) {
		fuse_reply_err(request, error);
		return;
	}
	gt_fuse_describe(fuse, &node, path, &entry.attr);
	if (gt_fuse_nodes_has_reader(&fuse->nodes, entry.ino))
		gt_fuse_allow_splice(fuse, entry.ino);
	if (fuse_reply_entry(request, &entry) == -ENOENT) /* the request was interrupted */
		gt_fuse_nodes_forget(&fuse->nodes, entry.ino, 1);
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
	struct gt_fuse *fuse = fuse_of(request);
	struct gt_control_node node;
	struct stat state;
	const char *path;
	int error = find(fuse, number, &path, &node);

	if (error != 0) {
		fuse_reply_err(request, error);
		return;
	}
	gt_fuse_describe(fuse, &node, path, &state);
	/* Of an open file only lseek(SEEK_END) asks: it must get size 0. */
	if (info == NULL && gt_fuse_nodes_has_reader(&fuse->nodes, number))
		gt_fuse_allow_splice(fuse, number);
	fuse_reply_attr(request, &state, 0);
}

/* truncate() and utimes() have no effect, as on tracefs. The kernel has checked who may change
 * owners and modes (default_permissions). */
static void do_setattr(fuse_req_t request, fuse_ino_t number, struct stat *attributes, int which,
		       struct fuse_file_info *info)
{
	struct gt_fuse *fuse = fuse_of(request);
	struct gt_control_node node;
	const char *path;
	int error = 0;

	if (which & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
		error = find(fuse, number, &path, &node);
		if (error == 0 && gt_fuse_owners_set(fuse->owners, path, attributes, which) != 0)
			error = ENOMEM;
	}
	if (error != 0)
		fuse_reply_err(request, error);
	else
		do_getattr(request, number, info);
}

/* Folders */

static void do_opendir(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info)
{
	struct gt_control_node node;
	const char *path;
	int error = find(fuse_of(request), number, &path, &node);

	if (error == 0 && node.file != NULL)
		error = ENOTDIR;
	if (error != 0)
		fuse_reply_err(request, error);
	else
		fuse_reply_open(request, info);
}

static void do_readdir(fuse_req_t request, fuse_ino_t number, size_t bytes, off_t offset,
		       struct fuse_file_info *info)
{
	struct gt_fuse *fuse = fuse_of(request);
	struct gt_control_node node;
	const char *above;
	char *answer;
	size_t used = 0;
	int error = find(fuse, number, &above, &node);

	(void)info;
	if (error != 0) {
		fuse_reply_err(request, error);
		return;
	}
	answer = malloc(bytes);
	if (answer == NULL) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	struct gt_control_walk walk = { 0, 0 };
	/* An entry's offset is the index of the next one. */
	for (;; offset++) {
		struct gt_control_entry entry = { .name = ".", .node = node };
		char path[PATH_BYTES];
		struct stat state;
		size_t wants;

		if (offset == 1)
			strcpy(entry.name, "..");
		if (offset > 1 &&
		    gt_control_list_next(&node, &walk, (uint32_t)offset - 2, &entry) != 0)
			break;
		if (!join(path, above, entry.name))
			continue;
		gt_fuse_describe(fuse, &entry.node, path, &state);
		wants = fuse_add_direntry(request, answer + used, bytes - used, entry.name, &state,
					  offset + 1);
		if (wants > bytes - used)
			break;
		used += wants;
	}
	fuse_reply_buf(request, answer, used);
	free(answer);
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
	struct gt_fuse *fuse = fuse_of(request);
	struct gt_control_node node;
	struct gt_fuse_file *file;
	struct gt_fuse_job *job;
	const char *path;
	int how = info->flags & O_ACCMODE;
	int error = find(fuse, number, &path, &node);

	if (error == 0 && node.file == NULL)
		error = EISDIR;
	file = error == 0 ? calloc(1, sizeof(*file)) : NULL;
	if (file == NULL) {
		fuse_reply_err(request, error != 0 ? error : ENOMEM);
		return;
	}
	file->node = node;
	file->number = number;
	file->waits = (node.file->flags & GT_CONTROL_WAITS) != 0;
	file->access =
		(how != O_WRONLY ? GT_CONTROL_READ : 0) | (how != O_RDONLY ? GT_CONTROL_WRITE : 0);
	info->fh = (uintptr_t)file;
	info->direct_io = 1;
	info->nonseekable = file->waits;
	job = gt_fuse_job_make(fuse, GT_FUSE_OPEN, request, info, 0);
	if (job == NULL)
		free(file);
	else
		gt_fuse_push(fuse, job);
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
	struct gt_fuse *fuse = fuse_of(request);
	struct fuse_file_info none = { .fh = 0 };
	struct gt_control_node node;
	struct gt_fuse_job *job;
	const char *above;
	char path[PATH_BYTES];
	int error = find(fuse, parent, &above, &node);

	if (error == 0 && !join(path, above, name))
		error = ENAMETOOLONG;
	if (error != 0) {
		fuse_reply_err(request, error);
		return;
	}
	job = gt_fuse_job_make(fuse, work, request, &none, strlen(path) + 1);
	if (job == NULL)
		return;
	strcpy(job->data, path);
	gt_fuse_push(fuse, job);
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
