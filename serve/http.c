/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server. Guarantees: knows no control file by name; memory for each connection is bounded
 * (a block for reading, GT_HTTP_BODY_BYTES for writing); no lock is held while bytes are sent, so a
 * stalled client delays no other; a reader that waits (trace_pipe) notices within WAIT_MS that its
 * client has gone or that the server ends. Nothing here writes to stdout or stderr.
 */
#define _GNU_SOURCE /* POLLRDHUP */
#include "serve/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/http/http_request.h"
#include "core/trace/message.h"
#include "serve/access.h"
#include "serve/address.h"
#include "serve/http_answer.h"
#include "serve/http_clients.h"
#include "serve/index.h"
#include "serve/page.h"

#define ROOT		   "/ftrace/"
#define INSTANCES	   ROOT "instances/"
#define BLOCK_BYTES	   (64 * 1024)
#define CONNECTION_BYTES   (160 * 1024) /* libmicrohttpd uses half of it for a chunk */
#define GT_HTTP_BODY_BYTES (64 * 1024)
#define WAIT_MS		   20 /* interval at which a waiting reader tries again */
#define NICE		   10
#define BUSY_TRIES	   10
#define GRACES		   6 /* the most that gt_http_close waits, in grace periods */

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
	atomic_uint active; /* requests being answered */
	atomic_uint moved;  /* counts the pieces of answers that were made */
};

/* One request, from the start of its head to the end of its answer. */
struct request {
	struct gt_http_server *server;
	struct gt_control_node node;
	bool put;  /* PUT or POST: a body follows */
	bool full; /* the body is too long */
	size_t body_bytes;
	char *body; /* grows to GT_HTTP_BODY_BYTES */
};

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

/* Answers */

int gt_http_send(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response,
		 const char *type, const char *policy)
{
	enum MHD_Result result;

	if (response == NULL)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Content-Security-Policy", policy);
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status,
				     struct MHD_Response *response, const char *type)
{
	return gt_http_send(connection, status, response, type,
			    "default-src 'none'; style-src 'unsafe-inline'");
}

/* Answers with one line that has the reason; `allow` and `location` may be NULL. */
static enum MHD_Result send_words(struct MHD_Connection *connection, unsigned status,
				  const char *words, const char *allow, const char *location)
{
	char text[sizeof(struct gt_message) + 1];
	int bytes = snprintf(text, sizeof(text), "%s\n", words);
	struct MHD_Response *response =
		MHD_create_response_from_buffer((size_t)bytes, text, MHD_RESPMEM_MUST_COPY);

	if (response != NULL && allow != NULL)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow);
	if (response != NULL && location != NULL)
		MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, location);
	return send_response(connection, status, response, "text/plain; charset=utf-8");
}

/* Refuses the request, and closes its connection. */
static enum MHD_Result send_refusal(struct MHD_Connection *connection, unsigned status,
				    const char *words)
{
	char text[sizeof(struct gt_message) + 1];
	int bytes = snprintf(text, sizeof(text), "%s\n", words);
	struct MHD_Response *response =
		MHD_create_response_from_buffer((size_t)bytes, text, MHD_RESPMEM_MUST_COPY);

	if (response != NULL)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	if (response != NULL && status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	return send_response(connection, status, response, "text/plain; charset=utf-8");
}

static const char *allowed_methods(const struct gt_control_node *node)
{
	unsigned access =
		node->file == NULL ? GT_CONTROL_READ : gt_control_access(node->target, node->file);

	switch (access) {
	case GT_CONTROL_READ | GT_CONTROL_WRITE:
		return "GET, HEAD, PUT, POST";
	case GT_CONTROL_READ:
		return "GET, HEAD";
	default:
		return "PUT, POST";
	}
}

static enum MHD_Result send_error(struct request *request, struct MHD_Connection *connection,
				  int64_t error, const struct gt_message *message)
{
	unsigned status = gt_control_http_status(error);

	return send_words(connection, status,
			  message->text[0] != '\0' ? message->text : "it could not be done",
			  status == MHD_HTTP_METHOD_NOT_ALLOWED ? allowed_methods(&request->node)
								: NULL,
			  NULL);
}

/* Who asks */

static struct gt_http_client *client_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info != NULL ? info->socket_context : NULL;
}

