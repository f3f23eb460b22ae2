/* SPDX-License-Identifier: MIT */
/*
 * Which clients may read and change the control files: the user who runs graftrace, root, users that
 * were named, and clients that send the token. Clients on other machines need the token, unless
 * everybody was allowed.
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
 * users: names and numbers, separated by commas, or `all`; NULL: no further users. token_file: a file
 * whose first line is the token; it must belong to this user or root, and no other user may be able to
 * read it. If it does not exist, it is made with a random token. NULL: no token. GT_EINVAL, GT_EPERM,
 * GT_EIO, GT_ENOMEM, with the message.
 */
int gt_access_init(struct gt_access *access, const char *users, const char *token_file,
		   struct gt_message *message);
/* Frees the users. */
void gt_access_fini(struct gt_access *access);

/* Whether that client may. Unchanged after gt_access_init, so any thread may ask; no lock, no error. */
bool gt_access_allows_peer(const struct gt_access *access, const struct gt_peer *peer);
/* Whether it is the token; false if there is none. Compares in constant time. From any thread. */
bool gt_access_allows_token(const struct gt_access *access, const char *token, size_t bytes);

/* Whether users other than this one and root may connect: then the socket must admit them. */
bool gt_access_is_open(const struct gt_access *access);

#endif
