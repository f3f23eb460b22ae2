/* SPDX-License-Identifier: MIT */
/*
 * What the parts of detaching share: detach.c (rounds, code), detach_jumps.c (islands), detach_slots.c (return slots),
 * detach_unwinders.c and detach_exceptions.c (exceptions under way), detach_frames.c and detach_walks.c (walks over frames), detach_inside.c (who is inside), detach_places.c
 * (where moved code belongs), detach_out.c (unmapping).
 *
 * All functions are called by the thread that detaches, within one round: every thread of the process is
 * stopped. (gt_detach_read_agent() and gt_detach_has_jumps() are also called while it runs.) They take no
 * lock. Those that return int give 0 or an error: GT_ENOMEM; GT_EGONE: the process has ended; GT_EIO,
 * GT_EPERM: its memory cannot be read or written; GT_ENOTSUP: a thread runs 32-bit code. After an error the round
 * ends, and detaching with it.
 * Addresses are the process's. Nothing that is read there is believed before it is checked.
 */
#ifndef GT_ATTACH_DETACH_PRIVATE_H
#define GT_ATTACH_DETACH_PRIVATE_H

#include <graftrace/agent.h>
#include <graftrace/arena.h>
#include "attach/agent/detach.h"
#include "attach/agent/suspended.h"
#include "attach/process/threads.h"

#define GT_DETACH_PAGE	    4096ull
#define GT_DETACH_GRANULE   (1ull << GRAFTRACE_GRANULE_SHIFT)
#define GT_DETACH_MIRROR    (1ull << GRAFTRACE_MIRROR_BIT) /* of a granule */
#define GT_DETACH_HIGHEST   (1ull << 47)
#define GT_DETACH_ARENA	    "/memfd:graftrace (deleted)"
#define GT_DETACH_UNWINDERS (GRAFTRACE_AGENT_UNWINDERS + 8)
/* So much of a stack is looked at, from the red zone on (compilers use 128 bytes). */
#define GT_DETACH_RED_ZONE    128u
#define GT_DETACH_STACK_WORDS ((65536u + GT_DETACH_RED_ZONE) / 8)
/* An address of ours this near to a return address into an unwinder is in its frames. */
#define GT_DETACH_NEAR_WORDS 256u
/* The general registers of user_regs_struct, which it begins with: r15 … rdi. */
#define GT_DETACH_GENERAL 15
/* A thread's own registers, and those of signals' handlers, one on top of the other. */
#define GT_DETACH_CONTEXTS 8
/* Hooks that stay for some rounds, in one process: those of unwinders, of prctl and syscall. */
#define GT_DETACH_KEPT 64
/* Threads that are walked between two rounds. */
#define GT_DETACH_WALKS 64

/* A thread, as the rounds have seen it since the code got its bytes back. */
struct gt_seen_thread {
	pid_t tid;
	bool left;	 /* stood outside our code once: it never takes a return slot again */
	bool clean;	 /* … and then held no address of ours: it never gets one again */
	bool past_walks; /* stood outside since no call is led to the hook of walks any more */
	bool past_calls; /* was in no unwinder since no call of the program's is under way */
	bool throws;	 /* may have been in one then */
	bool new;	 /* not asked for its time yet */
	/* CPU time (clock ticks) when it was first seen to hold one, or to unwind */
	uint64_t ticks;
	uint32_t alone; /* the round in which it was last seen without a handler's frame */
	uint32_t tries; /* to walk its frames that had no answer */
	bool walked;	/* its frames were, */
	bool unwinds;	/* … and showed an unwinder, or could not be walked, */
	uint64_t sum;	/* … with this in registers and stack */
};

struct gt_addresses {
	uint64_t *at;
	size_t count;
	size_t room;
};

/* Appends one, so the list is not sorted afterwards. GT_ENOMEM: the list stays. The owner frees list->at. */
int gt_addresses_add(struct gt_addresses *list, uint64_t address);
void gt_addresses_sort(struct gt_addresses *list);
/* Whether the address is in a sorted list. */
bool gt_addresses_have(const struct gt_addresses *list, uint64_t address);

/* A thread that waits, as it was copied in a stop. */
struct gt_detach_walk {
	pid_t tid;
	uint64_t sum;  /* of registers and words: the same sum, the same answer */
	uint64_t last; /* the highest stack pointer that matters */
	struct user_regs_struct registers;
	/* That of the thread, and those that signals have interrupted. */
	struct gt_detach_stack {
		uint64_t at;
		uint64_t *words;
		size_t count;
	} stacks[GT_DETACH_CONTEXTS];
	size_t count;
};

/* Which hooks the code has yet: see undo_hooks() in detach.c. One follows the other. */
enum gt_detach_stage {
	GT_DETACH_HAS_WALKS, /* that of walks, which does not tell of our frames, and the next ones */
	GT_DETACH_HAS_LOOKUPS, /* those by which unwinders find unwind data */
	GT_DETACH_HAS_LEFT, /* the same; the agent makes no more calls of the program's that may throw */
	GT_DETACH_HAS_FINDS, /* of those the ones that call nothing of the program's */
	GT_DETACH_HAS_NONE,
};

