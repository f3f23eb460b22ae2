/* SPDX-License-Identifier: MIT */
/*
 * The files that traced code comes from, each opened and planned once in a session however many
 * processes map it, and the function numbers given out for them. Nothing is dropped before
 * gt_catalog_fini(): pointers and names that were given stay valid until then. Under the session's lock.
 */
#ifndef GT_ATTACH_CATALOG_H
#define GT_ATTACH_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/plan/hooks.h"
#include "attach/agent/names.h"
#include "attach/object/object.h"
#include "attach/object/probes.h"
#include "attach/plan/plan.h"
#include "core/trace/target.h"

struct gt_map;
struct stat;

/* Where a probe stands. */
enum gt_probe_kind {
	GT_PROBE_PLACE = 0, /* at an instruction: its site has a patch of its own */
	GT_PROBE_ENTRY =
		1, /* before the first instruction of a function: see attach/agent/probes.c */
	GT_PROBE_RETURN = 2, /* where a function returns */
};

struct gt_dynamic;
struct gt_synthetic_event;

/* A probe of a file. Those of the notes come first, then the dynamic ones in the order in which they
 * were set; none is ever taken out, for records may have its number. */
struct gt_catalog_probe {
	const struct gt_probe *probe;
	struct gt_dynamic *dynamic; /* whose it is; NULL: of the notes */
	uint32_t event;		    /* its number in records */
	uint32_t site;		    /* the first of the file's probes at the same place */
	uint32_t function;	    /* index, of GT_PROBE_ENTRY and _RETURN */
	uint8_t kind;		    /* enum gt_probe_kind */
	bool planned;		    /* kind, site and plan are valid */
	bool removed;
	bool told;		   /* the sink knows it */
	struct gt_plan_entry plan; /* of a site */
};

/* One file. */
struct gt_catalog_file {
	char *path; /* as /proc/PID/maps names it */
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	int64_t changed; /* its time of change, ns */
	int fd;
	uint64_t bytes;
	struct gt_object *object; /* NULL: not an ELF file for this machine */
	struct gt_plan *plan;
	bool prepared; /* by a compiler */
	bool no_demangle;
	bool sets_gs;		 /* its code has an instruction that sets %gs */
	bool unwinder_known;	 /* these two are valid: attach/agent/unwinders.h */
	uint64_t unwinder_start; /* the object's addresses */
	uint64_t unwinder_end;	 /* 0: none */
	bool system;		 /* lies where distributions put libraries */
	uint32_t function_count;
	struct gt_plan_entry *entries; /* [function_count]; valid where planned[] is set */
	uint8_t *planned;
	uint8_t *touched; /* [function_count]: 1 = it was patched at some time */
	uint8_t *askers; /* [function_count]: 1 = attach/agent/askers.h; NULL: not looked for yet */
	struct gt_names names;
	struct gt_hook hooks[GT_HOOKS_MAX];
	int hook_count; /* -1: not looked for yet, nor: */
	bool switches;	/* it switches contexts by the C library: attach/agent/suspended.h */
	struct gt_catalog_probe *probes; /* [probe_count] */
	uint32_t probe_count;
	uint32_t probe_room;
	struct gt_plan_entry *calls; /* [call_count] its system calls (attach/agent/syscalls.h) */
	uint32_t call_count;
	bool calls_known;
	struct gt_file_values *values; /* attach/agent/values.h; NULL: nobody asked */
};

/* Functions of one object in one process, with consecutive numbers. */
struct gt_catalog_block {
	struct gt_catalog_file *file;
	uint32_t first;
	uint32_t count;
	pid_t pid;
	uint64_t bias;
	uint64_t start; /* run-time addresses of its code */
	uint64_t end;
};

struct gt_catalog {
	struct gt_catalog_file **files;
	size_t file_count;
	size_t file_room;
	struct gt_catalog_block *blocks; /* by number */
	size_t block_count;
	size_t block_room;
	struct gt_dynamic **dynamics; /* attach/agent/dynamic.h */
	uint32_t dynamic_count;
	struct gt_synthetic_event **synthetics; /* attach/agent/synthetics.h */
	uint32_t synthetic_count;
	struct gt_object
		*looked_at; /* the last file that a probe was set in and that is not here */
	char *looked_path;
	uint32_t next_number;
	uint32_t next_event;
	uint32_t
		syscall_events; /* first number of theirs (attach/agent/syscall_events.h), 0: none yet */
	/* Of every file: set before the first one is opened. */
	bool breakpoints; /* in its plan */
	bool no_demangle; /* in what describes its functions */
};

void gt_catalog_init(struct gt_catalog *catalog);
void gt_catalog_fini(struct gt_catalog *catalog);

/* *file: the file that process pid has mapped there, opened at the first call. It belongs to the catalog.
 * file->object NULL: it is no object for this machine. GT_ENOENT: it cannot be opened (deleted); GT_ENOMEM. */
int gt_catalog_open(struct gt_catalog *catalog, pid_t pid, const struct gt_map *map,
		    struct gt_catalog_file **file, struct gt_message *message);

/* Opens the file of a mapping as the process sees it, for reading: by its path below the process's root (a container, a
 * chroot). One that was deleted or replaced is found through the mapping itself, where the kernel allows that. Fills in
 * *status. -1: it cannot be opened. */
int gt_catalog_open_mapped(pid_t pid, const struct gt_map *map, struct stat *status);

/* *entry: the plan of function `index`, made at the first call. Errors as of gt_plan_function(). */
int gt_catalog_plan(struct gt_catalog_file *file, uint32_t index,
		    const struct gt_plan_entry **entry, struct gt_message *message);

/* Looks for the file's hooks at the first call (file->hooks). Returns their number, 0 on errors. */
int gt_catalog_hooks(struct gt_catalog_file *file);

/* Adds a probe to the file. *probe stays the caller's, and must stay valid. Returns the catalog's entry for it; NULL: no
 * memory. */
struct gt_catalog_probe *gt_catalog_add_probe(struct gt_catalog *catalog,
					      struct gt_catalog_file *file,
					      const struct gt_probe *probe);
/* Plans those of the file's probes that are not planned yet. GT_ENOMEM, GT_EFORMAT. */
int gt_catalog_plan_probes(struct gt_catalog_file *file, struct gt_message *message);
/* Fills in *event for probe `index`; its strings are the file's. */
void gt_catalog_describe_event(const struct gt_catalog_file *file, uint32_t index,
			       struct gt_event_format *event);
/* The same for event `number` of any file. GT_ENOENT: there is none. */
int gt_catalog_event(const struct gt_catalog *catalog, uint32_t number,
		     struct gt_event_format *event);

/* Takes `count` consecutive numbers; 0 = there are no more. */
uint32_t gt_catalog_take_numbers(struct gt_catalog *catalog, uint32_t count);

/* Adds a copy of a block; they are kept sorted by number. GT_ENOMEM. */
int gt_catalog_add_block(struct gt_catalog *catalog, const struct gt_catalog_block *block);

/* Fills in *function for a function number, or for the address of code in process pid; its strings are the catalog's.
 * GT_ENOENT: there is no such function. */
int gt_catalog_function(struct gt_catalog *catalog, uint32_t number, struct gt_function *function);
int gt_catalog_function_at(struct gt_catalog *catalog, pid_t pid, uint64_t address,
			   struct gt_function *function);

/* Fills *function for function `index` of the file, loaded with `bias`. */
void gt_catalog_describe(struct gt_catalog_file *file, uint32_t index, uint64_t bias,
			 struct gt_function *function);

#endif
