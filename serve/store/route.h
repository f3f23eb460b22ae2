/* SPDX-License-Identifier: MIT */
/*
 * The records of one instance, picked out of a ring that several instances share. A route decodes
 * the sub-buffers of its source and writes the records that the instance asks for into sub-buffers
 * of its own, as if nothing else had been traced: other records take no room, are not counted and do
 * not change depths.
 *
 * struct gt_route has the settings; one struct gt_route_writer follows each writer of the source.
 * A route and its writers are used by one thread at a time; no function takes a lock of its own. gt_route_feed() calls
 * functions of the source, which take the source's lock, and `open`, `also` and `of_thread`.
 */
#ifndef GT_SERVE_ROUTE_H
#define GT_SERVE_ROUTE_H

#include "core/control/control.h"
#include "core/trace/decode.h"
#include "core/trace/target.h"
#include "core/trace/settings.h"

#define GT_ROUTE_PIECE_BYTES 16384

/* What is asked of a route: calls by the settings' tracer, events whatever it is. */
struct gt_route_want {
	struct gt_trace_settings settings; /* tracer nop: no calls */
	bool stacks;			   /* also stack traces that triggers wrote */
	bool marks;			   /* also what programs mark (gt_event_is_mark) */
	uint64_t since;			   /* clock: calls that began earlier are left out */
	/* Whether an event that no word of GT_LIST_EVENTS names is wanted nevertheless; NULL: none. */
	bool (*also)(void *data, const char *system, const char *name);
	void *also_data;
	/* Whether events of a thread are wanted, but for marks, which always are; NULL: of all threads. */
	bool (*of_thread)(void *data, uint32_t tid);
	void *of_thread_data;
};

/* A command of a function (function:command:count) that acts on this route's trace only. */
#define GT_ROUTE_COMMANDS 32
struct gt_route_command {
	char glob[GT_CONTROL_WORD_BYTES + 1];
	enum gt_control_action action;
	uint64_t left; /* how often it still acts; GT_ACTION_UNLIMITED */
	bool used;
};

/* What the settings say about a function; filled in when it is first met. */
struct gt_route_function {
	uint64_t address;
	uint32_t commands; /* a bit each */
	bool known, wanted, root, out;
};

/* Of the thread whose sub-buffer is fed: asked at its first event. */
enum gt_route_events { GT_ROUTE_EVENTS_UNKNOWN, GT_ROUTE_EVENTS_WANTED, GT_ROUTE_EVENTS_LEFT };

struct gt_route_writer;

struct gt_route {
	struct gt_target *source;
	/* Gives the writer its next sub-buffer, GT_ROUTE_PIECE_BYTES of zeroes, and closes the one
	 * that it wrote to before. NULL: no room, the record is dropped. */
	struct graftrace_sub_buffer *(*open)(void *data, struct gt_route_writer *writer);
	void *data;
	/* private */
	struct gt_route_want want;	     /* has references to its lists */
	bool filtered, rooted;		     /* the settings have a filter, a graph list */
	struct gt_route_function *functions; /* by number */
	uint32_t function_count;
	uint8_t *events; /* by number: what the settings say of it, 0 unknown */
	uint32_t event_count;
	struct gt_route_command *commands;
	uint32_t command_count; /* room for so many */
	uint32_t *threads[2];	/* [0] only these, if any; [1] not these */
	uint32_t thread_count[2];
	/* Commands that were hit, bits of enum gt_control_action, and the CPU of the last hit: the
	 * owner of the route carries them out and sets `due` to 0 before it feeds more. */
	uint32_t due;
	uint32_t due_cpu;
	uint64_t switched; /* clock of the record whose command switched `on` last */
};

