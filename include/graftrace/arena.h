/* SPDX-License-Identifier: MIT */
/*
 * The arena: the shared memory between traced programs and the host side. It survives them: what
 * was written before a SIGKILL is read after it. Two sealed memfds of the host, which processes have
 * mapped as one range:
 *
 *	header (a page) | shared (a page) | streams[stream_count] |
 *	states[sub_buffer_count + small_count] | mail[mail_count] | sub-buffers |
 *	small sub-buffers | trigger_hits[trigger_count] | rule_words | selected | profile states |
 *	profile pages | tables of histograms | triggers[trigger_count] | event_table[event_count] |
 *	rules of events | syscalls | answers[mail_count]
 *
 * The header, the triggers and what follows them are the host's: processes have them read-only, and can get them no
 * other way (F_SEAL_FUTURE_WRITE). All else is written by every process that has the arena: those with the same
 * credentials. Arenas of one recording are laid out alike and have the host's part in common, but for the answers.
 *
 * Trust: any process may be broken or hostile, to the host and to the others. The host copies what
 * processes have written, then checks the copy. The agent takes every size, offset, count and setting
 * from the host's part; it compares indexes found elsewhere with the counts there, and follows no
 * address. A kernel (core/record/kernel.h) has all of it in its own memory.
 *
 * A sub-buffer's life (states[i].word, one 64-bit atomic):
 *	FREE    on the free stack, all words zero (the host zeroed it)
 *	ACTIVE  owned by one writer
 *	FULL    closed by its writer, to be read; in drain mode the host takes FULL ones, zeroes
 *	        them and frees them; in ring mode they stay until a consuming reader takes them
 *	READING taken by the host: a consuming reader gives its records (ring modes), or they are
 *	        on their way to the file
 * In overwrite mode a writer turns the oldest FULL one of its own back to ACTIVE (with the new
 * sequence) by a compare-and-swap: a reader that copied it meanwhile sees the changed word and throws
 * the copy away.
 */
#ifndef GRAFTRACE_ARENA_H
#define GRAFTRACE_ARENA_H

#include <stddef.h>
#include <stdint.h>
#include <graftrace/record.h>

#define GRAFTRACE_ARENA_MAGIC	0x33414e4552415447ull /* "GTARENA3" */
#define GRAFTRACE_ARENA_STREAMS 32768 /* the agent knows as many threads of a process */
#define GRAFTRACE_ARENA_MAIL	64
#define GRAFTRACE_ARENA_PATH	1024 /* of the recording's path, NUL included */
#define GRAFTRACE_ARENA_SHARED	4096 /* offset of the header's second page */
#define GRAFTRACE_SMALL_BYTES	4096
#define GRAFTRACE_ARENA_EVENTS	16384	    /* of which each can have rules, … */
#define GRAFTRACE_ARENA_WORDS	4096	    /* … which count in these, … */
#define GRAFTRACE_ARENA_RULES	(4u << 20)  /* … and bytes of these */
#define GRAFTRACE_ARENA_HISTS	(64u << 20) /* bytes of histograms' tables, where there is room */
#define GRAFTRACE_ARENA_SYSCALLS \
	512 /* numbers of system calls below this have events of their own */

enum graftrace_sub_buffer_state {
	GRAFTRACE_SUB_BUFFER_FREE = 0,
	GRAFTRACE_SUB_BUFFER_ACTIVE = 1,
	GRAFTRACE_SUB_BUFFER_FULL = 2,
	GRAFTRACE_SUB_BUFFER_READING = 3,
};

/* word: sequence (low 40 bits) << 24 | stream << 4 | state. next: free stack, index + 1, 0 = end;
 * while it is not FREE, the writer's note of when it was opened. */
struct graftrace_sub_buffer_entry {
	uint64_t word;
	uint32_t next;
	uint32_t successor; /* the writer's note: index + 1 of the one that it opened after this */
};

static inline uint64_t graftrace_state_word(enum graftrace_sub_buffer_state state, uint32_t stream,
					    uint64_t sequence)
{
	return sequence << 24 | (uint64_t)(stream & 0xfffff) << 4 | (uint64_t)state;
}

