/* SPDX-License-Identifier: MIT */
/*
 * The head of an HTTP/1.x request (RFC 9112), parsed where there is no HTTP library: a kernel's
 * server. Takes the bytes as they came from the network; every one of them may be hostile.
 * Freestanding, no allocation; results point into the caller's bytes.
 */
#ifndef GT_CORE_HTTP_HTTP_REQUEST_H
#define GT_CORE_HTTP_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>

#define GT_HTTP_HEAD_BYTES 8192 /* a head that is longer is refused */
#define GT_HTTP_PATH_BYTES 1024

enum gt_http_method {
	GT_HTTP_GET,
	GT_HTTP_HEAD,
	GT_HTTP_PUT,
	GT_HTTP_POST,
	GT_HTTP_OTHER,
};

/* Not NUL-terminated; text NULL: the request has no such header. */
struct gt_http_text {
	const char *text;
	size_t bytes;
};

struct gt_http_request {
	enum gt_http_method method;
	unsigned minor; /* of HTTP/1.x */
	/* Decoded (%41), with its leading slash, NUL-terminated; holds no NUL, no backslash and no
	 * `.` or `..` component. */
	char path[GT_HTTP_PATH_BYTES];
	size_t path_bytes;
	struct gt_http_text query; /* behind the `?`, as it came */
	struct gt_http_text host;
	struct gt_http_text origin;
	struct gt_http_text accept;
	struct gt_http_text fetch_site; /* Sec-Fetch-Site */
	bool keep_alive;
	bool expects_continue;
	bool chunked;
	uint64_t content_length; /* 0 without a body */
	size_t head_bytes;	 /* the body starts behind them */
};

/*
 * Parses the head at the start of `bytes`. 0; GT_EAGAIN: not whole yet, call again with more;
 * GT_ENOSPC: longer than GT_HTTP_HEAD_BYTES or the path than GT_HTTP_PATH_BYTES; GT_ENOTSUP: not
 * HTTP/1.x; GT_EINVAL: anything else, with the byte offset in the message. Requests that two
 * programs could read differently (both lengths, two lengths, a bare CR, blanks before a colon,
 * folded lines) are refused.
 */
int gt_http_request_parse(struct gt_http_request *request, const char *bytes, size_t count,
			  struct gt_message *message);

/*
 * Whether a Host header is one that this machine's own users write: localhost, 127.0.0.1 or [::1],
 * with any port or none; `bound` itself ("address:port", NULL none); with any_address (bound to
 * every address) also any address in digits. Names are refused because a web page can let a name of
 * its own point here.
 */
bool gt_http_host_is_allowed(const char *host, size_t bytes, const char *bound, bool any_address);

/* Whether an Origin is `http://` and the Host header of the same request: this server's own page.
 */
bool gt_http_origin_is_own(const char *origin, size_t bytes, const char *host, size_t host_bytes);

#endif
