/* SPDX-License-Identifier: MIT */
/*
 * Addresses to listen on: from words to a bound socket, with reasons in words when it cannot be.
 */
#ifndef GT_SERVE_ADDRESS_H
#define GT_SERVE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>

#define GT_ADDRESS_BYTES      64
#define GT_ADDRESS_PATH_BYTES 108 /* sun_path */

struct gt_address {
	char host[GT_ADDRESS_BYTES]; /* without brackets; digits, or a name to look up */
	uint16_t port;
	char path[GT_ADDRESS_PATH_BYTES]; /* of a Unix socket; "": host and port are it */
	uint64_t inode;			  /* of that socket, once it is there */
};

/* Parses ADDRESS:PORT, [ADDRESS]:PORT, ADDRESS, :PORT or PORT (the missing part is 127.0.0.1 or 9090), or
 * unix:PATH. 0, or GT_EINVAL with the message. */
int gt_address_parse(const char *text, struct gt_address *address, struct gt_message *message);

/*
 * Makes a listening socket (close-on-exec), which the caller closes. bound: what it is bound to, "ADDRESS:PORT"
 * ("localhost" for a Unix socket). *any: it is bound to every address of the machine. others: all users may
 * connect to a Unix socket, else its owner and root. The file of a Unix socket at which nobody listens any more is
 * replaced. Returns the socket, or GT_EBUSY (in use), GT_EPERM, GT_EINVAL (no such address), GT_EIO. Call it while
 * no other thread makes files: the umask is changed for a moment.
 */
int gt_address_listen(struct gt_address *address, bool others, char bound[GT_ADDRESS_BYTES + 8],
		      bool *any, struct gt_message *message);

/* Takes the Unix socket's file away, if it is still the one that was made; nothing else. No errors. */
void gt_address_leave(const struct gt_address *address);

#endif