static inline uint32_t graftrace_word_state(uint64_t word)
{
	return word & 15;
}

static inline uint32_t graftrace_word_stream(uint64_t word)
{
	return word >> 4 & 0xfffff;
}

static inline uint64_t graftrace_word_sequence(uint64_t word)
{
	return word >> 24;
}

/* The bits of a sequence that the word has room for. */
#define GRAFTRACE_SEQUENCE_MASK ((1ull << 40) - 1)

/* The same sub-buffer in another state. */
static inline uint64_t graftrace_word_with_state(uint64_t word,
						 enum graftrace_sub_buffer_state state)
{
	return (word & ~15ull) | (uint64_t)state;
}

enum graftrace_stream_state {
	GRAFTRACE_STREAM_FREE = 0,
	GRAFTRACE_STREAM_LIVE = 1,  /* a writer has it */
	GRAFTRACE_STREAM_ENDED = 2, /* the writer has ended; the host frees it once it is drained */
};

/* One writer. Written by the writer, but for `state` ENDED -> FREE (host). 256 bytes. */
struct graftrace_stream {
	uint32_t state; /* enum graftrace_stream_state, claimed FREE -> LIVE by compare-and-swap */
	uint32_t generation; /* 1 + arena.generations at the claim */
	uint32_t pid;
	uint32_t tid;
	/* The writer's private thread block. A program: its number among those of the process + 1,
	 * 0 = none yet (graftrace_agent_state.blocks). A kernel: its address. */
	uint64_t block;
	uint64_t start;	       /* tsc of its first record */
	uint64_t sequence;     /* sub-buffers opened so far */
	uint32_t current;      /* index + 1 of the ACTIVE sub-buffer, 0 = none */
	uint32_t next;	       /* while it is FREE: free stack, index + 1, 0 = end */
	uint32_t stopped_full; /* 1: stopped for lack of sub-buffers; the host clears the block's
				  stop byte */
	uint32_t owned;	       /* sub-buffers that it holds */
	char comm[16];	       /* name of the thread, as it set it itself last, NUL-terminated */
	uint64_t lost[GRAFTRACE_LOST_CAUSES]; /* live counters; lost[FULL] counts while stopped too
					       */
	uint64_t lost_events; /* events, which are no calls, that were dropped for lack of room */
	uint8_t pad[256 - 144];
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_stream) == 256, "a stream is 256 bytes");

/*
 * Mail from the agent to the host. The agent claims a FREE slot, fills it, posts it, rings the
 * doorbell and (for the kinds that say so) waits a bounded time for the answer, which the host
 * writes into `answers`. What stands in the slot any process may have written. So the letter lies
 * in the process's own memory besides (graftrace_agent_state.letters, the same index), and the host
 * acts upon processes by that one alone.
 */
enum graftrace_mail_state {
	GRAFTRACE_MAIL_FREE = 0,
	GRAFTRACE_MAIL_CLAIMED = 1,
	GRAFTRACE_MAIL_POSTED = 2,
	GRAFTRACE_MAIL_ANSWERED = 3,
	GRAFTRACE_MAIL_ABANDONED =
		4, /* the agent does not wait (any more): the host frees the slot */
};

enum graftrace_mail_kind {
	/* Objects were loaded or unloaded (the dynamic loader's debug hook, RT_CONSISTENT). The
	 * agent waits for the answer, so that new code is patched before it runs. */
	GRAFTRACE_MAIL_OBJECTS = 1,
	/* The thread `tid` of process `pid` is about to exec. The agent waits, so that the host can
	 * be there at the exec stop. */
	GRAFTRACE_MAIL_EXEC = 2,
	/* A forked child `pid` (parent in argument[0]) made its first traced call. Waits only when
	 * arena.fork_policy says that children are left clean. */
	GRAFTRACE_MAIL_FORK = 3,
	/* A trigger has acted: argument[0] = enum graftrace_trigger_action << 32 | function, or
	 * GRAFTRACE_TRIGGER_OF_EVENT | the event's number,
	 * argument[2] = tsc, argument[3] = ticks that the call took, 0 = it was an entry. The agent
	 * waits where the action is the host's (SNAPSHOT, DUMP). */
	GRAFTRACE_MAIL_TRIGGER = 4,
	/* A signal of graftrace_arena.signals is about to get a handler: argument[0] is its
	 * address. The agent waits, so that the handler has its trigger before it is called. */
	GRAFTRACE_MAIL_HANDLER = 5,
	/* The thread is about to enter a sandbox (seccomp): argument[0] is the address of its
	 * struct sock_fprog, 0 = strict mode. The agent waits; answer 1: it can go on recording
	 * there. Else it makes no system call any more; the host answers 0 when no other thread
	 * is about to make one. */
	GRAFTRACE_MAIL_SANDBOX = 6,
	/* The thread is about to do what the agent cannot live with: argument[0] = enum
	 * graftrace_leave. It waits until nothing leads to the agent any more. */
	GRAFTRACE_MAIL_LEAVE = 7,
};

