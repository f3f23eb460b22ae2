/* SPDX-License-Identifier: MIT */
/* The HTTP server over a made-up target: methods, statuses, refusals, readers of every temper. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "serve/http.h"
#include "tests/unit/fake_control.h"

static struct fake_control fake;
static struct gt_http_server *server;
static unsigned port;

static char answer[1 << 20]; /* of the last request, NUL-terminated: head and body */
static const char *body;

static int set_up(void **state)
{
	struct gt_http_options options = { .size = sizeof(options),
					   .address = "127.0.0.1:0",
					   .connections = 8,
					   .idle_seconds = 5,
					   .head_seconds = 1,
					   .body_seconds = 1 };
	struct gt_message message;

	(void)state;
	fake_control_init(&fake, GT_CONTROL_PROGRAM);
	if (gt_http_open(&options, &server, &message) != 0 ||
	    gt_http_start(server, &fake.control, "a <program> & \"more\"", &message) != 0)
		return -1;
	port = (unsigned)atoi(strrchr(gt_http_address(server), ':') + 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	gt_http_close(server, 0);
	return fake.opened; /* whatever became of the clients: all is closed */
}

static int dial(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Everything until the server closes; the status. */
static int hear(int fd)
{
	size_t bytes = 0;
	ssize_t got;

	while ((got = recv(fd, answer + bytes, sizeof(answer) - 1 - bytes, 0)) > 0)
		bytes += (size_t)got;
	answer[bytes] = '\0';
	close(fd);
	body = strstr(answer, "\r\n\r\n");
	body = body != NULL ? body + 4 : "";
	return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? atoi(answer + 9) : 0;
}

/* One request, of which this is all but the empty line. */
static int ask_raw(const char *head, const char *sent)
{
	int fd = dial();

	say(fd, head);
	say(fd, "Connection: close\r\n\r\n");
	say(fd, sent);
	return hear(fd);
}

static int ask(const char *method, const char *path, const char *sent)
{
	char head[512];

	snprintf(head, sizeof(head),
		 "%s %s HTTP/1.1\r\nHost: localhost:%u\r\nContent-Length: %zu\r\n", method, path,
		 port, strlen(sent));
	return ask_raw(head, sent);
}

static int get(const char *path)
{
	return ask("GET", path, "");
}

static void files_are_read_and_written(void **state)
{
	(void)state;
	assert_int_equal(get("/ftrace/tracing_on"), 200);
	assert_string_equal(body, "1\n");
	assert_non_null(strstr(answer, "Content-Type: text/plain"));
	assert_int_equal(ask("PUT", "/ftrace/tracing_on", "0\n"), 204);
	assert_int_equal(get("/ftrace/tracing_on"), 200);
	assert_string_equal(body, "0\n");
	assert_int_equal(ask("POST", "/ftrace/tracing_on", "1"), 204);
	assert_int_equal(get("/ftrace/tracing_on?a=b"), 200);
	assert_string_equal(body, "1\n");
	assert_int_equal(get("/ftrace/tracing%5Fon"), 200);
	assert_string_equal(body, "1\n");
}

static void put_replaces_and_post_adds(void **state)
{
	(void)state;
	assert_int_equal(ask("PUT", "/ftrace/set_ftrace_filter", "alpha beta\n"), 204);
	assert_int_equal(ask("POST", "/ftrace/set_ftrace_filter", "gamma"), 204);
	assert_int_equal(get("/ftrace/set_ftrace_filter"), 200);
	assert_string_equal(body, "alpha\nbeta\ngamma [libfake.so.1]\n");
	assert_int_equal(ask("PUT", "/ftrace/set_ftrace_filter", "beta_two"), 204);
	assert_int_equal(get("/ftrace/set_ftrace_filter"), 200);
	assert_string_equal(body, "beta_two\n");
	assert_int_equal(ask("PUT", "/ftrace/set_ftrace_filter", ""), 204);
	assert_int_equal(get("/ftrace/set_ftrace_filter"), 200);
	assert_non_null(strstr(body, "all functions enabled"));
	assert_int_equal(ask("PUT", "/ftrace/trace", ""), 204);
	assert_int_equal(fake.cleared, 1);
}

static void refusals_have_their_status_and_a_reason(void **state)
{
	(void)state;
	assert_int_equal(ask("PUT", "/ftrace/tracing_on", "x"), 400);
	assert_non_null(strstr(body, "'x'"));
	assert_int_equal(ask("PUT", "/ftrace/set_ftrace_filter", "nosuch"), 400);
	assert_int_equal(get("/ftrace/nosuch"), 404);
	assert_int_equal(get("/ftrace/trace/x"), 404);
	assert_int_equal(get("/ftrace/trace%00"), 404);
	assert_int_equal(get("/ftrace/../etc/passwd"), 404);
	assert_int_equal(get("/etc/passwd"), 404);
	assert_int_equal(get("/ftracetrace"), 404);
	assert_int_equal(ask("PUT", "/ftrace/nosuch", "1"), 404);
	assert_int_equal(ask("DELETE", "/ftrace/trace", ""), 405);
	assert_non_null(strstr(answer, "Allow: GET, HEAD, PUT, POST\r\n"));
	assert_int_equal(ask("PUT", "/ftrace/trace_pipe", "x"), 405);
	assert_non_null(strstr(answer, "Allow: GET, HEAD\r\n"));
	assert_int_equal(ask("PUT", "/ftrace/buffer_total_size_kb", "1"), 405);
	assert_int_equal(ask("PUT", "/ftrace/", "x"), 405);
	assert_int_equal(ask("OPTIONS", "/ftrace/trace", ""), 405);
}

static void head_tells_without_reading(void **state)
{
	(void)state;
	assert_int_equal(ask("HEAD", "/ftrace/tracing_enable/off", ""), 200);
	assert_string_equal(body, "");
	assert_int_equal(fake.values[GT_CONTROL_TRACING_ON], 1);
	assert_int_equal(ask("HEAD", "/ftrace/trace_pipe", ""), 200);
	assert_int_equal(ask("HEAD", "/ftrace/", ""), 200);
	assert_string_equal(body, "");
	assert_int_equal(ask("HEAD", "/ftrace/nosuch", ""), 404);
}

static void the_index_is_a_page_or_json(void **state)
{
	char head[256];

	(void)state;
	assert_int_equal(get("/ftrace/"), 200);
	assert_non_null(strstr(answer, "Content-Type: text/html"));
	assert_non_null(strstr(body, "a &lt;program&gt; &amp; &quot;more&quot;"));
	assert_non_null(strstr(body, "href=\"trace_pipe\""));
	assert_non_null(strstr(body, "href=\"options/\""));
	assert_int_equal(get("/ftrace/tracing_enable/"), 200);
	assert_null(strstr(body, "href=\"on\"")); /* following a link must be harmless */
	snprintf(head, sizeof(head),
		 "GET /ftrace/ HTTP/1.1\r\nHost: localhost:%u\r\nAccept: application/json\r\n",
		 port);
	assert_int_equal(ask_raw(head, ""), 200);
	assert_non_null(strstr(answer, "Content-Type: application/json"));
	assert_non_null(strstr(body, "\"target\":\"a <program> & \\\"more\\\"\""));
	assert_non_null(strstr(body, "{\"name\":\"trace_pipe\",\"directory\":false,\"read\":true,"
				     "\"write\":false"));
	assert_int_equal(get("/"), 301);
	assert_non_null(strstr(answer, "Location: /ftrace/\r\n"));
	assert_int_equal(get("/ftrace"), 301);
	assert_int_equal(get("/ftrace/options"), 301);
	assert_non_null(strstr(answer, "Location: /ftrace/options/\r\n"));
}

static void foreign_pages_are_refused(void **state)
{
	static const char *const bad[] = {
		"Host: evil.example:9090\r\n",
		"Host: localhost.evil.example\r\n",
		"Host: localhost\r\nOrigin: http://evil.example\r\n",
		"Host: localhost\r\nOrigin: null\r\n",
		"Host: localhost\r\nOrigin: http://localhost:3000\r\n",
		"Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
		"Host: localhost\r\nSec-Fetch-Site: same-site\r\n",
	};
	char head[512];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(head, sizeof(head), "GET /ftrace/tracing_enable/off HTTP/1.1\r\n%s",
			 bad[i]);
		assert_int_equal(ask_raw(head, ""), 403);
		snprintf(head, sizeof(head),
			 "PUT /ftrace/tracing_on HTTP/1.1\r\nContent-Length: 1\r\n%s", bad[i]);
		assert_int_equal(ask_raw(head, "0"), 403);
	}
	assert_int_equal(fake.values[GT_CONTROL_TRACING_ON], 1);
	snprintf(head, sizeof(head),
		 "GET /ftrace/tracing_on HTTP/1.1\r\nHost: localhost:%u\r\nOrigin: "
		 "http://localhost:%u\r\nSec-Fetch-Site: same-origin\r\n",
		 port, port);
	assert_int_equal(ask_raw(head, ""), 200);
	assert_int_equal(ask_raw("GET /ftrace/tracing_on HTTP/1.1\r\nHost: [::1]\r\n", ""), 200);
	assert_int_equal(ask_raw("GET /ftrace/tracing_on HTTP/1.0\r\n", ""), 200);
}

static void long_values_are_refused(void **state)
{
	static char value[70000];
	char head[256];
	int fd;

	(void)state;
	snprintf(head, sizeof(head),
		 "PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n");
	assert_int_equal(ask_raw(head, ""), 413);
	/* in chunks, without saying how long it will be */
	memset(value, '1', sizeof(value) - 1);
	fd = dial();
	say(fd, "PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
		"Transfer-Encoding: chunked\r\n\r\n");
	snprintf(head, sizeof(head), "%zx\r\n", strlen(value));
	say(fd, head);
	say(fd, value);
	say(fd, "\r\n0\r\n\r\n");
	assert_int_equal(hear(fd), 413);
	assert_int_equal(fake.values[GT_CONTROL_TRACING_ON], 1);
}

static void trace_pipe_has_one_reader_waits_and_ends(void **state)
{
	int fd = dial();
	char first[4096];
	size_t bytes = 0;

	(void)state;
	say(fd, "GET /ftrace/trace_pipe?follow HTTP/1.0\r\nHost: localhost\r\n\r\n");
	do {
		ssize_t got = recv(fd, first + bytes, sizeof(first) - 1 - bytes, 0);

		assert_true(got > 0);
		bytes += (size_t)got;
		first[bytes] = '\0';
	} while (strstr(first, FAKE_TRACE) == NULL);
	assert_int_equal(get("/ftrace/trace_pipe"), 409);
	assert_int_equal(get("/ftrace/trace"), 200);
	assert_string_equal(body, FAKE_TRACE);
	pthread_mutex_lock(&fake.lock);
	fake.pipe_ended = true;
	pthread_mutex_unlock(&fake.lock);
	assert_int_equal(recv(fd, first, sizeof(first), 0), 0);
	close(fd);
	assert_int_equal(get("/ftrace/trace_pipe"), 200);
}

static void a_vanished_reader_frees_trace_pipe(void **state)
{
	int fd = dial();
	char head[1024];
	int status;

	(void)state;
	say(fd, "GET /ftrace/trace_pipe?follow HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_true(recv(fd, head, sizeof(head), 0) > 0);
	close(fd);
	pthread_mutex_lock(&fake.lock);
	fake.pipe_ended = true;
	pthread_mutex_unlock(&fake.lock);
	do {
		status = get("/ftrace/trace_pipe");
	} while (status == 409);
	assert_int_equal(status, 200);
}

static void readers_that_stall_or_vanish_harm_nobody(void **state)
{
	int stalled[4];

	(void)state;
	pthread_mutex_lock(&fake.lock);
	fake.repeat = 1000000; /* 55 MB: no socket holds it */
	pthread_mutex_unlock(&fake.lock);
	for (int i = 0; i < 4; i++) {
		stalled[i] = dial();
		say(stalled[i], "GET /ftrace/trace HTTP/1.1\r\nHost: localhost\r\n\r\n");
	}
	assert_int_equal(get("/ftrace/tracing_on"), 200);
	for (int i = 0; i < 2; i++)
		close(stalled[i]);
	assert_int_equal(get("/ftrace/tracing_on"), 200);
	assert_int_equal(ask("PUT", "/ftrace/tracing_on", "0"), 204);
	for (int i = 2; i < 4; i++)
		close(stalled[i]);
}

static void a_long_file_arrives_whole(void **state)
{
	size_t length = strlen(FAKE_TRACE);
	char *at;

	(void)state;
	fake.repeat = 8000; /* several blocks */
	assert_int_equal(ask_raw("GET /ftrace/trace HTTP/1.0\r\nHost: localhost\r\n", ""), 200);
	assert_int_equal(strlen(body), length * fake.repeat);
	at = strstr(answer, "\r\n\r\n") + 4;
	for (size_t i = 0; i < fake.repeat; i++)
		assert_memory_equal(at + i * length, FAKE_TRACE, length);
}

static void a_request_that_comes_byte_by_byte_is_understood(void **state)
{
	const char *text = "GET /ftrace/current_tracer HTTP/1.1\r\nHost: localhost\r\n"
			   "Connection: close\r\n\r\n";
	int fd = dial();

	(void)state;
	for (size_t i = 0; i < strlen(text); i++)
		assert_int_equal(send(fd, text + i, 1, MSG_NOSIGNAL), 1);
	assert_int_equal(hear(fd), 200);
	assert_string_equal(body, "function_graph\n");
}

static void garbage_gets_an_error_and_nothing_else_happens(void **state)
{
	static const char *const garbage[] = {
		"\x16\x03\x01\x02",
		"GET\r\n\r\n",
		"GET /ftrace/trace HTTP/1.1\r\nContent-Length: -5\r\nHost: localhost\r\n\r\n",
		"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
		"chunked\r\n"
		"\r\nzzz\r\n",
		"GET /ftrace/%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
		"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
		"GET /ftrace/tracing_on HTTP/1.1\r\nConnection: close\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		int fd = dial();
		int status;

		say(fd, garbage[i]);
		shutdown(fd, SHUT_WR);
		status = hear(fd);
		assert_true(status == 0 || status >= 400);
	}
	assert_int_equal(get("/ftrace/tracing_on"), 200);
	assert_string_equal(body, "1\n");
}

static void connections_above_the_limit_wait_for_nobody(void **state)
{
	int idle[8];

	(void)state;
	for (int i = 0; i < 8; i++)
		idle[i] = dial();
	for (int i = 0; i < 8; i++)
		close(idle[i]);
	for (int status = 0; status != 200;) {
		const char *request = "GET /ftrace/tracing_on HTTP/1.0\r\n\r\n";
		int fd = dial();

		/* a server that has no place yet may have closed already */
		if (send(fd, request, strlen(request), MSG_NOSIGNAL) > 0)
			status = hear(fd);
		else
			close(fd);
	}
}

/* Twice as many as there may be in all, then one that asks: it is answered. */
static void requests_that_stay_half_sent_shut_nobody_out(void **state)
{
	static const char *const halves[] = {
		"GET /ftrace/trace HTTP/1.1\r\nHost: local",
		"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1",
		"",
	};
	int half[16];

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		for (int i = 0; i < 16; i++) {
			half[i] = dial();
			say(half[i], halves[round]);
		}
		assert_int_equal(get("/ftrace/tracing_on"), 200);
		assert_string_equal(body, "1\n");
		for (int i = 0; i < 16; i++)
			close(half[i]);
	}
}

static void a_request_has_to_be_whole_at_its_deadline(void **state)
{
	static const char *const halves[] = {
		"GET /ftrace/trace HTTP/1.1\r\nHost: localhost\r\nX: ",
		"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n"
		"\r\n",
	};
	const struct timespec moment = { 0, 20 * 1000 * 1000 };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		int fd = dial();

		say(fd, halves[i]);
		/* It is never idle, and the server ends it all the same: 60,000 bytes would do. */
		while (send(fd, "x", 1, MSG_NOSIGNAL) == 1)
			nanosleep(&moment, NULL);
		close(fd);
	}
	assert_int_equal(get("/ftrace/tracing_on"), 200);
	assert_string_equal(body, "1\n");
}

