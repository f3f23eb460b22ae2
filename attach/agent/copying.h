/* SPDX-License-Identifier: MIT */
/*
 * Libraries that copy pieces of a stack away and back, to run something else at the same addresses
 * meanwhile (greenlet, callcc). A return slot that we have taken would come back with a mirror that
 * others have written to. So while such a library is in a process its calls are recorded at their
 * entries only, and slots that are taken are put back before the library's code runs. The same is
 * done for an engine that reads return addresses off the stack wherever its code calls something.
 */
#ifndef GT_ATTACH_COPYING_H
#define GT_ATTACH_COPYING_H

#include "attach/agent/tracee.h"

/* Looks through the new objects for such a library, and sets tracee->copies, for good. True: it was set by this call. */
bool gt_copying_find(struct gt_tracee *tracee, const struct gt_selection *selection);

/* Call when no stub takes a return slot any more: puts all taken slots back, in stops of the world until no thread
 * stands where it may take one, and no unwinder at one. waits: a thread that waits in the agent for an answer; 0: none. It gives up after a
 * number of rounds, with 0 as well. GT_EGONE, GT_EBUSY, GT_EIO, GT_ENOMEM. */
int gt_copying_put_back(struct gt_tracee *tracee, pid_t waits);

#endif
