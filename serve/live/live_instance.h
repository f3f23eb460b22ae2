/* SPDX-License-Identifier: MIT */
/* Instances of a session, for the files of live_*.c: see live_instance.c. Any thread. */
#ifndef GT_SERVE_LIVE_INSTANCE_H
#define GT_SERVE_LIVE_INSTANCE_H

#include "serve/live/live_private.h"

/* What the top or an instance asks for now, tracing_on included. Its lists are `live`'s, which keeps
 * them until change.lock is released. Call it with change.lock held, and of an instance without
 * instances.lock. */
struct gt_trace_settings gt_live_settings(struct gt_live *live);
/* An instance asks for these settings; all of them become live->settings. Call it with change.lock
 * held; takes instances.lock. GT_EINVAL: a glob matches nothing; GT_ENOMEM. */
int gt_live_ask(struct gt_live *live, const struct gt_trace_settings *settings,
		struct gt_message *message);

/*
 * A change of what the top asks for: begin, the session's calls, live->settings, end. Call them with
 * change.lock held. begin copies what was written so far under the settings of that time, and returns
 * holding instances.lock; after an error (GT_ENOMEM) it holds nothing, and there is no end. `wider`:
 * after the change the ring will have more than the top asks for. end takes the new settings over
 * and releases instances.lock.
 */
int gt_live_top_begin_lock(struct gt_live *top, bool wider, struct gt_message *message);
void gt_live_top_end_unlock(struct gt_live *top);

/* Between these two, of a profiler that counts without the time off the CPU from now on (awake), or
 * does no more: what was found so far stays, unless it begins anew. GT_ENOMEM. */
int gt_live_top_awake(struct gt_live *top, bool awake, bool anew);

/* Copies what the session has written since the last time to those that have a buffer of their own;
 * before anything of the ring is read, emptied or consumed, and before such a buffer is read. */
void gt_live_pull(struct gt_live *live);

/* Whether the ring is no longer the top's own buffer. */
bool gt_live_is_detoured(struct gt_live *top);

/* Whether the instance was removed; false of the top. */
bool gt_live_is_removed(const struct gt_live *live);
/* A text or list of it is open (rmdir: EBUSY); nothing of the top. */
void gt_live_hold(struct gt_live *live);
void gt_live_release(struct gt_live *live);

/* Of an instance: its commands and threads (which: 0 set_ftrace_pid, 1 its opposite). Under
 * change.lock. */
int gt_live_instance_command(struct gt_live *live, const struct gt_control_command *command,
			     bool remove, struct gt_message *message);
int gt_live_instance_command_read(struct gt_live *live, uint64_t index,
				  struct gt_control_command *command);
int gt_live_instance_thread(struct gt_live *live, int which, uint32_t index, uint32_t *tid);
int gt_live_instance_threads_set(struct gt_live *live, int which, const uint32_t *tids,
				 uint32_t count, struct gt_message *message);
/* live_commands.c: does what is not done where records are copied. */
void gt_live_command_act(struct gt_live *live, enum gt_control_action action, uint32_t cpu);

/* Of an instance. */
bool gt_live_instance_on(const struct gt_live *live);
void gt_live_instance_fini(struct gt_live *live);

/* The buffer has another size; it keeps what it has, or the newest of that. GT_ENOMEM. */
int gt_live_resize(struct gt_live *live, uint64_t bytes);
/* Of a buffer that is not the ring; nothing to do with the ring. */
void gt_live_set_overwrite(struct gt_live *live, bool overwrite);

/* Of the top. */
void gt_live_instances_init(struct gt_live *top);
void gt_live_instances_end(struct gt_live *top);
void gt_live_instances_fini(struct gt_live *top);

/* live.c: makes the struct gt_live of an instance; it takes `instance` over. GT_ENOMEM. */
int gt_live_create_instance(struct gt_live *top, struct gt_live_instance *instance,
			    struct gt_store *store, struct gt_live **live);

/* Operations of struct gt_control_ops. */
int gt_live_instance_of(struct gt_control_target *target, uint32_t index,
			struct gt_control_target **instance, const char **name);
int gt_live_instance_make(struct gt_control_target *target, const char *name, size_t bytes,
			  struct gt_message *message);
int gt_live_instance_remove(struct gt_control_target *target, const char *name, size_t bytes,
			    struct gt_message *message);

#endif