static enum MHD_Result count_header(void *data, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	unsigned *counts = data;

	(void)kind;
	(void)value;
	counts[0] += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
	counts[1] += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
	counts[1] += strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
	counts[2] += strcasecmp(name, MHD_HTTP_HEADER_AUTHORIZATION) == 0;
	return MHD_YES;
}

/* Returns NULL, or the reason why two programs could parse the request differently (RFC 9112,
 * 3.2 and 6.3). */
static const char *ambiguous(struct MHD_Connection *connection)
{
	unsigned counts[3] = { 0 };

	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, counts);
	if (counts[0] > 1)
		return "the request has two Host headers";
	if (counts[1] > 1)
		return "the request says its length twice";
	return counts[2] > 1 ? "the request has two Authorization headers" : NULL;
}

/* Returns the token of the request, from `Authorization: Bearer` or `?token=`; NULL: none. */
static const char *token_of(struct MHD_Connection *connection)
{
	const char *bearer = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_AUTHORIZATION);

	if (bearer != NULL && strncasecmp(bearer, "Bearer ", 7) == 0)
		return bearer + 7 + strspn(bearer + 7, " ");
	return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
}

/* Returns 0, or the status with which the request is refused, and the reason. */
static unsigned refuse_client(const struct gt_http_server *server,
			      struct MHD_Connection *connection, char *why, size_t room)
{
	const struct gt_http_client *client = client_of(connection);
	const struct gt_peer *peer = client != NULL ? gt_http_client_peer(client) : NULL;
	const char *token = token_of(connection);

	if (client == NULL || gt_http_client_is_refused(client)) {
		snprintf(why, room, "too many connections");
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	}
	if (gt_access_allows_peer(&server->access, peer) ||
	    (token != NULL && gt_access_allows_token(&server->access, token, strlen(token))))
		return 0;
	if (server->access.token[0] != '\0') {
		snprintf(why, room,
			 "%s: show it as 'Authorization: Bearer TOKEN' or '?token=TOKEN'",
			 token != NULL ? "this is not the token" : "a token is wanted here");
		return MHD_HTTP_UNAUTHORIZED;
	}
	if (peer->local)
		snprintf(why, room,
			 "this trace is of user %u, and of root: start graftrace with "
			 "--allow-users %u, or with --token FILE, for user %u to see and change it",
			 (unsigned)geteuid(), (unsigned)peer->uid, (unsigned)peer->uid);
	else
		snprintf(why, room,
			 "this trace is of user %u of that machine, and of root: start graftrace "
			 "with --token FILE for others to see and change it",
			 (unsigned)geteuid());
	return MHD_HTTP_FORBIDDEN;
}

/* Returns NULL, or the reason why the request is refused as one of another site's page. */
static const char *foreign(const struct gt_http_server *server, struct MHD_Connection *connection)
{
	const char *host =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	const char *origin =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN);
	const char *site =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");

	/* HTTP/1.0 has no Host. Only browsers have to be kept out here, and they all send one. */
	if (host != NULL &&
	    !gt_http_host_is_allowed(host, strlen(host), server->bound, server->any_address))
		return "this host name is not served here: use localhost, 127.0.0.1 or [::1]";
	if (origin != NULL &&
	    (host == NULL || !gt_http_origin_is_own(origin, strlen(origin), host, strlen(host))))
		return "requests from other web pages are refused";
	if (site != NULL && strcasecmp(site, "same-origin") != 0 && strcasecmp(site, "none") != 0)
		return "requests from other web pages are refused";
	return NULL;
}

/* Reading */

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
static bool follows(const struct request *request, struct MHD_Connection *connection)
{
	if (!(request->node.file->flags & GT_CONTROL_WAITS))
		return false;
	return request->node.file->flags & GT_CONTROL_BINARY ||
	       MHD_lookup_connection_value_n(connection, MHD_GET_ARGUMENT_KIND, "follow", 6, NULL,
					     NULL) == MHD_YES;
}

