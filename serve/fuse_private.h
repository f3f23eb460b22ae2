/* SPDX-License-Identifier: MIT */
/* What fuse.c (the mount and its threads), fuse_jobs.c (requests on their way), fuse_nodes.c (numbers of
 * paths), fuse_requests.c (what the kernel asks), fuse_names.c (names and folders), fuse_owners.c (stat, owners and
 * modes) and fuse_files.c (open files) share.
 *
 * The receiving thread takes requests in, the working thread carries them out. Functions of nodes
 * and of owners take the lock of the table and, unless their comment names a thread, may be called from both threads;
 * those that make or free a table take none: call them before the threads run, or after they have ended. With fuse->lock
 * held only gt_fuse_is_known() is called. */
#ifndef GT_SERVE_FUSE_PRIVATE_H
#define GT_SERVE_FUSE_PRIVATE_H

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "serve/fuse.h"

/* Names: inode numbers to paths. */
struct gt_fuse_node {
	char *path; /* below the root, no slash at either end; NULL: free */
	uint64_t lookups;
	mode_t mode;	  /* gt_fuse_mode() when it was last looked up; 0: the root */
	size_t next;	  /* of the same hash, or the next free one; 0 = none */
	unsigned readers; /* that have it open */
};

struct gt_fuse_nodes {
	pthread_mutex_t lock;
	struct gt_fuse_node *all; /* [0] is unused, [1] the root */
	size_t count;		  /* used so far, with freed ones */
	size_t room;
	size_t free;
	size_t *heads; /* by hash; `head_count` is a power of two */
	size_t head_count;
};

/* Makes a table that has the root only. GT_ENOMEM: there is nothing to free. */
int gt_fuse_nodes_init(struct gt_fuse_nodes *nodes);
/* Frees the table. One that is all zero, or was freed before, is left alone. */
void gt_fuse_nodes_fini(struct gt_fuse_nodes *nodes);
/* The path of a number; NULL: there is no such number. From the receiving thread, for a number that the kernel has: the
 * path is valid until the receiving thread takes the kernel's look-ups back. */
const char *gt_fuse_nodes_path(struct gt_fuse_nodes *nodes, fuse_ino_t number);
/* The number of a path, a new one if it has none; counts one look-up more and notes the mode. The root's (path "") is not
 * counted. 0: no memory. */
fuse_ino_t gt_fuse_nodes_take(struct gt_fuse_nodes *nodes, const char *path, mode_t mode);
/* The mode that was noted of a path; 0: none, as of the root and of a path without a number. */
mode_t gt_fuse_nodes_mode(struct gt_fuse_nodes *nodes, const char *path);
/* Takes that many look-ups back, or all that there are; the last one frees the number, whatever readers it
 * has. Nothing happens to the root and to an unknown number. The kernel's from the receiving thread only, one's own
 * from any. */
void gt_fuse_nodes_forget(struct gt_fuse_nodes *nodes, fuse_ino_t number, uint64_t lookups);

/* Call when a file was opened for reading (1), and when such a file was closed (-1). */
void gt_fuse_nodes_count_reader(struct gt_fuse_nodes *nodes, fuse_ino_t number, int change);
/* Whether somebody has the file open for reading; false for an unknown number. */
bool gt_fuse_nodes_has_reader(struct gt_fuse_nodes *nodes, fuse_ino_t number);

/* What somebody has opened. Made by the receiving thread, then the working thread's. */
struct gt_fuse_file {
	struct gt_control_node node; /* the working thread's, as all but the next two */
	fuse_ino_t number;
	unsigned access; /* GT_CONTROL_READ, WRITE: what it was opened for and can be */
	bool waits;	 /* its reads may have to wait */

	bool reading; /* `reader` is open */
	struct gt_control_handle reader;
	uint64_t position; /* what `reader` gives next */
	bool at_end;	   /* of a file that waits */

	/* A page of a file that waits, being filled for splice(); NULL: nobody splices. */
	char *page;
	size_t page_bytes;
	unsigned empty_pages;	/* of comments alone, that may still be given */
	uint64_t page_since_ms; /* it has something */

	bool writing; /* `writer` is open */
	bool tried;   /* something was written since it was opened */
	struct gt_control_handle writer;

	/* Text that poll has read ahead of the reads. */
	char *ahead;
	size_t ahead_bytes;
	size_t ahead_given;
	struct fuse_pollhandle *poll; /* to be told when there is more; NULL: nobody waits */
	struct gt_fuse_file *next_polled;
	struct gt_fuse_file *next_open, *previous_open;
};

