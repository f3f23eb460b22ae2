/* SPDX-License-Identifier: MIT */
/* attach/process/credentials.c: who may do more than another. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/process/credentials.h"

#define ALL "000001ffffffffff"

/* Text of /proc/PID/status, as far as it is read. */
static struct gt_credentials made(const char *uids, const char *gids, const char *groups,
				  const char *capabilities)
{
	struct gt_credentials credentials;
	char text[1024];

	snprintf(text, sizeof(text),
		 "Name:\tx\nUid:\t%s\nGid:\t%s\nFDSize:\t64\nGroups:\t%s \n"
		 "CapInh:\t0000000000000000\nCapPrm:\t%s\n",
		 uids, gids, groups, capabilities);
	assert_true(gt_credentials_parse(text, &credentials));
	return credentials;
}

static const char *beyond(struct gt_credentials first, struct gt_credentials other)
{
	const char *why = gt_credentials_beyond(&first, &other);

	gt_credentials_free(&first);
	gt_credentials_free(&other);
	return why;
}

static struct gt_credentials root(void)
{
	return made("0\t0\t0\t0", "0\t0\t0\t0", "0 1 2", ALL);
}

static struct gt_credentials user(void)
{
	return made("1000\t1000\t1000\t1000", "100\t100\t100\t100", "24 100", "0");
}

static void who_is_the_same_or_less_may_be_recorded_together(void **state)
{
	(void)state;
	assert_null(beyond(root(), root()));
	assert_null(beyond(user(), user()));
	assert_null(beyond(root(), user()));
	assert_null(beyond(user(), made("1000\t1000\t1000\t1000", "100\t100\t100\t100", "", "0")));
	assert_null(beyond(root(), made("33\t33\t0\t33", "33\t33\t33\t33", "33", "0")));
}

static void who_may_do_more_may_not(void **state)
{
	struct gt_credentials other = user();

	(void)state;
	assert_non_null(beyond(user(), root()));
	assert_non_null(beyond(user(), made("1000\t0\t0\t0", "100\t100\t100\t100", "100", "0")));
	assert_non_null(beyond(user(), made("1000\t1000\t1000\t1000", "100\t5\t5\t5", "100", "0")));
	assert_non_null(beyond(
		user(), made("1000\t1000\t1000\t1000", "100\t100\t100\t100", "100 27", "0")));
	assert_non_null(beyond(user(), made("1000\t1000\t1000\t1000", "100\t100\t100\t100", "100",
					    "0000000000000400")));
	assert_non_null(beyond(root(), made("0\t0\t0\t0", "0\t0\t0\t0", "", "000003ffffffffff")));
	other.secure = true; /* given rights by what it executed, though the numbers are the same */
	assert_non_null(beyond(user(), other));
	other = user();
	other.secure = true;
	assert_non_null(beyond(root(), other));
}

static void a_user_namespace_of_its_own_adds_nothing(void **state)
{
	struct gt_credentials first = user();
	struct gt_credentials other =
		made("1000\t1000\t1000\t1000", "100\t100\t100\t100", "100", ALL);

	(void)state;
	first.user_namespace = 1;
	other.user_namespace = 2;
	assert_null(beyond(first, other));
}

static void what_is_no_status_is_not_taken_for_one(void **state)
{
	const char *text = "Uid:\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t1";
	struct gt_credentials credentials;

	(void)state;
	assert_false(gt_credentials_parse("", &credentials));
	gt_credentials_free(&credentials);
	assert_false(gt_credentials_parse(text, &credentials));
	gt_credentials_free(&credentials);
}

static void one_reads_ones_own(void **state)
{
	struct gt_credentials credentials;

	(void)state;
	assert_int_equal(gt_credentials_read(getpid(), &credentials), 0);
	assert_int_equal(credentials.uids[0], getuid());
	assert_int_equal(credentials.gids[1], getegid());
	assert_true(credentials.user_namespace != 0);
	assert_false(credentials.secure);
	gt_credentials_free(&credentials);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_the_same_or_less_may_be_recorded_together),
		cmocka_unit_test(who_may_do_more_may_not),
		cmocka_unit_test(a_user_namespace_of_its_own_adds_nothing),
		cmocka_unit_test(what_is_no_status_is_not_taken_for_one),
		cmocka_unit_test(one_reads_ones_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
