/* SPDX-License-Identifier: MIT */
/*
 * The connections of the HTTP server: their peers, the phases of their requests, and which one is ended. A
 * request that is not whole at its deadline ends its connection. If there are too many connections, of one peer
 * or in all, the one is ended that has waited longest without a whole request, of the peer that has most. That may be
 * one between two requests; one whose request is being answered is not ended so. A peer is a user of this machine, or
 * another machine's address.
 */
#ifndef GT_SERVE_HTTP_CLIENTS_H
#define GT_SERVE_HTTP_CLIENTS_H

#include <stdbool.h>
#include "serve/peer.h"

enum gt_http_phase {
	GT_HTTP_HEAD_COMES, /* nothing of a request, or not all of its head */
	GT_HTTP_BODY_COMES,
	GT_HTTP_ANSWERED, /* the answer is being made or sent: no deadline here */
	GT_HTTP_IDLE,	  /* between two requests, or within the next one's head */
};

struct gt_http_limits {
	unsigned connections; /* in all; one peer may have three quarters of them */
	unsigned head_ms;     /* from the connection's begin to the end of the first head */
	unsigned body_ms;     /* from the end of the head to the end of the body */
	unsigned idle_ms;     /* from the end of an answer to the end of the next head */
};

struct gt_http_clients;
struct gt_http_client;

/* The functions lock themselves. The first four may be called from any thread. */

/* NULL: no memory, or no thread. limits: copied. Ends late connections by shutdown() from a thread of its own. */
struct gt_http_clients *gt_http_clients_create(const struct gt_http_limits *limits);
/* Ends the thread and frees. All clients must have been removed. */
void gt_http_clients_destroy(struct gt_http_clients *clients);

/* Call when a connection was accepted. `socket` must stay open until the client is removed. Waits until the kernel
 * tells the peer, a second at most (gt_peer_find). If it is one connection too many, another one is ended, or this one
 * is refused. NULL: no memory. */
struct gt_http_client *gt_http_clients_add(struct gt_http_clients *clients, int socket);
/* Frees the client; its socket is closed by the caller afterwards. */
void gt_http_clients_remove(struct gt_http_clients *clients, struct gt_http_client *client);

/* The following from the connection's thread. */
/* Call when the client's request enters a phase: the deadline of that phase begins, if it has one. */
void gt_http_client_enter(struct gt_http_clients *clients, struct gt_http_client *client,
			  enum gt_http_phase phase);
/* The peer of the client; valid until the client is removed. */
const struct gt_peer *gt_http_client_peer(const struct gt_http_client *client);
/* Whether it is one connection too many, so that its requests are refused: when it was added, the requests of all
 * others (of its peer, or in all) were being answered. That does not change any more. */
bool gt_http_client_is_refused(const struct gt_http_client *client);

#endif
