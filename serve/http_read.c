/* SPDX-License-Identifier: MIT */
/*
 * GET: control files and lists of directories. No lock is held while bytes are sent; a reader that
 * waits (trace_pipe) notices within WAIT_MS that its client has gone or that the server ends.
 */
#define _GNU_SOURCE /* POLLRDHUP */
#include "serve/http_private.h"

#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "serve/http_answer.h"
#include "serve/index.h"

#define BLOCK_BYTES (64 * 1024)
#define WAIT_MS	    20 /* interval at which a waiting reader tries again */
#define NICE	    10
#define BUSY_TRIES  10

/* One control file that is being sent. */
struct reader {
	struct gt_http_server *server;
	struct MHD_Connection *connection;
	int socket;
	bool follows;	     /* waits for new data at the end; else ends there */
	uint64_t lines_left; /* if it does not follow; UINT64_MAX: no limit */
	struct gt_control_handle handle;
	size_t first_bytes; /* read before the answer begins: … */
	size_t first_given;
	char first[BLOCK_BYTES]; /* … so that an error still sets the status */
};

/* Has the client closed the connection, or does it within that time? */
static bool has_gone(const struct reader *reader, int wait_ms)
{
	struct pollfd client = { .fd = reader->socket, .events = POLLRDHUP };

	return poll(&client, 1, wait_ms) > 0;
}

/* Waits WAIT_MS for new data. Returns false if the client has gone or the server ends. */
static bool wait_for_more(struct reader *reader)
{
	/* Waiting for data does not count as idle time: the timeout starts again when there is
	 * something to send. */
	MHD_set_connection_option(reader->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	return !has_gone(reader, WAIT_MS) && !atomic_load(&reader->server->stopping);
}

static void pass_lines(struct reader *reader, const char *text, size_t bytes)
{
	uint64_t lines = reader->lines_left != UINT64_MAX ? gt_control_lines(text, bytes) : 0;

	reader->lines_left -= lines < reader->lines_left ? lines : reader->lines_left;
}

static ssize_t read_more(void *data, uint64_t position, char *buffer, size_t bytes)
{
	struct reader *reader = data;
	struct gt_message message;
	bool waited = false;
	int64_t got;

	(void)position;
	if (reader->first_given < reader->first_bytes) {
		size_t left = reader->first_bytes - reader->first_given;

		bytes = bytes < left ? bytes : left;
		memcpy(buffer, reader->first + reader->first_given, bytes);
		reader->first_given += bytes;
		return (ssize_t)bytes;
	}
	if (reader->lines_left == 0)
		return MHD_CONTENT_READER_END_OF_STREAM;
	for (;;) {
		/* Records that a disconnected reader consumes would be lost to the next one. */
		if ((reader->handle.file->flags & GT_CONTROL_WAITS) && has_gone(reader, 0))
			return MHD_CONTENT_READER_END_OF_STREAM;
		got = gt_control_read(&reader->handle, buffer, bytes, &message);
		if (got != GT_EAGAIN)
			break;
		if (!reader->follows)
			return MHD_CONTENT_READER_END_OF_STREAM;
		waited = true;
		if (!wait_for_more(reader))
			return MHD_CONTENT_READER_END_OF_STREAM;
	}
	if (waited)
		MHD_set_connection_option(reader->connection, MHD_CONNECTION_OPTION_TIMEOUT,
					  reader->server->limits.idle_ms / 1000);
	if (got == 0)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (got > 0)
		pass_lines(reader, buffer, (size_t)got);
	atomic_fetch_add(&reader->server->moved, 1);
	return got > 0 ? (ssize_t)got : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void end_reader(void *data)
{
	struct reader *reader = data;
	struct gt_message message;

	gt_control_close(&reader->handle, &message);
	free(reader);
}

/* The body of an answer to HEAD: it is never asked for. */
static ssize_t read_nothing(void *data, uint64_t position, char *buffer, size_t bytes)
{
	(void)data;
	(void)position;
	(void)buffer;
	(void)bytes;
	return MHD_CONTENT_READER_END_OF_STREAM;
}

/* Fills reader->first. Returns 0: the file goes on; 1: that was all; or an error. */
static int64_t read_first(struct reader *reader, struct gt_message *message)
{
	while (reader->first_bytes < sizeof(reader->first)) {
		int64_t got = gt_control_read(&reader->handle, reader->first + reader->first_bytes,
					      sizeof(reader->first) - reader->first_bytes, message);

		if (got <= 0)
			return got == 0 || got == GT_EAGAIN ? 1 : got;
		pass_lines(reader, reader->first + reader->first_bytes, (size_t)got);
		reader->first_bytes += (size_t)got;
		if (reader->lines_left == 0)
			return 1;
	}
	return 0;
}

/* Making text takes processor time. If processors are scarce the traced program goes first: this
 * lowers the priority of the connection's thread, which ends with it. */
static void give_way(void)
{
	setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, (id_t)gettid()) + NICE);
}

/* trace_pipe ends after the records that are there now, unless `?follow` is asked for. A file
 * for programs, in pages or in blocks of a recording, always follows. */
