/* SPDX-License-Identifier: MIT */
/*
 * The table of control files over HTTP, below /ftrace/: GET and HEAD read, PUT writes as the shell's `>`,
 * POST as its `>>`; below /ftrace/instances/ MKCOL makes and DELETE removes an instance. A thread a
 * connection (libmicrohttpd), so that a reader that stalls or vanishes holds up nobody but itself; nothing is
 * kept in memory but a block a connection, and of a PUT or POST its body, at most 64 KB.
 *
 * Refused: users that may not (serve/access.h), hosts and origins that are not this machine's (a web
 * page must not drive a tracer), requests that could be read in two ways, what is not in the table,
 * values that the table refuses, more than a number of connections (serve/http_clients.h).
 */
#ifndef GT_SERVE_HTTP_H
#define GT_SERVE_HTTP_H

#include <stddef.h>
#include <graftrace/error.h>
#include "core/control/control.h"

#define GT_HTTP_DEFAULT_ADDRESS "127.0.0.1:9090"

struct gt_http_server;
struct gt_page_server;

struct gt_http_options {
	size_t size; /* sizeof(struct gt_http_options), or more: room to grow */
	/* As gt_address_parse takes it; NULL = the default; port 0 = any that is free. */
	const char *address;
	unsigned connections; /* at most at a time, three quarters of them one peer's; 0 = 64 */
	/* A connection without progress is closed, and one whose next head is not whole so long after the
	 * last answer; 0 = 30. */
	unsigned idle_seconds;
	unsigned head_seconds;	 /* the first request's head is whole by then; 0 = 10 */
	unsigned body_seconds;	 /* a request's body is whole by then; 0 = 30 */
	const char *allow_users; /* besides this user and root; as gt_access_init takes it */
	const char *token_file;	 /* likewise */
};

/*
 * Binds, so that it is known whether that works before anything is traced; who connects already
 * waits. Nothing of the options is kept. Call it while no other thread makes files: the umask is changed for
 * a moment. GT_EINVAL: not an address, no such user, no token, or `size` is too small; GT_EBUSY: the address is in
 * use; GT_EPERM: the system does not allow it, or others can read the token; GT_EIO; GT_ENOMEM. All with the
 * message; *server is not set then.
 */
int gt_http_open(const struct gt_http_options *options, struct gt_http_server **server,
		 struct gt_message *message);

/* Shows the page at `/` (without it `/` leads to `/ftrace/`). Call it before gt_http_start; the page must outlive
 * the server. */
void gt_http_show_page(struct gt_http_server *server, struct gt_page_server *page);

/*
 * Begins to serve; once. control's operations are called from many threads, at once, until gt_http_close
 * returns; `control` must live until then. title: what is traced, for the index; copied, never NULL. All signals are
 * blocked in the server's threads. GT_EIO, GT_ENOMEM, with the message: the server is still to be closed.
 */
int gt_http_start(struct gt_http_server *server, struct gt_control_target *control,
		  const char *title, struct gt_message *message);

/* Where it listens, for people: "http://127.0.0.1:9090/ftrace/" with the port that it got, or
 * "unix:PATH". Known from gt_http_open on; lives as long as the server. */
const char *gt_http_address(const struct gt_http_server *server);

/* The same of the page, whether one is shown or not: "http://127.0.0.1:9090/", or "unix:PATH". */
const char *gt_http_page_address(const struct gt_http_server *server);

/* Takes no new connections; answers of control files that are under way go on until nothing was sent for
 * grace_ms, or for six times that in all; 0: they end at once. Then frees, and removes the file of a Unix
 * socket. Waits for all that: not from a thread of the server, and with no lock held that the control files take. Also
 * of a server that was not started; not of NULL. */
void gt_http_close(struct gt_http_server *server, unsigned grace_ms);

#endif
