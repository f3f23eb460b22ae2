/* SPDX-License-Identifier: MIT */
/*
 * Histograms of events as text: what is behind `hist:` of a trigger, as kernel/trace/trace_events_hist.c
 * of Linux 6.1 takes it ("keys=count:vals=price:sort=hitcount.descending:size=256"), its description for
 * the recorder (graftrace/hist.h), and the tables that come of it. Freestanding; tables are hostile.
 */
#ifndef GT_CORE_TRACE_HIST_H
#define GT_CORE_TRACE_HIST_H

#include <graftrace/error.h>
#include <graftrace/hist.h>
#include "core/trace/event.h"
#include "core/trace/memory.h"
#include "core/trace/target.h"

#define GT_HIST_BYTES  512 /* of a histogram's text, its zero byte included */
#define GT_HIST_SORTS  2
#define GT_HIST_FIELDS GRAFTRACE_HIST_VALUES

enum gt_hist_kind {
	GT_HIST_HITS = 0,
	GT_HIST_FIELD,
	GT_HIST_THREAD, /* common_pid */
	GT_HIST_CPU,
	GT_HIST_CLOCK,
	GT_HIST_CONSTANT,
	GT_HIST_EXPRESSION,
	GT_HIST_REFERENCE, /* a variable of another histogram */
	GT_HIST_STACK,	   /* stacktrace */
};

/* How it is shown, or what is made of it: one of them at most. */
enum gt_hist_modifier {
	GT_HIST_PLAIN = 0,
	GT_HIST_HEX,
	GT_HIST_SYM,
	GT_HIST_SYM_OFFSET,
	GT_HIST_EXECNAME,
	GT_HIST_SYSCALL,
	GT_HIST_LOG2,
	GT_HIST_BUCKETS,
	GT_HIST_USECS,
};

struct gt_hist_field {
	const char *name; /* as entries show it */
	enum gt_hist_kind kind;
	enum gt_hist_modifier modifier;
	uint8_t field;	/* of the event, …; which of the references */
	bool is_string; /* … as its format says; nothing of it is known without one */
	bool is_signed;
	bool is_in_usecs; /* it is a time in microseconds */
	uint8_t bytes;
	char operator; /* + - * / and ~ (minus before a bracket) of an expression, … */
	uint8_t left;  /* … of which these are others of the histogram's fields */
	uint8_t right;
	uint64_t number; /* the constant, the size of buckets */
};

/* NAME=EXPRESSION, or what an action keeps. */
struct gt_hist_variable {
	const char *name;
	uint8_t field;	 /* what it becomes */
	uint8_t at;	 /* its first word, … */
	uint8_t words;	 /* … and how many */
	bool is_saved;	 /* by an action: a parameter of save() */
	bool is_tracked; /* … the largest or the last value */
};

/* A variable of another histogram, as somebody who knows them finds it. */
struct gt_hist_found {
	struct graftrace_hist_reference place;
	bool is_string;
	bool is_signed;
	bool is_in_usecs;
	uint8_t bytes;
};

/* onmatch(SYSTEM.EVENT).NAME(PARAMETERS) */
struct gt_hist_action {
	enum graftrace_hist_handler handler;
	enum graftrace_hist_act act;
	const char *on;	    /* SYSTEM.EVENT, $VARIABLE; … */
	const char *system; /* … the parts of the first */
	const char *match;
	const char *name;	/* as it is written: trace, save, snapshot, a synthetic event */
	const char *parameters; /* as they are shown */
	const char *made;	/* the synthetic event; NULL: none */
	uint32_t event;		/* its number */
	uint8_t value;		/* onmax, onchange: the field that is compared, … */
	uint8_t track;		/* … and the variable that keeps it */
	uint8_t items[GRAFTRACE_PROBE_FIELDS]; /* fields; of save() variables */
	uint8_t item_count;
};

#define GT_HIST_FOREIGN 8

/* Made by gt_hist_parse(); its strings lie in it. */
struct gt_hist {
	struct gt_hist_field fields[GT_HIST_FIELDS]; /* operands before what they are operands of */
	uint32_t field_count;
	uint8_t keys[GRAFTRACE_HIST_KEYS]; /* indexes of fields */
	uint8_t key_count;
	uint8_t sums[GRAFTRACE_HIST_SUMS];
	uint8_t sum_count;
	struct graftrace_hist_reference references[GRAFTRACE_HIST_REFERENCES];
	uint8_t reference_count;
	struct gt_hist_variable variables[GRAFTRACE_HIST_VARIABLES];
	uint8_t variable_count;
	uint8_t variable_words;
	struct gt_hist_action actions[GRAFTRACE_HIST_ACTIONS];
	uint8_t action_count;
	/* Fields of other events that actions take: variables GT_HIST_FOREIGN_VARIABLE of those, which are
	 * still to be made. */
	struct {
		const char *system;
		const char *event;
		const char *field;
	} foreign[GT_HIST_FOREIGN];
	uint8_t foreign_count;
	struct {
		uint8_t what; /* 0: hits, then the sums, then the keys */
		bool descending;
	} sorts[GT_HIST_SORTS];
	uint8_t sort_count;
	uint8_t bits;
	bool has_clock;	  /* common_timestamp is in use */
	bool is_in_usecs; /* … as .usecs */
	bool is_paused;	  /* words of the text that are no part of the histogram */
	bool is_continued;
	bool is_cleared;
	bool is_full;	   /* while it is parsed: its strings had no room */
	const char *name;  /* "name=…", NULL */
	const char *clock; /* "global" unless it says so */
	size_t used;
	char text[4 * GT_HIST_BYTES];
};

