/* SPDX-License-Identifier: MIT */
/*
 * A target as its readers see it: writers with their sub-buffers, functions with their names, a
 * clock. A live program, a recording file and a kernel each implement it; one host process looks at
 * many. Freestanding: no libc, no allocation here. Calls on one target come from one thread at a
 * time unless the implementation says more.
 */
#ifndef GT_CORE_TRACE_TARGET_H
#define GT_CORE_TRACE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>
#include <graftrace/record.h>
#include "core/trace/event.h"

/* A traced function. The strings belong to the target and live as long as it does. */
struct gt_function {
	const char *name;   /* demangled; "object+0x1234" where there is no name */
	const char *object; /* path of the object it lies in, "" unknown */
	uint64_t address;   /* runtime address of its entry in the process that had it */
	uint32_t size;	    /* bytes, 0 unknown */
	bool touched;	    /* of a session: it was traced at some time */
};

/* Where a function stands in source. The string is the target's. */
struct gt_source_line {
	const char *file; /* path, as the compiler was told it */
	uint32_t line;	  /* from 1 */
	uint64_t made_ns; /* when the program's file was written, ns since 1970; 0 unknown */
};

/* One writer (a thread of a program, a CPU of a kernel). */
struct gt_writer {
	uint32_t generation; /* its unique number in the recording */
	uint32_t pid;
	uint32_t tid;
	char comm[16];
	uint64_t first; /* oldest sub-buffer that can still be read */
	uint64_t next;	/* sequence behind the newest one, the one being written included */
	uint64_t start; /* tsc of the start */
	uint64_t end;	/* tsc of the end, 0 = it lives, or was killed */
	uint64_t lost[GRAFTRACE_LOST_CAUSES];
};

/* ns = ns_base + ((tsc - tsc_base) * mult >> shift), in 128-bit arithmetic. CLOCK_MONOTONIC. */
struct gt_clock {
	uint64_t tsc_base;
	uint64_t ns_base;
	uint64_t mult;
	uint32_t shift;
};

/*
 * A trigger: what happens at the moment when a function is called (or returns late), in the thread
 * that called it. Linux's filter commands ("func:traceoff:3") and `record --stop-when` are
 * triggers. A function with a trigger pays for it at each call; others pay nothing.
 */
enum gt_trigger_action {
	GT_TRIGGER_TRACEOFF = 0, /* tracing_on = 0, for all threads, before the next call */
	GT_TRIGGER_TRACEON = 1,
	GT_TRIGGER_STACKTRACE = 2, /* the calls that are open go into the trace */
	GT_TRIGGER_SNAPSHOT = 3,   /* the handler does it while the thread waits (bounded) */
	GT_TRIGGER_DUMP = 4,	   /* the same */
	GT_TRIGGER_STOP = 5,	   /* TRACEOFF, then the handler is told: the recording ends */
	GT_TRIGGER_CPUDUMP = 6,	   /* as DUMP, of the thread's CPU */
	GT_TRIGGER_ACTIONS = 7,
};

struct gt_trigger {
	const char *glob; /* of the functions, as filters have them */
	enum gt_trigger_action action;
	uint64_t skip;		 /* hits that pass before the first that counts */
	uint64_t count;		 /* how often it acts, each function by itself; 0 = always */
	uint64_t longer_than_ns; /* 0: at the entry; else at the return of a call (of the
				  * function_graph tracer) that took longer */
};

/* A trigger has acted. Strings live as long as the target. */
struct gt_trigger_hit {
	enum gt_trigger_action action;
	struct gt_function function;
	uint32_t pid;
	uint32_t tid;
	uint64_t tsc;	  /* of the moment */
	uint64_t took_ns; /* of a call that took too long; 0: it was an entry */
};

/*
 * A thread of the target goes off a CPU or comes back to one, as the kernel told it. The layout is
 * that of the recording file (graftrace_file_switch).
 */
struct gt_switch {
	uint64_t clock; /* full tsc */
	uint32_t tid;
	uint16_t cpu;
	uint16_t flags; /* enum gt_switch_flags */
};

enum gt_switch_flags {
	GT_SWITCH_OUT = 1,	 /* off the CPU; else: on it again */
	GT_SWITCH_PREEMPTED = 2, /* with OUT: it would have gone on; else it waits for something */
};

