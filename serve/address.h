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

/* ADDRESS:PORT, [ADDRESS]:PORT, ADDRESS, :PORT or PORT; what is missing is 127.0.0.1 and 9090. Or
 * unix:PATH. 0, or GT_EINVAL with the message. */
int gt_address_parse(const char *text, struct gt_address *address, struct gt_message *message);

/*
 * A listening socket (close-on-exec), and what it is bound to as "ADDRESS:PORT" in `bound`
 * ("localhost" for a Unix socket). *any: it is bound to every address of the machine. others: a Unix
 * socket may be connected to by all users, else by its owner and root. A Unix socket that nobody
 * listens at any more is replaced. The socket, or GT_EBUSY (in use), GT_EPERM, GT_EINVAL (no such
 * address), GT_EIO. To be called while no other thread makes files.
 */
int gt_address_listen(struct gt_address *address, bool others, char bound[GT_ADDRESS_BYTES + 8],
		      bool *any, struct gt_message *message);

/* Takes the Unix socket's file away, if it is still the one that was made; nothing else. No errors. */
void gt_address_leave(const struct gt_address *address);

#endif
