/* SPDX-License-Identifier: MIT */
/* Sets a seccomp filter by an instruction of its own: argv[1] "asks" by where a call is made from, "few"
 * allows three calls and kills for others. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define LOAD(field)	  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define EQUAL(number, to) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), (to), 0)
#define ANSWER(action)	  BPF_STMT(BPF_RET | BPF_K, (action))
#define COUNT(array)	  (sizeof(array) / sizeof(*(array)))

extern const char behind_call[];

static __attribute__((noinline)) long call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}

static __attribute__((noinline)) long allowed_place(void)
{
	long result;

	__asm__ volatile("syscall\nbehind_call:\n\tnop\n\tnop\n\tnop"
			 : "=a"(result)
			 : "a"(SYS_getppid)
			 : "rcx", "r11", "memory");
	return result;
}

int main(int argc, char **argv)
{
	struct sock_filter asks[] = {
		LOAD(nr),
		EQUAL(SYS_getppid, 1),
		ANSWER(SECCOMP_RET_ALLOW),
		LOAD(instruction_pointer),
		EQUAL((uint32_t)(uintptr_t)behind_call, 1),
		ANSWER(SECCOMP_RET_KILL_PROCESS),
		ANSWER(SECCOMP_RET_ALLOW),
	};
	struct sock_filter few[] = {
		LOAD(nr),
		EQUAL(SYS_getppid, 3),
		EQUAL(SYS_write, 2),
		EQUAL(SYS_exit_group, 1),
		ANSWER(SECCOMP_RET_KILL_PROCESS),
		ANSWER(SECCOMP_RET_ALLOW),
	};
	const int is_few = argc > 1 && strcmp(argv[1], "few") == 0;
	struct sock_fprog program = { is_few ? COUNT(few) : COUNT(asks), is_few ? few : asks };
	int i;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program))
		return 1;
	for (i = 0; i < 5; i++)
		allowed_place();
	call(SYS_write, 1, (long)"done\n", 5);
	call(SYS_exit_group, 0, 0, 0);
	return 1;
}