static enum MHD_Result send_file(struct request *request, struct MHD_Connection *connection)
{
	struct gt_http_server *server = request->server;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct reader *reader = malloc(sizeof(*reader));
	struct MHD_Response *response = NULL;
	struct gt_message message = { "" };
	int64_t state = 0;

	if (reader == NULL)
		return send_words(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory", NULL,
				  NULL);
	reader->server = server;
	reader->connection = connection;
	reader->socket = info != NULL ? info->connect_fd : -1;
	reader->follows = follows(request, connection);
	reader->lines_left = request->node.file->flags & GT_CONTROL_WAITS && !reader->follows
				     ? gt_control_lines_there(&request->node)
				     : UINT64_MAX;
	reader->first_bytes = 0;
	reader->first_given = 0;
	/* The reader before may have disconnected a moment ago, unnoticed by its thread. */
	for (int tries = 0; tries < BUSY_TRIES; tries++) {
		state = gt_control_open(&reader->handle, &request->node, GT_CONTROL_READ, &message);
		if (state != GT_EBUSY || has_gone(reader, WAIT_MS))
			break;
	}
	if (state != 0) {
		free(reader);
		return send_error(request, connection, state, &message);
	}
	/* A follower gets the head at once, before there is data. */
	if (!reader->follows)
		state = read_first(reader, &message);
	if (state < 0) {
		end_reader(reader);
		return send_error(request, connection, state, &message);
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
	return send_response(connection, MHD_HTTP_OK, response,
			     request->node.file->flags & GT_CONTROL_BINARY
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

/* Gives the query that a page's links need if the page was asked for with `?token=`, else "". A
 * wrong token, sent by a client that needs none, is not put into the page. */
static void carry_token(const struct gt_http_server *server, struct MHD_Connection *connection,
			char *query, size_t room)
{
	const char *token = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");

	if (token != NULL && gt_access_allows_token(&server->access, token, strlen(token)))
		snprintf(query, room, "?token=%s", token);
	else
		query[0] = '\0';
}

static enum MHD_Result send_directory(struct request *request, struct MHD_Connection *connection,
				      const char *url)
{
	struct gt_http_server *server = request->server;
	const char *path = strlen(url) >= strlen(ROOT) ? url + strlen(ROOT) : "";
	bool json = wants_json(connection);
	size_t bytes = 0;
	char query[GT_TOKEN_BYTES + 8];
	char *page;

	carry_token(server, connection, query, sizeof(query));
	if (url[strlen(url) - 1] != '/') {
		/* Links in the page are relative to its address. */
		char location[GT_TOKEN_BYTES + 256];

		snprintf(location, sizeof(location), "%.200s/%s", url, query);
		return send_words(connection, MHD_HTTP_MOVED_PERMANENTLY, location, NULL, location);
	}
	page = gt_index_make(&request->node, path, server->title, query, json, &bytes);
	if (page == NULL)
		return send_words(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory", NULL,
				  NULL);
	return send_response(connection, MHD_HTTP_OK,
			     MHD_create_response_from_buffer(bytes, page, MHD_RESPMEM_MUST_FREE),
			     json ? "application/json" : "text/html; charset=utf-8");
}

/* As send_file, without a body and without opening the file: of unknown length, until the
 * connection closes. */
static enum MHD_Result send_head(struct MHD_Connection *connection)
{
	struct MHD_Response *response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_nothing, NULL, NULL);

	if (response != NULL)
		MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
	return send_response(connection, MHD_HTTP_OK, response, "text/plain; charset=utf-8");
}

static enum MHD_Result answer_get(struct request *request, struct MHD_Connection *connection,
				  const char *url, bool head)
{
	const struct gt_control_file *file = request->node.file;

	if (file == NULL)
		return send_directory(request, connection, url);
	if (!(gt_control_access(request->node.target, file) & GT_CONTROL_READ))
		return send_words(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				  "this file can only be written", allowed_methods(&request->node),
				  NULL);
	if (head)
		return send_head(connection);
	return send_file(request, connection);
}

/* Writing */

static enum MHD_Result take_body(struct request *request, const char *bytes, size_t *count)
{
	if (request->body_bytes + *count > GT_HTTP_BODY_BYTES) {
		request->full = true;
	} else {
		char *grown = realloc(request->body, request->body_bytes + *count);

		if (grown == NULL)
			return MHD_NO;
		memcpy(grown + request->body_bytes, bytes, *count);
		request->body = grown;
		request->body_bytes += *count;
	}
	*count = 0;
	return MHD_YES;
}

static enum MHD_Result answer_put(struct request *request, struct MHD_Connection *connection,
				  bool truncate)
{
	struct gt_message message = { "" };
	struct MHD_Response *response;
	enum MHD_Result result;
	int error;

	if (request->full)
		return send_words(connection, MHD_HTTP_CONTENT_TOO_LARGE,
				  "the value is longer than 64 KB", NULL, NULL);
	error = gt_control_put(&request->node, truncate, request->body != NULL ? request->body : "",
			       request->body_bytes, &message);
	if (error != 0)
		return send_error(request, connection, error, &message);
	response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	if (response == NULL)
		return MHD_NO;
	result = MHD_queue_response(connection, MHD_HTTP_NO_CONTENT, response);
	MHD_destroy_response(response);
	return result;
}

/* The request as a whole */

/* mkdir and rmdir below instances/: MKCOL (of WebDAV) and DELETE. */
static enum MHD_Result answer_directory(struct gt_http_server *server,
					struct MHD_Connection *connection, const char *path,
					bool make)
{
	struct gt_message message = { "" };
	struct MHD_Response *response;
	enum MHD_Result result;
	int error = make ? gt_control_make(server->control, path, strlen(path), &message)
			 : gt_control_remove(server->control, path, strlen(path), &message);

	if (error == GT_EPERM)
		return send_words(connection, MHD_HTTP_METHOD_NOT_ALLOWED, message.text,
				  "GET, HEAD", NULL);
	if (error != 0)
		return send_words(connection, gt_control_http_status(error), message.text, NULL,
				  NULL);
	response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	if (response == NULL)
		return MHD_NO;
	result = MHD_queue_response(connection, make ? MHD_HTTP_CREATED : MHD_HTTP_NO_CONTENT,
				    response);
	MHD_destroy_response(response);
	return result;
}

/* The head has arrived: refuses the request, or prepares for its body. MHD_YES with *context
 * NULL: it was answered. */
static enum MHD_Result begin(struct gt_http_server *server, struct MHD_Connection *connection,
			     const char *url, const char *method, void **context)
{
	bool get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	bool put = strcmp(method, "PUT") == 0 || strcmp(method, "POST") == 0;
	bool make = strcmp(method, "MKCOL") == 0;
	struct gt_http_client *client = client_of(connection);
	const char *refusal;
	char why[256], query[GT_TOKEN_BYTES + 8], root[GT_TOKEN_BYTES + 32];
	unsigned refused;
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_CONTENT_LENGTH);
	struct gt_control_node node;
	struct request *request;

	if (client != NULL)
		gt_http_client_enter(server->clients, client,
				     put ? GT_HTTP_BODY_COMES : GT_HTTP_ANSWERED);
	refused = refuse_client(server, connection, why, sizeof(why));
	if (refused != 0)
		return send_refusal(connection, refused, why);
	if ((refusal = ambiguous(connection)) != NULL)
		return send_refusal(connection, MHD_HTTP_BAD_REQUEST, refusal);
	if ((refusal = foreign(server, connection)) != NULL)
		return send_refusal(connection, MHD_HTTP_FORBIDDEN, refusal);
	if (server->page && get && gt_page_server_has(url))
		return gt_page_server_answer(server->page, connection, url);
	carry_token(server, connection, query, sizeof(query));
	snprintf(root, sizeof(root), ROOT "%s", query);
	if (strcmp(url, "/") == 0 || strcmp(url, "/ftrace") == 0)
		return get ? send_words(connection, MHD_HTTP_MOVED_PERMANENTLY, ROOT, NULL, root)
			   : send_words(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
					"this is a directory", "GET, HEAD", NULL);
	if ((make || strcmp(method, "DELETE") == 0) &&
	    strncmp(url, INSTANCES, strlen(INSTANCES)) == 0 && url[strlen(INSTANCES)] != '\0')
		return answer_directory(server, connection, url + strlen(ROOT), make);
	if (strncmp(url, ROOT, strlen(ROOT)) != 0 ||
	    gt_control_find(server->control, url + strlen(ROOT), strlen(url) - strlen(ROOT),
			    &node) != 0)
		return send_words(connection, MHD_HTTP_NOT_FOUND,
				  "no such file; " ROOT " lists what there is", NULL, NULL);
	if (!get && !put)
		return send_words(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				  "this method is not known here", allowed_methods(&node), NULL);
	if (put && (node.file == NULL ||
		    !(gt_control_access(node.target, node.file) & GT_CONTROL_WRITE))) {
		struct gt_control_handle unused;
		struct gt_message message = { "" };

		/* gt_control_open has the reason in words. */
		if (gt_control_open(&unused, &node, GT_CONTROL_WRITE, &message) == 0) {
			gt_control_write(&unused, "", 0, &message);
			gt_control_close(&unused, NULL);
		}
		return send_words(connection, MHD_HTTP_METHOD_NOT_ALLOWED, message.text,
				  allowed_methods(&node), NULL);
	}
	if (put && length != NULL && strtoull(length, NULL, 10) > GT_HTTP_BODY_BYTES)
		return send_words(connection, MHD_HTTP_CONTENT_TOO_LARGE,
				  "the value is longer than 64 KB", NULL, NULL);
	request = calloc(1, sizeof(*request));
	if (request == NULL)
		return send_words(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory", NULL,
				  NULL);
	request->server = server;
	request->node = node;
	request->put = put;
	atomic_fetch_add(&server->active, 1);
	*context = request;
	return MHD_YES;
}

static enum MHD_Result handle(void *data, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **context)
{
	struct request *request = *context;

