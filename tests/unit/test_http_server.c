/* SPDX-License-Identifier: MIT */
/* A kernel's HTTP server, fed and asked: however the bytes are cut, the answers are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/http/http_server.h"
#include "tests/unit/fake_control.h"

#define OTHERS "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: "

static struct fake_control fake;
static struct gt_http_connection connection;
static char sent[1 << 20];
static size_t sent_bytes;

static int set_up(void **state)
{
	(void)state;
	fake_control_init(&fake, GT_CONTROL_KERNEL);
	memset(&connection, 0x5a, sizeof(connection)); /* of any contents */
	gt_http_begin(&connection, &fake.control);
	sent_bytes = 0;
	memset(sent, 0, sizeof(sent));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	gt_http_end(&connection);
	return fake.opened;
}

/* Asks until there is nothing to send: why it ended. */
static int64_t ask(void)
{
	const char *bytes;
	int64_t got;
	while ((got = gt_http_ask(&connection, &bytes)) > 0) {
		assert_true(sent_bytes + (size_t)got < sizeof(sent));
		memcpy(sent + sent_bytes, bytes, (size_t)got);
		sent_bytes += (size_t)got;
	}
	sent[sent_bytes] = '\0';
	return got;
}

/* Feeds a text in pieces and asks after each. */
static int64_t say(const char *text, size_t piece)
{
	size_t left = strlen(text);
	int64_t ended = ask();
	while (left > 0 && ended != GT_EGONE) {
		size_t given = left < piece ? left : piece;
		size_t taken = gt_http_feed(&connection, text, given);
		assert_true(taken <= given);
		text += taken;
		left -= taken;
		ended = ask();
		assert_true(taken > 0 || ended == GT_EGONE);
	}
	return ended;
}

static void the_answers_do_not_depend_on_how_the_bytes_are_cut(void **state)
{
	static const char words[] =
		"GET /ftrace/current_tracer HTTP/1.1\r\nHost: localhost\r\n\r\n"
		"PUT /ftrace/current_tracer HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
		"3\r\n\r\nnop"
		"GET /ftrace/current_tracer HTTP/1.1\r\nHost: localhost\r\n\r\n"
		"GET /ftrace/nosuch HTTP/1.1\r\nHost: localhost\r\n\r\n"
		"GET /ftrace/trace HTTP/1.1\r\nHost: localhost\r\n\r\n"
		"HEAD /ftrace/trace HTTP/1.1\r\nHost: localhost\r\n\r\n"
		"GET /ftrace/ HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"
		"GET /ftrace/tracing_on HTTP/1.0\r\nHost: localhost\r\n\r\n";
	static char first[sizeof(sent)];
	assert_int_equal(say(words, sizeof(words)), GT_EGONE);
	memcpy(first, sent, sizeof(first));
	assert_non_null(strstr(first, "\r\n\r\n4\r\nnop\n\r\n0\r\n\r\nHTTP/1.1 404 Not Found\r\n"));
	assert_non_null(strstr(first, FAKE_TRACE));
	assert_non_null(strstr(first, "{\"name\":\"tracing_on\",\"directory\":false"));
	for (size_t piece = 1; piece < 50; piece++) {
		gt_http_end(&connection);
		set_up(state);
		assert_int_equal(say(words, piece), GT_EGONE);
		assert_string_equal(sent, first);
	}
}

static void what_is_not_whole_is_waited_for(void **state)
{
	(void)state;
	assert_int_equal(say("GET /ftrace/tracing_on HTTP/1.1\r\nHost: loc", 100), 0);
	assert_int_equal(sent_bytes, 0);
	assert_int_equal(say("alhost\r\n\r\n", 100), 0);
	assert_non_null(strstr(sent, "200 OK"));
	sent_bytes = 0;
	assert_int_equal(say("POST /ftrace/trace_marker HTTP/1.1\r\nHost: localhost\r\n"
			     "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
			     1000),
			 0);
	assert_string_equal(sent, "HTTP/1.1 100 Continue\r\n\r\n");
	assert_int_equal(say("abcd", 100), 0);
	assert_int_equal(fake.marks, 0);
	assert_int_equal(say("e", 100), 0);
	assert_int_equal(fake.marks, 1);
	assert_non_null(strstr(sent, "204 No Content"));
}

