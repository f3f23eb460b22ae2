/* SPDX-License-Identifier: MIT */
/*
 * A recording file, opened: a struct gt_target over what it holds, what is known about the run, and
 * what is cut off or damaged. doc/format.md describes the file.
 *
 * Everything in the file is taken as hostile: lengths are checked before memory is taken, memory is
 * bounded by the file's size and a cache of fixed size, and checksums are compared before bytes are
 * used. Opening reads each block's header and all that is not trace; the trace itself is read and
 * checked when it is asked for, so a problem in it may show up only then. (Of writers that no block
 * describes, opening reads the first and the last sub-buffer.)
 *
 * From one thread at a time, the target's operations too. The file may be truncated or changed by others
 * meanwhile: that gives errors, never a signal.
 */
#ifndef GT_READ_RECORDING_H
#define GT_READ_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/target.h"

struct gt_recording;

/* About the run; it does not change after opening. Strings live as long as the recording; "" = not known. */
struct gt_recording_info {
	const char *const *argv; /* NULL-terminated */
	uint32_t argc;
	const char *command_line; /* argv joined by blanks, quoted for a shell where it must be */
	const char *program;
	const char *directory;
	const char *system;
	const char *host;
	const char *cpu;
	const char *made_by;
	const char *const *options; /* name=value, NULL-terminated */
	const char *const
		*hists; /* "SYSTEM:NAME", a line feed, text of the event's histograms; so, too */
	uint64_t realtime_ns; /* of the start, since 1970 */
	uint64_t file_bytes;
	uint64_t sub_buffers;	 /* in the index */
	uint64_t words;		 /* in them */
	uint32_t events;	 /* that are described: whether any happened is in the trace */
	bool has_switches;	 /* context switches were watched: */
	uint64_t switches;	 /* so many are there … */
	uint64_t switches_lost;	 /* … and so many are not */
	uint64_t switches_start; /* tsc: none from before is there */
	uint64_t whole_bytes;	 /* where the last whole block ends … */
	uint64_t blocks;	 /* … and its number + 1 */
	/* From the end block; zero without it. */
	bool ended;	 /* there is one: the recorder came to its end */
	int exit_status; /* of the program, as waitpid gives it */
	uint64_t ns;	 /* the run's duration */
	uint64_t calls;
	uint32_t threads;
	uint32_t processes;
	/* With an end block the totals, else the sum over the writers that are known. */
	uint64_t lost[GRAFTRACE_LOST_CAUSES];
};

/* An object that was mapped in a process, at start <= address < end. */
struct gt_recording_object {
	const char *path; /* as long as the recording; build_id, too */
	const uint8_t *build_id;
	uint32_t build_id_bytes; /* 0: not known */
	uint32_t pid;
	uint64_t start;
	uint64_t end;
	uint64_t bias;
};

/*
 * Opens `path`. GT_ENOENT: no such file; GT_EPERM, GT_EIO: cannot be read; GT_EFORMAT: not a
 * recording, of a newer format, or so damaged that nothing of it can be read (the message
 * has the byte offset); GT_ENOMEM. Other cut and damaged files open, and gt_recording_problem
 * says what is missing. With an error *recording is NULL, and `message` (NULL: none is wanted) has the
 * reason.
 */
int gt_recording_open(const char *path, struct gt_recording **recording,
		      struct gt_message *message);

/*
 * The target: all operations but consume, hold and now; valid until the recording is closed, and so are the
 * strings that it gives.
 * sub_buffer: GT_ENOENT before the writer's first or from its next on; GT_EFORMAT when it is damaged (the
 * problems say so) or missing between them; GT_ECUT when the file was cut since it was opened; GT_EIO,
 * GT_ENOMEM. The words come into `buffer`; `used` of the header is the number returned. writer: first and
 * next are of what the file holds; between them sub-buffers may be missing. function and function_at:
 * GT_ENOMEM, too.
 */
struct gt_target *gt_recording_target(struct gt_recording *recording);

/* Valid until the recording is closed. */
const struct gt_recording_info *gt_recording_info(struct gt_recording *recording);

/*
 * What is cut off, damaged or missing: one message each, with byte offsets, in the order they were
 * found; NULL behind the last. Grows while sub-buffers are read: ask (again) when reading is done.
 * There are at most GT_RECORDING_PROBLEMS messages: the last of so many only counts the others. Valid until
 * the next call of this function.
 */
#define GT_RECORDING_PROBLEMS 32
const char *gt_recording_problem(struct gt_recording *recording, uint32_t index);

/*
 * True if a part of the file that was read so far is damaged, missing or cut off within a block, so that
 * figures made from it are of less than was recorded. A recording that merely lacks its end block is not
 * damaged: it has a problem that says so, and everything that the file ever held before that point
 * is there.
 */
bool gt_recording_damaged(struct gt_recording *recording);

/* Reads and checks the whole trace now, so that all problems are known. 0 (of a damaged file, too), GT_EIO or
 * GT_ENOMEM. */
int gt_recording_verify(struct gt_recording *recording);

/* The index'th event with fields that is described; its strings live as long as the recording.
 * GT_ENOENT behind the last (gt_recording_info()->events). */
int gt_recording_event_at(const struct gt_recording *recording, uint32_t index,
			  struct gt_event_format *format);

/* One more than the highest function number; 1 if there are no functions. */
uint32_t gt_recording_function_end(struct gt_recording *recording);

/* The objects in the order of the file. 0 or GT_ENOENT. */
int gt_recording_object(struct gt_recording *recording, uint32_t index,
			struct gt_recording_object *object);

/* What Linux recorded beside (struct graftrace_file_kernel), block by block in the order of the file.
 */
struct gt_recording_kernel {
	uint32_t kind;
	uint32_t cpu;
	const char *name;     /* "" of pages */
	const uint8_t *bytes; /* … */
	size_t count;
	void *memory; /* of both: the caller's, for free() */
};

uint32_t gt_recording_kernel_count(struct gt_recording *recording);
/* Does the part hold pages of a CPU, of *cpu? `index` must be below the count. Nothing is read for that. */
bool gt_recording_kernel_has_pages(struct gt_recording *recording, uint32_t index, uint32_t *cpu);
/* Reads a part. Packed pages are given as pages. GT_ENOENT: no such part; GT_ENOMEM, GT_EIO; GT_EFORMAT: the
 * file has changed since it was opened. With an error there is nothing to be freed. */
int gt_recording_kernel(struct gt_recording *recording, uint32_t index,
			struct gt_recording_kernel *part);

/* A file in a part. It may go on in the next part, under the same name. */
struct gt_recording_kernel_file {
	const char *name; /* both as long as the part's memory */
	const uint8_t *bytes;
	size_t count;
};

/* Gives the part's files one by one; *at is 0 at first. False: there are no more, or these are pages. */
bool gt_recording_kernel_file(const struct gt_recording_kernel *part, size_t *at,
			      struct gt_recording_kernel_file *file);

/* Closes the file and frees all that belongs to the recording; NULL is allowed. */
void gt_recording_close(struct gt_recording *recording);

#endif
