/* SPDX-License-Identifier: MIT */
/*
 * Unwinders' code: libgcc_s and libunwind are libraries of their own; -static and -static-libgcc link
 * one into the program or a library. The agent tells them of itself (port/program/hooks.c), and who takes it
 * out has to wait for threads that unwind (detach_unwinders.c), a later host too, so where the code lies is
 * noted in the agent's state.
 */
#ifndef GT_ATTACH_UNWINDERS_H
#define GT_ATTACH_UNWINDERS_H

#include <stdbool.h>
#include "attach/agent/tracee.h"

/* Whether the file is a library that is an unwinder. */
bool gt_unwinders_is_library(const char *path);

/* Notes the unwinders among the objects that are there now, and those linked into them; those beyond GRAFTRACE_AGENT_UNWINDERS are
 * not known. Symbols are looked up once for each file, without the process stopped. GT_EIO, GT_EGONE. */
int gt_unwinders_tell(struct gt_tracee *tracee);

#endif
