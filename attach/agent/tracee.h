/* SPDX-License-Identifier: MIT */
/*
 * A process with the agent in it: its objects, and which of their functions are patched. Changes
 * are made while the process is at its exec stop, while the only thread that could run new code
 * waits for us (dlopen), or while all its threads are stopped.
 */
#ifndef GT_ATTACH_TRACEE_H
#define GT_ATTACH_TRACEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/agent/catalog.h"
#include "attach/agent/edits.h"
#include "attach/agent/inject.h"
#include "attach/agent/selection.h"
#include "attach/process/pid_namespace.h"

enum gt_function_state {
	GT_FUNCTION_UNTOUCHED = 0,
	GT_FUNCTION_NOP = 1,	/* the compiler's five nops are one now: off */
	GT_FUNCTION_TRACED = 2, /* the jump to the stub is there */
	GT_FUNCTION_FOREIGN =
		3, /* its bytes are not the file's (a debugger's breakpoint): left alone */
};

/* Bits. */
enum gt_function_role {
	GT_ROLE_ROOT = 1,	 /* of set_graph_function */
	GT_ROLE_TRIGGER = 2,	 /* it has slots in the table of triggers, which tell the rest */
	GT_ROLE_NOTRACE = 4,	 /* of set_graph_notrace */
	GT_ROLE_ENTRY_ONLY = 16, /* its return slot is never taken, whatever its plan says */
	GT_ROLE_PROBED = 32,	 /* its stub goes on in that of a probe at its entry */
	GT_ROLE_ARGUMENTS = 64,	 /* they are recorded */
	GT_ROLE_RESULT = 128,
	GT_ROLE_RETURNS = 256, /* a probe waits for its return */
	GT_ROLE_SILENT = 8,    /* no filter names it: it is in the stack traces of others */
};

/* A probe. What of it is a site's is kept with the first probe there (gt_catalog_probe.site). */
struct gt_tracee_probe {
	uint8_t state;	/* of a site: enum gt_function_state, never NOP */
	bool on;	/* what leads to it is written, or will be with the edits */
	bool stale;	/* what was told of it is another time's: the object has come back */
	bool counted;	/* its semaphore says that we listen */
	uint32_t noted; /* of a site: index + 1 in the region's journal, 0 = none yet */
	uint32_t extras;
	uint64_t stub; /* of a site: in the region, and its moved code; 0 = none yet */
	uint64_t line; /* of a site: struct graftrace_event_line in the region; 0 = it has none */
	uint64_t
		line_of; /* address of the nop that unwinders were told of, for the line; 0 = none */
	uint64_t moved;
	uint64_t told; /* its struct graftrace_probe in the region; 0 = none yet */
	uint64_t next; /* the one that it leads to */
	uint32_t
		target; /* of a site of returns: where its stub goes on, as an offset in the hot text */
};

/* The stubs of a function's values; 0: none yet. */
struct gt_tracee_values {
	uint64_t arguments;
	uint64_t result;
	bool told_arguments; /* the sink knows what they are */
	bool told_result;
};

struct gt_tracee_call;