/* As Linux calls the variable that it makes for a field. */
#define GT_HIST_FOREIGN_VARIABLE "synthetic_"

/* Who knows the other events and histograms. */
struct gt_hist_world {
	/* The variable of SYSTEM:EVENT, of any event where these are NULL. Returns how many there are. */
	uint32_t (*variable)(void *data, const char *system, const char *event, const char *name,
			     struct gt_hist_found *found);
	/* NULL: there is no such event. */
	const struct gt_event_format *(*event)(void *data, const char *system, const char *name);
	/* Whether the event has a histogram with keys of the same kinds. */
	bool (*is_alike)(void *data, const char *system, const char *event,
			 const struct gt_hist *hist);
	void *data;
	bool is_new; /* the event has other histograms only: its variables must not be theirs */
};

/* What is wrong, and with which part of the text; NULL: Linux tells no more than EINVAL. */
struct gt_hist_error {
	const char *text;
	char part[GT_HIST_BYTES];
};

/* 0, GT_EINVAL, GT_EDOM, GT_EEXIST. format: of its event; NULL: whether it has the fields is not looked at. world:
 * NULL: nor is whether other events and their variables are there. */
int gt_hist_parse(const char *text, size_t bytes, const struct gt_event_format *format,
		  const struct gt_hist_world *world, struct gt_hist *hist,
		  struct gt_hist_error *error);

/* The variable of that name, as references see it; false: it has none. table: where its table is. */
bool gt_hist_find_variable(const struct gt_hist *hist, const char *name, uint32_t table,
			   struct gt_hist_found *found);

/* The same one in other memory. */
void gt_hist_duplicate(const struct gt_hist *hist, struct gt_hist *copy);

/* Where the filter of a trigger's text begins ("if …"), `bytes`: nowhere; GT_EINVAL: it says `if` and nothing
 * to it. */
int64_t gt_hist_find_filter(const char *text, size_t bytes);

/* Whether one's keys may be looked up in the other. */
bool gt_hist_has_same_keys(const struct gt_hist *a, const struct gt_hist *b);

/* The same histogram, paused or not; which events they are of is not looked at. */
bool gt_hist_is_same(const struct gt_hist *a, const struct gt_hist *b);

#define GT_HIST_SHOWN_BYTES (4 * GT_HIST_BYTES)

/* As the file `trigger` shows it, without "hist:", filter and state; with a zero byte. */
void gt_hist_put(const struct gt_hist *hist, char *at, size_t room);

/* The keys as they were asked for, with commas between; with a zero byte. */
void gt_hist_put_key_text(const struct gt_hist *hist, char *at, size_t room);

#define GT_HIST_DESCRIPTION_BYTES                                                               \
	(sizeof(struct graftrace_hist) + GT_HIST_FIELDS * sizeof(struct graftrace_hist_value) + \
	 GRAFTRACE_HIST_REFERENCES * sizeof(struct graftrace_hist_reference) +                  \
	 GRAFTRACE_HIST_VARIABLES * sizeof(struct graftrace_hist_variable) +                    \
	 GRAFTRACE_HIST_ACTIONS * sizeof(struct graftrace_hist_action) + GRAFTRACE_HIST_ITEMS)

/* Its description, of one that was parsed with a format; 8-byte aligned. Returns its bytes. */
uint32_t gt_hist_describe(const struct gt_hist *hist, const struct gt_clock *clock, uint32_t table,
			  struct graftrace_hist *description);

/* ---- tables ---- */

/* A table as it was at one moment, in the caller's memory. */
struct gt_hist_view {
	const struct gt_hist *hist;
	struct graftrace_hist_shape shape;
	uint64_t *words; /* of the elements, shape.words each, … */
	uint32_t *order; /* … and in which order they are shown: 1 << bits of them */
	uint32_t count;
	uint64_t hits;
	uint64_t drops;
	uint64_t snap;	  /* of a snapshot: the value that was the reason, … */
	uint32_t snapped; /* … and the entry it was of, + 1; 0: there was none */
	uint32_t key_at[GRAFTRACE_HIST_KEYS];
};

/* The same with what it stands in; all of it allocated by whoever gives it. */
struct gt_hist_copy {
	struct gt_memory memory; /* where from */
	size_t element_bytes;	 /* of all in `words` */
	struct gt_hist *hist;
	struct gt_hist_view view;
	uint64_t *words;
	uint32_t *order;
	char *filter; /* NULL: none */
	bool is_paused;
};

/* Who knows names. Each may be NULL. */
struct gt_hist_names {
	/* The function that an address lies in, where it begins and its bytes; NULL: none. */
	const char *(*function)(void *data, uint64_t address, uint64_t *start, uint64_t *bytes);
	const char *(*system_call)(void *data, uint64_t number);
	/* By its number in records. */
	const char *(*numbered)(void *data, uint32_t function);
	void *data;
};

/* Copies the table, of which there are `room` bytes, and sorts it. words and order: the caller's, as
 * large as the description says. */
void gt_hist_look(struct gt_hist_view *view, const struct gt_hist *hist,
		  const struct graftrace_hist *description, struct graftrace_hist_table *table,
		  uint64_t room, uint64_t *words, uint32_t *order);

#define GT_HIST_LINE_BYTES 4096

/* The line of the index'th entry, as the file `hist` shows it: at most GT_HIST_LINE_BYTES, with a zero
 * byte. Returns its bytes. */
size_t gt_hist_put_entry(const struct gt_hist_view *view, uint32_t index,
			 const struct gt_hist_names *names, char *at);

/* What there is to say of snapshots, behind all entries; as above. */
size_t gt_hist_put_snapshot(const struct gt_hist_view *view, const struct gt_hist_names *names,
			    char *at);

#endif