struct gt_route_writer {
	/* Read by `open`. */
	uint64_t sequence;		    /* of the next sub-buffer */
	struct graftrace_sub_buffer *piece; /* the open sub-buffer; NULL: none */
	uint32_t used;			    /* its words so far */
	uint64_t dropped;		    /* records without room */
	/* private */
	struct gt_decode decode;
	struct graftrace_sub_buffer *copy; /* the source's sub-buffer that is decoded */
	uint64_t skip;			   /* words of the first one that come before the route */
	uint64_t clock;			   /* of the last word in the piece */
	uint64_t last;			   /* the newest clock that was written */
	uint32_t depth;			   /* open calls of the running context that are written */
	uint32_t context, cpu;		   /* the last that were written into the piece */
	uint64_t lost;			   /* records lost and not yet written as a loss */
	uint64_t overrun;		   /* gt_route_feed's, of the first call or last gap */
	bool counted;			   /* depth is known */
	bool resume;	/* the next record is preceded by RESUME: depth differs */
	bool unshown;	/* the last call was left out, so is what belongs to it */
	bool silent;	/* the present record is left out */
	bool left_out;	/* the thread is, by the lists of threads */
	uint8_t events; /* whether its events are wanted, as of_thread said: enum gt_route_events */
};

/* Makes a route without settings: tracing_on is off, and the tracer nop. The caller has set `source`, `open` and
 * `data`, and all else to zero. Cannot fail. The source must stay valid until gt_route_fini(). */
void gt_route_init(struct gt_route *route);
/* Sets the settings for all that is fed from now on, tracing_on included; takes references to the lists, and
 * drops those to the old ones. gt_route_feed() calls `also` and `of_thread`: their data must stay valid until the next
 * set, or gt_route_fini(). What `also` answers is kept until the next set. */
void gt_route_set(struct gt_route *route, const struct gt_route_want *want);
/* Sets tracing_on alone; `switched` stays. */
void gt_route_switch(struct gt_route *route, bool on);
/* Frees what it has allocated, and drops the references. Its writers are ended by gt_route_writer_fini. */
void gt_route_fini(struct gt_route *route);

/* Commands. Two are the same if function and action are, and if both have a count or both have none
 * (GT_ACTION_UNLIMITED); the number of the count does not matter. set: adds one. GT_EEXIST: the same one is there;
 * GT_ENOSPC: there are GT_ROUTE_COMMANDS; GT_EINVAL: the glob is too long; GT_ENOMEM. remove: removes the same
 * one; GT_ENOENT: there is none. read: the index-th, also one whose hits are used up (count 0); GT_ENOENT after the
 * last. The name is the route's, and valid until the next gt_route_command_set() or gt_route_fini(). */
int gt_route_command_set(struct gt_route *route, const struct gt_control_command *command);
int gt_route_command_remove(struct gt_route *route, const struct gt_control_command *command);
int gt_route_command_read(const struct gt_route *route, uint64_t index,
			  struct gt_control_command *command);
/* The commands that a function has, also those whose hits are used up: bit n is place n of `commands`, not the n-th
 * that is read. */
uint32_t gt_route_commands_of(const struct gt_route *route, const char *name);

/* Lists of threads. which: 0 only these (count 0: all), 1 not these. The list is copied. GT_ENOMEM:
 * the old list stays. leaves_out: whether the lists exclude that thread. */
int gt_route_set_threads(struct gt_route *route, int which, const uint32_t *tids, uint32_t count);
bool gt_route_leaves_out(const struct gt_route *route, uint32_t tid);

/* Makes a writer that has been fed nothing; cannot fail. */
void gt_route_writer_init(struct gt_route_writer *writer);
/* Decodes a sub-buffer of the source and writes the records that are wanted: the writer's next one, or the last one
 * again with more words. bytes: its header, and the `words` words behind it; copied. growing: its writer may add more.
 * overrun: how many of the writer's records were overwritten until it was copied, counted from any beginning; if
 * sub-buffers are missing before this one, the difference to the last call of which that was true, or to the first
 * call, is written as lost. GT_ENOMEM: nothing of it was decoded, feed it again. GT_EFORMAT: nothing of it can be
 * decoded; if it is closed, and calls of the thread are wanted (tracer, tracing_on, lists of threads), its records
 * count as lost. GT_EAGAIN: a command is due (`due`); feed the same sub-buffer again afterwards. */
int gt_route_feed(struct gt_route *route, struct gt_route_writer *writer,
		  const struct graftrace_sub_buffer *bytes, uint32_t words, bool growing,
		  uint64_t overrun);
/* Closes the open piece: the next record opens another one. */
void gt_route_close(struct gt_route_writer *writer);
/* Frees its memory; the pieces are their owner's. */
void gt_route_writer_fini(struct gt_route_writer *writer);

#endif
