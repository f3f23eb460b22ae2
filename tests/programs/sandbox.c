/* SPDX-License-Identifier: MIT */
/*
 * Enters a sandbox of its own making in the way that is named, and goes on calling functions there.
 *
 *   sandbox prctl|syscall narrow|wide|strict [begun]
 *
 * narrow: only write(2) and exit_group(2), all else is death; wide: all but swapon(2); strict: seccomp's own mode.
 * begun: it says so first, and waits for a line; it works for a second more in its sandbox.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) static int inner(volatile int n)
{
	return n ? 1 + inner(n - 1) : 0;
}

__attribute__((noinline)) static void leave(jmp_buf back)
{
	longjmp(back, inner(3));
}

/* strict mode has no exit_group(2), and a narrow filter no exit(2) */
static int is_strict;
static void end(int code)
{
	syscall(is_strict ? SYS_exit : SYS_exit_group, code);
}

#define LOAD	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define IF(call, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, n, 0)
#define RETURN(x)   BPF_STMT(BPF_RET | BPF_K, x)

int main(int argc, char **argv)
{
	struct sock_filter narrow[] = { LOAD, IF(SYS_write, 2), IF(SYS_exit_group, 1),
					RETURN(SECCOMP_RET_KILL_PROCESS),
					RETURN(SECCOMP_RET_ALLOW) };
	struct sock_filter wide[] = { LOAD, IF(SYS_swapon, 1), RETURN(SECCOMP_RET_ALLOW),
				      RETURN(SECCOMP_RET_KILL_PROCESS) };
	struct sock_fprog program = { 5, narrow };
	volatile int round;
	jmp_buf back;
	long sum = 0;
	char line;
	int i;

	if (argc < 3)
		return 2;
	is_strict = strcmp(argv[2], "strict") == 0;
	if (strcmp(argv[2], "wide") == 0)
		program = (struct sock_fprog){ 4, wide };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* what libseccomp asks first: no sandbox yet */
	syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL);
	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL);
	if (argc > 3 && (write(1, "begun\n", 6) != 6 || read(0, &line, 1) != 1))
		return 4;
	if (strcmp(argv[1], "prctl") == 0
		    ? prctl(PR_SET_SECCOMP, is_strict ? SECCOMP_MODE_STRICT : SECCOMP_MODE_FILTER,
			    &program)
		    : syscall(SYS_seccomp,
			      is_strict ? SECCOMP_SET_MODE_STRICT : SECCOMP_SET_MODE_FILTER, 0,
			      is_strict ? NULL : &program))
		return 3;
	for (round = 0; round < (argc > 3 ? 200 : 1); round++) {
		for (sum = 0, i = 0; i < 100000; i++)
			sum += inner(i % 20);
		if (!setjmp(back))
			leave(back);
	}
	if (sum != 950000 || write(1, "done\n", 5) != 5)
		end(1);
	end(inner(6));
}
