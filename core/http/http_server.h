/* SPDX-License-Identifier: MIT */
/*
 * An HTTP/1.1 server for control files, for those who have no HTTP library: a kernel's door to the
 * table. One call serves one connection, request after request, in the thread that calls it; the
 * caller accepts connections and decides how many at a time. All bytes from outside are hostile.
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

/* The caller's memory, of any contents. */
struct gt_http_connection {
	struct gt_http_stream *stream;
	struct gt_control_target *control;
	struct gt_http_request request;
	struct gt_control_node node;
	struct gt_control_handle handle;
	struct gt_message message;
	uint64_t lines_left; /* of a file that is read to its end; UINT64_MAX: all */
	size_t held;	     /* bytes in `head` that were not used yet */
	char head[GT_HTTP_HEAD_BYTES];
	char body[GT_HTTP_BODY_BYTES];
	/* Before and behind a block there is room for what a chunk has around it. */
	char block[16 + GT_HTTP_BLOCK_BYTES + 16];
};

/* Serves the files below /ftrace/ until the connection ends. The stream's functions may wait; for a
 * kernel that has no thread for it see doc/porting.md. 64 KiB of stack are enough. */
void gt_http_serve(struct gt_http_connection *connection, struct gt_http_stream *stream,
		   struct gt_control_target *control);

/* What is answered where no thread is left for the connection: the whole of it, and its length. */
const char *gt_http_too_many(size_t *bytes);

#endif