	(void)version;
	if (request == NULL)
		return begin(data, connection, url, method, context);
	if (*upload_bytes > 0) {
		if (request->put)
			return take_body(request, upload, upload_bytes);
		*upload_bytes = 0; /* a GET's body is ignored */
		return MHD_YES;
	}
	if (client_of(connection) != NULL)
		gt_http_client_enter(request->server->clients, client_of(connection),
				     GT_HTTP_ANSWERED);
	if (request->put)
		return answer_put(request, connection, strcmp(method, "PUT") == 0);
	return answer_get(request, connection, url, strcmp(method, "HEAD") == 0);
}

static void completed(void *data, struct MHD_Connection *connection, void **context,
		      enum MHD_RequestTerminationCode code)
{
	struct gt_http_server *server = data;
	struct request *request = *context;

	(void)code;
	if (client_of(connection) != NULL)
		gt_http_client_enter(server->clients, client_of(connection), GT_HTTP_IDLE);
	if (request == NULL)
		return;
	atomic_fetch_sub(&request->server->active, 1);
	free(request->body);
	free(request);
	*context = NULL;
}

/* Called in the server's thread, before a connection's thread starts and after it has ended. */
static void connected(void *data, struct MHD_Connection *connection, void **context,
		      enum MHD_ConnectionNotificationCode code)
{
	struct gt_http_server *server = data;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (code == MHD_CONNECTION_NOTIFY_STARTED && info != NULL)
		*context = gt_http_clients_add(server->clients, info->connect_fd);
	else if (code == MHD_CONNECTION_NOTIFY_CLOSED && *context != NULL)
		gt_http_clients_remove(server->clients, *context);
}

/* %41 becomes A. %00, which would cut the path off, becomes a byte that no path has. */
static size_t unescape(void *data, struct MHD_Connection *connection, char *text)
{
	(void)data;
	(void)connection;
	for (char *at = strstr(text, "%00"); at != NULL; at = strstr(at, "%00"))
		memcpy(at, "\x7f\x7f\x7f", 3);
	return MHD_http_unescape(text);
}

static int no_memory(struct gt_message *message)
{
	gt_message_set(message, "no memory for the HTTP server");
	return GT_ENOMEM;
}

static unsigned or_else(unsigned value, unsigned otherwise)
{
	return value != 0 ? value : otherwise;
}

int gt_http_open(const struct gt_http_options *options, struct gt_http_server **server_out,
		 struct gt_message *message)
{
	struct gt_http_server *server = calloc(1, sizeof(*server));
	int error;