/* Whether 1: it harms the sender's process if it goes on without the answer; else 0. */
static inline int graftrace_mail_needs_answer(uint32_t kind)
{
	return kind == GRAFTRACE_MAIL_LEAVE || kind == GRAFTRACE_MAIL_SANDBOX ||
	       kind == GRAFTRACE_MAIL_OBJECTS;
}

enum graftrace_leave {
	GRAFTRACE_LEAVE_CLOCK = 1, /* the time stamp counter will be forbidden (PR_SET_TSC) */
	GRAFTRACE_LEAVE_GS = 2,	   /* the program takes %gs for itself (ARCH_SET_GS) */
	/* … or its system calls by where they are made (PR_SET_SYSCALL_USER_DISPATCH) */
	GRAFTRACE_LEAVE_DISPATCH = 3,
};

struct graftrace_mail {
	uint32_t state; /* enum graftrace_mail_state */
	uint32_t kind;
	uint32_t pid;
	uint32_t tid;
	uint64_t argument[4];
	uint8_t pad[16];
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_mail) == 64, "mail is 64 bytes");

/* A letter. `state`: CLAIMED while it is written, POSTED while its thread waits for the answer,
 * ABANDONED: it can be read, but no thread waits. */
struct graftrace_letter {
	uint32_t state;
	uint32_t ticket; /* never 0: the answer repeats it */
	uint32_t kind;
	uint32_t pid;
	uint32_t tid;
	uint32_t pad;
	uint64_t argument[4];
};

/* What a table of threads is for. */
enum graftrace_list {
	GRAFTRACE_LIST_NONE = 0,   /* it is empty */
	GRAFTRACE_LIST_STRICT = 1, /* the recorder leaves out threads by it */
	GRAFTRACE_LIST_KEPT = 2,   /* all threads are recorded; readers leave them out by it */
};

/*
 * How a function's entry is recorded: what a kernel's table of entries has for each function, what a
 * trigger's slot has for its function, and what the slow half is told. GRAFTRACE_ENTRY_OFF and
 * _NEVER are states of an entry in the text only: a call that gets to a stub is recorded.
 */
enum graftrace_entry {
	GRAFTRACE_ENTRY_OFF = 0, /* not traced: the text is as it was */
	GRAFTRACE_ENTRY_ON = 1,
	GRAFTRACE_ENTRY_ROOT = 2,    /* on, and enters the graph (set_graph_function) */
	GRAFTRACE_ENTRY_ONLY = 3,    /* on, its return address is left alone */
	GRAFTRACE_ENTRY_NEVER = 4,   /* it cannot be traced: there is no room at its entry */
	GRAFTRACE_ENTRY_NOTRACE = 5, /* on, and leaves out what is below it (set_graph_notrace) */
	GRAFTRACE_ENTRY_SILENT = 6,  /* not recorded, but in the stack traces of others */
	GRAFTRACE_ENTRY_TRIGGER = 7, /* looks into the table of triggers, which has the rest */
	GRAFTRACE_ENTRY_NOTHING = 8, /* as SILENT, and its return address is left alone */
};

/*
 * Triggers: what functions do when they are called. A hash table by function number: open
 * addressing from graftrace_trigger_slot, a power of two of slots. Functions that are in it have
 * stubs of their own kind (graftrace_agent_image.entry_trigger) and look here at each call; others
 * never do. The host fills a slot and stores `function` last (release); agents load it first
 * (acquire). A removed slot keeps its place while slots after it are in use.
 */
