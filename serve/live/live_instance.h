/* SPDX-License-Identifier: MIT */
/* The instances of a session, as the files live_*.c use them (live_instance.c). Every function may be
 * called from any thread. */
#ifndef GT_SERVE_LIVE_INSTANCE_H
#define GT_SERVE_LIVE_INSTANCE_H

#include "serve/live/live_private.h"

/* Returns the current settings of the top or of an instance, tracing_on included. The lists in them
 * belong to `live` and are valid until change.lock is released. Call with change.lock held; for an
 * instance, without instances.lock. */
struct gt_trace_settings gt_live_settings(struct gt_live *live);
/* Gives an instance new settings: the session is asked for them, and they become live->settings. Call
 * with change.lock held; takes instances.lock. GT_EINVAL: a glob matches no function; GT_ENOMEM.
 * After an error the old settings stay. */
int gt_live_ask(struct gt_live *live, const struct gt_trace_settings *settings,
		struct gt_message *message);

/* live_lists.c: sets one list in the settings of the top or an instance. Call with change.lock held:
 * others may then read it without a lock. Errors as above. */
int gt_live_ask_for_list(struct gt_live *live, enum gt_list which, struct gt_word_list *list,
			 struct gt_message *message);

/*
 * Changes the top's settings in four steps, with change.lock held: this function, the calls of the
 * session, live->settings, gt_live_top_end_unlock. The first copies the records written so far by
 * the old settings and returns holding instances.lock; the last applies the new settings to the
 * top's own buffer and releases the lock. `wider`: after the change the ring will hold more than the
 * top asks for. GT_ENOMEM: no lock is held, and the last step must not follow.
 */
int gt_live_top_begin_lock(struct gt_live *top, bool wider, struct gt_message *message);
void gt_live_top_end_unlock(struct gt_live *top);

/* Between those two. awake: from now on the profiler leaves out the time off the CPU, so the calls
 * that it counts are followed; false: they are followed no more. The times found so far stay, unless
 * `anew`. GT_ENOMEM. */
int gt_live_top_awake(struct gt_live *top, bool awake, bool anew);

/* Copies the records that the session has written since the last call into the buffers of the
 * instances (and the top's own, if it has one). Call it before such a buffer is read, and before the
 * ring is read, emptied or consumed. */
void gt_live_pull(struct gt_live *live);

/* Whether the top reads a buffer of its own instead of the ring. */
bool gt_live_is_detoured(struct gt_live *top);

/* Whether the instance was removed. The top never is. */
bool gt_live_is_removed(const struct gt_live *live);
/* Count open texts and lists of an instance: while there are any, rmdir is EBUSY. No effect on the
 * top. */
void gt_live_hold(struct gt_live *live);
void gt_live_release(struct gt_live *live);

/* The commands and threads of an instance, as the operations of struct gt_control_ops. which: 0
 * set_ftrace_pid, 1 set_ftrace_notrace_pid. Call with change.lock held. */
int gt_live_instance_command(struct gt_live *live, const struct gt_control_command *command,
			     bool remove, struct gt_message *message);
int gt_live_instance_command_read(struct gt_live *live, uint64_t index,
				  struct gt_control_command *command, char *text, size_t room);
int gt_live_instance_thread(struct gt_live *live, int which, uint32_t index, uint32_t *tid);
int gt_live_instance_threads_set(struct gt_live *live, int which, const uint32_t *tids,
				 uint32_t count, struct gt_message *message);
/* live_commands.c: carries out a command that was met while records were copied: snapshot, dump,
 * cpudump. */
void gt_live_command_act(struct gt_live *live, enum gt_control_action action, uint32_t cpu);

/* tracing_on of an instance; freeing one. */
bool gt_live_instance_on(const struct gt_live *live);
void gt_live_instance_fini(struct gt_live *live);

/* Changes the size of the buffer. It keeps its records, or the newest of them. GT_ENOMEM. */
int gt_live_resize(struct gt_live *live, uint64_t bytes);
/* options/overwrite of a buffer that is not the ring; for the ring see gt_session_set_overwrite. */
void gt_live_set_overwrite(struct gt_live *live, bool overwrite);

/* The top's list of instances. _end stops the thread that copies, before _fini frees them. */
void gt_live_instances_init(struct gt_live *top);
void gt_live_instances_end(struct gt_live *top);
void gt_live_instances_fini(struct gt_live *top);

/* live.c: makes the struct gt_live of an instance, which then owns `instance`. GT_ENOMEM. */
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