static void requests_that_could_be_read_in_two_ways_are_refused(void **state)
{
	static const char *const heads[] = {
		"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
		"Content-Length: 0\r\n",
		"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
		"Transfer-Encoding: chunked\r\n",
		"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n"
		"Content-Length: 1\r\n",
		"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
		"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		int fd = dial();

		say(fd, heads[i]);
		say(fd, "\r\n0GET /ftrace/trace HTTP/1.1\r\nHost: localhost\r\n\r\n");
		assert_int_equal(hear(fd), 400); /* and the connection ends there */
		assert_null(strstr(body, "HTTP/1.1"));
	}
	assert_int_equal(fake.values[GT_CONTROL_TRACING_ON], 1);
}

/* A Unix socket: its file, and who may connect. */
static int set_up_at_path(void **state)
{
	struct gt_http_options options = { .size = sizeof(options),
					   .address = "unix:test_http.sock" };
	struct gt_message message;

	(void)state;
	fake_control_init(&fake, GT_CONTROL_PROGRAM);
	return gt_http_open(&options, &server, &message) != 0 ||
	       gt_http_start(server, &fake.control, "program", &message) != 0;
}

static int dial_path(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = "test_http.sock" };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void a_unix_socket_is_its_owners_and_goes_with_the_server(void **state)
{
	struct gt_http_options options = { .size = sizeof(options),
					   .address = "unix:test_http.sock" };
	struct gt_http_server *other;
	struct gt_message message;
	struct stat status;
	int fd = dial_path();

	(void)state;
	say(fd, "GET /ftrace/tracing_on HTTP/1.0\r\nHost: localhost\r\n\r\n");
	assert_int_equal(hear(fd), 200);
	assert_int_equal(stat("test_http.sock", &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(gt_http_open(&options, &other, &message), GT_EBUSY);
	gt_http_close(server, 0);
	assert_int_not_equal(stat("test_http.sock", &status), 0);
	/* One that was left behind is replaced; a file is not. */
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd,
			      (void *)&(struct sockaddr_un){ .sun_family = AF_UNIX,
							     .sun_path = "test_http.sock" },
			      sizeof(struct sockaddr_un)),
			 0);
	close(fd);
	assert_int_equal(gt_http_open(&options, &other, &message), 0);
	gt_http_close(other, 0);
	close(open("test_http.sock", O_WRONLY | O_CREAT, 0600));
	assert_int_equal(gt_http_open(&options, &other, &message), GT_EBUSY);
	assert_int_equal(unlink("test_http.sock"), 0);
	assert_int_equal(set_up_at_path(NULL), 0);
}

