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

#define GT_ADDRESS_BYTES 64

struct gt_address {
	char host[GT_ADDRESS_BYTES]; /* without brackets; digits, or a name to look up */
	uint16_t port;
};

/* ADDRESS:PORT, [ADDRESS]:PORT, ADDRESS, :PORT or PORT; what is missing is 127.0.0.1 and 9090. 0 or
 * GT_EINVAL. */
int gt_address_parse(const char *text, struct gt_address *address, struct gt_message *message);

/* A listening socket (close-on-exec), and what it is bound to as "ADDRESS:PORT" in `bound`. *any:
 * it is bound to every address of the machine. The socket, or GT_EBUSY (in use), GT_EPERM,
 * GT_EINVAL (no such address), GT_EIO. */
int gt_address_listen(const struct gt_address *address, char bound[GT_ADDRESS_BYTES + 8], bool *any,
		      struct gt_message *message);

#endif
