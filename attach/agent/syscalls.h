/* SPDX-License-Identifier: MIT */
/*
 * System calls at the `syscall` instructions of a process's objects (doc/design/syscalls.md): patched while
 * somebody asks for events of them (gt_selection.syscalls), and put back where nobody does any more. As
 * probes (attach/agent/probes.h): edits are prepared while the process runs, and applied with all
 * else.
 */
#ifndef GT_ATTACH_AGENT_SYSCALLS_H
#define GT_ATTACH_AGENT_SYSCALLS_H

#include "attach/agent/tracee.h"

/* A place in one process. */
struct gt_tracee_call {
	uint8_t state;	/* enum gt_function_state, never NOP */
	uint32_t noted; /* index + 1 in the region's journal, 0 = none yet */
	uint32_t extras;
	uint64_t block; /* in the region: stubs, then moved code; 0 = none yet */
};

/* Finds and plans the file's places if they are asked for; once. Before its functions are planned.
 * GT_ENOMEM, GT_EFORMAT. */
int gt_syscalls_plan(struct gt_catalog_file *file, const struct gt_selection *selection,
		     struct gt_message *message);
/* Whether some of them are asked for, and can be had. */
bool gt_syscalls_wanted(const struct gt_catalog_file *file, const struct gt_selection *selection);
/* Bytes of a region that they take. */
uint64_t gt_syscalls_bytes(const struct gt_catalog_file *file);

/* Prepares the object's edits. */
int gt_syscalls_patch(struct gt_tracee *tracee, struct gt_tracee_object *object,
		      const struct gt_selection *selection, bool running,
		      struct gt_message *message);

/* How many places of the object are patched, and how many are left alone. */
void gt_syscalls_count(const struct gt_tracee_object *object, uint32_t *patched, uint32_t *left);

/* Call when the object was loaded again: notes that nothing of it is patched. */
void gt_syscalls_come_back(struct gt_tracee_object *object);

/* The address of the program's instruction of which a copy of a system call's place stands at `address`; 0: there is
 * none. */
uint64_t gt_syscalls_old_place(const struct gt_tracee_object *object, uint64_t address);

#endif
