/* SPDX-License-Identifier: MIT */
/* What the files of a kernel's control operations (arena_*.c) share. */
#ifndef GT_CORE_KERNEL_KERNEL_PRIVATE_H
#define GT_CORE_KERNEL_KERNEL_PRIVATE_H

#include "core/kernel/kernel_control.h"
#include "core/control/control_row.h"
#include "core/text/text.h"

static inline struct gt_arena_control *gt_arena_self(struct gt_control_target *target)
{
	return target->data;
}

static inline void gt_arena_lock(struct gt_arena_control *control)
{
	control->machine->lock(control->machine->data);
}

static inline void gt_arena_unlock(struct gt_arena_control *control)
{
	control->machine->unlock(control->machine->data);
}

static inline int gt_arena_no_memory(struct gt_message *message)
{
	return REFUSE(message, GT_ENOMEM, "no memory");
}

/* A reader of the trace as text. */
struct gt_arena_reader {
	bool consumes;
	bool pauses; /* options/pause-on-trace */
	struct gt_arena_target target;
	struct gt_arena_snapshot *snapshot; /* what it reads; NULL: the ring */
	struct gt_filter filter;
	bool keeps;			/* no worse case comes meanwhile */
	struct gt_text_latency latency; /* of a latency tracer */
	struct gt_text text;
};

/* Opens the ring, or the snapshot, as text. GT_EBUSY: consume is set, and another reader consumes. */
int gt_arena_reader_open(struct gt_arena_control *control, const struct gt_control_scope *scope,
			 bool consume, struct gt_arena_snapshot *snapshot, void **reader,
			 struct gt_message *message);
void gt_arena_reader_close(struct gt_arena_control *control, struct gt_arena_reader *reader);

/* ---- operations ---- */

int gt_arena_stats(struct gt_control_target *target, const struct gt_control_scope *scope,
		   struct gt_control_stats *stats, struct gt_message *message);

int gt_arena_command_set(struct gt_control_target *target, const struct gt_control_command *command,
			 struct gt_message *message);
int gt_arena_command_remove(struct gt_control_target *target,
			    const struct gt_control_command *command, struct gt_message *message);
int gt_arena_command_read(struct gt_control_target *target, uint64_t index,
			  struct gt_control_command *command, char *text, size_t room);
/* What of the entries in control->wanted has commands looks at the table of triggers. */
void gt_arena_command_patch(struct gt_arena_control *control);

int gt_arena_thread(struct gt_control_target *target, enum gt_control_threads which, uint32_t index,
		    uint32_t *tid);
int gt_arena_threads_set(struct gt_control_target *target, enum gt_control_threads which,
			 const uint32_t *tids, uint32_t count, struct gt_message *message);
int gt_arena_known_thread(struct gt_control_target *target, uint32_t index, uint32_t *tid,
			  char comm[16]);

int gt_arena_set_profile(struct gt_arena_control *control, bool on, struct gt_message *message);
int gt_arena_profile_open(struct gt_control_target *target, const struct gt_control_scope *scope,
			  void **table, struct gt_message *message);
int gt_arena_profile_read(struct gt_control_target *target, void *table, uint64_t index,
			  struct gt_control_profile_row *row);
void gt_arena_profile_close(struct gt_control_target *target, void *table);

int gt_arena_event(struct gt_control_target *target, uint64_t index,
		   struct gt_control_event *event);
int gt_arena_event_set(struct gt_control_target *target, const char *word, size_t word_bytes,
		       bool on, struct gt_message *message);
/* kernel_control.c: the tracer of current_tracer. With the lock. */
int gt_arena_choose_tracer(struct gt_arena_control *control, uint32_t tracer,
			   struct gt_message *message);

/* kernel_latency.c */

/* One tracer comes in the place of another one: what it forces of the options; then, with the ring
 * emptied, the measuring. With the lock. */
void gt_arena_latency_options(struct gt_arena_control *control, uint32_t before, uint32_t tracer);
void gt_arena_latency_begin(struct gt_arena_control *control, uint32_t before);
/* The trace is emptied: so is the worst case, but not how long it took. */
void gt_arena_latency_forget(struct gt_arena_control *control);
/* The worst case as it is now, for the reader to show; it stays until close. */
void gt_arena_latency_open(struct gt_arena_control *control, struct gt_arena_reader *reader,
			   struct gt_text_options *options);
void gt_arena_latency_close(struct gt_arena_control *control, struct gt_arena_reader *reader);
extern const struct gt_control_group gt_arena_latency_files __attribute__((visibility("hidden")));

/* With 64 bits: a kernel's mult has less than 64 - shift. */
static inline uint64_t gt_arena_ticks(const struct gt_arena_control *control, uint64_t ns)
{
	const struct gt_clock *clock = &control->ring->clock;
	return ((ns / clock->mult) << clock->shift) +
	       ((ns % clock->mult) << clock->shift) / clock->mult;
}

/* The tracer as the control files have it. */
static inline uint32_t gt_arena_tracer(const struct gt_arena_control *control)
{
	uint32_t tracer = __atomic_load_n(&control->tracer, __ATOMIC_RELAXED);
	return tracer > GRAFTRACE_TRACER_FUNCTION_GRAPH
		       ? tracer
		       : __atomic_load_n(&control->ring->arena->tracer, __ATOMIC_RELAXED);
}

/* The format of the index'th event, GT_ENOENT. */
int gt_arena_event_format(const struct gt_arena_control *control, uint64_t index,
			  struct gt_event_format *format);
