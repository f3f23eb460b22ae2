/* SPDX-License-Identifier: MIT */
/*
 * A restartable sequence as tcmalloc's assembly has them: the abort handler is marked as a function, with the
 * signature in a nop before it. Each call waits in the sequence until a signal takes it out. What is on top of the
 * stack is a variable then. A function of two bytes stands beside it, which needs room of others.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/rseq.h>
#include <sys/time.h>

/* From the instruction that says which sequence begins to the one that commits. */
#define STORES " mov %rax, %fs:8(%rdi)\n"
#define RUNS                                                                   \
	" incq (%rsi)\n 1: cmpq $1, (%rsi)\n je 1b\n lea 3(%rax,%rax), %rcx\n" \
	" rol $5, %rcx\n xor %rdi, %rcx\n add $0x12345, %rcx\n"                \
	" imul $0x10001, %rcx, %rcx\n mov %rcx, 8(%rsi)\n"

long tiny(long offset, volatile long *state);
extern const uint8_t committed[], copy[], copy_end[], trampoline[];
/* No code has the address of what stands before them. */
static const uint8_t *volatile const end = committed, *volatile const handler = trampoline;

__asm__(".pushsection __rseq_cs, \"aw\"\n.balign 32\n.type descriptor, @object\n.size descriptor, "
	"32\n"
	"descriptor:\n.long 0, 0\n.quad waits, committed - waits, trampoline\n.popsection\n"
	".pushsection .text.unlikely, \"ax\"\n.fill 16, 1, 0xf4\n.type before, @function\n"
	"before:\n.cfi_startproc\n ret\n.cfi_endproc\n.size before, . - before\n"
	".byte 0x0f, 0x1f, 0x05\n.long 0x53053053\n"
	".type trampoline, @function\ntrampoline:\n jmp begins\n.size trampoline, . - trampoline\n"
	".popsection\n"
	".text\n.p2align 6\n.fill 192, 1, 0xf4\n.globl tiny\n.type tiny, @function\n"
	"tiny:\n.cfi_startproc\n jmp sequence\n.cfi_endproc\n.size tiny, . - tiny\n"
	".type sequence, @function\nsequence:\n.cfi_startproc\n"
	" sub $24, %rsp\n.cfi_adjust_cfa_offset 24\n movq $4711, (%rsp)\n"
	"begins: lea descriptor(%rip), %rax\n" STORES "waits:\n" RUNS "committed:\n"
	" mov (%rsp), %rax\n add $24, %rsp\n.cfi_adjust_cfa_offset -24\n ret\n"
	".cfi_endproc\n.size sequence, . - sequence\n.fill 200, 1, 0xf4\n"
	".section .rodata\ncopy: " STORES RUNS "copy_end: .text\n");

static volatile long signals;

static void on_signal(int number)
{
	(void)number;
	signals = signals + 1;
}

int main(void)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	const size_t bytes = (size_t)(copy_end - copy);
	long wrong = 0, replaced = 0;

	if (__rseq_size == 0)
		return 77;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 100; i++) {
		volatile long state[2] = { 0, 0 };

		wrong += tiny(__rseq_offset, state) != 4711 || state[0] < 2 || state[1] == 0;
		replaced += memcmp(end - bytes, copy, bytes) != 0 ||
			    memcmp(handler - 7, "\x0f\x1f\x05\x53\x30\x05\x53", 7) != 0;
	}
	printf("%ld wrong, %ld replaced\n", wrong, replaced);
	return 0;
}