/* A token, for those who need one; the test's own user does not. */
static void a_token_stays_in_the_links_of_its_page(void **state)
{
	struct gt_http_options options = { .size = sizeof(options),
					   .address = "127.0.0.1:0",
					   .token_file = "test_http.token" };
	struct gt_message message;
	char token[128] = "", path[200], link[200];
	FILE *file;

	(void)state;
	gt_http_close(server, 0);
	unlink("test_http.token");
	assert_int_equal(gt_http_open(&options, &server, &message), 0);
	assert_int_equal(gt_http_start(server, &fake.control, "program", &message), 0);
	port = (unsigned)atoi(strrchr(gt_http_address(server), ':') + 1);
	file = fopen("test_http.token", "r");
	assert_non_null(fgets(token, sizeof(token), file));
	fclose(file);
	token[strcspn(token, "\n")] = '\0';
	assert_int_equal(strlen(token), 48);
	snprintf(path, sizeof(path), "/ftrace/?token=%s", token);
	assert_int_equal(get(path), 200);
	snprintf(link, sizeof(link), "href=\"options/?token=%s\"", token);
	assert_non_null(strstr(body, link));
	snprintf(path, sizeof(path), "/ftrace/options?token=%s", token);
	assert_int_equal(get(path), 301);
	assert_non_null(strstr(answer, token));
	assert_int_equal(get("/ftrace/?token=0123456789abcdef0123"), 200);
	assert_null(strstr(answer, "0123456789abcdef0123"));
	chmod("test_http.token", 0640);
	assert_int_equal(gt_http_open(&options, &server, &message), GT_EPERM);
	unlink("test_http.token");
}

