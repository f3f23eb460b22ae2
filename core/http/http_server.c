/* SPDX-License-Identifier: MIT */
/* The server of a kernel's control files: see http_server.h. */
#include "core/http/http_server.h"

#include "core/control/control_row.h"
#include "core/trace/message.h"

#define ROOT	   "/ftrace/"
#define ROOT_BYTES 8
#define CHUNK_ROOM 16
#define ENTRY_ROOM 1024 /* room for one entry of a list */

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

/* Begins the output at the start of the block. */
static void put_head(struct gt_http_connection *c, unsigned status, const char *type,
		     int64_t length, const char *more)
{
	size_t bytes = gt_format(c->block, sizeof(c->block),
				 "HTTP/1.1 %u %s\r\nCache-Control: no-store\r\n"
				 "X-Content-Type-Options: nosniff\r\nConnection: %s\r\n%s",
				 status, reason_of(status),
				 c->request.keep_alive ? "keep-alive" : "close", more);
	if (type != NULL)
		bytes += gt_format(c->block + bytes, sizeof(c->block) - bytes,
				   "Content-Type: %s\r\n", type);
	/* negative: no Content-Length */
	if (length >= 0)
		bytes += gt_format(c->block + bytes, sizeof(c->block) - bytes,
				   "Content-Length: %llu\r\n", (unsigned long long)length);
	bytes += gt_format(c->block + bytes, sizeof(c->block) - bytes, "\r\n");
	c->out = c->block;
	c->out_bytes = bytes;
}

/* Makes a whole answer with one line of text. */
static void answer_words(struct gt_http_connection *c, unsigned status, const char *more,
			 const char *format, ...) __attribute__((format(printf, 4, 5)));
static void answer_words(struct gt_http_connection *c, unsigned status, const char *more,
			 const char *format, ...)
{
	char words[640];
	va_list arguments;
	va_start(arguments, format);
	size_t bytes = gt_format_v(words, sizeof(words) - 1, format, arguments);
	va_end(arguments);
	words[bytes++] = '\n';
	put_head(c, status, "text/plain; charset=utf-8", (int64_t)bytes, more);
	if (c->request.method != GT_HTTP_HEAD) {
		__builtin_memcpy(c->block + c->out_bytes, words, bytes);
		c->out_bytes += bytes;
	}
	c->state = GT_HTTP_STATE_LAST;
}

/* Answers an error of the control file table. */
static void answer_error(struct gt_http_connection *c, int error, const char *more)
{
	answer_words(c, gt_control_http_status(error), more, "%s", c->message.text);
}

/* ---- bodies of unknown length ---- */

/* Sends a chunk of `count` bytes that are stored at block + CHUNK_ROOM. */
static void put_block(struct gt_http_connection *c, size_t count)
{
	char *start = c->block + CHUNK_ROOM;
	c->out = start;
	c->out_bytes = count;
	if (c->request.minor == 0)
		return;
	char size[CHUNK_ROOM];
	size_t bytes = gt_format(size, sizeof(size), "%zx\r\n", count);
	__builtin_memcpy(start - bytes, size, bytes);
	__builtin_memcpy(start + count, "\r\n", 2);
	c->out = start - bytes;
	c->out_bytes = bytes + count + 2;
}

/* Writes the head of a body of unknown length, which `state` sends. For HEAD only the head is
 * sent. */
static void begin_blocks(struct gt_http_connection *c, const char *type, enum gt_http_state state)
{
	if (c->request.minor == 0)
		c->request.keep_alive = false;
	put_head(c, 200, type, -1, c->request.minor == 0 ? "" : "Transfer-Encoding: chunked\r\n");
	c->state = c->request.method == GT_HTTP_HEAD ? GT_HTTP_STATE_LAST : state;
}

static void end_blocks(struct gt_http_connection *c)
{
	if (c->request.minor != 0) {
		__builtin_memcpy(c->block, "0\r\n\r\n", 5);
		c->out = c->block;
		c->out_bytes = 5;
	}
	c->state = GT_HTTP_STATE_LAST;
}

