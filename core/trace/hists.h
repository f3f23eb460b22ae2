/* SPDX-License-Identifier: MIT */
/*
 * Histograms of events: their tables in the arenas (graftrace/hist.h), and who counts in them. Which part of the
 * pool is in use stands in the viewer's own memory. Freestanding; one thread at a time.
 */
#ifndef GT_CORE_TRACE_HISTS_H
#define GT_CORE_TRACE_HISTS_H

#include <graftrace/arena.h>
#include "core/trace/hist.h"
#include "core/trace/memory.h"

struct gt_hist_use;

/* An arena in which rules of events stand. */
struct gt_rules_arena {
	struct graftrace_arena *memory;
	char *hists; /* its pool of tables */
};

/* What rules of events need of whoever has them: a session, a kernel. */
struct gt_rules_host {
	struct gt_memory memory;
	const struct gt_clock *clock; /* for histograms of times */
	uint64_t hists_bytes;	      /* of each arena's pool; 0: there is none */
	/* The index'th arena; false: there are no more. */
	bool (*arena)(void *data, uint32_t index, struct gt_rules_arena *arena);
	/* The event of that name, for histograms that name others: in `room`, or where a synthetic event's
	 * description stays. NULL: there is none. */
	const struct gt_event_format *(*find_event)(void *data, const char *system,
						    const char *name, struct gt_event_format *room);
	/* Zeroes whole pages of a pool; NULL: they are written. */
	void (*wipe)(void *data, void *memory, uint64_t bytes);
	/* Where there are several arenas: fills copy->view from all of their tables, in the copy's memory.
	 * GT_ENOMEM. NULL: there is one. */
	int (*gather)(void *data, const struct gt_hist_use *use, struct gt_hist_copy *copy);
	void *data;
};

/* A table, of one histogram or of all that have a name. */
struct gt_hist_table {
	struct gt_hist_table *next;
	char *name; /* "name=…"; NULL: it is one histogram's */
	uint32_t users;
	uint64_t offset; /* in the pool */
	uint64_t bytes;	 /* 0: it has no room yet */
	uint32_t key_words;
	uint32_t words; /* of an element */
};

struct gt_hists {
	const struct gt_rules_host *host;
	struct gt_hist_table *tables;
	uint64_t
		from; /* where it is looked for room first: what was given back is used again last */
	uint64_t born; /* histograms that there ever were */
};

/* One event's histogram. */
struct gt_hist_use {
	struct gt_hist hist; /* without the event's format until it is described */
	char *text;	     /* as it was asked for */
	uint64_t born;	     /* its number among all that there ever were */
	struct gt_hist_table *table;
	bool is_described;
	struct graftrace_hist description;
	/* … and what stands behind it. */
	uint64_t parts[(GT_HIST_DESCRIPTION_BYTES - sizeof(struct graftrace_hist) + 7) / 8];
	uint32_t description_bytes;
};

/* `host` is kept. */
void gt_hists_init(struct gt_hists *hists, const struct gt_rules_host *host);
/* When all uses are freed. */
void gt_hists_fini(struct gt_hists *hists);

/* Has no room in the pool yet. The text is copied. NULL: no memory, or the text is none, which is looked at
 * before. */
struct gt_hist_use *gt_hists_new(struct gt_hists *hists, const char *text);
/* The last one that counts in a table gives its room back. It is used again last, since until the event is armed
 * anew threads count there. NULL is allowed. */
void gt_hists_free(struct gt_hists *hists, struct gt_hist_use *use);

/* The table of "name=…"; NULL: there is none. */
struct gt_hist_table *gt_hists_find(const struct gt_hists *hists, const char *name);

/* The description is made, in `use`, from where the caller takes it into the arenas, and the table has room, in
 * each arena. May be called again. GT_EINVAL: it does not fit the event, or those that share its name;
 * GT_ENOSPC: there is no room. */
int gt_hists_describe(struct gt_hists *hists, struct gt_hist_use *use,
		      const struct gt_event_format *event, const struct gt_hist_world *world,
		      struct gt_message *message);

/* All who count in it do so in an empty table, once they are described anew: another one, for which there has
 * to be room beside. GT_ENOSPC: nothing was done. Without room so far there is nothing to do. */
int gt_hists_clear(struct gt_hists *hists, struct gt_hist_use *use, struct gt_message *message);

/* What was counted until now, also while threads count. Not described: it has no rows. `filter` and `is_paused`
 * are left to the caller. GT_ENOMEM: *copy is empty. */
int gt_hists_copy(const struct gt_hists *hists, const struct gt_hist_use *use,
		  struct gt_hist_copy *copy);
/* Also of one that is all zero. A copy needs `hists` no more. */
void gt_hist_copy_free(struct gt_hist_copy *copy);

/* The table that lies there in the arena's pool. */
static inline struct graftrace_hist_table *gt_hists_table(const struct gt_rules_arena *arena,
							  uint64_t offset)
{
	return (struct graftrace_hist_table *)(arena->hists + offset);
}

#endif
