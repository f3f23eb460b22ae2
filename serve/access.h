/* SPDX-License-Identifier: MIT */
/*
 * Who may read and steer what is served: the user who runs graftrace and root; the users that were
 * named; whoever shows the token. Nobody else, and nobody from another machine without a token, but
 * where everybody was allowed.
 */
#ifndef GT_SERVE_ACCESS_H
#define GT_SERVE_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <graftrace/error.h>
#include "serve/peer.h"

#define GT_TOKEN_BYTES 256 /* of a token, at most */

struct gt_access {
	uid_t *users;
	size_t user_count;
	bool everybody;
	char token[GT_TOKEN_BYTES + 1]; /* "": none */
};

/*
 * users: names and numbers with commas between, or `all`; NULL: none besides. token_file: its first
 * line is the token; it must belong to this user or root, and be readable by nobody else. One that
 * does not exist is made, with a token by chance. NULL: no token. GT_EINVAL, GT_EPERM, GT_EIO,
 * GT_ENOMEM, with the message.
 */
int gt_access_init(struct gt_access *access, const char *users, const char *token_file,
		   struct gt_message *message);
void gt_access_fini(struct gt_access *access);

bool gt_access_allows_peer(const struct gt_access *access, const struct gt_peer *peer);
/* In a time that does not tell how much of it is right. */
bool gt_access_allows_token(const struct gt_access *access, const char *token, size_t bytes);

/* Others than this user and root may connect, so the socket has to let them. */
bool gt_access_is_open(const struct gt_access *access);

#endif