struct gt_detach {
	struct gt_process *process;
	struct gt_tracee *tracee; /* NULL: not known to this host */
	pid_t waits; /* a thread that waits in the agent, called by no unwinder; 0: none */
	uint64_t image;
	struct graftrace_agent_image header;
	struct graftrace_agent_state state;
	/* The functions' stubs of each region. */
	struct {
		uint64_t start;
		uint64_t bytes;
	} stubs[GRAFTRACE_AGENT_REGIONS];
	struct gt_maps maps; /* of this round */
	/* Of threads whose frames are to be walked before the next round. */
	struct gt_detach_walk wanted[GT_DETACH_WALKS];
	size_t wanted_count;
	/* This round's unwinders: those that are linked into the program first. */
	struct {
		uint64_t start;
		uint64_t end;
	} unwinders[GT_DETACH_UNWINDERS];
	uint32_t unwinder_count;
	struct gt_addresses left;	    /* slots that stay in this round, sorted */
	struct gt_addresses restored;	    /* that came back in this round */
	struct gt_addresses fixed;	    /* exceptions that belong to them, and are mended */
	struct graftrace_granule *granules; /* of this round, by address */
	size_t granule_count;
	/* Hooks' jumps that stay for now. */
	struct {
		uint64_t address;
		uint32_t bytes;
	} kept[GT_DETACH_KEPT];
	uint32_t kept_count;
	enum gt_detach_stage stage;
	bool keeps_calls; /* the hooks of prctl and syscall stay, too, while stage is the first */
	bool walking;	  /* someone is in the hook of walks, or may be */
	bool throwing;	  /* an exception is on its way through the agent's frames, or may be */
	bool handling;	  /* this round's: a signal has interrupted our code, its handler runs */
	struct gt_seen_thread *threads;
	size_t thread_count;
	size_t thread_room;
	uint32_t rounds;	/* begun */
	uint64_t stop_ns;	/* how long the last one's stop was */
	uint32_t walks;		/* rounds that a walk of V8's was waited for */
	uint32_t lookup_rounds; /* … that lookups were waited for */
	bool quiet;		/* all threads have left: nobody will take a slot any more */
	bool foreign;		/* someone else wrote over a patch */
	bool breakpoint;	/* … int3, over its first byte */
	bool elsewhere;		/* a thread was seen on a stack that is not its own: coroutines */
	bool inside;		/* someone stands in our code */
	bool outside;		/* all threads were seen outside of it in the same round */
	bool looked;		/* … after which `places` were looked for */
	bool clean;		/* this round's: no thread holds an address of ours, or will */
	bool runs;		/* the process has run between two rounds */
	/* Where contexts that no thread runs may be saved. */
	struct gt_suspended_places places;
};

/* Frees what a struct gt_detach that calloc() has made owns, and the struct. */
void gt_detach_free(struct gt_detach *out);

/* Whether the address is in the code of the agent's image or in a region. */
bool gt_detach_is_ours(const struct gt_detach *out, uint64_t address);
/* Whether it is in a region. */
bool gt_detach_in_region(const struct gt_detach *out, uint64_t address);
/* Reads out->header and out->state from the agent at out->image, and fills in out->stubs. GT_EFORMAT: there is
 * no agent that can be read, or its state was overwritten. message may be NULL. */
int gt_detach_read_agent(struct gt_detach *out, struct gt_message *message);
/* Whether the address is the return point of a function's stub: what a return slot of ours holds. Other
 * addresses in a region tell nothing of slots: an unwinder has addresses of unwind data (page 0) on its
 * stack. */
bool gt_detach_is_stub_return(const struct gt_detach *out, uint64_t address);

/* Copies page 0 of region `index`, which must be below state.region_count. False: it cannot be read, or its journal
 * does not lie in the region. */
bool gt_detach_region(const struct gt_detach *out, uint32_t index, struct graftrace_region *page);

/* Calls each(data, patch) for the entries first ≤ i < end of the journal at address `journal`, until one
 * returns other than 0, and returns that. The patch is valid during the call. */
int gt_detach_each_patch(const struct gt_detach *out, uint64_t journal, uint32_t first,
			 uint32_t end, int (*each)(void *data, const struct graftrace_patch *patch),
			 void *data);

/* detach_jumps.c: jumps of ours in the midst of the program's code (islands). has_jumps: whether there are any;
 * true also if that cannot be found out. leave_jumps: moves threads that stand at such a jump, and contexts
 * that were saved there (in out->places), to where the jump leads. Call it before the code gets its bytes
 * back. */
bool gt_detach_has_jumps(const struct gt_detach *out);
int gt_detach_leave_jumps(struct gt_detach *out, const struct gt_stopped_threads *threads);

/* detach_slots.c. read_granules: fills out->granules with those that have a mirror, by address; none if the
 * process's table cannot be read. stack_of: the address of a granule's stack. put_back: gives every return slot
 * that leads to a stub the address that the mirror has, but for those at which an unwinder stands (out->left), and
 * exceptions under way what belongs to it. Call it with out->maps and out->granules of this round. */
