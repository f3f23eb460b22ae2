/* SPDX-License-Identifier: MIT */
/* Addresses to listen on: what is understood, what is refused and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "serve/address.h"

/* A name that is longer than any address. */
#define LONG "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1"

static struct gt_message message;

static void is(const char *text, const char *host, unsigned port)
{
	struct gt_address address;

	assert_int_equal(gt_address_parse(text, &address, &message), 0);
	assert_string_equal(address.host, host);
	assert_int_equal(address.port, port);
}

static void what_is_left_out_is_the_default(void **state)
{
	struct gt_address address;

	(void)state;
	is("127.0.0.1:9090", "127.0.0.1", 9090);
	is("8080", "127.0.0.1", 8080);
	is(":8080", "127.0.0.1", 8080);
	is("0.0.0.0", "0.0.0.0", 9090);
	is("localhost:0", "localhost", 0);
	is("[::1]", "::1", 9090);
	is("[::1]:65535", "::1", 65535);
	is("", "127.0.0.1", 9090);
	assert_int_equal(gt_address_parse("unix:a/b:1", &address, &message), 0);
	assert_string_equal(address.path, "a/b:1");
}

static void what_is_no_address_is_refused_with_an_example(void **state)
{
	static const char *const bad[] = {
		"a:b:c",	 "::1",	 "127.0.0.1:", "127.0.0.1:x",	 ":65536", ":-1",
		"[::1",		 "[]:1", "[::1]90",    "[::1]:",	 ":0x50",  ":999999",
		"localhost:90 ", LONG,	 "unix:",      "unix:" LONG LONG
	};
	struct gt_address address;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(gt_address_parse(bad[i], &address, &message), GT_EINVAL);
		assert_non_null(strstr(message.text, "127.0.0.1:9090"));
	}
}

static void a_port_in_use_is_said_in_words(void **state)
{
	struct gt_address address;
	char bound[GT_ADDRESS_BYTES + 8];
	char again[GT_ADDRESS_BYTES + 8];
	bool any;
	int fd;

	(void)state;
	assert_int_equal(gt_address_parse("127.0.0.1:0", &address, &message), 0);
	fd = gt_address_listen(&address, false, bound, &any, &message);
	assert_true(fd >= 0);
	assert_false(any);
	assert_int_equal(strncmp(bound, "127.0.0.1:", 10), 0);
	assert_int_equal(gt_address_parse(bound, &address, &message), 0);
	assert_true(address.port != 0);
	assert_int_equal(gt_address_listen(&address, false, again, &any, &message), GT_EBUSY);
	assert_non_null(strstr(message.text, "in use"));
	close(fd);
}

static void an_address_of_another_machine_is_refused(void **state)
{
	struct gt_address address;
	char bound[GT_ADDRESS_BYTES + 8];
	bool any;

	(void)state;
	assert_int_equal(gt_address_parse("192.0.2.1:0", &address, &message), 0);
	assert_int_equal(gt_address_listen(&address, false, bound, &any, &message), GT_EINVAL);
	assert_non_null(strstr(message.text, "192.0.2.1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_out_is_the_default),
		cmocka_unit_test(what_is_no_address_is_refused_with_an_example),
		cmocka_unit_test(a_port_in_use_is_said_in_words),
		cmocka_unit_test(an_address_of_another_machine_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