struct gt_tracee_object {
	struct gt_catalog_file *file;
	uint64_t bias;
	uint64_t start; /* of its executable mappings */
	uint64_t end;
	uint64_t inode; /* of the mapping at `start`, as the process's maps say */
	uint32_t device_major;
	uint32_t device_minor;
	int region;	 /* index in agent.regions, -1 = none of its functions is ours to trace */
	uint32_t slot;	 /* of its function 0 in the region */
	bool stubbed;	 /* its functions have slots there */
	bool left_out;	 /* its functions are not traced: those slots are for return probes */
	uint8_t *states; /* [function_count] enum gt_function_state */
	uint16_t *roots; /* [function_count] enum gt_function_role: what its stub is */
	uint64_t *moved; /* [function_count] its moved code, 0 = none yet */
	uint32_t *noted; /* [function_count] index + 1 in the region's journal of its patches
			  * elsewhere, 0 = none yet */
	struct gt_tracee_probe *probes; /* [probe_count] */
	uint32_t probe_count;		/* as many of the file's as are known here */
	/* [function_count], NULL: there are none. Sites (index + 1) at a function's entry and where it
	 * returns. */
	uint32_t *entry_sites;
	uint32_t *return_sites;
	struct gt_tracee_call *calls; /* of its system calls; NULL: none so far */
	bool program;		      /* the program itself */
	bool seen;		      /* in the pass over the maps */
	bool fresh;		      /* new in it */
	bool told;		      /* the sink knows its functions */
	bool gone;		      /* unloaded; its slots wait for the same file to come back */
	struct gt_tracee_values *values; /* [function_count]; NULL: none so far */
	bool hooked;
	uint64_t jumps_from; /* what the region was told: `start` */
	bool entry_only;     /* no return of it may be taken (attach/agent/resolver.h) */
	bool guarded;	     /* functions that ask who called them have stubs, named or not */
	bool resolved;	     /* that was looked at */
	int hook_sites[GT_HOOKS_MAX];	   /* index in the agent's hooks, -1 = none */
	uint64_t hook_stubs[GT_HOOKS_MAX]; /* and where stub and moved code stand, 0 = none */
	uint64_t hook_moved[GT_HOOKS_MAX];
	uint32_t hook_noted[GT_HOOKS_MAX]; /* in the journal, as noted[] */
	uint32_t hook_extras[GT_HOOKS_MAX];
};

struct gt_tracee {
	struct gt_process process;
	struct gt_agent agent;
	bool has_agent; /* false: followed only to see its end */
	/* The number of what is noted of it, which no other state of any process has; its agent's state has it, too
	 * (graftrace_agent_state.notes). 0: something is being changed. */
	uint64_t notes;
	bool clean;    /* left clean after fork */
	bool entering; /* threads have no %gs of ours yet */
	bool traps;    /* breakpoints may stand: attach/agent/traps.h */
	/* Why all of it is recorded at its entries only (attach/agent/copying.h), or
	 * GT_REASON_NONE: a library in it copies stacks. */
	enum gt_plan_reason copies;
	const char *no_traps; /* why they may not: static text; NULL: not tried, or they may */
	bool syscalls;	      /* they were asked for when the last patches were made */
	const char
		*no_syscalls; /* why none is taken all the same: static text; NULL: they may be */
	pid_t parent;
	pid_t inside; /* its number in its own PID namespace, as its letters and streams have it */
	struct gt_pid_map threads;   /* if that is another one than its number here */
	uint32_t threads_generation; /* of streams in its arena, when that was filled */
	uint32_t arena;		     /* the number of its arena */
	uint32_t moves_tried;	     /* to another one, in vain */
	uint64_t next_move_ns;	     /* not before */
	bool stays;		     /* it cannot get another one */
	struct gt_tracee_object **objects;
	size_t object_count;
	size_t object_room;
	uint64_t stopped_ns;   /* the longest stop of all threads for a change */
	uint64_t left_ns;      /* and in being detached from */
	struct gt_edits edits; /* of the change under way */
};

/*
 * All functions: with the session's lock held; a tracee is used by one thread at a time. Those that stop
 * threads are called within gt_tracer_run(), or call it themselves, as their comment says. `message` is
 * set with each error, except that an error of the sink, and GT_ENOMEM of planning patches, leave it as it
 * was.
 */

/* Puts the agent in at the exec stop, and patches what is mapped; the calling thread traces thread
 * `tid`, which stays stopped, and has set tracee->process. sink: told of objects and functions; may be
 * NULL. GT_ENOTSUP, GT_ENOMEM, GT_ENOSPC: the message says why; the program can run on without. GT_EIO,
 * GT_EGONE, an error of the sink. */
