/* SPDX-License-Identifier: MIT */
/*
 * Probes, in one process: patched where their events are asked for
 * (gt_selection.events), and put back where they are not any more. As functions' (attach/agent/patch.h): the
 * edits are prepared while the process runs, and applied with all else.
 */
#ifndef GT_ATTACH_AGENT_PROBES_H
#define GT_ATTACH_AGENT_PROBES_H

#include "attach/agent/tracee.h"

/* Whether the words of a list (gt_event_word_matches) name the event: the last one that does says;
 * with a '!' before it: not. NULL: nothing is named. */
bool gt_events_match(char *const *words, const char *system, const char *name);

/* Whether one of the file's probes is asked for. */
bool gt_probes_wanted(const struct gt_catalog_file *file, const struct gt_selection *selection);

/* Whether one of the file's probes that are asked for is a return probe. */
bool gt_probes_want_returns(const struct gt_catalog_file *file,
			    const struct gt_selection *selection);

/* Plans the object's probes if one of them is asked for. Before its functions are planned. */
int gt_probes_plan(struct gt_tracee_object *object, const struct gt_selection *selection,
		   struct gt_message *message);

/* Gives the sink (NULL: does nothing) the events of the object's file that it does not know. Returns its error. */
int gt_probes_tell(const struct gt_tracee_object *object, const struct gt_sink *sink);

/* Prepares the object's edits. */
int gt_probes_patch(struct gt_tracee *tracee, struct gt_tracee_object *object,
		    const struct gt_selection *selection, bool running, struct gt_message *message);

/* Whether one of the object's probes that are asked for needs a breakpoint. */
bool gt_probes_need_traps(const struct gt_tracee_object *object,
			  const struct gt_selection *selection);

/* Call when the edits were applied: increments the semaphores of probes that are recorded now, and decrements those of
 * probes that are not any more. */
void gt_probes_settle(struct gt_tracee *tracee);
/* Call when the process is left: decrements all semaphores that were incremented. */
void gt_probes_leave(struct gt_tracee *tracee);

/* Whether the probe records; foreign: the code at its place is not the file's. */
bool gt_probes_is_on(const struct gt_tracee_object *object, uint32_t index, bool *foreign);

/* Call when the object was loaded again: notes that nothing of it is patched. */
void gt_probes_come_back(struct gt_tracee_object *object);

/* entry_stub: the address of the stub of the probes at the function's entry; 0: there are none. have_entry: whether one
 * of them is on. */
uint64_t gt_probes_entry_stub(const struct gt_tracee_object *object, uint32_t function);
bool gt_probes_have_entry(const struct gt_tracee_object *object, uint32_t function);

/* Whether the function has a site of returns, and whether a probe is on there. */
bool gt_probes_has_return(const struct gt_tracee_object *object, uint32_t function);
bool gt_probes_have_return(const struct gt_tracee_object *object, uint32_t function);
/* Puts the function's return probes between its body and what comes next. *leave: the address to which its stub would
 * jump when the body has returned (0: the exit in the hot text); it becomes that of the probes' stub, which jumps to the
 * old one. The function must have a site of returns. GT_ENOMEM, GT_ENOTSUP. */
struct gt_patcher;
int gt_probes_lead_return(struct gt_patcher *patcher, uint32_t function, uint64_t *leave);

/* The address of the program's instruction of which a probe's copy stands at `address`; 0: there is none. */
uint64_t gt_probes_old_place(const struct gt_tracee_object *object, uint64_t address);

#endif