/* A time that a thread was off the CPU. */
struct gt_off_cpu {
	uint64_t from; /* full tsc */
	uint64_t to;
	uint64_t before; /* ticks off the CPU before `from`: of use as a difference of two */
	uint32_t cpu;	 /* that it left; it was on this one since the time before */
	uint32_t flags;	 /* of the departure */
};

struct gt_target;

/* The ring: what writers have written. */
struct gt_ring_ops {
	/* Number of writers so far; index < count in writer(). New ones are appended. */
	uint32_t (*writer_count)(struct gt_target *target);
	/* 0 or GT_ENOENT. */
	int (*writer)(struct gt_target *target, uint32_t index, struct gt_writer *writer);
	/*
	 * Copies (or points to, see `bytes`) the sub-buffer `sequence` of writer `index` without
	 * consuming it. buffer: at least sub_buffer_bytes(target). Returns the number of *words*
	 * that may be looked at (for one that is being written: all, of which zero ones are not
	 * written yet), or GT_ENOENT: gone (overwritten, consumed) or not there yet, GT_EFORMAT,
	 * GT_ECUT. *bytes is set to where the sub-buffer stands: in buffer, or in the target's own
	 * memory (valid until the next call). A torn copy is never returned.
	 */
	int64_t (*sub_buffer)(struct gt_target *target, uint32_t index, uint64_t sequence,
			      void *buffer, const struct graftrace_sub_buffer **bytes);
	/* Consumes that sub-buffer, which is closed. Readers consume a writer's in order: earlier ones may
	 * go with it, or stay. 0; GT_ENOENT: it is open, or gone; GT_ENOTSUP: nothing can be consumed
	 * (now). May be NULL: never. */
	int (*consume)(struct gt_target *target, uint32_t index, uint64_t sequence);
	/*
	 * 0: from now on that sub-buffer is not overwritten, it stays until it is consumed; or as many
	 * are held as may be, and nothing was done. GT_EAGAIN:
	 * it is being written and can't be held yet. GT_ENOENT: it is gone, all of its records
	 * count as overrun. May be NULL: nothing is overwritten.
	 */
	int (*hold)(struct gt_target *target, uint32_t index, uint64_t sequence);
	/* The oldest sub-buffer there is of writer `index` from `sequence` on, or the writer's
	 * `next`: where many in a row may be missing. May be NULL: none is missing but the oldest.
	 */
	uint64_t (*next_sequence)(struct gt_target *target, uint32_t index, uint64_t sequence);
	/* A clock up to which nothing is missing: all records with this one or an earlier one can be
	 * read from now on, of all writers; those that are still made have later ones. UINT64_MAX:
	 * none are made any more. May be NULL: the same. */
	uint64_t (*now)(struct gt_target *target);
	/* Adds what was lost of no writer's, by cause: a process that takes another's sub-buffer to write over it
	 * does not know whose it was. May be NULL: nothing. */
	void (*lost)(struct gt_target *target, uint64_t lost[GRAFTRACE_LOST_CAUSES]);
};

/* The names of what records have numbers of; `data` is the target's name_data. A recording's function, function_at and
 * line may also fail with GT_ENOMEM. */
struct gt_name_ops {
	/* 0 or GT_ENOENT: no such function. */
	int (*function)(void *data, uint32_t number, struct gt_function *function);
	/* The function that an address lies in (the function tracer's callers). 0 or GT_ENOENT. May
	 * be NULL. */
	int (*function_at)(void *data, uint32_t pid, uint64_t address,
			   struct gt_function *function);
	/* What is known of event `number` of EVENT records. 0 or GT_ENOENT. May be NULL. */
	int (*event)(void *data, uint32_t number, struct gt_event_format *format);
	/* A kernel's, whose writers are CPUs: the name of thread `tid`. 0 or GT_ENOENT. May be
	 * NULL. */
	int (*thread)(void *data, uint32_t tid, char comm[16]);
	/* Where function `number` stands in source. 0 or GT_ENOENT. May be NULL. */
	int (*line)(void *data, uint32_t number, struct gt_source_line *line);
};

