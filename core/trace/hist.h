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
	uint8_t field;	/* of the event, … */
	bool is_string; /* … as its format says; nothing of it is known without one */
	bool is_signed;
	uint8_t bytes;
	char operator; /* + - * / and ~ (minus before a bracket) of an expression, … */
	uint8_t left;  /* … of which these are others of the histogram's fields */
	uint8_t right;
	uint64_t number; /* the constant, the size of buckets */
};

/* Made by gt_hist_parse(); its strings lie in it. */
struct gt_hist {
	struct gt_hist_field fields[GT_HIST_FIELDS]; /* operands before what they are operands of */
	uint32_t field_count;
	uint8_t keys[GRAFTRACE_HIST_KEYS]; /* indexes of fields */
	uint8_t key_count;
	uint8_t sums[GRAFTRACE_HIST_SUMS];
	uint8_t sum_count;
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
	const char *name;  /* "name=…", NULL */
	const char *clock; /* "global" unless it says so */
	size_t used;
	char text[2 * GT_HIST_BYTES];
};

/* What is wrong, and with which part of the text; NULL: Linux tells no more than EINVAL. */
struct gt_hist_error {
	const char *text;
	char part[GT_HIST_BYTES];
};

/* 0, GT_EINVAL, GT_EDOM. format: of its event; NULL: whether it has the fields is not looked at. */
int gt_hist_parse(const char *text, size_t bytes, const struct gt_event_format *format,
		  struct gt_hist *hist, struct gt_hist_error *error);

/* The same one in other memory. */
void gt_hist_duplicate(const struct gt_hist *hist, struct gt_hist *copy);

/* Where the filter of a trigger's text begins ("if …"), `bytes`: nowhere; GT_EINVAL: it says `if` and nothing
 * to it. */
int64_t gt_hist_find_filter(const char *text, size_t bytes);

/* The same histogram, paused or not; which events they are of is not looked at. */
bool gt_hist_is_same(const struct gt_hist *a, const struct gt_hist *b);

/* As the file `trigger` shows it, without "hist:", filter and state; with a zero byte. */
void gt_hist_put(const struct gt_hist *hist, char *at, size_t room);

#define GT_HIST_DESCRIPTION_BYTES \
	(sizeof(struct graftrace_hist) + GT_HIST_FIELDS * sizeof(struct graftrace_hist_value))

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
	uint32_t key_at[GRAFTRACE_HIST_KEYS];
};

/* The same with what it stands in; all of it allocated by whoever gives it. */
struct gt_hist_copy {
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

#endif
