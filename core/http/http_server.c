/* SPDX-License-Identifier: MIT */
/* The server of a kernel's control files: see http_server.h. */
#include "core/http/http_server.h"

#include "core/control/control_row.h"
#include "core/trace/message.h"

#define ROOT	   "/ftrace/"
#define ROOT_BYTES 8
#define CHUNK_ROOM 16
#define ENTRY_ROOM 1024 /* what an entry of a list may take */

static const char *reason_of(unsigned status)
{
	static const struct {
		unsigned status;
		const char *reason;
	} reasons[] = {
		{ 200, "OK" },
		{ 204, "No Content" },
		{ 301, "Moved Permanently" },
		{ 400, "Bad Request" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 409, "Conflict" },
		{ 410, "Gone" },
		{ 411, "Length Required" },
		{ 413, "Content Too Large" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 503, "Service Unavailable" },
		{ 505, "HTTP Version Not Supported" },
	};
	for (size_t i = 0; i < COUNT(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "?";
}

static unsigned status_of(int error)
{
	switch (error) {
	case GT_EINVAL:
	case GT_ERANGE:
	case GT_ENODEV:
		return 400;
	case GT_ENOENT:
		return 404;
	case GT_EPERM:
		return 405;
	case GT_EBUSY:
	case GT_EEXIST:
	case GT_EBADF:
		return 409;
	case GT_EGONE:
		return 410;
	case GT_ENOTSUP:
		return 501;
	case GT_ENOMEM:
	case GT_EAGAIN:
		return 503;
	default:
		return 500;
	}
}

static bool send_all(struct gt_http_connection *c, const char *bytes, size_t count)
{
	return count == 0 || c->stream->send(c->stream->data, bytes, count) >= 0;
}

/* The head of an answer; `length` negative: none is said. */
static bool send_head(struct gt_http_connection *c, unsigned status, const char *type,
		      int64_t length, const char *more)
{
	size_t bytes = gt_format(c->block, sizeof(c->block),
				 "HTTP/1.1 %u %s\r\nCache-Control: no-store\r\n"
				 "X-Content-Type-Options: nosniff\r\nConnection: %s\r\n%s",
				 status, reason_of(status),
				 c->request.keep_alive ? "keep-alive" : "close", more);
	if (type)
		bytes += gt_format(c->block + bytes, sizeof(c->block) - bytes,
				   "Content-Type: %s\r\n", type);
	if (length >= 0)
		bytes += gt_format(c->block + bytes, sizeof(c->block) - bytes,
				   "Content-Length: %llu\r\n", (unsigned long long)length);
	bytes += gt_format(c->block + bytes, sizeof(c->block) - bytes, "\r\n");
	return send_all(c, c->block, bytes);
}

/* A line for people. */
static bool answer_words(struct gt_http_connection *c, unsigned status, const char *more,
			 const char *format, ...) __attribute__((format(printf, 4, 5)));
static bool answer_words(struct gt_http_connection *c, unsigned status, const char *more,
			 const char *format, ...)
{
	char words[640];
	va_list arguments;
	va_start(arguments, format);
	size_t bytes = gt_format_v(words, sizeof(words) - 1, format, arguments);
	va_end(arguments);
	words[bytes++] = '\n';
	if (!send_head(c, status, "text/plain; charset=utf-8", (int64_t)bytes, more))
		return false;
	return c->request.method == GT_HTTP_HEAD || send_all(c, words, bytes);
}

/* ---- bodies of unknown length ---- */

/* Sends a block of `count` bytes that lies at block + CHUNK_ROOM. */
static bool send_block(struct gt_http_connection *c, size_t count)
{
	char *start = c->block + CHUNK_ROOM;
	if (c->request.minor == 0)
		return send_all(c, start, count);
	char size[CHUNK_ROOM];
	size_t bytes = gt_format(size, sizeof(size), "%zx\r\n", count);
	__builtin_memcpy(start - bytes, size, bytes);
	__builtin_memcpy(start + count, "\r\n", 2);
	return send_all(c, start - bytes, bytes + count + 2);
}

static bool begin_blocks(struct gt_http_connection *c, const char *type)
{
	if (c->request.minor == 0)
		c->request.keep_alive = false;
	return send_head(c, 200, type, -1,
			 c->request.minor == 0 ? "" : "Transfer-Encoding: chunked\r\n");
}

static bool end_blocks(struct gt_http_connection *c)
{
	return c->request.minor == 0 || send_all(c, "0\r\n\r\n", 5);
}

/* ---- reading ---- */

enum listing { LISTING_PLAIN, LISTING_HTML, LISTING_JSON };

/* The kind that the client asks for first: browsers say text/html; wget and curl say anything. */
static enum listing wanted_listing(const struct gt_http_request *request)
{
	const char *accept = request->accept.text;
	size_t bytes = accept ? request->accept.bytes : 0;
	if (bytes >= 9 && gt_row_is_word(accept, 9, "text/html"))
		return LISTING_HTML;
	if (bytes >= 16 && gt_row_is_word(accept, 16, "application/json"))
		return LISTING_JSON;
	return LISTING_PLAIN;
}

/* Names and texts are the table's own: they have no quotes and no bytes below the blank. */
static size_t json_entry(const struct gt_http_connection *c, char *at, size_t room,
			 const struct gt_control_entry *entry, bool first)
{
	const struct gt_control_file *file = entry->node.file;
	unsigned access = file ? gt_control_access(c->node.target, file) : 0;
	if (!file)
		return gt_format(at, room, "%s{\"name\":\"%s\",\"directory\":true}",
				 first ? "" : ",\n", entry->name);
	return gt_format(at, room,
			 "%s{\"name\":\"%s\",\"directory\":false,\"read\":%s,\"write\":%s,"
			 "\"help\":\"%s\"}",
			 first ? "" : ",\n", entry->name,
			 access & GT_CONTROL_READ ? "true" : "false",
			 access & GT_CONTROL_WRITE ? "true" : "false", file->help);
}

static size_t list_entry(const struct gt_http_connection *c, enum listing listing, char *at,
			 size_t room, const struct gt_control_entry *entry, bool first)
{
	const char *slash = entry->node.file == NULL ? "/" : "";
	if (listing == LISTING_JSON)
		return json_entry(c, at, room, entry, first);
	if (listing == LISTING_PLAIN)
		return gt_format(at, room, "%s%s\n", entry->name, slash);
	return gt_format(at, room, "<a href=\"%s%s\">%s%s</a>\n", entry->name, slash, entry->name,
			 slash);
}

static bool answer_directory(struct gt_http_connection *c)
{
	static const char *const types[] = { "text/plain; charset=utf-8",
					     "text/html; charset=utf-8", "application/json" };
	static const char *const heads[] = { "", "<!DOCTYPE html><title>ftrace</title><pre>\n",
					     "{\"kind\":\"kernel\",\"entries\":[\n" };
	enum listing listing = wanted_listing(&c->request);
	struct gt_control_entry entry;
	char *at = c->block + CHUNK_ROOM;
	if (!begin_blocks(c, types[listing]))
		return false;
	if (c->request.method == GT_HTTP_HEAD)
		return true;
	size_t held = gt_format(at, GT_HTTP_BLOCK_BYTES, "%s", heads[listing]);
	for (uint32_t i = 0; gt_control_list(&c->node, i, &entry) == GT_OK; i++) {
		if (GT_HTTP_BLOCK_BYTES - held < ENTRY_ROOM) {
			if (!send_block(c, held))
				return false;
			held = 0;
		}
		held += list_entry(c, listing, at + held, GT_HTTP_BLOCK_BYTES - held, &entry,
				   i == 0);
	}
	if (listing == LISTING_JSON)
		held += gt_format(at + held, GT_HTTP_BLOCK_BYTES - held, "\n]}\n");
	if (held != 0 && !send_block(c, held))
		return false;
	return end_blocks(c);
}

/* trace_pipe ends where it has given what is there, unless it is asked to go on by `?follow`. What is
 * made for programs, in blocks of a recording, goes on by itself. */
static bool follows(const struct gt_http_connection *c)
{
	static const char word[] = "follow";
	const struct gt_http_text *query = &c->request.query;
	size_t i = 0;
	if (c->node.file->flags & GT_CONTROL_BINARY)
		return true;
	while (query->text && i < query->bytes) {
		size_t end = i;
		while (end < query->bytes && query->text[end] != '&' && query->text[end] != '=')
			end++;
		if (gt_row_is_word(query->text + i, end - i, word))
			return true;
		while (end < query->bytes && query->text[end] != '&')
			end++;
		i = end + 1;
	}
	return false;
}

/* One block of the open file: > 0 bytes, 0 at the end, negative: an error or a client that left. */
static int64_t next_block(struct gt_http_connection *c)
{
	if (c->lines_left == 0)
		return 0;
	for (;;) {
		int64_t got = gt_control_read(&c->handle, c->block + CHUNK_ROOM,
					      GT_HTTP_BLOCK_BYTES, &c->message);
		if (got > 0 && c->lines_left != UINT64_MAX) {
			uint64_t lines = gt_control_lines(c->block + CHUNK_ROOM, (size_t)got);
			c->lines_left -= lines < c->lines_left ? lines : c->lines_left;
		}
		if (got != GT_EAGAIN)
			return got;
		if (!follows(c))
			return 0;
		if (!c->stream->wait(c->stream->data))
			return GT_EGONE;
	}
}

static bool answer_file(struct gt_http_connection *c)
{
	const struct gt_control_file *file = c->node.file;
	const char *type = file->flags & GT_CONTROL_BINARY ? "application/octet-stream"
							   : "text/plain; charset=utf-8";
	if (!(gt_control_access(c->node.target, file) & GT_CONTROL_READ))
		return answer_words(c, 405, "Allow: PUT, POST\r\n", "this file is written only");
	if (c->request.method == GT_HTTP_HEAD) {
		if (c->request.minor == 0)
			c->request.keep_alive = false;
		return send_head(c, 200, type, -1,
				 c->request.minor == 0 ? "" : "Transfer-Encoding: chunked\r\n");
	}
	int error = gt_control_open(&c->handle, &c->node, GT_CONTROL_READ, &c->message);
	if (error != GT_OK)
		return answer_words(c, status_of(error), "", "%s", c->message.text);
	c->lines_left = file->flags & GT_CONTROL_WAITS && !follows(c)
				? gt_control_lines_there(&c->node)
				: UINT64_MAX;
	bool sent = begin_blocks(c, type);
	int64_t got = 0;
	while (sent && (got = next_block(c)) > 0) {
		sent = send_block(c, (size_t)got);
		/* What the sending itself left in the trace goes with what comes: it is not sent at
		 * once, and again. */
		if (sent && file->flags & GT_CONTROL_WAITS && follows(c) &&
		    got < GT_HTTP_BLOCK_BYTES / 4)
			sent = c->stream->wait(c->stream->data);
	}
	gt_control_close(&c->handle, NULL);
	/* an answer that broke off is not ended as if it were whole */
	return sent && got == 0 && end_blocks(c);
}

/* ---- writing ---- */

/* The whole body into c->body. False: answered already, or gone. */
static bool receive_body(struct gt_http_connection *c, bool *alive)
{
	size_t wanted = (size_t)c->request.content_length;
	*alive = false;
	if (c->request.chunked) {
		c->request.keep_alive = false;
		answer_words(c, 411, "", "say the length of what is written (Content-Length)");
		return false;
	}
	if (c->request.content_length > GT_HTTP_BODY_BYTES) {
		c->request.keep_alive = false;
		answer_words(c, 413, "", "at most %u bytes can be written at once",
			     (unsigned)GT_HTTP_BODY_BYTES);
		return false;
	}
	if (c->request.expects_continue && c->held < wanted &&
	    !send_all(c, "HTTP/1.1 100 Continue\r\n\r\n", 25))
		return false;
	size_t there = c->held < wanted ? c->held : wanted;
	__builtin_memcpy(c->body, c->head, there);
	c->held -= there;
	__builtin_memmove(c->head, c->head + there, c->held);
	while (there < wanted) {
		int64_t got = c->stream->receive(c->stream->data, c->body + there, wanted - there);
		if (got <= 0)
			return false;
		there += (size_t)got;
	}
	*alive = true;
	return true;
}

static bool answer_write(struct gt_http_connection *c)
{
	bool alive;
	if (!receive_body(c, &alive))
		return alive;
	int error = gt_control_put(&c->node, c->request.method == GT_HTTP_PUT, c->body,
				   (size_t)c->request.content_length, &c->message);
	if (error != GT_OK && !(gt_control_access(c->node.target, c->node.file) & GT_CONTROL_WRITE))
		return answer_words(c, 405, "Allow: GET, HEAD\r\n", "%s", c->message.text);
	if (error != GT_OK)
		return answer_words(c, status_of(error), "", "%s", c->message.text);
	return send_head(c, 204, NULL, -1, "");
}

/* ---- requests ---- */

/* Pages of other sites shall not reach it through a browser. */
static const char *refusal(const struct gt_http_connection *c)
{
	const struct gt_http_request *request = &c->request;
	if (request->host.text &&
	    !gt_http_host_is_allowed(request->host.text, request->host.bytes, NULL, true))
		return "this Host is not served here: use localhost or an address in digits";
	if (request->origin.text &&
	    !gt_http_origin_is_own(request->origin.text, request->origin.bytes, request->host.text,
				   request->host.bytes))
		return "requests of other sites' pages are refused";
	return NULL;
}

static bool answer_page(struct gt_http_connection *c)
{
	const struct gt_http_stream *stream = c->stream;
	return send_head(c, 200, "text/html; charset=utf-8", (int64_t)stream->page_bytes,
			 "Content-Security-Policy: frame-ancestors 'none'\r\n") &&
	       (c->request.method == GT_HTTP_HEAD || send_all(c, stream->page, stream->page_bytes));
}

static bool answer(struct gt_http_connection *c)
{
	struct gt_http_request *request = &c->request;
	bool writes = request->method == GT_HTTP_PUT || request->method == GT_HTTP_POST;
	const char *refused = refusal(c);
	const char *path = request->path;
	size_t bytes = request->path_bytes;
	gt_message_clear(&c->message);
	/* a body that is not read would be taken for the next request */
	if (!writes && (request->content_length || request->chunked))
		request->keep_alive = false;
	if (refused || request->method == GT_HTTP_OTHER ||
	    (writes && (bytes < ROOT_BYTES || __builtin_memcmp(path, ROOT, ROOT_BYTES) != 0)))
		request->keep_alive = false;
	if (refused)
		return answer_words(c, 403, "", "%s", refused);
	if (request->method == GT_HTTP_OTHER)
		return answer_words(c, 405, "Allow: GET, HEAD, PUT, POST\r\n",
				    "GET, HEAD, PUT and POST are known here");
	if (bytes == 1 && !writes && c->stream->page && wanted_listing(request) == LISTING_HTML)
		return answer_page(c);
	if (bytes == ROOT_BYTES - 1 || bytes == 1)
		return answer_words(c, 301, "Location: " ROOT "\r\n", ROOT);
	if (bytes < ROOT_BYTES || __builtin_memcmp(path, ROOT, ROOT_BYTES) != 0)
		return answer_words(c, 404, "", "the files are below " ROOT);
	if (gt_control_find(c->control, path + ROOT_BYTES, bytes - ROOT_BYTES, &c->node) != GT_OK) {
		if (writes)
			request->keep_alive = false;
		return answer_words(c, 404, "", "there is no such file; " ROOT " lists them");
	}
	if (writes && !c->node.file) {
		request->keep_alive = false;
		return answer_words(c, 405, "Allow: GET, HEAD\r\n", "this is a directory");
	}
	if (writes)
		return answer_write(c);
	if (c->node.file)
		return answer_file(c);
	if (path[bytes - 1] != '/') {
		char location[GT_HTTP_PATH_BYTES + 32];
		gt_format(location, sizeof(location), "Location: %s/\r\n", path);
		return answer_words(c, 301, location, "%s/", path);
	}
	return answer_directory(c);
}

/* The next request's head. False: there is none (or a bad one, which was answered). */
static bool receive_request(struct gt_http_connection *c)
{
	for (;;) {
		int error = gt_http_request_parse(&c->request, c->head, c->held, &c->message);
		if (error == GT_OK) {
			size_t used = c->request.head_bytes;
			c->held -= used;
			return true;
		}
		if (error != GT_EAGAIN || c->held == sizeof(c->head)) {
			c->request.keep_alive = false;
			c->request.method = GT_HTTP_OTHER;
			answer_words(c,
				     error == GT_ENOTSUP			? 505
				     : error == GT_ENOSPC || error == GT_EAGAIN ? 431
										: 400,
				     "", "%s", c->message.text);
			return false;
		}
		int64_t got = c->stream->receive(c->stream->data, c->head + c->held,
						 sizeof(c->head) - c->held);
		if (got <= 0)
			return false;
		c->held += (size_t)got;
	}
}

void gt_http_serve(struct gt_http_connection *connection, struct gt_http_stream *stream,
		   struct gt_control_target *control)
{
	connection->stream = stream;
	connection->control = control;
	connection->held = 0;
	while (receive_request(connection)) {
		/* What the request says of itself points into the head: it moves up only once the
		 * answer does not need it any more, or has taken the body from it. */
		struct gt_http_request *request = &connection->request;
		if (request->method == GT_HTTP_PUT || request->method == GT_HTTP_POST) {
			const char *refused = refusal(connection);
			if (!refused)
				request->host.text = request->origin.text = NULL;
			else
				request->keep_alive = false;
			__builtin_memmove(connection->head, connection->head + request->head_bytes,
					  connection->held);
			if (refused) {
				answer_words(connection, 403, "", "%s", refused);
				return;
			}
			if (!answer(connection) || !request->keep_alive)
				return;
			continue;
		}
		if (!answer(connection) || !request->keep_alive)
			return;
		__builtin_memmove(connection->head, connection->head + request->head_bytes,
				  connection->held);
	}
}

const char *gt_http_too_many(size_t *bytes)
{
	static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
				   "Content-Type: text/plain\r\nContent-Length: 21\r\n\r\n"
				   "too many connections\n";
	*bytes = sizeof(text) - 1;
	return text;
}
