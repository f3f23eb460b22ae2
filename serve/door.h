/* SPDX-License-Identifier: MIT */
/*
 * The door of `graftrace get` and `graftrace set`: a socket beside each recording that runs, in a
 * folder that only its user can enter, by which the table of control files is read and written.
 *
 * The folder is $XDG_RUNTIME_DIR/graftrace, or /tmp/graftrace-UID where there is no such variable;
 * one that belongs to another user, or that others may write to, is refused. The socket's name is
 * PID.sock, PID being the traced program's. The kernel also names each client's user, who must be
 * the same one or root.
 *
 * A request is one line, `get PATH`, `set PATH` (the shell's `>`), `add PATH` (`>>`), `make PATH`
 * or `remove PATH`; after set and add the value follows, up to the end of what the client sends. The
 * answer is `ok` and a newline, then what was read; or `error`, the number of enum gt_error, the
 * reason, and a newline. A directory is read as names, a line each, with a slash behind folders.
 */
#ifndef GT_SERVE_DOOR_H
#define GT_SERVE_DOOR_H

#include <stddef.h>
#include <sys/types.h>
#include "core/control/control.h"

#define GT_DOOR_PATH_BYTES  108	      /* of a socket: sun_path */
#define GT_DOOR_VALUE_BYTES (4 << 20) /* that are written at once, at most */

struct gt_door;

/*
 * Opens the socket for the program `pid`, and starts a thread that serves it, with one more for each
 * client. target: makes the control files; called from a client's thread, for the first client and again until
 * it has succeeded once. Its *control must be callable from any thread, and stay valid until gt_door_close.
 * GT_EPERM: the folder is not safe; GT_EIO, GT_ENOMEM.
 */
int gt_door_open(pid_t pid,
		 int (*target)(void *data, struct gt_control_target **control,
			       struct gt_message *message),
		 void *data, struct gt_door **door, struct gt_message *message);

/* Disconnects the clients, waits for their threads, removes the socket and frees. Not from a client's
 * thread, and with no lock held that the control files take. */
void gt_door_close(struct gt_door *door);

/* For clients: */

/* Connects to the socket of `pid`; 0: of the one recording that runs. Returns a descriptor, which the
 * caller closes, or GT_ENOENT: there is none (or, for 0, more than one: the message lists them),
 * GT_EPERM, GT_EIO. From any thread. */
int gt_door_connect(pid_t pid, struct gt_message *message);

#endif
