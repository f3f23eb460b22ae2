/* SPDX-License-Identifier: MIT */
/*
 * Whose process is on the other side of a connection, as the kernel tells it.
 */
#ifndef GT_SERVE_PEER_H
#define GT_SERVE_PEER_H

#include <stdbool.h>
#include <sys/types.h>

struct gt_peer {
	bool local;	  /* a process of this machine holds the other end, and it is `uid`'s */
	uid_t uid;	  /* valid if `local` */
	char address[48]; /* of others: in digits, without the port; else "" */
};

/*
 * Looks who is at the other end of a connected socket, Unix or TCP. To be asked as soon as it was
 * accepted: of an end that was closed by then it is not known any more whose it was, and *peer is not
 * local. From any thread.
 */
void gt_peer_find(int connection, struct gt_peer *peer);

#endif