/* While an answer is under way, what follows waits in the connection, as much as there is room for. */
static void what_follows_is_taken_as_far_as_there_is_room(void **state)
{
	static const char request[] = "GET /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\n\r\n";
	size_t bytes = sizeof(request) - 1, fed = 0, answers = 0;
	(void)state;
	for (;;) {
		size_t taken = gt_http_feed(&connection, request, bytes);
		fed++;
		if (taken < bytes) {
			assert_int_equal(gt_http_feed(&connection, request + taken, bytes - taken),
					 0);
			assert_int_equal(ask(), 0);
			assert_int_equal(gt_http_feed(&connection, request + taken, bytes - taken),
					 bytes - taken);
			break;
		}
	}
	assert_int_equal(ask(), 0);
	for (const char *at = sent; (at = strstr(at, "HTTP/1.1 200 OK")) != NULL; at++)
		answers++;
	assert_int_equal(answers, fed);
	assert_true(fed > 100);
}

static void a_pipe_that_follows_has_nothing_yet_and_goes_on(void **state)
{
	(void)state;
	assert_int_equal(
		say("GET /ftrace/trace_pipe?follow HTTP/1.1\r\nHost: localhost\r\n\r\n", 100),
		GT_EAGAIN);
	assert_non_null(strstr(sent, FAKE_TRACE));
	assert_int_equal(ask(), GT_EAGAIN);
	fake.pipe_at = 0; /* more of it */
	sent_bytes = 0;
	assert_int_equal(ask(), GT_EAGAIN);
	assert_non_null(strstr(sent, FAKE_TRACE));
	assert_int_equal(fake.opened, 1);
	fake.pipe_ended = true;
	sent_bytes = 0;
	while (ask() == GT_EAGAIN)
		;
	assert_string_equal(sent, "0\r\n\r\n");
	assert_int_equal(fake.opened, 0);
	assert_int_equal(ask(), 0); /* the next request */
}

static void a_pipe_that_is_left_is_closed(void **state)
{
	(void)state;
	assert_int_equal(
		say("GET /ftrace/trace_pipe?follow HTTP/1.1\r\nHost: localhost\r\n\r\n", 100),
		GT_EAGAIN);
	gt_http_end(&connection);
	assert_int_equal(fake.opened, 0);
	assert_false(fake.pipe_busy);
}

static void what_is_refused_ends_the_connection(void **state)
{
	static const struct {
		const char *request, *begins;
	} cases[] = {
		{ "nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n" OTHERS "close\r\n" },
		{ "GET /ftrace/trace HTTP/3.0\r\n\r\n", "HTTP/1.1 505 " },
		{ "GET /ftrace/trace HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 403 " },
		{ "PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
		  "99999\r\n\r\n",
		  "HTTP/1.1 413 " },
		{ "PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\n"
		  "Transfer-Encoding: chunked\r\n\r\n",
		  "HTTP/1.1 411 " },
		{ "PUT /ftrace/nosuch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n1",
		  "HTTP/1.1 404 " },
		{ "BREW /ftrace/trace HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405 " },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		gt_http_end(&connection);
		set_up(state);
		assert_int_equal(say(cases[i].request, 1000), GT_EGONE);
		assert_memory_equal(sent, cases[i].begins, strlen(cases[i].begins));
		assert_non_null(strstr(sent, "Connection: close\r\n"));
	}
}

static void a_head_without_end_is_refused(void **state)
{
	static char endless[GT_HTTP_HEAD_BYTES + 100];
	(void)state;
	memset(endless, 'a', sizeof(endless) - 1);
	memcpy(endless, "GET /ftrace/", 12);
	assert_int_equal(say(endless, 1000), GT_EGONE);
	assert_memory_equal(sent, "HTTP/1.1 431 ", 13);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_answers_do_not_depend_on_how_the_bytes_are_cut),
		TEST(what_is_not_whole_is_waited_for),
		TEST(what_follows_is_taken_as_far_as_there_is_room),
		TEST(a_pipe_that_follows_has_nothing_yet_and_goes_on),
		TEST(a_pipe_that_is_left_is_closed),
		TEST(what_is_refused_ends_the_connection),
		TEST(a_head_without_end_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
