/* SPDX-License-Identifier: MIT */
/*
 * The user at the other end of a connection, as the kernel tells it.
 */
#ifndef GT_SERVE_PEER_H
#define GT_SERVE_PEER_H

#include <stdbool.h>
#include <sys/types.h>

struct gt_peer {
	bool local;	  /* a process of this machine, of user `uid`, holds the other end */
	uid_t uid;	  /* valid if `local` */
	char address[48]; /* of others: in digits, without the port; else "" */
};

/*
 * Finds the user at the other end of a connected socket, Unix or TCP. Call it as soon as the connection
 * was accepted: once the other end is closed its user is unknown, and *peer is not local. Waits for the
 * kernel's answer, a second at most. From any thread.
 */
void gt_peer_find(int connection, struct gt_peer *peer);

#endif