/* ---- reading ---- */

enum listing { LISTING_PLAIN, LISTING_HTML, LISTING_JSON };

/* Takes the listing that the client's Accept header names first: browsers send text/html; wget
 * and curl accept any type. */
static enum listing wanted_listing(const struct gt_http_request *request)
{
	const char *accept = request->accept.text;
	size_t bytes = accept != NULL ? request->accept.bytes : 0;
	if (bytes >= 9 && gt_row_is_word(accept, 9, "text/html"))
		return LISTING_HTML;
	if (bytes >= 16 && gt_row_is_word(accept, 16, "application/json"))
		return LISTING_JSON;
	return LISTING_PLAIN;
}

/* Names and texts come from our own table: they contain no quotes and no control characters. */
static size_t json_entry(const struct gt_http_connection *c, char *at, size_t room,
			 const struct gt_control_entry *entry, bool first)
{
	const struct gt_control_file *file = entry->node.file;
	unsigned access = file != NULL ? gt_control_access(c->node.target, file) : 0;
	if (file == NULL)
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

static void answer_directory(struct gt_http_connection *c)
{
	static const char *const types[] = { "text/plain; charset=utf-8",
					     "text/html; charset=utf-8", "application/json" };
	c->entry = 0;
	begin_blocks(c, types[wanted_listing(&c->request)], GT_HTTP_STATE_LIST);
}

/* Sends some entries of the directory, usually all of them. */
static void continue_list(struct gt_http_connection *c)
{
	static const char *const heads[] = { "", "<!DOCTYPE html><title>ftrace</title><pre>\n",
					     "{\"kind\":\"kernel\",\"entries\":[\n" };
	enum listing listing = wanted_listing(&c->request);
	struct gt_control_entry entry;
	char *at = c->block + CHUNK_ROOM;
	size_t held = 0;
	if (c->entry == 0)
		held = gt_format(at, GT_HTTP_BLOCK_BYTES, "%s", heads[listing]);
	while (gt_control_list(&c->node, c->entry, &entry) == 0) {
		if (GT_HTTP_BLOCK_BYTES - held < ENTRY_ROOM) {
			put_block(c, held);
			return;
		}
		held += list_entry(c, listing, at + held, GT_HTTP_BLOCK_BYTES - held, &entry,
				   c->entry == 0);
		c->entry++;
	}
	if (listing == LISTING_JSON)
		held += gt_format(at + held, GT_HTTP_BLOCK_BYTES - held, "\n]}\n");
	/* there is no such entry: the next call ends the list */
	c->entry = UINT32_MAX;
	if (held != 0)
		put_block(c, held);
	else
		end_blocks(c);
}

/* trace_pipe ends after the records that are there now, unless `?follow` is asked for. A file
 * for programs, in blocks of a recording, always follows. */
static bool follows(const struct gt_http_connection *c)
{
	static const char word[] = "follow";
	const struct gt_http_text *query = &c->request.query;
	size_t i = 0;
	if (c->node.file->flags & GT_CONTROL_BINARY)
		return true;
	while (query->text != NULL && i < query->bytes) {
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

/* Reads a block of the open file into its place. Returns > 0: bytes, 0: the end, GT_EAGAIN:
 * nothing yet, or another error. */
static int64_t next_block(struct gt_http_connection *c)
{
	if (c->lines_left == 0)
		return 0;
	int64_t got = gt_control_read(&c->handle, c->block + CHUNK_ROOM, GT_HTTP_BLOCK_BYTES,
				      &c->message);
	if (got > 0 && c->lines_left != UINT64_MAX) {
		uint64_t lines = gt_control_lines(c->block + CHUNK_ROOM, (size_t)got);
		c->lines_left -= lines < c->lines_left ? lines : c->lines_left;
	}
	return got == GT_EAGAIN && !follows(c) ? 0 : got;
}

static void close_file(struct gt_http_connection *c)
{
	if (c->is_open)
		gt_control_close(&c->handle, NULL);
	c->is_open = false;
}

/* GT_EAGAIN: there is nothing to send yet. */
static int continue_file(struct gt_http_connection *c)
{
	if (c->rests) {
		c->rests = false;
		return GT_EAGAIN;
	}
	int64_t got = next_block(c);
	if (got == GT_EAGAIN)
		return GT_EAGAIN;
	if (got > 0) {
		/* Sending itself leaves records in the trace. They wait for the next ones: if
		 * they were sent at once, that would leave records again, without end. */
		c->rests = c->node.file->flags & GT_CONTROL_WAITS && follows(c) &&
			   got < GT_HTTP_BLOCK_BYTES / 4;
		put_block(c, (size_t)got);
		return 0;
	}
	close_file(c);
	/* an answer that broke off must not look complete */
	if (got == 0)
		end_blocks(c);
	else
		c->state = GT_HTTP_STATE_OVER;
	return 0;
}

static void answer_file(struct gt_http_connection *c)
{
	const struct gt_control_file *file = c->node.file;
	const char *type = file->flags & GT_CONTROL_BINARY ? "application/octet-stream"
							   : "text/plain; charset=utf-8";
	if (!(gt_control_access(c->node.target, file) & GT_CONTROL_READ)) {
		answer_words(c, 405, "Allow: PUT, POST\r\n", "this file is written only");
		return;
	}
	if (c->request.method == GT_HTTP_HEAD) {
		begin_blocks(c, type, GT_HTTP_STATE_LAST);
		return;
	}
	int error = gt_control_open(&c->handle, &c->node, GT_CONTROL_READ, &c->message);
	if (error != 0) {
		answer_error(c, error, "");
		return;
	}
	c->is_open = true;
	c->rests = false;
	c->lines_left = file->flags & GT_CONTROL_WAITS && !follows(c)
				? gt_control_lines_there(&c->node)
				: UINT64_MAX;
	begin_blocks(c, type, GT_HTTP_STATE_FILE);
}

/* ---- writing ---- */

/* Drops the first `count` bytes of the input. */
static void drop(struct gt_http_connection *c, size_t count)
{
	c->held -= count;
	__builtin_memmove(c->head, c->head + count, c->held);
}

/* The body follows the head. The head's bytes are dropped, and with them the strings of the
 * request that pointed into it. */
static void begin_body(struct gt_http_connection *c)
{
	if (c->request.chunked || c->request.content_length > GT_HTTP_BODY_BYTES) {
		c->request.keep_alive = false;
		if (c->request.chunked)
			answer_words(c, 411, "",
				     "say the length of what is written "
				     "(Content-Length)");
		else
			answer_words(c, 413, "", "at most %u bytes can be written at once",
				     (unsigned)GT_HTTP_BODY_BYTES);
		return;
	}
	drop(c, c->used);
	c->used = 0;
	c->request.host.text = c->request.origin.text = c->request.accept.text =
		c->request.query.text = c->request.fetch_site.text = NULL;
	c->body_bytes = 0;
	c->state = GT_HTTP_STATE_BODY;
	if (c->request.expects_continue && c->held < c->request.content_length) {
		c->out = "HTTP/1.1 100 Continue\r\n\r\n";
		c->out_bytes = 25;
	}
}

/* GT_ENOSPC: more of the body has to arrive. */
static int continue_body(struct gt_http_connection *c)
{
	size_t wanted = (size_t)c->request.content_length - c->body_bytes;
	size_t there = c->held < wanted ? c->held : wanted;
	__builtin_memcpy(c->body + c->body_bytes, c->head, there);
	c->body_bytes += there;
	drop(c, there);
	if (there < wanted)
		return GT_ENOSPC;
	int error = gt_control_put(&c->node, c->request.method == GT_HTTP_PUT, c->body,
				   c->body_bytes, &c->message);
	if (error == 0) {
		put_head(c, 204, NULL, -1, "");
		c->state = GT_HTTP_STATE_LAST;
	} else if (!(gt_control_access(c->node.target, c->node.file) & GT_CONTROL_WRITE)) {
		answer_words(c, 405, "Allow: GET, HEAD\r\n", "%s", c->message.text);
	} else {
		answer_error(c, error, "");
	}
	return 0;
}

/* ---- requests ---- */

/* Refuses requests that pages of other sites make through a browser. */
static const char *refusal(const struct gt_http_connection *c)
{
	const struct gt_http_request *request = &c->request;
	if (request->host.text != NULL &&
	    !gt_http_host_is_allowed(request->host.text, request->host.bytes, NULL, true))
		return "this Host is not served here: use localhost or an address in digits";
	if (request->origin.text != NULL &&
	    !gt_http_origin_is_own(request->origin.text, request->origin.bytes, request->host.text,
				   request->host.bytes))
		return "requests of other sites' pages are refused";
	return NULL;
}

/* The page for browsers. It is sent from where it is stored, without a copy. */
static void answer_page(struct gt_http_connection *c)
{
	put_head(c, 200, "text/html; charset=utf-8", (int64_t)c->page_bytes,
		 "Content-Security-Policy: frame-ancestors 'none'\r\n");
	c->state = c->request.method == GT_HTTP_HEAD ? GT_HTTP_STATE_LAST : GT_HTTP_STATE_PAGE;
}

static void answer(struct gt_http_connection *c)
{
	struct gt_http_request *request = &c->request;
	bool writes = request->method == GT_HTTP_PUT || request->method == GT_HTTP_POST;
	const char *refused = refusal(c);
	const char *path = request->path;
	size_t bytes = request->path_bytes;
	bool is_below = bytes >= ROOT_BYTES && __builtin_memcmp(path, ROOT, ROOT_BYTES) == 0;
	bool is_found = is_below && gt_control_find(c->control, path + ROOT_BYTES,
						    bytes - ROOT_BYTES, &c->node) == 0;
	gt_message_clear(&c->message);
	/* a body that is not read would be parsed as the next request */
	if (refused != NULL || request->method == GT_HTTP_OTHER ||
	    (writes ? !is_found || c->node.file == NULL
		    : request->content_length || request->chunked))
		request->keep_alive = false;
	if (refused != NULL)
		answer_words(c, 403, "", "%s", refused);
	else if (request->method == GT_HTTP_OTHER)
		answer_words(c, 405, "Allow: GET, HEAD, PUT, POST\r\n",
			     "GET, HEAD, PUT and POST are known here");
	else if (bytes == 1 && !writes && c->page != NULL &&
		 wanted_listing(request) == LISTING_HTML)
		answer_page(c);
	else if (bytes == ROOT_BYTES - 1 || bytes == 1)
		answer_words(c, 301, "Location: " ROOT "\r\n", ROOT);
	else if (!is_below)
		answer_words(c, 404, "", "the files are below " ROOT);
	else if (!is_found)
		answer_words(c, 404, "", "there is no such file; " ROOT " lists them");
	else if (writes && c->node.file == NULL)
		answer_words(c, 405, "Allow: GET, HEAD\r\n", "this is a directory");
	else if (writes)
		begin_body(c);
	else if (c->node.file != NULL)
		answer_file(c);
	else if (path[bytes - 1] == '/')
		answer_directory(c);
	else {
		char location[GT_HTTP_PATH_BYTES + 32];
		gt_format(location, sizeof(location), "Location: %s/\r\n", path);
		answer_words(c, 301, location, "%s/", path);
	}
}

/* Looks for a request in the input. GT_ENOSPC: more of it has to arrive. */
static int continue_head(struct gt_http_connection *c)
{
	int error = gt_http_request_parse(&c->request, c->head, c->held, &c->message);
	if (error == 0) {
		c->used = c->request.head_bytes;
		answer(c);
		return 0;
	}
	if (error == GT_EAGAIN && c->held < sizeof(c->head))
		return GT_ENOSPC;
	c->used = c->held;
	c->request.keep_alive = false;
	c->request.method = GT_HTTP_OTHER;
	answer_words(c,
		     error == GT_ENOTSUP			? 505
		     : error == GT_ENOSPC || error == GT_EAGAIN ? 431
								: 400,
		     "", "%s", c->message.text);
	return 0;
}

/* ---- fed and asked ---- */

void gt_http_begin(struct gt_http_connection *connection, struct gt_control_target *control)
{
	connection->control = control;
	connection->state = GT_HTTP_STATE_HEAD;
	connection->page = NULL;
	connection->is_open = false;
	connection->held = 0;
	connection->used = 0;
}

size_t gt_http_feed(struct gt_http_connection *connection, const char *bytes, size_t count)
{
	size_t room = sizeof(connection->head) - connection->held;
	size_t taken = count < room ? count : room;
	__builtin_memcpy(connection->head + connection->held, bytes, taken);
	connection->held += taken;
	return taken;
}

/* Makes one step. GT_ENOSPC: more input is needed to go on. */
static int step(struct gt_http_connection *c)
{
	switch (c->state) {
	case GT_HTTP_STATE_HEAD:
		return continue_head(c);
	case GT_HTTP_STATE_BODY:
		return continue_body(c);
	case GT_HTTP_STATE_LIST:
		if (c->entry == UINT32_MAX)
			end_blocks(c);
		else
			continue_list(c);
		return 0;
	case GT_HTTP_STATE_FILE:
		return continue_file(c);
	case GT_HTTP_STATE_PAGE:
		c->out = c->page;
		c->out_bytes = c->page_bytes;
		c->state = GT_HTTP_STATE_LAST;
		return 0;
	case GT_HTTP_STATE_LAST:
		drop(c, c->used);
		c->used = 0;
		c->state = c->request.keep_alive ? GT_HTTP_STATE_HEAD : GT_HTTP_STATE_OVER;
		return 0;
	case GT_HTTP_STATE_OVER:
		break;
	}
	return GT_EGONE;
}

int64_t gt_http_ask(struct gt_http_connection *connection, const char **bytes)
{
	connection->out_bytes = 0;
	while (connection->out_bytes == 0) {
		int error = step(connection);
		if (error != 0)
			return error == GT_ENOSPC ? 0 : error;
	}
	*bytes = connection->out;
	return (int64_t)connection->out_bytes;
}

void gt_http_end(struct gt_http_connection *connection)
{
	close_file(connection);
	connection->state = GT_HTTP_STATE_OVER;
}

/* ---- in a thread that may wait ---- */

void gt_http_serve(struct gt_http_connection *connection, struct gt_http_stream *stream,
		   struct gt_control_target *control)
{
	bool goes_on = true;
	gt_http_begin(connection, control);
	connection->page = stream->page;
	connection->page_bytes = stream->page_bytes;
	while (goes_on) {
		const char *bytes;
		int64_t asked = gt_http_ask(connection, &bytes);
		if (asked > 0) {
			goes_on = stream->send(stream->data, bytes, (size_t)asked) >= 0;
		} else if (asked == 0) {
			char *end = connection->head + connection->held;
			int64_t got = stream->receive(stream->data, end,
						      sizeof(connection->head) - connection->held);
			goes_on = got > 0;
			connection->held += goes_on ? (size_t)got : 0;
		} else {
			goes_on = asked == GT_EAGAIN && stream->wait(stream->data);
		}
	}
	gt_http_end(connection);
}

const char *gt_http_too_many(size_t *bytes)
{
	static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
				   "Content-Type: text/plain\r\nContent-Length: 21\r\n\r\n"
				   "too many connections\n";
	*bytes = sizeof(text) - 1;
	return text;
}
