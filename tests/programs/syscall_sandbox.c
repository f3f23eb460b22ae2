/* SPDX-License-Identifier: MIT */
/* Sandboxes: 1 asks where a call is made from, 2 is an ordinary one, 3 dispatches calls by their place, 0 none. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int kind = atoi(argv[1]);
	getppid();
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (kind ==
	    1) { /* getuid answers 7 unless it comes from near where the C library's function is */
		unsigned long at = (unsigned long)getuid;
		struct sock_filter f[] = {
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
			BPF_JUMP(BPF_JMP | BPF_JEQ, SYS_getuid, 0, 4),
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
				 offsetof(struct seccomp_data, instruction_pointer)),
			BPF_JUMP(BPF_JMP | BPF_JGE, (unsigned)at, 0, 1),
			BPF_JUMP(BPF_JMP | BPF_JGE, (unsigned)at + 64, 0, 1),
			BPF_STMT(BPF_RET, SECCOMP_RET_ERRNO | 7),
			BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW),
		};
		struct sock_fprog p = { sizeof(f) / sizeof(*f), f };
		if (prctl(PR_SET_SECCOMP, 2, &p))
			perror("seccomp");
	} else if (kind == 2) { /* an ordinary one */
		struct sock_filter f[] = {
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
			BPF_JUMP(BPF_JMP | BPF_JEQ, SYS_getuid, 0, 1),
			BPF_STMT(BPF_RET, SECCOMP_RET_ERRNO | 9),
			BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW),
		};
		struct sock_fprog p = { sizeof(f) / sizeof(*f), f };
		if (syscall(SYS_seccomp, 1, 0, &p))
			perror("seccomp");
	} else if (kind == 3) {
		static char selector = 0;
		unsigned long at = (unsigned long)getuid & ~4095ul;
		if (prctl(59, 1, at - (2 << 20), 4 << 20, &selector))
			perror("dispatch");
		selector = 1; /* block all but the C library's */
		printf("dispatched %d\n", getuid() == 0);
		selector = 0;
		return 0;
	}
	printf("%d\n", (int)getuid());
	fflush(stdout);
	if (argc > 2)
		execl(argv[0], argv[0], "0", NULL);
	return 5;
}