static void what_says_who_is_served_must_make_sense(void **state)
{
	struct gt_http_options options = { .size = sizeof(options), .address = "127.0.0.1:0" };
	static const char *const tokens[] = { "short\n", "no token, but a sentence\n", "" };
	struct gt_http_server *other;
	struct gt_message message;

	(void)state;
	options.allow_users = "root,no-such-user";
	assert_int_equal(gt_http_open(&options, &other, &message), GT_EINVAL);
	assert_non_null(strstr(message.text, "no-such-user"));
	options.allow_users = "root,12345,all";
	assert_int_equal(gt_http_open(&options, &other, &message), 0);
	gt_http_close(other, 0);
	options.token_file = "test_http.bad";
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
		int fd = open("test_http.bad", O_WRONLY | O_CREAT | O_TRUNC, 0600);

		assert_int_equal(write(fd, tokens[i], strlen(tokens[i])), strlen(tokens[i]));
		close(fd);
		assert_int_equal(gt_http_open(&options, &other, &message), GT_EINVAL);
		assert_null(strstr(message.text, "sentence"));
	}
	unlink("test_http.bad");
}

static void options_that_are_too_short_are_refused(void **state)
{
	struct gt_http_options options = { .size = sizeof(options), .address = "127.0.0.1:0" };
	struct gt_http_server *other;
	struct gt_message message = { "" };

	(void)state;
	options.size--;
	assert_int_equal(gt_http_open(&options, &other, &message), GT_EINVAL);
	assert_string_not_equal(message.text, "");
	options.size += 2;
	assert_int_equal(gt_http_open(&options, &other, &message), 0);
	gt_http_close(other, 0);
}

