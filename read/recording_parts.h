/* SPDX-License-Identifier: MIT */
/*
 * What the files of the recording reader share: the recording itself and who fills which part.
 *
 *	recording.c        opening, the target's operations, the facts about the run
 *	recording_scan.c   the pass over the blocks: finds, checks and indexes them
 *	recording_names.c  functions and objects
 *	recording_lines.c  source lines of functions
 *	recording_trace.c  sub-buffers: groups read, checked, decoded and kept for a while
 *	recording_kernel.c what Linux recorded
 *	recording_events.c events with fields
 *	recording_switches.c  context switches: a table of them
 *
 * One thread at a time, no locks. Functions that add take a payload whose checksum was right and whose contents may be
 * anything. They return 0; GT_EFORMAT with *why, a constant, and nothing was added; or GT_ENOMEM: the recording is to be
 * closed. The payload stays the caller's. Functions that free are called once, by gt_recording_close().
 */
#ifndef GT_READ_RECORDING_PARTS_H
#define GT_READ_RECORDING_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/file.h>
#include "core/trace/switches.h"
#include "read/columns.h"
#include "read/recording.h"

/* Where a sub-buffer stands. */
struct gt_place {
	uint64_t sequence;
	uint32_t group;
	uint32_t index; /* in the group */
};

/* A group of a SUB_BUFFERS block. */
struct gt_group {
	uint64_t offset; /* of its bytes in the file */
	uint64_t first_sequence;
	size_t first_entry; /* in recording->entries */
	uint32_t count;	    /* sub-buffers */
	uint32_t stored_bytes;
	uint32_t crc;
	uint32_t writer; /* index */
	uint16_t encoding;
	int16_t error;		  /* not 0: it was found damaged, and the problem was added */
	struct gt_cached *cached; /* its bytes in memory; NULL: they are not */
};

/* A group that was read lately. */
struct gt_cached {
	struct gt_cached *newer; /* by last use */
	struct gt_cached *older;
	uint32_t group;
	uint32_t given;			  /* sub-buffers, counted each time */
	bool is_given;			  /* as many as it has: it is the next to be closed */
	size_t bytes;			  /* of memory */
	uint8_t *plain;			  /* encoding PLAIN: as it stands in the file */
	struct gt_columns_group *columns; /* or the columns, open */
};

struct gt_writer_index {
	struct gt_writer writer;
	bool described;		 /* by a WRITERS block */
	struct gt_place *places; /* by sequence */
	size_t count;
	size_t size;
};

/* The functions of one FUNCTIONS block. */
struct gt_range {
	uint32_t pid;
	uint32_t first;
	uint32_t count;
	uint32_t string_bytes;
	uint64_t low; /* addresses: lowest, and highest end */
	uint64_t high;
	uint8_t *payload;	  /* ours */
	const uint8_t *functions; /* in it */
	const char *strings;
	uint32_t *by_address; /* NULL: they stand in order of their addresses */
};

/* A KERNEL block. */
struct gt_kernel_index {
	struct graftrace_block block;
	uint32_t kind, cpu; /* as struct graftrace_file_kernel has them */
};

struct gt_recording {
	struct gt_target target;
	struct gt_recording_info info;
	int fd;
	uint64_t bytes; /* of the file when it was opened */

	/* the scan */
	bool have_clock;
	bool damaged;
	uint64_t said_sub_buffers; /* by the END block */

	/* problems */
	uint32_t problem_count; /* also those that were not kept */
	char *problems[GT_RECORDING_PROBLEMS];

	/* strings of info */
	char **arguments;
	uint32_t argument_count;
	uint32_t argument_size;
	char **options;
	uint32_t option_count;
	uint32_t option_size;
	char **hists;
	uint32_t hist_count;
	uint32_t hist_size;
	char *command_line;
	char *strings[GRAFTRACE_STRING_OPTION]; /* by tag, those that there is one of */

	/* writers */
	struct gt_writer_index *writers;
	uint32_t writer_count;
	uint32_t writer_size;
	uint32_t *writer_slots; /* hash by generation, index + 1 */
	uint32_t writer_slot_count;

	struct gt_kernel_index *kernel; /* KERNEL blocks */
	uint32_t kernel_count;
	uint32_t kernel_size;

	/* trace */
	struct gt_group *groups;
	uint32_t group_count;
	uint32_t group_size;
	struct graftrace_file_sub_buffer *entries;
	size_t entry_count;
	size_t entry_size;
	struct gt_cached *newest;
	struct gt_cached *oldest;
	size_t cached_bytes;
	struct gt_columns_decoder *decoder;
	uint8_t *stored; /* a group's bytes, while they are decoded */
	size_t stored_size;

	/* events with fields: their descriptions, and for each the copy of its block that the
	 * strings stand in */
	struct gt_recording_event *events;
	uint32_t event_size, event_count;

	/* switches: taken in at the scan, without have_switches none were watched; a kernel's CPUs
	 * have them among their records, which are read for them when somebody asks */
	bool have_switches;
	bool looked_for_switches, kernel_switches;
	struct gt_switches switches;

	/* names */
	struct gt_range *ranges;
	uint32_t range_count;
	uint32_t range_size;
	uint32_t *range_of; /* by function number, index + 1; NULL: numbers are too sparse */
	uint32_t function_end;
	uint64_t function_count;
	uint32_t *by_low;  /* ranges by their lowest address */
	uint64_t *highest; /* highest end among the ranges up to that place */
	bool names_indexed;
	struct gt_recording_object *objects;
	uint32_t object_count;
	uint32_t object_size;
	struct gt_recording_lines *lines; /* by object; NULL: nobody has asked for any */
};