enum graftrace_trigger_action {
	GRAFTRACE_TRIGGER_TRACEOFF = 0,
	GRAFTRACE_TRIGGER_TRACEON = 1,
	GRAFTRACE_TRIGGER_STACKTRACE = 2,
	GRAFTRACE_TRIGGER_SNAPSHOT = 3,
	GRAFTRACE_TRIGGER_DUMP = 4,
	GRAFTRACE_TRIGGER_STOP = 5,
	GRAFTRACE_TRIGGER_CPUDUMP = 6,
};

#define GRAFTRACE_TRIGGER_OF_EVENT 0x80000000u

#define GRAFTRACE_ARENA_TRIGGERS 4096
#define GRAFTRACE_TRIGGER_GONE	 ~0u /* in `function`: removed, the search goes on */

struct graftrace_trigger {
	uint32_t function;    /* 0 = free: the search ends here */
	uint8_t action;	      /* enum graftrace_trigger_action */
	uint8_t kind;	      /* enum graftrace_entry: how the function is recorded besides */
	uint16_t host;	      /* the host's own: which of its triggers this comes from */
	uint64_t longer_than; /* ticks; 0: acts at the entry, else at a return that is later */
	uint64_t skip;	      /* hits that pass before it acts */
	uint64_t count;	      /* hits at which it acts then; 0 = always */
	uint64_t pad[4];
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_trigger) == 64, "a trigger is 64 bytes");

static inline uint32_t graftrace_trigger_slot(uint32_t function)
{
	return function * 0x9e3779b1u >> 12;
}

enum graftrace_arena_mode {
	GRAFTRACE_MODE_DRAIN = 0, /* the host empties FULL sub-buffers as they come */
	GRAFTRACE_MODE_RING = 1,  /* keep the oldest: when full, the newest records are dropped */
	GRAFTRACE_MODE_OVERWRITE = 2, /* keep the newest */
};

/* What becomes of forked children. */
enum graftrace_fork_policy {
	GRAFTRACE_FORK_FOLLOW = 0, /* they are traced, and wait for nothing */
	GRAFTRACE_FORK_CLEAN = 1,  /* they are left clean, and wait for it */
	GRAFTRACE_FORK_KNOWN = 2,  /* they are traced, and wait until the host knows them: it is to
				    * see how they end, which the kernel tells only of those */
};

struct graftrace_arena {
	/* written once by the host */
	uint64_t magic;
	uint64_t bytes; /* of the whole mapping */
	/* A power of two from 4,096 on. In the target each sub-buffer ends at a multiple of it: the
	 * recording path tells by a place's address alone whether it is behind the end. */
	uint32_t sub_buffer_bytes;
	uint32_t sub_buffer_count;
	uint32_t stream_count;
	uint32_t mail_count;
	uint64_t streams_offset;
	uint64_t states_offset;
	uint64_t mail_offset;
	uint64_t sub_buffers_offset;
	uint64_t triggers_offset;
	uint64_t trigger_hits_offset;
	uint64_t answers_offset;
	uint32_t trigger_count; /* a power of two, or 0: there is no table */
	uint32_t profile_page_count;
	uint64_t profile_states_offset; /* graftrace/profile.h */
	uint64_t profile_pages_offset;
	uint64_t host_pid;	  /* the host that made the arena */
	uint64_t host_start;	  /* its start (starttime of proc(5)) */
	uint64_t selected_offset; /* graftrace/selected.h */

