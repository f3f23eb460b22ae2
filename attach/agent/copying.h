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

/* Looks through the new objects: sets tracee->copies, for good. True: it has not been before. */
bool gt_copying_find(struct gt_tracee *tracee, const struct gt_selection *selection);

/* Puts all taken slots back, once no function takes one any more. waits: a thread that waits for an
 * answer in the agent, 0 none. Bounded: a thread that stays in our code for longer is let be. */
int gt_copying_put_back(struct gt_tracee *tracee, pid_t waits);

#endif
