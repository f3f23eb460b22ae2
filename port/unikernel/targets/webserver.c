/* SPDX-License-Identifier: MIT */
/* A web server on port 8080: a thread for each connection, computed pages. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

#define PORT		8080
#define LONGEST_REQUEST 4096
#define LONGEST_PAGE	2048
#define IDLE_SECONDS	60

static unsigned long requests_served; /* by all threads */

struct connection {
	int socket;
	char request[LONGEST_REQUEST + 1]; /* received and not answered yet */
	size_t bytes;
};

static int is_prime(unsigned number)
{
	for (unsigned divisor = 2; divisor * divisor <= number; divisor++)
		if (number % divisor == 0)
			return 0;
	return number > 1;
}

static int page_primes(char *page, unsigned limit)
{
	unsigned count = 0, largest = 0;
	for (unsigned number = 2; number <= limit; number++)
		if (is_prime(number)) {
			count++;
			largest = number;
		}
	return snprintf(page, LONGEST_PAGE, "%u primes up to %u, the largest is %u\n", count, limit,
			largest);
}

static int page_status(char *page)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return snprintf(page, LONGEST_PAGE,
			"up for %ld.%03ld s, %ld CPUs busy for %ld us, %lu requests served\n",
			now.tv_sec, now.tv_nsec / 1000000, sysconf(_SC_NPROCESSORS_ONLN),
			clock() / 1000, __atomic_load_n(&requests_served, __ATOMIC_RELAXED));
}

static int page_hello(char *page)
{
	return snprintf(
		page, LONGEST_PAGE,
		"<!DOCTYPE html><title>unikernel</title><h1>Hello</h1>"
		"<p>See <a href=/status>/status</a> or <a href=/primes/1000>/primes/1000</a>."
		"\n");
}

static int send_all(int socket, const char *bytes, size_t count)
{
	while (count) {
		ssize_t sent = write(socket, bytes, count);
		if (sent <= 0)
			return -1;
		bytes += sent;
		count -= (size_t)sent;
	}
	return 0;
}

/* noinline: in every compiler's trace it is a call, as serve is. */
__attribute__((noinline)) static int answer(struct connection *connection, const char *status,
					    const char *page, int length, int keep)
{
	char head[256];
	int head_length = snprintf(head, sizeof(head),
				   "HTTP/1.1 %s\r\nContent-Type: text/html\r\n"
				   "Content-Length: %d\r\nConnection: %s\r\n\r\n",
				   status, length, keep ? "keep-alive" : "close");
	if (send_all(connection->socket, head, (size_t)head_length))
		return -1;
	return send_all(connection->socket, page, (size_t)length);
}

/* Sends a page of the given size, to measure the network. */
static int send_bytes(struct connection *connection, int count, int keep)
{
	static const char bytes[65536];
	char head[128];
	int length = snprintf(head, sizeof(head),
			      "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n",
			      count, keep ? "keep-alive" : "close");
	int failed = send_all(connection->socket, head, (size_t)length);
	while (!failed && count > 0) {
		size_t piece = count < (int)sizeof(bytes) ? (size_t)count : sizeof(bytes);
		failed = send_all(connection->socket, bytes, piece);
		count -= (int)piece;
	}
	return failed;
}

/* Answers one request whose head is complete. -1: the connection must be closed. */
__attribute__((noinline)) static int serve(struct connection *connection, const char *head)
{
	char page[LONGEST_PAGE];
	int length, keep = !strstr(head, "\r\nConnection: close") && strstr(head, " HTTP/1.1\r\n");
	const char *path = head + 4;
	__atomic_add_fetch(&requests_served, 1, __ATOMIC_RELAXED);
	if (strncmp(head, "GET /", 5)) {
		answer(connection, "400 Bad Request", "only GET is known here\n", 23, 0);
		return -1;
	}
	if (!strncmp(path, "/ ", 2)) {
		length = page_hello(page);
	} else if (!strncmp(path, "/status ", 8)) {
		length = page_status(page);
	} else if (!strncmp(path, "/primes/", 8)) {
		int limit = atoi(path + 8);
		length = page_primes(page, limit > 0 && limit <= 100000 ? (unsigned)limit : 100);
	} else if (!strncmp(path, "/bytes/", 7)) {
		return send_bytes(connection, atoi(path + 7), !!keep) || !keep ? -1 : 0;
	} else {
		return answer(connection, "404 Not Found", "no such page\n", 13, !!keep) || !keep
			       ? -1
			       : 0;
	}
	return answer(connection, "200 OK", page, length, !!keep) || !keep ? -1 : 0;
}

/* Reads until a request's head is complete. Returns its length, or 0: the connection has ended
 * or failed. */
static size_t receive_head(struct connection *connection)
{
	for (;;) {
		connection->request[connection->bytes] = 0;
		const char *end = strstr(connection->request, "\r\n\r\n");
		if (end)
			return (size_t)(end + 4 - connection->request);
		if (connection->bytes == LONGEST_REQUEST) {
			answer(connection, "431 Request Header Fields Too Large", "", 0, 0);
			return 0;
		}
		ssize_t got = read(connection->socket, connection->request + connection->bytes,
				   LONGEST_REQUEST - connection->bytes);
		if (got <= 0)
			return 0;
		connection->bytes += (size_t)got;
	}
}

static void *serve_connection(void *argument)
{
	struct connection *connection = argument;
	struct timeval limit = { IDLE_SECONDS, 0 };
	size_t length;
	setsockopt(connection->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(connection->socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	while ((length = receive_head(connection))) {
		char after = connection->request[length];
		connection->request[length] = 0;
		if (serve(connection, connection->request))
			break;
		connection->request[length] = after;
		connection->bytes -= length;
		memmove(connection->request, connection->request + length, connection->bytes);
	}
	close(connection->socket);
	free(connection);
	return NULL;
}

static void take_connection(int socket, const pthread_attr_t *detached)
{
	struct connection *connection = malloc(sizeof(*connection));
	pthread_t thread;
	if (connection) {
		connection->socket = socket;
		connection->bytes = 0;
		if (!pthread_create(&thread, detached, serve_connection, connection))
			return;
		free(connection);
	}
	close(socket);
}

int main(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	pthread_attr_t detached;
	const char *outside = getenv("port"); /* the host's port that is forwarded here */
	int listening = socket(AF_INET, SOCK_STREAM, 0);

	if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(listening, 128)) {
		printf("webserver: cannot listen on port %d: error %d\n", PORT, errno);
		return 1;
	}
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	printf("webserver: http://localhost:%d/\n", outside ? atoi(outside) : PORT);
	for (;;) {
		int accepted = accept(listening, NULL, NULL);
		if (accepted >= 0)
			take_connection(accepted, &detached);
		else
			usleep(10000); /* no memory, or too many sockets: some will be closed */
	}
}
