/* SPDX-License-Identifier: MIT */
/* Request heads: what is taken, what is refused, and whose hosts and origins pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/http/http_request.h"

static struct gt_http_request request;
static struct gt_message message;

static int parse(const char *text)
{
	return gt_http_request_parse(&request, text, strlen(text), &message);
}

static bool text_is(struct gt_http_text text, const char *expected)
{
	return text.text != NULL && text.bytes == strlen(expected) &&
	       memcmp(text.text, expected, text.bytes) == 0;
}

static void a_whole_request_is_taken_apart(void **state)
{
	const char *text = "PUT /ftrace/set%5Fx?a=b&c HTTP/1.1\r\nhost: localhost:9090\r\n"
			   "ORIGIN:http://localhost:9090 \r\nAccept: application/json\r\n"
			   "Content-Length: 12\r\nExpect: 100-continue\r\nX-Other: y\r\n\r\nbody";

	(void)state;
	assert_int_equal(parse(text), 0);
	assert_int_equal(request.method, GT_HTTP_PUT);
	assert_int_equal(request.minor, 1);
	assert_string_equal(request.path, "/ftrace/set_x");
	assert_int_equal(request.path_bytes, 13);
	assert_true(text_is(request.query, "a=b&c"));
	assert_true(text_is(request.host, "localhost:9090"));
	assert_true(text_is(request.origin, "http://localhost:9090"));
	assert_true(text_is(request.accept, "application/json"));
	assert_null(request.fetch_site.text);
	assert_int_equal(request.content_length, 12);
	assert_true(request.expects_continue);
	assert_true(request.keep_alive);
	assert_string_equal(text + request.head_bytes, "body");
}

static void every_cut_asks_for_more(void **state)
{
	const char *text = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

	(void)state;
	for (size_t bytes = 0; bytes < strlen(text); bytes++)
		assert_int_equal(gt_http_request_parse(&request, text, bytes, &message), GT_EAGAIN);
	assert_int_equal(parse(text), 0);
}

static void methods_and_versions_are_told_apart(void **state)
{
	(void)state;
	assert_int_equal(parse("GET / HTTP/1.0\r\n\r\n"), 0);
	assert_int_equal(request.method, GT_HTTP_GET);
	assert_false(request.keep_alive);
	assert_int_equal(parse("HEAD / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), 0);
	assert_int_equal(request.method, GT_HTTP_HEAD);
	assert_true(request.keep_alive);
	assert_int_equal(parse("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), 0);
	assert_int_equal(request.method, GT_HTTP_POST);
	assert_false(request.keep_alive);
	assert_int_equal(parse("DELETE / HTTP/1.0\r\n\r\n"), 0);
	assert_int_equal(request.method, GT_HTTP_OTHER);
	assert_int_equal(parse("get / HTTP/1.0\r\n\r\n"), 0);
	assert_int_equal(request.method, GT_HTTP_OTHER);
	assert_int_equal(parse("GET / HTTP/2.0\r\n\r\n"), GT_ENOTSUP);
	assert_int_equal(parse("GET / HTTP/1.10\r\n\r\n"), GT_EINVAL);
	assert_int_equal(parse("GET /\r\n\r\n"), GT_EINVAL);
}

static void what_two_programs_could_read_differently_is_refused(void **state)
{
	static const char *const bad[] = {
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\nHost: a\n\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
		"PUT / HTTP/1.0\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
		"PUT / HTTP/1.0\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"PUT / HTTP/1.0\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"PUT / HTTP/1.0\r\nContent-Length: -1\r\n\r\n",
		"PUT / HTTP/1.0\r\nContent-Length: 1 2\r\n\r\n",
		"PUT / HTTP/1.0\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"GET /%00 HTTP/1.0\r\n\r\n",
		"GET /%4 HTTP/1.0\r\n\r\n",
		"GET /%zz HTTP/1.0\r\n\r\n",
		"GET /a/../b HTTP/1.0\r\n\r\n",
		"GET /a/%2e%2e HTTP/1.0\r\n\r\n",
		"GET /./a HTTP/1.0\r\n\r\n",
		"GET /a\\b HTTP/1.0\r\n\r\n",
		"GET a HTTP/1.0\r\n\r\n",
		"GET http://a/ HTTP/1.0\r\n\r\n",
		"GET  / HTTP/1.0\r\n\r\n",
		" / HTTP/1.0\r\n\r\n",
		"\r\n\r\n",
		"\x16\x03\x01\x02\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse(bad[i]), GT_EINVAL);
		assert_non_null(strstr(message.text, "at byte"));
	}
	assert_int_equal(gt_http_request_parse(&request, "GET /\0 HTTP/1.0\r\n\r\n", 19, &message),
			 GT_EINVAL);
}

static void long_heads_and_paths_are_refused(void **state)
{
	static char text[GT_HTTP_HEAD_BYTES + 100];

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "GET /", 5);
	assert_int_equal(gt_http_request_parse(&request, text, GT_HTTP_HEAD_BYTES - 1, &message),
			 GT_EAGAIN);
	assert_int_equal(gt_http_request_parse(&request, text, sizeof(text), &message), GT_ENOSPC);
	memcpy(text + 5 + GT_HTTP_PATH_BYTES, " HTTP/1.0\r\n\r\n", 14);
	assert_int_equal(parse(text), GT_ENOSPC);
}

static bool allowed(const char *host, bool any)
{
	return gt_http_host_is_allowed(host, strlen(host), "10.0.2.15:9090", any);
}

static void only_the_machines_own_names_are_hosts(void **state)
{
	(void)state;
	assert_true(allowed("localhost", false));
	assert_true(allowed("LocalHost:9090", false));
	assert_true(allowed("127.0.0.1:1", false));
	assert_true(allowed("[::1]", false));
	assert_true(allowed("[::1]:9090", false));
	assert_true(allowed("10.0.2.15:9090", false));
	assert_false(allowed("10.0.2.15:80", false));
	assert_false(allowed("", false));
	assert_false(allowed("localhost.evil.example", false));
	assert_false(allowed("evil.example:9090", true));
	assert_false(allowed("localhost:", false));
	assert_false(allowed("localhost:9090x", false));
	assert_false(allowed("127.0.0.1.evil.example", true));
	assert_false(allowed("[::1", true));
	assert_true(allowed("192.168.7.9:9090", true));
	assert_true(allowed("[fe80::1]:9090", true));
	assert_false(allowed("192.168.7.9:9090", false));
}

static bool own(const char *origin, const char *host)
{
	return gt_http_origin_is_own(origin, strlen(origin), host, strlen(host));
}

static void only_the_servers_own_page_is_an_origin(void **state)
{
	(void)state;
	assert_true(own("http://localhost:9090", "localhost:9090"));
	assert_false(own("http://localhost:3000", "localhost:9090"));
	assert_false(own("https://localhost:9090", "localhost:9090"));
	assert_false(own("http://evil.example", "localhost:9090"));
	assert_false(own("null", "localhost:9090"));
	assert_false(own("", "localhost:9090"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_request_is_taken_apart),
		cmocka_unit_test(every_cut_asks_for_more),
		cmocka_unit_test(methods_and_versions_are_told_apart),
		cmocka_unit_test(what_two_programs_could_read_differently_is_refused),
		cmocka_unit_test(long_heads_and_paths_are_refused),
		cmocka_unit_test(only_the_machines_own_names_are_hosts),
		cmocka_unit_test(only_the_servers_own_page_is_an_origin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
