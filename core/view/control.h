/* SPDX-License-Identifier: MIT */
/*
 * The control files: everything of a target that can be set or read, in one table of rows with a
 *read and a write function, named and behaving as the files of Linux's tracefs
 * (Documentation/trace/ftrace.rst). HTTP servers, file systems and the command line are doors to
 *this table and know no file by name. A row says for which kinds of targets it exists; elsewhere
 *there is no such file.
 *
 * Freestanding: no libc, no allocation, bounded memory (a struct gt_control_handle). A handle
 *belongs to one reader or writer; different handles on one target may be used by different threads
 *when the target's operations allow that.
 *
 *	find   path -> node (a file or a directory)
 *	open   node -> handle; GT_CONTROL_TRUNCATE is the shell's `>`, without it a write is `>>`
 *	read   the next bytes, 0 at the end, GT_EAGAIN: nothing yet (ask again later)
 *	write  bytes as `echo` gives them; how many were taken: lists take one word a call
 *	close  a list's changes take effect here, all or none
 */
#ifndef GT_CORE_VIEW_CONTROL_H
#define GT_CORE_VIEW_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>
#include "core/view/target.h"

/* Kinds of targets, as bits. */
enum gt_control_kind {
	GT_CONTROL_PROGRAM = 1,	  /* a program that is being traced */
	GT_CONTROL_RECORDING = 2, /* a recording file: nothing can be changed */
	GT_CONTROL_KERNEL = 4,	  /* the kernel that this runs in */
};

/* What of a target is one number. */
enum gt_control_value {
	GT_CONTROL_TRACING_ON,	 /* 0, 1 */
	GT_CONTROL_TRACER,	 /* enum graftrace_tracer */
	GT_CONTROL_MAX_DEPTH,	 /* 0 = no limit */
	GT_CONTROL_THRESHOLD_NS, /* 0 = none */
	GT_CONTROL_OPTIONS,	 /* bits of enum gt_control_option */
	GT_CONTROL_BUFFER_BYTES, /* what one writer may fill */
	GT_CONTROL_TOTAL_BYTES,	 /* all writers together */
	GT_CONTROL_CLOCK_ID,	 /* index of gt_control_clocks */
};

/* Lists of functions. */
enum gt_control_list {
	GT_CONTROL_AVAILABLE, /* every function that can be traced; read-only */
	GT_CONTROL_FILTER,
	GT_CONTROL_NOTRACE,
	GT_CONTROL_GRAPH,
};

/* Options of Linux's trace_options that exist here, as bits of GT_CONTROL_OPTIONS. */
enum gt_control_option {
	GT_OPTION_PRINT_PARENT = 1 << 0,
	GT_OPTION_SYM_OFFSET = 1 << 1,
	GT_OPTION_SYM_ADDR = 1 << 2,
	GT_OPTION_IRQ_INFO = 1 << 3,
	GT_OPTION_CONTEXT_INFO = 1 << 4,
	GT_OPTION_OVERWRITE = 1 << 5,
	GT_OPTION_FUNCTION_FORK = 1 << 6,
	GT_OPTION_GRAPH_CPU = 1 << 7,
	GT_OPTION_GRAPH_OVERHEAD = 1 << 8,
	GT_OPTION_GRAPH_DURATION = 1 << 9,
	GT_OPTION_GRAPH_PROC = 1 << 10,
	GT_OPTION_GRAPH_ABSTIME = 1 << 11,
	GT_OPTION_GRAPH_TAIL = 1 << 12,
};

/* Linux's defaults (overwrite and function-fork are the target's own). */
#define GT_OPTIONS_DEFAULT                                                      \
	(GT_OPTION_PRINT_PARENT | GT_OPTION_IRQ_INFO | GT_OPTION_CONTEXT_INFO | \
	 GT_OPTION_GRAPH_CPU | GT_OPTION_GRAPH_OVERHEAD | GT_OPTION_GRAPH_DURATION)

/* A function in a list; strings live until the list is closed. */
struct gt_control_name {
	const char *name;
	const char *module; /* shown in brackets; NULL or "": the target's own */
};

struct gt_control_target;

/*
 * What a target can do. Calls come from as many threads as there are handles in use. NULL members:
 * the rows that need them refuse with GT_ENOTSUP. Every int is 0 or a negative enum gt_error with a
 * message.
 */
struct gt_control_ops {
	int (*get)(struct gt_control_target *target, enum gt_control_value which, uint64_t *value);
	int (*set)(struct gt_control_target *target, enum gt_control_value which, uint64_t value,
		   struct gt_message *message);

	/* Opens a list for reading as it is now. 1: the list is not set (no filter), nothing was
	 * opened. */
	int (*list_open)(struct gt_control_target *target, enum gt_control_list which, void **list,
			 struct gt_message *message);
	/* 0, or GT_ENOENT behind the last. */
	int (*list_read)(struct gt_control_target *target, void *list, uint64_t index,
			 struct gt_control_name *name);
	void (*list_close)(struct gt_control_target *target, void *list);

	/* Changes of a list: `empty` starts from nothing. Nothing takes effect before edit_close
	 * with `apply`; without it the edit is thrown away. plain: the name itself, not a glob.
	 * GT_EINVAL from edit_add: no function matches; from edit_remove: none of the list does. */
	int (*edit_open)(struct gt_control_target *target, enum gt_control_list which, bool empty,
			 void **edit, struct gt_message *message);
	int (*edit_add)(struct gt_control_target *target, void *edit, const char *glob,
			size_t bytes, bool plain, struct gt_message *message);
	int (*edit_remove)(struct gt_control_target *target, void *edit, const char *glob,
			   size_t bytes, struct gt_message *message);
	int (*edit_close)(struct gt_control_target *target, void *edit, bool apply,
			  struct gt_message *message);