	/* written by the host at any time, read by agents */
	uint64_t threshold_ticks; /* tracing_thresh, 0 = none */
	uint64_t signals;	  /* bit n - 1: agents report handlers of signal n by mail */
	uint32_t tracer;	  /* enum graftrace_tracer, for new sub-buffers */
	uint32_t mode;		  /* enum graftrace_arena_mode */
	uint32_t wait_ms;	  /* drain mode: how long a writer may wait for a free sub-buffer;
				   * 0 = drop */
	uint32_t fork_policy;	  /* enum graftrace_fork_policy */
	uint32_t graph_only;	  /* 1: threads start outside (set_graph_function is in use) */
	uint32_t max_depth;	  /* max_graph_depth, 0 = none */
	uint32_t host_alive;	  /* 0: the host has gone: no thread waits for answers */
	uint32_t profile;	  /* 1: threads keep tables of hits and times (function profiler) */
	uint32_t heartbeat;	  /* the host adds to it a few times a second: a waiting agent that
				   * sees it stand still gives up waiting, for good */
	/* enum graftrace_list: only the threads of a table are traced; those of the other one are
	 * not. */
	uint32_t selected;
	uint32_t left_out;
	uint32_t children_follow; /* 1: new threads and children come into their creator's tables */
	uint32_t func_stack;	  /* 1: the function tracer writes a stack trace behind each call */
	/* Written once: small sub-buffers, for writers of which there are many. Their indexes follow
	 * those of the others, and each has as much room of addresses, of which the last
	 * GRAFTRACE_SMALL_BYTES alone are used. */
	uint32_t small_count;
	uint64_t event_table_offset;
	uint64_t rules_offset; /* the pool of graftrace/filter.h */
	uint32_t event_count;  /* events with numbers below this can have rules */
	uint32_t rules_bytes;
	/* Where the host writes what it takes out, and the clock's base there, by which that file is
	 * known; "": nowhere. What a host that was killed leaves here belongs there. */
	uint64_t recording_tsc;
	uint64_t recording_ns;
	char recording[GRAFTRACE_ARENA_PATH];
	/* written by the host at any time: 1: the table has been used */
	uint32_t has_rules;
	uint32_t rule_word_count;
	uint64_t rule_words_offset;
	uint64_t hists_offset; /* the pool of graftrace/hist.h's tables */
	uint64_t hists_bytes;  /* 0: there is none */
	/* Written once: how often each event of a probe happened, recorded or not: uint64_t[event_count]; agents,
	 * atomically. 0: it is not counted. */
	uint64_t event_hits_offset;
	uint64_t syscalls_offset; /* struct graftrace_syscall [GRAFTRACE_ARENA_SYSCALLS + 1] */
	uint32_t syscalls_on;	  /* written by the host at any time: 1: some are recorded */
	uint32_t unused[GRAFTRACE_ARENA_SHARED / 4 - 75 - GRAFTRACE_ARENA_PATH / 4];

	/* written by both sides */
	uint64_t free_head; /* tag (high 32) | index + 1 (low 32) of the free stack */
	uint32_t free_count;
	uint32_t free_futex; /* incremented and woken by the host when it frees while waiters > 0 */
	uint32_t waiters;    /* writers that wait for a free sub-buffer */
	uint32_t doorbell;   /* futex: incremented by agents, the host waits on it */
	uint32_t host_sleeping; /* 1: the host waits on doorbell */
	uint32_t generations;	/* writers so far */
	uint32_t tracing_on;	/* triggers switch it, too */
	uint32_t profile_next;	/* pages from this one on were never used */
	uint64_t profile_free;	/* free stack of profile pages, as free_head; 0 = empty */
	uint64_t lost[GRAFTRACE_LOST_CAUSES]; /* losses that no stream could count */
	uint64_t stream_free; /* free stack of streams that were used, as free_head; 0 = empty */
	uint32_t stream_next; /* streams from this one on were never used */
	uint32_t small_next;  /* small sub-buffers from this one on were never used */
	uint64_t small_free;  /* free stack of those that were, as free_head; 0 = empty */
	uint32_t small_used;  /* small ones that are not free */
	uint32_t pad;
};

GRAFTRACE_STATIC_ASSERT(offsetof(struct graftrace_arena, free_head) == GRAFTRACE_ARENA_SHARED,
			"what processes write begins with a page");

/* What is recorded of a system call; behind the last number: of all calls. Written by the host at any
 * time, the events' numbers last. */
