/* SPDX-License-Identifier: MIT */
/*
 * Sends bodies to a server over HTTP: see push.h.
 */
#define _GNU_SOURCE
#include "cli/push.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/process/clock.h"
#include "core/trace/message.h"
#include "port/host/own_thread.h"

#define LIMIT_NS     5000000000ull /* time limit of one whole delivery */
#define ANSWER_BYTES 4096

struct gt_push {
	char host[256], port[6], *path;
	bool is_default;
	const char *content_type;
	pthread_t thread;
	bool started; /* the thread is not joined yet */
	bool ended;   /* set by the thread, atomically, after all that it has written */
	bool took;
	char *request;
	size_t bytes;
	struct gt_message why;
};

int gt_push_create(const char *url, const char *path, const char *content_type,
		   struct gt_push **made, struct gt_message *message)
{
	struct gt_push *push = calloc(1, sizeof(*push));
	const char *at = url + 7;
	size_t host = strcspn(at, ":/?"), digits = 0;

	if (push == NULL)
		return gt_fail(message, GT_ENOMEM, "out of memory");
	if (strncmp(url, "http://", 7) != 0 || host == 0 || host >= sizeof(push->host))
		goto invalid;
	memcpy(push->host, at, host);
	at += host;
	strcpy(push->port, "80");
	if (*at == ':') {
		digits = strspn(++at, "0123456789");
		if (digits == 0 || digits >= sizeof(push->port))
			goto invalid;
		memcpy(push->port, at, digits);
		push->port[digits] = '\0';
		at += digits;
	}
	if (*at != '\0' && *at != '/' && *at != '?')
		goto invalid;
	/* A blank or a line's end in the address would end the request's line or begin another. */
	for (const char *c = at; *c; c++)
		if (*c <= ' ' || *c >= 0x7f)
			goto invalid;
	push->is_default = *at == '\0' || strcmp(at, "/") == 0;
	if (push->is_default)
		push->path = strdup(path);
	else if (asprintf(&push->path, "%s%s", *at == '?' ? "/" : "", at) < 0)
		push->path = NULL;
	push->content_type = content_type;
	*made = push;
	if (push->path != NULL)
		return 0;
	gt_message_set(message, "out of memory");
	free(push);
	return GT_ENOMEM;
invalid:
	free(push);
	return gt_fail(message, GT_EINVAL,
		       "'%s' is no address of a server: http://HOST[:PORT][/PATH]", url);
}

/* Milliseconds that are left, for poll; 0: none. */
static int left_ms(uint64_t until)
{
	uint64_t now = gt_monotonic_ns();

	return now < until ? (int)((until - now) / 1000000) + 1 : 0;
}

static bool wait_for(int fd, short events, uint64_t until)
{
	struct pollfd one = { .fd = fd, .events = events };
	int ms, got;

	do {
		ms = left_ms(until);
		got = ms > 0 ? poll(&one, 1, ms) : 0;
	} while (got < 0 && errno == EINTR);
	if (got == 0)
		errno = ETIMEDOUT;
	return got > 0;
}

static int connect_one(const struct addrinfo *at, uint64_t until)
{
	int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = 0;
	socklen_t bytes = sizeof(error);

	if (fd < 0)
		return -1;
	if (connect(fd, at->ai_addr, at->ai_addrlen) == 0)
		return fd;
	error = errno;
	if (error == EINPROGRESS) {
		if (!wait_for(fd, POLLOUT, until))
			error = errno;
		else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0)
			error = errno;
	}
	if (error == 0)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

static int connect_to(struct gt_push *push, uint64_t until)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	int error = getaddrinfo(push->host, push->port, &hints, &found), fd = -1;

	if (error != 0) {
		gt_message_set(&push->why, "%s: %s", push->host, gai_strerror(error));
		return -1;
	}
	for (struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next)
		fd = connect_one(at, until);
	if (fd < 0)
		gt_message_set(&push->why, "cannot connect to %s:%s: %s", push->host, push->port,
			       strerror(errno));
	freeaddrinfo(found);
	return fd;
}

