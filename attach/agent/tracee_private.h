/* SPDX-License-Identifier: MIT */
/*
 * What the files tracee*.c share. As all of a tracee: under the session's lock, and the functions that stop
 * a thread from one that may trace (attach/process/tracer.h). Errors come with a message, but for GT_ENOMEM
 * and errors of the sink.
 */
#ifndef GT_ATTACH_TRACEE_PRIVATE_H
#define GT_ATTACH_TRACEE_PRIVATE_H

#include "attach/agent/tracee.h"

/* A thread of the process that maps memory for us, stopped at the first need. The caller sets the first
 * two fields; the others are zero. */
struct gt_hands {
	struct gt_tracee *tracee;
	pid_t tid;    /* 0: whichever can be had */
	bool stopped; /* by us */
	bool begun;   /* `remote` is */
	struct gt_remote remote;
};

/* Stops the thread, unless it is process.stopped already, and readies it for calls; more calls do nothing.
 * Errors as of gt_thread_stop(), gt_thread_stop_any() and gt_remote_begin(): gt_hands_drop() is to be called all
 * the same. */
int gt_hands_take(struct gt_hands *hands, struct gt_message *message);
/* Gives the thread back its registers, if they were taken, and lets it go, if it was stopped here. Returns
 * `error`; if that is 0, the error of this. */
int gt_hands_drop(struct gt_hands *hands, int error, struct gt_message *message);

/* What is noted of the process and what stands there are one again (see gt_tracee_change()): the whole change is over,
 * however many stops of the world it took. */
void gt_tracee_settle(struct gt_tracee *tracee);

/*
 * tracee_objects.c.
 */

/* Compares the process's maps with what is known. *any: there are new objects (object->fresh; those that were
 * so before are not any more). Those that are mapped no more are gone. GT_ENOTSUP: it has loaded what graftrace
 * cannot be beside; GT_EGONE, GT_EIO, GT_ENOMEM. */
int gt_tracee_find_objects(struct gt_tracee *tracee, struct gt_catalog *catalog, bool *any,
			   struct gt_message *message);

/* Of the edits under way, drops those of objects that were unloaded since they were found, which are gone then:
 * another library may be where they were, with the same bytes here and there. Called while no thread runs. */
void gt_tracee_drop_unloaded(struct gt_tracee *tracee, const struct gt_maps *maps);

/*
 * tracee_prepare.c, in the order in which it is called.
 */

/* Plans what of the new objects will be patched: the long part, with nobody stopped. GT_ENOMEM. */
int gt_tracee_plan_objects(struct gt_tracee *tracee, const struct gt_selection *selection);
/* Notes why the process's system calls are left alone, if they are. They are about to be taken. tid: a
 * thread that is stopped. */
void gt_tracee_check_ties(struct gt_tracee *tracee, pid_t tid);
/* Gives the new objects their regions, and takes the hands if they are needed, which the caller drops. Those for
 * which there is no room stay untraced. Errors as of gt_hands_take() and gt_inject_region(); GT_ENOMEM. */
int gt_tracee_place_objects(struct gt_hands *hands, struct gt_catalog *catalog,
			    const struct gt_selection *selection, struct gt_message *message);
/* The same for objects that nothing was to be done with so far, and that a probe was set in, or whose system
 * calls are asked for now. Takes hands of its own if it needs any. */
int gt_tracee_place_probed(struct gt_tracee *tracee, struct gt_catalog *catalog,
			   const struct gt_selection *selection, struct gt_message *message);
/* Tells the sink of the new objects, which are then new no more, and prepares their patches as edits: hooks
 * first, behind the edits that are there already. sink: may be NULL; its errors are returned. running: see
 * gt_patch_functions(). After an error some may be new still. */
int gt_tracee_prepare_objects(struct gt_tracee *tracee, struct gt_catalog *catalog,
			      const struct gt_selection *selection, const struct gt_sink *sink,
			      bool running, struct gt_message *message);
/* Whether functions of the object are patched, or may be; told to the object. */
bool gt_tracee_is_patched(struct gt_tracee_object *object, const struct gt_selection *selection);

#endif
