/* SPDX-License-Identifier: MIT */
/* Instances of a session, for the files of live_*.c: see live_instance.c. Any thread. */
#ifndef GT_SERVE_LIVE_INSTANCE_H
#define GT_SERVE_LIVE_INSTANCE_H

#include "serve/live_private.h"

/* Copies what the session has written since the last time to the instances that record; before
 * anything of the ring is read, emptied or consumed, and before an instance's buffer is read. */
void gt_live_pull(struct gt_live *live);

/* Whether the instance was removed; false of the top. */
bool gt_live_is_removed(const struct gt_live *live);
/* A text or list of it is open: it cannot be removed. Nothing of the top. */
void gt_live_hold(struct gt_live *live);
void gt_live_release(struct gt_live *live);

/* Of the top or an instance: GT_EBUSY if another one of them has another tracer. The session gets
 * it, or what the others have if it is nop. */
int gt_live_choose_tracer(struct gt_live *live, enum graftrace_tracer tracer,
			  struct gt_message *message);

/* Of an instance. */
bool gt_live_instance_on(const struct gt_live *live);
int gt_live_instance_set_on(struct gt_live *live, bool on, struct gt_message *message);
void gt_live_instance_set_overwrite(struct gt_live *live, bool overwrite);
void gt_live_instance_clear(struct gt_live *live);
/* Under its lock: what of its buffer is shown. */
void gt_live_instance_look(const struct gt_live *live, struct gt_text_look *look);
/* Its lists, its tracer or tracing_on have changed. GT_ENOMEM. */
int gt_live_instance_change(struct gt_live *live);
void gt_live_instance_fini(struct gt_live *live);

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
