/* SPDX-License-Identifier: MIT */
/*
 * The instances of a session, as the files live_*.c use them (live_instance.c). Every function may be
 * called from any thread. Locks: live_private.h says whose they are, and their order. A function takes those that its
 * comment names, and is called with no lock held that comes after them. `message` is set with each error.
 */
#ifndef GT_SERVE_LIVE_INSTANCE_H
#define GT_SERVE_LIVE_INSTANCE_H

#include "serve/live/live_private.h"

/* Returns the current settings of the top or of an instance, tracing_on included. Call with change.lock held; of the
 * top with change.lock or instances.lock held: one of them is enough, since its lists change under both. The lists
 * belong to `live`, and are valid until that lock is released. Takes live->lock. Of an instance it pulls first
 * (gt_live_pull), so no lock but change.lock may be held. */
struct gt_trace_settings gt_live_settings(struct gt_live *live);
/* Gives an instance new settings: the session is asked for them, and they become live->settings, which
 * takes references of its own to the lists. Call with change.lock held; takes instances.lock, with which it
 * copies the records written so far, as gt_live_top_begin_lock() does. GT_ENOENT: the instance was removed; GT_EINVAL:
 * a glob matches no function; GT_ENOMEM: the old settings stay. After any error of patching
 * (attach/session/session.h lists them: GT_ENOMEM may be one, an error of the sink too) the new ones are in
 * force; gt_session_asked() tells. */
int gt_live_ask(struct gt_live *live, const struct gt_trace_settings *settings,
		struct gt_message *message);

/* live_lists.c: sets one list in the settings of the top or an instance, with a reference of its own; of
 * the top with the four steps below. The list counts as changed (change.versions) if it is in force.
 * Call with change.lock held; takes instances.lock, and of an instance pulls before. Errors as above. */
int gt_live_ask_for_list(struct gt_live *live, enum gt_list which, struct gt_word_list *list,
			 struct gt_message *message);

/*
 * Changes the top's settings in four steps, with change.lock held: this function, the calls of the
 * session, live->settings, gt_live_top_end_unlock. The first copies the records written so far by
 * the old settings and returns holding instances.lock; the last applies the new settings to the
 * top's own buffer and releases the lock. Copying is not a pull here: neither turn nor reading.lock is taken, and
 * commands of instances that the records hit are run by the next gt_live_pull(). `wider`: after the change the ring
 * will hold more than the top asks for; then the copying thread is started. The top gets a buffer of its own if
 * `wider` is set or an instance records. GT_ENOMEM: instances.lock is not held, and the last step must not follow.
 */
int gt_live_top_begin_lock(struct gt_live *top, bool wider, struct gt_message *message);
void gt_live_top_end_unlock(struct gt_live *top);

/* Between those two, so with instances.lock held. awake: from now on the profiler leaves out the time
 * off the CPU, so the calls that it counts are followed; false: they are followed no more. The times
 * found so far stay, unless `anew`. GT_ENOMEM. */
int gt_live_top_awake(struct gt_live *top, bool awake, bool anew);

/* Copies the records that the session has written since the last call into the buffers of the
 * instances (and the top's own, if it has one), and runs the commands that they meet there. Call it
 * before such a buffer is read, and before the ring is read, emptied or consumed. live: the top or any
 * instance. change.lock may be held, no other lock: it takes turn and instances.lock, and for commands
 * reading.lock. Records for which there was no memory are copied by the next call. */
void gt_live_pull(struct gt_live *live);

/* Whether the top reads a buffer of its own instead of the ring. Takes no lock: once true it stays true. Who
 * acts on `false` holds instances.lock. */
bool gt_live_is_detoured(struct gt_live *top);

/* Whether the instance was removed. The top never is. Takes no lock. */
bool gt_live_is_removed(const struct gt_live *live);
/* Count what is open of an instance: texts of its trace, trace_pipe_raw, lists of functions and changes of them; not
 * texts of its snapshot, which have a store of their own. While there is any, rmdir is EBUSY. No effect on the top.
 * They take no lock, and do not look whether it was removed. So an instance may be removed between such a look
 * and gt_live_hold(). That does no harm: a removed instance stays in memory until the top is destroyed, its store is
 * empty, and changes of its lists are refused (gt_live_ask). */
void gt_live_hold(struct gt_live *live);
void gt_live_release(struct gt_live *live);

/* The commands and threads of an instance, as the operations of struct gt_control_ops. which: 0
 * set_ftrace_pid, 1 set_ftrace_notrace_pid. */
