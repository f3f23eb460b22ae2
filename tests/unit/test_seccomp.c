/* SPDX-License-Identifier: MIT */
/*
 * attach/process/seccomp.c: filters run as the kernel runs them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "attach/process/seccomp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LOAD(field)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_##what)

static const uint64_t arguments[6] = { 1, 0x200000003ull, 0, 0, 0, 7 };

static void filter_decides_by_the_number_of_the_call(void **state)
{
	const struct sock_filter filter[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
		RETURN(ALLOW),
		RETURN(KILL_PROCESS),
	};

	(void)state;
	assert_int_equal(gt_seccomp_run(filter, COUNT(filter), SYS_mmap, arguments),
			 SECCOMP_RET_ALLOW);
	assert_int_equal(gt_seccomp_run(filter, COUNT(filter), SYS_munmap, arguments),
			 SECCOMP_RET_KILL_PROCESS);
}

static void filter_sees_both_halves_of_arguments(void **state)
{
	const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]) + 4),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 6),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_STX, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
		BPF_STMT(BPF_LDX | BPF_MEM, 3),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1), /* 5 > 2 */
		BPF_STMT(BPF_RET | BPF_A, 0),
		RETURN(KILL_PROCESS),
	};

	(void)state;
	assert_int_equal(gt_seccomp_run(filter, COUNT(filter), 0, arguments), 5);
}

static void filter_that_leads_nowhere_kills(void **state)
{
	const struct sock_filter away[] = { BPF_STMT(BPF_JMP | BPF_JA, 1000), RETURN(ALLOW) };
	const struct sock_filter outside[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4096),
					       RETURN(ALLOW) };
	const struct sock_filter divided[] = { BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0),
					       BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 77),
					       BPF_STMT(BPF_LD | BPF_MEM, 4000), RETURN(ALLOW) };

	(void)state;
	assert_int_equal(gt_seccomp_run(away, COUNT(away), 0, arguments), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(gt_seccomp_run(outside, COUNT(outside), 0, arguments),
			 SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(gt_seccomp_run(divided, COUNT(divided), 0, arguments), SECCOMP_RET_ALLOW);
	assert_int_equal(gt_seccomp_run(away, 0, 0, arguments), SECCOMP_RET_KILL_PROCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filter_decides_by_the_number_of_the_call),
		cmocka_unit_test(filter_sees_both_halves_of_arguments),
		cmocka_unit_test(filter_that_leads_nowhere_kills),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
