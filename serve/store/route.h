/* SPDX-License-Identifier: MIT */
/*
 * One reader's part of a stream that several asked for: sub-buffers of the source are decoded, and
 * what this reader asked for is written into sub-buffers of its own, as if nothing else had been
 * traced. What is left out takes no room, is not counted, and leaves no trace in depths.
 *
 * A struct gt_route is what is asked, a struct gt_route_writer follows one writer of the source.
 * One thread at a time.
 */
#ifndef GT_SERVE_ROUTE_H
#define GT_SERVE_ROUTE_H

#include "core/control/control.h"
#include "core/trace/decode.h"
#include "core/trace/target.h"
#include "core/trace/settings.h"

#define GT_ROUTE_PIECE_BYTES 16384
struct gt_route_want {
	struct gt_trace_settings settings; /* tracer nop: nothing */
	bool stacks;			   /* stack traces that triggers wrote are this reader's */
	uint64_t since; /* clock: calls that began before are not this reader's */
};

/* What happens at a call of a function (function:command:count), in this reader's trace alone. */
#define GT_ROUTE_COMMANDS 32
struct gt_route_command {
	char glob[GT_CONTROL_WORD_BYTES + 1];
	enum gt_control_action action;
	uint64_t left; /* how often it still acts; GT_ACTION_UNLIMITED */
	bool used;
};

/* What is known of a function, once it was looked up. */
struct gt_route_function {
	uint64_t address;
	uint32_t commands; /* a bit each */
	bool known, wanted, root, out;
};

struct gt_route_writer;

struct gt_route {
	struct gt_target *source;
	/* The next sub-buffer of the writer, GT_ROUTE_PIECE_BYTES that are all zero; what it wrote
	 * to before is closed. NULL: no room. */
	struct graftrace_sub_buffer *(*open)(void *data, struct gt_route_writer *writer);
	void *data;
	/* private */
	struct gt_route_want want;	     /* holds its lists */
	bool filtered, rooted;		     /* there is a filter, a graph list */
	struct gt_route_function *functions; /* by number */
	uint32_t function_count;
	struct gt_route_command *commands;
	uint32_t command_count; /* room for so many */
	uint32_t *threads[2];	/* only these, if there are any; not these */
	uint32_t thread_count[2];
	/* Bits of enum gt_control_action: hits that the owner of the route has to act upon before
	 * more is fed, then sets to 0; the last one's CPU. */
	uint32_t due;
	uint32_t due_cpu;
};

struct gt_route_writer {
	/* For who opens. */
	uint64_t sequence;		    /* of the next sub-buffer */
	struct graftrace_sub_buffer *piece; /* that is written; NULL: none */
	uint32_t used;			    /* words of it */
	uint64_t dropped;		    /* records for which there was no room */
	/* private */
	struct gt_decode decode;
	struct graftrace_sub_buffer *copy; /* of the source's, in work */
	uint64_t skip;			   /* of the first one: words that are not this reader's */
	uint64_t clock;			   /* of the last word in the piece */
	uint64_t last;			   /* the newest clock that was given */
	uint32_t depth;			   /* calls that are shown, in the running context */
	uint32_t context, cpu;		   /* as the piece has them */
	uint64_t lost;			   /* to be told of */
	bool counted;			   /* depth is known */
	bool resume;			   /* what is open is not what the piece says */
	bool unshown;			   /* the last call was left out, with what belongs to it */
	bool silent;			   /* the record in work is not this reader's */
	bool left_out;			   /* the thread is not */
};

/* `source`, `open` and `data` are set. */
void gt_route_init(struct gt_route *route);
/* From what is fed next on; the lists are held. */
void gt_route_set(struct gt_route *route, const struct gt_route_want *want);
void gt_route_switch(struct gt_route *route, bool on);
void gt_route_fini(struct gt_route *route);

/* Commands; of one with the same function and action the count becomes another one. GT_ENOSPC: too
 * many, GT_EINVAL: too long, GT_ENOMEM. remove: GT_ENOENT. read: the index'th, GT_ENOENT behind the
 * last; its name stays until another one takes its place. */
int gt_route_command_set(struct gt_route *route, const struct gt_control_command *command);
int gt_route_command_remove(struct gt_route *route, const struct gt_control_command *command);
int gt_route_command_read(const struct gt_route *route, uint64_t index,
			  struct gt_control_command *command);
/* A bit a command that the function has. */
uint32_t gt_route_commands_of(const struct gt_route *route, const char *name);

/* which: 0 only these threads (count 0: all), 1 not these. Copied. GT_ENOMEM: as it was. */
int gt_route_set_threads(struct gt_route *route, int which, const uint32_t *tids, uint32_t count);
bool gt_route_leaves_out(const struct gt_route *route, uint32_t tid);

void gt_route_writer_init(struct gt_route_writer *writer);
/* A sub-buffer of the source, the next one or the same again with more words. Returns whether it is
 * done with: false, more of it may come. GT_ENOMEM, GT_EFORMAT: it is left out. GT_EAGAIN: a
 * command is due; the same is fed again afterwards. */
int gt_route_feed(struct gt_route *route, struct gt_route_writer *writer,
		  const struct graftrace_sub_buffer *bytes, uint32_t words, bool growing);
/* The piece in work is closed: the next record opens another one. */
void gt_route_close(struct gt_route_writer *writer);
void gt_route_writer_fini(struct gt_route_writer *writer);

#endif