/* When threads were off the CPU; `data` is the target's switch_data. From any thread. */
struct gt_switch_ops {
	/*
	 * The first time that thread `tid` was off the CPU and that ends behind the clock `after`.
	 * There is none: `from` is UINT64_MAX (or when it went off, if it has not come back), and
	 * it is so until `to` (UINT64_MAX: for ever); `cpu` is where it was all that time.
	 * GT_ENOENT: nothing is known of that thread; GT_ENOTSUP: of none.
	 */
	int (*off_cpu)(void *data, uint32_t tid, uint64_t after, struct gt_off_cpu *time);
	/* The switches of all threads in order of their clocks, from number *cursor on, at most
	 * `room`; moves *cursor on. Old ones may be gone: they are passed over. The number of them
	 * (0: there are no more now). */
	uint32_t (*read)(void *data, uint64_t *cursor, struct gt_switch *out, uint32_t room);
};

/* The address of an unknown caller. */
#define GT_CALLER_UNKNOWN 1

/* A ring, names and switches: who makes a ring of another one (a store, a view) shares the rest. */
struct gt_target {
	const struct gt_ring_ops *ring;
	void *data; /* the ring's own */
	const struct gt_name_ops *names;
	void *name_data;
	const struct gt_switch_ops *switches; /* NULL: none are known */
	void *switch_data;
	struct gt_clock clock;
	uint32_t sub_buffer_bytes;    /* largest sub-buffer, header included */
	enum graftrace_tracer tracer; /* at the time of asking */
	uint32_t cpu_count;
};

static inline uint64_t gt_target_next_sequence(struct gt_target *target, uint32_t index,
					       uint64_t sequence)
{
	uint64_t next = target->ring->next_sequence != NULL
				? target->ring->next_sequence(target, index, sequence)
				: sequence;
	/* never back: a writer's `next` can lie before what was asked for */
	return next > sequence ? next : sequence;
}

static inline uint64_t gt_target_now(struct gt_target *target)
{
	return target->ring->now != NULL ? target->ring->now(target) : UINT64_MAX;
}

static inline int gt_target_function(const struct gt_target *target, uint32_t number,
				     struct gt_function *function)
{
	return target->names->function(target->name_data, number, function);
}

/* As gt_name_ops has it; of an unknown caller the function is "?". */
static inline int gt_target_function_at(const struct gt_target *target, uint32_t pid,
					uint64_t address, struct gt_function *function)
{
	if (address == GT_CALLER_UNKNOWN) {
		*function = (struct gt_function){ .name = "?", .object = "", .address = address };
		return GT_OK;
	}
	return target->names->function_at != NULL
		       ? target->names->function_at(target->name_data, pid, address, function)
		       : GT_ENOENT;
}

static inline int gt_target_event(const struct gt_target *target, uint32_t number,
				  struct gt_event_format *format)
{
	return target->names->event != NULL
		       ? target->names->event(target->name_data, number, format)
		       : GT_ENOENT;
}

static inline int gt_target_line(const struct gt_target *target, uint32_t number,
				 struct gt_source_line *line)
{
	return target->names->line != NULL ? target->names->line(target->name_data, number, line)
					   : GT_ENOENT;
}

static inline int gt_target_thread(const struct gt_target *target, uint32_t tid, char comm[16])
{
	return target->names->thread != NULL ? target->names->thread(target->name_data, tid, comm)
					     : GT_ENOENT;
}

/* As gt_switch_ops has them; without, GT_ENOTSUP and 0. */
static inline int gt_target_find_off_cpu(const struct gt_target *target, uint32_t tid,
					 uint64_t after, struct gt_off_cpu *time)
{
	return target->switches != NULL
		       ? target->switches->off_cpu(target->switch_data, tid, after, time)
		       : GT_ENOTSUP;
}

static inline uint32_t gt_target_read_switches(const struct gt_target *target, uint64_t *cursor,
					       struct gt_switch *out, uint32_t room)
{
	return target->switches != NULL
		       ? target->switches->read(target->switch_data, cursor, out, room)
		       : 0;
}

static inline uint64_t gt_clock_ns(const struct gt_clock *clock, uint64_t tsc)
{
	__extension__ typedef unsigned __int128 u128;
	if (tsc < clock->tsc_base)
		return clock->ns_base -
		       (uint64_t)((u128)(clock->tsc_base - tsc) * clock->mult >> clock->shift);
	return clock->ns_base +
	       (uint64_t)((u128)(tsc - clock->tsc_base) * clock->mult >> clock->shift);
}