int gt_detach_read_granules(struct gt_detach *out);
uint64_t gt_detach_stack_of(const struct graftrace_granule *granule);
int gt_detach_put_back(struct gt_detach *out, const struct gt_stopped_threads *threads);

/* detach_unwinders.c. */
/* Fills out->unwinders with the address ranges of unwinders' code: those that the agent's state names, then
 * libraries in out->maps. is_unwinder: whether an address is in one of them. */
void gt_detach_find_unwinders(struct gt_detach *out);
bool gt_detach_is_unwinder(const struct gt_detach *out, uint64_t address);
/* words: `count` of a thread's stack, upwards from its stack pointer (or red zone); near: as many. Sets near[i]
 * if words[i] stands within GT_DETACH_NEAR_WORDS of a return address into an unwinder; also the first words if
 * the thread runs in one. Returns whether it runs in one or has such a return address. */
bool gt_detach_mark_near(const struct gt_detach *out, const struct user_regs_struct *registers,
			 const uint64_t *words, size_t count, bool *near);
/* Call before slots are put back: finds the slots at which an unwinder stands. They stay as they are in
 * this round (out->left). leaves: whether that slot does. */
int gt_detach_look_at_unwinders(struct gt_detach *out, const struct gt_stopped_threads *threads);
bool gt_detach_leaves(const struct gt_detach *out, uint64_t slot);

/* detach_frames.c. contexts: fills in the registers of a stopped thread, and those that signals have interrupted
 * whose handlers run, from the inmost on, and returns how many; what is left over on a stack may look like a
 * handler's frame. only_waits: the thread waits in a system call outside our code, and no unwinder is in its frames, so
 * what its stack holds of ours is left over. It is asked of what looks held, for the frames may have to be walked first:
 * then it is false in this round, and the thread is among out->wanted. Always false in the first rounds: an unwinder
 * makes short calls itself (a lock); and if the frames cannot be walked. free_walk: frees what a wanted walk holds. */
size_t gt_detach_contexts(struct gt_detach *out, pid_t tid,
			  const struct user_regs_struct *registers,
			  struct user_regs_struct all[GT_DETACH_CONTEXTS]);
bool gt_detach_only_waits(struct gt_detach *out, pid_t tid,
			  const struct user_regs_struct *registers);
void gt_detach_free_walk(struct gt_detach_walk *walk);

/* detach_walks.c: walks the frames of what is wanted, in a child process of ours, for a second at most; the answers
 * are noted with the threads. Call it between two rounds, while no process is stopped. It needs no out->maps. */
void gt_detach_walk(struct gt_detach *out);

/* detach_exceptions.c. note_restored: adds the address of a slot that was put back in this round. Then
 * fix_exceptions, once: exceptions under way whose handler was found by the stub's CFA of such a slot get the
 * CFA of the call itself; it empties the list. */
int gt_detach_note_restored(struct gt_detach *out, uint64_t slot);
int gt_detach_fix_exceptions(struct gt_detach *out, const struct gt_stopped_threads *threads);

/* detach_inside.c. has_mirror: whether the address is in one of out->granules. read_stack: copies a thread's
 * stack upwards from its red zone (GT_DETACH_RED_ZONE below the stack pointer), and returns how many words; *at:
 * the address of the first. 0: the stack is in no writable mapping or cannot be read; *at may not be set.
 * seen_thread: what is known of a thread; NULL: no memory. It is valid until the next call. */
bool gt_detach_has_mirror(const struct gt_detach *out, uint64_t address);
struct gt_seen_thread *gt_detach_seen_thread(struct gt_detach *out, pid_t tid);
size_t gt_detach_read_stack(const struct gt_detach *out, const struct user_regs_struct *registers,
			    uint64_t words[GT_DETACH_STACK_WORDS], uint64_t *at);
/* Moves threads that stand in moved code to the program's own, and sets `inside`, `walking`, `outside`, `quiet`
 * and `clean` of *out. Call with out->maps of this round, after the slots were put back. */
int gt_detach_look_inside(struct gt_detach *out, const struct gt_stopped_threads *threads);

/* detach_places.c: the address of the program's own code at which a thread goes on that stands at or right
 * behind a `syscall` instruction of moved code. It is found by the region's own tables, for processes of
 * which this host has no plans. 0: it is not known, or that is no such instruction. Needs out->maps. */
uint64_t gt_detach_place_of_call(const struct gt_detach *out, uint64_t address);

/* detach_out.c: clears %gs of all threads and unmaps all that is ours, the image last. Only when no thread is
 * inside or holds an address of ours. Without out->tracee it also closes the descriptors that another host has left.
 * Also GT_EAGAIN: the process has entered a sandbox. After an error a part is unmapped; what is left can still be found
 * by gt_detach_find(). */
int gt_detach_unmap(struct gt_detach *out, const struct gt_stopped_threads *threads,
		    struct gt_message *message);

#endif
