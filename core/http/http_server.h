/* SPDX-License-Identifier: MIT */
/*
 * An HTTP/1.1 server for control files, for those who have no HTTP library: a kernel's door to the
 * table. The caller accepts connections, decides how many at a time, and carries the bytes; all
 * bytes from outside are hostile. There are two ways to use it:
 *
 *	fed and asked	gt_http_begin, then gt_http_feed with what came and gt_http_ask for what is
 *			to be sent, in any order and from any callback; gt_http_end. Nothing waits:
 *			for kernels of events.
 *	a thread	gt_http_serve: one call serves one connection, in the thread that calls it,
 *			and waits in the functions of struct gt_http_stream.
 *
 * Answers are those of graftrace serve: GET and HEAD read, PUT writes as the shell's `>`, POST as
 * its `>>`; a directory is a list of names. Bodies of unknown length go in chunks (to HTTP/1.0:
 * until the end of the connection).
 */
#ifndef GT_CORE_HTTP_HTTP_SERVER_H
#define GT_CORE_HTTP_HTTP_SERVER_H

#include "core/control/control.h"
#include "core/http/http_request.h"

#define GT_HTTP_BODY_BYTES  16384 /* a written body may have */
#define GT_HTTP_BLOCK_BYTES 65536 /* of an answer, at a time */

/* What the connection does next; its own business. */
enum gt_http_state {
	GT_HTTP_STATE_HEAD, /* a request's head is wanted */
	GT_HTTP_STATE_BODY, /* the body of a PUT or POST is wanted */
	GT_HTTP_STATE_LIST, /* entries of a directory are sent */
	GT_HTTP_STATE_FILE, /* blocks of an open file are sent */
	GT_HTTP_STATE_PAGE, /* the page is sent */
	GT_HTTP_STATE_LAST, /* the answer is whole: the next request follows, or the end */
	GT_HTTP_STATE_OVER, /* nothing follows: the caller closes the connection */
};

/* The caller's memory, of any contents before gt_http_begin. 92 KiB. */
struct gt_http_connection {
	struct gt_control_target *control;
	/* What a browser gets at `/`, for the caller to set after gt_http_begin; NULL: the list of files. */
	const char *page;
	size_t page_bytes;
	enum gt_http_state state;
	bool is_open; /* the file of `handle` is */
	bool rests;   /* the file is not read at the next gt_http_ask, which is GT_EAGAIN */
	struct gt_http_request request;
	struct gt_control_node node;
	struct gt_control_handle handle;
	struct gt_message message;
	uint64_t lines_left; /* of a file that is read to its end; UINT64_MAX: all */
	uint32_t entry;	     /* the next of the directory */
	size_t body_bytes;   /* of the body that are in `body` */
	size_t held;	     /* bytes in `head` */
	size_t used;	     /* of them: the request that is answered */
	const char *out;     /* what gt_http_ask gives; in `block` */
	size_t out_bytes;
	char head[GT_HTTP_HEAD_BYTES];
	char body[GT_HTTP_BODY_BYTES];
	/* Before and behind a block there is room for what a chunk has around it. */
	char block[16 + GT_HTTP_BLOCK_BYTES + 16];
};

/* ---- fed and asked: calls for one connection never overlap ---- */

/* Starts a connection. The files of `control` are served below /ftrace/. */
void gt_http_begin(struct gt_http_connection *connection, struct gt_control_target *control);

/* Takes bytes that came from the other side, and returns how many: fewer than `count` while an answer
 * is under way and there is no more room. The caller keeps the rest, and feeds it after a later
 * gt_http_ask. */
size_t gt_http_feed(struct gt_http_connection *connection, const char *bytes, size_t count);

/*
 * What is to be sent next. > 0: that many bytes, at *bytes until the next call for this connection;
 * the caller sends all of them before it asks again. 0: nothing until more is fed. GT_EAGAIN: the
 * trace has no more yet, ask again later (some 100 ms). GT_EGONE: nothing more, close the connection.
 */
int64_t gt_http_ask(struct gt_http_connection *connection, const char **bytes);

/* Ends a connection, however far it has come: closes what it has open. No call may follow but
 * gt_http_begin. */
void gt_http_end(struct gt_http_connection *connection);

/* ---- in a thread that may wait ---- */

/* What carries the bytes. */
struct gt_http_stream {
	/* What came, at most `bytes`; 0: the other side is done; negative: broken, or it said
	 * nothing for too long. */
	int64_t (*receive)(void *data, char *buffer, size_t bytes);
	/* Sends all of it. Negative: the other side has gone, or takes nothing any more. */
	int64_t (*send)(void *data, const char *bytes, size_t count);
	/* Waits a moment for more of the trace. False: the other side has gone meanwhile. */
	bool (*wait)(void *data);
	void *data;
	/* What a browser gets at `/`; NULL: the list of files. */
	const char *page;
	size_t page_bytes;
};

/* Serves one connection until it ends. 64 KiB of stack are enough. */
void gt_http_serve(struct gt_http_connection *connection, struct gt_http_stream *stream,
		   struct gt_control_target *control);

/* What is answered where no thread is left for the connection: the whole of it, and its length. */
const char *gt_http_too_many(size_t *bytes);

#endif