/* How the tracer wants the event, in addition (GRAFTRACE_EVENT_…). */
uint8_t gt_arena_tracer_wants(const struct gt_arena_control *control, uint32_t index);
/* Patches what is on, what has triggers, and what the tracer wants; their rules before. With the lock. GT_ENOMEM,
 * GT_ENOSPC: a rule has no room. */
int gt_arena_events_patch(struct gt_arena_control *control, struct gt_message *message);
/* The events' control files. GT_ENOMEM. */
int gt_arena_events_init(struct gt_arena_control *control);

/* The rows of an event, or (name NULL) of its system, in memory of their own; whose they are is the caller's to say.
 * The strings are copied. False: no memory. */
bool gt_arena_event_rows(struct gt_arena_control *control, const char *system, const char *name,
			 struct gt_control_file **rows, uint32_t *count);

/* kernel_later.c: events that are defined while the kernel runs, by an index from 0 on; with the lock. */

/* Those that there ever were. */
uint32_t gt_arena_later_count(const struct gt_arena_control *control);
/* False: it was removed, or never was. */
bool gt_arena_later_event(const struct gt_arena_control *control, uint32_t index,
			  struct gt_event_format *format);
bool gt_arena_later_find(const struct gt_arena_control *control, const char *system,
			 const char *name, uint32_t *index);
/* Defines one: the format, which gets its number, and its strings stay for ever. GT_ENOMEM; GT_ENOSPC: there were too
 * many. */
int gt_arena_later_add(struct gt_arena_control *control, struct gt_event_format *format,
		       uint32_t *index);
/* One that was removed is there again. GT_ENOMEM. */
int gt_arena_later_show(struct gt_arena_control *control, uint32_t index);
/* It is off, and its files are gone. */
void gt_arena_later_remove(struct gt_arena_control *control, uint32_t index);

/* kernel_synthetic.c: operations. */
int gt_arena_synthetic_set(struct gt_control_target *target, const char *line, size_t bytes,
			   struct gt_probe_error *error, struct gt_message *message);
int gt_arena_synthetics_remove(struct gt_control_target *target, const char *name,
			       struct gt_message *message);
int gt_arena_synthetic(struct gt_control_target *target, uint64_t index,
		       struct gt_event_format *format);

/* kernel_probes.c: operations … */
int gt_arena_probe_set(struct gt_control_target *target, const char *line, size_t bytes,
		       enum gt_probe_kinds kinds, struct gt_probe_error *error,
		       struct gt_message *message);
int gt_arena_probes_remove(struct gt_control_target *target, const char *group, const char *name,
			   struct gt_message *message);
int gt_arena_probe(struct gt_control_target *target, uint64_t index, char *line, size_t bytes);
int gt_arena_probe_hits(struct gt_control_target *target, uint64_t index, char *line, size_t bytes);
/* … and, with the lock: each place becomes what its event is wanted for. */
void gt_arena_probes_patch(struct gt_arena_control *control);
/* Whether something is done at the later event of that index, recorded or not. */
bool gt_arena_probe_acts(const struct gt_arena_control *control, uint32_t index);

/* kernel_rules.c. With the lock, but for the operations, which take it. */

void gt_arena_rules_init(struct gt_arena_control *control);
/* What the rules say of each event stands where events happen; of one (on: set_event says so). */
int gt_arena_rule_arm(struct gt_arena_control *control, const struct gt_event_format *format,
		      bool on, struct gt_message *message);
int gt_arena_rules_arm(struct gt_arena_control *control, struct gt_message *message);
bool gt_arena_event_is_on(const struct gt_arena_control *control, bool on,
			  const struct gt_event_format *format);
/* Whether something is done at the event, recorded or not. */
bool gt_arena_event_acts(const struct gt_arena_control *control,
			 const struct gt_event_format *format);
bool gt_arena_rules_take_snapshots(const struct gt_arena_control *control);
int gt_arena_filter_set(struct gt_control_target *target, const char *word, const char *filter,
			size_t bytes, const struct gt_event_filter_error *failed,
			struct gt_message *message);
int64_t gt_arena_filter_read(struct gt_control_target *target, const char *word, uint64_t offset,
			     char *buffer, size_t bytes);
int gt_arena_trigger_set(struct gt_control_target *target, const char *word,
			 const struct gt_event_trigger *trigger, bool remove,
			 struct gt_message *message);
int gt_arena_trigger_get(struct gt_control_target *target, const char *word, uint32_t index,
			 struct gt_event_trigger *trigger, char *text, size_t room);
int gt_arena_hist_check(struct gt_control_target *target, const char *word, const char *text,
			bool is_new, struct gt_hist_error *error);
int gt_arena_hists_open(struct gt_control_target *target, const char *word, void **hists,
			struct gt_message *message);
size_t gt_arena_hists_read(struct gt_control_target *target, void *hists, uint64_t offset,
			   char *buffer, size_t bytes);
void gt_arena_hists_close(struct gt_control_target *target, void *hists);

int gt_arena_snapshot(struct gt_control_target *target, enum gt_control_snapshot action,
		      const struct gt_control_scope *scope, struct gt_message *message);
int gt_arena_snapshot_open(struct gt_control_target *target, const struct gt_control_scope *scope,
			   void **text, struct gt_message *message);
struct gt_target *gt_arena_snapshot_target(struct gt_arena_snapshot *snapshot);
/* What was out of the ring when it was taken. */
const struct gt_merge_given *gt_arena_snapshot_given(const struct gt_arena_snapshot *snapshot);
void gt_arena_snapshot_put(struct gt_arena_control *control, struct gt_arena_snapshot *snapshot);

#endif
