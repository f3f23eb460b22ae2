/* SPDX-License-Identifier: MIT */
/*
 * Writes a recording file (doc/format.md) as a struct gt_sink: what comes in is gathered to blocks
 * of about a megabyte, packed if that is asked for and there is time, checksummed, and written
 * front to back with large writes. What was written stays whole whatever happens later; nothing is
 * synced to the disk.
 *
 * The sink's calls and the functions here come from one thread at a time, but for
 * gt_file_writer_set_pressure, which any thread may call; no locks. Functions that return int give 0 or an error:
 * GT_ENOSPC, GT_EIO and GT_EPERM (the file), GT_ENOMEM, and the sink's GT_EINVAL (numbers or fields that no file can
 * have). After an error every later call gives the same error and writes nothing. Bytes and strings that are given stay
 * the caller's, and are needed no more when the call returns.
 */
#ifndef GT_READ_WRITER_H
#define GT_READ_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/file.h>
#include "core/trace/target.h"
#include "read/recording.h"

struct gt_file_writer;

/* Strings and arrays end with the call; NULL = not known. */
struct gt_file_writer_options {
	size_t size;	  /* sizeof(struct gt_file_writer_options), or more: room to grow */
	const char *path; /* gt_recording_file_create(): an existing file becomes PATH.old */
	bool compress;
	int level; /* of zstd, 1 … 19; 0 = what was measured to be best */
	struct gt_clock clock;
	enum graftrace_tracer tracer;
	uint32_t cpu_count;	    /* 0 = ask the system */
	uint32_t sub_buffer_bytes;  /* largest sub-buffer, header included */
	const char *const *argv;    /* NULL-terminated */
	const char *program;	    /* path of the program's file */
	const char *const *options; /* name=value, NULL-terminated */
	/* For records of another place or time: the recording's maker, system, processor, directory and time
	 * are those of this one. NULL: they are the present ones. */
	const struct gt_recording_info *like;
	/* Asked before each group is packed: as gt_file_writer_set_pressure. NULL: not asked. */
	unsigned (*pressure)(void *data);
	void *pressure_data;
	/* Not 0: no file is created. The blocks are added to the recording at `path`, which has no end block,
	 * behind its whole blocks (gt_recording_info: whole_bytes, blocks); bytes after those are cut off.
	 * GT_EPERM: it is not a file of this user's with one name. */
	uint64_t append_at;
	uint64_t append_number;
	/* After an error the sink's functions, and no others, return 0 and only count calls
	 * (gt_file_writer_missed); the caller asks gt_file_writer_error. */
	bool goes_on;
	/* Sees each writer before it is written, and may give it another name. NULL: nobody does. */
	void (*see_writer)(void *data, struct gt_writer *writer);
	void *see_data;
};

/* Creates the file and writes its first block (the system's and the processor's names and the
 * directory are asked from the system). GT_EPERM, GT_ENOENT, GT_ENOSPC, GT_EIO, GT_ENOMEM,
 * GT_EINVAL (the path is too long, `size` too small), with the message, which must not be NULL; what stood at
 * the path before is at PATH.old then, or where it was. */
int gt_file_writer_create(const struct gt_file_writer_options *options,
			  struct gt_file_writer **writer, struct gt_message *message);

/* The sink; valid until the writer is destroyed. */
const struct gt_sink *gt_file_writer_sink(struct gt_file_writer *writer);

/* How short of sub-buffers the target is, 0 ... 100: from 25 on the trace is packed less well and
 * faster, from 90 on not at all, until it falls again. From any thread. */
void gt_file_writer_set_pressure(struct gt_file_writer *writer, unsigned percent);

/* Writes the gathered records to the file, but not the small files of gt_file_writer_kernel_gather(). */
int gt_file_writer_flush(struct gt_file_writer *writer);

/* The same if the oldest of them came more than a second ago: call it now and then, so that the records of a slow
 * program are in the file soon. The sink's functions do it too. */
int gt_file_writer_flush_old(struct gt_file_writer *writer);

/* Writes an option (name=value) that was not known at the start; cut to 65535 bytes. */
int gt_file_writer_option(struct gt_file_writer *writer, const char *option);

/* Writes the histograms of an event: "SYSTEM:NAME", a line feed and their text, at most GT_FILE_HISTS_BYTES; the
 * length is not checked. */
#define GT_FILE_HISTS_BYTES (32u << 20)
int gt_file_writer_hists(struct gt_file_writer *writer, const char *text);

/* Writes a file of a recording of Linux, by its name: in a block of its own, or several if it has more than 16 MiB. */
int gt_file_writer_kernel_file(struct gt_file_writer *writer, const char *name, const void *bytes,
			       size_t count);
/* The same for many small files, which share blocks; one of more than a MiB gets blocks of its own. A block is written
 * when it is full, or by gt_file_writer_kernel_gathered(): neither flush nor finish nor destroy writes it. */
int gt_file_writer_kernel_gather(struct gt_file_writer *writer, const char *name, const void *bytes,
				 size_t count);
int gt_file_writer_kernel_gathered(struct gt_file_writer *writer);
/* Writes a block of pages of a CPU's ring: `count` bytes, a multiple of page_bytes, up to 16 MiB, which is not checked. */
int gt_file_writer_kernel_pages(struct gt_file_writer *writer, uint32_t cpu, const void *pages,
				size_t count, size_t page_bytes);

/* Writes a block of another recording with its stored payload; only its place in the file and its checksums are made
 * anew. It is written at once, before the gathered records. */
int gt_file_writer_block(struct gt_file_writer *writer, const struct graftrace_block *block,
			 const void *payload);

/* The totals in the end block. */
struct gt_file_writer_totals {
	uint64_t words;
	uint64_t calls;
	uint64_t ns;
	uint32_t threads;
	uint32_t processes;
	int exit_status; /* as waitpid gives it */
	uint64_t lost[GRAFTRACE_LOST_CAUSES];
	struct gt_clock clock; /* as it was measured over the whole run; mult 0: as at the start */
};

/* Writes what is gathered (as flush) and the end block, and closes the file, which is then complete. Afterwards,
 * also after an error, only the sink, error, missed, bytes and destroy may be called. *message is set in any case, ""
 * without an error: not NULL. */
int gt_file_writer_finish(struct gt_file_writer *writer, const struct gt_file_writer_totals *totals,
			  struct gt_message *message);

/* The first error, which all later calls gave, too; "" if there was none. Lives as long as the writer. */
const char *gt_file_writer_error(struct gt_file_writer *writer);

/* The number of calls that were given to the sink and are not in the file, because of an error. */
uint64_t gt_file_writer_missed(const struct gt_file_writer *writer);

/* The length of the file so far; with append_at, what was there before included. */
uint64_t gt_file_writer_bytes(struct gt_file_writer *writer);

/* Frees the writer. Without gt_file_writer_finish() before, it writes the gathered records as by flush, and the file has
 * no end block. NULL is allowed. */
void gt_file_writer_destroy(struct gt_file_writer *writer);

#endif