	/* The trace as text. consume: what is given is taken out of the ring; GT_EBUSY while
	 * another reader does. text_read: bytes, 0 at the end, GT_EAGAIN nothing yet. */
	int (*text_open)(struct gt_control_target *target, bool consume, void **text,
			 struct gt_message *message);
	int64_t (*text_read)(struct gt_control_target *target, void *text, char *buffer,
			     size_t bytes, struct gt_message *message);
	void (*text_close)(struct gt_control_target *target, void *text);

	/* Empties the ring. */
	int (*clear)(struct gt_control_target *target, struct gt_message *message);
};

struct gt_control_target {
	const struct gt_control_ops *ops;
	void *data; /* the implementation's own */
	enum gt_control_kind kind;
	struct gt_target *view; /* its writers; may be called by every handle's thread */
};

struct gt_control_handle;

#define GT_CONTROL_READ	    1u
#define GT_CONTROL_WRITE    2u
#define GT_CONTROL_TRUNCATE 4u /* with WRITE: as the shell's `>` opens it */

/* A row of the table. */
struct gt_control_file {
	const char *path;    /* below the root; `#` stands for a thread's number */
	const char *help;    /* one line, for README and the man page */
	uint8_t kinds;	     /* where it exists */
	uint8_t readable;    /* where it can be read */
	uint8_t writable;    /* where it can be written */
	bool acts_when_read; /* reading it changes something (Nanos's tracing_enable/) */
	bool waits;	     /* its reader may have to wait for more (GT_EAGAIN) */
	uint32_t argument;   /* for functions that several rows share */
	const char *refusal; /* why it cannot be written where it cannot, or NULL */
	int (*open)(struct gt_control_handle *handle, unsigned access, struct gt_message *message);
	int64_t (*read)(struct gt_control_handle *handle, char *buffer, size_t bytes,
			struct gt_message *message);
	int64_t (*write)(struct gt_control_handle *handle, const char *bytes, size_t count,
			 struct gt_message *message);
	int (*close)(struct gt_control_handle *handle, bool apply, struct gt_message *message);
};

/* What a path names. */
struct gt_control_node {
	const struct gt_control_file *file; /* NULL: a directory */
	const char *directory;		    /* a row's path of which the first … */
	size_t directory_bytes;		    /* … bytes name the node; 0: the root */
	uint64_t number;		    /* of the thread, where the path has one */
};

/* An entry of a directory. */
struct gt_control_entry {
	char name[64];
	struct gt_control_node node;
};

/* An open control file. The caller's memory; the fields are the table's. */
struct gt_control_handle {
	struct gt_control_target *target;
	const struct gt_control_file *file;
	uint64_t number;
	unsigned access;
	void *opened;	   /* list, edit or text of the target's operations */
	bool unset;	   /* the list is not set */
	uint64_t line;	   /* next to be given */
	size_t line_given; /* bytes of it that were given already */
	size_t text_bytes; /* value files: `text` holds the whole, made when opened */
	char text[1024];
};

/* The table itself. Hidden: a kernel has no table of global offsets. */
extern const struct gt_control_file gt_control_files[] __attribute__((visibility("hidden")));
extern const uint32_t gt_control_file_count __attribute__((visibility("hidden")));

/* A path without the leading slash, slashes at the end allowed. 0 or GT_ENOENT. */
int gt_control_find(struct gt_control_target *target, const char *path, size_t bytes,
		    struct gt_control_node *node);

/* Entries of a directory, in the table's order; 0 or GT_ENOENT behind the last. */
int gt_control_list(struct gt_control_target *target, const struct gt_control_node *directory,
		    uint32_t index, struct gt_control_entry *entry);

/* Whether a file can be read, written here: GT_CONTROL_READ | GT_CONTROL_WRITE. */
unsigned gt_control_access(const struct gt_control_target *target,
			   const struct gt_control_file *file);

/* Opens a file. GT_EINVAL: a directory; GT_EPERM: not for that; and what the row's operation says.
 * On failure there is nothing to close. */
int gt_control_open(struct gt_control_handle *handle, struct gt_control_target *target,
		    const struct gt_control_node *node, unsigned access,
		    struct gt_message *message);
int64_t gt_control_read(struct gt_control_handle *handle, char *buffer, size_t bytes,
			struct gt_message *message);
int64_t gt_control_write(struct gt_control_handle *handle, const char *bytes, size_t count,
			 struct gt_message *message);
/* apply: whether what was written to a list takes effect (false after an error). */
int gt_control_close(struct gt_control_handle *handle, bool apply, struct gt_message *message);

/* Opens, writes all of `bytes` (one word after the other) and closes: all or, on any error,
 * nothing. */
int gt_control_put(struct gt_control_target *target, const struct gt_control_node *node,
		   bool truncate, const char *bytes, size_t count, struct gt_message *message);

/* An option by its name ("funcgraph-proc") or 0. */
uint32_t gt_control_option(const char *name, size_t bytes);

/* A tracer by its name, or -1; and the name of one. */
int gt_control_tracer(const char *name, size_t bytes);
const char *gt_control_tracer_name(uint32_t tracer);

#endif