enum gt_fuse_work {
	GT_FUSE_OPEN,
	GT_FUSE_READ,
	GT_FUSE_WRITE,
	GT_FUSE_FLUSH,
	GT_FUSE_RELEASE,
	GT_FUSE_POLL,
	GT_FUSE_MAKE,
	GT_FUSE_REMOVE,
	/* Names: those that gt_fuse_answer_name() answers. */
	GT_FUSE_LOOK_UP,
	GT_FUSE_ATTRIBUTES,
	GT_FUSE_SET_ATTRIBUTES,
	GT_FUSE_OPEN_FOLDER,
	GT_FUSE_LIST,
};

#define GT_FUSE_PATH_BYTES 1024 /* of a path below the root, its zero byte included */

/* The most milliseconds that a traced thread waits for a change of its own tracing. */
#define GT_FUSE_LONG_MS 8

/* A request on its way to the working thread. */
struct gt_fuse_job {
	enum gt_fuse_work work;
	fuse_req_t request; /* gone once it is answered */
	pid_t thread;	    /* who asks */
	struct fuse_file_info info;
	struct gt_fuse_file *file;
	struct gt_fuse *fuse;
	struct fuse_pollhandle *poll;
	uint64_t offset;
	size_t bytes;	    /* to read, or of `data` */
	fuse_ino_t number;  /* of the path in `data`; 0 for a look-up */
	struct stat wanted; /* … attributes to set: those of `which` */
	int which;	    /* FUSE_SET_ATTR_… */
	bool of_open_file;  /* attributes are asked of an open file */
	bool spliced;	    /* a read for the page cache: splice(), sendfile() */
	bool changes;	    /* it may change what is traced */
	bool answered;	    /* under the lock */
	bool parked;	    /* in fuse->parked */
	bool looked;	    /* the receiving thread's: `traced` is known */
	bool traced;	    /* … a traced thread asks */
	struct gt_fuse_job *next;
	char data[]; /* to write; or a path, with a zero byte */
};

struct gt_fuse {
	struct fuse_session *session;
	struct gt_control_target *control;
	struct gt_fuse_nodes nodes;
	struct gt_fuse_owners *owners;
	bool mounted;
	bool started;
	int wake;  /* eventfd: the receiving thread shall end */
	uid_t uid; /* of all files, unless changed */
	gid_t gid;
	mode_t mode; /* of the root */
	struct timespec since;
	pthread_t receiver;
	pthread_t worker;
	atomic_bool gone;
	atomic_uint waiting_files; /* open ones that wait for more */
	atomic_uint changing;	   /* jobs that change something, queued and running */

	pthread_mutex_t lock; /* guards what follows, up to `running_since_ms` */
	pthread_cond_t more;
	struct gt_fuse_job *first, *last; /* in order */
	bool stopping;
	struct gt_fuse_job *running; /* that changes something */
	uint64_t running_since_ms;

	/* The working thread's own, without the lock. */
	struct gt_fuse_job *parked;  /* reads that wait, oldest first; the receiver's too, with the
				      * lock held, while a change is `running` */
	struct gt_fuse_file *polled; /* somebody waits for them */
	struct gt_fuse_file *opened; /* all that are open */
	struct timespec next_look;   /* at both */
};

/* Makes the table of owners and modes that were changed, empty. NULL: no memory. */
struct gt_fuse_owners *gt_fuse_owners_create(void);
/* Frees the table. Not NULL. */
void gt_fuse_owners_destroy(struct gt_fuse_owners *owners);
/* Notes a changed owner, group or mode of the path. which: bits FUSE_SET_ATTR_UID, _GID, _MODE of the members of
 * *wanted that are set; other bits are ignored. GT_ENOMEM, also if 65536 paths are noted. */
int gt_fuse_owners_set(struct gt_fuse_owners *owners, const char *path, const struct stat *wanted,
		       int which);
/* Changes the owner, group and mode in *state to those that were noted for the path. Without a note *state stays as it
 * is. */
void gt_fuse_owners_apply(struct gt_fuse_owners *owners, const char *path, struct stat *state);
/* Call when a folder was removed: forgets its owners and modes, and those below it. */
void gt_fuse_owners_forget(struct gt_fuse_owners *owners, const char *folder);

/* The type and the mode of a node, as long as nobody has changed it. Any thread; no lock. */
mode_t gt_fuse_mode(const struct gt_fuse *fuse, const struct gt_control_node *node);
/* Fills in *state as stat() shows a node of that mode, with what was noted in fuse->owners (gt_fuse_owners_apply, whose
 * lock it takes). From both threads. */
void gt_fuse_describe(const struct gt_fuse *fuse, const char *path, mode_t mode,
		      struct stat *state);