int gt_tracee_begin(struct gt_tracee *tracee, pid_t tid, const struct gt_arena *arena,
		    struct gt_catalog *catalog, const struct gt_selection *selection,
		    uint64_t tsc_per_ms, const struct gt_sink *sink, struct gt_message *message);

/*
 * The same for a process that runs, and is open (tracee->process): everything is planned and prepared
 * while it does; then all its threads are stopped, for little more than the writing of jumps. Within
 * gt_tracer_run(). On an error the agent, or a part of it, may be in (tracee->has_agent): the caller takes it
 * out by gt_detach_process().
 * GT_EGONE: it has ended; GT_EBUSY: a thread cannot be stopped; GT_EAGAIN: it has executed another
 * program meanwhile; GT_EPERM, GT_ENOTSUP, GT_ENOMEM, GT_ENOSPC, GT_EIO, an error of the sink.
 */
int gt_tracee_attach(struct gt_tracee *tracee, const struct gt_arena *arena,
		     struct gt_catalog *catalog, const struct gt_selection *selection,
		     uint64_t tsc_per_ms, const struct gt_sink *sink, struct gt_message *message);

/* Looks for loaded and unloaded objects. tid: a thread that waits for the answer to the letter `slot`
 * with that ticket; it is stopped for as long as something has to be mapped or patched, and the caller
 * answers the letter. Calls gt_tracer_run() itself. 0, also without agent; errors as of
 * gt_tracee_begin() and gt_tracee_apply(). */
int gt_tracee_objects(struct gt_tracee *tracee, pid_t tid, uint32_t slot, uint32_t ticket,
		      struct gt_catalog *catalog, const struct gt_selection *selection,
		      const struct gt_sink *sink, struct gt_message *message);

/* Makes the prepared edits, with the world stopped meanwhile (attach/agent/world.c). Within gt_tracer_run().
 * GT_EBUSY: a thread cannot be stopped; GT_EPERM: nor traced; GT_EGONE; GT_EAGAIN: it has executed another
 * program; GT_ENOTSUP, GT_EIO, GT_ENOMEM. */
int gt_tracee_apply(struct gt_tracee *tracee, struct gt_message *message);

/* Makes the patches what the selection says, with the world stopped meanwhile. Calls gt_tracer_run()
 * itself. 0, also without agent or where the process is ending; errors as of gt_tracee_apply(). */
int gt_tracee_select(struct gt_tracee *tracee, struct gt_catalog *catalog,
		     const struct gt_selection *selection, struct gt_message *message);

/* The same, with the same errors, where nothing has changed but for functions that these plain words name. */
int gt_tracee_select_words(struct gt_tracee *tracee, const struct gt_selection *selection,
			   const char *const *words, size_t count, struct gt_message *message);

/* What is noted of the process, or what stands there, is about to change: a child that is forked from now on is
 * described by nothing, until the change is over. Each function here that changes something calls it; who leaves the
 * process does, too. */
void gt_tracee_change(struct gt_tracee *tracee);

/* Whether what is noted of the tracee is true of the process: that is a fork of it, and neither has been changed
 * since. The process is open. */
bool gt_tracee_describes(const struct gt_tracee *tracee, const struct gt_process *process);

/* A forked child that the parent describes: the same agent, regions, objects. child: filled in, with its process,
 * which is opened here. GT_EGONE, GT_EPERM, GT_EIO, GT_ENOMEM. */
int gt_tracee_fork(const struct gt_tracee *parent, pid_t pid, struct gt_tracee *child,
		   struct gt_message *message);

/* Forgets objects and regions, before the agent is put into a new image. */
void gt_tracee_forget(struct gt_tracee *tracee);

/* Frees what is known and closes the process, to which nothing is done. */
void gt_tracee_fini(struct gt_tracee *tracee);

/* Whether function `index` is one that can be traced under the selection's rules of what counts. */
bool gt_tracee_can_trace(const struct gt_tracee_object *object, uint32_t index,
			 const struct gt_selection *selection);

#endif
