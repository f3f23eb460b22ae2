/* SPDX-License-Identifier: MIT */
/* Commands that look for the kernel's tracing directory, in front of a mounted one of ours. */
#ifndef GT_CLI_MOUNT_ENTER_H
#define GT_CLI_MOUNT_ENTER_H

/*
 * Becomes `argv`, with `directory` at /sys/kernel/tracing (and at /sys/kernel/debug/tracing if
 * there is one), and directory/kallsyms at /proc/kallsyms, in a mount namespace of its own. Returns
 * an exit code if it cannot; then it was said in the name of the command.
 */
int gt_mount_enter(const char *command, const char *directory, char *const *argv);

#endif