struct graftrace_syscall {
	uint32_t enter; /* number of the event before it, 0: none is recorded */
	uint32_t exit;	/* … behind it */
	/* Before it: fields are the call's number and so many arguments, then what they lead to. */
	uint8_t argument_count;
	uint8_t text[2];    /* argument + 1 that is a text's address, 0: none */
	uint8_t data;	    /* … that is the address of bytes, … */
	uint8_t data_bytes; /* … as many as this says: enum graftrace_syscall_bytes */
	/* Behind it, where it has not failed: fields are the number and the result, then bytes. */
	uint8_t out;	   /* argument + 1 that is the address of what the kernel has written */
	uint8_t out_bytes; /* enum graftrace_syscall_bytes */
	uint8_t pad;
};

/* How many bytes an argument of a system call leads to. */
enum graftrace_syscall_bytes {
	GRAFTRACE_BYTES_OF_ARGUMENT = 1, /* … 6: what this argument says, counted from 1 */
	GRAFTRACE_BYTES_OF_RESULT = 7,	 /* what the result says; behind the call only */
	/* * N, | one of these: so many elements, of N * 4 bytes each; N < 16 */
	GRAFTRACE_BYTES_WORDS = 8,
	GRAFTRACE_BYTES_FIXED = 0x80, /* | so many */
};

/* What the host has said to the letter that was in this slot of the mail. */
struct graftrace_answer {
	uint32_t ticket; /* futex word: the letter's, once it is answered */
	uint32_t pid;	 /* the process that has posted it, as the host knows by itself */
	uint64_t value;
};

/* Overwrite mode: with this many free sub-buffers left the host is rung to give up old ones; with
 * half as many writers help themselves. */
#define GRAFTRACE_LOW_POOL(sub_buffer_count) ((sub_buffer_count) / 8)

static inline uint64_t *graftrace_arena_rule_words(const struct graftrace_arena *arena)
{
	return (uint64_t *)((char *)arena + arena->rule_words_offset);
}

static inline uint64_t *graftrace_arena_event_hits(const struct graftrace_arena *arena)
{
	return (uint64_t *)((char *)arena + arena->event_hits_offset);
}

static inline uint32_t *graftrace_arena_event_table(const struct graftrace_arena *arena)
{
	return (uint32_t *)((char *)arena + arena->event_table_offset);
}

static inline struct graftrace_syscall *
graftrace_arena_syscalls(const struct graftrace_arena *arena)
{
	return (struct graftrace_syscall *)((char *)arena + arena->syscalls_offset);
}

static inline struct graftrace_answer *graftrace_arena_answers(const struct graftrace_arena *arena)
{
	return (struct graftrace_answer *)((char *)arena + arena->answers_offset);
}

/* How often each trigger was hit so far: agents, atomically. */
static inline uint64_t *graftrace_arena_trigger_hits(const struct graftrace_arena *arena)
{
	return (uint64_t *)((char *)arena + arena->trigger_hits_offset);
}

static inline struct graftrace_stream *graftrace_arena_streams(struct graftrace_arena *arena)
{
	return (struct graftrace_stream *)((char *)arena + arena->streams_offset);
}

static inline struct graftrace_sub_buffer_entry *
graftrace_arena_states(struct graftrace_arena *arena)
{
	return (struct graftrace_sub_buffer_entry *)((char *)arena + arena->states_offset);
}

static inline struct graftrace_mail *graftrace_arena_mail(struct graftrace_arena *arena)
{
	return (struct graftrace_mail *)((char *)arena + arena->mail_offset);
}

static inline struct graftrace_trigger *graftrace_arena_triggers(struct graftrace_arena *arena)
{
	return (struct graftrace_trigger *)((char *)arena + arena->triggers_offset);
}

static inline uint32_t graftrace_arena_bytes_of(const struct graftrace_arena *arena, uint32_t index)
{
	return index < arena->sub_buffer_count ? arena->sub_buffer_bytes : GRAFTRACE_SMALL_BYTES;
}

static inline struct graftrace_sub_buffer *graftrace_arena_sub_buffer(struct graftrace_arena *arena,
								      uint32_t index)
{
	return (struct graftrace_sub_buffer *)((char *)arena + arena->sub_buffers_offset +
					       ((uint64_t)index + 1) * arena->sub_buffer_bytes -
					       graftrace_arena_bytes_of(arena, index));
}

#endif
