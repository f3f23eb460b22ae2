/* SPDX-License-Identifier: MIT */
/*
 * Names, attributes and folders of the mount. The receiving thread answers at once what takes no lock that
 * a change holds; the rest is the working thread's, in line with what it opens and reads
 * (gt_control_find_waits). Files look like those of /sys/kernel/tracing: their size is 0, and nothing of
 * them is cached.
 */
#define _GNU_SOURCE
#include "serve/fuse_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gt_fuse_join(char path[GT_FUSE_PATH_BYTES], const char *above, const char *name)
{
	return snprintf(path, GT_FUSE_PATH_BYTES, "%s%s%s", above, above[0] != '\0' ? "/" : "",
			name) < GT_FUSE_PATH_BYTES;
}

/* Answers with a name whose number has been taken for it. */
static void reply_entry(struct gt_fuse *fuse, fuse_req_t request, fuse_ino_t number,
			const char *path, mode_t mode)
{
	struct fuse_entry_param entry = { .ino = number, .attr_timeout = 0, .entry_timeout = 0 };

	gt_fuse_describe(fuse, path, mode, &entry.attr);
	if (gt_fuse_nodes_has_reader(&fuse->nodes, number))
		gt_fuse_allow_splice(fuse, number);
	if (fuse_reply_entry(request, &entry) == -ENOENT) /* the request was interrupted */
		gt_fuse_nodes_forget(&fuse->nodes, number, 1);
}

static void reply_attributes(struct gt_fuse *fuse, const struct gt_fuse_job *job, mode_t mode)
{
	struct stat state;

	gt_fuse_describe(fuse, job->data, mode, &state);
	/* Of an open file only lseek(SEEK_END) asks: it must get size 0. */
	if (!job->of_open_file && gt_fuse_nodes_has_reader(&fuse->nodes, job->number))
		gt_fuse_allow_splice(fuse, job->number);
	fuse_reply_attr(job->request, &state, 0);
}

static void look_up(struct gt_fuse *fuse, struct gt_fuse_job *job, mode_t mode)
{
	fuse_ino_t number = gt_fuse_nodes_take(&fuse->nodes, job->data, mode);

	if (number != 0)
		reply_entry(fuse, job->request, number, job->data, mode);
	else
		fuse_reply_err(job->request, ENOMEM);
}

/* truncate() and utimes() have no effect, as on tracefs. The kernel has checked who may change
 * owners and modes (default_permissions). */
static void set_attributes(struct gt_fuse *fuse, struct gt_fuse_job *job, mode_t mode)
{
	const int noted = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;

	if (job->which & noted &&
	    gt_fuse_owners_set(fuse->owners, job->data, &job->wanted, job->which) != 0)
		fuse_reply_err(job->request, ENOMEM);
	else
		reply_attributes(fuse, job, mode);
}

static void open_folder(struct gt_fuse_job *job, mode_t mode)
{
	if (S_ISDIR(mode))
		fuse_reply_open(job->request, &job->info);
	else
		fuse_reply_err(job->request, ENOTDIR);
}

/* What takes no more than the mode of the name. */
static void answer_of_mode(struct gt_fuse *fuse, struct gt_fuse_job *job, mode_t mode)
{
	if (job->work == GT_FUSE_LOOK_UP)
		look_up(fuse, job, mode);
	else if (job->work == GT_FUSE_ATTRIBUTES)
		reply_attributes(fuse, job, mode);
	else
		open_folder(job, mode);
}

static void list(struct gt_fuse *fuse, struct gt_fuse_job *job, const struct gt_control_node *node)
{
	struct gt_control_walk walk = { 0, 0 };
	char *answer = malloc(job->bytes);
	off_t offset = (off_t)job->offset;
	size_t used = 0;

	if (answer == NULL) {
		fuse_reply_err(job->request, ENOMEM);
		return;
	}
	/* An entry's offset is the index of the next one. */
	for (;; offset++) {
		struct gt_control_entry entry = { .name = ".", .node = *node };
		char path[GT_FUSE_PATH_BYTES];
		struct stat state;
		size_t wants;

		if (offset == 1)
			strcpy(entry.name, "..");
		if (offset > 1 &&
		    gt_control_list_next(node, &walk, (uint32_t)offset - 2, &entry) != 0)
			break;
		if (!gt_fuse_join(path, job->data, entry.name))
			continue;
		gt_fuse_describe(fuse, path, gt_fuse_mode(fuse, &entry.node), &state);
		wants = fuse_add_direntry(job->request, answer + used, job->bytes - used,
					  entry.name, &state, offset + 1);
		if (wants > job->bytes - used)
			break;
		used += wants;
	}
	fuse_reply_buf(job->request, answer, used);
	free(answer);
}

void gt_fuse_answer_name(struct gt_fuse *fuse, struct gt_fuse_job *job)
{
	struct gt_control_node node;
	mode_t mode;

	if (gt_control_find(fuse->control, job->data, strlen(job->data), &node) != 0) {
		fuse_reply_err(job->request, ENOENT);
		return;
	}
	mode = gt_fuse_mode(fuse, &node);
	if (job->work == GT_FUSE_SET_ATTRIBUTES)
		set_attributes(fuse, job, mode);
	else if (job->work == GT_FUSE_LIST)
		list(fuse, job, &node);
	else
		answer_of_mode(fuse, job, mode);
}

bool gt_fuse_is_known(struct gt_fuse *fuse, const struct gt_fuse_job *job)
{
	return (job->work == GT_FUSE_LOOK_UP || job->work == GT_FUSE_ATTRIBUTES ||
		job->work == GT_FUSE_OPEN_FOLDER) &&
	       gt_fuse_nodes_mode(&fuse->nodes, job->data) != 0;
}

void gt_fuse_answer_known(struct gt_fuse *fuse, struct gt_fuse_job *job)
{
	answer_of_mode(fuse, job, gt_fuse_nodes_mode(&fuse->nodes, job->data));
}
