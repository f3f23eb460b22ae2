/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server: its life, and where each request goes. Guarantees: knows no control file by name;
 * memory for each connection is bounded (a block for reading, GT_HTTP_BODY_BYTES for writing).
 * Nothing here writes to stdout or stderr.
 */
#include "serve/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/trace/message.h"
#include "serve/http_answer.h"
#include "serve/http_private.h"
#include "serve/page.h"

#define ROOT		   GT_HTTP_ROOT
#define INSTANCES	   ROOT "instances/"
#define CONNECTION_BYTES   (160 * 1024) /* libmicrohttpd uses half of it for a chunk */
#define GT_HTTP_BODY_BYTES (64 * 1024)
#define GRACES		   6 /* the most that gt_http_close waits, in grace periods */

/* Writing */

static enum MHD_Result take_body(struct gt_http_exchange *exchange, const char *bytes,
				 size_t *count)
{
	if (exchange->body_bytes + *count > GT_HTTP_BODY_BYTES) {
		exchange->full = true;
	} else {
		char *grown = realloc(exchange->body, exchange->body_bytes + *count);

		if (grown == NULL)
			return MHD_NO;
		memcpy(grown + exchange->body_bytes, bytes, *count);
		exchange->body = grown;
		exchange->body_bytes += *count;
	}
	*count = 0;
	return MHD_YES;
}

static enum MHD_Result answer_put(struct gt_http_exchange *exchange,
				  struct MHD_Connection *connection, bool truncate)
{
	struct gt_message message = { "" };
	struct MHD_Response *response;
	enum MHD_Result result;
	int error;

	if (exchange->full)
		return gt_http_send_words(connection, MHD_HTTP_CONTENT_TOO_LARGE,
					  "the value is longer than 64 KB", NULL, NULL);
	error = gt_control_put(&exchange->node, truncate,
			       exchange->body != NULL ? exchange->body : "", exchange->body_bytes,
			       &message);
	if (error != 0)
		return gt_http_send_error(connection, &exchange->node, error, &message);
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
		return gt_http_send_words(connection, MHD_HTTP_METHOD_NOT_ALLOWED, message.text,
					  "GET, HEAD", NULL);
	if (error != 0)
		return gt_http_send_words(connection, gt_control_http_status(error), message.text,
					  NULL, NULL);
	response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	if (response == NULL)
		return MHD_NO;
	result = MHD_queue_response(connection, make ? MHD_HTTP_CREATED : MHD_HTTP_NO_CONTENT,
				    response);
	MHD_destroy_response(response);
	return result;
}

/* The file, or the directory, cannot be written: gt_control_open has the reason in words. */
static enum MHD_Result refuse_put(struct MHD_Connection *connection,
				  const struct gt_control_node *node)
{
	struct gt_control_handle unused;
	struct gt_message message = { "" };

	if (gt_control_open(&unused, node, GT_CONTROL_WRITE, &message) == 0) {
		gt_control_write(&unused, "", 0, &message);
		gt_control_close(&unused, NULL);
	}
	return gt_http_send_words(connection, MHD_HTTP_METHOD_NOT_ALLOWED, message.text,
				  gt_http_methods(node), NULL);
}

static enum MHD_Result begin_exchange(struct gt_http_server *server,
				      struct MHD_Connection *connection,
				      const struct gt_control_node *node, bool put, void **context)
{
	struct gt_http_exchange *exchange = calloc(1, sizeof(*exchange));

	if (exchange == NULL)
		return gt_http_send_words(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory",
					  NULL, NULL);
	exchange->server = server;
	exchange->node = *node;
	exchange->put = put;
	atomic_fetch_add(&server->active, 1);
	*context = exchange;
	return MHD_YES;
}

/* A request of a file or a directory below ROOT: refuses it, or prepares for its body. */
static enum MHD_Result begin_node(struct gt_http_server *server, struct MHD_Connection *connection,
				  const struct gt_control_node *node, bool get, bool put,
				  void **context)
{
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_CONTENT_LENGTH);

	if (!get && !put)
		return gt_http_send_words(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
					  "this method is not known here", gt_http_methods(node),
					  NULL);
	if (put && (node->file == NULL ||
		    !(gt_control_access(node->target, node->file) & GT_CONTROL_WRITE)))
		return refuse_put(connection, node);
	if (put && length != NULL && strtoull(length, NULL, 10) > GT_HTTP_BODY_BYTES)
		return gt_http_send_words(connection, MHD_HTTP_CONTENT_TOO_LARGE,
					  "the value is longer than 64 KB", NULL, NULL);
	return begin_exchange(server, connection, node, put, context);
}

