/* SPDX-License-Identifier: MIT */
/*
 * System calls of the agent, without libc and without errno: the kernel's own result (negative
 * errno). Any context. Numbers are those of x86-64 Linux.
 */
#ifndef GT_PORT_PROGRAM_SYSCALL_H
#define GT_PORT_PROGRAM_SYSCALL_H

#include <stdint.h>

#define SYS_MMAP	       9
#define SYS_MPROTECT	       10
#define SYS_MUNMAP	       11
#define SYS_RT_SIGPROCMASK     14
#define SYS_MADVISE	       28
#define SYS_GETPID	       39
#define SYS_SIGALTSTACK	       131
#define SYS_SCHED_GETSCHEDULER 145
#define SYS_MLOCKALL	       151
#define SYS_ARCH_PRCTL	       158
#define SYS_GETTID	       186
#define SYS_FUTEX	       202
#define SYS_TGKILL	       234
#define SYS_PRCTL	       157
#define SYS_PROCESS_VM_READV   310
#define SYS_GETCPU	       309
#define SYS_CLOCK_GETTIME      228

static inline long gt_syscall6(long number, long a, long b, long c, long d, long e, long f)
{
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long gt_syscall3(long number, long a, long b, long c)
{
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long gt_syscall4(long number, long a, long b, long c, long d)
{
	long result;
	register long r10 __asm__("r10") = d;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}

static inline int gt_syscall_failed(long result)
{
	return (unsigned long)result > -4096ul;
}

#endif
