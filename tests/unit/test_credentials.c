/* SPDX-License-Identifier: MIT */
/* attach/process/credentials.c: who may do the same as another; pid_namespace.c: what a thread calls itself. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/process/credentials.h"
#include "attach/process/pid_namespace.h"

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

static bool same(struct gt_credentials first, struct gt_credentials other)
{
	const bool is_same = gt_credentials_are_equal(&first, &other);

	assert_int_equal(gt_credentials_are_equal(&other, &first), is_same);
	gt_credentials_free(&first);
	gt_credentials_free(&other);
	return is_same;
}

static struct gt_credentials root(void)
{
	return made("0\t0\t0\t0", "0\t0\t0\t0", "0 1 2", ALL);
}

static struct gt_credentials user(void)
{
	return made("1000\t1000\t1000\t1000", "100\t100\t100\t100", "24 100", "0");
}

static void who_may_do_the_same_is_the_same(void **state)
{
	(void)state;
	assert_true(same(root(), root()));
	assert_true(same(user(), user()));
	/* the groups' order, and which of the numbers one has */
	assert_true(
		same(user(), made("1000\t1000\t1000\t1000", "100\t100\t100\t100", "100 24", "0")));
	assert_true(same(made("1000\t33\t33\t33", "100\t100\t100\t100", "100", "0"),
			 made("33\t1000\t33\t1000", "100\t100\t100\t100", "100", "0")));
}

static void who_may_take_other_users_is_all_of_them(void **state)
{
	(void)state;
	assert_true(same(root(), made("0\t33\t0\t33", "0\t33\t0\t33", "33", ALL)));
	/* CAP_SETUID alone does not give groups, CAP_SETGID no users */
	assert_true(same(made("0\t0\t0\t0", "7\t7\t7\t7", "7", "0000000000000080"),
			 made("5\t5\t5\t5", "7\t7\t7\t7", "7", "0000000000000080")));
	assert_false(same(made("0\t0\t0\t0", "7\t7\t7\t7", "7", "0000000000000080"),
			  made("0\t0\t0\t0", "8\t8\t8\t8", "8", "0000000000000080")));
	assert_false(same(made("0\t0\t0\t0", "7\t7\t7\t7", "7", "0000000000000040"),
			  made("5\t5\t5\t5", "7\t7\t7\t7", "7", "0000000000000040")));
}

static void who_may_do_more_or_less_is_another(void **state)
{
	struct gt_credentials other = user();

	(void)state;
	assert_false(same(user(), root()));
	assert_false(same(root(), made("33\t33\t33\t33", "33\t33\t33\t33", "33", "0")));
	assert_false(same(user(), made("1000\t0\t0\t0", "100\t100\t100\t100", "24 100", "0")));
	assert_false(same(user(), made("1000\t1000\t1000\t1000", "100\t5\t5\t5", "24 100", "0")));
	assert_false(
		same(user(), made("1000\t1000\t1000\t1000", "100\t100\t100\t100", "100", "0")));
	assert_false(same(user(),
			  made("1000\t1000\t1000\t1000", "100\t100\t100\t100", "24 100 27", "0")));
	assert_false(same(user(), made("1000\t1000\t1000\t1000", "100\t100\t100\t100", "24 100",
				       "0000000000000400")));
	assert_false(same(root(), made("0\t0\t0\t0", "0\t0\t0\t0", "", "000003ffffffffff")));
	other.secure = true; /* given rights by what it executed, though the numbers are the same */
	assert_false(same(user(), other));
}

static void a_user_namespace_of_its_own_is_another(void **state)
{
	struct gt_credentials first = root(), other = root();

	(void)state;
	first.user_namespace = 1;
	other.user_namespace = 2;
	assert_false(same(first, other));
}

static void a_pid_namespace_of_its_own_is_another(void **state)
{
	struct gt_credentials first = root(), other = root();

	(void)state;
	first.pid_namespace = 1;
	other.pid_namespace = 2;
	assert_false(same(first, other));
	first = root();
	other = root();
	first.pid_namespace = 1;
	assert_true(same(first, other)); /* it cannot be seen */
}

static void the_number_inside_is_that_of_the_innermost_namespace(void **state)
{
	(void)state;
	assert_int_equal(gt_pid_inside_of_status("Name:\tx\nNSpid:\t4711\t12\t3\nNSpgid:\t9\n"), 3);
	assert_int_equal(gt_pid_inside_of_status("Name:\tx\nNSpid:\t4711\nNSpgid:\t9\n"), 4711);
	assert_int_equal(gt_pid_inside_of_status("Name:\tx\nNSpid:\t4711\t12"), 12);
	assert_int_equal(gt_pid_inside_of_status("Name:\tx\nNSpid:\n"), 0);
	assert_int_equal(gt_pid_inside_of_status("Name:\tx\n"), 0);
	assert_int_equal(gt_pid_inside(getpid(), getpid()), getpid());
}

static int running[2]; /* a pipe: it ends with it */
static pid_t its_tid;

static void *wait_for_end(void *unused)
{
	char byte;

	__atomic_store_n(&its_tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return read(running[0], &byte, 1) == 0 ? unused : NULL;
}

static void threads_are_found_while_they_live(void **state)
{
	struct gt_pid_map map = { 0 };
	pthread_t thread;
	pid_t tid;

	(void)state;
	assert_int_equal(pipe(running), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_end, NULL), 0);
	while ((tid = __atomic_load_n(&its_tid, __ATOMIC_ACQUIRE)) == 0)
		usleep(1000);
	assert_int_equal(gt_pid_map_find(&map, getpid(), getpid()), 0);
	gt_pid_map_fill(&map, getpid());
	assert_int_equal(gt_pid_map_find(&map, getpid(), getpid()), getpid());
	assert_int_equal(gt_pid_map_find(&map, getpid(), tid), tid);
	close(running[1]);
	pthread_join(thread, NULL);
	close(running[0]);
	while (gt_pid_inside(getpid(), tid) != 0)
		usleep(1000); /* the kernel takes it out a little later */
	assert_int_equal(gt_pid_map_find(&map, getpid(), tid), 0);
	gt_pid_map_fill(&map, getpid());
	assert_int_equal(gt_pid_map_find(&map, getpid(), getpid()), getpid());
	gt_pid_map_free(&map);
}

static void a_user_namespace_that_cannot_be_seen_is_no_other(void **state)
{
	struct gt_credentials first = root(), other = root();

	(void)state;
	first.user_namespace = 1;
	other.user_namespace = 0;
	assert_true(same(first, other));
	first = root();
	other = root();
	first.user_namespace = 1;
	other.uids[0] = other.uids[1] = other.uids[2] = other.uids[3] = 5;
	other.capabilities = 0;
	assert_false(same(first, other));
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
		cmocka_unit_test(who_may_do_the_same_is_the_same),
		cmocka_unit_test(who_may_take_other_users_is_all_of_them),
		cmocka_unit_test(who_may_do_more_or_less_is_another),
		cmocka_unit_test(a_user_namespace_of_its_own_is_another),
		cmocka_unit_test(a_user_namespace_that_cannot_be_seen_is_no_other),
		cmocka_unit_test(a_pid_namespace_of_its_own_is_another),
		cmocka_unit_test(the_number_inside_is_that_of_the_innermost_namespace),
		cmocka_unit_test(threads_are_found_while_they_live),
		cmocka_unit_test(what_is_no_status_is_not_taken_for_one),
		cmocka_unit_test(one_reads_ones_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