	if (server == NULL)
		return no_memory(message);
	server->limits = (struct gt_http_limits){
		.connections = or_else(options->connections, 64),
		.head_ms = 1000 * or_else(options->head_seconds, 10),
		.body_ms = 1000 * or_else(options->body_seconds, 30),
		.idle_ms = 1000 * or_else(options->idle_seconds, 30),
	};
	error = gt_address_parse(options->address != NULL ? options->address
							  : GT_HTTP_DEFAULT_ADDRESS,
				 &server->address, message);
	if (error == 0)
		error = gt_access_init(&server->access, options->allow_users, options->token_file,
				       message);
	if (error == 0) {
		server->socket =
			gt_address_listen(&server->address, gt_access_is_open(&server->access),
					  server->bound, &server->any_address, message);
		if (server->socket >= 0) {
			if (server->address.path[0] != '\0')
				snprintf(server->place, sizeof(server->place), "unix:%s",
					 server->address.path);
			else
				snprintf(server->place, sizeof(server->place), "http://%s/ftrace/",
					 server->bound);
			snprintf(server->page_place, sizeof(server->page_place),
				 server->address.path[0] != '\0' ? "unix:%s" : "http://%s/",
				 server->address.path[0] != '\0' ? server->address.path
								 : server->bound);
			*server_out = server;
			return 0;
		}
		error = server->socket;
		gt_access_fini(&server->access);
	}
	free(server);
	return error;
}

int gt_http_start(struct gt_http_server *server, struct gt_control_target *control,
		  const char *title, struct gt_message *message)
{
	sigset_t all;
	sigset_t old;
	int error;

	server->control = control;
	server->title = strdup(title);
	server->clients = gt_http_clients_create(&server->limits);
	if (server->title == NULL || server->clients == NULL)
		return no_memory(message);
	/* Signals are delivered to the thread that started the server: a handler must not run in
	 * the server's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	/* The daemon's own limit is higher than ours: a connection above our limit is accepted,
	 * then refused with an answer, or in place of another one that is closed. Closed ones
	 * count until their threads have ended. */
	server->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
			MHD_USE_ITC,
		0, NULL, NULL, handle, server, MHD_OPTION_LISTEN_SOCKET, server->socket,
		MHD_OPTION_CONNECTION_LIMIT, 8 * server->limits.connections,
		MHD_OPTION_CONNECTION_TIMEOUT, server->limits.idle_ms / 1000,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_NOTIFY_COMPLETED, completed, server, MHD_OPTION_NOTIFY_CONNECTION,
		connected, server, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	error = errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (server->daemon != NULL)
		return 0;
	gt_message_set(message, "cannot start the HTTP server: %s", strerror(error));
	return GT_EIO;
}

void gt_http_show_page(struct gt_http_server *server, struct gt_page_server *page)
{
	server->page = page;
}

const char *gt_http_address(const struct gt_http_server *server)
{
	return server->place;
}

const char *gt_http_page_address(const struct gt_http_server *server)
{
	return server->page_place;
}

void gt_http_close(struct gt_http_server *server, unsigned grace_ms)
{
	const struct timespec moment = { 0, 10 * 1000 * 1000 };

	if (server->daemon != NULL) {
		MHD_quiesce_daemon(server->daemon);
		unsigned waited = 0, in_all = 0, seen = atomic_load(&server->moved);
		while (atomic_load(&server->active) > 0 && waited < grace_ms &&
		       in_all < grace_ms * GRACES) {
			unsigned moved = atomic_load(&server->moved);

			nanosleep(&moment, NULL);
			waited = moved == seen ? waited + 10 : 0;
			in_all += 10;
			seen = moved;
		}
		atomic_store(&server->stopping, true);
		MHD_stop_daemon(server->daemon);
	}
	if (server->clients != NULL)
		gt_http_clients_destroy(server->clients);
	close(server->socket);
	gt_address_leave(&server->address);
	gt_access_fini(&server->access);
	free(server->title);
	free(server);
}