/* The tsc at that nanosecond; 0 if the clock is not known, or did not run yet. */
static inline uint64_t gt_clock_tsc(const struct gt_clock *clock, uint64_t ns)
{
	__extension__ typedef unsigned __int128 u128;
	if (!clock->mult)
		return 0;
	if (ns < clock->ns_base) {
		u128 before = ((u128)(clock->ns_base - ns) << clock->shift) / clock->mult;
		return before < clock->tsc_base ? clock->tsc_base - (uint64_t)before : 0;
	}
	return clock->tsc_base +
	       (uint64_t)(((u128)(ns - clock->ns_base) << clock->shift) / clock->mult);
}

static inline uint64_t gt_clock_duration_ns(const struct gt_clock *clock, uint64_t ticks)
{
	__extension__ typedef unsigned __int128 u128;
	return (uint64_t)((u128)ticks * clock->mult >> clock->shift);
}

/* Ticks that a thread was off the CPU between two clocks, as far as it is known. */
static inline uint64_t gt_target_off_cpu(struct gt_target *target, uint32_t tid, uint64_t from,
					 uint64_t to)
{
	struct gt_off_cpu first, last;
	if (from >= to || gt_target_find_off_cpu(target, tid, from, &first) != GT_OK ||
	    first.from >= to || gt_target_find_off_cpu(target, tid, to, &last) != GT_OK)
		return 0;
	uint64_t ticks = last.before - first.before;
	ticks += last.from < to ? to - last.from : 0;
	return ticks - (first.from < from ? from - first.from : 0);
}

/* Is it known when threads were off the CPU? (Of a kernel's recording: all records are read for it,
 * the first time.) */
static inline bool gt_target_has_off_cpu(struct gt_target *target)
{
	struct gt_off_cpu time;
	return gt_target_find_off_cpu(target, 0, 0, &time) != GT_ENOTSUP;
}

/* When the first writer of a process began; pid 0: of any process. UINT64_MAX: there is none. */
static inline uint64_t gt_target_first_start(struct gt_target *target, uint32_t pid)
{
	const uint32_t count = target->ring->writer_count(target);
	uint64_t first = UINT64_MAX;
	struct gt_writer writer;
	for (uint32_t i = 0; i < count; i++)
		if (target->ring->writer(target, i, &writer) == GT_OK &&
		    (pid == 0 || writer.pid == pid) && writer.start < first)
			first = writer.start;
	return first;
}

/* Is it a kernel's? Its writers are CPUs and belong to no process. */
static inline bool gt_target_is_kernel(struct gt_target *target)
{
	struct gt_writer writer;
	return target->ring->writer(target, 0, &writer) == GT_OK && writer.pid == 0;
}

/*
 * Where a recording goes, as it is made: the writer of graftrace.data implements it, the session
 * calls it. Each returns 0 or a negative enum gt_error (the session then stops recording, never
 * the target). Strings and memory are the caller's and end with the call.
 */
struct gt_sink {
	void *data;
	/* Before the first sub-buffer that uses their numbers: `count` functions with consecutive
	 * numbers from `first`, all in one object. */
	int (*functions)(void *data, uint32_t pid, uint32_t first,
			 const struct gt_function *functions, uint32_t count);
	/* An object mapped in process pid: [start, end) of its code, load bias, build ID (may be
	 * empty). */
	int (*object)(void *data, uint32_t pid, const char *path, uint64_t start, uint64_t end,
		      uint64_t bias, const uint8_t *build_id, uint32_t build_id_bytes);
	/* A writer as soon as it is seen, and again when it ends (end != 0) or its name changes. */
	int (*writer)(void *data, const struct gt_writer *writer);
	/* A closed (or, at the end of a killed program, cut) sub-buffer; each writer's in order.
	 * Bytes: header and `words` words. Already checked: magic, generation, sizes. */
	int (*sub_buffer)(void *data, const struct graftrace_sub_buffer *sub_buffer,
			  uint32_t words);
	/* An event before the first record of it. May be NULL. */
	int (*event)(void *data, const struct gt_event_format *event);
	/* Context switches in order of their clocks; all of them since `start`, but for `lost`
	 * ones. count 0: so far there are none. May be NULL. */
	int (*switches)(void *data, uint64_t start, uint64_t lost, const struct gt_switch *switches,
			uint32_t count);
};

#endif
