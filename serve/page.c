/* SPDX-License-Identifier: MIT */
/* The page over HTTP: see page.h. */
#define _GNU_SOURCE /* memmem */
#include "serve/page.h"

#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/message.h"
#include "export/page/built_in.h"
#include "serve/http_answer.h"

#define API "/api/"
/* The page says in its head which scripts may run. */
#define PAGE_POLICY   "frame-ancestors 'none'"
#define ANSWER_POLICY "default-src 'none'"

struct gt_page_server {
	struct gt_page_options options;
	pthread_mutex_t lock; /* guards what follows */
	struct gt_page *page; /* NULL: nobody has asked for it yet */
	pthread_t reader;
	bool ended; /* the reader is at its end */
	int error;  /* … with this result */
};

int gt_page_server_create(const struct gt_page_options *options, struct gt_page_server **server_out,
			  struct gt_message *message)
{
	struct gt_page_server *server = calloc(1, sizeof(*server));

	if (!server) {
		gt_message_set(message, "no memory for the page");
		return GT_ENOMEM;
	}
	server->options = *options;
	pthread_mutex_init(&server->lock, NULL);
	*server_out = server;
	return GT_OK;
}

void gt_page_server_destroy(struct gt_page_server *server)
{
	if (server->page) {
		gt_page_stop(server->page);
		pthread_join(server->reader, NULL);
		gt_page_destroy(server->page);
	}
	pthread_mutex_destroy(&server->lock);
	free(server);
}

static void *read_page(void *data)
{
	struct gt_page_server *server = data;
	int error = gt_page_read(server->page, NULL);

	pthread_mutex_lock(&server->lock);
	server->ended = true;
	server->error = error;
	pthread_mutex_unlock(&server->lock);
	return NULL;
}

/* Under the lock. Signals are for the thread that started the server. */
static int start_reader(struct gt_page_server *server)
{
	sigset_t all, old;
	int error = gt_page_create(&server->options, &server->page);

	if (error != GT_OK)
		return error;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&server->reader, NULL, read_page, server);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error == 0)
		return GT_OK;
	gt_page_destroy(server->page);
	server->page = NULL;
	return GT_EAGAIN;
}

/* GT_OK: the page is read; GT_EAGAIN: it is being read; or why it cannot be. */
static int state_of(struct gt_page_server *server)
{
	int error = GT_OK;

	pthread_mutex_lock(&server->lock);
	if (!server->page)
		error = start_reader(server);
	if (error == GT_OK)
		error = server->ended ? server->error : GT_EAGAIN;
	pthread_mutex_unlock(&server->lock);
	return error;
}

bool gt_page_server_has(const char *url)
{
	return strcmp(url, "/") == 0 || strncmp(url, API, strlen(API)) == 0;
}

static int send_words(struct MHD_Connection *connection, unsigned status, const char *words)
{
	return gt_http_send(connection, status,
			    MHD_create_response_from_buffer(strlen(words), (void *)(uintptr_t)words,
							    MHD_RESPMEM_MUST_COPY),
			    "text/plain; charset=utf-8", ANSWER_POLICY);
}

/* The page without figures: it asks for them. */
static int send_page(struct MHD_Connection *connection)
{
	size_t bytes = (size_t)(gt_page_page_end - gt_page_page), before;
	const char *mark = memmem(gt_page_page, bytes, GT_PAGE_MARK, strlen(GT_PAGE_MARK));
	char *text = malloc(bytes);

	if (!text)
		return send_words(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
	before = (size_t)(mark - gt_page_page);
	memcpy(text, gt_page_page, before);
	memcpy(text + before, mark + strlen(GT_PAGE_MARK), bytes - before - strlen(GT_PAGE_MARK));
	return gt_http_send(connection, MHD_HTTP_OK,
			    MHD_create_response_from_buffer(bytes - strlen(GT_PAGE_MARK), text,
							    MHD_RESPMEM_MUST_FREE),
			    "text/html; charset=utf-8", PAGE_POLICY);
}

static const char *parameter(void *user, const char *name)
{
	return MHD_lookup_connection_value(user, MHD_GET_ARGUMENT_KIND, name);
}

static int send_progress(struct gt_page_server *server, struct MHD_Connection *connection)
{
	char text[64];
	int bytes =
		snprintf(text, sizeof(text), "{\"progress\":%.3f}", gt_page_progress(server->page));

	return gt_http_send(
		connection, MHD_HTTP_OK,
		MHD_create_response_from_buffer((size_t)bytes, text, MHD_RESPMEM_MUST_COPY),
		"application/json", ANSWER_POLICY);
}

static int send_answer(struct gt_page_server *server, struct MHD_Connection *connection,
		       const char *question)
{
	struct gt_out out;
	char *text;
	int error;

	if (gt_out_init_memory(&out) != GT_OK)
		return send_words(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
	error = gt_page_answer(server->page, question, parameter, connection, &out);
	if (error != GT_OK) {
		gt_out_fini(&out);
		return error == GT_ENOENT
			       ? send_words(connection, MHD_HTTP_NOT_FOUND,
					    "there is no such question, function or thread\n")
		       : error == GT_EINVAL
			       ? send_words(connection, MHD_HTTP_BAD_REQUEST,
					    "a parameter of the question makes no sense\n")
			       : send_words(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
					    "no memory\n");
	}
	/* The answer keeps no more memory than it has bytes. */
	text = realloc(out.buffer, out.used);
	return gt_http_send(connection, MHD_HTTP_OK,
			    MHD_create_response_from_buffer(out.used, text ? text : out.buffer,
							    MHD_RESPMEM_MUST_FREE),
			    "application/json", ANSWER_POLICY);
}

int gt_page_server_answer(struct gt_page_server *server, struct MHD_Connection *connection,
			  const char *url)
{
	int state;

	if (strcmp(url, "/") == 0)
		return send_page(connection);
	state = state_of(server);
	if (state == GT_EAGAIN)
		return send_progress(server, connection);
	if (state != GT_OK)
		return send_words(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				  "the recording cannot be read: there is no memory for it\n");
	return send_answer(server, connection, url + strlen(API));
}