static void a_target_that_fails_says_so(void **state)
{
	(void)state;
	fake.control.kind = GT_CONTROL_RECORDING;
	assert_int_equal(get("/ftrace/trace"), 200);
	assert_int_equal(get("/ftrace/trace_pipe"), 404);
	assert_int_equal(ask("PUT", "/ftrace/current_tracer", "nop"), 405);
	assert_non_null(strstr(body, "recording"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_are_read_and_written),
		TEST(put_replaces_and_post_adds),
		TEST(refusals_have_their_status_and_a_reason),
		TEST(head_tells_without_reading),
		TEST(the_index_is_a_page_or_json),
		TEST(foreign_pages_are_refused),
		TEST(long_values_are_refused),
		TEST(trace_pipe_has_one_reader_waits_and_ends),
		TEST(a_vanished_reader_frees_trace_pipe),
		TEST(readers_that_stall_or_vanish_harm_nobody),
		TEST(a_long_file_arrives_whole),
		TEST(a_request_that_comes_byte_by_byte_is_understood),
		TEST(garbage_gets_an_error_and_nothing_else_happens),
		TEST(connections_above_the_limit_wait_for_nobody),
		TEST(requests_that_stay_half_sent_shut_nobody_out),
		TEST(a_request_has_to_be_whole_at_its_deadline),
		TEST(requests_that_could_be_read_in_two_ways_are_refused),
		cmocka_unit_test_setup_teardown(
			a_unix_socket_is_its_owners_and_goes_with_the_server, set_up_at_path,
			tear_down),
		TEST(a_token_stays_in_the_links_of_its_page),
		TEST(what_says_who_is_served_must_make_sense),
		TEST(options_that_are_too_short_are_refused),
		TEST(a_target_that_fails_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
