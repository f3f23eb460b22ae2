/* SPDX-License-Identifier: MIT */
/* What the files http*.c share: the server, and one request that it answers. */
#ifndef GT_SERVE_HTTP_PRIVATE_H
#define GT_SERVE_HTTP_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "serve/access.h"
#include "serve/address.h"
#include "serve/http.h"
#include "serve/http_clients.h"

struct MHD_Connection;
struct MHD_Daemon;

#define GT_HTTP_ROOT "/ftrace/"

struct gt_http_server {
	struct MHD_Daemon *daemon;
	struct gt_control_target *control;
	struct gt_page_server *page; /* the page at /; NULL: there is none */
	char *title;
	int socket; /* the listening one */
	struct gt_address address;
	char bound[GT_ADDRESS_BYTES + 8];
	char place[GT_ADDRESS_PATH_BYTES + 32]; /* the address in messages */
	char page_place[GT_ADDRESS_PATH_BYTES + 32];
	bool any_address;
	struct gt_access access;
	struct gt_http_limits limits;
	struct gt_http_clients *clients;
	atomic_bool stopping;
	/* Requests of files below GT_HTTP_ROOT, from the end of the head to that of the answer. */
	atomic_uint active;
	atomic_uint moved; /* counts the pieces of answers that were made */
};

/* One request, from the start of its head to the end of its answer. */
struct gt_http_exchange {
	struct gt_http_server *server;
	struct gt_control_node node;
	bool put;  /* PUT or POST: a body follows */
	bool full; /* the body is too long */
	size_t body_bytes;
	char *body; /* grows to GT_HTTP_BODY_BYTES */
};

/* The functions below are called from the connection's thread, with no lock held. What they read of the server and of
 * the client does not change while the connection is served, so they take no lock for it. gt_http_answer_get() calls
 * the operations of exchange->node's target, which take the target's locks; the other functions take no lock at all. */

/* http_check.c */

/* The client at the other end, valid as long as the connection; NULL: there was no memory for it. */
struct gt_http_client *gt_http_client_of(struct MHD_Connection *connection);
/* Returns 0, or the status with which the request is refused; then the reason is in `why`, cut to `room` bytes. Refused
 * are a connection too many (as was decided when it was accepted: gt_http_client_is_refused), clients that may not,
 * requests that two programs could parse differently, and those that another site's page has sent. */
unsigned gt_http_check(const struct gt_http_server *server, struct MHD_Connection *connection,
		       char *why, size_t room);
/* Writes into `query`, of `room` bytes, what the links of a page end in: "?token=…" if the page was asked for so and
 * the token is right, else "". GT_TOKEN_BYTES + 8 bytes are always enough; in fewer it is cut. */
void gt_http_carry_token(const struct gt_http_server *server, struct MHD_Connection *connection,
			 char *query, size_t room);

/* http_read.c: answers a GET, or with `head` a HEAD, of exchange->node, which `url` names. An error of the control
 * file is an answer, too. MHD_YES: an answer is queued; MHD_NO: there was no memory for one, and libmicrohttpd is to
 * close the connection. May wait 0.2 seconds for another reader to leave the file. */
int gt_http_answer_get(struct gt_http_exchange *exchange, struct MHD_Connection *connection,
		       const char *url, bool head);

#endif
