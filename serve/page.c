/* SPDX-License-Identifier: MIT */
/* The page over HTTP: see page.h. */
#define _GNU_SOURCE /* memmem */
#include "serve/page.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/trace/message.h"
#include "export/page/built_in.h"
#include "port/host/own_thread.h"
#include "serve/http_answer.h"

#define API "/api/"
/* The page names in its own policy which scripts may run. */
#define PAGE_POLICY   "frame-ancestors 'none'"
#define ANSWER_POLICY "default-src 'none'"

struct gt_page_server {
	struct gt_page_source source;
	atomic_bool running;	     /* the program */
	pthread_rwlock_t shown_lock; /* held for reading by users of `shown` */
	struct gt_page *shown;	     /* the newest complete one; NULL: none yet */
	pthread_mutex_t lock;	     /* guards what follows */
	struct gt_page *next;	     /* the one being read, or that failed */
	struct gt_filter filter;
	pthread_t reader;
	bool reads; /* the reading thread has been started and not joined */
	bool ended; /* that thread has ended */
	int error;  /* its result */
	unsigned looks;
};

int gt_page_server_create(const struct gt_page_source *source, struct gt_page_server **server_out,
			  struct gt_message *message)
{
	struct gt_page_server *server = calloc(1, sizeof(*server));

