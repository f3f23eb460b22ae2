/* SPDX-License-Identifier: MIT */
/*
 * Globs as ftrace has them: * any text, ? any one character, [abc] [a-z] [!a] [^a] one of a set,
 * \x the character x. A plain word matches itself only. Reentrant, allocates nothing.
 */
#ifndef GT_CORE_TRACE_GLOB_H
#define GT_CORE_TRACE_GLOB_H

#include <stdbool.h>

/* Does the whole of `text` match? Takes at most length(glob) * length(text) steps. A set that is
 * not closed stands for the character '[' itself. */
bool gt_glob_match(const char *glob, const char *text);

#endif
