/* SPDX-License-Identifier: MIT */
/*
 * Functions that take their arguments off the stack when they return, and ways to get to one. Each
 * is given two words on the stack and returns their difference. With -DLIBRARY the one function of
 * another object.
 */
#define FUNCTION(name, body)                                                              \
	__asm__(".text\n.globl " #name "\n.p2align 4\n.type " #name ", @function\n" #name \
		":\n.cfi_startproc\n" body "\n.cfi_endproc\n.size " #name ", . - " #name)
#define DIFFERENCE "mov 8(%rsp), %rax; sub 16(%rsp), %rax; ret $16"

#ifdef LIBRARY
FUNCTION(far_away, DIFFERENCE);
#else
#include <stdio.h>

FUNCTION(takes, DIFFERENCE);
/* A jump to it, a jump to that jump, and one that is only sometimes taken. */
FUNCTION(jumps, "mov 8(%rsp), %rcx; nop; jmp takes");
FUNCTION(jumps_twice, "mov 8(%rsp), %rcx; nop; jmp jumps");
FUNCTION(may_jump, "mov 8(%rsp), %rcx; cmp $0, %rcx; jne takes; xor %eax, %eax; ret $16");
/* ... which no plan can know. */
FUNCTION(points, "mov pointer@GOTPCREL(%rip), %rcx; jmp *(%rcx)");
FUNCTION(crosses, "mov 8(%rsp), %rcx; mov %rcx, %rdx; jmp far_away@PLT");
/* ... and that is called by way of another. */
FUNCTION(leads, "mov 8(%rsp), %rcx; nop; jmp points");
FUNCTION(calls_leads, "push 16(%rsp); push 16(%rsp); call leads; ret $16");
/* Far returns: an address and a code segment, or all of a stack as well. */
FUNCTION(far_return, "mov 8(%rsp), %rax; sub 16(%rsp), %rax; mov %cs, %edx\n"
		     "mov %rdx, 8(%rsp); lretq $8");

__asm__(".data\n.p2align 3\n.globl pointer\npointer: .quad takes\n.text");

static long call(void *function, long a, long b)
{
	long result;

	__asm__ volatile("sub $128, %%rsp; mov %%rsp, %%rbx; push %3; push %2; call *%1\n"
			 "cmp %%rsp, %%rbx; je 1f; ud2; 1: add $128, %%rsp"
			 : "=a"(result)
			 : "r"(function), "r"(a), "r"(b)
			 : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory",
			   "cc");
	return result;
}

#define EACH(of)                                                                                \
	of(takes) of(jumps) of(jumps_twice) of(may_jump) of(points) of(calls_leads) of(crosses) \
		of(far_return)
#define DECLARE(name) extern char name[];
EACH(DECLARE)

int main(void)
{
	long sum = 0;

	for (long i = 0; i < 300; i++) {
#define CALL(name)    sum = sum * 3 + call(name, i * 7, i);
		EACH(CALL)
	}
	printf("%lx\n", sum);
	return 0;
}
#endif