	if (server == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for the page");
	server->source = *source;
	atomic_init(&server->running, source->live);
	pthread_mutex_init(&server->lock, NULL);
	pthread_rwlock_init(&server->shown_lock, NULL);
	*server_out = server;
	return 0;
}

void gt_page_server_program_ended(struct gt_page_server *server)
{
	atomic_store(&server->running, false);
}

void gt_page_server_destroy(struct gt_page_server *server)
{
	if (server->reads) {
		pthread_mutex_lock(&server->lock);
		if (server->next != NULL)
			gt_page_stop(server->next);
		pthread_mutex_unlock(&server->lock);
		pthread_join(server->reader, NULL);
	}
	if (server->next != NULL)
		gt_page_destroy(server->next);
	if (server->shown != NULL)
		gt_page_destroy(server->shown);
	pthread_rwlock_destroy(&server->shown_lock);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

static void *read_page(void *data)
{
	struct gt_page_server *server = data;
	struct gt_page *last = NULL;
	int error = gt_page_read(server->next, &server->filter);

	pthread_rwlock_wrlock(&server->shown_lock);
	pthread_mutex_lock(&server->lock);
	if (error == 0) {
		last = server->shown;
		server->shown = server->next;
		server->next = NULL;
		server->looks++;
	}
	server->ended = true;
	server->error = error;
	pthread_mutex_unlock(&server->lock);
	pthread_rwlock_unlock(&server->shown_lock);
	if (last != NULL)
		gt_page_destroy(last);
	return NULL;
}

/* Limits the page to the last seconds before now; 0: to all, of a running program up to now. */
static void set_filter(struct gt_page_server *server, unsigned long seconds)
{
	struct timespec now;

	memset(&server->filter, 0, sizeof(server->filter));
	if (!server->source.live || clock_gettime(CLOCK_MONOTONIC, &now) != 0)
		return;
	server->filter.to_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (seconds > 0 && seconds * 1000000000 < server->filter.to_ns)
		server->filter.from_ns = server->filter.to_ns - seconds * 1000000000;
}

/* Under the lock: starts reading, unless that is under way. */
static int start_reader(struct gt_page_server *server, unsigned long seconds)
{
	struct gt_page_options options = { 0 };
	int error;

	if (server->reads && !server->ended)
		return 0;
	if (server->reads)
		pthread_join(server->reader, NULL);
	server->reads = server->ended = false;
	if (server->next != NULL)
		gt_page_destroy(server->next);
	server->next = NULL;
	error = server->source.prepare(server->source.user, &options);
	if (error == 0)
		error = gt_page_create(&options, &server->next);
	if (error != 0)
		return error;
	set_filter(server, seconds);
	server->reads = gt_own_thread_start(&server->reader, read_page, server) == 0;
	return server->reads ? 0 : GT_ENOMEM;
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

/* Starts the first reading, unless it was started. */
static int begin_reading(struct gt_page_server *server)
{
	int error;

	pthread_mutex_lock(&server->lock);
	error = server->ended ? server->error : start_reader(server, 0);
	pthread_mutex_unlock(&server->lock);
	return error;
}

/* Sends the page without data: its script asks for them. They are read meanwhile. */
static int send_page(struct gt_page_server *server, struct MHD_Connection *connection)
{
	size_t bytes = (size_t)(gt_page_page_end - gt_page_page), before;
	const char *mark = memmem(gt_page_page, bytes, GT_PAGE_MARK, strlen(GT_PAGE_MARK));
	char *text = malloc(bytes);

	begin_reading(server);
	if (text == NULL)
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

static int send_json(struct MHD_Connection *connection, const char *text)
{
	return gt_http_send(connection, MHD_HTTP_OK,
			    MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
							    MHD_RESPMEM_MUST_COPY),
			    "application/json", ANSWER_POLICY);
}

static int send_progress(struct gt_page_server *server, struct MHD_Connection *connection)
{
	char text[64];

	pthread_mutex_lock(&server->lock);
	snprintf(text, sizeof(text), "{\"progress\":%.3f,\"looks\":%u}",
		 server->next ? gt_page_progress(server->next) : 1.0, server->looks);
	pthread_mutex_unlock(&server->lock);
	return send_json(connection, text);
}

static int send_failure(struct MHD_Connection *connection)
{
	return send_words(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			  "the recording cannot be read: there is no memory for it\n");
}

/* Answers a question, with shown_lock held. */
static int send_answer(struct gt_page *page, struct MHD_Connection *connection,
		       const char *question)
{
	struct gt_out out;
	char *text;
	int error;

	if (gt_out_init_memory(&out) != 0)
		return send_words(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
	error = gt_page_answer(page, question, parameter, connection, &out);
	if (error != 0) {
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
	/* Shrinks the buffer to the answer's size. */
	text = realloc(out.buffer, out.used);
	return gt_http_send(connection, MHD_HTTP_OK,
			    MHD_create_response_from_buffer(out.used,
							    text != NULL ? text : out.buffer,
							    MHD_RESPMEM_MUST_FREE),
			    "application/json", ANSWER_POLICY);
}

/* Reads the data again. */
static int look(struct gt_page_server *server, struct MHD_Connection *connection)
{
	const char *seconds = parameter(connection, "seconds");
	int error;

	pthread_mutex_lock(&server->lock);
	error = start_reader(server, seconds != NULL ? strtoul(seconds, NULL, 10) : 0);
	pthread_mutex_unlock(&server->lock);
	return error == 0 ? send_progress(server, connection) : send_failure(connection);
}

/* Answers while no data are ready: starts reading, or reports its progress. */
static int send_beginning(struct gt_page_server *server, struct MHD_Connection *connection)
{
	return begin_reading(server) == 0 ? send_progress(server, connection)
					  : send_failure(connection);
}

static int send_about(struct gt_page_server *server, struct MHD_Connection *connection)
{
	char text[64];

	snprintf(text, sizeof(text), "{\"live\":%s,\"running\":%s}",
		 server->source.live ? "true" : "false",
		 atomic_load(&server->running) ? "true" : "false");
	return send_json(connection, text);
}

int gt_page_server_answer(struct gt_page_server *server, struct MHD_Connection *connection,
			  const char *url)
{
	const char *question = url + strlen(API);
	int result;

	if (strcmp(url, "/") == 0)
		return send_page(server, connection);
	if (strcmp(question, "about") == 0)
		return send_about(server, connection);
	if (strcmp(question, "look") == 0)
		return look(server, connection);
	if (strcmp(question, "progress") == 0)
		return send_progress(server, connection);
	pthread_rwlock_rdlock(&server->shown_lock);
	result = server->shown != NULL ? send_answer(server->shown, connection, question)
				       : send_beginning(server, connection);
	pthread_rwlock_unlock(&server->shown_lock);
	return result;
}