/* Adds or removes a command (gt_route_command_set). Call with change.lock held; pulls, takes instances.lock. GT_ENOENT:
 * there is none to remove; GT_EEXIST: the same one is there, and stays; GT_ENOSPC; GT_ENOMEM; an error of gt_live_ask(),
 * which may be GT_ENOMEM, too. After another error the command to be set is not there. A command to be removed is gone
 * after any error but GT_ENOENT. */
int gt_live_instance_command(struct gt_live *live, const struct gt_control_command *command,
			     bool remove, struct gt_message *message);
/* The index-th; GT_ENOENT after the last. The function's name is copied into `text`, cut to `room`. Takes the store's
 * lock. Index 0 pulls before, so that counts are up to date; then no lock may be held but change.lock. */
int gt_live_instance_command_read(struct gt_live *live, uint64_t index,
				  struct gt_control_command *command, char *text, size_t room);
/* The index-th; GT_ENOENT after the last. Takes live->lock. */
int gt_live_instance_thread(struct gt_live *live, int which, uint32_t index, uint32_t *tid);
/* Sets a whole list, a copy. Call with change.lock held; pulls, then takes the store's lock and live->lock. GT_ENOMEM:
 * the old list stays. */
int gt_live_instance_threads_set(struct gt_live *live, int which, const uint32_t *tids,
				 uint32_t count, struct gt_message *message);
/* live_commands.c: carries out a command that was met while an instance's records were copied, or that a thread has hit
 * (gt_live_hit, of the top): snapshot, dump, cpudump; others do nothing. live: the instance, or the top. Takes
 * reading.lock and live->lock, and calls the top's `dump` without them; what fails is left out. */
void gt_live_command_act(struct gt_live *live, enum gt_control_action action, uint32_t cpu);

/* tracing_on of an instance. Takes the store's lock. */
bool gt_live_instance_on(const struct gt_live *live);
/* Frees live->instance, and releases its reference to the store. No other thread knows it any more, so no lock need be
 * held; gt_store_put() takes the store's for a moment. Of the top it does nothing. */
void gt_live_instance_fini(struct gt_live *live);

/* Changes the size of the buffer. It keeps its records, or the newest of them: those written so far are copied before,
 * as gt_live_top_begin_lock() does. The top gets a buffer of its own by it, and the copying thread is started. Call
 * with change.lock held; takes instances.lock. GT_ENOMEM: the old size stays. */
int gt_live_resize(struct gt_live *live, uint64_t bytes);
/* options/overwrite of a buffer that is not the ring: of the ring it does nothing, for that see
 * gt_session_set_overwrite. Takes instances.lock. */
void gt_live_set_overwrite(struct gt_live *live, bool overwrite);

/* top->instances. init: makes its locks; all else must be zero: there is no instance. Call it before another thread
 * knows the top; takes no lock. end: marks all instances as ended: changes of what they trace, and marks, are refused
 * with GT_EGONE, and a trace_pipe ends when it is empty. The copying goes on. Takes instances.lock. fini: ends the
 * copying thread and waits for it, then frees the instances, the top's own buffers and the locks; no other thread but
 * that one may use them any more, and no lock may be held. */
void gt_live_instances_init(struct gt_live *top);
void gt_live_instances_end(struct gt_live *top);
void gt_live_instances_fini(struct gt_live *top);

/* live.c: makes the struct gt_live of an instance, which then owns `instance`. store: instance->store; no
 * reference is taken. The top's clock must be settled (gt_live_settle_clock). Takes no lock. GT_ENOMEM: the
 * caller owns `instance` still. */
int gt_live_create_instance(struct gt_live *top, struct gt_live_instance *instance,
			    struct gt_store *store, struct gt_live **live);

/* Operations of struct gt_control_ops; each takes instances.lock. of: GT_ENOENT after the last; *instance and *name are
 * valid until the top is destroyed, also if the instance is removed. make: takes the top's live->lock, and releases it
 * before it takes instances.lock; starts the copying thread. GT_EINVAL: no such name can be; GT_EEXIST;
 * GT_ENOTSUP: in drain mode; GT_EGONE: after gt_live_end(); GT_ENOSPC; GT_ENOMEM. remove: GT_ENOENT; GT_EBUSY: see
 * gt_live_hold(). When instances.lock is released it takes the instance's change.lock, for a moment. */
int gt_live_instance_of(struct gt_control_target *target, uint32_t index,
			struct gt_control_target **instance, const char **name);
int gt_live_instance_make(struct gt_control_target *target, const char *name, size_t bytes,
			  struct gt_message *message);
int gt_live_instance_remove(struct gt_control_target *target, const char *name, size_t bytes,
			    struct gt_message *message);

#endif