static bool send_all(int fd, const char *bytes, size_t count, uint64_t until)
{
	while (count > 0) {
		ssize_t done = send(fd, bytes, count, MSG_NOSIGNAL);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno == EAGAIN && wait_for(fd, POLLOUT, until))
			continue;
		if (done < 0)
			return false;
		bytes += done;
		count -= (size_t)done;
	}
	return true;
}

/* Receives the status, and as much of the body as arrives; 0: no answer. */
static int receive_status(int fd, char answer[ANSWER_BYTES], uint64_t until)
{
	size_t held = 0;

	while (held < ANSWER_BYTES - 1) {
		ssize_t got = recv(fd, answer + held, ANSWER_BYTES - 1 - held, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN && wait_for(fd, POLLIN, until))
			continue;
		if (got <= 0)
			break;
		held += (size_t)got;
		answer[held] = '\0';
		/* After a success the body is not needed. */
		if (held > 12 && strncmp(answer, "HTTP/1.", 7) == 0 && answer[9] == '2')
			break;
	}
	answer[held] = '\0';
	return strncmp(answer, "HTTP/1.", 7) == 0 && held > 12 ? atoi(answer + 9) : 0;
}

static void *deliver(void *data)
{
	struct gt_push *push = data;
	uint64_t until = gt_monotonic_ns() + LIMIT_NS;
	char answer[ANSWER_BYTES];
	int fd = connect_to(push, until), status;

	if (fd >= 0 && !send_all(fd, push->request, push->bytes, until)) {
		gt_message_set(&push->why, "%s:%s: %s", push->host, push->port, strerror(errno));
	} else if (fd >= 0) {
		status = receive_status(fd, answer, until);
		push->took = status >= 200 && status < 300;
		if (!push->took && status == 0)
			gt_message_set(&push->why, "%s:%s gives no answer of HTTP", push->host,
				       push->port);
		else if (!push->took) {
			const char *body = strstr(answer, "\r\n\r\n");

			body = body != NULL && body[4] ? body + 4 : answer + 9;
			gt_message_set(&push->why, "%s:%s answers %d: %.*s", push->host, push->port,
				       status, (int)strcspn(body, "\r\n"), body);
		}
	}
	if (fd >= 0)
		close(fd);
	__atomic_store_n(&push->ended, true, __ATOMIC_RELEASE); /* pairs with gt_push_state */
	return NULL;
}

bool gt_push_has_default_path(const struct gt_push *push)
{
	return push->is_default;
}

bool gt_push_start(struct gt_push *push, const char *method, const char *path, const char *body,
		   size_t bytes)
{
	int head;

	if (push->started)
		return false;
	free(push->request);
	head = asprintf(&push->request,
			"%s %s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n"
			"User-Agent: graftrace\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
			method, path ? path : push->path, push->host, push->port,
			push->content_type, bytes);
	if (head < 0) {
		push->request = NULL;
		return false;
	}
	char *grown = realloc(push->request, (size_t)head + bytes + 1);
	if (grown == NULL)
		return false;
	push->request = grown;
	memcpy(grown + head, body, bytes);
	push->bytes = (size_t)head + bytes;
	push->ended = push->took = false;
	push->why.text[0] = '\0';
	push->started = gt_own_thread_start(&push->thread, deliver, push) == 0;
	return push->started;
}

enum gt_push_state gt_push_state(struct gt_push *push, struct gt_message *message)
{
	if (!push->started)
		return GT_PUSH_IDLE;
	if (!__atomic_load_n(&push->ended, __ATOMIC_ACQUIRE)) /* pairs with deliver */
		return GT_PUSH_UNDER_WAY;
	pthread_join(push->thread, NULL);
	push->started = false;
	*message = push->why;
	return push->took ? GT_PUSH_DONE : GT_PUSH_FAILED;
}

void gt_push_wait(struct gt_push *push)
{
	while (push->started && !__atomic_load_n(&push->ended, __ATOMIC_ACQUIRE))
		poll(NULL, 0, 10);
}

void gt_push_destroy(struct gt_push *push)
{
	if (push->started)
		pthread_join(push->thread, NULL);
	free(push->path);
	free(push->request);
	free(push);
}