static bool follows(const struct gt_http_exchange *exchange, struct MHD_Connection *connection)
{
	if (!(exchange->node.file->flags & GT_CONTROL_WAITS))
		return false;
	return exchange->node.file->flags & GT_CONTROL_BINARY ||
	       MHD_lookup_connection_value_n(connection, MHD_GET_ARGUMENT_KIND, "follow", 6, NULL,
					     NULL) == MHD_YES;
}

static int send_file(struct gt_http_exchange *exchange, struct MHD_Connection *connection)
{
	struct gt_http_server *server = exchange->server;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct reader *reader = malloc(sizeof(*reader));
	struct MHD_Response *response = NULL;
	struct gt_message message = { "" };
	int64_t state = 0;

	if (reader == NULL)
		return gt_http_send_words(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory",
					  NULL, NULL);
	reader->server = server;
	reader->connection = connection;
	reader->socket = info != NULL ? info->connect_fd : -1;
	reader->follows = follows(exchange, connection);
	reader->lines_left = exchange->node.file->flags & GT_CONTROL_WAITS && !reader->follows
				     ? gt_control_lines_there(&exchange->node)
				     : UINT64_MAX;
	reader->first_bytes = 0;
	reader->first_given = 0;
	/* The reader before may have disconnected a moment ago, unnoticed by its thread. */
	for (int tries = 0; tries < BUSY_TRIES; tries++) {
		state = gt_control_open(&reader->handle, &exchange->node, GT_CONTROL_READ,
					&message);
		if (state != GT_EBUSY || has_gone(reader, WAIT_MS))
			break;
	}
	if (state != 0) {
		free(reader);
		return gt_http_send_error(connection, &exchange->node, state, &message);
	}
	/* A follower gets the head at once, before there is data. */
	if (!reader->follows)
		state = read_first(reader, &message);
	if (state < 0) {
		end_reader(reader);
		return gt_http_send_error(connection, &exchange->node, state, &message);
	}
	if (state == 1) {
		response = MHD_create_response_from_buffer(reader->first_bytes, reader->first,
							   MHD_RESPMEM_MUST_COPY);
		end_reader(reader);
	} else {
		give_way();
		response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
							     read_more, reader, end_reader);
		if (response == NULL)
			end_reader(reader);
	}
	return gt_http_send_strict(connection, MHD_HTTP_OK, response,
				   exchange->node.file->flags & GT_CONTROL_BINARY
					   ? "application/octet-stream"
					   : "text/plain; charset=utf-8");
}

static bool wants_json(struct MHD_Connection *connection)
{
	const char *accept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	const char *json = accept != NULL ? strstr(accept, "application/json") : NULL;
	const char *html = accept != NULL ? strstr(accept, "text/html") : NULL;

	return json != NULL && (html == NULL || json < html);
}

static int send_directory(struct gt_http_exchange *exchange, struct MHD_Connection *connection,
			  const char *url)
{
	struct gt_http_server *server = exchange->server;
	const char *path = strlen(url) >= strlen(GT_HTTP_ROOT) ? url + strlen(GT_HTTP_ROOT) : "";
	bool json = wants_json(connection);
	size_t bytes = 0;
	char query[GT_TOKEN_BYTES + 8];
	char *page;

	gt_http_carry_token(server, connection, query, sizeof(query));
	if (url[strlen(url) - 1] != '/') {
		/* Links in the page are relative to its address. */
		char location[GT_TOKEN_BYTES + 256];

		snprintf(location, sizeof(location), "%.200s/%s", url, query);
		return gt_http_send_words(connection, MHD_HTTP_MOVED_PERMANENTLY, location, NULL,
					  location);
	}
	page = gt_index_make(&exchange->node, path, server->title, query, json, &bytes);
	if (page == NULL)
		return gt_http_send_words(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory",
					  NULL, NULL);
	return gt_http_send_strict(
		connection, MHD_HTTP_OK,
		MHD_create_response_from_buffer(bytes, page, MHD_RESPMEM_MUST_FREE),
		json ? "application/json" : "text/html; charset=utf-8");
}

/* As send_file, without a body and without opening the file: of unknown length, until the
 * connection closes. */
static int send_head(struct MHD_Connection *connection)
{
	struct MHD_Response *response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_nothing, NULL, NULL);

	if (response != NULL)
		MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
	return gt_http_send_strict(connection, MHD_HTTP_OK, response, "text/plain; charset=utf-8");
}

int gt_http_answer_get(struct gt_http_exchange *exchange, struct MHD_Connection *connection,
		       const char *url, bool head)
{
	const struct gt_control_file *file = exchange->node.file;

	if (file == NULL)
		return send_directory(exchange, connection, url);
	if (!(gt_control_access(exchange->node.target, file) & GT_CONTROL_READ))
		return gt_http_send_words(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
					  "this file can only be written",
					  gt_http_methods(&exchange->node), NULL);
	if (head)
		return send_head(connection);
	return send_file(exchange, connection);
}