/* Adds a problem, a text as by printf of at most 511 bytes, to those of gt_recording_problem(): from number
 * GT_RECORDING_PROBLEMS on it is only counted. damage: figures made from what is left may be wrong. */
__attribute__((format(printf, 3, 4))) void
gt_recording_add_problem(struct gt_recording *recording, bool damage, const char *format, ...);

/* Reads `count` bytes at `offset`. Returns the number read (less at the end of the file), or GT_EIO, which it adds as a
 * problem. */
int64_t gt_recording_read(struct gt_recording *recording, uint64_t offset, void *bytes,
			  size_t count);

/* Makes room for `count` elements of `size` bytes in *array (a pointer's address), of which *room is the capacity.
 * The new elements are not set. 0; GT_ENOMEM: the array stays. */
int gt_recording_grow(void *array, uint32_t *room, uint64_t count, size_t size);

/* recording_scan.c: fills in the recording from its blocks. GT_EFORMAT: nothing of the file can be read; GT_EIO: it
 * cannot be read. For both the message says why, but for the path, before which it is put. GT_ENOMEM: the message stays.
 * With an error the recording is to be closed. */
int gt_recording_scan(struct gt_recording *recording, struct gt_message *message);
/* The writer with that generation, made if it is new; valid until the next call. During the scan. NULL: no memory. */
struct gt_writer_index *gt_recording_writer(struct gt_recording *recording, uint32_t generation);

/* recording_names.c. Adds the block of functions, or the object, in a payload of `bytes` bytes. add_functions takes the
 * payload over (sets *payload to NULL) if all is well. */
int gt_recording_add_functions(struct gt_recording *recording, uint8_t **payload, size_t bytes,
			       const char **why);
int gt_recording_add_object(struct gt_recording *recording, const uint8_t *payload, size_t bytes,
			    const char **why);
/* As struct gt_name_ops has them, and GT_ENOMEM: the first of these calls makes an index. The strings live as long as the
 * recording. */
int gt_recording_function(struct gt_recording *recording, uint32_t number,
			  struct gt_function *function);
int gt_recording_function_at(struct gt_recording *recording, uint32_t pid, uint64_t address,
			     struct gt_function *function);
void gt_recording_free_names(struct gt_recording *recording);

/* recording_lines.c: as struct gt_name_ops has it, and GT_ENOMEM. The first line of an object is looked for in its file,
 * which is read for it. */
int gt_recording_line(struct gt_recording *recording, uint32_t number, struct gt_source_line *line);
/* Call it before the names are freed. */
void gt_recording_free_lines(struct gt_recording *recording);
/* The process whose block of functions has that number (recording_names.c). 0; GT_ENOENT, also without memory for the
 * index. */
int gt_recording_pid_of(struct gt_recording *recording, uint32_t number, uint32_t *pid);

/* recording_trace.c. Adds the groups of a SUB_BUFFERS block with that head, whose body begins at `body` of the file; the
 * body is not read. */
int gt_recording_add_groups(struct gt_recording *recording, const uint8_t *head, size_t head_bytes,
			    uint64_t body, uint64_t body_bytes, const char **why);
/* Puts every writer's places in order, and adds problems for those that are missing or there twice. 0. Call it once,
 * behind the last add_groups; before it nothing is found. */
int gt_recording_index_places(struct gt_recording *recording);
/* Where that sub-buffer of the index-th writer stands; valid as long as the recording. NULL: it is not there. */
const struct gt_place *gt_recording_place(const struct gt_recording *recording, uint32_t writer,
					  uint64_t sequence);
/* Reads that sub-buffer into `out`, which has room for target.sub_buffer_bytes. Returns its words, or an error, as
 * gt_recording_target() says for sub_buffer. */
int64_t gt_recording_sub_buffer(struct gt_recording *recording, uint32_t writer, uint64_t sequence,
				struct graftrace_sub_buffer *out);
void gt_recording_free_trace(struct gt_recording *recording);

/* recording_kernel.c: notes where the block is. The payload has block->raw_bytes bytes, unpacked. */
int gt_recording_add_kernel(struct gt_recording *recording, const struct graftrace_block *block,
			    const uint8_t *payload, const char **why);

/* recording_events.c. Adds the event that the payload describes. */
int gt_recording_add_event(struct gt_recording *recording, const uint8_t *payload, size_t bytes,
			   const char **why);
/* Fills in *format with event `number`; its strings live as long as the recording. 0 or GT_ENOENT. */
int gt_recording_event(const struct gt_recording *recording, uint32_t number,
		       struct gt_event_format *format);
void gt_recording_free_events(struct gt_recording *recording);

/* recording_switches.c. Adds a block of switches to the table. GT_ENOMEM: some of them are not in it. */
int gt_recording_add_switches(struct gt_recording *recording, const uint8_t *payload, size_t bytes,
			      const char **why);
/* As struct gt_switch_ops has it, with its errors. Of a kernel's recording the first call reads all records; without
 * memory for that GT_ENOTSUP. */
int gt_recording_off_cpu(struct gt_recording *recording, uint32_t tid, uint64_t after,
			 struct gt_off_cpu *time);
void gt_recording_free_switches(struct gt_recording *recording);

#endif
