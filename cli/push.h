/* SPDX-License-Identifier: MIT */
/*
 * Bodies to a server by HTTP/1.1 POST or PUT, one after the other, by a thread of its own: whoever sends
 * goes on with its work meanwhile. A server that does not answer is given up after some seconds. Plain
 * HTTP, to one address; no redirection, no proxy.
 */
#ifndef GT_CLI_PUSH_H
#define GT_CLI_PUSH_H

#include <stdbool.h>
#include <stddef.h>

#include <graftrace/error.h>

struct gt_push;

/* "http://HOST[:PORT][/PATH]", no port: 80, no path: `path`. GT_EINVAL: the message says what is
 * wrong; GT_ENOMEM. */
int gt_push_create(const char *url, const char *path, const char *content_type,
		   struct gt_push **push, struct gt_message *message);

/* The address names a server alone: requests go to the path that was given beside it. */
bool gt_push_has_default_path(const struct gt_push *push);

/* Begins to send, to another path than the usual one if that is not NULL; false: the one before is still on
 * its way, or memory is short. The bytes are copied. */
bool gt_push_start(struct gt_push *push, const char *method, const char *path, const char *body,
		   size_t bytes);

enum gt_push_state {
	GT_PUSH_IDLE, /* nothing was sent since this was asked last */
	GT_PUSH_UNDER_WAY,
	GT_PUSH_DONE,	/* the server took it; then idle */
	GT_PUSH_FAILED, /* the message says why; then idle */
};
enum gt_push_state gt_push_state(struct gt_push *push, struct gt_message *message);

/* Waits for the end of what is under way, at most as long as a server is given. */
void gt_push_wait(struct gt_push *push);

void gt_push_destroy(struct gt_push *push);

#endif
