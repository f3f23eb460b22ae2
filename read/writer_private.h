/* SPDX-License-Identifier: MIT */
/* What the files writer*.c share. */
#ifndef GT_READ_WRITER_PRIVATE_H
#define GT_READ_WRITER_PRIVATE_H

#include <stdatomic.h>
#include <time.h>

#include "read/block_output.h"
#include "read/columns.h"
#include "read/pages.h"
#include "read/writer.h"

#define GT_FILE_WRITERS	       256	     /* changed ones that are gathered */
#define GT_FILE_NAME_MAX_BYTES 65535u	     /* longer names are cut */
#define GT_FILE_GATHER_NS      1000000000ull /* gathered blocks are written at least so often */

/* A gathered sub-buffer. */
struct gt_file_pending {
	uint64_t sequence;
	size_t at; /* offset in `gather` of its header; the words follow */
	uint32_t generation;
	uint32_t words;
};

struct gt_file_writer {
	struct gt_sink sink;
	struct gt_block_output output;
	bool compress;
	bool finished;
	bool goes_on;	      /* from the options */
	uint64_t missed;      /* calls in sub-buffers that came after an error */
	atomic_uint pressure; /* by gt_file_writer_set_pressure */
	unsigned (*ask_pressure)(void *data);
	void *ask_data;
	void (*see_writer)(void *data, struct gt_writer *writer); /* from the options */
	void *see_data;
	struct graftrace_file_clock clock;
	uint64_t sub_buffers;
	uint32_t functions;

	uint8_t *gather;
	size_t gather_size;
	size_t gathered;
	uint64_t oldest_ns; /* arrival of the first gathered sub-buffer */
	struct gt_file_pending *pending;
	struct gt_columns_input *inputs;
	uint32_t pending_count;
	uint32_t pending_size;
	struct gt_columns_encoder *encoder;	/* NULL: not packed */
	struct gt_pages_encoder *pages_encoder; /* NULL: there were no pages yet */
	uint8_t *kernel_files; /* gathered small files, as they stand in a block; NULL: none yet */
	size_t kernel_file_bytes;

	uint8_t *block; /* the block that is being made */
	size_t block_size;
	uint8_t *packed;
	size_t packed_size;

	uint32_t writer_count;
	struct graftrace_file_writer writers[GT_FILE_WRITERS];

	struct gt_switch *switches; /* gathered; NULL: none came yet */
	uint32_t switch_count;
	bool switches_said; /* a block of them was written */
	uint64_t switches_start, switches_lost;
};

/* The result that the sink's functions return. */
static inline int gt_file_writer_answer(const struct gt_file_writer *writer)
{
	return writer->goes_on ? 0 : writer->output.error;
}

static inline uint64_t gt_file_writer_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* writer.c. Notes the error GT_ENOMEM, and returns it. */
int gt_file_writer_no_memory(struct gt_file_writer *writer);
/* Begins a block in writer->block: returns the place of its payload, which will have `count`
 * bytes. NULL: no memory, and the error is set. */
uint8_t *gt_file_writer_start_payload(struct gt_file_writer *writer, size_t count);
/* Writes the payload of `count` bytes in writer->block, compressed if that is shorter. */
int gt_file_writer_put_payload(struct gt_file_writer *writer, enum graftrace_block_type type,
			       size_t count);

/* writer_start.c: the first block, and the options' if there are any. */
int gt_file_writer_put_start(struct gt_file_writer *writer,
			     const struct gt_file_writer_options *options);

/* writer_sub_buffers.c: writes what was gathered. */
int gt_file_writer_put_sub_buffers(struct gt_file_writer *writer);

/* Functions of the sink (struct gt_sink), here and in writer_names.c. */
int gt_file_writer_sub_buffer(void *data, const struct graftrace_sub_buffer *sub_buffer,
			      uint32_t words);
int gt_file_writer_object(void *data, uint32_t pid, const char *path, uint64_t start, uint64_t end,
			  uint64_t bias, const uint8_t *build_id, uint32_t build_id_bytes);
int gt_file_writer_functions(void *data, uint32_t pid, uint32_t first,
			     const struct gt_function *functions, uint32_t count);
int gt_file_writer_event(void *data, const struct gt_event_format *event);

#endif