static enum MHD_Result send_to_root(struct gt_http_server *server,
				    struct MHD_Connection *connection, bool get)
{
	char query[GT_TOKEN_BYTES + 8], root[GT_TOKEN_BYTES + 32];

	if (!get)
		return gt_http_send_words(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
					  "this is a directory", "GET, HEAD", NULL);
	gt_http_carry_token(server, connection, query, sizeof(query));
	snprintf(root, sizeof(root), ROOT "%s", query);
	return gt_http_send_words(connection, MHD_HTTP_MOVED_PERMANENTLY, ROOT, NULL, root);
}

/* The head has arrived: refuses the request, or prepares for its body. MHD_YES with *context
 * NULL: it was answered. */
static enum MHD_Result begin(struct gt_http_server *server, struct MHD_Connection *connection,
			     const char *url, const char *method, void **context)
{
	bool get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	bool put = strcmp(method, "PUT") == 0 || strcmp(method, "POST") == 0;
	bool make = strcmp(method, "MKCOL") == 0;
	struct gt_http_client *client = gt_http_client_of(connection);
	char why[256];
	unsigned refused;
	struct gt_control_node node;

	if (client != NULL)
		gt_http_client_enter(server->clients, client,
				     put ? GT_HTTP_BODY_COMES : GT_HTTP_ANSWERED);
	refused = gt_http_check(server, connection, why, sizeof(why));
	if (refused != 0)
		return gt_http_send_refusal(connection, refused, why);
	if (server->page != NULL && get && gt_page_server_has(url))
		return gt_page_server_answer(server->page, connection, url);
	if (strcmp(url, "/") == 0 || strcmp(url, "/ftrace") == 0)
		return send_to_root(server, connection, get);
	if ((make || strcmp(method, "DELETE") == 0) &&
	    strncmp(url, INSTANCES, strlen(INSTANCES)) == 0 && url[strlen(INSTANCES)] != '\0')
		return answer_directory(server, connection, url + strlen(ROOT), make);
	if (strncmp(url, ROOT, strlen(ROOT)) != 0 ||
	    gt_control_find(server->control, url + strlen(ROOT), strlen(url) - strlen(ROOT),
			    &node) != 0)
		return gt_http_send_words(connection, MHD_HTTP_NOT_FOUND,
					  "no such file; " ROOT " lists what there is", NULL, NULL);
	return begin_node(server, connection, &node, get, put, context);
}

static enum MHD_Result handle(void *data, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **context)
{
	struct gt_http_exchange *exchange = *context;

	(void)version;
	if (exchange == NULL)
		return begin(data, connection, url, method, context);
	if (*upload_bytes > 0) {
		if (exchange->put)
			return take_body(exchange, upload, upload_bytes);
		*upload_bytes = 0; /* a GET's body is ignored */
		return MHD_YES;
	}
	if (gt_http_client_of(connection) != NULL)
		gt_http_client_enter(exchange->server->clients, gt_http_client_of(connection),
				     GT_HTTP_ANSWERED);
	if (exchange->put)
		return answer_put(exchange, connection, strcmp(method, "PUT") == 0);
	return gt_http_answer_get(exchange, connection, url, strcmp(method, "HEAD") == 0);
}

static void completed(void *data, struct MHD_Connection *connection, void **context,
		      enum MHD_RequestTerminationCode code)
{
	struct gt_http_server *server = data;
	struct gt_http_exchange *exchange = *context;

	(void)code;
	if (gt_http_client_of(connection) != NULL)
		gt_http_client_enter(server->clients, gt_http_client_of(connection), GT_HTTP_IDLE);
	if (exchange == NULL)
		return;
	atomic_fetch_sub(&exchange->server->active, 1);
	free(exchange->body);
	free(exchange);
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
	return gt_fail(message, GT_ENOMEM, "no memory for the HTTP server");
}

static unsigned or_else(unsigned value, unsigned otherwise)
{
	return value != 0 ? value : otherwise;
}

int gt_http_open(const struct gt_http_options *options, struct gt_http_server **server_out,
		 struct gt_message *message)
{
	struct gt_http_server *server;
	int error;

	if (options->size < sizeof(*options))
		return gt_fail(message, GT_EINVAL, "the options of the HTTP server are too short");
	server = calloc(1, sizeof(*server));
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
	return gt_fail(message, GT_EIO, "cannot start the HTTP server: %s", strerror(error));
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