/* Makes the path of a name below a folder's path. False: it is too long. Any thread; no lock. */
bool gt_fuse_join(char path[GT_FUSE_PATH_BYTES], const char *above, const char *name);
/* Carries out a job of a name (GT_FUSE_LOOK_UP and the works behind it), whose path is in `data`, and answers it, with an
 * errno where it fails. The job stays the caller's. Takes the locks of the tables of nodes and of owners, each for
 * moments, and calls gt_control_find() and gt_control_list_next(), which take the target's locks: from the receiving
 * thread only where gt_control_find_waits() is false; from the working thread always. */
void gt_fuse_answer_name(struct gt_fuse *fuse, struct gt_fuse_job *job);
/* Whether a job asks for a name or attributes of it that can be answered as they were last found, without asking the
 * target: the kernel has the path's number. From the receiving thread, also with fuse->lock held; takes the lock of the
 * table of nodes. */
bool gt_fuse_is_known(struct gt_fuse *fuse, const struct gt_fuse_job *job);
/* Answers such a job. The job stays the caller's. From the receiving thread; takes the locks of the tables of nodes and of
 * owners, each for moments. */
void gt_fuse_answer_known(struct gt_fuse *fuse, struct gt_fuse_job *job);

/* Linux's errno (positive) for an enum gt_error; EIO for any other number. Any thread; no lock. */
int gt_fuse_errno(int64_t error);

/* Lets splice() and sendfile() read the file, although its size is 0: asks the kernel to take the file for a large
 * one, as long as it is cached. If the kernel refuses, they read nothing; that is not reported. From both threads, also
 * before the answer to a request of the file; takes no lock. */
void gt_fuse_allow_splice(struct gt_fuse *fuse, fuse_ino_t number);

/* The three below from the working thread only. */
/* Carries a job out and answers it, unless it was answered early (gt_fuse_claim). False: a read has to wait, and nothing
 * was answered. The job stays the caller's in both cases. Takes fuse->lock and the locks of the tables of nodes and of
 * owners, each for moments and without the others. It holds none of them while it calls the operations of
 * fuse->control, which take the target's locks. */
bool gt_fuse_do(struct gt_fuse *fuse, struct gt_fuse_job *job);
/* Closes all files that are still open, as the last thing that the working thread does: the receiving thread has ended.
 * Takes the lock of the table of nodes, and calls the operations of fuse->control, which take the target's locks; does
 * not take fuse->lock. */
void gt_fuse_close_files(struct gt_fuse *fuse);
/* Tells the kernel which of the files that are polled have more now. It reads them ahead for that: it calls the
 * operations of fuse->control, which take the target's locks. Does not take fuse->lock. */
void gt_fuse_look_polled(struct gt_fuse *fuse);

/* Marks the job as answered. True: it was not, so the caller has to answer it. False: the receiving thread has answered
 * it early. From the working thread; takes fuse->lock. */
bool gt_fuse_claim(struct gt_fuse_job *job);

/* Appends the job to the queue, which then owns it and its data, and wakes the working thread. Sets job->changes. From
 * the receiving thread; takes fuse->lock. */
void gt_fuse_push(struct gt_fuse *fuse, struct gt_fuse_job *job);
/* Makes a job: stores the parameters, the thread that asks and the file that `info` names; all other members are zero,
 * and so are the data_bytes bytes of `data`. NULL: no memory; then the request was answered with ENOMEM. From the
 * receiving thread; takes no lock. */
struct gt_fuse_job *gt_fuse_job_make(struct gt_fuse *fuse, enum gt_fuse_work work,
				     fuse_req_t request, struct fuse_file_info *info,
				     size_t data_bytes);

/* Frees the job, and its poll handle; job->file stays. Answers nothing: that must have been done. From the thread that
 * has the job; no lock is needed or taken. */
void gt_fuse_job_drop(struct gt_fuse_job *job);

/* Call before and after the working thread carries a job out that changes something (job->changes), in that thread. Both
 * take fuse->lock. */
void gt_fuse_begin_change(struct gt_fuse *fuse, struct gt_fuse_job *job);
void gt_fuse_end_change(struct gt_fuse *fuse);
/* Answers requests of traced threads if a change has been under way for GT_FUSE_LONG_MS: the change and closes with
 * success, known names (gt_fuse_is_known) as they were, others with EINTR where a stop of the tracing has interrupted
 * them. Frees jobs that need not be carried out any more. From the receiving thread; takes fuse->lock and, within it, the
 * lock of the table of nodes, and reads files of /proc without them. */
void gt_fuse_answer_traced(struct gt_fuse *fuse);

extern const struct fuse_lowlevel_ops gt_fuse_operations;

#endif
